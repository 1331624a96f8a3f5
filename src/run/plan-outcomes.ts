/** Outcomes of a plan: which of its episodes are finished, which are left, and what they sum up to. */
import type { EvaluationPlan } from '../../actors/scheduler/protocol.ts';
import { type EpisodeReport, readReport } from '../core/agent-call.ts';
import { largestOf } from '../core/extremes.ts';
import { groupBy } from '../core/group-by.ts';
import type { Task } from '../core/task.ts';
import { episodeReturn, type Trajectory, turnsUsed } from '../core/trajectory.ts';
import type { EvaluationFacts } from '../learning/evaluation/summary.ts';
import type { StoredEpisode, TraceStore } from '../storage/trace-store.ts';

/** Key of a task of a plan. */
export function taskKey({ index, seed }: Pick<Task, 'index' | 'seed'>): string {
  return `${index}#${seed}`;
}

/** Episodes of one task index: how many are asked for, and those that are finished. */
interface Own {
  readonly task: Task;
  asked: number;
  readonly successes: boolean[];
  readonly returns: number[];
  readonly turns: number[];
  readonly reports: EpisodeReport[];
}

export class PlanOutcomes {
  readonly plan: EvaluationPlan;
  /** Groups of each task that are still to be played. */
  readonly #wanted = new Map<string, number>();
  readonly #byIndex = new Map<number, Own>();
  #finished = 0;

  /** @param plan a task that it lists n times is played in n groups */
  constructor(plan: EvaluationPlan) {
    this.plan = plan;
    for (const task of plan.tasks) {
      const key = taskKey(task);
      this.#wanted.set(key, (this.#wanted.get(key) ?? 0) + 1);
      const own = this.#byIndex.get(task.index);
      if (own) own.asked += plan.episodes;
      else
        this.#byIndex.set(task.index, {
          task,
          asked: plan.episodes,
          successes: [],
          returns: [],
          turns: [],
          reports: [],
        });
    }
  }

  /** Episodes that are finished. */
  get finished(): number {
    return this.#finished;
  }

  /** Episodes that the plan asks for. */
  get asked(): number {
    return this.plan.tasks.length * this.plan.episodes;
  }

  /** Tasks that are left, in the plan's order; one of which n groups are left n times. */
  get left(): Task[] {
    const wanted = new Map(this.#wanted);
    const left: Task[] = [];
    for (const task of this.plan.tasks.toReversed()) {
      const groups = wanted.get(taskKey(task))!;
      if (groups === 0) continue;
      wanted.set(taskKey(task), groups - 1);
      left.push(task);
    }
    return left.reverse();
  }

  /** True for a group that is whole, and of a task that is left. */
  wants(group: readonly Pick<Task, 'index' | 'seed'>[]): boolean {
    return group.length === this.plan.episodes && (this.#wanted.get(taskKey(group[0]!)) ?? 0) > 0;
  }

  /** Adds a finished group; one that is not wanted is left out. */
  add(trajectories: readonly Trajectory[]): void {
    const tasks = trajectories.map(({ task }) => task);
    if (!this.wants(tasks)) return;
    const key = taskKey(tasks[0]!);
    this.#wanted.set(key, this.#wanted.get(key)! - 1);
    const own = this.#byIndex.get(tasks[0]!.index)!;
    for (const trajectory of trajectories) {
      own.successes.push(trajectory.success);
      own.returns.push(episodeReturn(trajectory));
      own.turns.push(turnsUsed(trajectory.turns));
      own.reports.push(readReport(trajectory.finalObservation));
    }
    this.#finished += trajectories.length;
  }

  /**
   * Adds what traces hold of the plan, the newest first.
   * @param accepts true for an episode that may count
   * @returns the number of the next episode
   */
  addStored(store: TraceStore, accepts: (episode: StoredEpisode) => boolean = () => true): number {
    const { name, horizon } = this.plan;
    const own = store.episodes.filter((one) => one.purpose === name && one.horizon === horizon && accepts(one));
    const groups = [...groupBy(own, ({ group, file }) => `${group} ${file}`).values()];
    for (const group of groups.reverse()) {
      if (this.wants(group)) this.add(group.map(({ at }) => store.read(at)));
    }
    return largestOf(
      own.map(({ episode }) => episode + 1),
      0,
    );
  }

  /** Facts to sum up: of what is finished; what is missing counts as failed. */
  get facts(): EvaluationFacts {
    return { plan: this.plan, results: [...this.#byIndex.values()], failed: this.asked - this.#finished };
  }
}
