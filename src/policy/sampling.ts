/** Sampling from scores, with the log-probability of what was drawn. */
import type { TokenSampling } from '../core/model-call.ts';
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

/** Ids that penalties look at. */
export interface SeenTokens {
  /** Prompt and answer so far, the answer included. */
  readonly read: Iterable<number>;
  /** Answer so far. */
  readonly written: Iterable<number>;
}

/**
 * Penalises scores by the tokens that were read and written, as vLLM does: repetition over prompt and answer (transformers'
 * too), presence and frequency over the answer (OpenAI's definition). llama.cpp looks at the newest 64 tokens alone.
 * @param logits [V] scores by id; they stay as they are
 * @returns [V] penalised scores, or `logits` where no setting penalises
 */
export function penalise(logits: Float32Array, settings: TokenSampling, { read, written }: SeenTokens): Float32Array {
  const { repetitionPenalty = 1, presencePenalty = 0, frequencyPenalty = 0 } = settings;
  if (repetitionPenalty === 1 && presencePenalty === 0 && frequencyPenalty === 0) return logits;
  const scores = logits.slice();
  if (repetitionPenalty !== 1) {
    for (const id of new Set(read)) {
      const score = logits[id]!;
      scores[id] = score > 0 ? score / repetitionPenalty : score * repetitionPenalty;
    }
  }
  const counts = new Map<number, number>();
  for (const id of written) counts.set(id, (counts.get(id) ?? 0) + 1);
  for (const [id, count] of counts) scores[id]! -= presencePenalty + count * frequencyPenalty;
  return scores;
}

/**
 * Truncates a distribution, in the order of transformers and vLLM: temperature, top-k, top-p of what is left, min-p of what is
 * left. (llama.cpp applies the temperature last.) Scores that equal the k-th are kept with it. Of equals, top-p keeps the first.
 * @param scores scores of the alternatives
 * @param temperature 0 truncates nothing: the best is taken anyway
 * @returns positions that are left, ascending, at least one; undefined where all are
 */
export function truncate(scores: Float32Array, temperature: number, settings: TokenSampling): Int32Array | undefined {
  const n = scores.length;
  const { topK = n, topP = 1, minP = 0 } = settings;
  // Scores that are not finite are found by the draw.
  if (temperature === 0 || (topK >= n && topP >= 1 && minP <= 0) || !scores.every(Number.isFinite)) return undefined;
  const floor = topK >= n ? Number.NEGATIVE_INFINITY : findLargest(scores, topK);
  let left: number[] = [];
  let peak = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < n; i++) {
    if (scores[i]! < floor) continue;
    left.push(i);
    if (scores[i]! > peak) peak = scores[i]!;
  }
  const weight = (i: number) => Math.exp((scores[i]! - peak) / temperature);
  if (topP < 1) left = keepNucleus(left, weight, topP);
  if (minP > 0) left = left.filter((i) => weight(i) >= minP);
  return Int32Array.from(left);
}

/** Finds the k-th largest score. A vocabulary is long and k short: a heap of k beats sorting all. */
function findLargest(scores: Float32Array, k: number): number {
  const heap = scores.slice(0, k).sort(); // ascending, so the smallest is on top
  for (let i = k; i < scores.length; i++) {
    const score = scores[i]!;
    if (score <= heap[0]!) continue;
    let at = 0;
    for (let child = 1; child < k; child = 2 * at + 1) {
      if (child + 1 < k && heap[child + 1]! < heap[child]!) child++;
      if (heap[child]! >= score) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = score;
  }
  return heap[0]!;
}

/** Likeliest positions whose weights make up the share `topP` of all, the one that reaches it included; ascending. */
function keepNucleus(positions: readonly number[], weight: (i: number) => number, topP: number): number[] {
  const weights = Float64Array.from(positions, weight);
  const total = weights.reduce((sum, one) => sum + one, 0);
  // All that are lighter than this weigh less than 1 − topP together, so none of them is needed: sorting them costs the most.
  const light = ((1 - topP) * total) / positions.length;
  const heavy: number[] = [];
  for (let i = 0; i < weights.length; i++) if (weights[i]! >= light) heavy.push(i);
  heavy.sort((a, b) => weights[b]! - weights[a]! || a - b);
  let mass = 0;
  const reached = heavy.findIndex((i) => (mass += weights[i]!) >= topP * total);
  const kept = reached < 0 ? heavy : heavy.slice(0, reached + 1);
  return kept.sort((a, b) => a - b).map((i) => positions[i]!);
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
