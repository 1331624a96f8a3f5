/** Tables of what was learnt from scratch, by hand. */
import { describe, expect, it } from 'vitest';
import type { CellRow, Evaluated } from '../../experiments/cells.ts';
import { listSection, mean } from '../../experiments/from-scratch-report.ts';
import type { TaskTable } from '../../src/core/task.ts';

const table: TaskTable = {
  count: 4,
  labels: ['easy', 'hard'],
  label: (index) => (index < 3 ? 'easy' : 'hard'),
  split: () => [0, 1, 2, 3],
  isSeen: (index) => index === 0,
  evalSeed: 0,
};
const list = { set: 'test', horizon: 24, title: 'Four tasks', note: 'A note.', paper: [['The paper', '91.0', '100']] };
const sampled = (...wins: (number | null)[]): Evaluated => ({
  set: 'test',
  horizon: 24,
  kind: 'sampled',
  episodes: 4,
  wins,
});
const greedy = (...wins: number[]): Evaluated => ({ set: 'test', horizon: 24, kind: 'greedy', episodes: 1, wins });

function row(arm: string, seed: number, final: readonly Evaluated[], envSteps?: number): CellRow {
  const mark = { update: 1, envSteps: envSteps ?? 0, tokens: 1, evaluated: { ...sampled(1, 1, 0, 0), episodes: 1 } };
  const curve = envSteps === undefined ? [] : [mark];
  return { format: 1, world: 'x', arm, seed, common: 'y', tasks: { test: [0, 1, 2, 3] }, minutes: 1, curve, final };
}

describe('the table of a list', () => {
  const rows = [
    row('random, test', 0, [sampled(2, 2, 2, 0)]),
    row('planner, test', 0, [{ ...greedy(1, 1, 1, 1), kind: 'planner' }]),
    row('five minutes', 1, [sampled(4, 4, 2, 2), greedy(1, 1, 0, 0)], 460_000),
    row('five minutes', 2, [sampled(4, 2, 2, 0), greedy(1, 1, 1, 0)], 460_000),
  ];

  it('shows random play, the planner, each seed, their mean with an interval, and the paper', () => {
    const section = listSection(list, rows, table);
    expect(section).toMatch(/^success % +env steps +all +easy +hard +unseen +greedy$/m);
    expect(section).toMatch(/^random +37\.5 +50\.0 +0\.0 +33\.3$/m);
    expect(section).toMatch(/^planner +100\.0 +100\.0 +100\.0 +100\.0$/m);
    expect(section).toMatch(/^five minutes, seed 1 +460k +75\.0 +83\.3 +50\.0 +66\.7 +50\.0$/m);
    expect(section).toMatch(/^five minutes, mean +62\.5 \[\d+\.\d, \d+\.\d\] +62\.5 \[/m);
    expect(section).toMatch(/^The paper +91\.0 +100$/m);
    expect(section).toContain('curve of five minutes, seed 1 (one sampled episode a task): 460k 50.0');
  });

  it('marks a list that has not been played', () => {
    expect(listSection({ ...list, horizon: 30 }, rows, table)).toContain('Not played yet.');
  });

  it('weighs labels where the list requires it, and counts what could not be played nowhere', () => {
    const rates = { tasks: [0, 1, 2, 3], rates: [1, null, 0.5, 0.25] };
    expect(mean(rates, {}, table)).toBeCloseTo(1.75 / 3, 12);
    expect(mean(rates, { weights: { easy: 1, hard: 3 } }, table)).toBeCloseTo(0.25 * 0.75 + 0.75 * 0.25, 12);
  });
});
