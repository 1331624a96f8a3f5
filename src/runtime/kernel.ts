/** Kernel of a system in one thread: events, asks, watches and routes, as its actors see them. It spawns nothing. */
import type { Clock } from '../core/clock.ts';
import type { ActorRef, AskOptions, Down, Message, ReplyTo, StopReason, SystemEvent } from './actor.ts';
import { AskTable } from './ask.ts';
import type { Dispatcher } from './dispatcher.ts';
import { type Address, type Answer, type Envelope, recordError } from './envelope.ts';
import type { OrderPlayer, OrderSink } from './message-order.ts';
import { plainEvent } from './plain.ts';
import type { SystemPort } from './port.ts';
import { Ref } from './ref.ts';
import { Router } from './router.ts';
import type { ThreadSide } from './wire.ts';

export interface KernelOptions extends Pick<SystemPort, 'clock' | 'seed' | 'dispatcher' | 'record' | 'replay'> {
  /** Undefined in the main thread. */
  readonly thread: ThreadSide | undefined;
  /** Called with every event of this thread, after it was counted. */
  readonly onEvent: (event: SystemEvent) => void;
  /** Called once, with the error that must end the run. */
  readonly onFatal: (error: Error) => void;
}

export class Kernel implements SystemPort {
  readonly clock: Clock;
  readonly seed: number;
  readonly dispatcher: Dispatcher;
  readonly record: OrderSink | undefined;
  readonly replay: OrderPlayer | undefined;
  readonly counts: Record<SystemEvent['type'], number> = {
    started: 0,
    starting: 0,
    stopped: 0,
    restarting: 0,
    escalated: 0,
    'dead-letter': 0,
    unhandled: 0,
    dropped: 0,
    fatal: 0,
  };
  readonly router: Router;
  readonly thread: ThreadSide | undefined;
  readonly #onEvent: (event: SystemEvent) => void;
  readonly #onFatal: (error: Error) => void;
  readonly #asks: AskTable;
  #over = false;
  readonly #watchers = new Map<string, Set<(down: Down) => void>>();

  constructor({ clock, seed, dispatcher, record, replay, thread, onEvent, onFatal }: KernelOptions) {
    this.clock = clock;
    this.seed = seed;
    this.dispatcher = dispatcher;
    this.record = record;
    this.replay = replay;
    this.thread = thread;
    this.#onEvent = onEvent;
    this.#onFatal = onFatal;
    this.#asks = new AskTable(clock);
    this.router = new Router(this, this.#asks, thread);
  }

  emit(event: SystemEvent): void {
    this.counts[event.type]++;
    this.#onEvent(event);
    this.thread?.uplink.post(['event', plainEvent(event)]);
  }

  fatal(path: string, error: Error): void {
    if (this.#over) return;
    this.#over = true;
    this.emit({ type: 'fatal', path, error });
    this.#onFatal(error);
  }

  resolve<M extends Message>(path: string): ActorRef<M> {
    return new Ref<M>(this.router, this.clock, path);
  }

  ask<R, M extends Message>(
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
    return this.dispatcher.wait(answered);
  }

  answer(to: Address, answer: Answer, transfer?: readonly ArrayBuffer[]): void {
    this.router.answer(to, answer, transfer);
  }

  deadLetter(path: string, envelope: Envelope, why: string): void {
    this.router.deadLetter(path, envelope, why);
  }

  reportUnhandled(path: string, envelope: Envelope): void {
    this.router.reportUnhandled(path, envelope);
  }

  waitingFor(path: string): readonly string[] {
    return this.router.waits.waitingFor(path);
  }

  watch(path: string, onDown: (down: Down) => void): () => void {
    let watchers = this.#watchers.get(path);
    if (!watchers) this.#watchers.set(path, (watchers = new Set()));
    watchers.add(onDown);
    if (this.thread && this.router.linkTo(path)) this.thread.uplink.post(['watch', path]);
    else if (!this.router.cells.has(path)) {
      // Gone before the watch began: report it, as OTP's monitor does.
      queueMicrotask(() => onDown({ path, reason: { kind: 'normal' }, final: true }));
    }
    return () => watchers.delete(onDown);
  }

  reportDown(down: Down): void {
    const watchers = this.#watchers.get(down.path);
    if (down.final) this.#watchers.delete(down.path);
    for (const onDown of watchers ?? []) onDown(down);
  }

  forget(cell: { readonly path: string }, reason: StopReason): void {
    if (this.router.cells.get(cell.path) === cell) this.router.cells.delete(cell.path);
    this.reportDown({ path: cell.path, reason, final: true });
  }
}
