/** Retry of failed episodes: whether one is attempted again, and when the run has to end. Pure. */
import { AGENT } from '../../src/core/agent-call.ts';
import { LongplayError } from '../../src/core/errors.ts';
import { cureOf, type Failure } from '../../src/core/failure.ts';
import { type Task, taskName } from '../../src/core/task.ts';

/** Attempts at one episode before its task is given up: a host that died under it is one, and a bad task fails them all. */
export const MAX_ATTEMPTS = 3;

/** Failed episodes in a row, none finished in between, that end a run: more than any batch that one lost host takes along. */
export const MAX_FAILURES = 256;

/**
 * Milliseconds without an answer of the environment's server that end a run: a server that restarts is back by then, and
 * one that is gone for longer would use up the attempts of every task.
 */
export const MAX_OUTAGE_MS = 10_000;

/** Failed episodes without an answer that are an outage; a single one may be its task's fault. */
export const MIN_UNANSWERED = 2;

/** Failed episodes in a row, none finished in between, the present one included. */
export interface FailureRow {
  readonly failures: number;
  /** Episodes that the environment's server has not answered, since any other one was answered last. */
  readonly unanswered: number;
  /** Milliseconds in which they were not answered; 0 without one. */
  readonly outageMs: number;
  /** True while another world of the run answers: then an outage ends no run, and its groups are given up. */
  readonly othersAnswer?: boolean;
}

/** Bounds of retries. */
export interface RetryLimits {
  /** Attempts at one episode, ≥ 1, before its group is given up. */
  readonly maxAttempts: number;
  /** Failed episodes in a row, none finished in between, that end the run. */
  readonly maxFailures: number;
  /** Milliseconds without an answer of the environment's server that end the run. */
  readonly maxOutageMs: number;
}

/**
 * Number of the next attempt at an episode; undefined where its group is to be given up. An episode that was lost with a
 * host which another episode brought down did not use up its attempt.
 * @param attempt the one that failed, from 1
 * @throws {LongplayError} at `maxFailures` in a row, and after `maxOutageMs` without an answer: what is attempted again
 *   would fail again. ENV_BROKEN, or REMOTE_FAILED where the policy or the environment's server is to blame
 */
export function nextAttempt(
  failure: Failure,
  attempt: number,
  row: FailureRow,
  task: Task,
  { maxAttempts, maxFailures, maxOutageMs }: RetryLimits,
): number | undefined {
  const isOutage = row.unanswered >= MIN_UNANSWERED && row.outageMs >= maxOutageMs;
  if (isOutage && row.othersAnswer) return undefined;
  if (isOutage || row.failures >= maxFailures) throw createFailuresError(row, task, failure);
  const next = failure.cause === 'lost' ? attempt : attempt + 1;
  return next <= maxAttempts ? next : undefined;
}

function createFailuresError(row: FailureRow, task: Task, { cause, where, message }: Failure): LongplayError {
  const last = `(the last: ${cause} on ${taskName(task)} at ${where}: ${message})`;
  if (cause === 'unreachable') {
    const seconds = Math.round(row.outageMs / 1000);
    const server = task.env === AGENT ? "the agent's service" : "the environment's server";
    const what = `${server} has not answered for ${seconds} s: ${row.unanswered} episodes failed ${last}`;
    return new LongplayError('REMOTE_FAILED', `${what}; ${cureOf(cause, task.env)}`);
  }
  const what = `is broken: ${row.failures} episodes in a row failed ${last}`;
  if (cause === 'policy') return new LongplayError('REMOTE_FAILED', `the policy ${what}`);
  const name = task.env === AGENT ? 'agent' : 'environment';
  return new LongplayError('ENV_BROKEN', `the ${name} ${what}; ${cureOf(cause, task.env)}`);
}
