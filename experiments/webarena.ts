/**
 * Question    How far does the local policy come on WebArena's embedded sites from scratch, by RL on the reward at `stop` alone?
 * Command     npm run experiment -- webarena            (--seeds 3 by default; --env-steps for another budget)
 * Does        Trains experiments/webarena.yaml under several seeds, then plays the 50 test tasks, 200 held-out tasks more of each
 *             site and 200 of templates that training lacks, sampled and greedily; a uniform random policy plays the same ones. A
 *             seed that is done is kept in experiments/results/webarena.json, so an interrupted study goes on behind it.
 * Prints      Success by site, of seen and unseen templates, mean of the seeds with 95 % intervals over seeds and tasks, each seed
 *             by itself; and writes experiments/results/webarena.{json,md}.
 * Expected    At least 26 % of the 50 test tasks, three of five sites and the unseen templates above random.
 * Wall-clock  The budget is environment steps: half an hour to an hour a seed on two idle cores.
 */
import { writeFileSync } from 'node:fs';
import { createEnv } from '../envs/webarena/index.ts';
import { columns, percent } from '../src/learning/evaluation/table.ts';
import { resultFiles } from './results.ts';
import { averageOver, bySeed, runStudy, type Study, type StudyOptions } from './trial.ts';

/** Runs what is left of the study. */
export async function webarena(options: StudyOptions): Promise<void> {
  const { json, markdown } = resultFiles('webarena');
  const study = await runStudy('webarena.yaml', json, { ...options, settings: ['evaluation.tasks=held-out'] });
  if (study.trials.length === 0) return;
  const lines = tables(study);
  const steps = options.envSteps === undefined ? '' : ` --env-steps ${options.envSteps}`;
  writeFileSync(markdown, page(lines, study, `npm run experiment -- webarena --seeds ${study.trials.length}${steps}`));
  process.stdout.write(`${lines.join('\n')}\nwritten: ${markdown.pathname}\n`);
}

function page(lines: readonly string[], { trials, config }: Study, command: string): string {
  const mean = (of: 'envSteps' | 'cpuSeconds' | 'minutes') =>
    Math.round(trials.reduce((sum, trial) => sum + trial[of], 0) / trials.length);
  const [steps, seconds, minutes] = [mean('envSteps'), mean('cpuSeconds'), mean('minutes')];
  const { horizons, episodesPerTask } = config.evaluation;
  return `# WebArena from scratch, by RL on the reward at \`stop\` alone

**Question.** How far does the local policy come on WebArena's embedded sites from random weights, by the reward at \`stop\` alone?

**Command.** \`${command}\` (a seed that is done is kept in webarena.json).

**Conditions.** experiments/webarena.yaml: ${trials.length} training ${trials.length === 1 ? 'seed' : 'seeds'} of about ${steps.toLocaleString('en')} env steps.
A seed took ${seconds} processor seconds, ${minutes} minutes by the clock; the budget is env steps.
It trains on the 372 train tasks and 424 short tasks for practice, which changes the distribution of training tasks.
The worlds of held-out tasks are never those of training.

Each task has ${episodesPerTask} sampled episodes and one greedy at horizon ${horizons.join(' and ')}. Means have 95 % intervals over seeds and tasks.
The random policy plays the same lists of actions, with intervals over tasks.
The 50 test tasks are few. *More* are 200 tasks a site from the same templates under other seeds.

**Bar.** 26 % of the 50 tests; three of five sites and the templates that training lacks above random.

**Comparable with the paper?** No. Its 7B model solves 26 % of 50 tasks on the original sites, from their text.
These are other sites, smaller and drawn at random, and other tasks. The policy reads lists and the view of \`envs/webarena/README.md\`.

What was tried: [LOG.md](../LOG.md#webarena).

\`\`\`
${lines.join('\n')}
\`\`\`
`;
}

/** Row of a table: which tasks it is over. */
interface Row {
  readonly name: string;
  readonly indices: readonly number[];
}

function tables({ trials, random, config }: Study): string[] {
  const { tasks } = createEnv();
  const sets = tasks.sets!;
  const test = tasks.split('test');
  const rows: Row[] = [
    ...tasks.labels.map((site) => ({ name: site, indices: test.filter((index) => tasks.label(index) === site) })),
    { name: 'all tests', indices: test },
    { name: 'of templates that training has', indices: sets.test_seen! },
    { name: 'of templates that training lacks', indices: sets.test_unseen! },
    ...tasks.labels.map((site) => ({ name: `${site}, more`, indices: sets[`more_${site}`]! })),
    { name: 'templates that training lacks, more', indices: sets.unseen! },
  ];
  const { horizons } = config.evaluation;
  const kinds = horizons.flatMap((h) => [`h${h} sampled`, `h${h} greedy`]);
  const cells = ({ name, indices }: Row) => [
    `${name} (${indices.length})`,
    ...horizons.map((h) => percent(averageOver([random!], 'rates', `h${h} sampled`, indices))),
    ...kinds.map((kind) => percent(averageOver(trials, 'rates', kind, indices))),
  ];
  return [
    ...columns([['success %, [95 %]', ...horizons.map((h) => `h${h} random`), ...kinds], ...rows.map(cells)]),
    '',
    ...bySeed('by training seed, the 50 tests', trials, kinds, test),
  ];
}
