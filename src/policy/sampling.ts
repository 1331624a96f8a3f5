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
const MAX_KEPT = 8;

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
  let peak = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < n; i++) if (scores[i]! > peak) peak = scores[i]!;
  const pairs = new Int32Array(2 * Math.min(MAX_KEPT, n));
  let kept = 0;
  let total = 0;
  for (let i = 0; i < n; i++) {
    const score = scores[i]!;
    total += Math.exp(score - peak);
    if (2 * kept === pairs.length) {
      if (score <= scores[pairs[2 * kept - 2]!]!) continue;
    } else kept++;
    // An insertion: there are eight at most, and this is done at every turn of every episode.
    let at = 2 * kept - 2;
    for (; at > 0 && scores[pairs[at - 2]!]! < score; at -= 2) pairs[at] = pairs[at - 2]!;
    pairs[at] = i;
  }
  for (let at = 0; at < pairs.length; at += 2) {
    pairs[at + 1] = Math.round((PARTS * Math.exp(scores[pairs[at]!]! - peak)) / total);
  }
  return pairs;
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
