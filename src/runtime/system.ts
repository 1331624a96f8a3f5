/** The actor system of one thread: addresses, routing, asks, lifecycle. The main thread's is the hub of the others. */
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
import { Credits } from './credit.ts';
import {
  type Address,
  type Answer,
  type AskTag,
  type Envelope,
  recordError,
  reviveError,
  toError,
} from './envelope.ts';
import { type LocalExecutor, launchLocal } from './local.ts';
import { plainDown, plainEvent } from './plain.ts';
import { Ref } from './ref.ts';
import type { SchedulePlayer, ScheduleSink } from './schedule.ts';
import { AsyncScheduler, type Scheduler } from './scheduler.ts';
import { SerialScheduler } from './serial.ts';
import { Supervisor } from './supervisor.ts';
import { launchThread, localUrl } from './thread.ts';
import { WaitGraph } from './wait-graph.ts';
import type { Frame } from './wire.ts';

export interface SystemOptions {
  /** `serial`: one event loop, a virtual clock, a seeded order of delivery; everything is local. */
  readonly mode: 'async' | 'serial';
  /** Default: the machine's clock, or in serial mode a new `SimulatedClock`, which it must be. */
  readonly clock?: Clock;
  /** Of every actor's rng, of the order in serial mode and of back-off jitter. Default 0. */
  readonly seed?: number;
  /** Of the root supervisor, which escalates to a fatal error. */
  readonly supervision?: Omit<SupervisorOptions, 'supervisor'>;
  /** Hears of every message begun, here and in threads, for a record of the order. */
  readonly record?: ScheduleSink;
  /** A recorded order to repeat; serial mode only. */
  readonly replay?: SchedulePlayer;
}

/** A running actor system. */
export function createSystem(options: SystemOptions): ActorSystem {
  return new System(options);
}

/** The way to another thread. */
export interface Link {
  post(frame: Frame, transfer?: readonly ArrayBuffer[]): void;
}

interface ThreadSide {
  /** Path of the one actor this thread was made for; addresses below it are here. */
  readonly root: string;
  /** Leads to every other address. */
  readonly uplink: Link;
}

const OUTSIDE = '/';
export class System implements ActorSystem {
  readonly mode: 'async' | 'serial';
  readonly clock: Clock;
  readonly seed: number;
  readonly scheduler: Scheduler;
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
  readonly begun: ScheduleSink | undefined;
  readonly replay: SchedulePlayer | undefined;
  readonly #serial: SerialScheduler | undefined;
  readonly #thread: ThreadSide | undefined;
  readonly #cells = new Map<string, ActorCell>();
  readonly #links = new Map<string, Link>();
  readonly #asks: AskTable;
  readonly #watchers = new Map<string, Set<(down: Down) => void>>();
  readonly #credits = new Credits();
  readonly #waits: WaitGraph;
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
      this.scheduler = this.#serial = new SerialScheduler(
        clock,
        Rng.fromSeed(seedFrom(this.seed, 'order')),
        options.replay,
      );
    } else {
      this.clock = options.clock ?? systemClock;
      this.scheduler = new AsyncScheduler();
    }
    const { root, uplink } = options;
    this.#thread = root !== undefined && uplink ? { root, uplink } : undefined;
    this.#asks = new AskTable(this.clock);
    this.#waits = new WaitGraph(this.clock, this.#asks, this.#thread?.uplink, (path) => this.#cells.get(path)?.stats());
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
    const cell = this.#cells.get(ref.path);
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
    return [...this.#cells.values()].map((cell) => cell.stats());
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

  // — for the cells, contexts and links of this system; not part of `ActorSystem` —

  /** Resolves when no declared work goes on outside. */
  async outsideDone(): Promise<void> {
    if (this.#outsideCount === 0) return;
    await new Promise<void>((resolve) => {
      this.#outsideIdle = resolve;
    });
  }

  /** Runs user code so that serial mode knows when it waits. */
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

  /** Routes a message. @returns and throws as `ActorRef.tell` */
  send(
    path: string,
    message: Message,
    transfer: readonly ArrayBuffer[] | undefined,
    ask: AskTag | undefined,
  ): void | Promise<void> {
    const cell = this.#cells.get(path);
    if (cell) return cell.receive({ message, ask, transfer, at: this.clock.now() });
    const link = this.#linkTo(path);
    if (!link) return this.deadLetter(path, { message, ask, transfer, at: 0 }, 'nobody lives there');
    link.post(['tell', path, message, ask], transfer);
    const gate = this.#credits.spend(path);
    return gate && this.waiting(gate);
  }

  heartbeat(): void {
    for (const cell of this.#cells.values()) cell.ping();
  }

  breakOff(path: string, message: string): void {
    const error = new LongplayError('STALLED', message);
    const cell = this.#cells.get(path);
    if (cell) cell.breakOff(error);
    else this.fatal(path, error);
  }

  cellAt(path: string): ActorCell | undefined {
    return this.#cells.get(path);
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
    const answered = this.#asks.open<R>(id, wait, deadlineMs, (waitedMs) => this.#waits.timeout(id, wait, waitedMs));
    try {
      // A full mailbox makes the ask itself wait; its deadline counts.
      void this.send(ref.path, message, transfer, { path: from, id, deadlineMs });
    } catch (thrown) {
      this.#asks.settle(id, { ok: false, error: recordError(thrown) });
    }
    return this.waiting(answered);
  }

  answer(to: Address, answer: Answer, transfer?: readonly ArrayBuffer[]): void {
    this.#waits.forget(to);
    const link = this.#linkTo(to.path);
    if (link) link.post(['answer', { path: to.path, id: to.id }, answer], transfer);
    else if (!this.#asks.settle(to.id, answer)) {
      this.emit({ type: 'dead-letter', path: to.path, message: 'reply', why: 'nobody waits for it any more' });
    }
  }

  deadLetter(path: string, { message, ask, windowed }: Envelope, why: string): void {
    if (windowed) return; // the main thread still holds it
    this.emit({ type: 'dead-letter', path, message: message.type, why });
    if (!ask) return;
    this.#cells.get(path)?.owed.delete(`${ask.path}#${ask.id}`);
    const error = new LongplayError('ACTOR_STOPPED', `${message.type} did not reach ${path}: ${why}`);
    this.answer(ask, { ok: false, error: recordError(error) });
  }

  unhandled(path: string, { message, ask }: Envelope): void {
    this.emit({ type: 'unhandled', path, message: message.type });
    if (!ask) return;
    const error = new LongplayError('BAD_ARGUMENT', `${path} has no handler for ${message.type}`);
    this.answer(ask, { ok: false, error: recordError(error) });
  }

  /** A frame that cannot be cloned: whoever waits for it is told. */
  unsendable(frame: Frame, error: Error): void {
    const why = `cannot cross threads: ${error.message}`;
    if (frame[0] === 'tell')
      this.deadLetter(frame[1], { message: frame[2], ask: frame[3], transfer: undefined, at: 0 }, why);
    else if (frame[0] === 'deliver') {
      this.deadLetter('(thread)', { message: frame[1], ask: frame[2], transfer: undefined, at: 0 }, why);
    } else if (frame[0] === 'answer')
      this.answer(frame[1], { ok: false, error: { name: 'Error', message: `the reply ${why}` } });
    else throw error;
  }

  waitingFor(path: string): readonly string[] {
    return this.#waits.waitingFor(path);
  }

  watch(path: string, told: (down: Down) => void): () => void {
    let watchers = this.#watchers.get(path);
    if (!watchers) this.#watchers.set(path, (watchers = new Set()));
    watchers.add(told);
    if (this.#thread && this.#linkTo(path)) this.#thread.uplink.post(['watch', path]);
    else if (!this.#cells.has(path)) {
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
    if (this.#cells.get(cell.path) === cell) this.#cells.delete(cell.path);
    this.down({ path: cell.path, reason, final: true });
  }

  /** Something that must end the run: everything stops, `terminated` rejects. */
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

  addLink(path: string, link: Link): void {
    this.#links.set(path, link);
  }

  removeLink(path: string, link: Link): void {
    if (this.#links.get(path) === link) this.#links.delete(path);
  }

  /** A frame of another thread that is not about the life of its own actor. */
  receiveFrame(frame: Frame, from: Link): void {
    switch (frame[0]) {
      case 'tell':
        this.#route(frame[1], frame[2], frame[3], from);
        break;
      case 'answer':
        // The proxy of a thread's actor no longer owes what its thread has answered.
        for (const [path, link] of this.#links) {
          if (link === from) this.#cells.get(path)?.owed.delete(`${frame[1].path}#${frame[1].id}`);
        }
        this.answer(frame[1], frame[2]);
        break;
      case 'took':
        this.#credits.restore(frame[1], frame[2]);
        break;
      case 'watch':
        this.watch(frame[1], (down) => from.post(['down', plainDown(down)]));
        break;
      case 'down':
        this.down(frame[1]);
        break;
      case 'chain': {
        const [, id, wait, waitedMs] = frame;
        from.post(['chained', id, recordError(this.#waits.timeoutHere(wait, waitedMs))]);
        break;
      }
      case 'chained':
        this.#waits.chained(frame[1], reviveError(frame[2]));
        break;
      case 'event':
        // The life of the thread's own actor is told by its proxy.
        if (frame[1].type === 'dead-letter' || frame[1].type === 'unhandled' || !this.#links.has(frame[1].path)) {
          this.emit(frame[1]);
        }
        break;
      default:
        throw new LongplayError('STALLED', `unexpected frame ${frame[0]}`);
    }
  }

  /** In a thread: starts the one actor it was made for. */
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
    this.#cells.set(path, cell);
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
    if (this.#cells.has(path)) throw new LongplayError('BAD_ARGUMENT', `${path}: the name is taken`);
    const supervisor = this.#supervisorOf(options.supervisor);
    const cell = new ActorCell(this, path, options, supervisor, launch);
    this.#cells.set(path, cell);
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

  /** The thread that holds `path`, or undefined when it is this one. */
  #linkTo(path: string): Link | undefined {
    if (this.#thread) {
      const { root, uplink } = this.#thread;
      return path === root || path.startsWith(`${root}/`) ? undefined : uplink;
    }
    if (this.#links.size === 0) return undefined;
    for (let end = path.length; end > 0; end = path.lastIndexOf('/', end - 1)) {
      const link = this.#links.get(path.slice(0, end));
      if (link) return link;
    }
    return undefined;
  }

  /** Sends on what a thread sent, and gives the credit back once it has a place. */
  #route(path: string, message: Message, ask: AskTag | undefined, from: Link): void {
    if (ask) this.#waits.note(path, message, ask);
    try {
      const waiting = this.send(path, message, undefined, ask);
      if (waiting) void waiting.then(() => this.#credits.took(path, from));
      else this.#credits.took(path, from);
    } catch (thrown) {
      this.deadLetter(path, { message, ask, transfer: undefined, at: 0 }, toError(thrown).message);
      this.#credits.took(path, from);
    }
  }
}
