/** Retry of broker calls, with exponential backoff and no limit of attempts. Every call may be repeated without harm. */
import type { Clock } from '../core/clock.ts';
import { BrokerUnavailable, type UnavailableReason } from './broker.ts';

/** Milliseconds before the second attempt, doubled for each further one, and the longest wait. */
const MIN_MS = 50;
const MAX_MS = 2000;
/** Milliseconds without success after which `onWaiting` is called. */
const WAITING_MS = 5000;

/** Error that ends a loop whose owner has stopped. */
export class Stopped extends Error {}

export interface RetryOptions {
  readonly clock: Clock;
  /** Returns true once the result is not needed any more. */
  readonly isStopped: () => boolean;
  /** Called once, after five seconds of failures, with a line for a person and the reason of the last failure. */
  readonly onWaiting?: ((text: string, reason: UnavailableReason) => void) | undefined;
}

/**
 * Retries a call as long as the broker is unavailable.
 * @throws {Stopped} once `isStopped` returns true; any error but `BrokerUnavailable` as it was thrown
 */
export async function retryWhileUnavailable<T>(
  call: () => Promise<T>,
  { clock, isStopped, onWaiting }: RetryOptions,
): Promise<T> {
  const startedAt = clock.now();
  let isReported = false;
  for (let waitMs = MIN_MS; ; waitMs = Math.min(MAX_MS, 2 * waitMs)) {
    if (isStopped()) throw new Stopped();
    try {
      return await call();
    } catch (thrown) {
      if (!(thrown instanceof BrokerUnavailable)) throw thrown;
      if (!isReported && clock.now() - startedAt >= WAITING_MS) {
        isReported = true;
        onWaiting?.(`${thrown.message}; waiting for it`, thrown.reason);
      }
      await new Promise<void>((resolve) => clock.setTimer(waitMs, resolve));
    }
  }
}
