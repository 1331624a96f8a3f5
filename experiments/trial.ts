/** One training seed of a study: a run in a temporary folder, then every evaluated task played; and a study of several. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { checkRunConfig, loadRunConfig } from '../src/config/load.ts';
import type { RunConfig } from '../src/config/run-config.ts';
import type { EnvOptions } from '../src/core/env.ts';
import { averageOverTasks, type Estimated } from '../src/learning/evaluation/intervals.ts';
import { averageOverSeedsAndTasks } from '../src/learning/evaluation/over-seeds.ts';
import { columns, percent } from '../src/learning/evaluation/table.ts';
import { loadNewestOf } from '../src/learning/learner/run-checkpoint.ts';
import { evaluationPlan } from '../src/run/evaluate-run.ts';
import { worldUrl } from '../src/run/find-world.ts';
import { createRunFolder } from '../src/run/run-folder.ts';
import { startRun } from '../src/run/start-run.ts';
import { packageRoot } from '../src/runtime/module-url.ts';
import type { LoadedCheckpoint } from '../src/storage/checkpoint.ts';

/** Mean of every evaluated task, by evaluation (`h20 sampled`, …). */
export type Rates = Readonly<Record<string, Readonly<Record<number, number>>>>;

/** Success and return of every evaluated task. */
export interface Played {
  readonly rates: Rates;
  readonly returns: Rates;
}

/** One training seed. */
export interface Trial extends Played {
  readonly seed: number;
  readonly updates: number;
  readonly envSteps: number;
  readonly minutes: number;
  /** Processor seconds of all threads while training: on a busy machine minutes mean little. */
  readonly cpuSeconds: number;
  /** Play of the weights that training began with, where the study asks for it. */
  readonly start?: Played;
}

/** Figures so far, of one configuration. */
export interface Study {
  readonly format: 2;
  /** The configuration under seed 0. */
  readonly config: RunConfig;
  readonly trials: Trial[];
  random?: Played;
}

/** Sizes of a study. */
export interface StudyOptions {
  readonly seeds: number;
  /** Budget of training, per seed; the configuration's where absent. */
  readonly envSteps?: number;
  /** Options of the world that is played in after training, beside the configuration's. */
  readonly evaluated?: EnvOptions;
  /** Settings beside the configuration's, as `--set` takes them. */
  readonly settings?: readonly string[];
  /** True to play the weights that training begins with, too. */
  readonly playsStart?: boolean;
}

/**
 * Runs what is left of a study: random play, then training seeds 1 … `seeds`. What is done is kept in `json` at once, so an
 * interrupted study goes on behind it; figures of another configuration are not.
 * @param file configuration in experiments/
 */
export async function runStudy(
  file: string,
  json: URL,
  { seeds, envSteps, evaluated = {}, settings = [], playsStart = false }: StudyOptions,
): Promise<Study> {
  const config = configureTrial(file, 0, envSteps, settings);
  const study = readStudy(json, config);
  const keep = () => {
    mkdirSync(new URL('.', json), { recursive: true });
    writeFileSync(json, `${JSON.stringify(study)}\n`);
  };
  study.random ??= await playTrial({ ...config, policy: { ...config.policy, kind: 'random' } }, evaluated, ['sampled']);
  keep();
  for (let seed = 1; seed <= seeds; seed++) {
    if (study.trials.some((trial) => trial.seed === seed)) continue;
    const drawn = configureTrial(file, seed, envSteps, settings);
    const start = playsStart ? { start: await playTrial(drawn, evaluated, ['sampled', 'greedy']) } : {};
    study.trials.push({ ...(await trainTrial(drawn, evaluated)), ...start });
    keep();
    process.stdout.write(`${file}: seed ${seed} of ${seeds} is done\n`);
  }
  return study;
}

/** Configuration of a seed: that of a file in experiments/, its budget and further settings. */
export function configureTrial(
  file: string,
  seed: number,
  envSteps: number | undefined,
  settings: readonly string[],
): RunConfig {
  const text = readFileSync(new URL(`experiments/${file}`, packageRoot), 'utf8');
  const stop = envSteps === undefined ? [] : [`stop={envSteps: ${envSteps}}`];
  return loadRunConfig(text, file, [`seed=${seed}`, 'trace.everyGroups=0', ...stop, ...settings]);
}

/** Reads what is kept of the same configuration; of another one nothing. */
export function readStudy(json: URL, config: RunConfig): Study {
  if (existsSync(json)) {
    const kept = JSON.parse(readFileSync(json, 'utf8')) as Study;
    if (kept.format === 2 && isSameConfig(kept.config, config)) return { ...kept, config };
    process.stdout.write('the kept seeds are of another configuration; the study begins anew\n');
  }
  return { format: 2, config, trials: [] };
}

/** True for a kept configuration that is this one, newer options at their defaults; false where it is no longer valid. */
export function isSameConfig(kept: RunConfig, config: RunConfig): boolean {
  try {
    return isDeepStrictEqual(checkRunConfig(kept, 'kept configuration'), config);
  } catch {
    return false;
  }
}

/** Mean of some tasks in one evaluation with its interval: over seeds and tasks, or over tasks where there is one seed. */
export function averageOver(
  played: readonly Played[],
  what: keyof Played,
  evaluation: string,
  indices: readonly number[],
): Estimated {
  const values = played.map((one) => indices.map((index) => one[what][evaluation]![index]!));
  return values.length > 1 && indices.length > 1 ? averageOverSeedsAndTasks(values) : averageOverTasks(values[0] ?? []);
}

/** Table of success by training seed, with what each seed took. */
export function bySeed(
  title: string,
  trials: readonly Trial[],
  kinds: readonly string[],
  indices: readonly number[],
): string[] {
  return columns([
    [title, ...kinds, 'env steps', 'updates', 'minutes', 'processor s'],
    ...trials.map((trial) => [
      `seed ${trial.seed}`,
      ...kinds.map((kind) => percent(averageOver([trial], 'rates', kind, indices))),
      String(trial.envSteps),
      String(trial.updates),
      trial.minutes.toFixed(1),
      trial.cpuSeconds.toFixed(0),
    ]),
  ]);
}

/**
 * Trains a configuration in a temporary folder and plays its evaluated tasks by what it saved last.
 * @param use called with the folder before it goes
 */
export async function trainTrial(
  config: RunConfig,
  evaluated: EnvOptions,
  use: (dir: string, trial: Trial) => Promise<void> = async () => {},
): Promise<Trial> {
  const dir = join(tmpdir(), `longplay-${config.env.id}-${process.pid}-${config.seed}`);
  createRunFolder(dir, config);
  try {
    const run = await startTrial(config, dir, true);
    const before = process.cpuUsage();
    const { version: updates, envSteps, elapsedMs } = (await run.train().finally(() => run.stop())).status;
    const { user, system } = process.cpuUsage(before);
    const figures = await playTrial(config, evaluated, ['sampled', 'greedy'], loadNewestOf(dir));
    const cpuSeconds = (user + system) / 1e6;
    const trial = { seed: config.seed, updates, envSteps, minutes: elapsedMs / 60_000, cpuSeconds, ...figures };
    await use(dir, trial);
    return trial;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function startTrial(config: RunConfig, dir: string, learn: boolean, checkpoint?: LoadedCheckpoint) {
  return startRun({
    config,
    dir,
    mode: 'async',
    envModule: worldUrl(config.env.id, config.env.options),
    learn,
    onNotice: (line) => process.stderr.write(`${line}\n`),
    ...(checkpoint ? { checkpoint } : {}),
  });
}

/** Plays the evaluated tasks at each horizon, in a world of further options. */
export async function playTrial(
  trained: RunConfig,
  evaluated: EnvOptions,
  kinds: readonly ('sampled' | 'greedy')[],
  checkpoint?: LoadedCheckpoint,
): Promise<Played> {
  const config = { ...trained, env: { ...trained.env, options: { ...trained.env.options, ...evaluated } } };
  const run = await startTrial(config, '.', false, checkpoint);
  try {
    const rates: Record<string, Record<number, number>> = {};
    const returns: Record<string, Record<number, number>> = {};
    for (const horizon of config.evaluation.horizons) {
      for (const kind of kinds) {
        const plan = evaluationPlan(run.env, config, horizon, kind);
        const { results } = await run.evaluate(plan);
        const solved: Record<number, number> = (rates[plan.name] = {});
        const earned: Record<number, number> = (returns[plan.name] = {});
        for (const result of results) {
          if (result.successes.length === 0) continue;
          solved[result.task.index] = roundFigures(average(result.successes.map(Number)));
          earned[result.task.index] = roundFigures(average(result.returns));
        }
      }
    }
    return { rates, returns };
  } finally {
    await run.stop();
  }
}

function average(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Rounds to four digits, enough for a committed file. */
function roundFigures(value: number): number {
  return Math.round(1e4 * value) / 1e4;
}
