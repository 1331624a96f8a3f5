/**
 * Equivalents: keys of other libraries, and the settings here that give the same gradient of the same batch. A test computes
 * each row in both conventions.
 */

/** Row: what another library is told, and what longplay is. */
export interface Equivalent {
  readonly library: 'verl' | 'TRL' | 'prime-rl';
  /** Keys there; other keys at that library's defaults. */
  readonly theirs: string;
  /** Settings here, as for `--set`; other keys at their defaults. */
  readonly ours: readonly string[];
  /** Difference that is left; absent where there is none. */
  readonly differs?: string;
}

const STD = 'TRL adds 1e-4 to the standard deviation, we 1e-6.';
const DUAL_CLIP = 'verl also bounds the loss at ratio `clip_ratio_c` = 3 where the advantage is below 0.';
const DPPO_CAP = 'verl holds the ratio at `clip_ratio_c` = 20.';
const NO_STD = 'learner.estimator={algorithm: dr_grpo}';

/** Rows, each with a batch that proves it (`test/config/equivalents.test.ts`). */
export const EQUIVALENTS: readonly Equivalent[] = [
  {
    library: 'verl',
    theirs: 'algorithm.adv_estimator=grpo, actor.loss_agg_mode=token-mean',
    ours: ['learner.estimator={algorithm: grpo}'],
    differs: DUAL_CLIP,
  },
  {
    library: 'verl',
    theirs: 'algorithm.adv_estimator=grpo, actor.loss_agg_mode=seq-mean-token-mean',
    ours: ['learner.estimator={algorithm: grpo, aggregation: {type: sequence-mean}}'],
    differs: DUAL_CLIP,
  },
  {
    library: 'verl',
    theirs: 'algorithm.adv_estimator=grpo, actor.loss_agg_mode=seq-mean-token-sum',
    ours: ['learner.estimator={algorithm: grpo, aggregation: {type: constant, tokens: 1}}'],
    differs: `${DUAL_CLIP} It leaves episodes with nothing trained out of the count.`,
  },
  {
    library: 'verl',
    theirs:
      'algorithm.norm_adv_by_std_in_grpo=False, actor.loss_agg_mode=seq-mean-token-sum-norm, actor.loss_scale_factor=24',
    ours: ['learner.estimator={algorithm: dr_grpo, aggregation: {type: constant, tokens: 24}}'],
    differs: `${DUAL_CLIP} Older versions do not divide by the number of episodes.`,
  },
  {
    library: 'verl',
    theirs: 'algorithm.adv_estimator=rloo',
    ours: ['learner.estimator={algorithm: rloo}'],
    differs: DUAL_CLIP,
  },
  {
    library: 'verl',
    theirs:
      'actor.policy_loss.loss_mode=gspo, actor.clip_ratio_low=3e-4, actor.clip_ratio_high=4e-4, actor.loss_agg_mode=seq-mean-token-mean',
    ours: [
      'learner.estimator={algorithm: grpo, aggregation: {type: sequence-mean}}',
      'learner.policyLoss={type: gspo, clipLow: 0.0003, clipHigh: 0.0004}',
    ],
  },
  {
    library: 'verl',
    theirs: 'actor.policy_loss.loss_mode=cispo, actor.clip_ratio_low=0.2, actor.clip_ratio_high=0.28',
    ours: ['learner.policyLoss={type: cispo, clipLow: 0.2, clipHigh: 0.28}'],
  },
  {
    library: 'verl',
    theirs: 'actor.policy_loss.loss_mode=sapo, actor.policy_loss.tau_pos=1.0, actor.policy_loss.tau_neg=1.05',
    ours: ['learner.policyLoss={type: sapo, tauPositive: 1, tauNegative: 1.05}'],
  },
  {
    library: 'verl',
    theirs: 'actor.policy_loss.loss_mode=dppo_tv, actor.clip_ratio_low=0.2, actor.clip_ratio_high=0.2',
    ours: ['learner.policyLoss={type: dppo_tv, deltaLow: 0.2, deltaHigh: 0.2}'],
    differs: DPPO_CAP,
  },
  {
    library: 'verl',
    theirs: 'actor.policy_loss.loss_mode=dppo_kl, actor.clip_ratio_low=0.05, actor.clip_ratio_high=0.05',
    ours: ['learner.policyLoss={type: dppo_kl, deltaLow: 0.05, deltaHigh: 0.05}'],
    differs: DPPO_CAP,
  },
  {
    library: 'verl',
    theirs: 'algorithm.rollout_correction: rollout_is=token, rollout_is_threshold=2.0',
    ours: ['learner.offPolicy={type: truncated, cap: 2, per: token}'],
    differs: DUAL_CLIP,
  },
  {
    library: 'verl',
    theirs: 'algorithm.rollout_correction: rollout_is=token, rollout_is_threshold="0.5_5.0" (IcePop)',
    ours: ['learner.offPolicy={type: masked, low: 0.5, cap: 5, per: token}'],
    differs: DUAL_CLIP,
  },
  {
    library: 'TRL',
    theirs: 'loss_type=grpo, scale_rewards=group, epsilon=0.2',
    ours: ['learner.estimator={algorithm: grpo, aggregation: {type: sequence-mean}}'],
    differs: STD,
  },
  {
    library: 'TRL',
    theirs: 'loss_type=dapo, scale_rewards=group, epsilon=0.2, epsilon_high=0.28',
    ours: ['learner.estimator={algorithm: grpo}', 'learner.clipHigh=0.28'],
    differs: STD,
  },
  {
    library: 'TRL',
    theirs: 'loss_type=dr_grpo, scale_rewards=none, max_completion_length=24',
    ours: ['learner.estimator={algorithm: dr_grpo, aggregation: {type: constant, tokens: 24}}'],
  },
  {
    library: 'TRL',
    theirs: 'loss_type=grpo, importance_sampling_level=sequence, epsilon=3e-4, epsilon_high=4e-4',
    ours: [
      'learner.estimator={algorithm: grpo, aggregation: {type: sequence-mean}}',
      'learner.policyLoss={type: gspo, clipLow: 0.0003, clipHigh: 0.0004}',
    ],
    differs: STD,
  },
  {
    library: 'TRL',
    theirs: 'loss_type=cispo, epsilon_high=5.0, scale_rewards=none',
    ours: [NO_STD, 'learner.policyLoss={type: cispo, clipLow: 1, clipHigh: 4}'],
  },
  {
    library: 'TRL',
    theirs: 'loss_type=sapo, sapo_temperature_pos=1.0, sapo_temperature_neg=1.05, scale_rewards=none',
    ours: [
      'learner.estimator={algorithm: dr_grpo, aggregation: {type: sequence-mean}}',
      'learner.policyLoss={type: sapo, tauPositive: 1, tauNegative: 1.05}',
    ],
  },
  {
    library: 'TRL',
    theirs: 'vllm_importance_sampling_mode=token_truncate, cap 2.0, loss_type=dapo, scale_rewards=none',
    ours: [NO_STD, 'learner.offPolicy={type: truncated, cap: 2, per: token}'],
  },
  {
    library: 'TRL',
    theirs: 'vllm_importance_sampling_mode=sequence_mask, cap 3.0, loss_type=dapo, scale_rewards=none',
    ours: [NO_STD, 'learner.offPolicy={type: masked, low: 0, cap: 3, per: trajectory}'],
  },
  {
    library: 'prime-rl',
    theirs: 'grpo; trainer.loss: dppo_mask_low=0.2, dppo_mask_high=0.2, kl_tau=0',
    ours: [NO_STD, 'learner.policyLoss={type: dppo_tv, deltaLow: 0.2, deltaHigh: 0.2}'],
    differs: 'Releases with the IPO loss mask moves in both directions, whatever the advantage.',
  },
  {
    library: 'prime-rl',
    theirs: 'max_rl; trainer.loss: dppo_mask_low=0.2, dppo_mask_high=0.2, kl_tau=0',
    ours: [
      'learner.estimator={algorithm: max_rl}',
      'learner.policyLoss={type: dppo_tv, deltaLow: 0.2, deltaHigh: 0.2}',
    ],
    differs: 'Releases with the IPO loss mask moves in both directions, whatever the advantage.',
  },
];
