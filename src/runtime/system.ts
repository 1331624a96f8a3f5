/** Actor system of one thread: spawns, supervises and stops actors. What they see of it is the `Kernel`. */
import { type Clock, SimulatedClock, systemClock } from '../core/clock.ts';
import { LongplayError } from '../core/errors.ts';
import { Rng, seedFrom } from '../core/rng.ts';
import type {
  ActorModule,
  ActorRef,
  ActorStats,
  AskOptions,
  BehaviorFactory,
  Message,
  ModuleSpec,
  ReplyTo,
  ScopedSystem,
  SpawnOptions,
  StopReason,
  SupervisorOptions,
  SupervisorRef,
  SystemEvent,
} from './actor.ts';
import { ActorCell, type Launch } from './cell.ts';
import { AsyncDispatcher, type Dispatcher } from './dispatcher.ts';
import { toError } from './envelope.ts';
import { Kernel } from './kernel.ts';
import { launchLocal, type Parent } from './local.ts';
import type { OrderPlayer, OrderSink } from './message-order.ts';
import { localUrl } from './module-url.ts';
import { SerialDispatcher } from './serial.ts';
import { Supervisor } from './supervisor.ts';
import { launchThread } from './thread.ts';
import type { ThreadSide } from './wire.ts';

export interface SystemOptions {
  /** `serial`: one event loop, a virtual clock, a seeded order of delivery; everything is local. */
  readonly mode: 'async' | 'serial';
  /** Default: the machine's clock, or in serial mode a new `SimulatedClock`, which it must be. */
  readonly clock?: Clock | undefined;
  /** Seed of every actor's rng, of the order in serial mode and of back-off jitter. Default 0. */
  readonly seed?: number | undefined;
  /** Supervision by the root supervisor, which escalates to a fatal error. */
  readonly supervision?: Omit<SupervisorOptions, 'supervisor'> | undefined;
  /** Sink of every message begun, here and in threads, for a record of the order. */
  readonly record?: OrderSink | undefined;
  /** Replay of a recorded order; serial mode only. */
  readonly replay?: OrderPlayer | undefined;
}

const OUTSIDE = '/';

export class System implements ScopedSystem {
  readonly mode: 'async' | 'serial';
  readonly clock: Clock;
  readonly counts: Readonly<Record<SystemEvent['type'], number>>;
  readonly terminated: Promise<void>;
  readonly kernel: Kernel;
  readonly #dispatcher: Dispatcher;
  readonly #root: Supervisor;
  #rootCell: ActorCell | undefined;
  #stopped: Promise<void> | undefined;
  #settleTerminated!: (error?: Error) => void;

  /**
   * @param onEvent called with every event of this thread
   * @param thread present in a thread other than the main one, whose one actor is started by `spawnRoot`
   */
  constructor(options: SystemOptions, onEvent: (event: SystemEvent) => void, thread?: ThreadSide) {
    const { mode, seed = 0, record, replay, supervision = {} } = options;
    const { clock, dispatcher } = timeOf(options, seed);
    this.mode = mode;
    this.clock = clock;
    this.#dispatcher = dispatcher;
    const onFatal = (error: Error) => {
      this.#settleTerminated(error);
      this.#stopped ??= this.#stopAll();
      this.#stopped.catch(() => {});
    };
    this.kernel = new Kernel({ clock, seed, dispatcher, record, replay, thread, onEvent, onFatal });
    this.counts = this.kernel.counts;
    this.#root = this.#supervisorAt(thread?.root ?? OUTSIDE, supervision, (reason) => {
      this.kernel.fatal(OUTSIDE, reason.kind === 'crashed' ? reason.error : new Error(reason.kind));
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
    return this.#spawnAt(`/${name}`, factory, options);
  }

  spawnModule<M extends Message, I>(name: string, module: ModuleSpec<I>, options: SpawnOptions = {}) {
    return this.#spawnModuleAt<M>(`/${name}`, module, options);
  }

  supervisor(name: string, options: SupervisorOptions = {}): SupervisorRef {
    const parent = this.#supervisorOf(options.supervisor);
    const made = this.#supervisorAt(`/${name}`, options, (reason) => parent.handleExited(made, reason));
    parent.add(made);
    return made;
  }

  resolve<M extends Message>(path: string): ActorRef<M> {
    return this.kernel.resolve(path);
  }

  ask<R, M extends Message>(ref: ActorRef<M>, make: (to: ReplyTo<R>) => M, options: AskOptions): Promise<R> {
    return this.#drive(this.kernel.ask(this.kernel.thread?.root ?? OUTSIDE, ref, make, options));
  }

  stopActor(ref: { readonly path: string }): Promise<void> {
    const cell = this.kernel.router.cells.get(ref.path);
    if (!cell) return Promise.resolve();
    const stopping = async () => {
      cell.supervisor.remove(cell);
      await cell.stop({ kind: 'shutdown' });
      cell.finish({ kind: 'shutdown' });
    };
    return this.#drive(this.#dispatcher.wait(stopping()));
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#stopAll();
    return this.#drive(this.#stopped);
  }

  stats(): readonly ActorStats[] {
    return [...this.kernel.router.cells.values()].map((cell) => cell.stats());
  }

  heartbeat(): void {
    for (const cell of this.kernel.router.cells.values()) cell.ping();
  }

  breakOff(path: string, message: string): void {
    const error = new LongplayError('STALLED', message);
    const cell = this.kernel.router.cells.get(path);
    if (cell) cell.breakOff(error);
    else this.kernel.fatal(path, error);
  }

  run<T>(until?: Promise<T>): Promise<T | undefined> {
    return this.#dispatcher.drive(until);
  }

  outside<T>(work: Promise<T>): Promise<T> {
    return this.#dispatcher.outside(work);
  }

  reorder(label: number): void {
    this.#dispatcher.reorder(Rng.fromSeed(seedFrom(this.kernel.seed, 'order', label)));
  }

  /** Starts the one actor that a thread was made for. @param ended called with the end of its incarnation */
  async spawnRoot<M extends Message>(
    factory: BehaviorFactory<M>,
    incarnation: number,
    options: SpawnOptions,
    hooks: { readonly onBegin: ActorCell['onBegin']; readonly onHandled: ActorCell['onHandled'] },
    ended: (reason: StopReason) => void,
  ): Promise<ActorCell> {
    const { root: path } = this.kernel.thread!;
    const cell = new ActorCell(this.kernel, path, options, this.#root, this.#launch(factory));
    Object.assign(cell, hooks, { incarnation: incarnation - 1 });
    this.kernel.router.cells.set(path, cell);
    this.#root.add(cell);
    this.kernel.watch(path, (down) => ended(down.reason));
    this.#rootCell = cell;
    await cell.start();
    return cell;
  }

  async stopRoot(reason: StopReason): Promise<void> {
    await this.#rootCell?.stop(reason);
  }

  #launch<M extends Message>(factory: BehaviorFactory<M>): Launch {
    return launchLocal(this.kernel, factory, (parent) => this.#createScoped(parent));
  }

  #spawnAt<M extends Message>(path: string, factory: BehaviorFactory<M>, options: SpawnOptions): Promise<ActorRef<M>> {
    return this.#spawn(path, this.#launch(factory), options);
  }

  async #spawnModuleAt<M extends Message>(path: string, spec: ModuleSpec<unknown>, options: SpawnOptions) {
    const inThread = spec.placement === 'thread' && this.mode === 'async';
    if (inThread && this.kernel.thread) {
      throw new LongplayError('BAD_ARGUMENT', `${path}: only the main thread starts threads`);
    }
    if (inThread) return this.#spawn<M>(path, launchThread(this.kernel, this.kernel.router, spec), options);
    const { default: make } = (await this.outside(import(localUrl(spec.url).href))) as {
      default: ActorModule<unknown, M>;
    };
    return this.#spawn<M>(path, this.#launch(make(spec.init)), options);
  }

  async #spawn<M extends Message>(path: string, launch: Launch, options: SpawnOptions): Promise<ActorRef<M>> {
    const { cells } = this.kernel.router;
    if (this.#stopped) throw new LongplayError('ACTOR_STOPPED', `${path}: the system is stopping`);
    if (cells.has(path)) throw new LongplayError('BAD_ARGUMENT', `${path}: the name is taken`);
    const supervisor = this.#supervisorOf(options.supervisor);
    const cell = new ActorCell(this.kernel, path, options, supervisor, launch);
    cells.set(path, cell);
    supervisor.add(cell);
    const starting = cell.start().catch((thrown) => {
      supervisor.remove(cell);
      cell.finish({ kind: 'crashed', error: toError(thrown) });
      throw thrown;
    });
    await this.#drive(this.#dispatcher.wait(starting));
    return this.resolve<M>(path);
  }

  /** The system as one life of an actor sees it: what it spawns becomes its child. */
  #createScoped(parent: Parent): ScopedSystem {
    const { path } = parent.cell;
    let children: Supervisor | undefined;
    const adopt = (options: SpawnOptions): SpawnOptions => {
      children ??= this.#childSupervisor(parent);
      return { supervisor: children, ...options };
    };
    return {
      mode: this.mode,
      clock: this.clock,
      counts: this.counts,
      terminated: this.terminated,
      spawn: (name, factory, options = {}) => this.#spawnAt(`${path}/${name}`, factory, adopt(options)),
      spawnModule: <N extends Message, I>(name: string, module: ModuleSpec<I>, options: SpawnOptions = {}) =>
        this.#spawnModuleAt<N>(`${path}/${name}`, module, adopt(options)),
      supervisor: (name, options) => this.supervisor(`${path.slice(1)}/${name}`, options),
      resolve: (other) => this.resolve(other),
      ask: (ref, make, options) => this.kernel.ask(path, ref, make, options),
      stopActor: (ref) => this.stopActor(ref),
      stop: () => this.stop(),
      stats: () => this.stats(),
      heartbeat: () => this.heartbeat(),
      breakOff: (other, message) => this.breakOff(other, message),
      run: (until) => this.run(until),
      outside: (work) => this.outside(work),
      reorder: (label) => this.reorder(label),
    };
  }

  /** Supervisor of what one life of an actor spawns; when it gives up, the actor crashes. */
  #childSupervisor(parent: Parent): Supervisor {
    const made = this.#supervisorAt(parent.cell.path, {}, (reason) => {
      if (reason.kind === 'crashed') parent.fail(reason.error);
    });
    parent.stopChildren = async () => {
      await made.stop({ kind: 'shutdown' });
      made.finish({ kind: 'shutdown' });
    };
    return made;
  }

  #supervisorAt(path: string, options: SupervisorOptions, escalate: (reason: StopReason) => void): Supervisor {
    const around = {
      clock: this.clock,
      rng: Rng.fromSeed(seedFrom(this.kernel.seed, path, 'supervisor')),
      emit: (event: SystemEvent) => this.kernel.emit(event),
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
    return this.#dispatcher.drive(work) as Promise<T>;
  }
}

/** Clock and order of delivery of a mode. @throws {LongplayError} BAD_ARGUMENT where they do not go together */
function timeOf(
  { mode, clock, replay }: SystemOptions,
  seed: number,
): { readonly clock: Clock; readonly dispatcher: Dispatcher } {
  if (mode === 'async') {
    if (replay) throw new LongplayError('BAD_ARGUMENT', 'a recorded order is repeated in serial mode');
    return { clock: clock ?? systemClock, dispatcher: new AsyncDispatcher() };
  }
  const simulated = clock ?? new SimulatedClock();
  if (!(simulated instanceof SimulatedClock)) {
    throw new LongplayError('BAD_ARGUMENT', 'serial mode needs a SimulatedClock');
  }
  const rng = Rng.fromSeed(seedFrom(seed, 'order'));
  return { clock: simulated, dispatcher: new SerialDispatcher(simulated, rng, replay) };
}
