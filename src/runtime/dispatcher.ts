/** Dispatchers: the order in which actors run. In async mode it is that of arrival, many messages per turn of the event loop. */
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
}

/** Messages an actor may take before the next one in line gets its turn. */
const QUANTUM = 32;
/** Milliseconds of deliveries before timers, sockets and other threads get the event loop. */
const SLICE_MS = 2;

/** Dispatcher of async mode: first come, first served, in slices that leave the event loop room. */
export class AsyncDispatcher implements Dispatcher {
  readonly #line = new Deque<Runnable>();
  #draining = false;

  wake(actor: Runnable): void {
    if (actor.queued || !actor.deliverable) return;
    actor.queued = true;
    this.#line.push(actor);
    if (this.#draining) return;
    this.#draining = true;
    queueMicrotask(this.#drain);
  }

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
