/** Intervals over few seeds: exact quantiles, a case by hand, and coverage by simulation. */
import { describe, expect, it } from 'vitest';
import { Rng } from '../../../src/core/rng.ts';
import {
  averageOverSeeds,
  averageOverSeedsAndTasks,
  comparePaired,
  tQuantile,
} from '../../../src/learning/evaluation/over-seeds.ts';

/** A standard normal draw (Box–Muller). */
function normal(rng: Rng): number {
  return Math.sqrt(-2 * Math.log(1 - rng.float())) * Math.cos(2 * Math.PI * rng.float());
}

const logistic = (x: number) => 1 / (1 + Math.exp(-x));

describe('the quantile of Student’s t', () => {
  // By an independent implementation (boost, by way of scipy).
  it.each([
    [1, 12.706204736174699],
    [1.1, 10.2768012862812],
    [1.5, 6.016663104427929],
    [2, 4.302652729749462],
    [2.5, 3.5746548420036817],
    [4, 2.7764451051977934],
    [7.3, 2.345066736547703],
    [29, 2.045229642132703],
    [30.5, 2.04086944518632],
    [10_000, 1.960201239890626],
    [1e9, 1.959963984540054],
  ])('is exact at %d degrees of freedom', (df, t) => {
    expect(tQuantile(df)).toBeCloseTo(t, 8);
  });

  it('is refused below one', () => {
    expect(() => tQuantile(0.5)).toThrow(RangeError);
  });
});

describe('an interval over seeds', () => {
  it('is the mean and t·s/√n', () => {
    const { value, low, high, n } = averageOverSeeds([70, 74, 78]); // s = 4, 4.3027·4/√3 = 9.937
    expect([value, n]).toEqual([74, 3]);
    expect(low).toBeCloseTo(64.063, 2);
    expect(high).toBeCloseTo(83.937, 2);
  });

  it('knows nothing from one seed', () => {
    expect(averageOverSeeds([70])).toMatchObject({
      value: 70,
      low: Number.NEGATIVE_INFINITY,
      high: Number.POSITIVE_INFINITY,
    });
  });

  it('of a paired difference leaves out what the pairs share', () => {
    const { value, low, high } = comparePaired([51, 72, 93], [50, 70, 90]);
    expect(value).toBe(2);
    expect(high - low).toBeLessThan(6); // s = 1
    expect(() => comparePaired([1], [1, 2])).toThrow(RangeError);
  });

  it.each([3, 5, 10])('covers at least 93 of 100 times at %d seeds', (seeds) => {
    const rng = Rng.fromSeed(11);
    const draws = 4000;
    let held = 0;
    for (let i = 0; i < draws; i++) {
      const { low, high } = averageOverSeeds(Array.from({ length: seeds }, () => 0.7 + 0.05 * normal(rng)));
      if (low <= 0.7 && 0.7 <= high) held++;
    }
    expect(held / draws).toBeGreaterThanOrEqual(0.93);
    expect(held / draws).toBeLessThan(0.97);
  });
});

describe('an interval over seeds and tasks', () => {
  // Seeds differ in skill, tasks in difficulty; each cell is eight episodes. Spreads as logits.
  it.each([
    [3, 0.4, 1.5],
    [5, 0.4, 1.5],
    [10, 0.4, 1.5],
    [3, 0.05, 1.5],
    [3, 0.6, 0.3],
    [5, 0.05, 0.05],
  ])('covers at least 93 of 100 times at %d seeds (spread %d of seeds, %d of tasks)', (seeds, ofSeeds, ofTasks) => {
    const rng = Rng.fromSeed(13);
    let truth = 0;
    for (let i = 0; i < 50_000; i++) truth += logistic(1 + ofSeeds * normal(rng) + ofTasks * normal(rng)) / 50_000;

    const draws = 600;
    const tasks = 60;
    let held = 0;
    for (let i = 0; i < draws; i++) {
      const difficulty = Array.from({ length: tasks }, () => ofTasks * normal(rng));
      const rates = Array.from({ length: seeds }, () => {
        const skill = 1 + ofSeeds * normal(rng);
        return difficulty.map((hard) => {
          const p = logistic(skill + hard);
          let won = 0;
          for (let n = 0; n < 8; n++) if (rng.float() < p) won++;
          return won / 8;
        });
      });
      const { low, high } = averageOverSeedsAndTasks(rates);
      if (low <= truth && truth <= high) held++;
    }
    expect(held / draws).toBeGreaterThanOrEqual(0.93);
  });

  it('is refused for one seed or unlike rows', () => {
    expect(() => averageOverSeedsAndTasks([[1, 0]])).toThrow(RangeError);
    expect(() => averageOverSeedsAndTasks([[1, 0], [1]])).toThrow(RangeError);
  });

  it('of what never varies is a point', () => {
    expect(
      averageOverSeedsAndTasks([
        [1, 1],
        [1, 1],
      ]),
    ).toEqual({ value: 1, low: 1, high: 1, n: 2 });
  });
});
