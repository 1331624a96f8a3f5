/**
 * Pass@k training: an episode is worth what it adds to the groups of k that could be drawn from its group, of which each
 * counts 1 when any of its members is solved. Computed over all of these groups, none is drawn.
 *
 *   ρ  = 1 − C(n₋, k)/C(n, k)        share of groups of k that are solved; n₋ of n episodes are not
 *   σ  = √(ρ(1 − ρ))
 *   A₊ = (1 − ρ)/(σ + ε)
 *   A₋ = (1 − ρ − C(n₋ − 1, k − 1)/C(n − 1, k − 1))/(σ + ε)
 *
 * with ε = 1e-6, as in the authors' code. An episode is solved where its score is above `threshold`. Where every group of
 * k is solved (n₋ < k), or none is, all advantages are 0: k = 1 is GRPO on successes, with the population's std.
 *
 * @see Chen et al. 2025 (Pass@k Training), "analytical derivation". https://arxiv.org/abs/2508.10751
 */
import { z } from 'zod';
import { UserError } from '../core/errors.ts';
import { broadcast, commonShape, type Estimator, estimatorDefaults, threshold } from './estimator.ts';

export const passAtKSchema = z.strictObject({
  algorithm: z.literal('pass_at_k'),
  ...commonShape,
  k: z
    .int()
    .min(1)
    .max(4096)
    .default(4)
    .describe('Episodes of which one has to be solved; at most the size of a group.'),
  threshold,
});
/** Pass@k training, by its analytical advantages. */
export type PassAtKConfig = z.infer<typeof passAtKSchema>;

/** Estimator of pass@k training. */
export const passAtK: Estimator<PassAtKConfig> = {
  ...estimatorDefaults,
  facts: {
    title: 'Pass@k training (analytical)',
    papers: ['2508.10751'],
    summary: 'What an episode adds to the share of groups of k that hold a solved one.',
    use: 'Exploration: rare solutions weigh much, and tasks that k tries solve anyway weigh nothing.',
  },
  needsGroup: true,
  comparesTrajectories: () => true,
  minMembers: ({ k }) => Math.max(2, k),
  advantages: (group, config) =>
    broadcast(group, passAtKAdvantage(Float64Array.from(group, estimatorDefaults.score), config)),
  check: ({ k }, need) => need(Number.isInteger(k) && k >= 1, 'k', 'a whole number ≥ 1', k),
};

/**
 * Advantages of pass@k training.
 * @param scores [n] one score per trajectory of the group
 * @returns      [n]; NaN where a score is not finite, for the circuit breaker to see
 * @throws {UserError} BAD_ARGUMENT if the group has fewer than k members
 */
export function passAtKAdvantage(
  scores: Float64Array,
  { k, threshold }: { readonly k: number; readonly threshold: number },
): Float64Array {
  const n = scores.length;
  if (n < k)
    throw new UserError('BAD_ARGUMENT', `pass_at_k: k = ${k} needs groups of at least ${k} trajectories, got ${n}`);
  if (!scores.every(Number.isFinite)) return new Float64Array(n).fill(Number.NaN);
  const failed = scores.reduce((count, score) => count + (score > threshold ? 0 : 1), 0);
  const rho = 1 - chooseRatio(failed, n, k);
  const sigma = Math.sqrt(rho * (1 - rho)) + 1e-6;
  const negative = (1 - rho - chooseRatio(failed - 1, n - 1, k - 1)) / sigma;
  return scores.map((score) => (score > threshold ? (1 - rho) / sigma : negative));
}

/** C(a, k)/C(n, k) for a ≤ n, as a product: neither binomial has to fit a number. */
function chooseRatio(a: number, n: number, k: number): number {
  if (k > a) return 0;
  let ratio = 1;
  for (let i = 0; i < k; i++) ratio *= (a - i) / (n - i);
  return ratio;
}
