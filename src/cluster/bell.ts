/** Bell: wakes a loop that waits for work, or for its time to look by itself. */
import type { Clock } from '../core/clock.ts';

export class Bell {
  readonly #clock: Clock;
  #isRung = false;
  #wake: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Wakes who waits; where nobody does, the next one does not wait. */
  ring(): void {
    this.#isRung = true;
    this.#wake?.();
  }

  /** Waits until it rings, `ms` at most. One loop at a time. */
  wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        this.#isRung = false;
        this.#wake = undefined;
        cancel();
        resolve();
      };
      const cancel = this.#clock.after(ms, done);
      this.#wake = done;
      if (this.#isRung) done();
    });
  }
}
