/**
 * Question    Do agents learn as they are: a program on the AI SDK, and one in Python, with three tools each?
 * Command     npm run experiment -- agents              (--seeds 3 by default; --env-steps for another budget)
 * Does        Trains experiments/agents.yaml under several seeds, then the same with the Python program, and plays the held-out
 *             tasks with the weights that training began with and with those that it ended with. A seed that is done is kept in
 *             experiments/results/agents{,-python}.json, so an interrupted study goes on behind it.
 * Needs       The libraries of experiments/agents (npm install --prefix experiments/agents), and Python with the package openai:
 *             LONGPLAY_PYTHON names its interpreter (python3 by default).
 * Prints      Success before and after, mean of the seeds with 95 % intervals over seeds and tasks, each seed by itself; and
 *             writes experiments/results/agents.md.
 * Expected    30 points more than at the start, each within 15 minutes a seed on two cores.
 */
import { writeFileSync } from 'node:fs';
import { columns, percent } from '../src/learning/evaluation/table.ts';
import { resultFiles } from './results.ts';
import { averageOver, bySeed, type Played, runStudy, type Study, type StudyOptions } from './trial.ts';

/** Programs of the study, and how each is configured. */
const ARMS = [
  { name: 'AI SDK', json: 'agents', agent: '{ module: experiments/agents/ai-sdk.mjs }' },
  {
    name: 'Python',
    json: 'agents-python',
    agent: `{ command: [${process.env.LONGPLAY_PYTHON ?? 'python3'}, experiments/agents/python.py], tasks: 1000, reuse: true }`,
  },
] as const;

/** Runs what is left of the study. */
export async function agents(options: StudyOptions): Promise<void> {
  const { markdown } = resultFiles('agents');
  const played: (readonly [name: string, study: Study])[] = [];
  for (const { name, json, agent } of ARMS) {
    const settings = [`agent=${agent}`];
    const study = await runStudy('agents.yaml', resultFiles(json).json, { ...options, settings, playsStart: true });
    played.push([name, study]);
    const lines = tables(played);
    writeFileSync(markdown, page(lines, played, options));
    process.stdout.write(`${lines.join('\n')}\nwritten: ${markdown.pathname}\n`);
  }
}

function tables(played: readonly (readonly [name: string, study: Study])[]): string[] {
  const kinds = ['h8 sampled', 'h8 greedy'];
  const rows = played.map(([name, { trials, random }]) => {
    const indices = indicesOf(random!);
    const starts = trials.map(({ start }) => start!);
    return [
      `${name} (${indices.length} tasks)`,
      percent(averageOver([random!], 'rates', kinds[0]!, indices)),
      ...kinds.map((kind) => percent(averageOver(starts, 'rates', kind, indices))),
      ...kinds.map((kind) => percent(averageOver(trials, 'rates', kind, indices))),
    ];
  });
  return [
    ...columns([
      ['success %, [95 %]', 'random', 'start, sampled', 'start, greedy', 'trained, sampled', 'trained, greedy'],
      ...rows,
    ]),
    ...played.flatMap(([name, { trials, random }]) => ['', ...bySeed(name, trials, kinds, indicesOf(random!))]),
  ];
}

/** Tasks that were played. */
function indicesOf({ rates }: Played): number[] {
  return Object.keys(rates['h8 sampled']!).map(Number);
}

function page(
  lines: readonly string[],
  played: readonly (readonly [name: string, study: Study])[],
  { envSteps }: StudyOptions,
): string {
  const seeds = Math.min(...played.map(([, { trials }]) => trials.length));
  const steps = envSteps === undefined ? '' : ` --env-steps ${envSteps}`;
  return `# Agents as they are

**Question.** Do programs that call a model learn without a change: one on the AI SDK, one in Python?

**Command.** \`npm run experiment -- agents --seeds ${seeds}${steps}\` (a seed that is done is kept in agents.json, agents-python.json).

**Conditions.** experiments/agents.yaml: a small policy from random weights chooses a tool and then its argument.
The programs answer questions about a library of facts: search it, read a page, answer with one word.
Reward is 1 for the right answer and 0.3 for reading the right page. The tasks played are held out.
*Start* is the policy with the weights that training began with. Means have 95 % intervals over seeds and tasks.
The Python program has a smaller library; its processes play many episodes each.

**Comparable with anything?** No: the tasks are ours. They show that an unchanged program learns.

\`\`\`
${lines.join('\n')}
\`\`\`
`;
}
