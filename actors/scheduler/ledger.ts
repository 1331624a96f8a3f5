/** Ledger of every launched episode's outcome. Pure bookkeeping; `check` checks the identity. */
import { LongplayError } from '../../src/core/errors.ts';
import { type Accounting, countUnaccounted, type FailureCause } from '../../src/core/failure.ts';

export class Ledger {
  #launched = 0;
  #trained = 0;
  #stale = 0;
  #filtered = 0;
  readonly #failed: Partial<Record<FailureCause, number>>;

  constructor(start?: Accounting) {
    this.#launched = start?.launched ?? 0;
    this.#trained = start?.trained ?? 0;
    this.#stale = start?.stale ?? 0;
    this.#filtered = start?.filtered ?? 0;
    this.#failed = { ...start?.failed };
  }

  launch(episodes = 1): void {
    this.#launched += episodes;
  }

  train(episodes: number): void {
    this.#trained += episodes;
  }

  drop(episodes: number): void {
    this.#stale += episodes;
  }

  filter(episodes: number): void {
    this.#filtered += episodes;
  }

  fail(cause: FailureCause): void {
    this.#failed[cause] = (this.#failed[cause] ?? 0) + 1;
  }

  /**
   * Account of all episodes.
   * @param inFlight episodes running, or finished and waiting for an update, counted one by one
   */
  account(inFlight: number): Accounting {
    return {
      launched: this.#launched,
      trained: this.#trained,
      stale: this.#stale,
      filtered: this.#filtered,
      failed: { ...this.#failed },
      inFlight,
    };
  }

  /**
   * Checks the identity.
   * @throws {LongplayError} STALLED when episodes were lost or counted twice
   */
  check(inFlight: number): Accounting {
    const accounting = this.account(inFlight);
    const missing = countUnaccounted(accounting);
    if (missing !== 0) {
      throw new LongplayError(
        'STALLED',
        `accounting: launched − trained − stale − filtered − failed − in flight = ${missing}, expected 0: ${JSON.stringify(accounting)}`,
      );
    }
    return accounting;
  }
}
