import { ShapeError, UserError } from '../core/errors.ts';
import { type Importance, summarizeImportance } from './importance.ts';

/**
 * Second-moment mask of M2PO. Trust-region tokens are those that a further step would push further away: A > 0 and
 * r > 1, or A < 0 and r < 1. Of these the largest (log r)² are left out until the mean of the rest is at most the
 * threshold.
 *
 *   x = log π_learner − log π_behaviour,   M̂₂ = 1/n·Σ x²  ≤ τ
 *
 * Kept tokens weigh 1, the others 0; tokens outside the trust region are always kept. Among equal values the earlier ones stay.
 *
 * Differs from the paper in the moment: it masks anew in every minibatch, under the weights of that step. Here the mask is
 * taken once an update, under its first weights, over all of its decisions. With one optimiser step an update both are
 * the same. AReaL's code compares all tokens, whichever way they moved.
 *
 * @param learner    [N] log π under the learner's weights at the start of the update
 * @param behaviour  [N] log π recorded when the tokens were sampled
 * @param advantages [N] 0 for tokens that are not trained on
 * @param threshold  τ > 0, nats²
 * @throws {ShapeError} if lengths do not fit
 * @throws {UserError} BAD_CONFIG if the threshold is not above 0
 * @see Zheng et al. 2025 (M2PO), algorithm 1. https://arxiv.org/abs/2510.01161
 */
export function maskSecondMoment(
  learner: ArrayLike<number>,
  behaviour: ArrayLike<number>,
  advantages: ArrayLike<number>,
  threshold: number,
): Importance {
  const N = learner.length;
  if (behaviour.length !== N || advantages.length !== N) {
    throw new ShapeError(
      `maskSecondMoment: behaviour and advantages must be [${N}], got [${behaviour.length}] and [${advantages.length}]`,
    );
  }
  if (!(threshold > 0))
    throw new UserError('BAD_CONFIG', `offPolicy.threshold: expected a number above 0, got ${threshold}`);
  const log = Float64Array.from(learner, (x, i) => x - behaviour[i]!);
  const moving = [...log.keys()].filter((i) => log[i]! * advantages[i]! > 0);
  moving.sort((a, b) => log[a]! ** 2 - log[b]! ** 2 || a - b);
  const weights = new Float64Array(N).fill(1);
  let sum = 0;
  for (const [kept, i] of moving.entries()) {
    sum += log[i]! ** 2;
    if (sum / (kept + 1) > threshold) weights[i] = 0; // means of an ascending list ascend: all after it are too far, too
  }
  const units = Array.from(weights, (weight, i) => ({
    length: 1,
    ratio: Math.exp(log[i]!),
    weight,
    isOutside: weight === 0,
  }));
  return { weights, stats: summarizeImportance(log, units) };
}
