/**
 * Values of the states of an episode, estimated by continuations from them: the mean return of n independent episodes that begin
 * there, as VinePPO estimates V(s) in place of a critic.
 *
 *   V(s_t) ≈ 1/n · Σ_i R(τ_i | s_t)
 *
 * Returns are undiscounted and count from the state on, under the horizon that the episode was played with. Pure.
 * @see Kazemnejad et al. 2024, section 4, https://arxiv.org/abs/2410.01679
 */

import type { Trajectory, Turn } from '../../core/trajectory.ts';
import { type Estimated, wilson } from '../../learning/evaluation/intervals.ts';
import { averageOverSeeds } from '../../learning/evaluation/over-seeds.ts';

/** Value of the state behind some recorded turns. */
export interface StateValue {
  /** Recorded turns that the continuations begin with. */
  readonly turn: number;
  /** Recorded action that was taken in the state. */
  readonly action: string;
  /** Recorded rewards before it. */
  readonly earned: number;
  /** Continuations that failed for good; they count in no mean. */
  readonly failed: number;
  /** Share of the continuations that solved the task, with its 95 % interval (Wilson). */
  readonly success: Estimated;
  /** Mean return from the state on, with its 95 % interval over continuations (Student's t); unbounded for a single one. */
  readonly value: Estimated;
  /** Return of each continuation from the state on, by member. */
  readonly returns: readonly number[];
}

/** Estimates the value of a state. @param recorded turns of the episode @param asked continuations, those that failed among them */
export function estimateValue(
  recorded: readonly Pick<Turn, 'action' | 'reward'>[],
  turn: number,
  continuations: readonly Trajectory[],
  asked: number,
): StateValue {
  const returns = continuations.map(({ turns }) => sumRewards(turns.slice(turn)));
  const solved = continuations.filter(({ success }) => success).length;
  return {
    turn,
    action: recorded[turn]!.action,
    earned: sumRewards(recorded.slice(0, turn)),
    failed: asked - continuations.length,
    success: wilson(solved, continuations.length),
    value: averageOverSeeds(returns),
    returns,
  };
}

type Level = Pick<Estimated, 'value' | 'low' | 'high'>;

/** Fall of an episode: the recorded action behind which its prospects were lowest compared with before. */
export interface LargestFall {
  /** Number of the action, from 1: the state before it is behind `turn − 1` actions. Of one in stages the first. */
  readonly turn: number;
  readonly action: string;
  /** Quantity that falls: the share of successes, or the whole return where no continuation differs in success. */
  readonly what: 'success' | 'return';
  readonly from: number;
  readonly to: number;
  /** True where the two intervals do not overlap. */
  readonly isClear: boolean;
}

/** Finds where an episode was lost. @param values of consecutive states @returns undefined where nothing falls */
export function findLargestFall(values: readonly StateValue[]): LargestFall | undefined {
  const rates = values.map(({ success }) => success.value);
  const what = rates.some((rate) => rate !== rates[0]) ? 'success' : 'return';
  const levels = values.map(({ success, earned, value }): Level => {
    if (what === 'success') return success;
    return { value: earned + value.value, low: earned + value.low, high: earned + value.high };
  });
  let largest: LargestFall | undefined;
  for (let i = 1; i < values.length; i++) {
    const [before, after] = [levels[i - 1]!, levels[i]!];
    const [from, to] = [before.value, after.value];
    if (!(from - to > (largest ? largest.from - largest.to : 0))) continue;
    const isClear = after.high < before.low;
    const { turn, action } = values[i - 1]!;
    largest = { turn: turn + 1, action, what, from, to, isClear };
  }
  return largest;
}

function sumRewards(turns: readonly Pick<Turn, 'reward'>[]): number {
  return turns.reduce((sum, { reward }) => sum + reward, 0);
}
