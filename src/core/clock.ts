/** Clock: milliseconds and timers, given as an argument: actors and environments never read the machine's own. */
export interface Clock {
  /** Time in milliseconds since an arbitrary origin, monotonic. */
  now(): number;
  /** Calls `fn` once, `ms` from now. @returns a function that cancels it */
  setTimer(ms: number, fn: () => void): () => void;
}

/** Longest delay of a timer, 2^31 − 1 ms: Node would turn a longer one into 1 ms. */
const LONGEST_MS = 2 ** 31 - 1;

/** Clock of the machine, monotonic. Calls that are more than 24 days away come after 24 days. */
export const systemClock: Clock = {
  now: () => performance.now(),
  setTimer(ms, fn) {
    const timer = setTimeout(fn, Math.min(ms, LONGEST_MS));
    return () => clearTimeout(timer);
  },
};

/** Clock of the machine whose timers keep no process alive: for watchdogs. */
export const backgroundClock: Clock = {
  now: systemClock.now,
  setTimer(ms, fn) {
    const timer = setTimeout(fn, ms).unref();
    return () => clearTimeout(timer);
  },
};

interface PendingTimer {
  readonly at: number;
  readonly order: number;
  readonly fn: () => void;
}

/**
 * Simulated clock: moves only by `advance`. Timers due at the same instant fire in the order in which they were set.
 */
export class SimulatedClock implements Clock {
  #now = 0;
  #order = 0;
  #timers: PendingTimer[] = [];

  now(): number {
    return this.#now;
  }

  setTimer(ms: number, fn: () => void): () => void {
    const timer = { at: this.#now + Math.max(0, ms), order: this.#order++, fn };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** Milliseconds until the next timer, or `undefined` when none is set. */
  get untilNext(): number | undefined {
    const next = this.#earliest();
    return next && next.at - this.#now;
  }

  /** Moves time by `ms`, firing every timer on the way, those set meanwhile included. */
  advance(ms: number): void {
    const end = this.#now + ms;
    for (let next = this.#earliest(); next && next.at <= end; next = this.#earliest()) {
      this.#timers = this.#timers.filter((timer) => timer !== next);
      this.#now = Math.max(this.#now, next.at);
      next.fn();
    }
    this.#now = end;
  }

  #earliest(): PendingTimer | undefined {
    let first: PendingTimer | undefined;
    for (const timer of this.#timers) {
      if (!first || timer.at < first.at || (timer.at === first.at && timer.order < first.order)) first = timer;
    }
    return first;
  }
}
