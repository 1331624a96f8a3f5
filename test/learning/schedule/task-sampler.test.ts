import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Rng } from '../../../src/core/rng.ts';
import { TaskSampler, type TaskSampling } from '../../../src/learning/schedule/task-sampler.ts';

const indices = [3, 5, 8, 13, 21];
const anySampling: fc.Arbitrary<TaskSampling> = fc.constantFrom(
  { type: 'uniform' },
  { type: 'epoch' },
  { type: 'learnable' },
  { type: 'learnable', balanced: true },
  { type: 'learnable', balanced: 'failing' },
  { type: 'learnable', balanced: 'learnable' },
  { type: 'learnable', smoothing: 1, floor: 0.001, prior: 0.9 },
);

function counts(sampler: TaskSampler, draws: number): Map<number, number> {
  const seen = new Map<number, number>();
  for (let i = 0; i < draws; i++) {
    const { index } = sampler.next();
    seen.set(index, (seen.get(index) ?? 0) + 1);
  }
  return seen;
}

describe('task sampler', () => {
  it('epoch: every task once per epoch, in an order that differs between epochs and seeds', () => {
    const sampler = new TaskSampler('w', indices, 7, { type: 'epoch' });
    const orders: string[] = [];
    for (let epoch = 0; epoch < 8; epoch++) {
      const order = indices.map(() => sampler.next().index);
      expect([...order].sort((a, b) => a - b)).toEqual(indices);
      orders.push(order.join());
    }
    expect(new Set(orders).size).toBeGreaterThan(4);
  });

  it('uniform: every task about equally often', () => {
    for (const count of counts(new TaskSampler('w', indices, 1, { type: 'uniform' }), 5000).values()) {
      expect(Math.abs(count - 1000)).toBeLessThan(120); // 4 standard deviations
    }
  });

  it('uniform: one random number a draw, whether or not it could be balanced', () => {
    const sampler = new TaskSampler('w', indices, 7, { type: 'uniform' });
    const rng = Rng.fromSeed(7).split('task-sampler');
    for (let i = 0; i < 20; i++) expect(sampler.next().index).toBe(indices[rng.int(indices.length)]);
  });

  it('learnable: draws in proportion to p(1 − p) + floor', () => {
    const sampler = new TaskSampler('w', indices, 1, { type: 'learnable', smoothing: 1, floor: 0.05 });
    const p = [0, 0.1, 0.5, 0.9, 1];
    for (const [i, index] of indices.entries()) sampler.observe(index, p[i]!);
    const weights = p.map((x) => x * (1 - x) + 0.05);
    const total = weights.reduce((a, b) => a + b);
    const seen = counts(sampler, 8000);
    for (const [i, index] of indices.entries()) {
      const share = weights[i]! / total;
      expect(Math.abs(seen.get(index)! / 8000 - share)).toBeLessThan(4 * Math.sqrt((share * (1 - share)) / 8000));
    }
  });

  it('balanced: every label about equally often, its tasks by the rule of the type', () => {
    const labelOf = (index: number) => (index < 21 ? 'many' : 'one');

    const uniform = counts(new TaskSampler('w', indices, 1, { type: 'uniform', balanced: true }, labelOf), 8000);
    const sampler = new TaskSampler('w', indices, 1, { type: 'learnable', smoothing: 1, balanced: true }, labelOf);
    sampler.observe(3, 0);
    const learnable = counts(sampler, 8000);

    expect(Math.abs(uniform.get(21)! - 4000)).toBeLessThan(180); // 4 standard deviations
    for (const index of [3, 5, 8, 13]) expect(Math.abs(uniform.get(index)! - 1000)).toBeLessThan(120);
    expect(Math.abs(learnable.get(21)! - 4000)).toBeLessThan(180);
    const share = 0.03 / (0.03 + 3 * 0.28);
    expect(Math.abs(learnable.get(3)! - 4000 * share)).toBeLessThan(50);
  });

  it('balanced by failures: labels in proportion to their share of unsolved tasks, among those tried', () => {
    const labelOf = (index: number) => (index < 8 ? 'solved' : index < 21 ? 'half' : 'untried');
    const sampling = { type: 'learnable', smoothing: 1, balanced: 'failing' } as const;
    const sampler = new TaskSampler('w', indices, 1, sampling, labelOf);
    const share = (seen: Map<number, number>, ...of: number[]) =>
      of.reduce((sum, index) => sum + (seen.get(index) ?? 0), 0) / 9000;
    const before = counts(sampler, 9000);
    for (const of of [[3, 5], [8, 13], [21]]) expect(Math.abs(share(before, ...of) - 1 / 3)).toBeLessThan(0.02);

    sampler.observe(3, 1);
    for (const [index, success] of [
      [8, 1],
      [13, 0],
    ] as const)
      sampler.observe(index, success);
    const seen = counts(sampler, 9000);
    const [solved, half, untried] = [0.1, 0.6, 1.1].map((weight) => weight / 1.8);
    expect(Math.abs(share(seen, 3, 5) - solved!)).toBeLessThan(0.01);
    expect(Math.abs(share(seen, 8, 13) - half!)).toBeLessThan(0.02);
    expect(Math.abs(share(seen, 21) - untried!)).toBeLessThan(0.02);
  });

  it('balanced by what can be learnt: labels in proportion to p(1 − p) + floor, an untried one as if half solved', () => {
    const labelOf = (index: number) => (index < 8 ? 'solved' : index < 21 ? 'few' : 'untried');
    const sampling = { type: 'learnable', smoothing: 1, balanced: 'learnable' } as const;
    const sampler = new TaskSampler('w', indices, 1, sampling, labelOf);
    sampler.observe(3, 1);
    sampler.observe(8, 0.2);
    sampler.observe(13, 0.4);
    const seen = counts(sampler, 9000);
    const share = (...of: number[]) => of.reduce((sum, index) => sum + (seen.get(index) ?? 0), 0) / 9000;
    const [solved, few, untried] = [0.03, 0.24, 0.28].map((weight) => weight / 0.55);
    expect(Math.abs(share(3, 5) - solved!)).toBeLessThan(0.01);
    expect(Math.abs(share(8, 13) - few!)).toBeLessThan(0.02);
    expect(Math.abs(share(21) - untried!)).toBeLessThan(0.02);
  });

  it('balanced is refused without the labels that it draws by', () => {
    expect(() => new TaskSampler('w', indices, 1, { type: 'uniform', balanced: true })).toThrow(/expected labelOf/);
  });

  it('balanced over one label draws as it does unbalanced', () => {
    const plain = new TaskSampler('w', indices, 1, { type: 'uniform' });
    const balanced = new TaskSampler('w', indices, 1, { type: 'uniform', balanced: true }, () => 'all');
    for (let draw = 0; draw < 50; draw++) expect(balanced.next()).toEqual(plain.next());
  });

  it('learnable: the estimate is an exponential mean from the prior', () => {
    const sampler = new TaskSampler('w', indices, 1, { type: 'learnable' });
    expect(sampler.estimate(8)).toBeUndefined();
    sampler.observe(8, 1);
    expect(sampler.estimate(8)).toBeCloseTo(0.65, 12);
    sampler.observe(8, 0);
    expect(sampler.estimate(8)).toBeCloseTo(0.455, 12);
    sampler.observe(8, Number.NaN); // no evidence
    sampler.observe(999, 1); // not ours
    expect(sampler.estimate(8)).toBeCloseTo(0.455, 12);
    expect(sampler.estimate(999)).toBeUndefined();
  });

  it('learnable: an untried task is drawn as if its success were the prior', () => {
    const share = (prior: number) => {
      const sampler = new TaskSampler('w', [0, 1], 1, { type: 'learnable', floor: 0.01, prior, smoothing: 1 });
      sampler.observe(0, 0.5); // p(1 − p) = 0.25
      const draws = Array.from({ length: 4000 }, () => sampler.next().index);
      return draws.filter((index) => index === 1).length / draws.length;
    };
    expect(share(0.5)).toBeCloseTo(0.5, 1);
    expect(share(0.1)).toBeCloseTo(0.1 / (0.1 + 0.26), 1); // 0.1 · 0.9 + 0.01
    expect(share(0)).toBeCloseTo(0.01 / (0.01 + 0.26), 1);
  });

  it('gives draws of one index different task seeds', () => {
    const sampler = new TaskSampler('w', [0], 1, { type: 'uniform' });
    expect(new Set(Array.from({ length: 100 }, () => sampler.next().seed)).size).toBe(100);
  });

  it('resumed at any draw it goes on with the same tasks', () => {
    const labelOf = (index: number) => (index < 21 ? 'many' : 'one');
    const success = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(
        anySampling,
        fc.nat(),
        fc.array(success, { minLength: 12, maxLength: 12 }),
        (sampling, seed, rates) => {
          const whole = new TaskSampler('w', indices, seed, sampling, labelOf);
          let stopped = new TaskSampler('w', indices, seed, sampling, labelOf);
          for (const rate of rates) {
            const saved = JSON.parse(JSON.stringify(stopped.state));
            stopped = new TaskSampler('w', indices, seed, sampling, labelOf);
            stopped.restore(saved);
            const task = whole.next();
            expect(stopped.next()).toEqual(task);
            whole.observe(task.index, rate);
            stopped.observe(task.index, rate);
          }
        },
      ),
    );
  });

  it('refuses a state of another seed, list or way of sampling', () => {
    const { state } = new TaskSampler('w', indices, 1, { type: 'uniform' });
    for (const other of [
      new TaskSampler('w', indices, 2, { type: 'uniform' }),
      new TaskSampler('v', indices, 1, { type: 'uniform' }),
      new TaskSampler('w', indices.slice(1), 1, { type: 'uniform' }),
      new TaskSampler('w', indices, 1, { type: 'epoch' }),
    ]) {
      expect(() => other.restore(state)).toThrow(/another seed, env, task list/);
    }
    expect(() => new TaskSampler('w', indices, 1, { type: 'uniform' }).restore(undefined)).toThrow(/another seed/);
  });

  it('names what is wrong with its configuration', () => {
    const build = (list: number[], sampling: unknown) => () => new TaskSampler('w', list, 1, sampling as TaskSampling);
    expect(build([], { type: 'uniform' })).toThrow('tasks.indices');
    expect(build([1, 1], { type: 'uniform' })).toThrow('tasks.indices');
    expect(build([1], { type: 'random' })).toThrow('tasks.type');
    expect(build([1], { type: 'learnable', floor: 0 })).toThrow('tasks.floor');
    for (const prior of [2, -0.1, Number.NaN]) expect(build([1], { type: 'learnable', prior })).toThrow('tasks.prior');
    for (const smoothing of [0, 1.1]) expect(build([1], { type: 'learnable', smoothing })).toThrow('tasks.smoothing');
    for (const ends of [{ prior: 0 }, { prior: 1 }, { smoothing: 1 }]) {
      expect(build([1], { type: 'learnable', ...ends })).not.toThrow();
    }
  });
});
