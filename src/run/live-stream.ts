/** Live streams: RxJS streams out of a run that can neither hold it up nor fill memory. */
import { Observable, type Subscriber } from 'rxjs';
import { Deque } from '../runtime/mailbox.ts';

/** Values that one subscriber gets in one turn of the event loop. */
const SLICE = 256;

/**
 * Hot stream with a bounded backlog for each subscriber.
 *
 * A subscriber gets values in turns of the event loop of its own, never in the middle of the run's work. One that is
 * slower than the run loses the *oldest* values of its backlog, `capacity` of which are kept; `dropped` counts them.
 * Values from before its subscription it never gets. Nothing is kept without a subscriber. Completes with the run.
 */
export class LiveStream<T> extends Observable<T> {
  /** Values that a subscriber may lag behind, ≥ 1. */
  readonly capacity: number;
  readonly #backlogs = new Set<Backlog<T>>();
  #dropped = 0;
  #ended: Promise<void> | undefined;

  /** @param capacity values that a subscriber may lag behind, ≥ 1 */
  constructor(capacity: number) {
    super((subscriber) => {
      if (this.#ended) {
        subscriber.complete();
        return;
      }
      const backlog = new Backlog(subscriber);
      this.#backlogs.add(backlog);
      return () => this.#backlogs.delete(backlog);
    });
    this.capacity = capacity;
  }

  /** Values lost so far, all subscribers together. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Adds a value to every backlog. */
  push(value: T): void {
    for (const backlog of this.#backlogs) if (backlog.push(value, this.capacity)) this.#dropped++;
  }

  /** Completes the stream. @returns resolves when every subscriber has had its backlog */
  end(): Promise<void> {
    this.#ended ??= Promise.all([...this.#backlogs].map((backlog) => backlog.end())).then(() => {});
    return this.#ended;
  }
}

/** Values that one subscriber has yet to get. */
class Backlog<T> {
  readonly #subscriber: Subscriber<T>;
  readonly #values = new Deque<T>();
  #draining = false;
  #emptied: (() => void) | undefined;

  constructor(subscriber: Subscriber<T>) {
    this.#subscriber = subscriber;
  }

  /**
   * Adds a value.
   * @returns whether the oldest value was dropped for it
   */
  push(value: T, capacity: number): boolean {
    const full = this.#values.length >= capacity;
    if (full) this.#values.shift();
    this.#values.push(value);
    if (!this.#draining) {
      this.#draining = true;
      setImmediate(() => this.#drain());
    }
    return full;
  }

  end(): Promise<void> {
    return new Promise((resolve) => {
      this.#emptied = () => {
        this.#subscriber.complete();
        resolve();
      };
      if (!this.#draining) this.#emptied();
    });
  }

  #drain(): void {
    for (let n = 0; n < SLICE && this.#values.length > 0 && !this.#subscriber.closed; n++) {
      this.#subscriber.next(this.#values.shift()!);
    }
    this.#draining = this.#values.length > 0 && !this.#subscriber.closed;
    if (this.#draining) setImmediate(() => this.#drain());
    else this.#emptied?.();
  }
}
