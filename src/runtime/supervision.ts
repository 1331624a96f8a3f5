/** Supervision: the decisions of a supervisor as pure functions. Terms and rules are OTP's; the back-off is ours. */
import { isUserMistake, type LongplayError } from '../core/errors.ts';
import type { Restart, StopReason, Strategy, SupervisorOptions } from './actor.ts';

export const defaultSupervision = {
  strategy: 'one_for_one',
  intensity: 5,
  periodMs: 10_000,
  backoff: { minMs: 20, maxMs: 5_000, jitter: 0.5 },
} as const satisfies SupervisorOptions;

/** True for an end that is followed by a new incarnation. */
export function wantsRestart(restart: Restart, reason: StopReason): boolean {
  if (restart === 'permanent') return true;
  return restart === 'transient' && (reason.kind === 'crashed' || reason.kind === 'killed');
}

/**
 * True for an error that a new incarnation would meet again, because the user's request has to change. BAD_ARGUMENT is
 * no such error: between actors it is a bug that concerns one message.
 */
export function isHopeless(error: Error): boolean {
  return isUserMistake(error) && (error as LongplayError).code !== 'BAD_ARGUMENT';
}

/**
 * Children that restart together with child `index`.
 * @param count children in start order
 * @returns indices in start order; stop them in reverse
 */
export function listAffected(strategy: Strategy, count: number, index: number): number[] {
  if (strategy === 'one_for_one') return [index];
  const first = strategy === 'one_for_all' ? 0 : index;
  return Array.from({ length: count - first }, (_, i) => first + i);
}

/**
 * Counts one more restart at `now`.
 * @returns the restarts of the last `periodMs`, this one included, or `undefined` when they exceed `intensity`
 */
export function admitRestart(
  history: readonly number[],
  now: number,
  intensity: number,
  periodMs: number,
): number[] | undefined {
  const recent = [...history.filter((at) => now - at < periodMs), now];
  return recent.length > intensity ? undefined : recent;
}

/**
 * Milliseconds before restart `n` of the period.
 * @param n ≥ 1
 * @param u uniform in [0, 1)
 */
export function backoffMs(n: number, backoff: NonNullable<SupervisorOptions['backoff']>, u: number): number {
  return Math.min(backoff.maxMs, backoff.minMs * 2 ** (n - 1)) * (1 - backoff.jitter * u);
}
