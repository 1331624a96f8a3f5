/**
 * Advantages: from groups of trajectories to the advantage, return and weight of each decision. Each estimator
 * is an entry of the table in estimators.ts; here is what they have in common.
 *
 * The unit is the decision, one per turn; γ and λ count turns. A decision that is a run of tokens passes its
 * advantage to every one of its tokens. That goes for PPO too: a record holds one critic value per decision, at the
 * position that decided, so the critic is a turn-level one and its target one number per turn. Token-level GAE
 * within a turn would add only discounting of the turn's length, which γ per turn rules out on purpose.
 */
import { UserError } from '../core/errors.ts';
import type { Group, Trajectory } from '../core/trajectory.ts';
import { aggregationWeights } from './aggregate.ts';
import type { AnchorOf, Row } from './estimator.ts';
import { type EstimatorConfig, estimatorOf } from './estimators.ts';
import { whiten } from './reinforce-plus-plus.ts';
import { decisionColumns, returnsToGo } from './returns.ts';

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

/** Estimators of the worlds of a run of several. */
export interface WorldEstimators {
  /** Configuration by world (`Task.env`): one algorithm, with γ and λ of each world. */
  readonly configs: Readonly<Record<string, EstimatorConfig>>;
  /** True to whiten over each world's trajectories by themselves: the scale of one world's rewards is then none of another's. */
  readonly normalizePerWorld: boolean;
}

/** Estimator's configuration for a group: its world's. */
export function configFor(
  { task }: Pick<Group, 'task'>,
  config: EstimatorConfig,
  worlds: WorldEstimators | undefined,
): EstimatorConfig {
  return worlds?.configs[task.env] ?? config;
}

/**
 * Estimates advantages of a batch of groups.
 *
 * A reward that is not finite yields an advantage that is not finite; nothing is hidden.
 *
 * @param extras    by trajectory; absent where nothing needs it
 * @param anchorOf  the estimator's name for the state in which turn t was decided; by default what the policy had observed
 * @param worlds    of a run of several worlds: each group is estimated by its own world's configuration
 * @returns         one estimate per trajectory, in the order of the groups and of the trajectories in them
 * @throws {UserError} BAD_ARGUMENT when `bootstrap` lacks the final value of a truncated trajectory, or `rloo` gets a
 *   group of one; BAD_CONFIG for a parameter out of range
 */
export function estimate(
  groups: readonly Group[],
  config: EstimatorConfig,
  extras: (trajectory: Trajectory) => Extras | undefined = () => undefined,
  anchorOf: AnchorOf = readObservation,
  worlds?: WorldEstimators,
): Estimate[] {
  for (const one of worlds ? Object.values(worlds.configs) : [config]) check(one);
  const estimator = estimatorOf(config);
  const configs = groups.map((group) => configFor(group, config, worlds));
  const rows = groups.map(({ trajectories }, g) => trajectories.map((one) => row(one, configs[g]!, extras(one))));
  const all = rows.flat();
  let advantages = rows.flatMap((group, g) => estimator.advantages(group, configs[g]!, anchorOf));
  const trained = all.map((one) => one.trained);
  const returns = estimator.needsCritic
    ? all.map((one, i) => one.columns.values.map((value, d) => value + advantages[i]![d]!))
    : all.map((one) => one.returns);
  if (estimator.whitens(config)) {
    const worldOf = worlds?.normalizePerWorld ? ({ trajectory }: Row) => trajectory.task.env : () => '';
    advantages = whitenBy(all.map(worldOf), advantages, trained);
  }
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

/** Whitens the advantages of each part by themselves. @param partOf [n] part of each trajectory */
function whitenBy(
  partOf: readonly string[],
  advantages: readonly Float64Array[],
  trained: readonly Uint8Array[],
): Float64Array[] {
  const whitened = [...advantages];
  for (const part of new Set(partOf)) {
    const own = partOf.flatMap((one, i) => (one === part ? [i] : []));
    const parts = whiten(
      own.map((i) => advantages[i]!),
      own.map((i) => trained[i]!),
    );
    for (const [n, i] of own.entries()) whitened[i] = parts[n]!;
  }
  return whitened;
}

/** Score of each trajectory, as the group-relative estimators compare it: discounted, but GiGPO's. @returns [n] */
export function scores(
  group: Group,
  config: EstimatorConfig,
  extras?: (one: Trajectory) => Extras | undefined,
): Float64Array {
  return Float64Array.from(group.trajectories, (one) => estimatorOf(config).score(row(one, config, extras?.(one))));
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
  const { needsCritic, trains } = estimatorOf(config);
  if (trains && !trains(returns[0] ?? 0, config)) trained.fill(0);
  if (trajectory.end === 'truncated' && config.truncation === 'mask') {
    if (needsCritic) trained[D - 1] = 0;
    else trained.fill(0);
  }
  for (let d = 0; d < D; d++) if (trajectory.turns[columns.turns[d]!]!.untrained) trained[d] = 0;
  const undiscounted = decisionColumns(trajectory, 1, extras?.penalty).rewards;
  const total = D === 0 ? 0 : undiscounted.reduce((sum, reward) => sum + reward, final);
  return { trajectory, columns, final, trained, returns, total };
}

/** Observation that a turn answers. */
function readObservation(trajectory: Trajectory, turn: number): string {
  return trajectory.turns[turn]!.observation;
}

function check(config: EstimatorConfig): void {
  const need = (ok: boolean, key: string, expected: string, got: unknown): void => {
    if (!ok) throw new UserError('BAD_CONFIG', `${config.algorithm}.${key}: expected ${expected}, got ${String(got)}`);
  };
  need(config.gamma >= 0 && config.gamma <= 1, 'gamma', 'in [0, 1]', config.gamma);
  const { truncation } = config;
  need(['terminal', 'bootstrap', 'mask'].includes(truncation), 'truncation', 'terminal, bootstrap or mask', truncation);
  estimatorOf(config).check?.(config, need);
}
