/**
 * Surrogates: the tensors of the policy losses, one entry each. Their configuration is `src/algo/policy-loss.ts`; every number
 * of it is a scalar input of the graph of its name (`loss.clipLow`, …).
 *
 * Common to all: r = exp(log π − log π_old), the log-ratio clamped to ±20, beyond which it has no slope. A is the
 * advantage times the importance weight, which is ≥ 0 and keeps its sign. Each gives the loss of a decision, to be weighed
 * and summed by `policyLoss` (loss.ts).
 */
import type { PolicyLossType } from '../../algo/policy-loss.ts';
import {
  add,
  and,
  cast,
  clamp,
  div,
  equal,
  exp,
  gather,
  greaterEqual,
  lessEqual,
  log,
  maximum,
  minimum,
  mul,
  neg,
  not,
  or,
  reshape,
  scatterAdd,
  sigmoid,
  stopGradient,
  sub,
  where,
} from '../tensor/ops.ts';
import { type Shape, times } from '../tensor/shape.ts';
import { input, type Tensor } from '../tensor/tensor.ts';

/** Tensors that a surrogate is made of, in the decisions' shape. */
export interface SurrogateTerms {
  /** log π of the weights being trained. */
  readonly logprob: Tensor;
  readonly oldLogprob: Tensor;
  /** log π − log π_old, clamped. */
  readonly logRatio: Tensor;
  /** exp(logRatio) */
  readonly ratio: Tensor;
  readonly advantage: Tensor;
  readonly shape: Shape;
  /** Scalar input of the graph. */
  readonly scalar: (name: string) => Tensor;
}

/** Loss of each decision, and where its trust region binds. */
export interface Surrogate {
  readonly loss: Tensor;
  /** 1 where the clip or mask binds, else 0; absent where there is neither. */
  readonly clipped?: Tensor | undefined;
}

/**
 * PPO-clip: ℓ = −min(r·A, clip(r, 1−ε_lo, 1+ε_hi)·A).
 * @see Schulman et al. 2017, eq. 7, https://arxiv.org/abs/1707.06347; Yu et al. 2025 (clip-higher),
 *   https://arxiv.org/abs/2503.14476
 */
function ppoClip({ ratio, advantage, scalar }: SurrogateTerms): Surrogate {
  const clipped = clipAroundOne(ratio, scalar);
  const gain = mul(ratio, advantage);
  const clippedGain = mul(clipped, advantage);
  return {
    loss: neg(minimum(gain, clippedGain)),
    clipped: sub(1, cast(lessEqual(gain, clippedGain), 'f32')),
  };
}

/**
 * GSPO-token: PPO-clip with the ratio of the sequence y in the place of the token's,
 *
 *   s = exp(1/|y|·Σ (log π − log π_old)),   sₜ = sg[s]·πₜ/sg[πₜ]
 *
 * over the trained tokens of y. Where all tokens of y have one advantage and one weight, value and gradient are GSPO's (eq. 5).
 * Declares `decisions.sequence` (number of the row that stands for the sequence, i32) and `decisions.sequenceShare` (1/|y|,
 * 0 for what is not trained). A sequence must lie in one pass whole.
 * @see Zheng et al. 2025 (GSPO), eq. 5–7 and 13–14. https://arxiv.org/abs/2507.18071
 */
function gspo({ logprob, oldLogprob, shape, ...rest }: SurrogateTerms): Surrogate {
  const rows = shape.length === 1 ? shape[0]! : times(String(shape[0]), String(shape[1]));
  const ids = reshape(input('decisions.sequence', shape, 'i32'), [rows]);
  const shares = mul(stopGradient(sub(logprob, oldLogprob)), input('decisions.sequenceShare', shape));
  const mean = reshape(gather(scatterAdd(ids, reshape(shares, [rows]), 0, [rows]), ids), shape);
  const logRatio = clamp(add(mean, sub(logprob, stopGradient(logprob))), -20, 20);
  return ppoClip({ ...rest, logprob, oldLogprob, shape, logRatio, ratio: exp(logRatio) });
}

/**
 * CISPO: ℓ = −sg[clip(r, 1−ε_lo, 1+ε_hi)]·A·log π.
 * @see MiniMax 2025 (MiniMax-M1), §3.1. https://arxiv.org/abs/2506.13585
 */
function cispo({ logprob, ratio, advantage, scalar }: SurrogateTerms): Surrogate {
  const weight = stopGradient(clipAroundOne(ratio, scalar));
  return { loss: neg(mul(mul(weight, advantage), logprob)), clipped: cast(not(equal(ratio, weight)), 'f32') };
}

/**
 * SAPO: ℓ = −4/τ·σ(τ·(r − 1))·A, τ = τ_pos where A > 0, else τ_neg. At r = 1 its slope is A, as PPO's.
 * @see Gao et al. 2025 (SAPO), Soft Adaptive Policy Optimization. https://arxiv.org/abs/2511.20347
 */
function sapo({ ratio, advantage, scalar }: SurrogateTerms): Surrogate {
  const tau = where(lessEqual(advantage, 0), scalar('tauNegative'), scalar('tauPositive'));
  const gate = div(mul(4, sigmoid(mul(tau, sub(ratio, 1)))), tau);
  return { loss: neg(mul(gate, advantage)) };
}

/**
 * DPPO with binary total variation: ℓ = −M·r·A, M = 0 where A > 0 and π − π_old > δ_hi, or A < 0 and
 * π − π_old < −δ_lo, else 1. Differs from verl, which cuts r at 20.
 * @see Rethinking the Trust Region in LLM Reinforcement Learning, 2026 (DPPO). https://arxiv.org/abs/2602.04879
 */
function dppoTv(terms: SurrogateTerms): Surrogate {
  const moved = sub(exp(stopGradient(terms.logprob)), exp(terms.oldLogprob));
  const { scalar } = terms;
  return maskDrift(
    terms,
    not(lessEqual(moved, scalar('deltaHigh'))),
    not(greaterEqual(moved, neg(scalar('deltaLow')))),
  );
}

/**
 * DPPO with binary KL: as {@link dppoTv}, with KL(π_old‖π) of "this action or another" in the place of |π − π_old|,
 *
 *   D = π_old·log(π_old/π) + (1 − π_old)·log((1 − π_old + 1e-8)/(1 − π + 1e-8))
 *
 * masked where A > 0, π > π_old and D > δ_hi, or A < 0, π < π_old and D > δ_lo.
 * @see Rethinking the Trust Region in LLM Reinforcement Learning, 2026 (DPPO). https://arxiv.org/abs/2602.04879
 */
function dppoKl(terms: SurrogateTerms): Surrogate {
  const { oldLogprob, scalar } = terms;
  const logprob = stopGradient(terms.logprob);
  const [p, old] = [exp(logprob), exp(oldLogprob)];
  const [q, oldQ] = [maximum(sub(1, p), 0), maximum(sub(1, old), 0)];
  const divergence = add(mul(old, sub(oldLogprob, logprob)), mul(oldQ, log(div(add(oldQ, 1e-8), add(q, 1e-8)))));
  const beyond = (delta: string) => not(lessEqual(divergence, scalar(delta)));
  return maskDrift(
    terms,
    and(beyond('deltaHigh'), not(lessEqual(logprob, oldLogprob))),
    and(beyond('deltaLow'), not(greaterEqual(logprob, oldLogprob))),
  );
}

/** Importance-weighted policy gradient: ℓ = −r·A. */
function unclipped({ ratio, advantage }: SurrogateTerms): Surrogate {
  return { loss: neg(mul(ratio, advantage)) };
}

/** Surrogates by the name of the policy loss. */
export const SURROGATES: Readonly<Record<PolicyLossType, (terms: SurrogateTerms) => Surrogate>> = {
  ppo_clip: ppoClip,
  gspo,
  cispo,
  sapo,
  dppo_tv: dppoTv,
  dppo_kl: dppoKl,
  unclipped,
};

/** −r·A, but 0 where the advantage is above 0 and the first mask holds, or below 0 and the second. */
function maskDrift({ ratio, advantage }: SurrogateTerms, above: Tensor, below: Tensor): Surrogate {
  const rises = not(lessEqual(advantage, 0));
  const falls = not(greaterEqual(advantage, 0));
  const clipped = cast(or(and(rises, above), and(falls, below)), 'f32');
  return { loss: neg(mul(mul(ratio, advantage), sub(1, clipped))), clipped };
}

/** Ratio, held in [1 − clipLow, 1 + clipHigh]. */
function clipAroundOne(ratio: Tensor, scalar: SurrogateTerms['scalar']): Tensor {
  return minimum(maximum(ratio, sub(1, scalar('clipLow'))), add(1, scalar('clipHigh')));
}
