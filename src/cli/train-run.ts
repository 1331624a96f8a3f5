/** A training run from start to finish: what `longplay train` and the experiments share. */
import { createHash } from 'node:crypto';
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { Subject } from 'rxjs';
import type { EvaluationPlan, RunStatus, TrainEnded } from '../../actors/scheduler/protocol.ts';
import { type Run, startRun } from '../../actors/tree.ts';
import type { ChaosReport } from '../chaos/chaos-ledger.ts';
import type { ChaosSpec } from '../chaos/spec.ts';
import type { RunConfig } from '../config/run-config.ts';
import type { Env } from '../core/env.ts';
import { LongplayError, messageOf, UserError } from '../core/errors.ts';
import { seedFrom } from '../core/rng.ts';
import type { Task } from '../core/task.ts';
import { type EvaluationSummary, summarise } from '../evaluation/summary.ts';
import { evaluatedTasks } from '../evaluation/tasks.ts';
import { type LoadedCheckpoint, loadNewest } from '../record/checkpoint.ts';
import type { MetricsRow } from '../record/metrics.ts';
import { openSinks } from '../record/sinks/open.ts';
import { worldUrl } from '../run/find-world.ts';
import { readSchedule, type Schedule, ScheduleRecorder } from '../run/schedule-file.ts';
import { markEnded, markStarted } from '../run/started-mark.ts';

export interface TrainRequest {
  readonly config: RunConfig;
  /** The run's folder; it exists. */
  readonly dir: string;
  readonly mode: 'async' | 'serial';
  /** Go on from the newest good checkpoint in `dir`. */
  readonly resume: boolean;
  readonly metrics$?: Subject<MetricsRow>;
  readonly chaos?: ChaosSpec;
  /** Keeps the order of messages in this file. */
  readonly recordSchedule?: string;
  /** Repeats the run recorded there; `mode` must be `serial`. */
  readonly replaySchedule?: string;
  readonly onProgress?: (status: RunStatus) => void;
  readonly onNotice: (message: string) => void;
  /** Ends the run early: what runs is given up, a checkpoint is written, evaluations are left out. */
  readonly interrupt?: AbortSignal;
  /** Called with the started run. */
  readonly onStarted?: (run: Run) => void;
  /** Awaited between training and evaluation. */
  readonly beforeEvaluation?: () => Promise<unknown>;
}

export interface TrainOutcome {
  readonly ended: TrainEnded;
  readonly evaluations: readonly EvaluationSummary[];
  /** What was injected, detected and lost, under `--chaos`. */
  readonly chaos?: ChaosReport;
}

/** Trains, writes a last checkpoint, evaluates, and leaves `results.json` in the run's folder. */
export async function trainRun(request: TrainRequest): Promise<TrainOutcome> {
  const left = markStarted(request.dir);
  if (left !== undefined) request.onNotice(left);
  try {
    return await trained(request);
  } finally {
    markEnded(request.dir);
  }
}

async function trained(request: TrainRequest): Promise<TrainOutcome> {
  const { config, dir, mode, resume, onNotice } = request;
  const checkpoint = resume ? loadNewest(join(dir, 'checkpoints')) : undefined;
  const initial = resume || config.policy.init === undefined ? undefined : initialWeights(config.policy.init, onNotice);
  for (const warning of checkpoint?.warnings ?? []) onNotice(warning);
  if (checkpoint) onNotice(`resuming from update ${checkpoint.update}`);
  const { recordSchedule, replaySchedule } = request;
  const record = recordSchedule === undefined ? undefined : new ScheduleRecorder(recordSchedule, config);
  const replay = replaySchedule === undefined ? undefined : scheduleOf(replaySchedule, config);
  const run = await startRun({
    config,
    dir,
    mode,
    envModule: worldUrl(config.env.id, config.env.options),
    learn: true,
    ...(record ? { record } : {}),
    ...(replay ? { replay } : {}),
    onNotice,
    evaluation: {
      plans: (env) => evaluationPlans(env, config),
      onRecord: (version, record, env) => recordEvaluation(request, version, summarise(record, env.tasks)),
    },
    ...(checkpoint ? { checkpoint } : {}),
    ...(initial ? { initial } : {}),
    sinks: await openSinks(config.metrics, dir, onNotice),
    ...(request.onProgress ? { onProgress: request.onProgress } : {}),
    ...(request.chaos ? { chaos: request.chaos } : {}),
    ...(request.metrics$ ? { metrics$: request.metrics$ } : {}),
  });
  try {
    evaluatedTasks(run.env, config.evaluation); // a set that is not there is told before training, not after it
    request.onStarted?.(run);
    const { interrupt } = request;
    interrupt?.addEventListener('abort', () => run.halt(), { once: true });
    const training = run.train();
    if (interrupt?.aborted) run.halt(); // the signal came while the run was starting
    const ended = await training;
    const saved = await run.save();
    if (!saved.ok) onNotice(`the last checkpoint could not be written: ${saved.message}`);
    const sha256 = record || replay ? weightsDigest(join(dir, 'checkpoints', String(saved.update))) : '';
    record?.weights(sha256);
    if (replay) onNotice(compared(replay, sha256));
    await request.beforeEvaluation?.();
    const progress = `trained ${ended.status.version} updates, ${ended.status.envSteps} env steps`;
    onNotice(ended.why === 'halted' ? progress : `${progress}; evaluating`);
    const evaluations = await unlessInterrupted(interrupt, async () => {
      if (ended.why === 'halted') return [];
      const all = await evaluateRun(run, config);
      if (config.evaluation.randomBaseline && all.length > 0) all.push(...(await randomBaseline(request)));
      return all;
    });
    const chaos = run.chaos();
    const outcome = { ended, evaluations, ...(chaos ? { chaos } : {}) };
    writeFileSync(join(dir, 'results.json'), `${JSON.stringify({ format: 1, ...outcome }, null, 2)}\n`);
    return outcome;
  } finally {
    await run.stop();
  }
}

/** The newest good weights of another run. */
function initialWeights(run: string, onNotice: (message: string) => void): LoadedCheckpoint {
  const checkpoint = loadNewest(join(run, 'checkpoints'));
  for (const warning of checkpoint.warnings) onNotice(warning);
  onNotice(`starting from the weights of ${run}, update ${checkpoint.update}`);
  return checkpoint;
}

/** @throws {UserError} BAD_CONFIG when it was recorded under another configuration */
function scheduleOf(path: string, config: RunConfig): Schedule {
  const schedule = readSchedule(path);
  if (!isDeepStrictEqual(schedule.config, JSON.parse(JSON.stringify(config)))) {
    throw new UserError('BAD_CONFIG', `--replay-schedule ${path}: it was recorded under another configuration`);
  }
  return schedule;
}

/** SHA-256 of the weights and moments of a checkpoint. */
function weightsDigest(folder: string): string {
  return createHash('sha256')
    .update(readFileSync(join(folder, 'tensors.safetensors')))
    .digest('hex');
}

/** @throws {LongplayError} BAD_TRACE when the repetition ended elsewhere */
function compared({ weights }: Schedule, sha256: string): string {
  if (weights === undefined) return 'the recording was cut short: there are no weights to compare with';
  if (weights === sha256) return `the replay ended with the recorded weights (sha256 ${sha256.slice(0, 16)}…)`;
  throw new LongplayError('BAD_TRACE', `the replay ended with other weights: ${sha256}, recorded ${weights}`);
}

/** The evaluations, or none once the run is interrupted: what they have under way ends with the run. */
async function unlessInterrupted(
  interrupt: AbortSignal | undefined,
  evaluate: () => Promise<EvaluationSummary[]>,
): Promise<EvaluationSummary[]> {
  if (!interrupt) return evaluate();
  if (interrupt.aborted) return [];
  const evaluations = evaluate();
  const cut = new Promise<EvaluationSummary[]>((resolve) => {
    interrupt.addEventListener('abort', () => resolve([]), { once: true });
  });
  evaluations.catch(() => {}); // cut off, it fails when the run stops
  return Promise.race([evaluations, cut]);
}

/** All evaluations a configuration asks for, of the run's present weights. */
export async function evaluateRun(
  run: Run,
  config: RunConfig,
  kinds: readonly ('sampled' | 'greedy')[] = config.evaluation.greedy ? ['sampled', 'greedy'] : ['sampled'],
): Promise<EvaluationSummary[]> {
  const summaries: EvaluationSummary[] = [];
  for (const plan of evaluationPlans(run.env, config, kinds)) summaries.push(await evaluate(run, plan));
  return summaries;
}

/** An evaluation made while training went on: its episodes may span several versions from `version` on. */
function recordEvaluation({ dir, onNotice }: TrainRequest, version: number, summary: EvaluationSummary): void {
  const { name, all } = summary;
  onNotice(
    `update ${version}, ${name}: success ${(100 * all.success.value).toFixed(1)} % of ${all.episodes} episodes (${all.tasks} tasks)`,
  );
  try {
    appendFileSync(
      join(dir, 'evaluations.jsonl'),
      `${JSON.stringify({ format: 1, update: version, evaluation: summary })}\n`,
    );
  } catch (thrown) {
    onNotice(`cannot write evaluations.jsonl: ${messageOf(thrown)}; the run goes on without it`);
  }
}

async function evaluate(run: Run, plan: EvaluationPlan): Promise<EvaluationSummary> {
  const record = await run.evaluate(plan);
  if (record.results.every(({ successes }) => successes.length === 0)) {
    throw new LongplayError(
      'ENV_BROKEN',
      `evaluation ${plan.name}: every episode failed; run \`longplay check-env\` on the environment`,
    );
  }
  return summarise(record, run.env.tasks);
}

/** The same evaluations for a uniform random policy over the same lists. */
async function randomBaseline(request: TrainRequest): Promise<EvaluationSummary[]> {
  const config: RunConfig = {
    ...request.config,
    policy: { ...request.config.policy, kind: 'random' },
    trace: { ...request.config.trace, everyGroups: 0 },
  };
  const run = await startRun({
    config,
    dir: request.dir,
    mode: request.mode,
    envModule: worldUrl(config.env.id, config.env.options),
    learn: false,
    onNotice: request.onNotice,
  });
  try {
    const summaries = await evaluateRun(run, config, ['sampled']);
    return summaries.map((summary) => ({ ...summary, name: summary.name.replace('sampled', 'random') }));
  } finally {
    await run.stop();
  }
}

function evaluationPlans(
  env: Env,
  config: RunConfig,
  kinds: readonly ('sampled' | 'greedy')[] = config.evaluation.greedy ? ['sampled', 'greedy'] : ['sampled'],
): EvaluationPlan[] {
  return config.evaluation.horizons.flatMap((horizon) =>
    kinds.map((kind) => evaluationPlan(env, config, horizon, kind)),
  );
}

/** Every task of the evaluated split or set, under the seed that all evaluations share. */
export function evaluationPlan(
  env: Env,
  config: RunConfig,
  horizon: number,
  kind: 'sampled' | 'greedy',
): EvaluationPlan {
  const { episodesPerTask } = config.evaluation;
  const tasks: Task[] = evaluatedTasks(env, config.evaluation).map((index) => ({
    env: env.id,
    index,
    seed: env.tasks.evalSeed,
  }));
  return {
    name: `h${horizon} ${kind}`,
    tasks,
    episodes: kind === 'greedy' ? 1 : episodesPerTask,
    horizon,
    temperature: kind === 'greedy' ? 0 : 1,
    seed: seedFrom(config.seed, 'evaluation', horizon, kind),
  };
}
