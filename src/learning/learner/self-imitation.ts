/**
 * Self-imitation: episodes that earned more than the critic expected are remembered and trained on again, so that a rare win
 * outlives its update.
 *
 *   L = −log π(a|s) · (R − V(s))₊
 *
 * R is the discounted reward-to-go, V the learner's critic at the start of the update. As the critic learns that such states are won,
 * the weight of a remembered episode fades.
 *
 * @see Oh et al. 2018 (Self-Imitation Learning), eq. 1–3 and §3.1, https://arxiv.org/abs/1806.05635. Differs in three
 *   ways. Whole episodes are drawn, by their mean (R − V)₊. They stand in the update's own minibatches, under PPO's
 *   clipped surrogate against the policy at its start (the gradient of its first step is the one above). The critic
 *   learns only from what the policy plays now.
 */
import { type DecisionColumns, decisionColumns, returnsToGo } from '../../algo/returns.ts';
import type { Rng } from '../../core/rng.ts';
import type { Trajectory } from '../../core/trajectory.ts';
import { plainTrajectory, reviveTrajectory } from '../../storage/trace.ts';
import type { Codec } from '../../text/reading/codec.ts';
import { trainUnits } from './training-batch.ts';

/** Options of self-imitation. */
export interface SelfImitation {
  /** Remembered episodes that an update trains on besides its groups, ≥ 1. */
  readonly episodes: number;
  /** Episodes remembered, ≥ 1; the one of least priority goes first. */
  readonly capacity: number;
  /** Factor on (R − V)₊, ≥ 0. */
  readonly weight: number;
}

/** Remembered episode; the best of its task. */
export interface Remembered {
  readonly trajectory: Trajectory;
  /** Mean (R − V)₊ over its decisions, > 0, when it was last measured. */
  readonly priority: number;
}

/** Decisions of an episode with their returns and (R − V)₊. */
export interface Surplus {
  readonly columns: DecisionColumns;
  /** [D] */
  readonly returns: Float64Array;
  /** [D] */
  readonly surplus: Float64Array;
  readonly mean: number;
}

/** Largest return that is imitated; beyond it a file was tampered with. */
const LARGEST_RETURN = 1e6;

/**
 * Surplus of an episode over the critic, (R − V)₊.
 * @param values [D] V where each decision was made; by default those of its record
 */
export function surplusOf(trajectory: Trajectory, gamma: number, values?: ArrayLike<number>): Surplus {
  const columns = decisionColumns(trajectory, gamma);
  const returns = returnsToGo(columns.rewards, columns.discounts, 0);
  const surplus = returns.map((value, d) => Math.max(0, value - (values ?? columns.values)[d]!));
  return { columns, returns, surplus, mean: surplus.reduce((sum, one) => sum + one, 0) / Math.max(1, surplus.length) };
}

/**
 * Memory after an update.
 * @param measured episodes of it that were measured anew
 * @param played episodes that came with the update; those not decided by the policy throughout are left out
 * @returns by falling priority, the best episode of each task alone
 */
export function updateMemory(
  memory: readonly Remembered[],
  measured: readonly Remembered[],
  played: readonly Trajectory[],
  { capacity }: SelfImitation,
  gamma: number,
): Remembered[] {
  const anew = new Map(measured.map((one) => [one.trajectory, one]));
  const all = memory.map((one) => anew.get(one.trajectory) ?? one);
  for (const trajectory of played) {
    if (!trajectory.turns.every(({ decision, untrained }) => decision && !untrained)) continue;
    all.push({ trajectory, priority: surplusOf(trajectory, gamma).mean });
  }
  const best = new Map<string, Remembered>();
  for (const one of all) {
    const { env, index } = one.trajectory.task;
    const key = `${env}/${index}`;
    if (one.priority > (best.get(key)?.priority ?? 0)) best.set(key, one);
  }
  return [...best.values()].sort((a, b) => b.priority - a.priority).slice(0, capacity);
}

/** Draws episodes by their priority, none twice. */
export function drawRemembered(memory: readonly Remembered[], count: number, rng: Rng): Remembered[] {
  const left = [...memory];
  const picked: Remembered[] = [];
  while (picked.length < count && left.length > 0) {
    const total = left.reduce((sum, { priority }) => sum + priority, 0);
    let at = rng.float() * total;
    let i = 0;
    while (i < left.length - 1 && at >= left[i]!.priority) at -= left[i++]!.priority;
    picked.push(left[i]!);
    left.splice(i, 1);
  }
  return picked;
}

/** Plain JSON of a memory, for a checkpoint. */
export function plainMemory(memory: readonly Remembered[]): Remembered[] {
  return memory.map(({ trajectory, priority }) => ({
    priority,
    trajectory: plainTrajectory(trajectory) as Trajectory,
  }));
}

/** Revives a memory from a checkpoint. What this codec reads otherwise, and what earned the impossible, is forgotten. */
export function reviveMemory(plain: readonly Remembered[], codec: Codec, gamma: number): Remembered[] {
  return plain
    .map(({ trajectory, priority }) => ({ priority, trajectory: reviveTrajectory(trajectory) }))
    .filter(({ trajectory }) => {
      try {
        trainUnits(codec, [trajectory], 0);
      } catch {
        return false;
      }
      return surplusOf(trajectory, gamma).returns.every((value) => Math.abs(value) <= LARGEST_RETURN);
    });
}
