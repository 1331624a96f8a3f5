import { ShapeError } from '../core/errors.ts';
import type { Trajectory } from '../core/trajectory.ts';

/** Decisions of a trajectory as columns; D is the number of turns that a policy decided. */
export interface DecisionColumns {
  /** [D] index of each decision's turn, ascending. */
  readonly turns: Int32Array;
  /** [D] reward from this decision until the next one (or the end), discounted to this decision. */
  readonly rewards: Float64Array;
  /** [D] discount from this decision to the next one, or to the final observation: γ^(turns between), γ as a rule, 1 after a stage of an action. */
  readonly discounts: Float64Array;
  /** [D] V at the position that decided. */
  readonly values: Float64Array;
  /** [D] trained tokens of each decision; a choice counts as one. */
  readonly tokens: Int32Array;
}

/**
 * Reads a trajectory as a chain of decisions, one per turn.
 *
 * γ is per turn of the horizon, never per token and never over a stage of an action (`Turn.partial`). Rewards of turns
 * that no policy decided (scripted ones) belong to the decision before them, discounted by the turns in between, so the
 * terminal reward is always on the last *trained* decision. Rewards before the first decision are credited to none and
 * are left out.
 *
 * @param penalty [D] subtracted from each decision's reward (KL in the reward)
 * @throws {ShapeError} if `penalty` is not [D]
 */
export function decisionColumns(trajectory: Trajectory, gamma: number, penalty?: ArrayLike<number>): DecisionColumns {
  const turns: number[] = [];
  for (const [t, { decision }] of trajectory.turns.entries()) if (decision) turns.push(t);
  const D = turns.length;
  if (penalty && penalty.length !== D) throw new ShapeError(`returns: penalty must be [${D}], got [${penalty.length}]`);
  const columns = {
    turns: Int32Array.from(turns),
    rewards: new Float64Array(D),
    discounts: new Float64Array(D),
    values: new Float64Array(D),
    tokens: new Int32Array(D),
  };
  for (let d = 0; d < D; d++) {
    const until = turns[d + 1] ?? trajectory.turns.length;
    let discount = 1;
    for (let t = turns[d]!; t < until; t++) {
      const { reward, partial } = trajectory.turns[t]!;
      columns.rewards[d]! += discount * reward;
      if (!partial) discount *= gamma;
    }
    columns.rewards[d]! -= penalty?.[d] ?? 0;
    columns.discounts[d] = discount;
    const decision = trajectory.turns[turns[d]!]!.decision!;
    columns.values[d] = decision.value;
    columns.tokens[d] = decision.kind === 'tokens' ? decision.tokens.length : 1;
  }
  return columns;
}

/**
 * Discounted rewards-to-go.
 *
 *   Gₜ = rₜ + γₜ·Gₜ₊₁,   G_T = `final`
 *
 * @param rewards   [D]
 * @param discounts [D]
 * @param final     value of what follows the last decision: 0 if the episode terminated, V of the final observation
 *                  if it was cut and is bootstrapped
 * @returns         [D]
 * @throws {ShapeError} if the two differ in length
 */
export function returnsToGo(rewards: Float64Array, discounts: Float64Array, final: number): Float64Array {
  const D = rewards.length;
  if (discounts.length !== D) throw new ShapeError(`returnsToGo: discounts must be [${D}], got [${discounts.length}]`);
  const returns = new Float64Array(D);
  let following = final;
  for (let d = D - 1; d >= 0; d--) returns[d] = following = rewards[d]! + discounts[d]! * following;
  return returns;
}
