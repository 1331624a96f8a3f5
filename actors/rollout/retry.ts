/** Retry of failed episodes: whether one is attempted again, and when the run has to end. Pure. */
import { LongplayError } from '../../src/core/errors.ts';
import type { Failure } from '../../src/core/failure.ts';
import { type Task, taskName } from '../../src/core/task.ts';

/** Attempts at one episode before its task is given up: a host that died under it is one, and a bad task fails them all. */
export const MAX_ATTEMPTS = 3;

/** Failed episodes in a row, none finished in between, that end a run: more than any batch that one lost host takes along. */
export const MAX_FAILURES = 256;

/** Bounds of retries. */
export interface RetryLimits {
  /** Attempts at one episode, ≥ 1, before its group is given up. */
  readonly maxAttempts: number;
  /** Failed episodes in a row, none finished in between, that end the run. */
  readonly maxFailures: number;
}

/**
 * Number of the next attempt at an episode; undefined where its group is to be given up. An episode that was lost with a
 * host which another episode brought down did not use up its attempt.
 * @param attempt the one that failed, from 1
 * @param inARow failed episodes in a row, this one included
 * @throws {LongplayError} ENV_BROKEN, or REMOTE_FAILED where the policy is to blame, at `maxFailures` in a row: what is
 *   attempted again would fail again
 */
export function nextAttempt(
  failure: Failure,
  attempt: number,
  inARow: number,
  task: Task,
  { maxAttempts, maxFailures }: RetryLimits,
): number | undefined {
  if (inARow >= maxFailures) throw createFailuresError(inARow, task, failure);
  const next = failure.cause === 'lost' ? attempt : attempt + 1;
  return next <= maxAttempts ? next : undefined;
}

function createFailuresError(inARow: number, task: Task, { cause, where, message }: Failure): LongplayError {
  const last = `${cause} on ${taskName(task)} at ${where}: ${message}`;
  const what = `is broken: ${inARow} episodes in a row failed (the last: ${last})`;
  if (cause === 'policy') return new LongplayError('REMOTE_FAILED', `the policy ${what}`);
  return new LongplayError('ENV_BROKEN', `the environment ${what}; run \`longplay check-env\``);
}
