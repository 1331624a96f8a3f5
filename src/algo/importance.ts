import { ShapeError, UserError } from '../core/errors.ts';

/** Distance between the learner and the policies that sampled its batch. */
export interface ImportanceStats {
  readonly tokens: number;
  /** Mean of the ratios before truncation. */
  readonly mean: number;
  readonly least: number;
  readonly largest: number;
  /** Share of tokens whose ratio exceeded the cap. */
  readonly truncatedShare: number;
  /**
   * Effective sample size as a share, (Σw)² / (n·Σw²) of the truncated weights, in (0, 1]: 1 when all weigh the same.
   */
  readonly effectiveShare: number;
  /** Estimates k1 and k3 of KL(behaviour‖learner) per token. */
  readonly k1: number;
  readonly k3: number;
}

/** Importance weights of a trajectory or a batch, and their statistics. */
export interface Importance {
  /** [N] min(ratio, cap), to be treated as constants by the loss. */
  readonly weights: Float64Array;
  readonly stats: ImportanceStats;
}

/**
 * Truncated importance weights against the behaviour policy's own log-probabilities.
 *
 *   ρₖ = exp(Σ over the segment of k of (log π_learner − log π_behaviour)),   wₖ = min(ρₖ, cap)
 *
 * A segment is what shares one ratio: a token (lower variance, and the usual choice), a decision, or a trajectory
 * (unbiased, and useless for long ones). Truncation from above bounds the variance; small ratios stay as they are.
 *
 * @param learner   [N] log π under the learner's weights at the start of the update
 * @param behaviour [N] log π recorded when the tokens were sampled
 * @param cap       ≥ 1; Infinity leaves ratios as they are
 * @param segments  [S] lengths of the segments, in order, summing to N; absent: one token each
 * @throws {ShapeError} if lengths do not fit
 * @throws {UserError} BAD_CONFIG if `cap` is below 1
 * @see Espeholt et al. 2018 (IMPALA), §4.1. https://arxiv.org/abs/1802.01561
 */
export function importance(
  learner: ArrayLike<number>,
  behaviour: ArrayLike<number>,
  cap: number,
  segments?: ArrayLike<number>,
): Importance {
  const N = learner.length;
  if (behaviour.length !== N) throw new ShapeError(`importance: behaviour must be [${N}], got [${behaviour.length}]`);
  if (!(cap >= 1)) throw new UserError('BAD_CONFIG', `importance.cap: expected a number ≥ 1, got ${cap}`);
  const lengths = segments ? Array.from(segments) : new Array<number>(N).fill(1);
  const covered = lengths.reduce((total, length) => total + length, 0);
  if (covered !== N) throw new ShapeError(`importance: segments must sum to ${N}, got ${covered}`);

  const weights = new Float64Array(N);
  let [mean, least, largest, truncated, total, squares, k1, k3] = [0, Infinity, -Infinity, 0, 0, 0, 0, 0];
  let at = 0;
  for (const length of lengths) {
    let log = 0;
    for (let k = at; k < at + length; k++) {
      const x = learner[k]! - behaviour[k]!;
      log += x;
      k1 -= x / N;
      k3 += (Math.expm1(x) - x) / N;
    }
    const ratio = Math.exp(log);
    const weight = Math.min(ratio, cap);
    weights.fill(weight, at, at + length);
    at += length;
    if (length === 0) continue;
    mean += (ratio * length) / N;
    least = Math.min(least, ratio);
    largest = Math.max(largest, ratio);
    total += weight * length;
    squares += weight * weight * length;
    if (ratio > cap) truncated += length;
  }
  const truncatedShare = truncated / N;
  const effectiveShare = (total * total) / (N * squares);
  return { weights, stats: { tokens: N, mean, least, largest, truncatedShare, effectiveShare, k1, k3 } };
}
