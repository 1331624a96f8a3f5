/** Finiteness checks: numbers that must be finite, and the report of the first that is not. */
import type { Group } from '../core/trajectory.ts';

/** Place of a value that should be finite and is not. */
export interface Breakage {
  readonly where: 'reward' | 'behaviour' | 'measurement' | 'advantage' | 'loss' | 'gradient' | 'weights';
  readonly message: string;
}

/** Index of the first value that is no finite number, or −1. */
export function firstNotFinite(values: ArrayLike<number>): number {
  for (let i = 0; i < values.length; i++) if (!Number.isFinite(values[i]!)) return i;
  return -1;
}

/** Broken input: a reward, a value or a log-probability that a trajectory recorded. */
export function findBrokenRecord(groups: readonly Group[]): Breakage | undefined {
  for (const { trajectories } of groups) {
    for (const { episode, turns } of trajectories) {
      for (const [t, { reward, decision }] of turns.entries()) {
        const at = `of episode ${episode}, turn ${t}`;
        if (!Number.isFinite(reward)) return { where: 'reward', message: `${at} is ${reward}` };
        if (!decision) continue;
        const logprobs = decision.kind === 'choice' ? [decision.logprob] : decision.logprobs;
        if (!Number.isFinite(decision.value))
          return { where: 'behaviour', message: `value ${at} is ${decision.value}` };
        if (firstNotFinite(logprobs) >= 0)
          return { where: 'behaviour', message: `a log-probability ${at} is not finite` };
      }
    }
  }
  return undefined;
}
