/**
 * Corrections for decisions that other weights made, or another engine's arithmetic (`learner.offPolicy`).
 *
 * - `ratio`: the surrogate's ratio is taken against the policy that decided, and the loss's trust region is the only
 *   correction. A decision that has moved by as much as that allows moves no further, however many updates it took;
 * - `truncated`: the decoupled objective. The ratio is taken against the learner at the start of the update, and each
 *   advantage is weighed by min(π_learner/π_behaviour, cap), a constant, shared by a token, a decision or a trajectory
 *   (importance.ts). The loss's trust region bounds the movement of one update only;
 * - `masked`: as `truncated`, but a weight outside [low, cap] is 0: the decision is left out of the surrogate. With
 *   `low: 0` it is masked importance sampling (MIS), with both bounds and `per: token` it is IcePop;
 * - `second_moment`: as `ratio`, but the decisions that have moved furthest are left out of the surrogate (M2PO,
 *   second-moment.ts).
 *
 * All but `ratio` cost a forward pass where any decision is older than the learner; without one they are the same.
 * If nothing clips, truncates or masks, the first step of all has the same gradient, π_learner/π_behaviour·A·∇log π.
 *
 * @see Hilton et al. 2021 (batch size-invariance, decoupled objectives), https://arxiv.org/abs/2110.00641; Fu et al.
 *   2025 (AReaL), https://arxiv.org/abs/2505.24298. Differs from AReaL, which has no cap in its equation and leaves out
 *   the tokens above one in its code: that is `masked` here.
 */
import { z } from 'zod';
import type { AlgorithmFacts } from './facts.ts';

const cap = z.number().min(1).max(1e6).describe('Largest importance weight.');
const per = z
  .enum(['token', 'decision', 'trajectory'])
  .default('decision')
  .describe('The unit that shares one importance weight.');
const geometricMean = z
  .boolean()
  .exactOptional()
  .describe("Weight of a unit: the geometric mean of its tokens' ratios in place of their product. Default false.");

/** Shape of `learner.offPolicy`. */
export const offPolicySchema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('ratio') }),
  z.strictObject({ type: z.literal('truncated'), cap: cap.default(2), per, geometricMean }),
  z.strictObject({
    type: z.literal('masked'),
    low: z.number().min(0).max(1).default(0.5).describe('Smallest importance weight; below it a unit is left out.'),
    cap: cap.default(5),
    per,
    geometricMean,
  }),
  z.strictObject({
    type: z.literal('second_moment'),
    threshold: z.number().positive().max(1e6).default(0.04).describe('Mean of (log ratio)² that is left, at most.'),
  }),
]);

/** Configuration of the correction. */
export type OffPolicy = z.infer<typeof offPolicySchema>;

/** Facts of the corrections. */
export const offPolicyFacts: Readonly<Record<OffPolicy['type'], AlgorithmFacts>> = {
  ratio: {
    title: 'Ratio to the behaviour policy',
    papers: ['1707.06347'],
    summary: 'The loss’s ratio is taken against the policy that decided; nothing else is corrected.',
    use: 'The default, where the learner’s own engine plays.',
  },
  truncated: {
    title: 'TIS (truncated importance sampling), decoupled PPO',
    papers: ['1802.01561', '2505.24298'],
    summary: 'Advantages are weighed by min(π_learner/π_behaviour, cap); the loss’s ratio starts at 1 in every update.',
    use: 'A server generates, or data is several updates old.',
  },
  masked: {
    title: 'MIS (masked importance sampling), IcePop',
    papers: ['2510.18855'],
    summary: 'As truncated, but a weight outside [low, cap] is 0. MIS: low 0; IcePop: low 0.5, cap 5, per token.',
    use: 'A server whose numbers are far off for some tokens, such as a mixture of experts.',
  },
  second_moment: {
    title: 'M2PO (second-moment trust region)',
    papers: ['2510.01161'],
    summary: 'Decisions that moved furthest are left out until the mean of (log r)² is at most a threshold.',
    use: 'Very old data; with policyLoss unclipped it is the paper’s.',
  },
};
