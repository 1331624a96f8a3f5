/** Summary of an evaluation: success, score and pass@k apart, by sub-task. */
import { describe, expect, it } from 'vitest';
import type { TaskTable } from '../../../src/core/task.ts';
import { NO_TOOL_COUNTS } from '../../../src/core/tool-counts.ts';
import { summarise, type TaskOutcome } from '../../../src/learning/evaluation/summary.ts';
import { evaluationTable } from '../../../src/learning/evaluation/table.ts';

const tasks: TaskTable = {
  count: 4,
  labels: ['easy', 'hard', 'absent'],
  label: (index) => (index < 2 ? 'easy' : 'hard'),
  split: () => [0, 1, 2, 3],
  evalSeed: 0,
};

function outcome(index: number, successes: string, returns: readonly number[], asked?: number): TaskOutcome {
  return {
    task: { env: 'toy', index, seed: 0 },
    asked,
    successes: Array.from(successes, (one) => one === '+'),
    returns,
    turns: returns.map((_, i) => i + 1),
  };
}

const plan = { name: 'h8 sampled', horizon: 8, temperature: 1 };

describe('summarise', () => {
  const results = [
    outcome(0, '++--', [1, 1, 0.5, 0]),
    outcome(1, '++++', [1, 1, 1, 1]),
    outcome(2, '+---', [1, 0, 0, 0]),
  ];
  const { labels, all, failed, name, horizon } = summarise({ plan, results, failed: 3 }, tasks);

  it('is a table for each of several worlds: no row is over tasks of two', () => {
    const of = (world: string, own: readonly TaskOutcome[], name: string) => {
      const { name: _, ...rest } = summarise({ plan, results: own, failed: 0 }, tasks);
      return { name: `${world} ${name}`, world, ...rest };
    };
    const table = evaluationTable([
      of('a', results.slice(0, 1), 'sampled'),
      of('b', results, 'sampled'),
      of('a', results.slice(0, 1), 'random'),
    ]);
    const cut = table.indexOf('');
    expect(table.slice(0, cut).map((line) => line.split(/ {2,}/))).toMatchObject([
      ['success %, [95 % interval over tasks]', 'a sampled', 'a random'],
      [expect.stringMatching(/^easy \(1 task\)/), expect.anything(), expect.anything()],
      [expect.stringMatching(/^all \(1 task\)/), expect.anything(), expect.anything()],
    ]);
    expect(table.slice(cut + 1).map((line) => line.split(/ {2,}/)[0])).toEqual([
      'success %, [95 % interval over tasks]',
      'easy (2 tasks)',
      'hard (1 task)',
      'all (3 tasks)',
    ]);
  });

  it('splits by sub-task, and leaves out those that were not played', () => {
    expect(labels.map(({ label, tasks, episodes }) => [label, tasks, episodes])).toEqual([
      ['easy', 2, 8],
      ['hard', 1, 4],
    ]);
    expect([all.tasks, all.episodes, failed, name, horizon]).toEqual([3, 12, 3, 'h8 sampled', 8]);
  });

  it('keeps success, score and pass@k apart', () => {
    const easy = labels[0]!;
    expect(easy.success.value).toBeCloseTo(0.75, 12); // of tasks: ½ and 1
    expect(easy.score).toBeCloseTo(6.5 / 8, 12); // partial rewards count here alone
    expect(easy.passAtK).toEqual({ 1: expect.closeTo(0.75, 12), 2: expect.closeTo((5 / 6 + 1) / 2, 12), 4: 1 });
    expect(all.success).toMatchObject({ n: 3 });
    expect(all.success.low).toBeLessThan(all.success.value);
  });

  it('averages what was reported, and shows it below the table', () => {
    const tools = { ...NO_TOOL_COUNTS, replies: 2, calls: 2, valid: 1, unknownTools: 1 };
    const reports = [{ metrics: { DB: 1 } }, { metrics: { DB: 0 }, tools }, { metrics: {}, tools }];
    const summary = summarise({ plan, results: [{ ...outcome(0, '+-+', [1, 0, 1]), reports }], failed: 0 }, tasks);
    expect(summary.metrics).toMatchObject({ DB: 0.5, callsPerTurn: 1, validCalls: 0.5, toolErrors: 0 });
    expect(evaluationTable([summary])).toContainEqual(expect.stringMatching(/^validCalls +0\.5$/));
    expect(summarise({ plan, results, failed: 0 }, tasks)).not.toHaveProperty('metrics');
  });

  it('counts a failed episode as unsolved among those asked for, and nowhere else', () => {
    const hosted = [outcome(0, '++++', [1, 1, 1, 1], 4), outcome(2, '+', [1], 4), outcome(3, '', [], 4)];
    const summary = summarise({ plan, results: hosted, failed: 7 }, tasks);
    expect(summary.all).toMatchObject({ asked: 12, episodes: 5, tasks: 2, successOfAsked: 5 / 12 });
    expect(summary.all.success.value).toBe(1);
    expect(summary.labels.map(({ label, asked, successOfAsked }) => [label, asked, successOfAsked])).toEqual([
      ['easy', 4, 1],
      ['hard', 8, 1 / 8],
    ]);
    expect(summary.byTask).toContainEqual({ index: 2, seed: 0, asked: 4, episodes: 1, successes: 1 });
    expect(evaluationTable([summary]).at(-1)).toMatch(/^of all episodes asked for +42 \(5 of 12 finished\)$/);
    expect(evaluationTable([summarise({ plan, results, failed: 0 }, tasks)]).at(-1)).toMatch(/^all/);
  });

  it('goes on where episodes failed: k up to the fewest of a task, tasks without any count nowhere', () => {
    const uneven = [outcome(0, '+-', [1, 0]), outcome(1, '+++', [1, 1, 1]), outcome(2, '', [])];
    const { all: total } = summarise({ plan, results: uneven, failed: 7 }, tasks);
    expect([total.tasks, total.episodes]).toEqual([2, 5]);
    expect(Object.keys(total.passAtK)).toEqual(['1', '2']);
    const nothing = summarise({ plan, results: [outcome(0, '', [])], failed: 4 }, tasks).all;
    expect(nothing.success).toMatchObject({ value: Number.NaN, low: 0, high: 1 });
  });
});
