/**
 * Policy losses: what an optimiser step does with ratios and advantages. Here are their configuration and facts; what each
 * computes is an entry of `src/compute/model/surrogates.ts`, with its equation.
 *
 * A loss is chosen apart from the estimator of advantages and from the aggregation over tokens: every loss takes every
 * advantage. All take the ratio r = π/π_old to the policy that `learner.offPolicy` names.
 */
import { z } from 'zod';
import type { AlgorithmFacts } from './facts.ts';

const bound = z.number().min(0).max(1e6);
const temperature = z.number().positive().max(1e6);

/** Default of `learner.clipLow` and `clipHigh`, the bounds of `ppo_clip`. */
export const DEFAULT_CLIP = 0.2;

/** Shape of `learner.policyLoss`. */
export const policyLossSchema = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('ppo_clip') }),
  z.strictObject({
    type: z.literal('gspo'),
    clipLow: bound.default(3e-4).describe('Clip of the ratio below 1.'),
    clipHigh: bound.default(4e-4).describe('Clip of the ratio above 1.'),
  }),
  z.strictObject({
    type: z.literal('cispo'),
    clipLow: bound.default(1).describe('Clip of the weight below 1; at 1 there is none.'),
    clipHigh: bound.default(4).describe('Clip of the weight above 1.'),
  }),
  z.strictObject({
    type: z.literal('sapo'),
    tauPositive: temperature.default(1).describe('Temperature of the gate where the advantage is above 0.'),
    tauNegative: temperature.default(1.05).describe('Temperature of the gate elsewhere; larger closes it sooner.'),
  }),
  z.strictObject({
    type: z.literal('dppo_tv'),
    deltaLow: bound.default(0.2).describe('Probability that an action may lose before it is masked.'),
    deltaHigh: bound.default(0.2).describe('Probability that an action may gain before it is masked.'),
  }),
  z.strictObject({
    type: z.literal('dppo_kl'),
    deltaLow: bound.default(0.05).describe('KL (nats) that an action may lose by before it is masked.'),
    deltaHigh: bound.default(0.05).describe('KL (nats) that an action may gain by before it is masked.'),
  }),
  z.strictObject({ type: z.literal('unclipped') }),
]);

/** Configuration of a policy loss. */
export type PolicyLossConfig = z.infer<typeof policyLossSchema>;
/** Name of a policy loss. */
export type PolicyLossType = PolicyLossConfig['type'];

/** Facts of the policy losses. */
export const policyLossFacts: Readonly<Record<PolicyLossType, AlgorithmFacts>> = {
  ppo_clip: {
    title: 'PPO-clip (GRPO, DAPO)',
    papers: ['1707.06347', '2503.14476'],
    summary: 'min(r·A, clip(r)·A), clipped by learner.clipLow and learner.clipHigh (clip-higher).',
    use: 'The default; small policies, fresh data.',
    keys: ['learner.clipLow', 'learner.clipHigh'],
  },
  gspo: {
    title: 'GSPO, GSPO-token',
    papers: ['2507.18071'],
    summary: 'PPO-clip of the geometric mean of a sequence’s ratios; each token keeps its own advantage (GSPO-token).',
    use: 'Long answers and mixture-of-experts models, where ratios of single tokens are noise.',
  },
  cispo: {
    title: 'CISPO',
    papers: ['2506.13585'],
    summary: 'The clipped ratio is a constant weight of A·log π, so that no token loses its gradient.',
    use: 'Rare tokens that turn an answer matter, and PPO-clip would drop them.',
  },
  sapo: {
    title: 'SAPO',
    papers: ['2511.20347'],
    summary: 'A sigmoid gate of the ratio in place of the clip: gradients fade with the distance.',
    use: 'Off-policy data, where a hard clip makes training jump.',
  },
  dppo_tv: {
    title: 'DPPO (total variation)',
    papers: ['2602.04879'],
    summary: 'r·A, masked where |π − π_old| of the taken action exceeds a bound and A would move it further.',
    use: 'Large vocabularies: rare tokens may move by large ratios, likely ones by small ones.',
  },
  dppo_kl: {
    title: 'DPPO (KL)',
    papers: ['2602.04879'],
    summary: 'As dppo_tv, with the KL of “this action or another” in place of the difference.',
    use: 'As dppo_tv, stricter for rare tokens.',
  },
  unclipped: {
    title: 'Importance-weighted policy gradient',
    papers: [],
    summary: 'r·A with no trust region of its own.',
    use: 'One optimiser step an update, or with a mask of learner.offPolicy (M2PO).',
  },
};

/** Numbers of a policy loss, as its graph reads them (`loss.clipLow`, …). */
export function policyLossNumbers(config: PolicyLossConfig): Record<string, number> {
  return Object.fromEntries(Object.entries(config).filter(([, value]) => typeof value === 'number'));
}

/** True where the tokens of a trajectory share one ratio. */
export function sharesRatio(config: PolicyLossConfig | undefined): boolean {
  return config?.type === 'gspo';
}
