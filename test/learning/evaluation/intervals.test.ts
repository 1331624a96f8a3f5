/** Intervals and pass@k against published values, enumeration and simulation. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Rng } from '../../../src/core/rng.ts';
import {
  averageOverTasks,
  bootstrap,
  interquartileMean,
  passAtK,
  wilson,
} from '../../../src/learning/evaluation/intervals.ts';

/** Share of `draws` simulated intervals that hold `truth`. */
function coverage(draws: number, truth: number, interval: (rng: Rng) => { low: number; high: number }): number {
  const rng = Rng.fromSeed(7);
  let hits = 0;
  for (let i = 0; i < draws; i++) {
    const { low, high } = interval(rng);
    if (low <= truth && truth <= high) hits++;
  }
  return hits / draws;
}

describe('wilson', () => {
  it.each([
    // Newcombe 1998, table I, method 3
    [81, 263, 0.2553, 0.3662],
    [15, 148, 0.0624, 0.1605],
    [0, 20, 0, 0.1611],
    [1, 29, 0.0061, 0.1718],
  ])('%d of %d', (successes, n, low, high) => {
    const got = wilson(successes, n);
    expect(got.value).toBe(successes / n);
    expect(got.low).toBeCloseTo(low, 4);
    expect(got.high).toBeCloseTo(high, 4);
  });

  it('of nothing knows nothing', () => {
    expect(averageOverTasks([])).toEqual({ value: Number.NaN, low: 0, high: 1, n: 0 });
    expect(wilson(0, 0)).toMatchObject({ value: Number.NaN, low: 0, high: 1 });
  });

  it('mirrors and stays within [0, 1]', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 500 }), fc.double({ min: 0, max: 1, noNaN: true }), (n, share) => {
        const c = Math.round(share * n);
        const [a, b] = [wilson(c, n), wilson(n - c, n)];
        expect(a.low).toBeCloseTo(1 - b.high, 12);
        expect(a.low).toBeGreaterThanOrEqual(0);
        expect(a.low).toBeLessThanOrEqual(a.value + 1e-12);
        expect(a.value).toBeLessThanOrEqual(a.high + 1e-12);
        expect(a.high).toBeLessThanOrEqual(1);
      }),
    );
  });

  it.each([0.05, 0.3, 0.9])('holds the truth about 95 times in 100, p = %d', (p) => {
    const drawn = (rng: Rng) => Array.from({ length: 40 }, () => rng.float() < p).filter(Boolean).length;
    const held = coverage(2000, p, (rng) => wilson(drawn(rng), 40));
    expect(held).toBeGreaterThan(0.92);
    expect(held).toBeLessThan(0.985);
  });
});

describe('overTasks', () => {
  /** Rates of `n` tasks, `episodes` each: half of the tasks at one success probability, half at another. */
  const rates = (rng: Rng, n: number, episodes: number, [a, b]: readonly [number, number]) =>
    Array.from({ length: n }, () => {
      const p = rng.float() < 0.5 ? a : b;
      return Array.from({ length: episodes }, () => rng.float() < p).filter(Boolean).length / episodes;
    });

  it.each([
    ['easy and hard tasks, many episodes each', [0.05, 0.95], 8],
    ['tasks alike', [0.5, 0.5], 8],
    ['tasks that differ a little', [0.3, 0.7], 4],
  ] as const)('holds the truth about 95 times in 100: %s', (_, mix, episodes) => {
    const held = coverage(1500, (mix[0] + mix[1]) / 2, (rng) =>
      averageOverTasks(rates(rng, 40, episodes, mix), 40 * episodes),
    );
    expect(held).toBeGreaterThan(0.92);
    expect(held).toBeLessThan(0.985);
  });

  it('is Wilson over tasks where each task always or never succeeds', () => {
    const { low, high } = averageOverTasks([1, 1, 1, 0, 0, 1, 0, 1, 1, 0], 80);
    const plain = wilson(6, 10);
    // s² has n − 1 in it, so the effective number of tasks is 9.
    expect(low).toBeLessThanOrEqual(plain.low);
    expect(high).toBeGreaterThanOrEqual(plain.high);
    expect(high - low).toBeLessThan(1.1 * (plain.high - plain.low));
  });

  it('has the effective number of tasks n·p(1 − p)/s², s² being the unbiased variance of the rates', () => {
    // Rates 1, ½, ½, 0: mean ½, s² = (¼ + ¼)/3 = 1/6, so 4·¼/(1/6) = 6 tasks, with Wilson's interval by hand:
    // (3 + z²/2 ± z·√(3·3/6 + z²/4))/(6 + z²).
    const z = 1.959964;
    const middle = 3 + z ** 2 / 2;
    const spread = z * Math.sqrt(9 / 6 + z ** 2 / 4);
    const { low, high, value } = averageOverTasks([1, 0.5, 0.5, 0], 400);
    expect(value).toBe(0.5);
    expect(low).toBeCloseTo((middle - spread) / (6 + z ** 2), 12);
    expect(high).toBeCloseTo((middle + spread) / (6 + z ** 2), 12);
  });

  it('is Wilson over tasks where all tasks agree, always and never among them', () => {
    for (const rate of [0, 0.5, 1]) {
      const { value, low, high } = averageOverTasks([rate, rate, rate], 12);
      const plain = wilson(3 * rate, 3);
      expect([value, low, high]).toEqual([rate, plain.low, plain.high]);
    }
  });

  it('is never narrower than of as many independent episodes', () => {
    const { low, high } = averageOverTasks([0.5, 0.5, 0.5, 0.51], 32);
    const most = wilson(0.5025 * 32, 32);
    expect(low).toBeCloseTo(most.low, 9);
    expect(high).toBeCloseTo(most.high, 9);
  });
});

describe('pass@k', () => {
  it('is the share of all choices of k episodes that hold a success', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 8 }), fc.nat(), fc.nat(), (n, a, b) => {
        const [c, k] = [a % (n + 1), 1 + (b % n)];
        let [chosen, passed] = [0, 0];
        for (let set = 0; set < 2 ** n; set++) {
          const members = Array.from({ length: n }, (_, i) => i).filter((i) => (set >> i) & 1);
          if (members.length !== k) continue;
          chosen++;
          if (members.some((i) => i < c)) passed++;
        }
        expect(passAtK(n, c, k)).toBeCloseTo(passed / chosen, 12);
      }),
    );
  });

  it('k = 1 is the mean, and more episodes than there are is refused', () => {
    expect(passAtK(8, 3, 1)).toBeCloseTo(3 / 8, 12);
    expect(() => passAtK(4, 1, 5)).toThrow('pass@5 needs at least 5');
  });

  it('is unbiased: over draws of n episodes its mean is 1 − (1 − p)^k', () => {
    const [p, n, k] = [0.3, 8, 4];
    let mean = 0;
    for (let c = 0; c <= n; c++) {
      let ways = 1;
      for (let i = 0; i < c; i++) ways *= (n - i) / (i + 1);
      mean += ways * p ** c * (1 - p) ** (n - c) * passAtK(n, c, k);
    }
    expect(mean).toBeCloseTo(1 - (1 - p) ** k, 12);
  });
});

describe('over seeds', () => {
  it.each([
    // scipy.stats.trim_mean(values, 0.25), which rliable calls, cuts int(0.25·n) values from each side.
    [[7], 7],
    [[1, 2, 9], 4],
    [[9, 1, 2, 4], 3],
    [[1, 2, 3, 5, 100], 10 / 3],
    [[8, 1, 2, 3, 4, 5, 6, 1000], 4.5],
    [[0, 0, 3, 4, 5, 6, 8, 90, 100], 26 / 5],
  ])('the interquartile mean of %j is %d', (values, expected) => {
    expect(interquartileMean(values)).toBeCloseTo(expected, 12);
  });

  it('the bootstrap is a 95 % interval: it leaves out 2.5 % of the resamples on each side', () => {
    // The first of a resample of 0 … 199 is uniform over them: 2.5 % lie below 5, 2.5 % above 194.
    const values = Array.from({ length: 200 }, (_, i) => i);
    const { low, high, n } = bootstrap(values, ([first]) => first!, Rng.fromSeed(4), 40_000);
    expect(n).toBe(200);
    expect(Math.abs(low - 5)).toBeLessThanOrEqual(1);
    expect(Math.abs(high - 195)).toBeLessThanOrEqual(1);
  });

  it('the bootstrap repeats under one seed and holds the truth', () => {
    const mean = (xs: readonly number[]) => xs.reduce((a, b) => a + b, 0) / xs.length;
    const values = [0.1, 0.4, 0.35, 0.8, 0.55];
    const once = bootstrap(values, mean, Rng.fromSeed(3));
    expect(once).toEqual(bootstrap(values, mean, Rng.fromSeed(3)));
    expect(once.value).toBeCloseTo(0.44, 12);
    expect(once.low).toBeGreaterThanOrEqual(0.1);
    expect(once.low).toBeLessThan(once.value);
    expect(once.high).toBeGreaterThan(once.value);
    const held = coverage(300, 0, (rng) =>
      bootstrap(
        Array.from({ length: 30 }, () => rng.normal()),
        mean,
        rng,
        300,
      ),
    );
    expect(held).toBeGreaterThan(0.88);
    expect(held).toBeLessThan(0.98);
  });
});
