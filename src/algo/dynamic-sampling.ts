import type { Group } from '../core/trajectory.ts';

/** Groups worth training on, and those left out on purpose (they count as filtered). */
export interface Sifted {
  readonly kept: readonly Group[];
  readonly filtered: readonly Group[];
}

/**
 * Whether a group's scores differ, so that comparing them says anything: largest − smallest > tolerance. Scores that
 * are not finite count as a signal: the circuit breaker has to see them.
 *
 * @param tolerance in units of the score; sums of the same rewards in another order may differ in the last bits
 */
export function hasSignal(scores: ArrayLike<number>, tolerance = 1e-9): boolean {
  let least = Number.POSITIVE_INFINITY;
  let largest = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < scores.length; i++) {
    if (!Number.isFinite(scores[i]!)) return true;
    least = Math.min(least, scores[i]!);
    largest = Math.max(largest, scores[i]!);
  }
  return largest - least > tolerance;
}

/**
 * DAPO's dynamic sampling: leaves out groups in which every trajectory scored the same, whose group-relative
 * advantages are all zero. The caller starts others in their place, so that an update still consumes as many groups
 * with a signal as it is meant to.
 *
 * Meant for estimators that compare trajectories. One that compares turns (`credit: 'turn'`, GiGPO) may find a
 * signal in a group of equal scores, and a critic needs no comparison at all.
 *
 * @param scoresOf scores as the estimator compares them, e.g. `scores` of advantages.ts: under γ < 1 successes of
 *   different lengths differ
 * @see Yu et al. 2025 (DAPO), §3.2. https://arxiv.org/abs/2503.14476
 */
export function siftGroups(groups: readonly Group[], scoresOf: (group: Group) => ArrayLike<number>): Sifted {
  const kept: Group[] = [];
  const filtered: Group[] = [];
  for (const group of groups) (hasSignal(scoresOf(group)) ? kept : filtered).push(group);
  return { kept, filtered };
}
