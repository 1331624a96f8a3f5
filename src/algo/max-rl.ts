/**
 * MaxRL: each score against the mean of its group, in units of that mean. For successes (1 or 0) the estimate follows the
 * gradient of log pass rate, cut at the order of the group's size, where GRPO follows that of the pass rate.
 *
 *   Aᵢ = (Rᵢ − mean(R)) / mean(R)      0 where the mean is not above 0
 *
 * @see Tajwar et al. 2026 (MaxRL). https://arxiv.org/abs/2602.02710
 */
import { z } from 'zod';
import { broadcast, commonShape, type Estimator, estimatorDefaults } from './estimator.ts';
import { isConstant } from './group-advantage.ts';

export const maxRlSchema = z.strictObject({ algorithm: z.literal('max_rl'), ...commonShape });
/** MaxRL: scores against the mean of their group, divided by it. */
export type MaxRlConfig = z.infer<typeof maxRlSchema>;

/** Estimator of MaxRL. */
export const maxRl: Estimator<MaxRlConfig> = {
  ...estimatorDefaults,
  facts: {
    title: 'MaxRL',
    papers: ['2602.02710'],
    summary: '(R − mean)/mean of the scores of a group: the gradient of the log of the pass rate.',
    use: 'Pass-or-fail tasks that are rarely solved, and pass@k counts.',
  },
  needsGroup: true,
  comparesTrajectories: () => true,
  advantages: (group) => broadcast(group, divideByMean(Float64Array.from(group, estimatorDefaults.score))),
};

/**
 * Scores against their mean, divided by it. A mean that is not above 0 has no logarithm: all 0. A score that is not finite
 * makes every advantage NaN, for the circuit breaker to see.
 * @param scores [n] one score per trajectory, ≥ 0 as a rule
 * @returns      [n]
 */
export function divideByMean(scores: Float64Array): Float64Array {
  if (isConstant(scores)) return new Float64Array(scores.length);
  const mean = scores.reduce((sum, score) => sum + score, 0) / scores.length;
  if (!Number.isFinite(mean)) return new Float64Array(scores.length).fill(Number.NaN);
  return scores.map((score) => (mean > 0 ? (score - mean) / mean : 0));
}
