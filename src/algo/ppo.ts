/**
 * PPO: generalised advantage estimates against a critic. Differs from the paper in the unit, which is the decision and not the
 * token (advantages.ts). The clipped loss is part of the training program: `src/compute/model/loss.ts`.
 * @see Schulman et al. 2017 (PPO). https://arxiv.org/abs/1707.06347
 */
import { z } from 'zod';
import { commonShape, type Estimator, estimatorDefaults, type Row } from './estimator.ts';
import { gae } from './gae.ts';
import { share } from './ranges.ts';

export const ppoSchema = z.strictObject({
  algorithm: z.literal('ppo'),
  ...commonShape,
  lambda: share.default(0.95).describe('λ of generalised advantage estimation.'),
});

/** PPO: generalised advantage estimates against a critic. */
export interface PpoConfig extends z.infer<typeof ppoSchema> {
  /** Whitens advantages over the batch unless false. Returns are never whitened: the critic learns true values. */
  readonly whiten?: boolean | undefined;
}

/** Estimator of PPO. */
export const ppo: Estimator<PpoConfig> = {
  ...estimatorDefaults,
  facts: {
    title: 'PPO (GAE)',
    papers: ['1707.06347', '1506.02438'],
    summary: 'Generalised advantage estimates against a critic, per turn, whitened over the batch.',
    use: 'Long episodes with rewards on the way, and a policy with a value head.',
    keys: ['learner.valueCoef'],
  },
  needsCritic: true,
  whitens: ({ whiten = true }) => whiten,
  advantages: (group, { lambda }) => group.map((row) => criticAdvantages(row, lambda)),
  check: ({ lambda }, need) => need(lambda >= 0 && lambda <= 1, 'lambda', 'in [0, 1]', lambda),
};

function criticAdvantages({ columns, final, trained }: Row, lambda: number): Float64Array {
  const { rewards, values, discounts } = columns;
  const D = rewards.length;
  if (D === 0 || trained[D - 1] !== 0) return gae({ rewards, values, discounts, lambda, final });
  // Masked at the cut: the chain ends one decision earlier, with V of the last decision in place of what followed it.
  const known = gae({
    rewards: rewards.subarray(0, D - 1),
    values: values.subarray(0, D - 1),
    discounts: discounts.subarray(0, D - 1),
    lambda,
    final: values[D - 1]!,
  });
  const advantages = new Float64Array(D);
  advantages.set(known);
  return advantages;
}
