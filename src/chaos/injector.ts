/**
 * Injector: draws the steps and checkpoints to strike, and the fault of each. A pure function of the seed, so the host
 * that breaks and the pool that watches it agree without a message, and a thread that dies takes no record with it.
 *
 * An episode issued again has a new number, so its draws are new: the seed is advanced by the numbering.
 */
import { Rng, seedFrom } from '../core/rng.ts';
import { type ChaosSpec, faultKinds, type StepFaultKind } from './spec.ts';

export interface StepFault {
  readonly kind: StepFaultKind;
  /** Draw, uniform in [0, 1): which variant, how late. */
  readonly draw: number;
}

/** Fault of one step, if it is struck. */
export function stepFault({ seed, rates }: ChaosSpec, episode: number, turn: number): StepFault | undefined {
  const rng = Rng.fromSeed(seedFrom(seed, 'step', episode, turn));
  let u = rng.float();
  for (const kind of faultKinds) {
    if (kind === 'disk-full') continue;
    const rate = rates[kind] ?? 0;
    if (u < rate) return { kind, draw: rng.float() };
    u -= rate;
  }
  return undefined;
}

/** True if the checkpoint of an update finds the disk full. */
export function diskFault({ seed, rates }: ChaosSpec, update: number): boolean {
  const rate = rates['disk-full'] ?? 0;
  return rate > 0 && Rng.fromSeed(seedFrom(seed, 'disk', update)).float() < rate;
}
