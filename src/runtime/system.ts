/** Actor system of one thread: owns its actors, supervisors, asks and watches; the router carries messages. */
import { Subject } from 'rxjs';
import { type Clock, SimulatedClock, systemClock } from '../core/clock.ts';
import { LongplayError } from '../core/errors.ts';
import { Rng, seedFrom } from '../core/rng.ts';
import type {
  ActorModule,
  ActorRef,
  ActorStats,
  ActorSystem,
  AskOptions,
  BehaviorFactory,
  Context,
  Down,
  Message,
  ModuleSpec,
  ReplyTo,
  SpawnOptions,
  StopReason,
  SupervisorOptions,
  SupervisorRef,
  SystemEvent,
} from './actor.ts';
import { AskTable } from './ask.ts';
import { ActorCell, type Launch } from './cell.ts';
import { actorContext } from './context.ts';
import { AsyncDispatcher, type Dispatcher } from './dispatcher.ts';
import { recordError, toError } from './envelope.ts';
import { type LocalExecutor, launchLocal } from './local.ts';
import type { OrderPlayer, OrderSink } from './message-order.ts';
import { plainEvent } from './plain.ts';
import { Ref } from './ref.ts';
import { Router, type ThreadSide } from './router.ts';
import { SerialDispatcher } from './serial.ts';
import { Supervisor } from './supervisor.ts';
import { launchThread, localUrl } from './thread.ts';

export interface SystemOptions {
  /** `serial`: one event loop, a virtual clock, a seeded order of delivery; everything is local. */
  readonly mode: 'async' | 'serial';
  /** Default: the machine's clock, or in serial mode a new `SimulatedClock`, which it must be. */
  readonly clock?: Clock;
  /** Seed of every actor's rng, of the order in serial mode and of back-off jitter. Default 0. */
  readonly seed?: number;
  /** Supervision by the root supervisor, which escalates to a fatal error. */
  readonly supervision?: Omit<SupervisorOptions, 'supervisor'>;
  /** Sink of every message begun, here and in threads, for a record of the order. */
  readonly record?: OrderSink;
  /** Replay of a recorded order; serial mode only. */
  readonly replay?: OrderPlayer;
}

/** Creates an actor system, which runs at once. */
export function createSystem(options: SystemOptions): ActorSystem {
  return new System(options);
}

const OUTSIDE = '/';
export class System implements ActorSystem {
  readonly mode: 'async' | 'serial';
  readonly clock: Clock;
  readonly seed: number;
  readonly dispatcher: Dispatcher;
  readonly inspect$ = new Subject<SystemEvent>();
  readonly counts: Record<SystemEvent['type'], number> = {
    started: 0,
    stopped: 0,
    restarting: 0,
    escalated: 0,
    'dead-letter': 0,
    unhandled: 0,
    dropped: 0,
    fatal: 0,
  };
  readonly terminated: Promise<void>;
  readonly begun: OrderSink | undefined;
  readonly replay: OrderPlayer | undefined;
  readonly #serial: SerialDispatcher | undefined;
  readonly #thread: ThreadSide | undefined;
  readonly router: Router;
  readonly #asks: AskTable;
  readonly #watchers = new Map<string, Set<(down: Down) => void>>();
  readonly #root: Supervisor;
  #rootCell: ActorCell | undefined;
  #outsideCount = 0;
  #outsideIdle: (() => void) | undefined;
  #fatal: Error | undefined;
  #stopped: Promise<void> | undefined;
  #settleTerminated!: (error?: Error) => void;

  constructor(options: SystemOptions & Partial<ThreadSide>) {
    this.mode = options.mode;
    this.seed = options.seed ?? 0;
    this.begun = options.record;
    this.replay = options.replay;
    if (options.replay && options.mode !== 'serial') {
      throw new LongplayError('BAD_ARGUMENT', 'a recorded order is repeated in serial mode');
    }
    if (options.mode === 'serial') {
      const clock = options.clock ?? new SimulatedClock();
      if (!(clock instanceof SimulatedClock)) {
        throw new LongplayError('BAD_ARGUMENT', 'serial mode needs a SimulatedClock');
      }
      this.clock = clock;
      this.dispatcher = this.#serial = new SerialDispatcher(
        clock,
        Rng.fromSeed(seedFrom(this.seed, 'order')),
        options.replay,
      );
    } else {
      this.clock = options.clock ?? systemClock;
      this.dispatcher = new AsyncDispatcher();
    }
    const { root, uplink } = options;
    this.#thread = root !== undefined && uplink ? { root, uplink } : undefined;
    this.#asks = new AskTable(this.clock);
    this.router = new Router(this, this.#asks, this.#thread);
    this.#root = this.#supervisorAt(root ?? OUTSIDE, options.supervision ?? {}, (reason) => {
      this.fatal(OUTSIDE, reason.kind === 'crashed' ? reason.error : new Error(reason.kind));
    });
    this.terminated = new Promise((resolve, reject) => {
      this.#settleTerminated = (error) => (error ? reject(error) : resolve());
    });
    this.terminated.catch(() => {});
  }

  spawn<M extends Message>(
    name: string,
    factory: BehaviorFactory<M>,
    options: SpawnOptions = {},
  ): Promise<ActorRef<M>> {
    return this.spawnAt(`/${name}`, factory, options);
  }

  spawnModule<M extends Message, I>(name: string, module: ModuleSpec<I>, options: SpawnOptions = {}) {
    return this.spawnModuleAt<M>(`/${name}`, module, options);
  }

  spawnAt<M extends Message>(path: string, factory: BehaviorFactory<M>, options: SpawnOptions): Promise<ActorRef<M>> {
    return this.#spawn(path, launchLocal(this, factory), options);
  }

  async spawnModuleAt<M extends Message>(path: string, spec: ModuleSpec<unknown>, options: SpawnOptions) {
    const inThread = spec.placement === 'thread' && this.mode === 'async';
    if (inThread && this.#thread) {
      throw new LongplayError('BAD_ARGUMENT', `${path}: only the main thread starts threads`);
    }
    if (inThread) return this.#spawn<M>(path, launchThread(this, spec), options);
    const { default: make } = (await this.outside(import(localUrl(spec.url).href))) as {
      default: ActorModule<unknown, M>;
    };
    return this.#spawn<M>(path, launchLocal(this, make(spec.init)), options);
  }

  supervisor(name: string, options: SupervisorOptions = {}): SupervisorRef {
    const parent = this.#supervisorOf(options.supervisor);
    const made = this.#supervisorAt(`/${name}`, options, (reason) => parent.exited(made, reason));
    parent.add(made);
    return made;
  }

  resolve<M extends Message>(path: string): ActorRef<M> {
    return new Ref<M>(this, path);
  }

  ask<R, M extends Message>(ref: ActorRef<M>, make: (to: ReplyTo<R>) => M, options: AskOptions): Promise<R> {
    return this.#drive(this.askFrom(this.#thread?.root ?? OUTSIDE, ref, make, options));
  }

  stopActor(ref: { readonly path: string }): Promise<void> {
    const cell = this.router.cells.get(ref.path);
    if (!cell) return Promise.resolve();
    const stopping = async () => {
      cell.supervisor.remove(cell);
      await cell.stop({ kind: 'shutdown' });
      cell.finish({ kind: 'shutdown' });
    };
    return this.#drive(this.waiting(stopping()));
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stopAll();
    return this.#drive(this.#stopped);
  }

  stats(): readonly ActorStats[] {
    return [...this.router.cells.values()].map((cell) => cell.stats());
  }

  async run<T>(until?: Promise<T>): Promise<T | undefined> {
    return this.#serial ? this.#serial.drive(until) : until;
  }

  outside<T>(work: Promise<T>): Promise<T> {
    this.#outsideCount++;
    const end = () => {
      if (--this.#outsideCount === 0) this.#outsideIdle?.();
    };
    work.then(end, end);
    return this.#serial ? this.#serial.outside(work) : work;
  }

  reorder(label: number): void {
    this.#serial?.reorder(Rng.fromSeed(seedFrom(this.seed, 'order', label)));
  }

  // — for the cells, contexts and links of this system; not part of `ActorSystem` —

  /** Resolves when no declared work goes on outside. */
  async outsideDone(): Promise<void> {
    if (this.#outsideCount === 0) return;
    await new Promise<void>((resolve) => {
      this.#outsideIdle = resolve;
    });
  }

  /** Tracks user code, so that serial mode knows when it waits. */
  track<T>(name: string, work: () => T | Promise<T>): T | Promise<T> {
    return this.#serial ? this.#serial.track(name, work) : work();
  }

  /** Marks a wait whose end lies inside the system. */
  waiting<T>(work: Promise<T>): Promise<T> {
    return this.#serial ? this.#serial.wait(work) : work;
  }

  emit(event: SystemEvent): void {
    this.counts[event.type]++;
    this.inspect$.next(event);
    this.#thread?.uplink.post(['event', plainEvent(event)]);
  }

  heartbeat(): void {
    for (const cell of this.router.cells.values()) cell.ping();
  }

  breakOff(path: string, message: string): void {
    const error = new LongplayError('STALLED', message);
    const cell = this.router.cells.get(path);
    if (cell) cell.breakOff(error);
    else this.fatal(path, error);
  }

  askFrom<R, M extends Message>(
    from: string,
    ref: ActorRef<M>,
    make: (to: ReplyTo<R>) => M,
    { deadlineMs, transfer }: AskOptions,
  ): Promise<R> {
    const id = this.#asks.nextId();
    const message = make({ path: from, id });
    const wait = { from, to: ref.path, message: message.type };
    const answered = this.#asks.open<R>(id, wait, deadlineMs, (waitedMs) =>
      this.router.waits.timeout(id, wait, waitedMs),
    );
    try {
      // A full mailbox makes the ask itself wait; its deadline counts.
      void this.router.send(ref.path, message, transfer, { path: from, id, deadlineMs });
    } catch (thrown) {
      this.#asks.settle(id, { ok: false, error: recordError(thrown) });
    }
    return this.waiting(answered);
  }

  waitingFor(path: string): readonly string[] {
    return this.router.waits.waitingFor(path);
  }

  watch(path: string, told: (down: Down) => void): () => void {
    let watchers = this.#watchers.get(path);
    if (!watchers) this.#watchers.set(path, (watchers = new Set()));
    watchers.add(told);
    if (this.#thread && this.router.linkTo(path)) this.#thread.uplink.post(['watch', path]);
    else if (!this.router.cells.has(path)) {
      // Gone before the watch began: say so, as OTP's monitor does.
      queueMicrotask(() => told({ path, reason: { kind: 'normal' }, final: true }));
    }
    return () => watchers.delete(told);
  }

  down(down: Down): void {
    const watchers = this.#watchers.get(down.path);
    if (down.final) this.#watchers.delete(down.path);
    for (const told of watchers ?? []) told(down);
  }

  forget(cell: ActorCell, reason: StopReason): void {
    if (this.router.cells.get(cell.path) === cell) this.router.cells.delete(cell.path);
    this.down({ path: cell.path, reason, final: true });
  }

  /** Ends the system with a fatal error: everything stops, `terminated` rejects. */
  fatal(path: string, error: Error): void {
    if (this.#fatal) return;
    this.#fatal = error;
    this.emit({ type: 'fatal', path, error });
    this.#settleTerminated(error);
    this.#stopped ??= this.#stopAll();
    this.#stopped.catch(() => {});
  }

  context<M extends Message>(cell: ActorCell, incarnation: number, executor: LocalExecutor<M>): Context<M> {
    return actorContext(this, cell, incarnation, executor);
  }

  /** Supervisor of what one incarnation of an actor spawns; when it gives up, the actor crashes. */
  childSupervisor(cell: ActorCell, executor: LocalExecutor<never>): Supervisor {
    const made = this.#supervisorAt(cell.path, {}, (reason) => {
      if (reason.kind === 'crashed') executor.fail(reason.error);
    });
    executor.stopChildren = async () => {
      await made.stop({ kind: 'shutdown' });
      made.finish({ kind: 'shutdown' });
    };
    return made;
  }

  /** Starts the one actor that a thread was made for. */
  async spawnRoot<M extends Message>(
    factory: BehaviorFactory<M>,
    incarnation: number,
    options: SpawnOptions,
    hooks: { readonly onBegin: ActorCell['onBegin']; readonly onHandled: ActorCell['onHandled'] },
    ended: (reason: StopReason) => void,
  ): Promise<ActorCell> {
    const path = this.#thread!.root;
    const cell = new ActorCell(this, path, options, this.#root, launchLocal(this, factory));
    Object.assign(cell, hooks, { incarnation: incarnation - 1 });
    this.router.cells.set(path, cell);
    this.#root.add(cell);
    this.watch(path, (down) => ended(down.reason));
    this.#rootCell = cell;
    await cell.start();
    return cell;
  }

  async stopRoot(reason: StopReason): Promise<void> {
    await this.#rootCell?.stop(reason);
  }

  async #spawn<M extends Message>(path: string, launch: Launch, options: SpawnOptions): Promise<ActorRef<M>> {
    if (this.#stopped) throw new LongplayError('ACTOR_STOPPED', `${path}: the system is stopping`);
    if (this.router.cells.has(path)) throw new LongplayError('BAD_ARGUMENT', `${path}: the name is taken`);
    const supervisor = this.#supervisorOf(options.supervisor);
    const cell = new ActorCell(this, path, options, supervisor, launch);
    this.router.cells.set(path, cell);
    supervisor.add(cell);
    const starting = cell.start().catch((thrown) => {
      supervisor.remove(cell);
      cell.finish({ kind: 'crashed', error: toError(thrown) });
      throw thrown;
    });
    await this.#drive(this.waiting(starting));
    return this.resolve<M>(path);
  }

  #supervisorAt(path: string, options: SupervisorOptions, escalate: (reason: StopReason) => void): Supervisor {
    const around = {
      clock: this.clock,
      rng: Rng.fromSeed(seedFrom(this.seed, path, 'supervisor')),
      emit: (event: SystemEvent) => this.emit(event),
    };
    return new Supervisor(path, options, around, (_, reason) => escalate(reason));
  }

  #supervisorOf(ref: SupervisorRef | undefined): Supervisor {
    if (ref === undefined) return this.#root;
    if (ref instanceof Supervisor) return ref;
    throw new LongplayError('BAD_ARGUMENT', `${ref.path} is not a supervisor of this system`);
  }

  async #stopAll(): Promise<void> {
    await this.#root.stop({ kind: 'shutdown' });
    this.#root.finish({ kind: 'shutdown' });
    this.#settleTerminated();
  }

  #drive<T>(work: Promise<T>): Promise<T> {
    return this.#serial ? (this.#serial.drive(work) as Promise<T>) : work;
  }
}
