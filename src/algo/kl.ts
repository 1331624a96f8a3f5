/**
 * KL of the policy to a reference policy, estimated on what was sampled (a token of a run, or a whole choice), and the
 * coefficient it is weighed with.
 *
 * `klEstimate` serves in the reward, summed over a decision's tokens (`penalty` of advantages.ts), and measures what the
 * adaptive coefficient follows. In the loss the tensor graph has formulas of its own (model/loss.ts) and differentiates
 * them. There the estimators differ where the sample is the policy's own: the gradient of k1 has expectation zero, k2's is
 * the unbiased gradient of KL(π‖π_ref), k3's (GRPO's choice) is that of the forward KL(π_ref‖π). On older samples none of
 * this is exact, since they are not weighed by their ratio.
 */
import { UserError } from '../core/errors.ts';

/**
 * Estimators of KL, with x = log π − log π_ref of the sampled token:
 * - `k1` = x: unbiased, high variance, may be negative;
 * - `k2` = ½x²: biased, low variance, ≥ 0;
 * - `k3` = e^−x − 1 + x: unbiased, low variance, ≥ 0.
 *
 * Nothing is clamped here: what overflows becomes an advantage that is not finite, and the update is taken back. verl and
 * AgentGym-RL (`low_var_kl`) clamp k3 to ±10. The loss clamps x to ±20 instead, beyond which it has no slope.
 *
 * @see Schulman 2020, http://joschu.net/blog/kl-approx.html
 */
export type KlEstimator = 'k1' | 'k2' | 'k3';

/** Estimates the KL of one token or choice. @param logprob log π @param reference log π_ref, of the same sample */
export function klEstimate(estimator: KlEstimator, logprob: number, reference: number): number {
  const x = logprob - reference;
  if (estimator === 'k1') return x;
  if (estimator === 'k2') return 0.5 * x * x;
  return Math.expm1(-x) + x;
}

export type KlControl =
  | {
      readonly type: 'fixed';
      /** Coefficient β ≥ 0. */
      readonly coefficient: number;
    }
  | {
      readonly type: 'adaptive';
      /** Coefficient β to start with, > 0. */
      readonly coefficient: number;
      /** Target KL per sampled token (per choice, for the choice decoder) that β steers to, > 0. */
      readonly target: number;
      /** Episodes over which an error is acted on in full, > 0; more is slower. */
      readonly window: number;
    };

/** State of the KL control; plain JSON, kept in the checkpoint. */
export interface KlControlState {
  readonly control: KlControl;
  /** Coefficient β at present. */
  readonly coefficient: number;
}

/**
 * Creates the KL control.
 * @throws {UserError} BAD_CONFIG for a parameter out of range
 */
export function createKlControl(control: KlControl): KlControlState {
  const need = (key: string, value: number, ok: boolean): void => {
    if (!ok) throw new UserError('BAD_CONFIG', `kl.${key}: expected a number in range, got ${value}`);
  };
  const { coefficient } = control;
  if (control.type === 'fixed') need('coefficient', coefficient, coefficient >= 0 && Number.isFinite(coefficient));
  else {
    need('coefficient', coefficient, coefficient > 0 && Number.isFinite(coefficient));
    need('target', control.target, control.target > 0);
    need('window', control.window, control.window > 0);
  }
  return { control, coefficient };
}

/**
 * Next state of the KL control, one update later.
 *
 *   β ← β · (1 + clip(KL / target − 1, −0.2, 0.2) · episodes / window)      `adaptive`; `fixed` stays
 *
 * `episodes` counts at most `window` of them, so β stays positive. A KL that is not finite moves nothing.
 *
 * The trainer hands over k3 of the behaviour policy against the reference, whichever estimator is in the loss or the
 * reward: it is what the batch shows without a pass under the new weights, so an update is answered by the next one.
 *
 * @param kl mean KL per sampled token (or choice) of the update
 * @param episodes episodes the update trained on
 * @see Ziegler et al. 2019, §2.2. https://arxiv.org/abs/1909.08593
 */
export function nextKlControl(state: KlControlState, kl: number, episodes: number): KlControlState {
  const { control, coefficient } = state;
  if (control.type === 'fixed' || !Number.isFinite(kl)) return state;
  const error = Math.min(0.2, Math.max(-0.2, kl / control.target - 1));
  return { control, coefficient: coefficient * (1 + error * Math.min(1, episodes / control.window)) };
}
