import { ShapeError } from '../core/errors.ts';
import { largestOf } from '../core/extremes.ts';

/**
 * Group-relative advantage of GRPO, and Dr. GRPO's without the division.
 *
 *   Aᵢ = (Rᵢ − mean(R)) / (std(R) + ε)      `std: true`   (GRPO)
 *   Aᵢ =  Rᵢ − mean(R)                      `std: false`  (Dr. GRPO; GRPO without the std)
 *
 * The std is the sample's (n − 1), ε = 1e-6, as in verl and AgentGym-RL. Dividing by it weighs tasks that are almost
 * always or almost never solved the most; Dr. GRPO leaves it out for that reason (and the division by length, which
 * is `aggregation` here). A group of one, or one whose scores are all equal, has nothing to compare: all 0, exactly.
 * A score that is not finite makes every advantage of its group NaN, for the circuit breaker to see.
 *
 * @param scores [n] one score per trajectory of the group
 * @returns      [n] advantages
 * @see Shao et al. 2024 (DeepSeekMath), §4.1.2. https://arxiv.org/abs/2402.03300
 * @see Liu et al. 2025 (Dr. GRPO), §3. https://arxiv.org/abs/2503.20783
 */
export function groupAdvantage(scores: ArrayLike<number>, { std }: { readonly std: boolean }): Float64Array {
  const n = scores.length;
  const advantages = new Float64Array(n);
  if (isConstant(scores)) return advantages;
  const mean = sum(scores) / n;
  let squares = 0;
  for (let i = 0; i < n; i++) squares += (scores[i]! - mean) ** 2;
  const scale = std ? Math.sqrt(squares / (n - 1)) + 1e-6 : 1;
  for (let i = 0; i < n; i++) advantages[i] = (scores[i]! - mean) / scale;
  return advantages;
}

/**
 * True when every score is the same finite number, so there is nothing to compare. Compared, not computed: the mean of
 * equal numbers need not equal them in floating point.
 */
export function isConstant(scores: ArrayLike<number>): boolean {
  for (let i = 0; i < scores.length; i++) if (!Number.isFinite(scores[i]!) || scores[i] !== scores[0]) return false;
  return true;
}

/**
 * Compares rewards-to-go at the same decision number (the turn number, where every turn is decided). Row t holds Gₜ of
 * every trajectory, 0 for those that have ended, since nothing is still to come for them; it is passed to `compare`.
 *
 * This is the turn-level form of every group-relative estimator here. Differs from DeepSeekMath's process supervision
 * (§4.1.3), which normalises single step rewards over the group and sums them up. There each turn without a reward
 * costs mean/std, so long episodes are punished for being long.
 *
 * @param returns n arrays [Tᵢ] of rewards-to-go
 * @param compare [n] → [n], a group-relative advantage
 * @returns       n arrays [Tᵢ] of advantages
 * @throws {ShapeError} if `compare` does not keep the shape
 */
export function byTurn(
  returns: readonly Float64Array[],
  compare: (scores: Float64Array) => Float64Array,
): Float64Array[] {
  const out = returns.map(({ length }) => new Float64Array(length));
  const longest = largestOf(
    returns.map(({ length }) => length),
    0,
  );
  for (let t = 0; t < longest; t++) {
    const row = compare(Float64Array.from(returns, (G) => G[t] ?? 0));
    if (row.length !== returns.length)
      throw new ShapeError(`byTurn: compare gave [${row.length}] for [${returns.length}]`);
    for (const [i, advantages] of out.entries()) if (t < advantages.length) advantages[t] = row[i]!;
  }
  return out;
}

function sum(values: ArrayLike<number>): number {
  let total = 0;
  for (let i = 0; i < values.length; i++) total += values[i]!;
  return total;
}
