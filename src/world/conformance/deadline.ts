/** Deadline of an environment's answer. */
import type { MaybePromise } from '../../core/env.ts';

/** Milliseconds that one answer of an environment may take under the laws. */
const ANSWER_MS = 10_000;

/**
 * Passes a plain value through; of a promise, rejects when it has not settled in time.
 * @param what names the call in the message
 */
export function rejectAfter<T>(answer: MaybePromise<T>, what: string, ms = ANSWER_MS): MaybePromise<T> {
  if (!(answer instanceof Promise)) return answer;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} did not settle within ${ms} ms`)), ms);
  });
  return Promise.race([answer, late]).finally(() => clearTimeout(timer));
}
