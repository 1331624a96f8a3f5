import { ShapeError } from '../core/errors.ts';

export interface GaeInput {
  /** [D] reward of each decision. */
  readonly rewards: Float64Array;
  /** [D] V at each decision, under the behaviour policy. */
  readonly values: Float64Array;
  /** [D] discount to the next decision, or to the final observation; γ each where every turn is decided. */
  readonly discounts: Float64Array;
  /** Lambda in [0, 1], per decision: 0 is one-step TD, 1 is Monte Carlo. */
  readonly lambda: number;
  /**
   * Value V of what follows the last decision. 0 if the episode terminated: no future, nothing bootstrapped. V of the
   * final observation if the horizon cut a live episode: it stands in for the turns that were never played.
   */
  readonly final: number;
}

/**
 * Generalised advantage estimation over the decisions of one episode.
 *
 *   δₜ = rₜ + γₜ·vₜ₊₁ − vₜ        (v_D = `final`)
 *   Aₜ = δₜ + γₜλ·Aₜ₊₁
 *
 * Accumulated in float64. Confusing termination with truncation biases every short-horizon stage of a curriculum,
 * which is why `final` has no default. Differs from AgentGym-RL: it computes the same recursion per token with the
 * terminal reward on a token outside the loss mask, which loses it.
 *
 * @returns [D] advantages; add values[t] for the λ-return
 * @throws {ShapeError} if the columns differ in length
 * @see Schulman et al. 2016, eq. 16. https://arxiv.org/abs/1506.02438
 */
export function gae({ rewards, values, discounts, lambda, final }: GaeInput): Float64Array {
  const D = rewards.length;
  if (values.length !== D || discounts.length !== D) {
    throw new ShapeError(`gae: values and discounts must be [${D}], got [${values.length}] and [${discounts.length}]`);
  }
  const advantages = new Float64Array(D);
  let following = 0; // Aₜ₊₁
  let future = final; // vₜ₊₁
  for (let d = D - 1; d >= 0; d--) {
    const delta = rewards[d]! + discounts[d]! * future - values[d]!;
    advantages[d] = following = delta + discounts[d]! * lambda * following;
    future = values[d]!;
  }
  return advantages;
}
