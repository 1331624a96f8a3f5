/** Differences between groups of runs: which interval is taken, by hand, and how often it covers. */
import { describe, expect, it } from 'vitest';
import { Rng } from '../../../src/core/rng.ts';
import type { TaskTable } from '../../../src/core/task.ts';
import { differenceOf, type EvaluatedRun, successOf } from '../../../src/learning/evaluation/compare.ts';
import { comparePaired, compareUnpaired } from '../../../src/learning/evaluation/over-seeds.ts';
import { summarise } from '../../../src/learning/evaluation/summary.ts';

const TASKS = 20;
const table: TaskTable = {
  count: 100,
  labels: ['even', 'odd'],
  label: (index) => (index % 2 === 0 ? 'even' : 'odd'),
  split: () => [],
  evalSeed: 0,
};

/** A run whose tasks are solved at a rate; `first` is the index of its first task. */
function runOf(seed: number, rateOf: (task: number) => number, first = 0, episodes = 4): EvaluatedRun {
  const results = Array.from({ length: TASKS }, (_, i) => {
    const solved = Math.round(rateOf(i) * episodes);
    return {
      task: { env: 'toy', index: first + i, seed: 0 },
      asked: episodes,
      successes: Array.from({ length: episodes }, (_, n) => n < solved),
      returns: Array.from({ length: episodes }, () => 0),
      turns: Array.from({ length: episodes }, () => 1),
    };
  });
  const plan = { name: 'h8 sampled', horizon: 8, temperature: 1 };
  return { seed, evaluation: summarise({ plan, results, failed: 0 }, table) };
}

const level = (rate: number) => () => rate;

describe('a difference', () => {
  const a = [runOf(1, level(0.25)), runOf(2, level(0.5)), runOf(3, level(0.75))];
  const b = [runOf(3, level(1)), runOf(1, level(0.5)), runOf(2, level(0.75))];

  it('is paired where seeds and tasks are the same, whatever the order', () => {
    expect(differenceOf(a, b, 'all')).toEqual({ value: 0.25, low: 0.25, high: 0.25, n: 3, method: 'paired by seed' });
    expect(differenceOf(b, a, 'even')).toMatchObject({ value: -0.25, method: 'paired by seed' });
  });

  it('is over seeds where seeds or tasks differ', () => {
    const others = b.map((run) => ({ ...run, seed: run.seed + 10 }));
    const { value, low, high, method } = differenceOf(a, others, 'all')!;
    expect([value, method]).toEqual([0.25, 'over seeds']);
    // Welch by hand: s² = 1/16 in both, so 0.25 ± 2.7764 · √(2/48), 4 degrees of freedom
    expect(high - value).toBeCloseTo(2.77645 * Math.sqrt(2 / 48), 5);
    expect(value - low).toBeCloseTo(high - value, 12);
    const elsewhere = [runOf(1, level(0.5), 50), runOf(2, level(0.5), 50), runOf(3, level(0.75), 50)];
    expect(differenceOf(a, elsewhere, 'all')!.method).toBe('over seeds');
  });

  it('is paired by task where a group has one run', () => {
    const one = differenceOf([runOf(1, (i) => i / 20)], [runOf(9, (i) => Math.min(1, i / 20 + 0.25))], 'all')!;
    expect(one.method).toBe('paired by task');
    expect(one.n).toBe(TASKS);
    expect(one.high - one.low).toBeLessThan(0.12); // tasks vary from 0 to 1, their differences hardly
  });

  it('has no interval where one run played other tasks, or kept no counts by task', () => {
    expect(differenceOf([runOf(1, level(0.5))], [runOf(1, level(0.75), 50)], 'all')).toMatchObject({
      value: 0.25,
      method: 'no interval',
    });
    const { byTask: _, ...old } = runOf(1, level(0.5)).evaluation;
    expect(differenceOf([{ seed: 1, evaluation: old as never }], [runOf(1, level(1))], 'all')!.method).toBe(
      'no interval',
    );
  });

  it('is not given where one has not played the sub-task', () => {
    const { labels, ...rest } = runOf(1, level(0.5)).evaluation;
    expect(differenceOf(a, [{ seed: 1, evaluation: { ...rest, labels: labels.slice(1) } }], 'even')).toBeUndefined();
    expect(successOf([], 'all')).toBeUndefined();
  });

  it('covers in 95 of 100 experiments', () => {
    const rng = Rng.fromSeed(5);
    const normal = () => Math.sqrt(-2 * Math.log(1 - rng.float())) * Math.cos(2 * Math.PI * rng.float());
    const counts = { paired: 0, unpaired: 0, wrong: 0 };
    const experiments = 4000;
    for (let i = 0; i < experiments; i++) {
      const shared = Array.from({ length: 4 }, normal);
      const one = shared.map((seed) => seed + 0.3 * normal());
      const two = shared.map((seed) => 1 + seed + 0.3 * normal());
      const apart = Array.from({ length: 6 }, () => 1 + 2 * normal());
      const covers = ({ low, high }: { low: number; high: number }) => low <= 1 && 1 <= high;
      if (covers(comparePaired(two, one))) counts.paired++;
      if (covers(compareUnpaired(apart, one))) counts.unpaired++;
      if (covers(compareUnpaired(two, one))) counts.wrong++;
    }
    const share = (n: number) => n / experiments;
    expect(share(counts.paired)).toBeGreaterThan(0.94);
    expect(share(counts.paired)).toBeLessThan(0.96);
    expect(share(counts.unpaired)).toBeGreaterThan(0.935);
    expect(share(counts.unpaired)).toBeLessThan(0.97);
    expect(share(counts.wrong)).toBeGreaterThan(0.99); // pairs taken for strangers: far too wide
  });
});
