/** Attempts: the retry loop around one request, with a deadline over all attempts. */
import type { Clock } from '../core/clock.ts';
import type { Rng } from '../core/rng.ts';
import { isTransient, RemoteError, type RetryPolicy, retryDelayMs } from './retry.ts';

export interface AttemptOptions extends RetryPolicy {
  /** Milliseconds of one attempt. */
  readonly attemptMs: number;
  /** Milliseconds of all attempts and the waits between them. */
  readonly totalMs: number;
}

export interface AttemptContext {
  readonly clock: Clock;
  readonly rng: Rng;
  /** Ends a wait; no further attempt is made. */
  readonly closed?: AbortSignal | undefined;
  /** Called before each wait. */
  readonly onRetry?: (error: RemoteError, delayMs: number) => void;
}

/**
 * Attempts a request until it succeeds.
 * @param once makes one attempt within the given milliseconds
 * @throws {RemoteError} the last attempt's, when no further one may help or fit; anything else as it was thrown
 */
export async function attempt<T>(
  options: AttemptOptions,
  { clock, rng, closed, onRetry }: AttemptContext,
  once: (deadlineMs: number) => Promise<T>,
): Promise<T> {
  const end = clock.now() + options.totalMs;
  for (let n = 1; ; n++) {
    try {
      return await once(Math.max(1, Math.min(options.attemptMs, end - clock.now())));
    } catch (thrown) {
      if (!(thrown instanceof RemoteError) || !isTransient(thrown) || n >= options.attempts) throw thrown;
      const delayMs = retryDelayMs(options, n, thrown, rng.float());
      if (clock.now() + delayMs >= end) throw thrown;
      onRetry?.(thrown, delayMs);
      await sleep(clock, delayMs, closed);
      if (closed?.aborted) throw thrown;
    }
  }
}

/** Sleeps for `ms`, or until the signal aborts, whichever comes first. */
export function sleep(clock: Clock, ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const end = () => {
      cancel();
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const cancel = clock.setTimer(ms, end);
    signal?.addEventListener('abort', end);
  });
}
