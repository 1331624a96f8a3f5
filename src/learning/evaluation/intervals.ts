/** Intervals for success rates. */
import type { Rng } from '../../core/rng.ts';

/** Estimated share with its 95 % interval, all in [0, 1]. */
export interface Estimated {
  readonly value: number;
  readonly low: number;
  readonly high: number;
  /** Number of units that the interval is over. */
  readonly n: number;
}

/** Quantile (97.5 %) of the standard normal. */
const Z = 1.959964;

/**
 * Wilson score interval of a proportion.
 * @see Wilson 1927; Brown, Cai & DasGupta 2001, eq. 4
 */
export function wilson(successes: number, n: number): Estimated {
  if (n === 0) return { value: Number.NaN, low: 0, high: 1, n };
  const p = successes / n;
  const spread = Z * Math.sqrt((p * (1 - p)) / n + (Z * Z) / (4 * n * n));
  const scale = 1 + (Z * Z) / n;
  const middle = p + (Z * Z) / (2 * n);
  return { value: p, low: Math.max(0, (middle - spread) / scale), high: Math.min(1, (middle + spread) / scale), n };
}

/**
 * Mean of per-task success rates with an interval *over tasks*: episodes of one task are not independent, so the task
 * is the unit. Wilson with the effective number of tasks n·p(1−p)/s², which is wider or narrower as the rates spread
 * more or less than single draws would. It is at most the number of episodes: a few tasks whose rates happen to lie
 * close together do not make anything known more surely.
 * @param episodes of all tasks together; absent: unknown
 */
export function averageOverTasks(rates: readonly number[], episodes = Number.POSITIVE_INFINITY): Estimated {
  const n = rates.length;
  if (n === 0) return { value: Number.NaN, low: 0, high: 1, n };
  const mean = rates.reduce((sum, rate) => sum + rate, 0) / n;
  const variance = rates.reduce((sum, rate) => sum + (rate - mean) ** 2, 0) / Math.max(1, n - 1);
  const single = mean * (1 - mean);
  const effective = variance > 0 && single > 0 ? Math.min(episodes, (n * single) / variance) : n;
  const { low, high } = wilson(mean * effective, effective);
  return { value: mean, low, high, n };
}

/**
 * Unbiased pass@k: the chance that at least one of k episodes drawn from n, of which c succeeded, is a success.
 *
 *   1 − C(n−c, k)/C(n, k)
 *
 * @see Chen et al. 2021, eq. 1, https://arxiv.org/abs/2107.03374
 */
export function passAtK(n: number, c: number, k: number): number {
  if (k > n) throw new RangeError(`pass@${k} needs at least ${k} episodes of a task, got ${n}`);
  if (n - c < k) return 1;
  let miss = 1;
  for (let i = n - c + 1; i <= n; i++) miss *= 1 - k / i;
  return 1 - miss;
}

/**
 * Interquartile mean: the mean of what is left without the lowest and the highest quarter, ⌊n/4⌋ values on each side, as
 * rliable has it (scipy's `trim_mean` at 0.25). So fewer than four values have their plain mean, and of five the middle
 * three count.
 * @see Agarwal et al. 2021, https://arxiv.org/abs/2108.13264
 */
export function interquartileMean(values: readonly number[]): number {
  const cut = Math.floor(values.length / 4);
  const middle = values.toSorted((a, b) => a - b).slice(cut, values.length - cut);
  return middle.reduce((sum, value) => sum + value, 0) / middle.length;
}

/** Percentile bootstrap of a statistic over `values`, 95 %. @param draws resamples; the quantiles are of them */
export function bootstrap(
  values: readonly number[],
  statistic: (sample: readonly number[]) => number,
  rng: Rng,
  draws = 4000,
): Estimated {
  const samples = Array.from({ length: draws }, () => statistic(values.map(() => rng.pick(values))));
  samples.sort((a, b) => a - b);
  const at = (q: number) => samples[Math.min(draws - 1, Math.floor(q * draws))]!;
  return { value: statistic(values), low: at(0.025), high: at(0.975), n: values.length };
}
