/**
 * Question    How far does the local policy come in SearchQA from scratch, by RL on the reward for the answer alone?
 * Command     npm run experiment -- searchqa            (--seeds 3 by default; --env-steps for another budget)
 * Does        Trains experiments/searchqa.yaml under several seeds, then plays the 400 held-out questions at the
 *             configured horizons, sampled and greedily; a uniform random policy and the oracle play the same ones. A seed
 *             that is done is kept in experiments/results/searchqa.json, so an interrupted study goes on behind it.
 * Prints      Exact match by set, by hops and by form, mean of the seeds with 95 % intervals over seeds and questions,
 *             each seed by itself; and writes experiments/results/searchqa.{json,md}.
 * Expected    At least 90 % at one hop, 60 % at two, above random at three and four, 60 % over all.
 * Wall-clock  The budget is environment steps: a few minutes a seed on two cores.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createEnv, createOracle, start } from '../envs/searchqa/index.ts';
import { hopsOf, openWiki } from '../envs/searchqa/wiki/world.ts';
import { loadRunConfig } from '../src/config/load.ts';
import type { RunConfig } from '../src/config/run-config.ts';
import type { EnvStep } from '../src/core/env.ts';
import { type Estimated, overTasks } from '../src/evaluation/intervals.ts';
import { overSeedsAndTasks } from '../src/evaluation/over-seeds.ts';
import { columns, percent } from '../src/evaluation/table.ts';
import { packageRoot } from '../src/runtime/thread.ts';
import { resultFiles } from './results.ts';
import { played, type Rates, type Trial, train } from './trial.ts';

interface Options {
  readonly seeds: number;
  /** Budget of training, per seed; the configuration's where absent. */
  readonly envSteps?: number;
}

/** Figures so far, of one configuration. */
interface Study {
  readonly format: 1;
  /** The configuration but for its seed. */
  readonly config: RunConfig;
  readonly trials: Trial[];
  random?: Rates;
}

/** Runs what is left of the study. */
export async function searchqa({ seeds, envSteps }: Options): Promise<void> {
  const config = configured(0, envSteps);
  const { json, markdown } = resultFiles('searchqa');
  const study = readStudy(json, config);
  const keep = () => {
    mkdirSync(new URL('.', json), { recursive: true });
    writeFileSync(json, `${JSON.stringify(study)}\n`);
  };
  study.random ??= await played({ ...config, policy: { ...config.policy, kind: 'random' } }, ['sampled']);
  keep();
  for (let seed = 1; seed <= seeds; seed++) {
    if (study.trials.some((trial) => trial.seed === seed)) continue;
    study.trials.push(await train(configured(seed, envSteps)));
    keep();
    process.stdout.write(`seed ${seed} of ${seeds} is done\n`);
  }
  if (study.trials.length === 0) return;
  const lines = await tables(study, config);
  const command = `npm run experiment -- searchqa --seeds ${study.trials.length}${envSteps === undefined ? '' : ` --env-steps ${envSteps}`}`;
  writeFileSync(markdown, page(lines, study, command));
  process.stdout.write(`${lines.join('\n')}\nwritten: ${markdown.pathname}\n`);
}

function page(lines: readonly string[], { trials, config }: Study, command: string): string {
  const steps = Math.round(trials.reduce((sum, trial) => sum + trial.envSteps, 0) / trials.length);
  const seconds = Math.round(trials.reduce((sum, trial) => sum + trial.cpuSeconds, 0) / trials.length);
  const { horizons, episodesPerTask } = config.evaluation;
  return `# SearchQA from scratch, by RL on the answer's reward alone

experiments/searchqa.yaml, ${trials.length} training ${trials.length === 1 ? 'seed' : 'seeds'} of about ${steps.toLocaleString('en')} env steps and ${seconds} processor seconds (two cores have ${(2 * seconds).toFixed(0)} of them in ${(seconds / 60).toFixed(1)} minutes). Trained on
train questions only; the 400 held-out questions walk facts that no training question walks. ${episodesPerTask} sampled episodes and one greedy a question at horizon ${horizons.join(' and ')},
exact match after SQuAD's normalisation. Means over seeds with 95 % intervals over seeds and questions; random policy and oracle play the same lists of
actions, with intervals over questions.

\`\`\`
${lines.join('\n')}
\`\`\`

Repeat with \`${command}\` (a seed that is done is kept in searchqa.json). How long it takes depends on what else the machine
does; the budget is env steps.

**What the policy reads.** Sentences with their names blotted out, one fact each, and how it came by them (\`envs/searchqa/README.md\`).
Nothing is parsed and no path is searched for it, but the lists name what can be searched for and answered, and the world's English is plain.
Without learning, choosing at random is right in 4.3 % of the held-out questions, the best rule on the view's marks in 7.0 %, and counting the words that
a sentence shares with the question in 16.5 % in the view and 22 % in the raw text (\`npx vitest run --dir test test/envs/searchqa-view\`).
${asked()}

**Beside the paper.** Its 7B model answers 38.25 % of AgentGym's questions, over Wikipedia, from text, allowed to answer again: other questions,
another task.
`;
}

/** Counts the held-out questions that ask for a path which some training question asks for too, of other things. */
function asked(): string {
  const { tasks } = createEnv();
  const wiki = openWiki({ seed: 1, entities: 3000 });
  const pathOf = (index: number) => JSON.stringify([wiki.made(index).form.type, wiki.made(index).form.path]);
  const known = new Set(tasks.split('train').map(pathOf));
  const test = tasks.split('test');
  const count = test.filter((index) => known.has(pathOf(index))).length;
  return `${count} of the ${test.length} ask for a path of relations that some training question asks for too, of other things; the set \`composition\` (${tasks.sets!.composition!.length}) joins two that none joins.`;
}

function configured(seed: number, envSteps: number | undefined): RunConfig {
  const text = readFileSync(new URL('experiments/searchqa.yaml', packageRoot), 'utf8');
  const stop = envSteps === undefined ? [] : [`stop={envSteps: ${envSteps}}`];
  return loadRunConfig(text, 'searchqa.yaml', [`seed=${seed}`, 'trace.everyGroups=0', ...stop]);
}

/** Reads what is kept of the same configuration; of another one nothing. */
function readStudy(json: URL, config: RunConfig): Study {
  if (existsSync(json)) {
    const kept = JSON.parse(readFileSync(json, 'utf8')) as Study;
    if (JSON.stringify(kept.config) === JSON.stringify(config)) return kept;
    process.stdout.write('the kept seeds are of another configuration; the study begins anew\n');
  }
  return { format: 1, config, trials: [] };
}

/** Row of a table: which questions it is over. */
interface Row {
  readonly name: string;
  readonly indices: readonly number[];
}

async function tables({ trials, random }: Study, config: RunConfig): Promise<string[]> {
  const env = createEnv();
  const test = env.tasks.split('test');
  const wiki = openWiki({ seed: 1, entities: 3000 });
  const isChain = (index: number) => wiki.made(index).form.type === 'chain';
  const row = (name: string, holds: (index: number) => boolean): Row => ({ name, indices: test.filter(holds) });
  const rows = [
    ...env.tasks.labels.map((set) => row(set, (index) => env.tasks.label(index) === set)),
    row('all', () => true),
    ...[1, 2, 3, 4].map((hops) => row(`${hops} ${hops === 1 ? 'hop' : 'hops'}`, (index) => hopsOf(index) === hops)),
    ...[2, 3, 4].map((hops) => row(`chains of ${hops}`, (index) => isChain(index) && hopsOf(index) === hops)),
    row('comparisons', (index) => !isChain(index)),
    row('composition', (index) => env.tasks.sets!.composition!.includes(index)),
  ];
  const right = await oracle(test);
  const kinds = config.evaluation.horizons.flatMap((h) => [`h${h} sampled`, `h${h} greedy`]);
  const cells = ({ name, indices }: Row) => [
    `${name} (${indices.length})`,
    percent(overTasks(indices.map((index) => right.get(index)!))),
    ...config.evaluation.horizons.map((h) => percent(overTasks(indices.map((i) => random![`h${h} sampled`]![i]!)))),
    ...kinds.map((kind) => percent(over(trials, kind, indices))),
  ];
  return [
    ...columns([
      ['exact match %, [95 %]', 'oracle', ...config.evaluation.horizons.map((h) => `h${h} random`), ...kinds],
      ...rows.map(cells),
    ]),
    '',
    ...columns([
      ['by training seed, all 400', ...kinds, 'env steps', 'updates', 'minutes', 'processor s'],
      ...trials.map((trial) => [
        `seed ${trial.seed}`,
        ...kinds.map((kind) => percent(over([trial], kind, test))),
        String(trial.envSteps),
        String(trial.updates),
        trial.minutes.toFixed(1),
        trial.cpuSeconds.toFixed(0),
      ]),
    ]),
  ];
}

/** Mean over seeds and questions; over questions alone for one seed. */
function over(trials: readonly Trial[], kind: string, indices: readonly number[]): Estimated {
  const rates = trials.map(({ rates }) => indices.map((index) => rates[kind]![index]!));
  return rates.length > 1 ? overSeedsAndTasks(rates) : overTasks(rates[0] ?? []);
}

/** 1 for each question that the oracle answers with listed actions alone. */
async function oracle(test: readonly number[]): Promise<ReadonlyMap<number, number>> {
  const env = createEnv({}, await start({}, { where: 'oracle' }));
  const plays = createOracle();
  const right = new Map<number, number>();
  for (const index of test) {
    const task = { env: env.id, index, seed: env.tasks.evalSeed };
    const session = env.open(task);
    const act = plays(task);
    let step: EnvStep | typeof session.first = session.first;
    for (let action = act(step); action !== undefined; action = act(step)) {
      if (!session.actions().includes(action)) break;
      step = (await session.step(action)) as EnvStep;
    }
    right.set(index, step.kind === 'terminated' && step.success === true ? 1 : 0);
  }
  return right;
}
