/**
 * The losses once more, as plain float64 scalar functions with gradients by hand: what the tensor graph's values and
 * automatic gradients are compared with. Written decision by decision, sharing nothing with the graph.
 */

/** A loss and its derivative by one argument. */
export interface Slope {
  readonly value: number;
  readonly slope: number;
}

/** Ratios beyond e^±bound are held there and carry no gradient. */
const RATIO_BOUND = 20;

function bounded(x: number): Slope {
  return { value: Math.min(RATIO_BOUND, Math.max(-RATIO_BOUND, x)), slope: Math.abs(x) < RATIO_BOUND ? 1 : 0 };
}

/**
 * −min(r·A, clip(r, 1 − clipLow, 1 + clipHigh)·A), r = exp(logprob − oldLogprob); slope by `logprob`. Clip-higher is
 * clipHigh > clipLow.
 * @see Schulman et al. 2017, eq. 7; Yu et al. 2025 (DAPO), §3.1
 */
export function clippedSurrogate(
  logprob: number,
  oldLogprob: number,
  advantage: number,
  clip: { readonly clipLow: number; readonly clipHigh: number },
): Slope & { readonly clipped: boolean } {
  const log = bounded(logprob - oldLogprob);
  const ratio = Math.exp(log.value);
  // With A > 0 only the upper bound can bind, with A < 0 only the lower one.
  const clipped = advantage > 0 ? ratio > 1 + clip.clipHigh : advantage < 0 && ratio < 1 - clip.clipLow;
  if (!clipped) return { value: -ratio * advantage, slope: -ratio * advantage * log.slope, clipped };
  return { value: -(advantage > 0 ? 1 + clip.clipHigh : 1 - clip.clipLow) * advantage, slope: 0, clipped };
}

/** ½·max((v − R)², (clip(v, vOld ± valueClip) − R)²), slope by `value`. */
export function clippedValueLoss(value: number, oldValue: number, target: number, valueClip: number): Slope {
  const moved = Math.min(valueClip, Math.max(-valueClip, value - oldValue));
  const free = (value - target) ** 2;
  const held = (oldValue + moved - target) ** 2;
  const outside = Math.abs(value - oldValue) > valueClip;
  if (outside && held > free) return { value: 0.5 * held, slope: 0 };
  return { value: 0.5 * free, slope: value - target };
}

/** KL to a reference in the loss, slope by `logprob`; k3 is the one the graph has. */
export function klTerm(estimator: 'k1' | 'k2' | 'k3', logprob: number, reference: number): Slope {
  const x = logprob - reference;
  if (estimator === 'k1') return { value: x, slope: 1 };
  if (estimator === 'k2') return { value: 0.5 * x * x, slope: x };
  const held = bounded(-x);
  return { value: Math.exp(held.value) - held.value - 1, slope: (1 - Math.exp(held.value)) * held.slope };
}

/** A distribution from logits, with what its choice and its spread owe to each logit. */
export interface Categorical {
  readonly logprob: number;
  readonly entropy: number;
  /** [C] ∂logprob/∂logit = 1{choice} − p */
  readonly logprobSlopes: number[];
  /** [C] ∂entropy/∂logit = −p·(log p + entropy) */
  readonly entropySlopes: number[];
}

/** @param logits [C]; −Infinity for a masked entry, which takes part in nothing */
export function categorical(logits: readonly number[], choice: number): Categorical {
  const top = Math.max(...logits);
  const total = Math.log(logits.reduce((sum, z) => sum + Math.exp(z - top), 0)) + top;
  const logs = logits.map((z) => z - total);
  const plogp = (log: number): number => (log === Number.NEGATIVE_INFINITY ? 0 : Math.exp(log) * log);
  const entropy = -logs.reduce((sum, log) => sum + plogp(log), 0);
  return {
    logprob: logs[choice]!,
    entropy,
    logprobSlopes: logs.map((log, c) => Number(c === choice) - Math.exp(log)),
    entropySlopes: logs.map((log) => -plogp(log) - Math.exp(log) * entropy),
  };
}

export interface LossDecision {
  readonly logprob: number;
  readonly oldLogprob: number;
  readonly referenceLogprob: number;
  readonly entropy: number;
  readonly advantage: number;
  readonly weight: number;
  readonly value: number;
  readonly oldValue: number;
  readonly target: number;
  readonly valueWeight: number;
}

export interface LossCoefficients {
  readonly clipLow: number;
  readonly clipHigh: number;
  readonly entropyCoef: number;
  readonly valueCoef: number;
  readonly valueClip: number;
  readonly klCoef1: number;
  readonly klCoef2: number;
  readonly klCoef3: number;
}

export interface LossReference {
  readonly loss: number;
  readonly policyLoss: number;
  readonly entropy: number;
  readonly kl: number;
  readonly valueLoss: number;
  readonly clipFraction: number;
  /** ∂loss/∂ each decision's log-probability, entropy and value. */
  readonly slopes: readonly { readonly logprob: number; readonly entropy: number; readonly value: number }[];
}

/** Σ w·(surrogate − c_H·entropy + c₁·k1 + c₂·k2 + c₃·k3) + c_V·Σ u·valueLoss. */
export function policyLoss(decisions: readonly LossDecision[], c: LossCoefficients): LossReference {
  let [policy, entropy, kl, valueLoss, clipFraction, toReferences] = [0, 0, 0, 0, 0, 0];
  const slopes = decisions.map((d) => {
    const surrogate = clippedSurrogate(d.logprob, d.oldLogprob, d.advantage, c);
    const term = (k: 'k1' | 'k2' | 'k3') => klTerm(k, d.logprob, d.referenceLogprob);
    const mixed = (of: 'value' | 'slope') =>
      c.klCoef1 * term('k1')[of] + c.klCoef2 * term('k2')[of] + c.klCoef3 * term('k3')[of];
    const critic = clippedValueLoss(d.value, d.oldValue, d.target, c.valueClip);
    policy += d.weight * surrogate.value;
    entropy += d.weight * d.entropy;
    kl += d.weight * term('k3').value;
    toReferences += d.weight * mixed('value');
    valueLoss += d.valueWeight * critic.value;
    clipFraction += d.weight * Number(surrogate.clipped);
    return {
      logprob: d.weight * (surrogate.slope + mixed('slope')),
      entropy: -c.entropyCoef * d.weight,
      value: c.valueCoef * d.valueWeight * critic.slope,
    };
  });
  const loss = policy - c.entropyCoef * entropy + toReferences + c.valueCoef * valueLoss;
  return { loss, policyLoss: policy, entropy, kl, valueLoss, clipFraction, slopes };
}

/** Σ w·(−logprob): supervised fine-tuning; the slopes are −w. */
export function likelihoodLoss(decisions: readonly { readonly logprob: number; readonly weight: number }[]): {
  readonly loss: number;
  readonly slopes: number[];
} {
  return {
    loss: decisions.reduce((sum, { logprob, weight }) => sum - weight * logprob, 0),
    slopes: decisions.map(({ weight }) => -weight),
  };
}

/**
 * DPO over one pair of trajectories, each given by the sum of its trained tokens' log-probabilities:
 * −log σ(β·((chosen − chosenReference) − (rejected − rejectedReference))); slope by `chosen` (that by `rejected` is
 * its negative).
 * @see Rafailov et al. 2023, eq. 7. https://arxiv.org/abs/2305.18290
 */
export function dpoLoss(
  chosen: number,
  rejected: number,
  chosenReference: number,
  rejectedReference: number,
  beta: number,
): Slope {
  const margin = beta * (chosen - chosenReference - (rejected - rejectedReference));
  // log(1 + e^−x) without overflow for either sign.
  const value = Math.max(0, -margin) + Math.log1p(Math.exp(-Math.abs(margin)));
  return { value, slope: -beta / (1 + Math.exp(margin)) };
}
