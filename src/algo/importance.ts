import { ShapeError, UserError } from '../core/errors.ts';

/** Distance between the learner and the policies that sampled its batch. */
export interface ImportanceStats {
  readonly tokens: number;
  /** Mean of the ratios before truncation. */
  readonly mean: number;
  readonly least: number;
  readonly largest: number;
  /** Share of tokens whose ratio was beyond the bounds: truncated, or masked. */
  readonly truncatedShare: number;
  /**
   * Effective sample size as a share, (Σw)² / (n·Σw²) of the truncated weights, in (0, 1]: 1 when all weigh the same;
   * 0 where all are masked.
   */
  readonly effectiveShare: number;
  /** Estimates k1 and k3 of KL(behaviour‖learner) per token. */
  readonly k1: number;
  readonly k3: number;
}

/** Importance weights of a trajectory or a batch, and their statistics. */
export interface Importance {
  /** [N] truncated or masked ratios, to be treated as constants by the loss. */
  readonly weights: Float64Array;
  readonly stats: ImportanceStats;
}

/** Treatment of ratios beyond the bounds. */
export interface ImportanceOptions {
  /** Smallest ratio, in [0, 1]; 0 by default. Only a mask has one. */
  readonly low?: number | undefined;
  /** True where a ratio outside [low, cap] weighs 0; false (the default) where one above `cap` counts as `cap`. */
  readonly mask?: boolean | undefined;
  /** True where the ratio of a segment is the geometric mean of its tokens' ratios; their product by default. */
  readonly geometricMean?: boolean | undefined;
}

/**
 * Truncated or masked importance weights against the behaviour policy's own log-probabilities.
 *
 *   ρₖ = exp(s·Σ over the segment of k of (log π_learner − log π_behaviour)),   s = 1, or 1/length for the geometric mean
 *   wₖ = min(ρₖ, cap)              truncated (TIS)
 *   wₖ = ρₖ if low ≤ ρₖ ≤ cap, else 0     masked (MIS with low = 0; IcePop with both bounds and one token a segment)
 *
 * A segment is what shares one ratio: a token (lower variance, and the usual choice), a decision, or a trajectory
 * (unbiased, and useless for long ones, unless by the geometric mean, which is biased). Truncation from above bounds the
 * variance; small ratios stay as they are.
 *
 * @param learner   [N] log π under the learner's weights at the start of the update
 * @param behaviour [N] log π recorded when the tokens were sampled
 * @param cap       ≥ 1; Infinity leaves ratios as they are
 * @param segments  [S] lengths of the segments, in order, summing to N; absent: one token each
 * @throws {ShapeError} if lengths do not fit
 * @throws {UserError} BAD_CONFIG if `cap` is below 1, or `low` is not in [0, 1]
 * @see Espeholt et al. 2018 (IMPALA), §4.1. https://arxiv.org/abs/1802.01561
 * @see Ling Team 2025 (Ring-1T, IcePop). https://arxiv.org/abs/2510.18855
 */
export function importance(
  learner: ArrayLike<number>,
  behaviour: ArrayLike<number>,
  cap: number,
  segments?: ArrayLike<number>,
  { low = 0, mask = false, geometricMean = false }: ImportanceOptions = {},
): Importance {
  const N = learner.length;
  if (behaviour.length !== N) throw new ShapeError(`importance: behaviour must be [${N}], got [${behaviour.length}]`);
  if (!(cap >= 1)) throw new UserError('BAD_CONFIG', `importance.cap: expected a number ≥ 1, got ${cap}`);
  if (!(low >= 0 && low <= 1))
    throw new UserError('BAD_CONFIG', `importance.low: expected a number in [0, 1], got ${low}`);
  const lengths = segments ? Array.from(segments) : new Array<number>(N).fill(1);
  const covered = lengths.reduce((total, length) => total + length, 0);
  if (covered !== N) throw new ShapeError(`importance: segments must sum to ${N}, got ${covered}`);

  const logs = Float64Array.from(learner, (x, k) => x - behaviour[k]!);
  const weights = new Float64Array(N);
  const units: WeighedUnit[] = [];
  let at = 0;
  for (const length of lengths) {
    let log = 0;
    for (let k = at; k < at + length; k++) log += logs[k]!;
    const ratio = Math.exp(geometricMean && length > 0 ? log / length : log);
    const isOutside = ratio > cap || (mask && ratio < low);
    const weight = mask ? (isOutside ? 0 : ratio) : Math.min(ratio, cap);
    weights.fill(weight, at, at + length);
    at += length;
    if (length > 0) units.push({ length, ratio, weight, isOutside });
  }
  return { weights, stats: summarizeImportance(logs, units) };
}

/** Tokens that share one weight. */
export interface WeighedUnit {
  /** Number of tokens, ≥ 1. */
  readonly length: number;
  /** Ratio before truncation. */
  readonly ratio: number;
  readonly weight: number;
  /** True where it was truncated or masked. */
  readonly isOutside: boolean;
}

/**
 * Summarizes importance weights.
 * @param logs  [N] log π_learner − log π_behaviour of each token
 * @param units of these tokens, in any order
 */
export function summarizeImportance(logs: Float64Array, units: readonly WeighedUnit[]): ImportanceStats {
  const N = logs.length;
  let [mean, least, largest, truncated, total, squares, k1, k3] = [0, Infinity, -Infinity, 0, 0, 0, 0, 0];
  for (const x of logs) {
    k1 -= x / N;
    k3 += (Math.expm1(x) - x) / N;
  }
  for (const { length, ratio, weight, isOutside } of units) {
    mean += (ratio * length) / N;
    least = Math.min(least, ratio);
    largest = Math.max(largest, ratio);
    total += weight * length;
    squares += weight * weight * length;
    if (isOutside) truncated += length;
  }
  const truncatedShare = truncated / N;
  const effectiveShare = squares === 0 ? 0 : (total * total) / (N * squares);
  return { tokens: N, mean, least, largest, truncatedShare, effectiveShare, k1, k3 };
}
