/**
 * Parts that all estimators of advantages have: the shape of an entry in the table (estimators.ts), what an entry is given of a
 * trajectory, and the keys that every configuration has.
 */
import { z } from 'zod';
import type { Trajectory } from '../core/trajectory.ts';
import { aggregationSchema } from './aggregate.ts';
import type { AlgorithmFacts } from './facts.ts';
import { byTurn } from './group-advantage.ts';
import { share } from './ranges.ts';
import type { DecisionColumns } from './returns.ts';

const truncationSchema = z.enum(['terminal', 'bootstrap', 'mask']);

/**
 * Treatment of an episode that the horizon cut.
 *
 * - `terminal`: as if the world had ended there, worth 0 from then on. Right where the horizon is part of the task;
 * - `bootstrap`: V of the final observation stands in for the turns never played; needs `finalValue`;
 * - `mask`: what cannot be known is not trained on. With a critic that is the last decision alone (its own outcome is
 *   missing; V at that decision stands in for the earlier ones). Without a critic it is every decision of the
 *   trajectory, whose score still takes part in its group's comparison (DAPO's overlong filtering); in REINFORCE++
 *   it enters no statistic, neither the group's mean nor the batch's.
 */
export type Truncation = z.infer<typeof truncationSchema>;

/** Keys of every estimator's configuration. */
export const commonShape = {
  gamma: share.default(1).describe('Discount of later rewards, per turn.'),
  truncation: truncationSchema
    .default('terminal')
    .describe(
      "A truncated episode's end: as if the world had ended it, with the critic's value in place of what is missing, or not trained on.",
    ),
  aggregation: aggregationSchema
    .default({ type: 'token-mean' })
    .describe('Weights of tokens in the loss: each the same, each trajectory the same, or 1/`tokens` each (Dr. GRPO).'),
};

const commonSchema = z.strictObject(commonShape);
/** Configuration that every estimator has. */
export type CommonConfig = z.infer<typeof commonSchema>;

/**
 * Scores that a group-relative estimator compares. `trajectory`: the discounted sum of rewards, the same advantage for every decision.
 * `turn`: rewards-to-go at the same decision number (group-advantage.ts).
 */
export const credit = z
  .enum(['trajectory', 'turn'])
  .default('trajectory')
  .describe('Unit of comparison within a group: whole trajectories, or turn by turn.');

/** Division by the group's standard deviation. */
export const std = z.boolean().default(true).describe("Divide advantages by the group's standard deviation.");

/** Score that tells good episodes from bad ones. */
export const threshold = z
  .number()
  .min(-1e9)
  .max(1e9)
  .default(0)
  .describe('Episodes that score more are imitated (agent_evol), or count as solved (pass_at_k).');

/** Trajectory of a group, as estimators read it. */
export interface Row {
  readonly trajectory: Trajectory;
  readonly columns: DecisionColumns;
  /** Value of what follows the last decision. */
  readonly final: number;
  /** [D] discounted rewards-to-go. */
  readonly returns: Float64Array;
  /** Undiscounted sum of rewards from the first decision on, penalties and `final` in it; 0 without a decision. */
  readonly total: number;
  /** [D] 1 where the decision is trained on. */
  readonly trained: Uint8Array;
}

/** Name of the state in which a turn was decided. */
export type AnchorOf = (trajectory: Trajectory, turn: number) => string;

/** Refuses a parameter out of range by its key. */
export type Need = (ok: boolean, key: string, expected: string, got: unknown) => void;

/** Estimator of advantages: an entry of the table. */
export interface Estimator<C extends CommonConfig> {
  /** Name, paper and use. */
  readonly facts: AlgorithmFacts;
  /** True where the episodes of a group are compared, of which there have to be two. */
  readonly needsGroup: boolean;
  /** True where advantages are taken against a critic's values. */
  readonly needsCritic: boolean;
  /** True where the states of turns are compared, which have to be named. */
  readonly needsAnchors: boolean;
  /** Loss: the clipped surrogate, or the likelihood of what is imitated. */
  readonly objective: 'policy' | 'likelihood';
  /** True where nothing can be learnt from a group whose trajectories all scored the same. */
  comparesTrajectories(config: C): boolean;
  /** True where advantages are whitened over the whole batch. */
  whitens(config: C): boolean;
  /** Smallest group that it can compare; 2 where absent and `needsGroup`. */
  minMembers?(config: C): number;
  /** Score of a trajectory, as its group compares it. */
  score(row: Row): number;
  /** Advantages of the decisions of a group, [D] a trajectory. */
  advantages(group: readonly Row[], config: C, anchorOf: AnchorOf): Float64Array[];
  /** False for a trajectory that is left out by its discounted return. */
  trains?(score: number, config: C): boolean;
  /** Checks parameters of its own; `need` throws. */
  check?(config: C, need: Need): void;
}

/** Parts of an estimator that most have: no critic, no anchors, the surrogate, discounted scores. */
export const estimatorDefaults = {
  needsGroup: false,
  needsCritic: false,
  needsAnchors: false,
  objective: 'policy',
  comparesTrajectories: () => false,
  whitens: () => false,
  score: ({ returns }: Row) => returns[0] ?? 0,
} as const;

/** Gives every decision of a trajectory the trajectory's own advantage. @param perTrajectory [n] @returns n arrays [D] */
export function broadcast(group: readonly Row[], perTrajectory: Float64Array): Float64Array[] {
  return group.map(({ returns }, i) => new Float64Array(returns.length).fill(perTrajectory[i]!));
}

/**
 * Estimator that compares the scores of a group.
 * @param compare [n] scores → [n] advantages
 */
export function groupRelative<C extends CommonConfig & { credit: z.infer<typeof credit> }>(
  facts: AlgorithmFacts,
  compare: (scores: Float64Array, config: C) => Float64Array,
): Estimator<C> {
  const { score } = estimatorDefaults;
  return {
    ...estimatorDefaults,
    facts,
    needsGroup: true,
    comparesTrajectories: (config) => config.credit === 'trajectory',
    advantages(group, config) {
      if (config.credit === 'turn') {
        return byTurn(
          group.map(({ returns }) => returns),
          (scores) => compare(scores, config),
        );
      }
      return broadcast(group, compare(Float64Array.from(group, score), config));
    },
  };
}
