/** Port of an actor system towards its own parts: what a cell, an incarnation, a context or a router calls of it. */
import type { Clock } from '../core/clock.ts';
import type { ActorRef, AskOptions, Down, Message, ReplyTo, StopReason, SystemEvent } from './actor.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { Address, Answer, Envelope } from './envelope.ts';
import type { OrderPlayer, OrderSink } from './message-order.ts';

export interface SystemPort {
  readonly clock: Clock;
  /** Seed of every actor's rng and of every supervisor's jitter. */
  readonly seed: number;
  readonly dispatcher: Dispatcher;
  /** Sink of every message begun; undefined where no order is recorded. */
  readonly record: OrderSink | undefined;
  /** Order to repeat; undefined where none is. */
  readonly replay: OrderPlayer | undefined;
  /** Counts an event and publishes it. */
  emit(event: SystemEvent): void;
  /** Ends the run: everything stops, `terminated` rejects. Only the first call has an effect. */
  fatal(path: string, error: Error): void;
  resolve<M extends Message>(path: string): ActorRef<M>;
  /** Asks in the name of `from`. @throws as `Context.ask` */
  ask<R, M extends Message>(
    from: string,
    ref: ActorRef<M>,
    make: (to: ReplyTo<R>) => M,
    options: AskOptions,
  ): Promise<R>;
  answer(to: Address, answer: Answer, transfer?: readonly ArrayBuffer[]): void;
  /** Reports a dead letter; its ask, if it is one, is answered with the reason. */
  deadLetter(path: string, envelope: Envelope, why: string): void;
  /** Reports a message that the actor has no handler for. */
  reportUnhandled(path: string, envelope: Envelope): void;
  /** Calls `onDown` whenever an incarnation at `path` ends. @returns ends the watch */
  watch(path: string, onDown: (down: Down) => void): () => void;
  /** Notifies the watchers of an address. */
  reportDown(down: Down): void;
  /** Gives up the address of a cell: no incarnation will follow. */
  forget(cell: { readonly path: string }, reason: StopReason): void;
  /** Paths that the actor has asked and that have not answered. */
  waitingFor(path: string): readonly string[];
}
