/** Evaluations under way: their next tasks, their results, and when one is done. */
import { readReport } from '../../src/core/agent-call.ts';
import { append } from '../../src/core/extremes.ts';
import type { Failure } from '../../src/core/failure.ts';
import { seedFrom } from '../../src/core/rng.ts';
import { type Task, taskName } from '../../src/core/task.ts';
import { episodeReturn, type Trajectory, turnsUsed } from '../../src/core/trajectory.ts';
import type { Purpose } from '../rollout/protocol.ts';
import type { EvaluationPlan, EvaluationRecord } from './protocol.ts';

interface EvaluationRun {
  readonly plan: EvaluationPlan;
  readonly done: (record: EvaluationRecord) => void;
  readonly queue: Task[];
  /** Groups begun of each task: a plan may list one several times. */
  readonly begun: Map<string, number>;
  /** Groups begun and not finished. */
  open: number;
  /** Episodes that belong to a group given up. */
  failed: number;
  /** Failure of the last one. */
  failure: Failure | undefined;
  readonly trajectories: Trajectory[];
}

/** Group to be played. */
export interface EvaluationGroup {
  readonly plan: EvaluationPlan;
  readonly task: Task;
  readonly purpose: Purpose;
}

export class Evaluations {
  readonly #runs = new Map<string, EvaluationRun>();

  get size(): number {
    return this.#runs.size;
  }

  open(plan: EvaluationPlan, done: EvaluationRun['done']): void {
    this.#runs.set(plan.name, {
      plan,
      done,
      queue: [...plan.tasks],
      begun: new Map(),
      open: 0,
      failed: 0,
      failure: undefined,
      trajectories: [],
    });
  }

  /** Next group that waits to be played; it counts as begun. */
  next(): EvaluationGroup | undefined {
    for (const run of this.#runs.values()) {
      const task = run.queue.shift();
      if (!task) continue;
      run.open++;
      const { plan } = run;
      const again = run.begun.get(taskName(task)) ?? 0;
      run.begun.set(taskName(task), again + 1);
      // Seeded by the task, not by the order of arrival: an evaluation repeats whatever ran before it.
      const first = seedFrom(plan.seed, task.index, task.seed);
      const seed = again === 0 ? first : seedFrom(first, again);
      const { name, temperature, sampling, stop } = plan;
      const settings = { ...(sampling ? { sampling } : {}), ...(stop ? { stop } : {}) };
      return { plan, task, purpose: { name, temperature, ...settings, seed } };
    }
    return undefined;
  }

  /** Records a finished group. @returns false where it belongs to no evaluation */
  recordFinished(name: string, trajectories: readonly Trajectory[]): boolean {
    const run = this.#runs.get(name);
    if (!run) return false;
    run.open--;
    append(run.trajectories, trajectories);
    return true;
  }

  /** Records a group of `episodes` that was given up. @returns false where it belongs to no evaluation */
  recordGivenUp(name: string, episodes: number, failure: Failure): boolean {
    const run = this.#runs.get(name);
    if (!run) return false;
    run.open--;
    run.failed += episodes;
    run.failure = failure;
    return true;
  }

  /** Settles the evaluations that are done: reports their results. */
  settle(): void {
    for (const [name, run] of this.#runs) {
      if (run.queue.length > 0 || run.open > 0) continue;
      this.#runs.delete(name);
      run.done(recordOf(run));
    }
  }
}

function recordOf({ plan, failed, failure, trajectories }: EvaluationRun): EvaluationRecord {
  const byTask = new Map<string, Trajectory[]>();
  for (const one of trajectories) {
    const known = byTask.get(taskName(one.task));
    if (known) known.push(one);
    else byTask.set(taskName(one.task), [one]);
  }
  const groups = new Map<string, number>();
  for (const task of plan.tasks) groups.set(taskName(task), (groups.get(taskName(task)) ?? 0) + 1);
  const tasks = new Map(plan.tasks.map((task) => [taskName(task), task]));
  const results = [...tasks.values()].map((task) => {
    const own = byTask.get(taskName(task)) ?? [];
    return {
      task,
      asked: plan.episodes * groups.get(taskName(task))!,
      successes: own.map(({ success }) => success),
      returns: own.map(episodeReturn),
      turns: own.map(({ turns }) => turnsUsed(turns)),
      reports: own.map(({ finalObservation }) => readReport(finalObservation)),
    };
  });
  return { plan, results, failed, failure };
}
