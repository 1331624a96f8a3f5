import type { Env } from '../core/env.ts';
import { seedFrom } from '../core/rng.ts';
import type { Split, Task } from '../core/task.ts';
import { episodeReturn, turnsUsed } from '../core/trajectory.ts';
import { type EvaluationSummary, summarise } from '../evaluation/summary.ts';
import { mendTrace, readTrace, type TraceLine } from '../record/trace.ts';
import { tracePaths } from '../record/trace-files.ts';

/** Plan of a rollout, `rollout.json` of its folder. */
export interface RolloutPlan {
  readonly format: 1;
  readonly episodes: number;
  readonly split: Split;
  readonly horizon: number;
  readonly temperature: number;
  readonly seed: number;
  /** Folder of the run whose newest checkpoint plays; absent for other policies. */
  readonly policyRun?: string | undefined;
}

/**
 * Tasks of a plan's episodes: the split's tasks in order, again and again, each time round under another seed. A round
 * that is not whole is spread evenly over the split, whose tasks often lie from easy to hard.
 */
export function rolloutTasks(plan: Pick<RolloutPlan, 'episodes' | 'split' | 'seed'>, env: Env): readonly Task[] {
  const indices = env.tasks.split(plan.split);
  const { length } = indices;
  return Array.from({ length: plan.episodes }, (_, i) => {
    const round = Math.floor(i / length);
    const inRound = Math.min(length, plan.episodes - round * length);
    const seed = round === 0 ? env.tasks.evalSeed : seedFrom('rollout', plan.seed, round);
    return { env: env.id, index: indices[Math.floor(((i % length) * length) / inRound)]!, seed };
  });
}

/** Key of an episode of a plan. */
export function taskKey({ index, seed }: Task): string {
  return `${index}#${seed}`;
}

/** Episodes that a folder of traces holds: their tasks' keys and their numbers. A cut-off last line is removed. */
export function finishedEpisodes(traces: string): ReadonlyMap<string, number> {
  for (const path of tracePaths(traces)) mendTrace(path);
  return new Map(linesOf(traces).map(({ task, episode }) => [taskKey(task), episode]));
}

export function summariseRollout(
  traces: string,
  plan: RolloutPlan,
  env: Env,
): { readonly summary: EvaluationSummary; readonly finished: number } {
  const lines = linesOf(traces);
  const { horizon, temperature } = plan;
  const byIndex = new Map<number, TraceLine[]>();
  for (const line of lines) byIndex.set(line.task.index, [...(byIndex.get(line.task.index) ?? []), line]);
  const results = [...byIndex.values()].map((own) => ({
    task: own[0]!.task,
    successes: own.map(({ success }) => success),
    returns: own.map(episodeReturn),
    turns: own.map(({ turns }) => turnsUsed(turns)),
  }));
  const facts = { plan: { name: 'rollout', horizon, temperature }, results, failed: plan.episodes - lines.length };
  return { summary: summarise(facts, env.tasks), finished: lines.length };
}

function linesOf(traces: string): readonly TraceLine[] {
  return tracePaths(traces).flatMap((path) => readTrace(path).episodes.filter(({ purpose }) => purpose === 'rollout'));
}
