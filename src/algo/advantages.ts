/**
 * Advantages: from groups of trajectories to the advantage, return and weight of each decision. The one place that
 * knows every estimator; each lives in a file of its own.
 *
 * The unit is the decision, one per turn; γ and λ count turns. A decision that is a run of tokens passes its
 * advantage to every one of its tokens. That goes for PPO too: a record holds one critic value per decision, at the
 * position that decided, so the critic is a turn-level one and its target one number per turn. Token-level GAE
 * within a turn would add only discounting of the turn's length, which γ per turn rules out on purpose.
 */
import { UserError } from '../core/errors.ts';
import type { Group, Trajectory } from '../core/trajectory.ts';
import { type Aggregation, aggregationWeights } from './aggregate.ts';
import { gae } from './gae.ts';
import { stepAdvantage } from './gigpo.ts';
import { byTurn, groupAdvantage } from './group-advantage.ts';
import { returnsWithoutBaseline, whiten } from './reinforce-plus-plus.ts';
import { type DecisionColumns, decisionColumns, returnsToGo } from './returns.ts';
import { rloo } from './rloo.ts';

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
export type Truncation = 'terminal' | 'bootstrap' | 'mask';

interface Common {
  /** Discount per turn, in [0, 1]. */
  readonly gamma: number;
  readonly truncation: Truncation;
  readonly aggregation: Aggregation;
}

/** Scores that a group-relative estimator compares. */
interface Credit {
  /**
   * Credit. `trajectory`: the discounted sum of rewards, the same advantage for every decision. `turn`: rewards-to-go
   * at the same decision number (group-advantage.ts).
   */
  readonly credit: 'trajectory' | 'turn';
}

/** GRPO: scores against the mean of their group, by its standard deviation. */
export interface GrpoConfig extends Common, Credit {
  readonly algorithm: 'grpo';
  /** Divides by the group's standard deviation when true. */
  readonly std: boolean;
}

/** GRPO without the division by the standard deviation (of Dr. GRPO); meant with `aggregation: { type: 'constant' }`. */
export interface DrGrpoConfig extends Common, Credit {
  readonly algorithm: 'dr_grpo';
}

/** RLOO: scores against the mean of the others in their group. */
export interface RlooConfig extends Common, Credit {
  readonly algorithm: 'rloo';
}

/** REINFORCE++: returns whitened over the whole batch. */
export interface ReinforcePlusPlusConfig extends Common {
  readonly algorithm: 'reinforce_pp';
  /** Baseline: `group` subtracts the mean score of the group before whitening (reinforce-plus-plus.ts). */
  readonly baseline: 'none' | 'group';
}

/** PPO: generalised advantage estimates against a critic. */
export interface PpoConfig extends Common {
  readonly algorithm: 'ppo';
  /** Lambda λ per decision, in [0, 1]. */
  readonly lambda: number;
  /** Whitens advantages over the batch unless false. Returns are never whitened: the critic learns true values. */
  readonly whiten?: boolean | undefined;
}

/** GiGPO: advantages over episodes, and over turns in the same state. */
export interface GigpoConfig extends Common {
  readonly algorithm: 'gigpo';
  readonly std: boolean;
  /** Weight ω of the step-level advantage, ≥ 0. Default 1, the paper's. */
  readonly stepWeight?: number | undefined;
}

/**
 * AgentEvol: trajectories that earned more than `threshold` are imitated, the others are left out. Nothing is compared;
 * the trainer's loss is the negative log-likelihood. Differs from the paper in going on from the present weights
 * instead of training the base model anew in every iteration.
 * @see Xi et al. 2024 (AgentGym), §4.2, alg. 1. https://arxiv.org/abs/2406.04151
 */
export interface AgentEvolConfig extends Common {
  readonly algorithm: 'agent_evol';
  /** Threshold: a trajectory is imitated when its discounted score is above it; −Infinity imitates all (supervised). */
  readonly threshold: number;
}

/** Configuration of an estimator of advantages, by its algorithm. */
export type EstimatorConfig =
  | AgentEvolConfig
  | GrpoConfig
  | DrGrpoConfig
  | RlooConfig
  | ReinforcePlusPlusConfig
  | PpoConfig
  | GigpoConfig;

/** Inputs of an estimator that a trajectory does not record itself. */
export interface Extras {
  /** Value V of the final observation; read for truncated trajectories under `bootstrap`. */
  readonly finalValue?: number;
  /** [D] subtracted from the decisions' rewards: β·KL to the reference policy (kl.ts), when it is in the reward. */
  readonly penalty?: ArrayLike<number>;
}

/** Estimate of one trajectory: advantages [D] and returns [D] of its D decisions, in order. */
export interface Estimate {
  readonly trajectory: Trajectory;
  /** [D] index of each decision's turn. */
  readonly turns: Int32Array;
  /** [D] */
  readonly advantages: Float64Array;
  /** [D] target of the value head: λ-return for PPO, else the discounted reward-to-go. */
  readonly returns: Float64Array;
  /** [D] weight of each token of the decision in the loss (aggregate.ts); 0 means not trained on. */
  readonly weights: Float64Array;
  /** [D] trained tokens of each decision. */
  readonly tokens: Int32Array;
  /** [D] 1 where the decision is trained on; what `aggregationWeights` takes, per minibatch. */
  readonly trained: Uint8Array;
}

interface Row {
  readonly trajectory: Trajectory;
  readonly columns: DecisionColumns;
  /** Value of what follows the last decision. */
  readonly final: number;
  readonly returns: Float64Array;
  /** Undiscounted sum of rewards from the first decision on, penalties and `final` in it; 0 without a decision. */
  readonly total: number;
  readonly trained: Uint8Array;
}

/**
 * Estimates advantages of a batch of groups.
 *
 * A reward that is not finite yields an advantage that is not finite; nothing is hidden.
 *
 * @param extras    by trajectory; absent where nothing needs it
 * @param anchorOf  GiGPO's name for the state in which turn t was decided; by default what the policy had observed
 * @returns         one estimate per trajectory, in the order of the groups and of the trajectories in them
 * @throws {UserError} BAD_ARGUMENT when `bootstrap` lacks the final value of a truncated trajectory, or `rloo` gets a
 *   group of one; BAD_CONFIG for a parameter out of range
 */
export function estimate(
  groups: readonly Group[],
  config: EstimatorConfig,
  extras: (trajectory: Trajectory) => Extras | undefined = () => undefined,
  anchorOf: (trajectory: Trajectory, turn: number) => string = observed,
): Estimate[] {
  check(config);
  const rows = groups.map(({ trajectories }) => trajectories.map((one) => row(one, config, extras(one))));
  const all = rows.flat();
  let advantages = rows.flatMap((group) => groupAdvantages(group, config, anchorOf));
  const trained = all.map((one) => one.trained);
  const whole = config.algorithm === 'reinforce_pp' || (config.algorithm === 'ppo' && config.whiten !== false);
  const returns =
    config.algorithm === 'ppo'
      ? all.map((one, i) => one.columns.values.map((value, d) => value + advantages[i]![d]!))
      : all.map((one) => one.returns);
  if (whole) advantages = whiten(advantages, trained);
  const tokens = all.map((one) => one.columns.tokens);
  const weights = aggregationWeights(tokens, trained, config.aggregation);
  return all.map(({ trajectory, columns }, i) => ({
    trajectory,
    turns: columns.turns,
    advantages: advantages[i]!,
    returns: returns[i]!,
    weights: weights[i]!,
    tokens: tokens[i]!,
    trained: trained[i]!,
  }));
}

/** Score of each trajectory, as the group-relative estimators compare it: discounted, but GiGPO's. @returns [n] */
export function scores(
  group: Group,
  config: EstimatorConfig,
  extras?: (one: Trajectory) => Extras | undefined,
): Float64Array {
  return Float64Array.from(group.trajectories, (one) => score(row(one, config, extras?.(one)), config));
}

function row(trajectory: Trajectory, config: EstimatorConfig, extras: Extras | undefined): Row {
  const columns = decisionColumns(trajectory, config.gamma, extras?.penalty);
  const D = columns.turns.length;
  const trained = new Uint8Array(D).fill(1);
  let final = 0;
  if (trajectory.end === 'truncated' && config.truncation === 'bootstrap') {
    if (extras?.finalValue === undefined) {
      throw new UserError(
        'BAD_ARGUMENT',
        `estimate: truncation "bootstrap" needs the value of the final observation of episode ${trajectory.episode}; ` +
          'pass extras.finalValue, or choose "mask" or "terminal"',
      );
    }
    final = extras.finalValue;
  }
  const returns = returnsToGo(columns.rewards, columns.discounts, final);
  if (config.algorithm === 'agent_evol' && !((returns[0] ?? 0) > config.threshold)) trained.fill(0);
  if (trajectory.end === 'truncated' && config.truncation === 'mask') {
    if (config.algorithm === 'ppo') trained[D - 1] = 0;
    else trained.fill(0);
  }
  for (let d = 0; d < D; d++) if (trajectory.turns[columns.turns[d]!]!.untrained) trained[d] = 0;
  const undiscounted = decisionColumns(trajectory, 1, extras?.penalty).rewards;
  const total = D === 0 ? 0 : undiscounted.reduce((sum, reward) => sum + reward, final);
  return { trajectory, columns, final, trained, returns, total };
}

function groupAdvantages(
  group: readonly Row[],
  config: EstimatorConfig,
  anchorOf: (trajectory: Trajectory, turn: number) => string,
): Float64Array[] {
  if (config.algorithm === 'ppo') return group.map((one) => criticAdvantages(one, config.lambda));
  const returns = group.map((one) => one.returns);
  const broadcast = (perTrajectory: Float64Array): Float64Array[] =>
    returns.map(({ length }, i) => new Float64Array(length).fill(perTrajectory[i]!));
  const compared = Float64Array.from(group, (one) => score(one, config));

  if (config.algorithm === 'agent_evol') return broadcast(compared.map((R) => (Number.isFinite(R) ? 1 : R)));
  if (config.algorithm === 'reinforce_pp') {
    return config.baseline === 'none' ? returns.map((G) => G.slice()) : withoutGroupMean(group);
  }
  if (config.algorithm === 'gigpo') {
    const { std, stepWeight = 1 } = config;
    const anchors = group.map(({ trajectory, columns }) => Array.from(columns.turns, (t) => anchorOf(trajectory, t)));
    const steps = stepAdvantage(returns, anchors, { std });
    return broadcast(groupAdvantage(compared, { std })).map((A, i) => A.map((a, d) => a + stepWeight * steps[i]![d]!));
  }
  const std = config.algorithm === 'grpo' && config.std;
  const compare = config.algorithm === 'rloo' ? rloo : (R: Float64Array) => groupAdvantage(R, { std });
  return config.credit === 'turn' ? byTurn(returns, compare) : broadcast(compare(compared));
}

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

/** Rewards-to-go of REINFORCE++; the baseline is the mean score of the group's members that are trained on. */
function withoutGroupMean(group: readonly Row[]): Float64Array[] {
  const trained = group.filter((one) => one.trained.some((mark) => mark !== 0));
  const mean = trained.reduce((sum, { total }) => sum + total, 0) / trained.length;
  return group.map(({ columns, final }) => returnsWithoutBaseline(columns.rewards, columns.discounts, final, mean));
}

/** Score of a trajectory: discounted to the first decision, but for GiGPO; 0 without a decision. */
function score({ returns, total }: Row, { algorithm }: EstimatorConfig): number {
  return algorithm === 'gigpo' ? total : (returns[0] ?? 0);
}

/** Observation that a turn answers. */
function observed(trajectory: Trajectory, turn: number): string {
  return trajectory.turns[turn]!.observation;
}

function check(config: EstimatorConfig): void {
  const need = (ok: boolean, key: string, expected: string, got: unknown): void => {
    if (!ok) throw new UserError('BAD_CONFIG', `${config.algorithm}.${key}: expected ${expected}, got ${String(got)}`);
  };
  need(config.gamma >= 0 && config.gamma <= 1, 'gamma', 'in [0, 1]', config.gamma);
  const { truncation } = config;
  need(['terminal', 'bootstrap', 'mask'].includes(truncation), 'truncation', 'terminal, bootstrap or mask', truncation);
  if (config.algorithm === 'ppo') need(config.lambda >= 0 && config.lambda <= 1, 'lambda', 'in [0, 1]', config.lambda);
  if (config.algorithm === 'gigpo')
    need((config.stepWeight ?? 1) >= 0, 'stepWeight', 'a number ≥ 0', config.stepWeight);
}
