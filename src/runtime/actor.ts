/**
 * Actors: a behavior made by a factory, one handler per message type, and an address that outlives it.
 *
 * Promised: one handler at a time; messages of one sender arrive in the order sent (per lane); at most once. Not
 * promised: any order between senders, or arrival. The message that killed an incarnation is never delivered again.
 */
import type { Observable } from 'rxjs';
import type { Clock } from '../core/clock.ts';
import type { Rng } from '../core/rng.ts';

/** Message: plain data with a discriminant; structured-cloneable where the receiver may live in a thread. */
export type Message = { readonly type: string };

/** Handlers of an actor, one for every type of the union: a missing one does not compile. */
export type Handlers<M extends Message> = {
  readonly [T in M['type']]: (message: Extract<M, { readonly type: T }>) => void | Promise<void>;
};

/** Behavior of one incarnation: its state lives in the closure that made it. */
export interface Behavior<M extends Message> {
  readonly handlers: Handlers<M>;
  /** Called once when this incarnation ends, before the next begins; not when a thread was killed. */
  stopped?(reason: StopReason): void | Promise<void>;
}

/** Called anew for each incarnation; the actor has started when it resolves. Messages wait until then. */
export type BehaviorFactory<M extends Message> = (ctx: Context<M>) => Behavior<M> | Promise<Behavior<M>>;

/** Default export of a module given to `spawnModule`. */
export type ActorModule<I, M extends Message> = (init: I) => BehaviorFactory<M>;

/** Reason for the end of an incarnation. */
export type StopReason =
  | { readonly kind: 'normal' } // the actor asked for it
  | { readonly kind: 'shutdown' } // its supervisor asked for it
  | { readonly kind: 'killed' } // it did not stop within `shutdownMs`
  | { readonly kind: 'crashed'; readonly error: Error };

/** Reference to an actor: an address that stays valid across restarts. */
export interface ActorRef<M extends Message> {
  readonly path: string;
  /**
   * Sends a message; no answer is expected.
   * @param transfer buffers handed over instead of copied, where the receiver lives in another thread
   * @returns a promise only where the mailbox is full and its overflow is `wait`: await it before sending more
   * @throws {LongplayError} MAILBOX_FULL where overflow is `reject`, or where senders ignore the promise of `wait`
   */
  tell(message: M, transfer?: readonly ArrayBuffer[]): void | Promise<void>;
}

/** Return address of an ask: plain data, crosses threads. `R` is what the asker expects. */
export interface ReplyTo<R> {
  readonly path: string;
  readonly id: number;
  /** Carries the type; never set. */
  readonly _reply?: (value: R) => void;
}

export interface AskOptions {
  /** Milliseconds until the ask rejects with ASK_TIMEOUT. */
  readonly deadlineMs: number;
  readonly transfer?: readonly ArrayBuffer[];
}

/** Notice to a watcher that an incarnation of the watched actor has ended. */
export interface Down {
  readonly path: string;
  readonly reason: StopReason;
  /** True when no further incarnation will follow. */
  readonly final: boolean;
}

/** Context of a behavior: everything it may do. It belongs to one incarnation, whose timers and watches end with it. */
export interface Context<M extends Message> {
  readonly self: ActorRef<M>;
  readonly path: string;
  /** Number of the incarnation, 1 for the first. */
  readonly incarnation: number;
  readonly clock: Clock;
  /** Random generator of this actor, from the system's seed, the path and the incarnation. */
  readonly rng: Rng;
  /** System for spawning: its actors become children (`<path>/<name>`) and end with this incarnation. */
  readonly system: ScopedSystem;
  /** Sends `message` to this actor in `ms`, past a full mailbox too. @returns cancels it */
  sendAfter(ms: number, message: M): () => void;
  /** Sleeps for `ms`. A handler that waits must wait by this, so that serial mode knows of it. */
  sleep(ms: number): Promise<void>;
  reply<R>(to: ReplyTo<R>, value: R, transfer?: readonly ArrayBuffer[]): void;
  /** Answers an ask with an error: it rejects at the asker. */
  replyError<R>(to: ReplyTo<R>, error: unknown): void;
  /**
   * @throws {LongplayError} ASK_TIMEOUT, naming the actors that wait for each other; ACTOR_STOPPED when the asked actor
   *   ended
   */
  ask<R, N extends Message>(ref: ActorRef<N>, make: (replyTo: ReplyTo<R>) => N, options: AskOptions): Promise<R>;
  /** Resolves a path to its address, whether or not an actor lives there. */
  resolve<N extends Message>(path: string): ActorRef<N>;
  /**
   * Watches an actor: sends `make(down)` to this actor whenever an incarnation of `ref` ends. @returns ends the watch
   */
  watch(ref: { readonly path: string }, make: (down: Down) => M): () => void;
  /** Ends this actor (reason `normal`) after the running handler. */
  stop(): void;
  /**
   * Declares work outside the actor system (a file, a native call) that goes on past its handler. Serial mode waits
   * for it before it delivers anything else, so that its real duration cannot change a run.
   */
  outside<T>(work: Promise<T>): Promise<T>;
}

/** Overflow policy of a full mailbox: make the sender wait, throw at the sender, or drop the oldest message. */
export type Overflow = 'wait' | 'reject' | 'drop-oldest';

/** Restart policy of a child: a new incarnation follows every end, a crash, or no end. */
export type Restart = 'permanent' | 'transient' | 'temporary';

export interface SpawnOptions {
  /**
   * Default 4096, `wait`. Messages delivered to a thread and not yet handled count too. `weigh` gives the weight of a
   * message, > 0 and the same at every call; the capacity is then in its unit, e.g. bytes. A mailbox below its capacity
   * takes one more message, whatever its weight.
   */
  readonly mailbox?: {
    readonly capacity: number;
    readonly overflow: Overflow;
    readonly weigh?: ((message: Message) => number) | undefined;
  };
  /** Message types that overtake the others and do not count against the capacity. */
  readonly control?: readonly string[];
  /** Default `permanent`. */
  readonly restart?: Restart;
  /** Milliseconds that a stop may wait for the running handler; then the actor is killed. Default 5000. */
  readonly shutdownMs?: number;
  /**
   * Milliseconds until an incarnation must be ready. Default 30000. One that must not be killed may take any time: the
   * event `starting` reports it each time as many have passed, and only the end of its thread ends the start.
   */
  readonly startMs?: number;
  /**
   * False for an actor inside a native call that must not be cut (an engine): it is only ever asked to stop. One that
   * does not stop within `shutdownMs` is a fatal error of the system, which names actor, message and age. Default true.
   */
  readonly killable?: boolean;
  /** Default: the system's root supervisor, or the spawning actor's own. */
  readonly supervisor?: SupervisorRef;
}

/** Module placement of `spawnModule`. */
export interface ModuleSpec<I> {
  /** Module whose default export is an `ActorModule<I, M>`. */
  readonly url: URL;
  /** Init that every incarnation gets; structured-cloneable. */
  readonly init: I;
  /** `thread`: a worker thread of its own. In serial mode everything is local. */
  readonly placement: 'local' | 'thread';
}

/** Reference to a supervisor, as `SpawnOptions.supervisor` takes it. */
export interface SupervisorRef {
  readonly path: string;
}

export type Strategy = 'one_for_one' | 'one_for_all' | 'rest_for_one';

export interface SupervisorOptions {
  /** Strategy: which siblings restart with a child. Default `one_for_one`. */
  readonly strategy?: Strategy;
  /** Intensity: more than this many restarts within `periodMs` escalate. Default 5. */
  readonly intensity?: number;
  /** Default 10000. */
  readonly periodMs?: number;
  /** Wait before restart n of the period: min(maxMs, minMs·2ⁿ⁻¹)·(1 − jitter·u), u uniform in [0, 1). */
  readonly backoff?: { readonly minMs: number; readonly maxMs: number; readonly jitter: number };
  readonly supervisor?: SupervisorRef;
}

/** Statistics of one actor, a line of `stats()`. */
export interface ActorStats {
  readonly path: string;
  readonly state: 'starting' | 'running' | 'stopping' | 'down' | 'stopped';
  readonly placement: 'local' | 'thread';
  /** Messages waiting, or delivered to a thread and not yet handled. */
  readonly depth: number;
  readonly handled: number;
  /** Milliseconds spent in handlers. */
  readonly busyMs: number;
  readonly restarts: number;
  /** Age in milliseconds of the oldest message not yet handled; 0 when there is none. */
  readonly oldestMs: number;
  /** Type of the message in hand, or of the oldest one waiting. */
  readonly message: string | undefined;
  /** Paths of actors that it has asked and that have not answered. */
  readonly waitingFor: readonly string[];
  /** Milliseconds since a `heartbeat` that its thread has not answered; 0 when there is none, or no thread. */
  readonly silentMs: number;
}

/** Event of the actor system. `ActorSystem.counts` counts each kind. */
export type SystemEvent =
  | { readonly type: 'started'; readonly path: string; readonly incarnation: number }
  /** A start that goes on, `ms` milliseconds after it began. */
  | { readonly type: 'starting'; readonly path: string; readonly ms: number }
  | { readonly type: 'stopped'; readonly path: string; readonly reason: StopReason; readonly final: boolean }
  | { readonly type: 'restarting'; readonly path: string; readonly delayMs: number }
  | { readonly type: 'escalated'; readonly path: string; readonly error: Error }
  | { readonly type: 'dead-letter'; readonly path: string; readonly message: string; readonly why: string }
  | { readonly type: 'unhandled'; readonly path: string; readonly message: string }
  | { readonly type: 'dropped'; readonly path: string; readonly message: string }
  | { readonly type: 'fatal'; readonly path: string; readonly error: Error };

/** Actor system as those inside it see it, in whatever thread. */
export interface ScopedSystem {
  readonly mode: 'async' | 'serial';
  readonly clock: Clock;
  /** Counts of events, by type. */
  readonly counts: Readonly<Record<SystemEvent['type'], number>>;
  /** End of the system: resolves after `stop()`, rejects with the fatal error that ended it. */
  readonly terminated: Promise<void>;

  /** Starts an actor in this thread. Resolves when it is ready. @throws what its factory threw */
  spawn<M extends Message>(name: string, factory: BehaviorFactory<M>, options?: SpawnOptions): Promise<ActorRef<M>>;
  /** Starts an actor whose factory a module exports, here or in a thread of its own. */
  spawnModule<M extends Message, I = unknown>(
    name: string,
    module: ModuleSpec<I>,
    options?: SpawnOptions,
  ): Promise<ActorRef<M>>;
  /** Makes a supervisor; children are added by `SpawnOptions.supervisor`. */
  supervisor(name: string, options?: SupervisorOptions): SupervisorRef;
  resolve<M extends Message>(path: string): ActorRef<M>;
  /** Asks from outside the system. */
  ask<R, M extends Message>(ref: ActorRef<M>, make: (replyTo: ReplyTo<R>) => M, options: AskOptions): Promise<R>;
  /** Ends one actor for good. */
  stopActor(ref: { readonly path: string }): Promise<void>;
  /** Ends everything, last started first. */
  stop(): Promise<void>;
  stats(): readonly ActorStats[];
  /** Pings every thread; one that has not answered shows in `stats`. */
  heartbeat(): void;
  /**
   * Breaks off a stalled incarnation, with STALLED and `message`: its supervisor decides. For an actor that must not be
   * killed, and for a path that names none, it ends the system.
   */
  breakOff(path: string, message: string): void;
  /**
   * Waits for `until`, or, without it, until nothing is left to do. In serial mode this is what moves messages and
   * time; `spawn`, `ask`, `stop` and `stopActor` do so too while they wait.
   * @throws {LongplayError} STALLED in serial mode when nothing is left to do and `until` is still open
   */
  run<T = void>(until?: Promise<T>): Promise<T | undefined>;
  /** Declares outside work as `Context.outside` does, for the code around the system. */
  outside<T>(work: Promise<T>): Promise<T>;
  /**
   * In serial mode the order of delivery from here on follows from the system's seed and `label` alone. So a resumed
   * run goes on like one that was never stopped. Nothing in async mode.
   */
  reorder(label: number): void;
}

/** Actor system as the main thread has it. */
export interface ActorSystem extends ScopedSystem {
  /** Events of all threads: lifecycle, dead letters, restarts. Hot and lossy: late subscribers miss earlier ones. */
  readonly inspect$: Observable<SystemEvent>;
}
