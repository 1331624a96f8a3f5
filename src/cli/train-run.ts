/** A training run from start to finish: what `longplay train` and the experiments share. */
import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Subject } from 'rxjs';
import type { EvaluationPlan, TrainEnded } from '../../actors/rollout/protocol.ts';
import { type Run, startRun } from '../../actors/tree.ts';
import type { RunConfig } from '../config/run-config.ts';
import type { Env } from '../core/env.ts';
import { LongplayError, messageOf } from '../core/errors.ts';
import { seedFrom } from '../core/rng.ts';
import type { Task } from '../core/task.ts';
import { type EvaluationSummary, summarise } from '../evaluation/summary.ts';
import { type LoadedCheckpoint, loadNewest } from '../record/checkpoint.ts';
import type { MetricsRow } from '../record/metrics.ts';
import { envModuleUrl } from './world.ts';

export interface TrainRequest {
  readonly config: RunConfig;
  /** The run's folder; it exists. */
  readonly dir: string;
  readonly mode: 'async' | 'serial';
  /** Go on from the newest good checkpoint in `dir`. */
  readonly resume: boolean;
  readonly metrics$?: Subject<MetricsRow>;
  readonly onNotice: (message: string) => void;
  /** Called with the started run, e.g. to end it early on a signal. */
  readonly onStarted?: (run: Run) => void;
}

export interface TrainOutcome {
  readonly ended: TrainEnded;
  readonly evaluations: readonly EvaluationSummary[];
}

/** Trains, writes a last checkpoint, evaluates, and leaves `results.json` in the run's folder. */
export async function trainRun(request: TrainRequest): Promise<TrainOutcome> {
  const { config, dir, mode, resume, onNotice } = request;
  const checkpoint = resume ? loadNewest(join(dir, 'checkpoints')) : undefined;
  const initial = resume || config.policy.init === undefined ? undefined : initialWeights(config.policy.init, onNotice);
  for (const warning of checkpoint?.warnings ?? []) onNotice(warning);
  if (checkpoint) onNotice(`resuming from update ${checkpoint.update}`);
  const run = await startRun({
    config,
    dir,
    mode,
    envModule: envModuleUrl(config.env.id),
    learn: true,
    onNotice,
    evaluation: {
      plans: (env) => evaluationPlans(env, config),
      onRecord: (version, record, env) => recordEvaluation(request, version, summarise(record, env.tasks)),
    },
    ...(checkpoint ? { checkpoint } : {}),
    ...(initial ? { initial } : {}),
    ...(request.metrics$ ? { metrics$: request.metrics$ } : {}),
  });
  try {
    request.onStarted?.(run);
    const ended = await run.train();
    const saved = await run.save();
    if (!saved.ok) onNotice(`the last checkpoint could not be written: ${saved.message}`);
    onNotice(`trained ${ended.status.version} updates, ${ended.status.envSteps} env steps; evaluating`);
    const evaluations = ended.why === 'halted' ? [] : await evaluateRun(run, config);
    if (config.evaluation.randomBaseline && evaluations.length > 0)
      evaluations.push(...(await randomBaseline(request)));
    writeFileSync(join(dir, 'results.json'), `${JSON.stringify({ format: 1, ended, evaluations }, null, 2)}\n`);
    return { ended, evaluations };
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
    envModule: envModuleUrl(config.env.id),
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

function evaluationPlan(env: Env, config: RunConfig, horizon: number, kind: 'sampled' | 'greedy'): EvaluationPlan {
  const { split, episodesPerTask } = config.evaluation;
  const tasks: Task[] = env.tasks.split(split).map((index) => ({ env: env.id, index, seed: env.tasks.evalSeed }));
  return {
    name: `h${horizon} ${kind}`,
    tasks,
    episodes: kind === 'greedy' ? 1 : episodesPerTask,
    horizon,
    temperature: kind === 'greedy' ? 0 : 1,
    seed: seedFrom(config.seed, 'evaluation', horizon, kind),
  };
}
