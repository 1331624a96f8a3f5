/** Budget of tracing: keeps it to a share of the time, on average over the last seconds. Pure. */

/** Milliseconds of unspent time that may be saved up: short bursts pass, a long one is thinned out. */
const MAX_SAVED_MS = 1000;

export class TraceBudget {
  readonly #share: number;
  #saved: number;
  #at: number;

  /** @param share of the time, in (0, 1] */
  constructor(share: number, now: number) {
    this.#share = share;
    this.#at = now;
    this.#saved = MAX_SAVED_MS * share;
  }

  /** True when something may be written now. */
  allows(now: number): boolean {
    this.#saved = Math.min(MAX_SAVED_MS * this.#share, this.#saved + (now - this.#at) * this.#share);
    this.#at = now;
    return this.#saved > 0;
  }

  spend(ms: number): void {
    this.#saved -= ms;
  }
}
