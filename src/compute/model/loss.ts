/**
 * Policy-gradient loss over decisions, as part of the training graph. Every coefficient is an input, so one compiled
 * graph serves PPO, GRPO, RLOO, REINFORCE++ and DAPO: they differ in advantages and weights (src/algo). Another policy
 * loss is another graph (surrogates.ts).
 */
import type { PolicyLossType } from '../../algo/policy-loss.ts';
import {
  add,
  cast,
  clamp,
  div,
  exp,
  lessEqual,
  log,
  maximum,
  minimum,
  mul,
  neg,
  reduceSum,
  reshape,
  stopGradient,
  sub,
} from '../tensor/ops.ts';
import type { Dim, Shape } from '../tensor/shape.ts';
import { constant, input, type Tensor } from '../tensor/tensor.ts';
import { SURROGATES } from './surrogates.ts';

/** Terms of each decision, outputs of the graph; all of one shape. */
export interface DecisionTerms {
  /** Log-probability log π(chosen) under the weights being trained. */
  readonly logprob: Tensor;
  /** Entropy of the distribution decided from. */
  readonly entropy: Tensor;
  /** Value V(s), where the model has a value head. */
  readonly value: Tensor | undefined;
  /** Log-probabilities [..., C] of all listed actions, of choices. */
  readonly logprobs?: Tensor | undefined;
}

/** Terms of a policy loss beside those that every one has. */
export interface AuxiliaryLosses {
  /** True where the exact reverse KL to a teacher is a term; of choices alone (algo/distillation.ts). */
  readonly distils?: boolean | undefined;
  /** True where the world's tokens are predicted too; of free tokens alone. */
  readonly predictsWorld?: boolean | undefined;
}

/** Output of an objective: the scalar to minimise, and scalars to report beside it. */
export interface LossOutputs {
  readonly loss: Tensor;
  /**
   * Statistics: sums over decisions under the objective's own weights (means, where those sum to 1), or over its pairs.
   */
  readonly stats: Readonly<Record<string, Tensor>>;
}

/** Names of the scalar inputs of the loss. */
export const lossCoefficients = [
  'clipLow', // ε below, of the surrogates that clip: ratios under 1 − clipLow earn no more
  'clipHigh', // ε above; DAPO's clip-higher sets it apart from clipLow
  'entropyCoef',
  'valueCoef',
  'valueClip', // the new value may move this far from the old one
  'klCoef1', // KL to the reference policy in the loss, by estimator k1, k2, k3 (algo/kl.ts)
  'klCoef2',
  'klCoef3',
] as const;
export type LossCoefficients = Readonly<Record<(typeof lossCoefficients)[number], number>>;

/**
 * Surrogate + value loss − entropy bonus + KL to a reference.
 *
 *   rₜ = exp(log πₜ − log π_oldₜ)
 *   L  = Σₜ wₜ·[ ℓ(rₜ, Aₜ) − c_H·Hₜ + c₁·k1ₜ + c₂·k2ₜ + c₃·k3ₜ ]
 *      + c_V Σₜ uₜ·½·max((Vₜ−Rₜ)², (clip(Vₜ, V_oldₜ±ε_V)−Rₜ)²)
 *   ℓ  = −min(rA, clip(r, 1−ε_lo, 1+ε_hi)A) for `ppo_clip`; the others are in surrogates.ts
 *   xₜ = log π − log π_ref,  k1 = x,  k2 = ½x²,  k3 = exp(−x) + x − 1
 *   + c_D Σₜ wₜ·Σₐ π(a)·(log π(a) − log π_T(a))            `distils` (GKD, §3: https://arxiv.org/abs/2306.13649)
 *   + c_O Σₜ oₜ·(−log πₜ)                                  `predictsWorld` (ECHO: https://arxiv.org/abs/2605.24517)
 *
 * log π − log π_old and x are clamped to ±20 first: beyond, the ratio stays e^±20 and neither it nor a KL has a slope.
 *
 * Reports the parts before their coefficients: `policyLoss`, `entropy`, `klReference` (k3, whichever is in the loss), `klOld`
 * (k3 against π_old, the policy that decided or the learner at the start of the update, by `offPolicy`), `clipFraction`
 * (weight of the decisions whose clip or mask binds, where the surrogate has one) and `valueLoss`.
 *
 * Declares, in the decisions' shape: `oldLogprob`, `referenceLogprob`, `advantage` (times the importance weight, where
 * there is one), `weight` (w, by aggregate.ts: sums to 1 for a mean, not for `constant`; 0 for padding)
 * and, with values, `return`, `oldValue`, `valueWeight` (u). A surrogate of sequences declares more. A teacher adds `teacher`
 * [..., C] (log π_T of each listed action, 0 elsewhere) and reports `distillationKl`; the world's tokens add
 * `observationWeight` (o: 1/tokens at the world's tokens, 0 at decisions) and report `observationNll`.
 *
 * @param type name of the surrogate
 * @see Schulman 2020 (k3), http://joschu.net/blog/kl-approx.html
 */
export function policyLoss(
  terms: DecisionTerms,
  shape: Shape,
  type: PolicyLossType = 'ppo_clip',
  { distils = false, predictsWorld = false }: AuxiliaryLosses = {},
): LossOutputs {
  const { logprob, entropy, value } = terms;
  const scalars = new Map<string, Tensor>();
  const scalar = (name: string): Tensor => {
    const known = scalars.get(name) ?? input(`loss.${name}`, []);
    scalars.set(name, known);
    return known;
  };
  const decisions = (name: string) => input(`decisions.${name}`, shape);
  const weight = decisions('weight');
  const advantage = decisions('advantage');
  const one = constant(1);

  // Beyond e^±20 a ratio carries no gradient worth having; the clamp keeps it finite.
  const oldLogprob = decisions('oldLogprob');
  const logRatio = clamp(sub(logprob, oldLogprob), -20, 20);
  const ratio = exp(logRatio);
  const surrogate = SURROGATES[type]({ logprob, oldLogprob, logRatio, ratio, advantage, shape, scalar });

  const toReference = clamp(sub(decisions('referenceLogprob'), logprob), -20, 20);
  const kl = sub(sub(exp(toReference), toReference), one);

  const total = (x: Tensor) => reduceSum(x, listAxes(shape));
  const policy = total(mul(weight, surrogate.loss));
  const meanEntropy = total(mul(weight, entropy));
  const meanKl = total(mul(weight, kl));
  const k1 = total(mul(weight, neg(toReference)));
  const k2 = mul(constant(0.5), total(mul(weight, square(toReference))));
  const klTerms = add(add(mul(scalar('klCoef1'), k1), mul(scalar('klCoef2'), k2)), mul(scalar('klCoef3'), meanKl));
  let loss = add(sub(policy, mul(scalar('entropyCoef'), meanEntropy)), klTerms);
  const stats: Record<string, Tensor> = {
    policyLoss: policy,
    entropy: meanEntropy,
    klReference: meanKl,
    klOld: total(mul(weight, sub(sub(ratio, one), logRatio))),
    ...(surrogate.clipped ? { clipFraction: total(mul(weight, surrogate.clipped)) } : {}),
  };
  if (distils) {
    const logprobs = terms.logprobs!;
    const divergence = reverseKl(logprobs, input('decisions.teacher', logprobs.shape));
    stats.distillationKl = total(mul(weight, divergence));
    loss = add(loss, mul(scalar('distillationCoef'), stats.distillationKl));
  }
  if (predictsWorld) {
    stats.observationNll = neg(total(mul(decisions('observationWeight'), logprob)));
    loss = add(loss, mul(scalar('observationCoef'), stats.observationNll));
  }
  if (value) {
    const target = decisions('return');
    const old = decisions('oldValue');
    const near = add(old, minimum(maximum(sub(value, old), neg(scalar('valueClip'))), scalar('valueClip')));
    const worst = maximum(square(sub(value, target)), square(sub(near, target)));
    const valueLoss = mul(constant(0.5), total(mul(decisions('valueWeight'), worst)));
    loss = add(loss, mul(scalar('valueCoef'), valueLoss));
    stats.valueLoss = valueLoss;
  }
  return { loss, stats };
}

/** Negative log-likelihood Σ wₜ·(−log πₜ): supervised fine-tuning. Declares `decisions.weight`. */
export function likelihoodLoss({ logprob, entropy }: DecisionTerms, shape: Shape): LossOutputs {
  const weight = input('decisions.weight', shape);
  const total = (x: Tensor) => reduceSum(x, listAxes(shape));
  const loss = neg(total(mul(weight, logprob)));
  return { loss, stats: { nll: loss, entropy: total(mul(weight, entropy)) } };
}

/**
 * Direct preference optimisation over B pairs of trajectories, each a sum of its decisions' log-probabilities:
 *
 *   L = −1/n · Σ_b log σ(β·((log π(chosen) − log π_ref(chosen)) − (log π(rejected) − log π_ref(rejected))))
 *
 * Declares `pairs.sign` [B, decisions] (+1 for the decisions of the pair's chosen trajectory, −1 for the rejected
 * one's, else 0), `pairs.reference` [B] (the same signed sums under the reference policy), `loss.beta` and `loss.pairs` (n, the
 * pairs of the whole optimiser step, of which a pass may hold a part).
 * @param rows number of decisions, padding included
 * @see Rafailov et al. 2023, eq. 7. https://arxiv.org/abs/2305.18290
 */
export function preferenceLoss({ logprob }: DecisionTerms, rows: Dim): LossOutputs {
  const signed = mul(reshape(logprob, [1, rows]), input('pairs.sign', ['B', rows]));
  const margin = mul(input('loss.beta', []), sub(reduceSum(signed, [1]), input('pairs.reference', ['B'])));
  const right = sub(constant(1), cast(lessEqual(margin, constant(0)), 'f32'));
  const pairs = input('loss.pairs', []);
  const mean = (x: Tensor) => div(reduceSum(x, [0]), pairs);
  return { loss: neg(mean(logSigmoid(margin))), stats: { margin: mean(margin), accuracy: mean(right) } };
}

/** −Σ p·log p over the last axis. @param logprobs [..., C], masked entries hugely negative @returns [...] */
export function entropyOf(logprobs: Tensor): Tensor {
  // p underflows to exactly 0 where log p is below −100, so the clamp changes no value and avoids 0·(−1e9).
  return neg(reduceSum(mul(exp(logprobs), clamp(logprobs, -100, 0)), [-1]));
}

/**
 * KL(π ‖ π_T) = Σ p·(log p − log p_T) over the last axis.
 * @param logprobs [..., C] log p, masked entries hugely negative
 * @param teacher  [..., C] log p_T, finite everywhere
 * @returns [...]
 */
export function reverseKl(logprobs: Tensor, teacher: Tensor): Tensor {
  return reduceSum(mul(exp(logprobs), sub(clamp(logprobs, -100, 0), teacher)), [-1]); // the clamp as in entropyOf
}

function square(x: Tensor): Tensor {
  return mul(x, x);
}

function listAxes(shape: Shape): number[] {
  return shape.map((_, axis) => axis);
}

/**
 * log(sigmoid(x)) = −(m + log(e^−m + e^−(x+m))), stable for large |x| with m = max(−x, 0) held constant. A slope through
 * m's own maximum would be wrong at x = 0, where two branches meet: there preference training begins.
 */
export function logSigmoid(x: Tensor): Tensor {
  const shift = stopGradient(maximum(neg(x), constant(0)));
  return neg(add(shift, log(add(exp(neg(shift)), exp(neg(add(x, shift)))))));
}
