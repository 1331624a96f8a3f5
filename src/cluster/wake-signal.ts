/** Wake signal of a loop: an auto-reset event with a timeout. */
import type { Clock } from '../core/clock.ts';

export class WakeSignal {
  readonly #clock: Clock;
  #isSet = false;
  #wake: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Wakes the waiter, or lets the next `wait` return at once. */
  set(): void {
    this.#isSet = true;
    this.#wake?.();
  }

  /** Waits until it is set, and resets it. One waiter at a time. @param ms milliseconds to wait at most */
  wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const finish = () => {
        this.#isSet = false;
        this.#wake = undefined;
        cancel();
        resolve();
      };
      const cancel = this.#clock.setTimer(ms, finish);
      this.#wake = finish;
      if (this.#isSet) finish();
    });
  }
}
