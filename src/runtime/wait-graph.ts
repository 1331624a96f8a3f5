/** Wait graph, as far as this thread knows it; and the error of a wait that took too long. */
import type { Clock } from '../core/clock.ts';
import type { LongplayError } from '../core/errors.ts';
import type { ActorStats, Message } from './actor.ts';
import { type AskTable, askTimeout, type Wait } from './ask.ts';
import type { Address, AskTag } from './envelope.ts';
import type { Link } from './wire.ts';

/** Milliseconds that the main thread gets to send a thread the chain of waiting actors. */
const CHAIN_MS = 250;

export class WaitGraph {
  readonly #clock: Clock;
  readonly #asks: AskTable;
  /** Link to the main thread, which knows more; undefined there. */
  readonly #uplink: Link | undefined;
  readonly #statsOf: (path: string) => ActorStats | undefined;
  /** Asks of other threads that passed through here. */
  readonly #remote = new Map<string, Wait & { readonly expires: number }>();
  readonly #chains = new Map<number, (error: Error) => void>();

  constructor(
    clock: Clock,
    asks: AskTable,
    uplink: Link | undefined,
    statsOf: (path: string) => ActorStats | undefined,
  ) {
    this.#clock = clock;
    this.#asks = asks;
    this.#uplink = uplink;
    this.#statsOf = statsOf;
  }

  /** Paths that the actor has asked and that have not answered. */
  waitingFor(path: string): readonly string[] {
    const targets = new Set<string>();
    for (const wait of this.#waits()) if (wait.from === path) targets.add(wait.to);
    return [...targets];
  }

  /** Notes an ask of another thread that passes through. */
  note(to: string, message: Message, ask: AskTag): void {
    const at = this.#clock.now();
    this.#remote.set(`${ask.path}#${ask.id}`, {
      from: ask.path,
      to,
      message: message.type,
      at,
      expires: at + ask.deadlineMs,
    });
    if (this.#remote.size % 1024 !== 0) return;
    for (const [key, { expires }] of this.#remote) if (expires < at) this.#remote.delete(key);
  }

  /** Forgets an ask that was answered. */
  forget(to: Address): void {
    this.#remote.delete(`${to.path}#${to.id}`);
  }

  /** Error of an ask of this thread that was not answered in time. */
  timeout(id: number, wait: Omit<Wait, 'at'>, waitedMs: number): Promise<Error> | Error {
    const whole = { ...wait, at: this.#clock.now() - waitedMs };
    if (!this.#uplink) return this.timeoutHere(whole, waitedMs);
    this.#uplink.post(['chain', id, whole, waitedMs]);
    return new Promise<Error>((resolve) => {
      const cancel = this.#clock.setTimer(CHAIN_MS, () => resolve(this.timeoutHere(whole, waitedMs)));
      this.#chains.set(id, (error) => {
        cancel();
        resolve(error);
      });
    }).finally(() => this.#chains.delete(id));
  }

  /** Takes the main thread's answer to `timeout`. */
  handleChained(id: number, error: Error): void {
    this.#chains.get(id)?.(error);
  }

  timeoutHere(wait: Wait, waitedMs: number): LongplayError {
    return askTimeout(wait, waitedMs, this.#waits(), (path) => {
      const stats = this.#statsOf(path);
      if (!stats) return 'does not exist here';
      const { state, depth, message, oldestMs } = stats;
      const what = message ? `, oldest message ${message} for ${Math.round(oldestMs)} ms` : '';
      return `is ${state} with ${depth} waiting${what}`;
    });
  }

  *#waits(): Iterable<Wait> {
    yield* this.#asks.waits();
    yield* this.#remote.values();
  }
}
