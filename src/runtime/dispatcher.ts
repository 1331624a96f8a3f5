/** Dispatchers: the order in which actors run. In async mode it is that of arrival, many messages per turn of the event loop. */
import type { Rng } from '../core/rng.ts';
import { Deque } from './mailbox.ts';

/** Runnable: an actor with messages to deliver. */
export interface Runnable {
  /** True while it stands in the dispatcher's line. */
  queued: boolean;
  readonly deliverable: boolean;
  /** Delivers one message. */
  step(): void;
}

/** Chooses which actor takes its next message, and when. */
export interface Dispatcher {
  /** Puts an actor in line if it has something to deliver and is not there yet. */
  wake(actor: Runnable): void;
  /** Runs user code so that serial mode knows when it waits. @param name for the message of a stall */
  track<T>(name: string, work: () => T | Promise<T>): T | Promise<T>;
  /** Marks a wait whose end lies inside the system. */
  wait<T>(work: Promise<T>): Promise<T>;
  /** Counts work whose end lies outside the system; serial mode waits for it. */
  outside<T>(work: Promise<T>): Promise<T>;
  /** Resolves when no work goes on outside. */
  outsideDone(): Promise<void>;
  /** Waits for `until`. In serial mode this is what moves messages and time; without `until`, until nothing is left to do. */
  drive<T>(until?: Promise<T>): Promise<T | undefined>;
  /** Takes the order of delivery from `rng` from here on, where there is a seeded one. */
  reorder(rng: Rng): void;
}

/** Messages an actor may take before the next one in line gets its turn. */
const QUANTUM = 32;
/** Milliseconds of deliveries before timers, sockets and other threads get the event loop. */
const SLICE_MS = 2;

/** Dispatcher of async mode: first come, first served, in slices that leave the event loop room. */
export class AsyncDispatcher implements Dispatcher {
  readonly #line = new Deque<Runnable>();
  #draining = false;
  #outside = 0;
  #outsideIdle: (() => void) | undefined;

  wake(actor: Runnable): void {
    if (actor.queued || !actor.deliverable) return;
    actor.queued = true;
    this.#line.push(actor);
    if (this.#draining) return;
    this.#draining = true;
    queueMicrotask(this.#drain);
  }

  track<T>(_name: string, work: () => T | Promise<T>): T | Promise<T> {
    return work();
  }

  wait<T>(work: Promise<T>): Promise<T> {
    return work;
  }

  outside<T>(work: Promise<T>): Promise<T> {
    this.#outside++;
    const end = () => {
      if (--this.#outside === 0) this.#outsideIdle?.();
    };
    work.then(end, end);
    return work;
  }

  async outsideDone(): Promise<void> {
    if (this.#outside === 0) return;
    await new Promise<void>((resolve) => {
      this.#outsideIdle = resolve;
    });
  }

  drive<T>(until?: Promise<T>): Promise<T | undefined> {
    return until ?? Promise.resolve(undefined);
  }

  reorder(): void {}

  readonly #drain = (): void => {
    // Real time on purpose: this is about the event loop, not about what actors see.
    const end = performance.now() + SLICE_MS;
    for (let actor = this.#line.shift(); actor; actor = this.#line.shift()) {
      for (let n = 0; n < QUANTUM && actor.deliverable; n++) actor.step();
      actor.queued = false;
      if (actor.deliverable) {
        actor.queued = true;
        this.#line.push(actor);
      }
      if (performance.now() >= end) break;
    }
    this.#draining = this.#line.length > 0;
    if (this.#draining) setImmediate(this.#drain);
  };
}
