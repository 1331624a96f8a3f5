/**
 * Cell of an address: its mailbox, its present incarnation and the asks it owes an answer. The incarnation itself is an
 * `Executor`.
 */
import { LongplayError } from '../core/errors.ts';
import type { ActorStats, Message, Restart, SpawnOptions, StopReason } from './actor.ts';
import type { Runnable } from './dispatcher.ts';
import { type Envelope, recordError, toError } from './envelope.ts';
import { Mailbox } from './mailbox.ts';
import { PendingAsks } from './pending-asks.ts';
import type { SystemPort } from './port.ts';
import { wantsRestart } from './supervision.ts';
import type { Child, Supervisor } from './supervisor.ts';

/** Executor of one incarnation, here or in a thread. */
export interface Executor {
  readonly placement: 'local' | 'thread';
  /** True when one more message may be delivered now; control messages may have a way of their own. */
  accepts(control: boolean): boolean;
  deliver(envelope: Envelope): void;
  /** Messages delivered and not yet handled, oldest first. */
  listUnhandled(): readonly Envelope[];
  /** Lets the running handler end, then ends. Resolves when it has. */
  stop(reason: StopReason): Promise<void>;
  /**
   * Kills the incarnation at once where that is allowed. A thread that must not be killed is asked to end between two
   * of its calls; the promise resolves when it has.
   */
  kill(): void | Promise<void>;
  /** Pings the thread; without one there is nothing to ask. */
  ping?(): void;
  /** Milliseconds since a ping that was not answered. */
  readonly silentMs?: number;
  /** Milliseconds in handlers that `progressed` has not received yet, the running one's included. */
  readonly busyMs: number;
}

/** Launches an incarnation; once `gaveUp` fires the result is no longer awaited. */
export type Launch = (cell: ActorCell, incarnation: number, gaveUp: AbortSignal) => Promise<Executor>;

/** Milliseconds a thread that must not be killed gets to come out of its call, at the very end. */
const LET_GO_MS = 2000;

const defaults = { capacity: 4096, overflow: 'wait', weigh: undefined } as const;

export class ActorCell implements Child, Runnable {
  readonly path: string;
  readonly restart: Restart;
  readonly options: SpawnOptions;
  readonly mailbox: Mailbox<Envelope>;
  readonly supervisor: Supervisor;
  queued = false;
  state: ActorStats['state'] = 'down';
  handled = 0;
  busyMs = 0;
  incarnation = 0;
  readonly pendingAsks = new PendingAsks();
  readonly #port: SystemPort;
  readonly #launch: Launch;
  readonly #control: ReadonlySet<string>;
  #stalled = false;
  #executor: Executor | undefined;
  #starting: Promise<void> | undefined;
  /** Aborts the start under way. */
  #gaveUp: AbortController | undefined;
  /** Called before a message's handler runs here. */
  onBegin: ((cell: ActorCell, envelope: Envelope) => void) | undefined;
  /** Called after each message handled here; a thread acknowledges by it. */
  onHandled: ((cell: ActorCell, envelope: Envelope, busyMs: number) => void) | undefined;

  constructor(port: SystemPort, path: string, options: SpawnOptions, supervisor: Supervisor, launch: Launch) {
    this.#port = port;
    this.#launch = launch;
    this.path = path;
    this.options = options;
    this.restart = options.restart ?? 'permanent';
    this.supervisor = supervisor;
    const { capacity, overflow, weigh } = options.mailbox ?? defaults;
    this.mailbox = new Mailbox(capacity, overflow, weigh && (({ message }) => weigh(message)));
    this.#control = new Set(options.control);
  }

  get alive(): boolean {
    return this.state !== 'down' && this.state !== 'stopped';
  }

  get deliverable(): boolean {
    const executor = this.#executor;
    if (this.state !== 'running' || !executor) return false;
    const { mailbox } = this;
    const { replay } = this.#port;
    if (replay) {
      const next = replay.next(this.path);
      return next !== undefined && executor.accepts(false) && mailbox.has(({ message }) => message.type === next.type);
    }
    if (mailbox.hasControl) return executor.accepts(true);
    return mailbox.length > 0 && executor.accepts(false);
  }

  get shutdownMs(): number {
    return this.options.shutdownMs ?? 5000;
  }

  isControl(message: Message): boolean {
    return this.#control.has(message.type);
  }

  /** @param force past the capacity (timers) */
  receive(envelope: Envelope, force = false): void | Promise<void> {
    if (this.state === 'stopped') return this.#port.deadLetter(this.path, envelope, 'the actor has stopped');
    let waiting: Promise<void> | undefined;
    if (this.#control.has(envelope.message.type)) this.mailbox.force(envelope, 'control');
    else if (force) this.mailbox.force(envelope, 'data');
    else {
      const offered = this.mailbox.offer(envelope);
      if (offered instanceof Promise) waiting = this.#port.dispatcher.wait(offered);
      else if (offered) for (const one of offered.dropped) this.#reportDropped(one);
    }
    this.#port.dispatcher.wake(this);
    return waiting;
  }

  step(): void {
    const envelope = this.#next();
    if (!envelope) return;
    if (this.#executor!.placement === 'local') {
      this.#port.record?.(this.path, { type: envelope.message.type, self: envelope.self === true });
    }
    if (envelope.ask) this.pendingAsks.add(envelope.ask, this.#port.clock.now());
    this.onBegin?.(this, envelope);
    this.#executor!.deliver(envelope);
  }

  /** Next message: the first in line, or in a replay the recorded one. */
  #next(): Envelope | undefined {
    const { replay } = this.#port;
    const next = replay?.next(this.path);
    if (!next) return replay ? undefined : this.mailbox.shift();
    replay!.countTaken(this.path);
    return this.mailbox.take(({ message }) => message.type === next.type);
  }

  /** Records that the executor has handled `count` messages. */
  recordProgress(executor: Executor, count: number, busyMs: number): void {
    this.handled += count;
    this.busyMs += busyMs;
    if (executor === this.#executor) this.#port.dispatcher.wake(this);
  }

  /**
   * Handles the end of an incarnation that broke or stopped itself. Messages it had not begun go back into the mailbox.
   */
  handleEnded(executor: Executor, reason: StopReason, unbegun: readonly Envelope[] = []): void {
    if (executor !== this.#executor || this.state === 'stopping') return;
    this.#executor = undefined;
    this.state = 'down';
    this.#putBack(unbegun);
    this.#handleEnd(reason, wantsRestart(this.restart, reason));
    this.supervisor.handleExited(this, reason);
  }

  start(): Promise<void> {
    this.#starting = this.#start();
    return this.#starting;
  }

  async #start(): Promise<void> {
    this.state = 'starting';
    const startMs = this.options.startMs ?? 30_000;
    const gaveUp = new AbortController();
    this.#gaveUp = gaveUp;
    try {
      const launched = this.#launch(this, ++this.incarnation, gaveUp.signal);
      const isPatient = this.options.killable === false;
      const executor = await (isPatient
        ? this.#awaitReporting(launched, startMs)
        : this.#awaitWithin(launched, startMs));
      if (!executor || this.state !== 'starting') {
        gaveUp.abort();
        const gone = launched.then((late) => late.kill()).catch(() => {});
        if (isPatient) await gone;
        const [code, what] = executor ? (['ACTOR_STOPPED', 'stopped'] as const) : (['STALLED', 'not ready'] as const);
        const limit = isPatient ? '' : ` (it may take ${startMs} ms)`;
        throw new LongplayError(code, `${this.path} was ${what} while it started${limit}`);
      }
      this.#executor = executor;
    } catch (thrown) {
      this.state = 'down';
      throw toError(thrown);
    }
    this.state = 'running';
    this.#port.emit({ type: 'started', path: this.path, incarnation: this.incarnation });
    this.#port.dispatcher.wake(this);
  }

  async stop(reason: StopReason): Promise<void> {
    const executor = this.#executor;
    if (!executor || this.state !== 'running') {
      const isStarting = this.state === 'starting';
      this.state = 'down';
      if (isStarting && this.options.killable === false) {
        this.#gaveUp?.abort();
        await this.#starting?.catch(() => {}); // its thread ends between two calls
      }
      return;
    }
    this.state = 'stopping';
    let end = reason;
    const done = await this.#awaitWithin(
      executor.stop(reason).then(() => true),
      this.#stalled ? 0 : this.shutdownMs, // known not to come back: no use in waiting
    );
    if (!done) {
      if (this.options.killable === false) this.#handleRefusedToStop(executor);
      const gone = executor.kill();
      if (gone) await this.#awaitWithin(gone, LET_GO_MS);
      end = { kind: 'killed' };
    }
    this.#executor = undefined;
    this.state = 'down';
    // After a kill it is unknown which messages had been begun: at most once means none of them again.
    const left = executor.listUnhandled();
    if (done) this.#putBack(left);
    else for (const envelope of left) this.#port.deadLetter(this.path, envelope, 'killed with its actor');
    this.#handleEnd(end, false);
  }

  ping(): void {
    if (this.state === 'running') this.#executor?.ping?.();
  }

  /** Breaks off an incarnation that has stalled; where it must not be killed, the system ends. */
  breakOff(error: Error): void {
    const executor = this.#executor;
    if (!executor || this.state !== 'running') return;
    if (this.options.killable === false) {
      this.#stalled = true;
      this.#port.fatal(this.path, error);
      return;
    }
    executor.kill();
    // At most once: what may have been begun is not given to the next one.
    for (const envelope of executor.listUnhandled())
      this.#port.deadLetter(this.path, envelope, 'killed with its actor');
    this.handleEnded(executor, { kind: 'crashed', error });
  }

  finish(reason: StopReason): void {
    if (this.state === 'stopped') return;
    this.state = 'stopped';
    for (const envelope of this.mailbox.drain()) {
      this.#port.deadLetter(this.path, envelope, 'the actor has stopped');
    }
    this.#rejectPending(reason);
    this.#port.emit({ type: 'stopped', path: this.path, reason, final: true });
    this.#port.forget(this, reason);
  }

  stats(): ActorStats {
    const executor = this.#executor;
    const inHand = executor?.listUnhandled() ?? [];
    const oldest = inHand[0] ?? this.mailbox.peek();
    return {
      path: this.path,
      state: this.state,
      placement: executor?.placement ?? 'local',
      depth: this.mailbox.length + (executor?.placement === 'thread' ? inHand.length : 0),
      handled: this.handled,
      busyMs: this.busyMs + (executor?.busyMs ?? 0),
      restarts: Math.max(0, this.incarnation - 1),
      oldestMs: oldest ? this.#port.clock.now() - oldest.at : 0,
      message: oldest?.message.type,
      waitingFor: this.#port.waitingFor(this.path),
      silentMs: executor?.silentMs ?? 0,
    };
  }

  #putBack(envelopes: readonly Envelope[]): void {
    for (const { ask } of envelopes) if (ask) this.pendingAsks.settle(ask);
    this.mailbox.unshift(envelopes);
  }

  #handleEnd(reason: StopReason, restarting: boolean): void {
    this.#rejectPending(reason);
    this.#port.emit({ type: 'stopped', path: this.path, reason, final: false });
    if (restarting) this.#port.reportDown({ path: this.path, reason, final: false });
  }

  #rejectPending(reason: StopReason): void {
    const cause = reason.kind === 'crashed' ? `: ${reason.error.message}` : '';
    const error = new LongplayError('ACTOR_STOPPED', `${this.path} ended (${reason.kind}) before it answered${cause}`);
    for (const ask of this.pendingAsks.drain()) this.#port.answer(ask, { ok: false, error: recordError(error) });
  }

  #reportDropped(envelope: Envelope): void {
    this.#port.emit({ type: 'dropped', path: this.path, message: envelope.message.type });
    if (!envelope.ask) return;
    const error = new LongplayError('MAILBOX_FULL', `${this.path} dropped ${envelope.message.type}: mailbox full`);
    this.#port.answer(envelope.ask, { ok: false, error: recordError(error) });
  }

  #handleRefusedToStop(executor: Executor): void {
    const oldest = executor.listUnhandled()[0];
    const what = oldest
      ? `its handler of ${oldest.message.type} has run for ${Math.round(this.#port.clock.now() - oldest.at)} ms`
      : 'no handler is known to run';
    const error = new LongplayError('STALLED', `${this.path} did not stop within ${this.shutdownMs} ms; ${what}`);
    this.#port.fatal(this.path, error);
  }

  /** Awaits a start, and reports each `everyMs` that it goes on. */
  async #awaitReporting<T>(work: Promise<T>, everyMs: number): Promise<T> {
    const { clock } = this.#port;
    const began = clock.now();
    let cancel = (): void => {};
    const report = (): void => {
      cancel = clock.setTimer(everyMs, report);
      if (this.state === 'starting') this.#port.emit({ type: 'starting', path: this.path, ms: clock.now() - began });
    };
    cancel = clock.setTimer(everyMs, report);
    try {
      return await work;
    } finally {
      cancel();
    }
  }

  /** Awaits `work`, or gives undefined after `ms`. */
  #awaitWithin<T>(work: Promise<T>, ms: number): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      const cancel = this.#port.clock.setTimer(ms, () => resolve(undefined));
      work.then(
        (value) => {
          cancel();
          resolve(value);
        },
        (error) => {
          cancel();
          reject(error);
        },
      );
    });
  }
}
