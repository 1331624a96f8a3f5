/**
 * Table of the estimators of advantages: one entry and one schema each, in a file of its own. The configuration's
 * `learner.estimator` is the union of the schemas; whoever asks what an estimator needs asks its entry.
 */
import { z } from 'zod';
import { type AgentEvolConfig, agentEvol, agentEvolSchema } from './agent-evol.ts';
import type { CommonConfig, Estimator } from './estimator.ts';
import type { AlgorithmFacts } from './facts.ts';
import { type GigpoConfig, gigpo, gigpoSchema } from './gigpo.ts';
import { type DrGrpoConfig, drGrpo, drGrpoSchema, type GrpoConfig, grpo, grpoSchema } from './grpo.ts';
import { type HgpoConfig, hgpo, hgpoSchema } from './hgpo.ts';
import { type MaxRlConfig, maxRl, maxRlSchema } from './max-rl.ts';
import { type PassAtKConfig, passAtK, passAtKSchema } from './pass-at-k.ts';
import { type PpoConfig, ppo, ppoSchema } from './ppo.ts';
import { type ReinforcePlusPlusConfig, reinforcePlusPlus, reinforcePlusPlusSchema } from './reinforce-plus-plus.ts';
import { type RlooConfig, rloo, rlooSchema } from './rloo.ts';

/** Configuration of an estimator of advantages, by its algorithm. */
export type EstimatorConfig =
  | AgentEvolConfig
  | GrpoConfig
  | DrGrpoConfig
  | RlooConfig
  | ReinforcePlusPlusConfig
  | PpoConfig
  | GigpoConfig
  | HgpoConfig
  | MaxRlConfig
  | PassAtKConfig;

/** Schema of an estimator's configuration. */
export const estimatorSchema = z.discriminatedUnion('algorithm', [
  grpoSchema,
  drGrpoSchema,
  rlooSchema,
  reinforcePlusPlusSchema,
  ppoSchema,
  gigpoSchema,
  hgpoSchema,
  maxRlSchema,
  passAtKSchema,
  agentEvolSchema,
]);

const ESTIMATORS: {
  readonly [A in EstimatorConfig['algorithm']]: Estimator<Extract<EstimatorConfig, { algorithm: A }>>;
} = {
  grpo,
  dr_grpo: drGrpo,
  rloo,
  reinforce_pp: reinforcePlusPlus,
  ppo,
  gigpo,
  hgpo,
  max_rl: maxRl,
  pass_at_k: passAtK,
  agent_evol: agentEvol,
};

/** Estimator of a configuration. */
export function estimatorOf({ algorithm }: EstimatorConfig): Estimator<EstimatorConfig & CommonConfig> {
  // Every entry takes the configuration of its own algorithm, by which it was found.
  return ESTIMATORS[algorithm] as Estimator<never> as Estimator<EstimatorConfig>;
}

/** Facts of the estimators, by algorithm. */
export const estimatorFacts = Object.fromEntries(
  Object.entries(ESTIMATORS).map(([algorithm, { facts }]) => [algorithm, facts]),
) as Readonly<Record<EstimatorConfig['algorithm'], AlgorithmFacts>>;
