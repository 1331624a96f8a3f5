/**
 * Twin of a switchboard in memory, for tests: it keeps the order and loses on purpose. A connection can be cut from the
 * others for a while, or for good, as by a death.
 */
import type { Clock } from '../core/clock.ts';
import type { Rng } from '../core/rng.ts';
import type { Place, Switchboard } from './switchboard.ts';

/** Exchange that connections share. */
export class MemoryExchange {
  readonly #clock: Clock;
  readonly #rng: Rng;
  readonly #listeners = new Map<string, Set<(bytes: Uint8Array) => void>>();
  /** Share of messages that are lost, in [0, 1]. */
  lost = 0;
  /** Milliseconds that a message takes. */
  delayMs = 0;
  /** Messages of other clients, said at any place. */
  messages = 0;

  constructor(clock: Clock, rng: Rng) {
    this.#clock = clock;
    this.#rng = rng;
  }

  connect(): MemorySwitchboard {
    return new MemorySwitchboard(this);
  }

  say(place: string, bytes: Uint8Array): void {
    this.messages++;
    if (this.lost > 0 && this.#rng.float() < this.lost) return;
    const copy = Uint8Array.from(bytes);
    this.#clock.after(this.delayMs, () => {
      for (const heard of [...(this.#listeners.get(place) ?? [])]) heard(copy);
    });
  }

  hear(place: string, heard: (bytes: Uint8Array) => void): () => void {
    const all = this.#listeners.get(place) ?? new Set();
    this.#listeners.set(place, all.add(heard));
    return () => {
      all.delete(heard);
      if (all.size === 0) this.#listeners.delete(place);
    };
  }
}

/** Connection to the exchange. */
export class MemorySwitchboard implements Switchboard {
  readonly mostBytes = 1000 * 1000;
  readonly refused = new Promise<never>(() => {});
  readonly #exchange: MemoryExchange;
  readonly #ends = new Set<() => void>();
  /** True while nothing of it is heard and it hears nothing. */
  isCut = false;

  constructor(exchange: MemoryExchange) {
    this.#exchange = exchange;
  }

  say(to: Place, bytes: Uint8Array): void {
    if (!this.isCut) this.#exchange.say(nameOf(to), bytes);
  }

  hear(at: Place, heard: (bytes: Uint8Array) => void): () => void {
    const end = this.#exchange.hear(nameOf(at), (bytes) => {
      if (!this.isCut) heard(bytes);
    });
    this.#ends.add(end);
    return () => {
      this.#ends.delete(end);
      end();
    };
  }

  async close(): Promise<void> {
    this.isCut = true;
    for (const end of this.#ends) end();
  }
}

function nameOf(place: Place): string {
  return place.kind === 'call' ? 'call' : `${place.channel}.${place.kind}`;
}
