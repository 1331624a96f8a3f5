/** Rollouts: episodes played with a model behind a server, a trained policy or at random, and kept as traces. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Subject } from 'rxjs';
import type { RunLimits } from '../../actors/tree.ts';
import { chooseEngine } from '../compute/engine/open.ts';
import { checkRunConfig } from '../config/load.ts';
import type { AgentConfigInput, RunConfig, RunConfigInput } from '../config/run-config.ts';
import { requireOneWorld } from '../config/worlds.ts';
import type { RunConsole } from '../console/console.ts';
import { isUserMistake, UserError } from '../core/errors.ts';
import type { Split } from '../core/task.ts';
import type { EvaluationSummary } from '../learning/evaluation/summary.ts';
import { loadNewestOf } from '../learning/learner/run-checkpoint.ts';
import type { MetricsRow } from '../metrics/metric-table.ts';
import type { RunStatus } from '../metrics/run-status.ts';
import { openSinks } from '../metrics/sinks/open.ts';
import { closeSinks } from '../metrics/sinks/sink.ts';
import type { RemoteUsage } from '../policy/remote/usage.ts';
import { writeFileAtomic } from '../storage/atomic-file.ts';
import { envLabel, locateEnv } from '../world/env-id.ts';
import { actorLines } from './actor-lines.ts';
import { findWorld, worldUrl } from './find-world.ts';
import { taskKey } from './plan-outcomes.ts';
import {
  listFinishedEpisodes,
  type RolloutPlan,
  rolloutEvaluation,
  samplingOf,
  summariseRollout,
} from './rollout-plan.ts';
import { RolloutWatch } from './rollout-watch.ts';
import { createRunFolder, discard, freeRunName, readRunConfig } from './run-folder.ts';
import { acquireRunLock, releaseRunLock } from './run-lock.ts';
import { endStreams, type RunStreams, runStreams, watchEpisodes, watchObservations } from './run-streams.ts';
import { startRun } from './start-run.ts';

/** File of a rollout's folder that holds its plan. */
export const PLAN_FILE = 'rollout.json';

/** Options of a rollout: the episodes to play, and the place for them. */
export interface RolloutOptions {
  /**
   * World and policy, as a configuration holds them: `policy: { kind: 'openai', openai: { baseUrl, model } }`, or
   * `{ kind: 'random' }`. Keys left out have their defaults. Without it `policyRun` takes that run's own.
   */
  readonly config?: Omit<RunConfigInput, 'horizon' | 'stop'> | Omit<AgentConfigInput, 'horizon' | 'stop'> | undefined;
  /** Episodes in all, spread over the tasks, ≥ 1. */
  readonly episodes: number;
  /** Turns an episode may take, ≥ 1. */
  readonly horizon: number;
  /** Split of the tasks. Default `train`. */
  readonly split?: Split | undefined;
  /** Named set of the world's tasks, or task indices, to play instead of the split. */
  readonly tasks?: string | readonly number[] | undefined;
  /** Temperature; 0 is greedy. Default: `evaluation.sampling.temperature`, else 1; the other settings are taken from there. */
  readonly temperature?: number | undefined;
  /** Seed of tasks and sampling, uint32. Default 1. */
  readonly seed?: number | undefined;
  /** Folder of the run whose newest checkpoint plays. */
  readonly policyRun?: string | undefined;
  /** Folder of the rollout; new. Default `runs/rollout-<world>`, numbered where it exists. */
  readonly dir?: string | undefined;
  /** Called with notices for a person, one line each. */
  readonly onNotice?: ((message: string) => void) | undefined;
}

/** Outcome of a rollout: success, and the tokens it used; also in the folder's `results.json`. */
export interface RolloutOutcome {
  readonly summary: EvaluationSummary;
  /** Episodes that the folder's traces hold. */
  readonly finished: number;
  /** Episodes finished by this call, which may have resumed the rollout. */
  readonly played: number;
  /** Usage of a policy behind a server: that of the episodes which were `played`. */
  readonly usage: RemoteUsage | undefined;
}

/** Handle of a rollout that plays: its streams, its end, and the way to end it early. */
export interface RunningRollout extends RunStreams {
  /** Folder of the rollout. */
  readonly dir: string;
  /** Stops it early; finished episodes are kept. */
  stop(): Promise<RolloutOutcome>;
  /** Settles with the rollout, after its streams. Rejects with what ended it. */
  readonly done: Promise<RolloutOutcome>;
}

/**
 * Plays episodes and keeps their traces. The handle is there at once, so that its streams miss nothing.
 * @throws {UserError} BAD_ARGUMENT, BAD_CONFIG, UNKNOWN_ENV, UNKNOWN_RUN for invalid options; later errors reject `done`
 */
export function rollout(options: RolloutOptions): RunningRollout {
  const { episodes, horizon, split = 'train', tasks, temperature, seed = 1, policyRun } = options;
  const trained = policyRun === undefined ? undefined : readRunConfig(policyRun);
  if (trained) requireOneWorld(trained, 'rollout');
  const given = options.config ?? trained;
  if (!given)
    throw new UserError('BAD_ARGUMENT', 'rollout: config is missing; or give policyRun, whose own it then is');
  // A checkpoint holds the state of its run's schedule, and is refused under another one; `plan` gives how long to play.
  const raw = { stop: { updates: 1 }, ...given, horizon: trained?.horizon ?? { type: 'fixed', rounds: horizon } };
  const checked = checkRunConfig(raw, 'config');
  const config = { ...checked, env: locateEnv(checked.env, process.cwd()) };
  worldUrl(config.env.id, config.env.options);
  const dir = options.dir ?? join('runs', freeRunName('runs', `rollout-${envLabel(config.env.id)}`));
  const plan: RolloutPlan = {
    format: 1,
    episodes,
    split,
    tasks,
    horizon,
    ...samplingOf(config, temperature),
    seed,
    policyRun,
  };
  const prepared = startFolder({ dir, config, plan });
  const streams = runStreams();
  const metrics$ = new Subject<MetricsRow>();
  metrics$.subscribe((row) => streams.metrics$.push(row));
  let stop = () => {};
  const interrupted = new Promise<string>((resolve) => {
    stop = () => resolve('stopped');
  });
  const done = (async () => {
    await new Promise((resolve) => setImmediate(resolve));
    try {
      const onNotice = (line: string) => options.onNotice?.(line);
      return await playRollout(prepared, { onNotice, metrics$, streams, interrupted });
    } catch (thrown) {
      if (isUserMistake(thrown) && !existsSync(join(dir, 'traces'))) discard(dir);
      throw thrown;
    } finally {
      await endStreams(streams);
    }
  })();
  return {
    ...streams,
    dir,
    done,
    stop() {
      stop();
      return done;
    },
  };
}

/** Prepared rollout, whose folder exists. */
export interface PreparedRollout {
  readonly dir: string;
  readonly config: RunConfig;
  readonly plan: RolloutPlan;
}

/**
 * Makes the folder of a new rollout.
 * @returns the rollout with the configuration that was written
 * @throws {UserError} RUN_EXISTS, NO_PERMISSION
 */
export function startFolder({ dir, config, plan }: PreparedRollout): PreparedRollout {
  const written = createRunFolder(dir, config, { [PLAN_FILE]: `${JSON.stringify(plan, null, 2)}\n` });
  return { dir, config: written, plan };
}

interface PlayOptions {
  readonly onNotice: (line: string) => void;
  readonly display?: Pick<RunConsole, 'progress' | 'watch'>;
  readonly metrics$?: Subject<MetricsRow>;
  readonly streams?: RunStreams;
  /** Interruption: resolves, with the reason, when the rollout is to end early. */
  readonly interrupted?: Promise<string>;
  /** Limits that no configuration sets. */
  readonly limits?: RunLimits | undefined;
}

/**
 * Plays the episodes that are left of a plan, and sums up all that its traces hold.
 * @throws {UserError} RUN_EXISTS while another process writes this rollout
 */
export async function playRollout(prepared: PreparedRollout, options: PlayOptions): Promise<RolloutOutcome> {
  const left = acquireRunLock(prepared.dir);
  if (left !== undefined) options.onNotice(left);
  try {
    return await playLocked(prepared, options);
  } finally {
    releaseRunLock(prepared.dir);
  }
}

async function playLocked(
  { dir, config, plan }: PreparedRollout,
  { onNotice, display, metrics$, streams, interrupted, limits }: PlayOptions,
): Promise<RolloutOutcome> {
  const { env } = await findWorld(config.env.id, config.env.options);
  const before = listFinishedEpisodes(join(dir, 'traces'));
  const evaluation = rolloutEvaluation(plan, env);
  const left = evaluation.tasks.filter((task) => !before.has(taskKey(task)));
  if (before.size > 0) onNotice(`${before.size} episodes are finished already, ${left.length} are left`);
  let usage: RemoteUsage | undefined;
  if (left.length > 0) {
    const checkpoint = plan.policyRun === undefined ? undefined : loadNewestOf(plan.policyRun);
    for (const warning of checkpoint?.warnings ?? []) onNotice(warning);
    // Behind a server it is not our engine that computes.
    if (plan.policyRun !== undefined) onNotice((await chooseEngine(config.engine)).notice);
    const { horizon, episodes: total } = plan;
    const watch = new RolloutWatch((index) => env.tasks.label(index), { before: before.size, total, horizon });
    let status: RunStatus | undefined;
    const sinks = await openSinks(config, dir, onNotice);
    const run = await startRun({
      // A rollout's traces are its result: none is left out and none goes.
      config: {
        ...config,
        trace: { ...config.trace, everyGroups: 1, maxShare: 1, keepBytes: Number.MAX_SAFE_INTEGER },
      },
      dir,
      mode: 'async',
      envModule: worldUrl(config.env.id, config.env.options),
      learn: false,
      onNotice,
      firstEpisode: before.size === 0 ? 0 : 1 + [...before.values()].reduce((most, one) => Math.max(most, one)),
      sinks,
      onEpisodes: (trajectories, purpose) => {
        watch.recordFinished(trajectories);
        if (streams) watchEpisodes(streams, trajectories, purpose);
      },
      onProgress: (latest) => {
        status = latest;
      },
      metrics$,
      checkpoint,
      limits,
    }).catch(async (thrown: unknown) => {
      await closeSinks(sinks, 'failed', onNotice); // their timers would keep the process alive
      throw thrown;
    });
    const shown = display ?? { progress() {}, watch() {} };
    shown.watch(() => actorLines(run, status, config.rollout.envThreads));
    watch.watch(run, shown);
    if (streams) watchObservations(streams, run);
    try {
      const playing = run.evaluate({ ...evaluation, tasks: left });
      const signal = await Promise.race([playing.then(() => undefined), ...(interrupted ? [interrupted] : [])]);
      if (signal) {
        playing.catch(() => {}); // given up: it fails when the run stops
        onNotice(`${signal}: finished episodes are kept`);
      }
      await watch.stop(run, shown);
      usage = (await run.inference()).remote;
      await run.flush();
    } finally {
      watch.cancel();
      await run.stop();
    }
  } else await sendWaiting(config, dir, onNotice);
  const { summary, finished } = summariseRollout(join(dir, 'traces'), evaluation, env);
  const played = finished - before.size;
  const results = { format: 1, finished, played, summary, usage };
  writeFileAtomic(join(dir, 'results.json'), `${JSON.stringify(results, null, 2)}\n`);
  return { summary, finished, usage, played };
}

/** Sends what earlier processes have left in the outboxes of sinks. Sinks that keep none have nothing to do. */
async function sendWaiting(config: RunConfig, dir: string, onNotice: (line: string) => void): Promise<void> {
  const { otel, mlflow } = config.metrics;
  const metrics = { tensorboard: false, ...(otel && { otel }), ...(mlflow && { mlflow }) };
  const sinks = await openSinks({ policy: config.policy, metrics }, dir, onNotice);
  await closeSinks(sinks, 'finished', onNotice);
}
