/** Options of a learner's updates; plain data but for the codec. */
import type { WorldEstimators } from '../../algo/advantages.ts';
import type { DistillationConfig } from '../../algo/distillation.ts';
import type { EstimatorConfig } from '../../algo/estimators.ts';
import type { KlControl, KlEstimator } from '../../algo/kl.ts';
import type { OffPolicy } from '../../algo/off-policy.ts';
import type { PolicyLossConfig } from '../../algo/policy-loss.ts';
import type { ModelConfig } from '../../compute/model/config.ts';
import type { AuxiliaryLosses, LossCoefficients } from '../../compute/model/loss.ts';
import { type AdamWConfig, defaultAdamW, type LearningRate } from '../../compute/model/optimizer.ts';
import type { DecoderKind } from '../../compute/model/programs.ts';
import { POLICY_KINDS, policyKindOf } from '../../config/policy-kinds.ts';
import type { RunConfig } from '../../config/run-config.ts';
import { hasWorlds, listWorlds } from '../../config/worlds.ts';
import type { Codec } from '../../text/reading/codec.ts';
import type { SelfImitation } from './self-imitation.ts';

/** KL to the weights the run started from. */
export interface ReferenceKl {
  readonly in: 'loss' | 'reward';
  readonly estimator: KlEstimator;
  readonly control: KlControl;
}

/** Trainer options: everything that an update depends on besides weights and data. */
export interface TrainerOptions {
  readonly model: ModelConfig;
  readonly codec: Codec;
  readonly decoder: DecoderKind;
  /** Masked decisions: true (the default) where each names the ids that were possible; false: all of them were. */
  readonly masked?: boolean | undefined;
  /** Parts that decisions over a frozen vocabulary are computed in; 1 by default. */
  readonly chunks?: number | undefined;
  /** Compute a layer's activations again in the backward pass instead of keeping them. Off by default. */
  readonly recompute?: boolean | undefined;
  /** Tokens of one pass, padding included; a minibatch that is larger is summed up over several passes. */
  readonly maxTokens?: number | undefined;
  /** Engines that share the passes of a minibatch, this one among them; 1 by default. Without `maxTokens` there is but one pass. */
  readonly replicas?: number | undefined;
  readonly estimator: EstimatorConfig;
  /** Estimators of the worlds of a run of several. */
  readonly worlds?: WorldEstimators | undefined;
  /** Passes over an update's groups, ≥ 1. */
  readonly epochs: number;
  /** Optimiser steps per pass, ≥ 1. */
  readonly minibatches: number;
  readonly coefficients: Omit<LossCoefficients, 'klCoef1' | 'klCoef2' | 'klCoef3'>;
  /** Policy loss, whose numbers take the place of those in `coefficients`; `ppo_clip` where absent. */
  readonly policyLoss?: PolicyLossConfig | undefined;
  readonly offPolicy: OffPolicy;
  /**
   * Foreign decisions: their log-probabilities are another engine's, and the learner measures its own for every one.
   */
  readonly foreign?: boolean | undefined;
  /** KL to the reference policy; absent: there is none. */
  readonly kl?: ReferenceKl | undefined;
  /** Distillation from the teacher that the trainer starts with; absent: there is none. */
  readonly distillation?: Pick<DistillationConfig, 'coef' | 'useRewards'> | undefined;
  /** Weight of the loss on the world's tokens, of tokens that are not masked; absent: there is none. */
  readonly observationCoef?: number | undefined;
  /** Remembered episodes trained on besides; absent: none are. */
  readonly selfImitation?: SelfImitation | undefined;
  readonly learningRate: LearningRate;
  /** Norm that the gradients are scaled down to, globally. */
  readonly maxGradNorm: number;
  readonly adamW: AdamWConfig;
  /** Leave out groups whose members all scored the same, where the estimator only compares trajectories. */
  readonly filterGroups: boolean;
  /** Seed of the order of minibatches, uint32. */
  readonly seed: number;
}

/** Decisions that a pass takes at once over a large vocabulary. */
const DECISIONS_PER_CHUNK = 512;

/** Distance that a value may move from the old one: wider than returns of these worlds, so it binds on outliers only. */
const VALUE_CLIP = 10;

/** Memory of self-imitation: the best episode of each task, up to `capacity` tasks; a surplus counts as it is. */
const MEMORY = { capacity: 256, weight: 1 };

/** Options of a run's configuration for how much is computed at once. */
export function passOptions(
  { learner, policy, engine }: RunConfig,
  model: ModelConfig,
): Pick<TrainerOptions, 'decoder' | 'masked' | 'chunks' | 'recompute' | 'maxTokens' | 'replicas'> {
  const { decoder } = policy;
  const masked = decoder === 'choice' || !POLICY_KINDS[policy.kind].isLanguageModel || policy.masked;
  const { maxTokens, recompute } = learner;
  // A table that is trained needs its own gradient, which the parts do not have.
  const chunks =
    decoder === 'choice' || !model.base ? 1 : Math.ceil((maxTokens ?? DECISIONS_PER_CHUNK) / DECISIONS_PER_CHUNK);
  return { decoder, masked, chunks, recompute, maxTokens, replicas: engine.learnerReplicas };
}

/** Estimators of the worlds of a configuration; undefined where it has one world. */
export function worldEstimators(config: RunConfig): WorldEstimators | undefined {
  if (!hasWorlds(config)) return undefined;
  const configs = listWorlds(config).map(({ name, config: own }) => [name!, own.learner.estimator] as const);
  return { configs: Object.fromEntries(configs), normalizePerWorld: config.normalizePerWorld ?? true };
}

/** Trainer options of a run's configuration. */
export function trainerOptions(config: RunConfig, model: ModelConfig): Omit<TrainerOptions, 'codec'> {
  const { learner, seed } = config;
  return {
    model,
    ...passOptions(config, model),
    estimator: learner.estimator,
    worlds: worldEstimators(config),
    epochs: learner.epochs,
    minibatches: learner.minibatches,
    coefficients: {
      clipLow: learner.clipLow,
      clipHigh: learner.clipHigh,
      entropyCoef: learner.entropyCoef,
      valueCoef: learner.valueCoef,
      valueClip: VALUE_CLIP,
    },
    learningRate: {
      peak: learner.learningRate,
      warmupSteps: learner.warmupSteps,
      decay: learner.decay,
      final: learner.finalRate,
    },
    maxGradNorm: learner.maxGradNorm,
    adamW: defaultAdamW,
    filterGroups: learner.filterGroups,
    policyLoss: learner.policyLoss,
    offPolicy: learner.offPolicy,
    kl: learner.kl,
    distillation: learner.distillation,
    observationCoef: learner.observationCoef,
    selfImitation: learner.selfImitation && { ...MEMORY, ...learner.selfImitation },
    foreign: policyKindOf(config).isServed,
    seed,
  };
}

/** Losses beside the policy's that a graph has to hold. */
export function auxiliaryLosses({ decoder, distillation, observationCoef }: TrainerOptions): AuxiliaryLosses {
  return { distils: distillation !== undefined && decoder === 'choice', predictsWorld: observationCoef !== undefined };
}
