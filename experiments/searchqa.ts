/**
 * Question    How far does the local policy come in SearchQA from scratch, by RL on the reward for the answer alone?
 * Command     npm run experiment -- searchqa            (--seeds 3 by default; --env-steps for another budget)
 * Does        Trains experiments/searchqa.yaml under several seeds, then plays the 400 held-out questions at the
 *             configured horizons, sampled and greedily; a uniform random policy and the oracle play the same ones. A seed
 *             that is done is kept in experiments/results/searchqa.json, so an interrupted study goes on behind it.
 * Prints      Exact match by set, by hops and by form, mean of the seeds with 95 % intervals over seeds and questions,
 *             each seed by itself; and writes experiments/results/searchqa.{json,md}.
 * Expected    At least 90 % at one hop, 60 % at two, above random at three and four, 60 % over all.
 * Wall-clock  The budget is environment steps: half an hour to an hour a seed on two idle cores.
 */
import { writeFileSync } from 'node:fs';
import { createEnv, createOracle, start } from '../envs/searchqa/index.ts';
import { hopsOf, openWiki } from '../envs/searchqa/wiki/world.ts';
import type { EnvStep } from '../src/core/env.ts';
import { averageOverTasks } from '../src/learning/evaluation/intervals.ts';
import { columns, percent } from '../src/learning/evaluation/table.ts';
import { resultFiles } from './results.ts';
import { averageOver, bySeed, runStudy, type Study, type StudyOptions } from './trial.ts';

/** Runs what is left of the study. */
export async function searchqa(options: StudyOptions): Promise<void> {
  const { json, markdown } = resultFiles('searchqa');
  const study = await runStudy('searchqa.yaml', json, options);
  if (study.trials.length === 0) return;
  const lines = await tables(study);
  const steps = options.envSteps === undefined ? '' : ` --env-steps ${options.envSteps}`;
  writeFileSync(markdown, page(lines, study, `npm run experiment -- searchqa --seeds ${study.trials.length}${steps}`));
  process.stdout.write(`${lines.join('\n')}\nwritten: ${markdown.pathname}\n`);
}

function page(lines: readonly string[], { trials, config }: Study, command: string): string {
  const steps = Math.round(trials.reduce((sum, trial) => sum + trial.envSteps, 0) / trials.length);
  const seconds = Math.round(trials.reduce((sum, trial) => sum + trial.cpuSeconds, 0) / trials.length);
  const minutes = trials.reduce((sum, trial) => sum + trial.minutes, 0) / trials.length;
  const { horizons, episodesPerTask } = config.evaluation;
  return `# SearchQA from scratch, by RL on the answer's reward alone

**Question.** How far does the local policy come in SearchQA from random weights, by the reward for the answer alone?

**Command.** \`${command}\` (a seed that is done is kept in searchqa.json).

**Conditions.** experiments/searchqa.yaml: ${trials.length} training ${trials.length === 1 ? 'seed' : 'seeds'} of about ${steps.toLocaleString('en')} env steps.
A seed took ${seconds} processor seconds, ${minutes.toFixed(0)} minutes by the clock; the budget is env steps.
It trains on train questions only. The 400 held-out questions walk facts that no training question walks.

Each question has ${episodesPerTask} sampled episodes and one greedy at horizon ${horizons.join(' and ')}. The figure is exact match after SQuAD's normalisation.
Means have 95 % intervals over seeds and questions. The random policy and the oracle play the same lists of actions, with intervals over questions.

**What the policy reads.** Sentences with their names blotted out, one fact each, and how it came by them (\`envs/searchqa/README.md\`).
Nothing is parsed and no path is searched for it. But the lists name what can be searched for and answered, and the world's English is plain.
Without learning, random choice is right in 4.3 % of the held-out questions, and the best rule on the view's marks in 8.0 %.
Counting the words that a sentence shares with the question finds 16.3 % in the view and 22 % in the raw text (\`npx vitest run --dir test test/envs/searchqa-view\`).
${playQuestions()}

**Bars.** 90 % at one hop, 60 at two, above random at three and four, 60 over all.

**Comparable with the paper?** No. Its 7B model answers 38.25 % of AgentGym's questions, over Wikipedia, from text, allowed to answer again.
These are other questions and another task.

What was tried: [LOG.md](../LOG.md#searchqa).

\`\`\`
${lines.join('\n')}
\`\`\`
`;
}

/** Counts the held-out questions that ask for a path which some training question asks for too, of other things. */
function playQuestions(): string {
  const { tasks } = createEnv();
  const wiki = openWiki({ seed: 1, entities: 3000 });
  const pathOf = (index: number) =>
    JSON.stringify([wiki.makeQuestion(index).form.type, wiki.makeQuestion(index).form.path]);
  const known = new Set(tasks.split('train').map(pathOf));
  const test = tasks.split('test');
  const count = test.filter((index) => known.has(pathOf(index))).length;
  return `${count} of the ${test.length} ask for a path of relations that some training question asks for too, of other things. The set \`composition\` (${tasks.sets!.composition!.length}) joins two relations that none joins.`;
}

/** Row of a table: which questions it is over. */
interface Row {
  readonly name: string;
  readonly indices: readonly number[];
}

async function tables({ trials, random, config }: Study): Promise<string[]> {
  const env = createEnv();
  const test = env.tasks.split('test');
  const wiki = openWiki({ seed: 1, entities: 3000 });
  const isChain = (index: number) => wiki.makeQuestion(index).form.type === 'chain';
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
    percent(averageOverTasks(indices.map((index) => right.get(index)!))),
    ...config.evaluation.horizons.map((h) => percent(averageOver([random!], 'rates', `h${h} sampled`, indices))),
    ...kinds.map((kind) => percent(averageOver(trials, 'rates', kind, indices))),
  ];
  return [
    ...columns([
      ['exact match %, [95 %]', 'oracle', ...config.evaluation.horizons.map((h) => `h${h} random`), ...kinds],
      ...rows.map(cells),
    ]),
    '',
    ...bySeed('by training seed, all 400', trials, kinds, test),
  ];
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
