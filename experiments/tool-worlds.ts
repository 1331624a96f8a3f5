/**
 * Question    Does the local policy learn worlds of tools from scratch, by the reward at the end alone?
 * Command     npm run experiment -- terminal            (--seeds 3 by default; --env-steps for another budget)
 *             npm run experiment -- tau2
 * Does        Trains experiments/terminal.yaml without three families, and experiments/tau2.yaml, under several seeds. Then plays
 *             the held-out tasks, sampled and greedily; a uniform random policy plays the same. Of the terminal it also plays
 *             families that no training task was of. A seed that is done is kept in experiments/results/{terminal,tau2}.json.
 * Prints      Success by family or label, mean of the seeds with 95 % intervals over seeds and tasks, each seed by itself; and
 *             writes experiments/results/{terminal,tau2}.md.
 * Expected    60 points over random on unseen tasks of the terminal, 30 over random on τ²-bench's test tasks.
 * Wall-clock  A quarter of an hour a seed on two idle cores, and minutes for what is played.
 */
import { writeFileSync } from 'node:fs';
import { createEnv as createTau2 } from '../envs/tau2/index.ts';
import { createEnv as createTerminal } from '../envs/terminal/index.ts';
import { columns, percent } from '../src/learning/evaluation/table.ts';
import { resultFiles } from './results.ts';
import { averageOver, bySeed, runStudy, type Study, type StudyOptions } from './trial.ts';

/** Families of the terminal that nothing trains; all use tools that other families have. */
const HELD_OUT = ['copy', 'matches', 'slice'];
/** Tasks of each level of a held-out family that are played. */
const PLAYED = 8;

/** Row of a table: which tasks it is over. */
interface Row {
  readonly name: string;
  readonly indices: readonly number[];
}

/** Runs what is left of the terminal's study. */
export async function terminal(options: StudyOptions): Promise<void> {
  const { tasks } = createTerminal({ tools: 'forms', heldOut: HELD_OUT });
  const test = [...tasks.split('test')];
  const seen = new Map<string, number>();
  const others = tasks.sets!['held-out']!.filter((index) => {
    const label = tasks.label(index);
    seen.set(label, (seen.get(label) ?? 0) + 1);
    return seen.get(label)! <= PLAYED;
  });
  const study = await runStudy('terminal.yaml', resultFiles('terminal').json, {
    ...options,
    settings: [
      `env.options.heldOut=${JSON.stringify(HELD_OUT)}`,
      `evaluation.tasks=${JSON.stringify([...test, ...others])}`,
    ],
  });
  const familyOf = (index: number) => tasks.label(index).split(' ')[0]!;
  const levelOf = (index: number) => tasks.label(index).split(' ')[1]!;
  const rows: Row[] = [
    { name: 'unseen tasks', indices: test },
    ...['1', '2', '3'].map((level) => ({ name: `level ${level}`, indices: test.filter((i) => levelOf(i) === level) })),
    ...[...new Set(test.map(familyOf))].map((name) => ({ name, indices: test.filter((i) => familyOf(i) === name) })),
    { name: 'unseen families', indices: others },
    ...HELD_OUT.map((name) => ({ name, indices: others.filter((i) => familyOf(i) === name) })),
  ];
  report('terminal', study, rows, {
    title: 'The terminal from scratch, by RL on the reward at the end',
    question: 'Does the local policy learn to choose commands with typed arguments from random weights?',
    conditions: `It trains on ${tasks.split('train').length.toLocaleString('en')} tasks of ${19 - HELD_OUT.length} families. The ${test.length} unseen tasks are of the same families, with other names, words and contents. Nothing trains of ${HELD_OUT.join(', ')}.`,
    note: 'The tasks are ours, and so are their typed tools (`tools: forms`): each task lists the values of its arguments. No figure of another system is comparable.',
  });
}

/** Runs what is left of τ²-bench's study. */
export async function tau2(options: StudyOptions): Promise<void> {
  const study = await runStudy('tau2.yaml', resultFiles('tau2').json, options);
  const { tasks } = createTau2(study.config.env.options);
  const test = tasks.split('test');
  const rows: Row[] = [
    { name: 'test tasks', indices: test },
    ...tasks.labels
      .map((label) => ({ name: label, indices: test.filter((index) => tasks.label(index) === label) }))
      .filter(({ indices }) => indices.length > 0),
  ];
  report('tau2', study, rows, {
    title: 'τ²-bench’s carrier from scratch, by RL on the reward at the end',
    question: 'Does the local policy learn to mend a phone and an account by 43 tools, from random weights?',
    conditions: `Telecom without a user (\`solo\`): the agent reads a ticket. It trains on the ${tasks.split('train').length.toLocaleString('en')} tasks that are not held out, and plays the published ${test.length} test tasks.`,
    note: 'A transfer to a human agent at once solves 12 of the 40 test tasks (30 %), those labelled `no service` that can only be handed over. The leaderboard is played with a simulated user; GPT-4.1 without one has 52 % in the paper (2506.07982), over all 114 tasks.',
  });
}

/** Words of a page. */
interface Words {
  readonly title: string;
  readonly question: string;
  readonly conditions: string;
  readonly note: string;
}

/** Prints the tables of a study, and writes its page. */
function report(name: 'terminal' | 'tau2', study: Study, rows: readonly Row[], words: Words): void {
  const { trials, random, config } = study;
  if (trials.length === 0) return;
  const kinds = config.evaluation.horizons.flatMap((h) => [`h${h} sampled`, `h${h} greedy`]);
  const lines = [
    ...columns([
      ['success %, [95 %]', 'random', ...kinds],
      ...rows.map((row) => [
        `${row.name} (${row.indices.length})`,
        percent(averageOver([random!], 'rates', kinds[0]!, row.indices)),
        ...kinds.map((kind) => percent(averageOver(trials, 'rates', kind, row.indices))),
      ]),
    ]),
    '',
    ...bySeed(`by training seed, ${rows[0]!.name}`, trials, kinds, rows[0]!.indices),
  ];
  const { markdown } = resultFiles(name);
  const { title, question, conditions, note } = words;
  writeFileSync(
    markdown,
    `# ${title}

**Question.** ${question}

**Command.** \`npm run experiment -- ${name} --seeds ${trials.length}\` (a seed that is done is kept in ${name}.json).

**Conditions.** experiments/${name}.yaml. ${conditions}
Each task has ${config.evaluation.episodesPerTask} sampled episodes and one greedy. Means have 95 % intervals over seeds and tasks (over tasks for random play and for single seeds).

**What it is not.** ${note}

\`\`\`
${lines.join('\n')}
\`\`\`
`,
  );
  process.stdout.write(`${lines.join('\n')}\nwritten: ${markdown.pathname}\n`);
}
