/** Sampling from scores, with the log-probability of what was drawn. */
import type { Rng } from '../core/rng.ts';

/** Outcome of a draw. */
export interface Drawn {
  /** Position in the list that was drawn from. */
  readonly at: number;
  /** Log-probability log π(drawn) at temperature 1 over the listed scores: what the learner recomputes. */
  readonly logprob: number;
}

/** Most alternatives that a decision keeps the probability of. */
const MOST_KEPT = 8;

/** Parts that a probability is kept in: enough for a bar, and four digits in a trace. */
const PARTS = 10_000;

/**
 * Likeliest alternatives of softmax(scores).
 * @param scores scores of the listed alternatives, finite
 * @returns [2·K] K = min(8, listed) pairs of a position and its probability in ten-thousandths, likeliest first; of equals
 * the first
 */
export function likeliestOf(scores: ArrayLike<number>): Int32Array {
  const n = scores.length;
  const order: number[] = [];
  let total = 0;
  let peak = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < n; i++) peak = Math.max(peak, scores[i]!);
  for (let i = 0; i < n; i++) {
    const score = scores[i]!;
    total += Math.exp(score - peak);
    if (order.length === MOST_KEPT && score <= scores[order[MOST_KEPT - 1]!]!) continue;
    let at = order.length;
    while (at > 0 && scores[order[at - 1]!]! < score) at--; // an insertion: there are eight at most
    order.splice(at, 0, i);
    if (order.length > MOST_KEPT) order.pop();
  }
  return Int32Array.from(order.flatMap((i) => [i, Math.round((PARTS * Math.exp(scores[i]! - peak)) / total)]));
}

/**
 * Draws from scores.
 * @param scores scores of the listed alternatives, at least one, finite
 * @param temperature 1 draws from softmax(scores); 0 takes the first best
 */
export function drawFrom(scores: ArrayLike<number>, temperature: number, rng: Rng): Drawn {
  const n = scores.length;
  let best = 0;
  for (let i = 1; i < n; i++) if (scores[i]! > scores[best]!) best = i;
  // Shifted by the largest score: no exponent overflows, and at least one term is 1.
  const peak = scores[best]!;
  let total = 0;
  for (let i = 0; i < n; i++) total += Math.exp(scores[i]! - peak);
  const logprob = (i: number) => scores[i]! - peak - Math.log(total);
  if (!Number.isFinite(total))
    throw new RangeError(`sampling: scores must be finite, got ${Array.from(scores).find((s) => !Number.isFinite(s))}`);
  if (temperature === 0) return { at: best, logprob: logprob(best) };
  let scaled = total;
  if (temperature !== 1) {
    scaled = 0;
    for (let i = 0; i < n; i++) scaled += Math.exp((scores[i]! - peak) / temperature);
  }
  // Inverse transform in index order: one uniform number per draw, so streams of draws can be compared between policies.
  let left = rng.float() * scaled;
  let at = n - 1; // where rounding leaves a little of the sum over
  for (let i = 0; i < n; i++) {
    left -= Math.exp((scores[i]! - peak) / temperature);
    if (left < 0) {
      at = i;
      break;
    }
  }
  return { at, logprob: logprob(at) };
}
