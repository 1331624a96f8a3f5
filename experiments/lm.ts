/**
 * Question    Does a real language model learn by reinforcement on a laptop?
 * Command     npm run experiment -- lm --model SmolLM2-135M-Instruct.Q4_1.gguf [--seeds 3] [--all-demonstrations]
 * Does        Trains experiments/lm.yaml under several seeds: a warm start (a few of the planner's episodes imitated), then
 *             reinforcement under a horizon that grows. The model as it is, its warm start and what it learnt play the held-out
 *             tasks of the trained sub-tasks, sampled and greedily; so does uniform random play over the same lists.
 *             `--all-demonstrations` adds imitation alone, of the planner on every training task. A seed that is done is kept in
 *             experiments/results/lm.json, so an interrupted study goes on behind it.
 * Prints      Success by sub-task, mean of the seeds with 95 % intervals over seeds and tasks, the difference that reinforcement
 *             made, and what each seed took; and writes experiments/results/lm.md.
 * Expected    20 points or more by reinforcement over the warm start, the interval clear of 10.
 * Wall-clock  Under an hour a seed on two cores.
 */
import { createHash } from 'node:crypto';
import { createReadStream, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { loadRunConfig } from '../src/config/load.ts';
import type { RunConfig } from '../src/config/run-config.ts';
import { UserError } from '../src/core/errors.ts';
import type { Estimated } from '../src/learning/evaluation/intervals.ts';
import { averageOverSeedsAndTasks } from '../src/learning/evaluation/over-seeds.ts';
import { columns, percent } from '../src/learning/evaluation/table.ts';
import { loadNewestOf } from '../src/learning/learner/run-checkpoint.ts';
import { findWorld } from '../src/run/find-world.ts';
import { train } from '../src/run/train.ts';
import { warmStartFolder } from '../src/run/warm-start.ts';
import { packageRoot } from '../src/runtime/module-url.ts';
import { resultFiles } from './results.ts';
import { averageOver, type Played, playTrial } from './trial.ts';

export interface LmOptions {
  /** Path of the model. */
  readonly model: string;
  readonly seeds: number;
  readonly allDemonstrations?: boolean;
  /** Settings beside the configuration's, as `--set` takes them. */
  readonly set?: readonly string[];
}

/** One training seed: how its warm start and what it learnt play. */
interface LmTrial {
  readonly seed: number;
  readonly start: Played;
  readonly learnt: Played;
  readonly updates: number;
  readonly episodes: number;
  /** Share of the groups whose members did not all score the same. */
  readonly signal: number;
  /** Minutes by the clock and processor seconds of all threads, warm start and its evaluation included. */
  readonly minutes: number;
  readonly cpuSeconds: number;
  readonly peakMb: number;
}

/** Figures so far. */
interface LmStudy {
  readonly format: 1;
  readonly config: RunConfig;
  /** Name and SHA-256 of the model's file. */
  readonly model: { readonly name: string; readonly sha256: string };
  readonly trials: LmTrial[];
  random?: Played;
  zeroShot?: Played;
  allDemonstrations?: Played & { readonly episodes: number };
}

/** Runs what is left of the study. */
export async function lm(options: LmOptions): Promise<void> {
  const { json, markdown } = resultFiles('lm');
  const config = await configureLm(options, 0);
  const study = readStudy(json, config, { name: basename(options.model), sha256: await digestOf(options.model) });
  const keep = () => writeFileSync(json, `${JSON.stringify(study)}\n`);
  study.random ??= await playTrial({ ...config, policy: { ...config.policy, kind: 'random' } }, {}, ['sampled']);
  keep();
  study.zeroShot ??= await playTrial(config, {}, ['sampled', 'greedy']);
  keep();
  if (options.allDemonstrations) study.allDemonstrations ??= await imitateAll(options);
  keep();
  for (let seed = 1; seed <= options.seeds; seed++) {
    if (study.trials.some((trial) => trial.seed === seed)) continue;
    study.trials.push(await trainSeed(options, seed));
    keep();
    writeFileSync(markdown, page(study, options));
    process.stdout.write(`seed ${seed} of ${options.seeds} is done\n`);
  }
  const text = page(study, options);
  writeFileSync(markdown, text);
  process.stdout.write(`${text}\nwritten: ${markdown.pathname}\n`);
}

/** Configuration of a seed: evaluated on the held-out tasks of the sub-tasks that it trains on. */
async function configureLm({ model, set = [] }: LmOptions, seed: number): Promise<RunConfig> {
  const text = readFileSync(new URL('experiments/lm.yaml', packageRoot), 'utf8');
  const settings = [`seed=${seed}`, `policy.path=${model}`, 'trace.everyGroups=0', ...set];
  const config = loadRunConfig(text, 'experiments/lm.yaml', settings);
  const { env } = await findWorld(config.env.id, config.env.options);
  const { labels = env.tasks.labels } = config.tasks;
  const tasks = env.tasks.split('test').filter((index) => labels.includes(env.tasks.label(index)));
  const { split: _, ...evaluation } = config.evaluation;
  return { ...config, evaluation: { ...evaluation, tasks } } as RunConfig;
}

function readStudy(json: URL, config: RunConfig, model: LmStudy['model']): LmStudy {
  if (existsSync(json)) {
    const kept = JSON.parse(readFileSync(json, 'utf8')) as LmStudy;
    const withPath = { ...kept.config, policy: { ...kept.config.policy, path: config.policy.path } };
    if (isDeepStrictEqual(withPath, JSON.parse(JSON.stringify(config))) && kept.model.sha256 === model.sha256)
      return kept;
    process.stdout.write('the kept seeds are of another configuration or model; the study begins anew\n');
  }
  return { format: 1, config: JSON.parse(JSON.stringify(config)) as RunConfig, model, trials: [] };
}

async function digestOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  try {
    for await (const bytes of createReadStream(path)) hash.update(bytes as Buffer);
  } catch (thrown) {
    throw new UserError('BAD_ARGUMENT', `--model ${path}: expected a GGUF file that can be read: ${String(thrown)}`);
  }
  return hash.digest('hex');
}

async function trainSeed(options: LmOptions, seed: number): Promise<LmTrial> {
  const config = await configureLm(options, seed);
  const dir = join(tmpdir(), `longplay-lm-${process.pid}-${seed}`);
  const before = process.cpuUsage();
  const started = performance.now();
  let peakMb = 0;
  const watch = setInterval(() => {
    peakMb = Math.max(peakMb, process.memoryUsage.rss() / 2 ** 20);
  }, 1000);
  let [trained, filtered] = [0, 0];
  const onMetrics = (row: Readonly<Record<string, unknown>>) => {
    trained += Number(row.trainedGroups ?? 0);
    filtered += Number(row.filteredGroups ?? 0);
  };
  // What is played after training is played below, by task.
  const run = { ...config, evaluation: { ...config.evaluation, tasks: config.evaluation.tasks!.slice(0, 1) } };
  try {
    const onNotice = (line: string) => process.stderr.write(`${line}\n`);
    const { ended } = await train({ config: run as RunConfig, dir, onMetrics, onNotice }).done;
    const { user, system } = process.cpuUsage(before);
    const minutes = (performance.now() - started) / 60_000;
    const start = await playTrial(config, {}, ['sampled', 'greedy'], loadNewestOf(warmStartFolder(dir)));
    const learnt = await playTrial(config, {}, ['sampled', 'greedy'], loadNewestOf(dir));
    const { version: updates, episodes } = ended.status;
    const signal = Math.round((1e4 * trained) / Math.max(1, trained + filtered)) / 1e4;
    const cpuSeconds = (user + system) / 1e6;
    return { seed, start, learnt, updates, episodes, signal, minutes, cpuSeconds, peakMb };
  } finally {
    clearInterval(watch);
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Imitates the planner on as many episodes as there are training tasks, and no reinforcement. */
async function imitateAll(options: LmOptions): Promise<Played & { readonly episodes: number }> {
  const config = await configureLm(options, 1);
  const { env } = await findWorld(config.env.id, config.env.options);
  const { labels = env.tasks.labels } = config.tasks;
  const episodes = env.tasks.split('train').filter((index) => labels.includes(env.tasks.label(index))).length;
  const dir = join(tmpdir(), `longplay-lm-${process.pid}-all`);
  try {
    const all = { ...config, warmStart: { ...config.warmStart, episodes }, stop: { updates: 1 } };
    const onNotice = (line: string) => process.stderr.write(`${line}\n`);
    const evaluation = { ...config.evaluation, tasks: config.evaluation.tasks!.slice(0, 1) };
    await train({ config: { ...all, evaluation } as RunConfig, dir, onNotice }).done;
    const played = await playTrial(config, {}, ['sampled', 'greedy'], loadNewestOf(warmStartFolder(dir)));
    return { ...played, episodes };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Mean of differences in [−1, 1] over seeds and tasks, with its interval. */
function averageDifference(differences: readonly (readonly number[])[]): Estimated {
  // As rates, which an interval is cut to the range of.
  const { value, low, high, n } = averageOverSeedsAndTasks(differences.map((row) => row.map((one) => (one + 1) / 2)));
  return { value: 2 * value - 1, low: 2 * low - 1, high: 2 * high - 1, n };
}

function page(study: LmStudy, { seeds }: LmOptions): string {
  const { config, trials, random, zeroShot, allDemonstrations, model } = study;
  const tasks = config.evaluation.tasks as readonly number[];
  const [horizon] = config.evaluation.horizons;
  const kinds = [`h${horizon} sampled`, `h${horizon} greedy`];
  const rows = (['sampled', 'greedy'] as const).map((kind) => {
    const name = `h${horizon} ${kind}`;
    const cell = (played: readonly (Played | undefined)[]) =>
      played.length === 0 || played.some((one) => !one?.rates[name])
        ? '–'
        : percent(averageOver(played as readonly Played[], 'rates', name, tasks));
    const gain =
      trials.length < 2
        ? '–'
        : percent(
            averageDifference(
              trials.map(({ start, learnt }) =>
                tasks.map((task) => learnt.rates[name]![task]! - start.rates[name]![task]!),
              ),
            ),
          );
    return [
      kind,
      cell([random]),
      cell([zeroShot]),
      cell(trials.map(({ start }) => start)),
      cell(trials.map(({ learnt }) => learnt)),
      gain,
      cell([allDemonstrations]),
    ];
  });
  const outcome = columns([
    ['success %, [95 %]', 'random', 'as it is', 'warm start', 'learnt', 'difference', 'all demonstrations'],
    ...rows,
  ]);
  const bySeed = columns([
    [
      'by seed',
      ...kinds.flatMap((kind) => [`${kind}: start`, 'learnt']),
      'updates',
      'episodes',
      'signal',
      'minutes',
      'cpu s',
      'MB',
    ],
    ...trials.map((trial) => [
      `seed ${trial.seed}`,
      ...kinds.flatMap((kind) =>
        [trial.start, trial.learnt].map((played) => percent(averageOver([played], 'rates', kind, tasks))),
      ),
      String(trial.updates),
      String(trial.episodes),
      `${(100 * trial.signal).toFixed(0)} %`,
      trial.minutes.toFixed(1),
      trial.cpuSeconds.toFixed(0),
      trial.peakMb.toFixed(0),
    ]),
  ]);
  return `# A real language model learns by reinforcement, on two cores

**Question.** Does ${model.name} learn ${config.env.id} by reinforcement, from a warm start of ${config.warmStart.episodes} episodes of the planner?

**Command.** \`npm run experiment -- lm --model ${model.name} --seeds ${seeds}\` (a seed that is done is kept in lm.json).

**Conditions.** experiments/lm.yaml: answers are masked to the listed actions, which the prompt does not name. ${tasks.length} held-out tasks, one episode of each, horizon ${horizon}.
The seed draws the adapter, the tasks and the samples; the model's weights are the same. Random play draws from the same lists.
Intervals are over seeds and tasks (over tasks for one seed). Minutes and memory are of the whole of \`train\`, the evaluation of the warm start on one task included.

\`\`\`
${outcome.join('\n')}

${bySeed.join('\n')}
\`\`\`
`;
}
