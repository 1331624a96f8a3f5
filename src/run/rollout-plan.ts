import { existsSync } from 'node:fs';
import { z } from 'zod';
import type { EvaluationPlan } from '../../actors/scheduler/protocol.ts';
import type { RunConfig } from '../config/run-config.ts';
import { readJsonFile } from '../core/bounded-file.ts';
import type { Env } from '../core/env.ts';
import { messageOf, UserError } from '../core/errors.ts';
import type { TokenSampling } from '../core/model-call.ts';
import { seedFrom } from '../core/rng.ts';
import type { Split, Task } from '../core/task.ts';
import { type EvaluationSummary, summarise } from '../learning/evaluation/summary.ts';
import { listEvaluatedTasks } from '../learning/evaluation/tasks.ts';
import { mendTrace } from '../storage/trace-cut.ts';
import { tracePaths } from '../storage/trace-files.ts';
import { type StoredEpisode, TraceStore } from '../storage/trace-store.ts';
import { firstIssue } from '../storage/trajectory-schema.ts';
import { PlanOutcomes, taskKey } from './plan-outcomes.ts';

/** Purpose of a rollout's episodes. */
const ROLLOUT = 'rollout';

/** Plan of a rollout, `rollout.json` of its folder. */
export interface RolloutPlan {
  readonly format: 1;
  readonly episodes: number;
  readonly split: Split;
  /** Named set of the world's tasks, or task indices, to play instead of the split. */
  readonly tasks?: string | readonly number[] | undefined;
  readonly horizon: number;
  readonly temperature: number;
  /** Settings of a language model's sampling, and texts that end its answers: `evaluation.sampling` of the configuration. */
  readonly sampling?: TokenSampling | undefined;
  readonly stop?: readonly string[] | undefined;
  readonly seed: number;
  /** Folder of the run whose newest checkpoint plays; absent for other policies. */
  readonly policyRun?: string | undefined;
}

const planSchema = z.object({
  format: z.literal(1),
  episodes: z.int().min(1),
  split: z.enum(['train', 'test']),
  tasks: z.union([z.string(), z.array(z.int().min(0)).min(1)]).optional(),
  horizon: z.int().min(1),
  temperature: z.number().min(0).max(1e6),
  sampling: z.record(z.string(), z.number()).optional(),
  stop: z.array(z.string()).optional(),
  seed: z.number(),
  policyRun: z.string().optional(),
});

/**
 * Sampling of a rollout: that of the configuration's evaluations.
 * @param temperature in its place; absent: the configuration's, or 1
 */
export function samplingOf(
  { evaluation }: Pick<RunConfig, 'evaluation'>,
  temperature: number | undefined,
): Pick<RolloutPlan, 'temperature' | 'sampling' | 'stop'> {
  const { temperature: configured = 1, stop, ...sampling } = evaluation.sampling ?? {};
  return {
    temperature: temperature ?? configured,
    ...(Object.keys(sampling).length === 0 ? {} : { sampling }),
    ...(stop === undefined ? {} : { stop }),
  };
}

/** Reads the plan of a rollout's folder. @throws {UserError} BAD_CONFIG for a file that is none */
export function readPlan(path: string): RolloutPlan {
  let plan: unknown;
  try {
    plan = readJsonFile(path);
  } catch (thrown) {
    throw new UserError('BAD_CONFIG', `cannot read ${messageOf(thrown)}`);
  }
  const checked = planSchema.safeParse(plan);
  if (!checked.success) {
    throw new UserError('BAD_CONFIG', `${path}: expected the plan of a rollout: ${firstIssue(checked.error)}`);
  }
  return checked.data;
}

/**
 * Tasks of a plan's episodes: those of the split, or those named, in order, again and again, each time round under
 * another seed. A round that is not whole is spread evenly over them, as tasks often lie from easy to hard.
 * @throws {UserError} BAD_CONFIG for a set or an index the world does not have
 */
export function rolloutTasks(
  plan: Pick<RolloutPlan, 'episodes' | 'split' | 'tasks' | 'seed'>,
  env: Env,
): readonly Task[] {
  const indices = listEvaluatedTasks(env, plan, 'tasks');
  const { length } = indices;
  return Array.from({ length: plan.episodes }, (_, i) => {
    const round = Math.floor(i / length);
    const inRound = Math.min(length, plan.episodes - round * length);
    const seed = round === 0 ? env.tasks.evalSeed : seedFrom('rollout', plan.seed, round);
    return { env: env.id, index: indices[Math.floor(((i % length) * length) / inRound)]!, seed };
  });
}

/** Episodes that a folder of traces holds: their tasks' keys and their numbers. A cut-off last line is removed. */
export function listFinishedEpisodes(traces: string): ReadonlyMap<string, number> {
  for (const path of tracePaths(traces)) mendTrace(path);
  return new Map(listPlayed(storeOf(traces)).map((one) => [taskKey(one), one.episode]));
}

/** Evaluation that a plan is: its episodes one by one. */
export function rolloutEvaluation(plan: RolloutPlan, env: Env): EvaluationPlan {
  const { horizon, temperature, sampling, stop, seed } = plan;
  const settings = { ...(sampling ? { sampling } : {}), ...(stop ? { stop } : {}) };
  return { name: ROLLOUT, tasks: rolloutTasks(plan, env), episodes: 1, horizon, temperature, ...settings, seed };
}

/** Sums up what a rollout's traces hold. */
export function summariseRollout(
  traces: string,
  plan: EvaluationPlan,
  env: Env,
): { readonly summary: EvaluationSummary; readonly finished: number } {
  const outcomes = new PlanOutcomes(plan);
  const store = storeOf(traces);
  if (store) outcomes.addStored(store);
  return { summary: summarise(outcomes.facts, env.tasks), finished: outcomes.finished };
}

/** Store of a folder of traces; undefined where there is no folder yet. */
function storeOf(traces: string): TraceStore | undefined {
  return existsSync(traces) ? TraceStore.follow(traces) : undefined;
}

/** Episodes of the plan that a store holds. */
function listPlayed(store: TraceStore | undefined): readonly StoredEpisode[] {
  return store?.episodes.filter(({ purpose }) => purpose === ROLLOUT) ?? [];
}
