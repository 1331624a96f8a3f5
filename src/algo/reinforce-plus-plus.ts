import { z } from 'zod';
import { ShapeError } from '../core/errors.ts';
import { commonShape, type Estimator, estimatorDefaults, type Row } from './estimator.ts';
import { returnsToGo } from './returns.ts';

export const reinforcePlusPlusSchema = z.strictObject({
  algorithm: z.literal('reinforce_pp'),
  ...commonShape,
  baseline: z.enum(['none', 'group']).default('none').describe('Mean of the group as the baseline, or none.'),
});
/** REINFORCE++: returns whitened over the whole batch; `baseline: group` subtracts the mean score of the group before. */
export type ReinforcePlusPlusConfig = z.infer<typeof reinforcePlusPlusSchema>;

/** Estimator of REINFORCE++. */
export const reinforcePlusPlus: Estimator<ReinforcePlusPlusConfig> = {
  ...estimatorDefaults,
  facts: {
    title: 'REINFORCE++',
    papers: ['2501.03262'],
    summary: 'Rewards-to-go, whitened over the whole batch; with baseline group less the group’s mean first.',
    use: 'Groups of one, or rewards of one scale over all tasks.',
  },
  whitens: () => true,
  advantages: (group, { baseline }) =>
    baseline === 'none' ? group.map(({ returns }) => returns.slice()) : subtractGroupMean(group),
};

/** Rewards-to-go less the mean score of the group's members that are trained on. */
function subtractGroupMean(group: readonly Row[]): Float64Array[] {
  const trained = group.filter((one) => one.trained.some((mark) => mark !== 0));
  const mean = trained.reduce((sum, { total }) => sum + total, 0) / trained.length;
  return group.map(({ columns, final }) => returnsWithoutBaseline(columns.rewards, columns.discounts, final, mean));
}

/**
 * Rewards-to-go of REINFORCE++ with a group baseline: the mean is taken off the outcome, which sits on the last
 * decision, and what is left is discounted.
 *
 *   Aₜ = Gₜ − b·γ^(T−1−t)      b = mean of the group's scores, undiscounted, over its members that are trained on
 *
 * That is how the authors' implementation goes (OpenRLHF: rewards of a group less their mean, then discounted returns).
 * With γ = 1 it is Gₜ − b. With the outcome as the only reward as well, it is the paper's and verl's R − b for every
 * decision; verl's takes no γ at all. Differs from OpenRLHF, which knows no rewards before the outcome and adds KL
 * penalties after the mean: here the score is everything the trajectory was rewarded with.
 *
 * @param rewards   [D]
 * @param discounts [D]
 * @param final     value of what follows the last decision
 * @param baseline  b
 * @returns         [D]
 * @see Hu et al. 2025 (REINFORCE++), §3.3. https://arxiv.org/abs/2501.03262
 */
export function returnsWithoutBaseline(
  rewards: Float64Array,
  discounts: Float64Array,
  final: number,
  baseline: number,
): Float64Array {
  if (rewards.length === 0) return new Float64Array(0);
  const shaped = rewards.slice();
  shaped[shaped.length - 1]! -= baseline;
  return returnsToGo(shaped, discounts, final);
}

/**
 * Global whitening, the heart of REINFORCE++: advantages of the whole batch to mean 0 and standard deviation 1. So no
 * single task's statistics decide, as they do in group normalisation.
 *
 *   Aₜ ← (Aₜ − mean) / (std + 1e-8)      over the trained decisions of every trajectory in the batch
 *
 * The std is the population's (n). Decisions with `trained` 0 enter no statistic and come back as 0. If nothing
 * varies, every advantage is exactly 0.
 *
 * Differs from the paper in the unit: ours are turns, theirs tokens. A long turn counts once in the statistics.
 * Differs from AgentGym-RL, whose terminal reward never reaches a trained token.
 *
 * @param advantages per trajectory [D]
 * @param trained    per trajectory [D], 1 or 0
 * @returns          per trajectory [D], new arrays
 * @throws {ShapeError} if the shapes differ
 * @see Hu et al. 2025 (REINFORCE++). https://arxiv.org/abs/2501.03262
 */
export function whiten(advantages: readonly Float64Array[], trained: readonly Uint8Array[]): Float64Array[] {
  let n = 0;
  let total = 0;
  let first: number | undefined;
  let varies = false;
  for (const [i, row] of advantages.entries()) {
    if (trained[i]?.length !== row.length) {
      throw new ShapeError(`whiten: trained[${i}] must be [${row.length}], got [${trained[i]?.length}]`);
    }
    for (const [d, a] of row.entries()) {
      if (trained[i]![d] === 0) continue;
      n++;
      total += a;
      first ??= a;
      varies ||= a !== first; // NaN differs from itself, so what is not a number stays visible below
    }
  }
  const mean = total / n;
  let squares = 0;
  for (const [i, row] of advantages.entries()) {
    for (const [d, a] of row.entries()) if (trained[i]![d] !== 0) squares += (a - mean) ** 2;
  }
  const std = Math.sqrt(squares / n) + 1e-8;
  const flat = !varies && (first === undefined || Number.isFinite(first));
  return advantages.map((row, i) => row.map((a, d) => (flat || trained[i]![d] === 0 ? 0 : (a - mean) / std)));
}
