/**
 * Question    How far does the local policy come in SciWorld from scratch, by RL on the score alone?
 * Command     npm run experiment -- sciworld            (--seeds 3 by default; --env-steps for another budget)
 * Does        Trains experiments/sciworld.yaml (AgentGym's tasks, the paper's lists, 30 turns) and sciworld-easy.yaml
 *             (ScienceWorld's 30 tasks, `easy`, 100 turns) under several seeds, then plays what each is tested on, sampled and
 *             greedily; a uniform random policy plays the same. A seed that is done is kept in
 *             experiments/results/sciworld{,-easy}.json, so an interrupted study goes on behind it.
 * Prints      Success and mean final score by sub-task and by task, failures as 0, mean of the seeds with 95 % intervals over
 *             seeds and tasks, each seed by itself; and writes experiments/results/sciworld.md.
 * Expected    Over the 30 tasks a mean score of 0.17 or more; Lifespan, Find and Test-Conductivity above random.
 * Wall-clock  The budget is environment steps: some 45 minutes a seed of the first configuration on two cores, ten of the second.
 */
import { writeFileSync } from 'node:fs';
import { createEnv } from '../envs/sciworld/index.ts';
import { columns, percent } from '../src/learning/evaluation/table.ts';
import { resultFiles } from './results.ts';
import { averageOver, type Played, runStudy, type Study, type StudyOptions } from './trial.ts';

/** Runs what is left of the study, both tables under one seed after the other. */
export async function sciworld(options: StudyOptions): Promise<void> {
  const { markdown } = resultFiles('sciworld');
  // A return is then the final score, with failures as 0.
  const evaluated = { failure: 'forfeits' };
  for (let seeds = 1; seeds <= options.seeds; seeds++) {
    const easy = await runStudy('sciworld-easy.yaml', resultFiles('sciworld-easy').json, {
      ...options,
      seeds,
      evaluated,
    });
    const paper = await runStudy('sciworld.yaml', resultFiles('sciworld').json, { ...options, seeds, evaluated });
    const parts = { paper: paperTable(paper), easy: easyTable(easy), seeds: [seedTable(paper), seedTable(easy)] };
    writeFileSync(markdown, page(parts, paper, easy, options));
    process.stdout.write(`${[...parts.paper, '', ...parts.easy].join('\n')}\nwritten: ${markdown.pathname}\n`);
  }
}

/** Row of a table: which tasks it is over. */
interface Row {
  readonly name: string;
  readonly indices: readonly number[];
}

const WHAT = { success: 'rates', score: 'returns' } as const;

function table(title: string, rows: readonly Row[], { trials, random, config }: Study, what: keyof typeof WHAT) {
  const kinds = config.evaluation.horizons.flatMap((h) => [`h${h} sampled`, `h${h} greedy`]);
  const cell = (played: readonly Played[], kind: string, { indices }: Row) =>
    percent(averageOver(played, WHAT[what], kind, indices));
  return columns([
    [title, 'random', ...kinds],
    ...rows.map((row) => [
      `${row.name} (${row.indices.length})`,
      cell([random!], kinds[0]!, row),
      ...kinds.map((kind) => cell(trials, kind, row)),
    ]),
  ]);
}

function paperTable(study: Study): string[] {
  const { tasks } = createEnv(study.config.env.options);
  const test = tasks.split('test');
  const rows = [
    ...tasks.labels.map((label) => ({ name: label, indices: test.filter((index) => tasks.label(index) === label) })),
    { name: 'all', indices: test },
    { name: 'not in the paper’s training list', indices: tasks.sets!['unseen-test']! },
  ].filter(({ indices }) => indices.length > 0);
  return [
    ...table('success %, [95 %]', rows, study, 'success'),
    '',
    ...table('mean final score %, [95 %]', rows, study, 'score'),
  ];
}

function easyTable(study: Study): string[] {
  const { tasks } = createEnv(study.config.env.options);
  const test = tasks.sets!['test-even']!;
  const names = [...new Set(test.map((index) => tasks.at(index).registered.task.name))];
  const rows = [
    ...names.map((name) => ({ name, indices: test.filter((index) => tasks.at(index).registered.task.name === name) })),
    { name: 'mean of the 30 tasks', indices: test },
  ];
  return [
    ...table('mean final score %, [95 %]', rows, study, 'score'),
    '',
    ...table('success %, [95 %]', rows.slice(-1), study, 'success'),
  ];
}

function seedTable({ trials, config }: Study): string[] {
  const kinds = config.evaluation.horizons.flatMap((h) => [`h${h} sampled`, `h${h} greedy`]);
  const heads = kinds.flatMap((kind) => [`${kind} success`, 'score']);
  return columns([
    ['by training seed', ...heads, 'env steps', 'updates', 'minutes', 'processor s'],
    ...trials.map((trial) => [
      `seed ${trial.seed}`,
      ...kinds.flatMap((kind) =>
        (['rates', 'returns'] as const).map((what) =>
          percent(averageOver([trial], what, kind, Object.keys(trial[what][kind]!).map(Number))),
        ),
      ),
      String(trial.envSteps),
      String(trial.updates),
      trial.minutes.toFixed(1),
      trial.cpuSeconds.toFixed(0),
    ]),
  ]);
}

function page(
  { paper, easy, seeds }: { paper: string[]; easy: string[]; seeds: string[][] },
  paperStudy: Study,
  easyStudy: Study,
  { envSteps }: StudyOptions,
): string {
  const command = `npm run experiment -- sciworld --seeds ${paperStudy.trials.length}${envSteps === undefined ? '' : ` --env-steps ${envSteps}`}`;
  const episodes = (study: Study) => study.config.evaluation.episodesPerTask;
  const formatFenced = (lines: readonly string[]) => `\`\`\`\n${lines.join('\n')}\n\`\`\``;
  return `# SciWorld from scratch, by RL on the score alone

**Question.** How far does the local policy come in SciWorld from random weights, by the score alone?

**Command.** \`${command}\` (a seed that is done is kept in sciworld.json and sciworld-easy.json).

**Conditions.** One policy plays all tasks of a table. It trains on the table's train variations only.
It is played with \`failure: forfeits\`: a return is the final score, with failures as 0. (b) was trained so; (a) keeps what it earned before a failure.
Success is a score of 100. Means have 95 % intervals over seeds and tasks (over tasks for random play and for single seeds).

**What the policy reads.** The view parses. It reads a task's description by the templates that word it, and names the task's things by their part (\`target\`, \`box above\`, \`place\`).
Beside an answer box it shows whether the last temperature read lay above the limit. Stages list forms, and whole actions on the things that the description names.

**Bars.** (a) Lifespan, Find and Test-Conductivity above random; (b) DRRN's mean score of 17 %.

**Comparable with the papers?** The ids, tasks and scores of both tables are theirs. Their agents, DRRN among them, read the original's text and have neither the parsing nor the lists.
So the figures are not of the same task. The random player has both.

**Older than the world.** These seeds were played before the world followed the last of ScienceWorld 1.3.0's rules. In 800 episodes of random play over the 200 ids, before and after, 13 (of 12 ids) differ in what is paid or listed. They were trained under \`learner.maxLag: 2\`, and the configuration has 1 by now. So the command begins anew; the three seeds take some half an hour each, alone on two cores.

What was tried: [LOG.md](../LOG.md#sciworld).

## (a) AgentGym's 200 test ids, horizon 30

experiments/sciworld.yaml; ${episodes(paperStudy)} sampled episodes a task and one greedy.

${formatFenced(paper)}

${formatFenced(seeds[0]!)}

The paper's 7B model solves 57.0 % of these ids, from text.

## (b) ScienceWorld's protocol: 30 tasks, \`easy\`, 100 turns

experiments/sciworld-easy.yaml; four test variations of each task (\`test-even\`): ${episodes(easyStudy)} sampled episodes each and one greedy.

${formatFenced(easy)}

${formatFenced(seeds[1]!)}

DRRN, the best agent of ScienceWorld's paper, has 17 % with one agent a task and 100,000 steps each, from text.
`;
}
