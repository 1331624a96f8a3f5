/**
 * Evaluations as `longplay eval` makes them: of a run, or of a configuration whose model answers at a price. Episodes are
 * kept as they finish, and one that was stopped goes on with what is left.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { EvaluationPlan } from '../../actors/scheduler/protocol.ts';
import type { Run } from '../../actors/tree.ts';
import { policyKindOf } from '../config/policy-kinds.ts';
import type { RunConfig } from '../config/run-config.ts';
import { readJsonFile } from '../core/bounded-file.ts';
import { messageOf, UserError } from '../core/errors.ts';
import { seedFrom } from '../core/rng.ts';
import type { EvaluationSummary } from '../learning/evaluation/summary.ts';
import type { RemoteUsage } from '../policy/remote/usage.ts';
import { writeFileAtomic } from '../storage/atomic-file.ts';
import type { LoadedCheckpoint } from '../storage/checkpoint.ts';
import { tracePaths } from '../storage/trace-files.ts';
import { TraceStore } from '../storage/trace-store.ts';
import { type EvaluationKind, evaluationPlans, requireFinished } from './evaluate-run.ts';
import type { EvaluationProgress } from './evaluation-progress.ts';
import { runUrl } from './find-world.ts';
import { PlanOutcomes } from './plan-outcomes.ts';
import { readWorlds, summariseIn } from './read-worlds.ts';
import { createRunFolder, readRunConfig } from './run-folder.ts';
import { acquireRunLock, releaseRunLock } from './run-lock.ts';
import { startRun } from './start-run.ts';

/** File of an evaluation's own folder that holds what its configuration does not. */
export const EVALUATION_FILE = 'evaluation.json';

const fileSchema = z.object({ format: z.literal(1), kinds: z.array(z.enum(['sampled', 'greedy'])).min(1) });

/** Evaluation that is ready to be played. */
export interface PreparedEvaluation {
  /** Folder of the run that is evaluated, or of the evaluation itself; undefined where nothing is kept. */
  readonly dir: string | undefined;
  /** True for a folder of the evaluation's own. */
  readonly isOwn: boolean;
  readonly config: RunConfig;
  readonly kinds: readonly EvaluationKind[];
  readonly checkpoint: LoadedCheckpoint | undefined;
  /** True where it goes on with what the traces hold. */
  readonly resume: boolean;
}

/** True for a configuration whose evaluation has a folder of its own: its model answers at a price, or slowly. */
export function isKept(config: RunConfig): boolean {
  const { isRemote, isLanguageModel } = policyKindOf(config);
  return isRemote || isLanguageModel;
}

/** True for the folder of an evaluation. */
export function isEvaluationFolder(dir: string): boolean {
  return existsSync(join(dir, EVALUATION_FILE));
}

/**
 * Makes the folder of a new evaluation.
 * @throws {UserError} RUN_EXISTS, NO_PERMISSION
 */
export function startEvaluation(dir: string, config: RunConfig, kinds: readonly EvaluationKind[]): PreparedEvaluation {
  createRunFolder(dir, config, { [EVALUATION_FILE]: `${JSON.stringify({ format: 1, kinds }, null, 2)}\n` });
  return { dir, isOwn: true, config: readRunConfig(dir), kinds, checkpoint: undefined, resume: false };
}

/**
 * Reads the folder of an evaluation that is to go on.
 * @throws {UserError} BAD_CONFIG for a damaged file
 */
export function resumeEvaluation(dir: string, overrides: readonly string[]): PreparedEvaluation {
  const path = join(dir, EVALUATION_FILE);
  const config = readRunConfig(dir, overrides);
  try {
    const { kinds } = fileSchema.parse(readJsonFile(path));
    return { dir, isOwn: true, config, kinds, checkpoint: undefined, resume: true };
  } catch (thrown) {
    throw new UserError('BAD_CONFIG', `${path}: expected the kinds of an evaluation: ${messageOf(thrown)}`);
  }
}

/** Outcome of an evaluation. */
export interface EvaluationOutcome {
  /** Summaries of all that is finished; an evaluation that was not begun has no episodes. */
  readonly summaries: readonly EvaluationSummary[];
  /** Episodes that are missing: they failed for good, or were not played. */
  readonly missing: number;
  /** True where it was stopped early. */
  readonly stopped: boolean;
  /** Usage of a policy behind a server, of the episodes that were played now. */
  readonly usage: RemoteUsage | undefined;
}

interface PlayOptions {
  readonly onNotice: (line: string) => void;
  readonly progress: EvaluationProgress;
  /** Interruption: resolves, with the reason, when the evaluation is to end early. */
  readonly interrupted: Promise<string>;
}

/**
 * Plays what is left of an evaluation, and sums up all that is finished.
 * @throws {UserError} RUN_EXISTS while another process plays it; what `startRun` throws
 */
export async function playEvaluation(prepared: PreparedEvaluation, options: PlayOptions): Promise<EvaluationOutcome> {
  const { dir, isOwn } = prepared;
  if (dir === undefined || !isOwn) return playPlans(prepared, options);
  const left = acquireRunLock(dir);
  if (left !== undefined) options.onNotice(left);
  try {
    const outcome = await playPlans(prepared, options);
    const { summaries: evaluations, usage } = outcome;
    writeFileAtomic(join(dir, 'results.json'), `${JSON.stringify({ format: 1, evaluations, usage }, null, 2)}\n`);
    return outcome;
  } finally {
    releaseRunLock(dir);
  }
}

async function playPlans(prepared: PreparedEvaluation, options: PlayOptions): Promise<EvaluationOutcome> {
  const { config, kinds, resume } = prepared;
  const worlds = await readWorlds(config);
  // A horizon that is named twice is played once.
  const plans = new Map(evaluationPlans(worlds, kinds).map((plan) => [plan.name, plan]));
  const all = [...plans.values()].map((plan) => new PlanOutcomes(splitPlan(plan, config)));
  const next = resume ? readFinished(prepared, all) : 0;
  const before = count(all, ({ finished }) => finished);
  const asked = count(all, (one) => one.asked);
  if (resume) options.onNotice(`${before} episodes are finished already, ${asked - before} are left`);
  const played = before === asked ? undefined : await playLeft(prepared, all, next, options);
  return {
    summaries: all.map(({ facts }) => summariseIn(worlds, facts)),
    missing: asked - count(all, ({ finished }) => finished),
    stopped: played?.stopped ?? false,
    usage: played?.usage,
  };
}

function count(all: readonly PlanOutcomes[], of: (one: PlanOutcomes) => number): number {
  return all.reduce((sum, one) => sum + of(one), 0);
}

/** Plan whose episodes finish one by one where each is paid for; elsewhere a task's episodes share what was computed. */
function splitPlan(plan: EvaluationPlan, config: RunConfig): EvaluationPlan {
  if (!policyKindOf(config).isRemote) return plan;
  const tasks = plan.tasks.flatMap((task) => Array.from({ length: plan.episodes }, () => task));
  return { ...plan, tasks, episodes: 1 };
}

/** Reads what is finished from traces that were written for the same evaluation. @returns the number of the next episode */
function readFinished({ dir, config, checkpoint }: PreparedEvaluation, all: readonly PlanOutcomes[]): number {
  const own = sourceOf(config);
  let next = 0;
  for (const path of tracePaths(join(dir!, 'traces'), ['eval']).toReversed()) {
    const store = TraceStore.follow(path);
    if (!isDeepStrictEqual(sourceOf(store.config as RunConfig), own)) continue;
    const accepts = ({ version }: { version: number }) => checkpoint === undefined || version === checkpoint.update;
    for (const one of all) next = Math.max(next, one.addStored(store, accepts));
  }
  return next;
}

/** Parts of a configuration that episodes depend on, besides the plan; where the model is served may change. */
function sourceOf(config: RunConfig | undefined): unknown {
  if (!config) return undefined;
  const { seed, env, worlds, policy, evaluation } = config;
  const { apiKeyEnv: _key, openai, ...rest } = policy;
  const { baseUrl: _url, concurrency: _concurrency, ...asked } = openai;
  const parts = { seed, env, worlds, policy: { ...rest, openai: asked }, sampling: evaluation.sampling };
  return JSON.parse(JSON.stringify(parts));
}

async function playLeft(
  { dir, isOwn, config, checkpoint }: PreparedEvaluation,
  all: readonly PlanOutcomes[],
  next: number,
  { onNotice, progress, interrupted }: PlayOptions,
): Promise<Pick<EvaluationOutcome, 'stopped' | 'usage'>> {
  const byName = new Map(all.map((one) => [one.plan.name, one]));
  const run = await startRun({
    config: tracedConfig(config, dir !== undefined, isOwn),
    dir: dir ?? '.',
    mode: 'async',
    envModule: runUrl(config),
    learn: false,
    onNotice,
    firstEpisode: next,
    onEpisodes: (trajectories, purpose) => {
      byName.get(purpose)?.add(trajectories);
      progress.recordFinished(trajectories, purpose);
    },
    checkpoint,
  });
  try {
    const plans = all.flatMap(({ plan, left }) => (left.length === 0 ? [] : [{ ...plan, tasks: left }]));
    progress.expect(plans);
    // Sampled anew: the same seeds would draw the answers that are there already.
    const isResumed = next > 0 && policyKindOf(config).isRemote;
    const playing = playAll(run, isResumed ? plans.map((plan) => reseed(plan, next)) : plans, byName);
    const signal = await Promise.race([playing.then(() => undefined), interrupted]);
    if (signal !== undefined) {
      playing.catch(() => {}); // given up: it fails when the run stops
      onNotice(dir === undefined ? signal : `${signal}: finished episodes are kept`);
    }
    await run.flush();
    return {
      stopped: signal !== undefined,
      usage: policyKindOf(config).isRemote ? (await run.inference()).remote : undefined,
    };
  } finally {
    await run.stop();
  }
}

async function playAll(
  run: Run,
  plans: readonly EvaluationPlan[],
  outcomes: ReadonlyMap<string, PlanOutcomes>,
): Promise<void> {
  for (const plan of plans) {
    const record = await run.evaluate(plan);
    if (outcomes.get(plan.name)!.finished === 0) requireFinished(record);
  }
}

function reseed(plan: EvaluationPlan, next: number): EvaluationPlan {
  return { ...plan, seed: seedFrom(plan.seed, 'resumed', next) };
}

/** Configuration under which every episode that was paid for is traced, and as many are played at once as in groups. */
function tracedConfig(config: RunConfig, traces: boolean, isOwn: boolean): RunConfig {
  const { trace, rollout, evaluation } = config;
  if (!traces) return { ...config, trace: { ...trace, everyGroups: 0 } };
  if (!isKept(config)) return config;
  const whole = { ...trace, everyGroups: 1, maxShare: 1, ...(isOwn ? { keepBytes: Number.MAX_SAFE_INTEGER } : {}) };
  const wide = rollout.concurrentGroups * evaluation.episodesPerTask;
  return {
    ...config,
    trace: whole,
    rollout: { ...rollout, concurrentGroups: policyKindOf(config).isRemote ? wide : rollout.concurrentGroups },
  };
}
