/**
 * Batcher of a host's events: those of a batch of commands leave together at its end, and those of slow sessions soon after
 * they came, with the others of that moment.
 */
import type { EnvEvent } from './protocol.ts';

/** Clock of a batcher, and where its events go. */
export interface EventBatcherOptions {
  /** Clock, milliseconds. */
  readonly now: () => number;
  /** Emits the events of a batch at its end, and those of slow sessions as they come. */
  readonly emit: (events: EnvEvent[]) => void;
  /** Schedules `fn` once, soon: events of slow sessions that come together leave together. Default a microtask. */
  readonly soon?: (fn: () => void) => void;
}

/** Milliseconds after which the events of a long batch are sent before its end, so that they do not count as late. */
const FLUSH_MS = 10;

export class EventBatcher {
  readonly #options: EventBatcherOptions;
  #events: EnvEvent[] = [];
  #inBatch = false;
  #scheduled = false;
  #lastAt = 0;
  #flushedAt = 0;

  constructor(options: EventBatcherOptions) {
    this.#options = options;
  }

  /** Begins a batch: events are gathered until its end. */
  beginBatch(): void {
    this.#inBatch = true;
    this.#flushedAt = this.#lastAt = this.#options.now();
  }

  /** Ends a batch, and sends its events. */
  endBatch(): void {
    this.#inBatch = false;
    this.#flush();
  }

  /** Reads the clock for the time of an answer. */
  readClock(): number {
    this.#lastAt = this.#options.now();
    return this.#lastAt;
  }

  /** Sends what is gathered where the last answer came long after the last flush. */
  flushIfLong(): void {
    if (this.#lastAt - this.#flushedAt > FLUSH_MS) this.#flush();
  }

  push(event: EnvEvent): void {
    this.#events.push(event);
    if (this.#inBatch || this.#scheduled) return;
    this.#scheduled = true;
    (this.#options.soon ?? queueMicrotask)(() => this.#flush());
  }

  #flush(): void {
    this.#scheduled = false;
    this.#flushedAt = this.#lastAt;
    if (this.#events.length === 0) return;
    const events = this.#events;
    this.#events = [];
    this.#options.emit(events);
  }
}
