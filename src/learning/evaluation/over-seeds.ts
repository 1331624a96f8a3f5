/**
 * Intervals over training seeds: few of them, so Student's t and not a bootstrap, whose intervals over three or five
 * seeds are far too narrow (a percentile bootstrap of 95 % covers some 74 and 90 % there).
 */
import type { Estimated } from './intervals.ts';

/**
 * Quantile (97.5 %) of Student's t, exact to nine digits: where I_x(df/2, 1/2) = 0.05 with x = df / (df + t²).
 * @param df ≥ 1, not necessarily whole
 * @see Abramowitz & Stegun 1964, 26.7.1
 */
export function tQuantile(df: number): number {
  if (!(df >= 1)) throw new RangeError(`tQuantile: expected at least 1 degree of freedom, got ${df}`);
  if (df > 1e7) return 1.959963985; // the normal's, to nine digits
  const outside = (t: number) => incompleteBeta(df / (df + t * t), df / 2, 0.5);
  let [low, high] = [1.9, 12.8];
  while (high - low > 1e-11 * high) {
    const t = (low + high) / 2;
    if (outside(t) > 0.05) low = t;
    else high = t;
  }
  return (low + high) / 2;
}

/** Regularised incomplete beta function I_x(a, b), by its continued fraction. @see DLMF 8.17.22 */
function incompleteBeta(x: number, a: number, b: number): number {
  if (x > (a + 1) / (a + b + 2)) return 1 - incompleteBeta(1 - x, b, a); // where the fraction converges fast
  const front = Math.exp(a * Math.log(x) + b * Math.log1p(-x) + lnGamma(a + b) - lnGamma(a) - lnGamma(b)) / a;
  // From its tail: 300 terms are far more than any a and b of ours need.
  let fraction = 1;
  for (let m = 300; m >= 1; m--) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    const odd = -((a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    fraction = 1 + even / (1 + odd / fraction);
  }
  return front / (1 - ((a + b) * x) / (a + 1) / fraction);
}

/** ln Γ(x) for x > 0, by Stirling's series above 10. */
function lnGamma(x: number): number {
  if (x < 10) return lnGamma(x + 1) - Math.log(x);
  const square = 1 / (x * x);
  const series = (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))) / x;
  return (x - 0.5) * Math.log(x) - x + 0.5 * Math.log(2 * Math.PI) + series;
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
 * Difference of the means of two independent lists, a − b, with its 95 % interval (Welch's t).
 * @param a at least two values, like `b`
 * @see Welch 1947
 */
export function compareUnpaired(a: readonly number[], b: readonly number[]): Estimated {
  const [first, second] = [a, b].map((values) => {
    const mean = average(values);
    const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1);
    return { mean, share: variance / values.length, df: values.length - 1 };
  }) as [Part, Part];
  const value = first.mean - second.mean;
  const variance = first.share + second.share;
  const n = a.length + b.length;
  if (variance === 0) return { value, low: value, high: value, n };
  const df = variance ** 2 / (first.share ** 2 / first.df + second.share ** 2 / second.df);
  const half = tQuantile(df) * Math.sqrt(variance);
  return { value, low: value - half, high: value + half, n };
}

interface Part {
  readonly mean: number;
  /** Variance of the mean. */
  readonly share: number;
  readonly df: number;
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
