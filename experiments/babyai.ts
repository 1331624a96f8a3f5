/**
 * Question    How far does the local policy come in BabyAI from scratch in a few minutes, by RL alone?
 * Command     npm run experiment -- babyai            (--seeds 3 --minutes 5 by default)
 * Does        Trains experiments/babyai.yaml under several seeds on the environment's reward alone, then plays the 360
 *             held-out tasks (18 levels × level seeds 400 … 419) and the paper's 90 test tasks at the configured
 *             horizons, sampled and greedily. A uniform random policy plays the same tasks.
 * Prints      Success by sub-task, by level, over the 18 levels and over the paper's 90, mean of the seeds with 95 %
 *             intervals over tasks; and writes experiments/results/babyai.{json,md}.
 * Expected    Mean over the 18 levels at least 78 % at horizon 20 and 60 % at horizon 5, GoTo at least 86 %.
 * Wall-clock  About six minutes a seed on two cores.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { LEVELS } from '../envs/babyai/levels.ts';
import { levelOf, PAPER_LEVELS, SUBTASKS, tasks } from '../envs/babyai/tasks.ts';
import { loadRunConfig } from '../src/config/load.ts';
import type { RunConfig } from '../src/config/run-config.ts';
import { type Estimated, overTasks } from '../src/evaluation/intervals.ts';
import { columns, percent } from '../src/evaluation/table.ts';
import { packageRoot } from '../src/runtime/thread.ts';
import { resultFiles } from './results.ts';
import { played, type Rates, type Trial, train } from './trial.ts';

interface Options {
  readonly seeds: number;
  /** Minutes of training, per seed; the configuration's where absent. */
  readonly minutes?: number;
}

/** Rows of the table: which tasks each is over. */
interface Row {
  readonly name: string;
  readonly holds: (index: number) => boolean;
}

const paper = new Set(tasks.split('test'));
const isHeldOut = (index: number) => !paper.has(index);
const subtaskRows: readonly Row[] = [
  { name: '18 levels', holds: isHeldOut },
  ...Object.entries(SUBTASKS).map(([name, levels]) => ({
    name,
    holds: (i: number) => isHeldOut(i) && levels.includes(levelOf(i)),
  })),
  { name: "the paper's 90", holds: (index) => paper.has(index) },
  ...Object.entries(SUBTASKS).map(([name, levels]) => ({
    name: `  of them ${name}`,
    holds: (i: number) => paper.has(i) && levels.includes(levelOf(i)),
  })),
];
const levelRows: readonly Row[] = PAPER_LEVELS.map((level) => ({
  name: `${String(level).padStart(2)} ${LEVELS[level - 1]!.id.slice('BabyAI-'.length, -'-v0'.length)}`,
  holds: (index) => isHeldOut(index) && levelOf(index) === level,
}));

/** Runs the study. */
export async function babyai({ seeds, minutes }: Options): Promise<void> {
  const trials: Trial[] = [];
  for (let seed = 1; seed <= seeds; seed++) {
    const trial = await train(configured(seed, minutes));
    trials.push(trial);
    const all = Object.entries(trial.rates).map(
      ([name, rates]) => `${name} ${percent(over([rates], subtaskRows[0]!))}`,
    );
    process.stdout.write(`seed ${seed}: ${trial.envSteps} steps, ${trial.updates} updates · ${all.join(' · ')}\n`);
  }
  const config = configured(0, minutes);
  const random = await played({ ...config, policy: { ...config.policy, kind: 'random' } }, ['sampled']);
  report(trials, random, config);
}

function configured(seed: number, minutes: number | undefined): RunConfig {
  const text = readFileSync(new URL('experiments/babyai.yaml', packageRoot), 'utf8');
  const stop = minutes === undefined ? [] : [`stop={minutes: ${minutes}}`];
  return loadRunConfig(text, 'babyai.yaml', [`seed=${seed}`, 'trace.everyGroups=0', ...stop]);
}

/** Mean over the row's tasks of the rates, each the mean over the trials. */
function over(trials: readonly Readonly<Record<number, number>>[], { holds }: Row): Estimated {
  const indices = Object.keys(trials[0] ?? {})
    .map(Number)
    .filter(holds);
  return overTasks(indices.map((i) => trials.reduce((sum, rates) => sum + rates[i]!, 0) / trials.length));
}

function report(trials: readonly Trial[], random: Rates, config: RunConfig): void {
  const kinds = config.evaluation.horizons.flatMap((h) => [`h${h} sampled`, `h${h} greedy`]);
  const cell = (name: string, row: Row) =>
    percent(
      over(
        trials.map(({ rates }) => rates[name]!),
        row,
      ),
    );
  const chance = (name: string, row: Row) => percent(over([random[name.replace(/ .*/, ' sampled')]!], row));
  const header = (what: string) => [
    what,
    ...kinds.flatMap((kind) => (kind.endsWith('sampled') ? [kind.replace('sampled', 'random'), kind] : [kind])),
  ];
  const line = (row: Row) => [
    row.name,
    ...kinds.flatMap((kind) => (kind.endsWith('sampled') ? [chance(kind, row), cell(kind, row)] : [cell(kind, row)])),
  ];
  const tables = [
    columns([header('success %, [95 % over tasks]'), ...subtaskRows.map(line)]),
    columns([header('by level (20 tasks each)'), ...levelRows.map(line)]),
    columns([
      ['by training seed, 18 levels', ...kinds, 'env steps', 'updates', 'minutes', 'processor s'],
      ...trials.map(({ seed, rates, envSteps, updates, minutes, cpuSeconds }) => [
        `seed ${seed}`,
        ...kinds.map((kind) => percent(over([rates[kind]!], subtaskRows[0]!))),
        String(envSteps),
        String(updates),
        minutes.toFixed(1),
        cpuSeconds.toFixed(0),
      ]),
    ]),
  ].map((lines) => lines.join('\n'));
  const { json, markdown } = resultFiles('babyai');
  const minutes = (trials.reduce((sum, one) => sum + one.minutes, 0) / trials.length).toFixed(1);
  mkdirSync(new URL('.', json), { recursive: true });
  writeFileSync(json, `${JSON.stringify({ format: 1, config, trials, random })}\n`);
  writeFileSync(
    markdown,
    `# BabyAI from scratch in ${minutes} minutes\n\nexperiments/babyai.yaml on the environment's reward alone, ${trials.length} training seeds; the 360 held-out tasks (18 levels × level seeds 400 … 419) and the paper's 90, ${config.evaluation.episodesPerTask} sampled episodes and one greedy a task, beside a uniform random policy over the same lists.\nRepeat with \`npm run experiment -- babyai --seeds ${trials.length} --minutes ${config.stop.minutes}\`. How many steps fit into the minutes depends on what else the machine does: two cores have 600 processor seconds in five minutes.\n\n\`\`\`\n${tables.join('\n\n')}\n\`\`\`\n`,
  );
  process.stdout.write(`${tables.join('\n\n')}\nwritten: ${markdown.pathname}\n`);
}
