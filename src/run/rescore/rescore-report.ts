/** Report of episodes that were scored again: what changed, by sub-task or task. Pure. */
import { mean } from '../../console/numbers.ts';
import { groupBy } from '../../core/group-by.ts';
import type { Task } from '../../core/task.ts';
import { averageOverTasks, type Estimated } from '../../learning/evaluation/intervals.ts';
import { comparePaired } from '../../learning/evaluation/over-seeds.ts';
import { countGroupEffects, type GroupEffects } from './group-effects.ts';

/** Reward of an episode: its return, and whether it counts as a success. */
export interface EpisodeReward {
  readonly reward: number;
  readonly success: boolean;
}

/** Episode that was scored again. */
export interface EpisodeScore {
  readonly episode: number;
  readonly group: number;
  readonly purpose: string;
  /** Sub-task; empty where the trace names none. */
  readonly label: string;
  readonly task: Task;
  readonly old: EpisodeReward;
  /** New reward, with the named parts that the function gave; absent where it failed. */
  readonly new?: (EpisodeReward & { readonly metrics: Readonly<Record<string, number>> }) | undefined;
  /** Reason why there is no new reward. */
  readonly failed?: string | undefined;
}

/** Difference that new rewards make to some episodes. Means are over the episodes that have one. */
export interface RescoredPart {
  readonly label: string;
  readonly tasks: number;
  /** Episodes with a new reward, and those that failed. */
  readonly episodes: number;
  readonly failed: number;
  /** Episodes whose return or success is another. */
  readonly changed: number;
  /** Mean returns. */
  readonly old: number;
  readonly new: number;
  /** Mean over tasks of new − old returns, with its 95 % interval over tasks (paired, Student's t). */
  readonly difference: Estimated;
  /** Success rates, with their intervals over tasks. */
  readonly oldSuccess: Estimated;
  readonly newSuccess: Estimated;
}

/** Report of a trace that was scored again. */
export interface RescoreReport {
  readonly episodes: readonly EpisodeScore[];
  readonly parts: readonly RescoredPart[];
  readonly all: RescoredPart;
  readonly groups: GroupEffects;
}

/** Group of a trace, as far as it was reached. */
export interface ScoredGroup {
  /** Size: its members in the trace. */
  readonly size: number;
  /** Scores of the members that were reached, in order. */
  readonly scores: readonly EpisodeScore[];
}

/** Reports what new rewards change. @param byTask true for rows by task instead of by sub-task */
export function reportRescored(groups: readonly ScoredGroup[], byTask: boolean): RescoreReport {
  const episodes = groups.flatMap(({ scores }) => scores);
  const parts = groupBy(episodes, (one) => (byTask || one.label === '' ? taskOf(one) : one.label));
  const whole = groups.filter(({ size, scores }) => scores.filter((one) => one.new).length === size);
  return {
    episodes,
    parts: [...parts].map(([label, own]) => summarisePart(label, own)),
    all: summarisePart('all', episodes),
    groups: countGroupEffects(
      whole.map(({ scores }) => ({
        before: scores.map(({ old }) => old.reward),
        after: scores.map((one) => one.new!.reward),
      })),
    ),
  };
}

/** True where the new reward differs from the recorded one. */
export function isChanged({ old, new: fresh }: EpisodeScore): boolean {
  return fresh !== undefined && (fresh.reward !== old.reward || fresh.success !== old.success);
}

function summarisePart(label: string, all: readonly EpisodeScore[]): RescoredPart {
  const own = all.filter((one) => one.new);
  const tasks = groupBy(own, taskOf);
  const averageTasks = (value: (one: EpisodeScore) => number) =>
    [...tasks.values()].map((list) => mean(list.map(value)));
  const oldReward = ({ old }: EpisodeScore) => old.reward;
  const newReward = (one: EpisodeScore) => one.new!.reward;
  const successOf = (value: (one: EpisodeScore) => number) => averageOverTasks(averageTasks(value), own.length);
  return {
    label,
    tasks: tasks.size,
    episodes: own.length,
    failed: all.length - own.length,
    changed: own.filter(isChanged).length,
    old: mean(own.map(oldReward)),
    new: mean(own.map(newReward)),
    difference: comparePaired(averageTasks(newReward), averageTasks(oldReward)),
    oldSuccess: successOf(({ old }) => Number(old.success)),
    newSuccess: successOf((one) => Number(one.new!.success)),
  };
}

function taskOf({ task: { env, index } }: EpisodeScore): string {
  return `${env}/${index}`;
}
