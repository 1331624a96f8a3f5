/**
 * Intervals over training seeds: few of them, so Student's t and not a bootstrap, whose intervals over three or five
 * seeds are far too narrow (a percentile bootstrap of 95 % covers some 74 and 90 % there).
 */
import type { Estimated } from './intervals.ts';

/** Quantiles (97.5 %) of Student's t for 1 … 30 degrees of freedom; 40, 60, 120 and the normal's after them. */
const T_QUANTILES = [
  12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.306, 2.2622, 2.2281, 2.201, 2.1788, 2.1604, 2.1448, 2.1314,
  2.1199, 2.1098, 2.1009, 2.093, 2.086, 2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
];
const BEYOND = [
  [30, 2.0423],
  [40, 2.0211],
  [60, 2.0003],
  [120, 1.9799],
  [Number.POSITIVE_INFINITY, 1.96],
] as const;

/**
 * Quantile (97.5 %) of Student's t, between tabled degrees of freedom linear in their reciprocal (error below 0.01 from
 * 2 on; between 1 and 2 it is on the wide side).
 * @param df ≥ 1, not necessarily whole
 */
export function tQuantile(df: number): number {
  if (!(df >= 1)) throw new RangeError(`tQuantile: expected at least 1 degree of freedom, got ${df}`);
  const tabled: readonly (readonly [number, number])[] = [...T_QUANTILES.map((t, i) => [i + 1, t] as const), ...BEYOND];
  const after = tabled.findIndex(([known]) => known >= df);
  const [high, tHigh] = tabled[after]!;
  if (high === df) return tHigh;
  const [low, tLow] = tabled[after - 1]!;
  const share = (1 / low - 1 / df) / (1 / low - 1 / high);
  return tLow + share * (tHigh - tLow);
}

/**
 * Mean over seeds with a 95 % interval x̄ ± t·s/√n; unbounded for a single seed.
 * @see Student 1908
 */
export function averageOverSeeds(values: readonly number[]): Estimated {
  const n = values.length;
  const mean = average(values);
  if (n < 2) return { value: mean, low: Number.NEGATIVE_INFINITY, high: Number.POSITIVE_INFINITY, n };
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (n - 1);
  const half = tQuantile(n - 1) * Math.sqrt(variance / n);
  return { value: mean, low: mean - half, high: mean + half, n };
}

/** Mean of a − b over seeds that both have, with its 95 % interval. @throws {RangeError} for lists of unlike length */
export function comparePaired(a: readonly number[], b: readonly number[]): Estimated {
  if (a.length !== b.length) throw new RangeError(`pairedDifference: ${a.length} values against ${b.length}`);
  return averageOverSeeds(a.map((value, i) => value - b[i]!));
}

/**
 * Mean success with a 95 % interval over seeds *and* tasks, both taken as draws: what to expect of another seed on other
 * tasks of the kind. Variance of the mean of a crossed layout, (MS_seeds + MS_tasks − MS_rest) / (S·T), at least the
 * larger of its first two parts, with Satterthwaite's degrees of freedom.
 *
 * @param rates `[S, T]` success rate of each seed (at least 2) on each task (at least 2), in [0, 1]
 * @returns the interval cut to [0, 1]; `n` counts seeds
 * @see Searle, Casella & McCulloch 1992, ch. 4; Satterthwaite 1946
 */
export function averageOverSeedsAndTasks(rates: readonly (readonly number[])[]): Estimated {
  const S = rates.length;
  const T = rates[0]?.length ?? 0;
  if (S < 2 || T < 2 || rates.some((row) => row.length !== T)) {
    throw new RangeError(`overSeedsAndTasks: expected at least 2 seeds on the same 2 tasks or more, got ${S} × ${T}`);
  }
  const mean = average(rates.flat());
  const seedMeans = rates.map(average);
  const taskMeans = Array.from({ length: T }, (_, task) => average(rates.map((row) => row[task]!)));
  const squares = (values: readonly number[]) => values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const seeds = (T * squares(seedMeans)) / (S - 1);
  const tasks = (S * squares(taskMeans)) / (T - 1);
  let left = 0;
  rates.forEach((row, s) => {
    row.forEach((rate, t) => {
      left += (rate - seedMeans[s]! - taskMeans[t]! + mean) ** 2;
    });
  });
  const rest = left / ((S - 1) * (T - 1));

  const variance = Math.max(seeds + tasks - rest, seeds, tasks) / (S * T);
  if (variance === 0) return { value: mean, low: mean, high: mean, n: S };
  const share = (square: number, df: number) => (square / (S * T)) ** 2 / df;
  const df = variance ** 2 / (share(seeds, S - 1) + share(tasks, T - 1) + share(rest, (S - 1) * (T - 1)));
  const half = tQuantile(Math.max(1, df)) * Math.sqrt(variance);
  return { value: mean, low: Math.max(0, mean - half), high: Math.min(1, mean + half), n: S };
}

function average(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
