/** Rules that keys of a configuration must keep together, which no key shows by itself. */

import { filtersGroups, maxGroups } from '../algo/dynamic-sampling.ts';
import { estimatorOf } from '../algo/estimators.ts';
import { DEFAULT_CLIP } from '../algo/policy-loss.ts';
import { UserError } from '../core/errors.ts';
import { largestOf } from '../core/extremes.ts';
import { policyKindOf } from './policy-kinds.ts';
import type { RunConfig } from './run-config.ts';
import { checkWorlds } from './worlds.ts';

/** Checks the rules, in a fixed order. @throws {UserError} BAD_CONFIG naming the key of the first rule that is broken */
export function checkKeyRules(config: RunConfig, source: string): void {
  if (config.agent !== undefined) {
    throw new UserError('BAD_CONFIG', `${source}: agent: expected either 'agent' or 'env', got both`);
  }
  refuseExcess(config, source);
  const { stop, learner, rollout } = config;
  if (stop.updates === undefined && stop.minutes === undefined && stop.envSteps === undefined) {
    throw new UserError('BAD_CONFIG', `${source}: stop: expected when the run ends: updates, minutes or envSteps`);
  }
  if (rollout.maxBatch < rollout.groupSize) {
    throw new UserError(
      'BAD_CONFIG',
      `${source}: rollout.maxBatch: expected at least rollout.groupSize (${rollout.groupSize}), got ${rollout.maxBatch}`,
    );
  }
  const { algorithm } = learner.estimator;
  const estimator = estimatorOf(learner.estimator);
  const { needsGroup, needsCritic } = estimator;
  const learnsFromRewards = learner.distillation?.useRewards ?? true;
  // These two compute advantages of groups that they cannot take, whatever becomes of them.
  const comparesAlways = algorithm === 'rloo' || algorithm === 'pass_at_k';
  const minMembers =
    needsGroup && (learnsFromRewards || comparesAlways) ? (estimator.minMembers?.(learner.estimator) ?? 2) : 1;
  if (rollout.groupSize < minMembers) {
    throw new UserError(
      'BAD_CONFIG',
      `${source}: rollout.groupSize: ${algorithm} compares episodes of one task; expected at least ${minMembers}, got ${rollout.groupSize}`,
    );
  }
  checkLoss(config, source);
  if (learner.ranking && learner.oversampling > 1) {
    throw new UserError(
      'BAD_CONFIG',
      `${source}: learner.oversampling: which groups have a signal is known only after the judge of learner.ranking; expected 1, got ${learner.oversampling}`,
    );
  }
  if (learner.ranking && learner.selfImitation) {
    throw new UserError(
      'BAD_CONFIG',
      `${source}: learner.selfImitation: scores of a judge (learner.ranking) compare within a group alone; leave selfImitation out`,
    );
  }
  if (learner.ranking && rollout.groupSize < 2) {
    throw new UserError(
      'BAD_CONFIG',
      `${source}: learner.ranking: a judge compares episodes of one task; expected rollout.groupSize of 2 or more, got ${rollout.groupSize}`,
    );
  }
  checkDistillation(config, source);
  if (needsCritic && learner.valueCoef === 0) {
    throw new UserError(
      'BAD_CONFIG',
      `${source}: learner.valueCoef: ${algorithm} needs a critic; expected a number above 0, got 0`,
    );
  }
  if (config.engine.learnerReplicas > 1 && learner.maxTokens === undefined) {
    throw new UserError(
      'BAD_CONFIG',
      `${source}: engine.learnerReplicas: replicas share the passes of a minibatch, and without learner.maxTokens there is one; set it, e.g. 1000`,
    );
  }
  const { isServed, isLanguageModel, isRemote } = policyKindOf(config);
  if (isServed) {
    if (learner.offPolicy.type === 'ratio') {
      throw new UserError(
        'BAD_CONFIG',
        `${source}: learner.offPolicy.type: a server computes otherwise than the learner; expected truncated, masked or second_moment, got ratio`,
      );
    }
    if (config.policy.full || config.policy.masked || learner.valueCoef > 0) {
      throw new UserError(
        'BAD_CONFIG',
        `${source}: policy.kind: a server takes adapters, writes freely and has no value head; leave policy.full, policy.masked and learner.valueCoef out`,
      );
    }
  }
  if (isLanguageModel && config.policy.decoder !== 'tokens') {
    throw new UserError(
      'BAD_CONFIG',
      `${source}: policy.decoder: a language model writes tokens; expected tokens, got choice`,
    );
  }
  const [shaping] = Object.keys(config.evaluation.sampling ?? {});
  if (shaping !== undefined && (!isLanguageModel || isServed)) {
    const cure = isRemote ? 'set it in policy.openai.body' : 'leave it out';
    throw new UserError(
      'BAD_CONFIG',
      `${source}: evaluation.sampling.${shaping}: it holds for language models that are computed here (policy.kind: checkpoint), got ${config.policy.kind}; ${cure}`,
    );
  }
  if (maxGroups(learner) > learner.groupsPerUpdate && !filtersGroups(learner)) {
    throw new UserError(
      'BAD_CONFIG',
      `${source}: learner.oversampling: nothing is left out, so nothing is replaced; it needs filterGroups, an estimator that compares trajectories (grpo, dr_grpo or rloo with credit: trajectory, max_rl, pass_at_k), and neither distillation nor observationCoef`,
    );
  }
  checkWorlds(config, source, checkKeyRules);
}

/** Refuses combinations of losses, estimators and corrections that make no sense. @throws {UserError} BAD_CONFIG */
function checkLoss({ learner, policy }: RunConfig, source: string): void {
  const { policyLoss, offPolicy, estimator } = learner;
  const refuse = (key: string, why: string) => {
    throw new UserError('BAD_CONFIG', `${source}: learner.${key}: ${why}`);
  };
  if (policyLoss && estimatorOf(estimator).objective === 'likelihood') {
    refuse('policyLoss', `${estimator.algorithm} imitates and has no policy loss; leave policyLoss out`);
  }
  if (policyLoss && policyLoss.type !== 'ppo_clip') {
    for (const key of ['clipLow', 'clipHigh'] as const) {
      if (learner[key] === DEFAULT_CLIP) continue;
      const own = key in policyLoss ? `set learner.policyLoss.${key}` : 'leave it out';
      refuse(key, `only policyLoss ppo_clip reads it, and it is ${policyLoss.type}; ${own}`);
    }
  }
  if ('per' in offPolicy && offPolicy.geometricMean === true && isSingle(offPolicy.per, policy.decoder)) {
    refuse(
      'offPolicy.geometricMean',
      `per ${offPolicy.per} a weight is of one ratio; expected per: trajectory, or leave it out`,
    );
  }
}

/** Refuses teachers and losses on the world's tokens that the policy cannot have. @throws {UserError} BAD_CONFIG */
function checkDistillation({ learner, policy }: RunConfig, source: string): void {
  const { distillation, observationCoef, estimator } = learner;
  const refuse = (key: string, why: string) => {
    throw new UserError('BAD_CONFIG', `${source}: learner.${key}: ${why}`);
  };
  const writesFreely = policyKindOf({ policy }).isLanguageModel && !policy.masked;
  const imitates = estimatorOf(estimator).objective === 'likelihood';
  if (observationCoef !== undefined) {
    if (imitates) refuse('observationCoef', `${estimator.algorithm} imitates; leave observationCoef out`);
    if (!writesFreely) {
      const has = policy.masked ? `${policy.kind} with policy.masked` : policy.kind;
      refuse(
        'observationCoef',
        `the world's tokens are predicted by a language model that writes freely (policy.kind: checkpoint or server, policy.masked: false), got ${has}; the local policy reads a view whole and has no way to predict it`,
      );
    }
  }
  if (!distillation) return;
  const { teacher, useRewards } = distillation;
  if (imitates) refuse('distillation', `${estimator.algorithm} imitates already; leave distillation out`);
  if (learner.selfImitation) refuse('selfImitation', 'a teacher scores what is played now; leave selfImitation out');
  if (teacher.type === 'server' && !writesFreely) {
    refuse(
      'distillation.teacher.type',
      `a server scores tokens that were written freely; expected policy.kind: checkpoint or server with policy.masked: false, got ${policy.kind}${policy.masked ? ' with policy.masked' : ''}; use a teacher of type run`,
    );
  }
  if (useRewards) return;
  if (teacher.type === 'ema') {
    refuse(
      'distillation.useRewards',
      'the average of its own weights teaches nothing new by itself; expected true with a teacher of type ema, got false',
    );
  }
  if (learner.ranking) {
    refuse('ranking', 'nothing is learnt from rewards; leave it out, or set learner.distillation.useRewards');
  }
  if (learner.kl?.in === 'reward') {
    refuse(
      'kl.in',
      'nothing is learnt from rewards; expected loss, got reward, or set learner.distillation.useRewards',
    );
  }
  if (learner.policyLoss && policy.decoder === 'choice') {
    refuse('policyLoss', 'nothing is learnt from rewards; leave it out, or set learner.distillation.useRewards');
  }
}

/** True where a unit of importance weights is one token or one choice. */
function isSingle(per: 'token' | 'decision' | 'trajectory', decoder: RunConfig['policy']['decoder']): boolean {
  return per === 'token' || (per === 'decision' && decoder === 'choice');
}

/** Episodes and turns in memory at once, and weights of a model, at most. */
const MAX_EPISODES = 1_000_000;
const MAX_TURNS = 100_000_000;
const MAX_WEIGHTS = 2e9;

/** Refuses excess in products of keys, which no key shows by itself. @throws {UserError} BAD_CONFIG */
function refuseExcess({ rollout, learner, policy, evaluation, horizon }: RunConfig, source: string): void {
  const refuse = (keys: string, product: number, max: number, what: string) => {
    if (product <= max) return;
    throw new UserError('BAD_CONFIG', `${source}: ${keys} make ${product} ${what}; at most ${max} are held at once`);
  };
  const { groupSize, concurrentGroups } = rollout;
  refuse('rollout.concurrentGroups × groupSize', concurrentGroups * groupSize, MAX_EPISODES, 'episodes');
  const waiting = (learner.maxLag + 1) * maxGroups(learner) * groupSize;
  refuse('(learner.maxLag + 1) × groupsPerUpdate × oversampling × groupSize', waiting, MAX_EPISODES, 'episodes');
  const evaluated = concurrentGroups * evaluation.episodesPerTask;
  refuse('rollout.concurrentGroups × evaluation.episodesPerTask', evaluated, MAX_EPISODES, 'episodes');
  const turns = largestOf([horizon.rounds].flat()) * concurrentGroups * groupSize;
  refuse('horizon.rounds × rollout.concurrentGroups × groupSize', turns, MAX_TURNS, 'turns');
  const evaluatedTurns = largestOf(evaluation.horizons) * evaluated;
  refuse('evaluation.horizons × episodesPerTask × rollout.concurrentGroups', evaluatedTurns, MAX_TURNS, 'turns');
  const { hiddenSize = 64, layers = 2 } = policy.model;
  const weights = layers * 16 * hiddenSize ** 2; // attention 4, a feed-forward layer of four times the width 12
  refuse('policy.model.layers × hiddenSize²', weights, MAX_WEIGHTS, 'weights');
}
