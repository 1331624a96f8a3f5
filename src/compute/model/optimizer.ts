/**
 * AdamW with decoupled weight decay and clipping by the global gradient norm, as part of the training graph.
 */
import { add, div, minimum, mul, reduceSum, sqrt, sub } from '../tensor/ops.ts';
import { constant, input, type Tensor } from '../tensor/tensor.ts';
import type { ParameterSpec } from './parameters.ts';

/** Constants of AdamW. */
export interface AdamWConfig {
  readonly beta1: number;
  readonly beta2: number;
  readonly epsilon: number;
  /** Weight decay, decoupled: each matrix shrinks by lr·weightDecay per step; gains and biases do not. */
  readonly weightDecay: number;
}

/** Defaults of the local policy's learner. */
export const defaultAdamW: AdamWConfig = { beta1: 0.9, beta2: 0.98, epsilon: 1e-8, weightDecay: 0 };

/**
 * AdamW step of all parameters.
 *
 *   g ← g·min(1, c/‖g‖),  m ← β₁m + (1−β₁)g,  v ← β₂v + (1−β₂)g²
 *   w ← w − lr·(m/b₁)/(√(v/b₂) + ε) − lr·λ·w
 *
 * Declares the scalars `adam.lr`, `adam.maxGradNorm`, `adam.correction1` = 1−β₁ᵗ, `adam.correction2` = 1−β₂ᵗ, and
 * `m/<name>`, `v/<name>` for every parameter; outputs `w/<name>`, `m/<name>`, `v/<name>` and `gradNorm`.
 *
 * @param gradNorm global norm, where it is known from elsewhere
 * @see Loshchilov & Hutter 2019, alg. 2, https://arxiv.org/abs/1711.05101
 */
export function adamW(
  specs: readonly Pick<ParameterSpec, 'name' | 'decay'>[],
  weights: readonly Tensor[],
  gradients: readonly Tensor[],
  { beta1, beta2, epsilon, weightDecay }: AdamWConfig,
  gradNorm?: Tensor | undefined,
): Record<string, Tensor> {
  const scalar = (name: string) => input(`adam.${name}`, []);
  const lr = scalar('lr');
  const squares = gradients.map((g) => mul(g, g));
  const norm = gradNorm ?? sqrt(squares.map((g2) => reduceSum(g2)).reduce((a, b) => add(a, b)));
  const shrink = minimum(constant(1), div(scalar('maxGradNorm'), add(norm, constant(1e-12))));
  // Scalars that touch every parameter are multiplied with each other first; with c = √b₂ the step is
  // m·(lr·c/b₁)/(√v + ε·c).
  const fresh = mul(shrink, 1 - beta1);
  const freshSquare = mul(mul(shrink, shrink), 1 - beta2);
  const root = sqrt(scalar('correction2'));
  const rate = div(mul(lr, root), scalar('correction1'));
  const floor = mul(root, epsilon);
  const outputs: Record<string, Tensor> = { gradNorm: norm };
  specs.forEach(({ name, decay }, i) => {
    const w = weights[i]!;
    const m = add(mul(input(`m/${name}`, w.shape), beta1), mul(gradients[i]!, fresh));
    const v = add(mul(input(`v/${name}`, w.shape), beta2), mul(squares[i]!, freshSquare));
    const step = div(mul(m, rate), add(sqrt(v), floor));
    const kept = decay && weightDecay > 0 ? mul(w, sub(1, mul(lr, weightDecay))) : w;
    outputs[`w/${name}`] = sub(kept, step);
    outputs[`m/${name}`] = m;
    outputs[`v/${name}`] = v;
  });
  return outputs;
}

/** Learning-rate schedule: linear warm-up, then linear or cosine decay to `final`·peak at `total` steps, then flat. */
export interface LearningRate {
  readonly peak: number;
  readonly warmupSteps: number;
  readonly decay: 'none' | 'linear' | 'cosine';
  /** Fraction of the peak that is left at the end. */
  readonly final: number;
}

/**
 * Learning rate of a step.
 * @param progress share of the run that is done, in [0, 1] @param step optimiser steps taken, from 0
 */
export function learningRate(
  { peak, warmupSteps, decay, final }: LearningRate,
  step: number,
  progress: number,
): number {
  const warm = Math.min(1, (step + 1) / Math.max(1, warmupSteps));
  const done = Math.min(1, Math.max(0, progress));
  const left = decay === 'none' ? 1 : decay === 'linear' ? 1 - done : (1 + Math.cos(Math.PI * done)) / 2;
  return peak * warm * (final + (1 - final) * left);
}
