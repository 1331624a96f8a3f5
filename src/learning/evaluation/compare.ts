/** Comparison of two groups of runs by their evaluations: the difference of success with its interval. Pure. */
import type { Estimated } from './intervals.ts';
import { averageOverSeeds, comparePaired, compareUnpaired } from './over-seeds.ts';
import type { EvaluationSummary, LabelSummary, TaskCounts } from './summary.ts';

/** One run of a group: its seed, and its evaluation of one name. */
export interface EvaluatedRun {
  readonly seed: number;
  readonly evaluation: EvaluationSummary;
}

/** Method by which a difference was estimated. */
export type DifferenceMethod =
  /** Both groups have runs of the same seeds on the same tasks: Student's t over the pairs. */
  | 'paired by seed'
  /** Both groups have several runs, of other seeds or on other tasks: Welch's t over the runs. */
  | 'over seeds'
  /** A group has one run, on the same tasks as the other: Student's t over the tasks. It says nothing of other seeds. */
  | 'paired by task'
  /** A group has one run, on other tasks or of a version that kept no counts by task: no interval can be given. */
  | 'no interval';

/** Difference of success between two groups, `b − a`, in [−1, 1]. */
export interface Difference extends Estimated {
  readonly method: DifferenceMethod;
}

/**
 * Estimates success of a group: over its seeds where it has several, else over the tasks of its one run.
 * @param label of a sub-task, or `all`
 * @returns undefined where no run played it
 */
export function successOf(runs: readonly EvaluatedRun[], label: string): Estimated | undefined {
  const parts = runs.flatMap((run) => partOf(run, label) ?? []);
  if (parts.length === 0) return undefined;
  if (parts.length === 1) return parts[0]!.success;
  const { value, low, high, n } = averageOverSeeds(parts.map(({ success }) => success.value));
  return { value, low: Math.max(0, low), high: Math.min(1, high), n };
}

/**
 * Estimates the difference of success between two groups, `b − a`. See `DifferenceMethod` for the interval.
 * @param label of a sub-task, or `all`
 * @returns undefined where one of them has not played it
 */
export function differenceOf(
  a: readonly EvaluatedRun[],
  b: readonly EvaluatedRun[],
  label: string,
): Difference | undefined {
  const [from, to] = [a, b].map((runs) =>
    runs.flatMap((run) => {
      const part = partOf(run, label);
      return part && !Number.isNaN(part.success.value) ? [{ ...run, part }] : [];
    }),
  ) as [Played[], Played[]];
  if (from.length === 0 || to.length === 0) return undefined;
  const values = (runs: readonly Played[]) => bySeed(runs).map(({ part }) => part.success.value);
  if (from.length > 1 && to.length > 1) {
    const isPaired = seedsOf(from) === seedsOf(to) && isSameTasks([...from, ...to]);
    return isPaired
      ? { ...comparePaired(values(to), values(from)), method: 'paired by seed' }
      : { ...compareUnpaired(values(to), values(from)), method: 'over seeds' };
  }
  if (label === 'all' && isSameTasks([...from, ...to])) {
    return { ...comparePaired(ratesOf(to), ratesOf(from)), method: 'paired by task' };
  }
  const value = averageOverSeeds(values(to)).value - averageOverSeeds(values(from)).value;
  return { value, low: -1, high: 1, n: 1, method: 'no interval' };
}

interface Played extends EvaluatedRun {
  readonly part: LabelSummary;
}

function partOf({ evaluation }: EvaluatedRun, label: string): LabelSummary | undefined {
  return label === 'all' ? evaluation.all : evaluation.labels.find((one) => one.label === label);
}

function bySeed<T extends EvaluatedRun>(runs: readonly T[]): readonly T[] {
  return runs.toSorted((a, b) => a.seed - b.seed);
}

function seedsOf(runs: readonly EvaluatedRun[]): string {
  return bySeed(runs)
    .map(({ seed }) => seed)
    .join();
}

function countsOf({ evaluation }: EvaluatedRun): readonly TaskCounts[] {
  // Absent in results of earlier versions; a task that none finished has no rate.
  return (evaluation.byTask ?? []).filter(({ episodes }) => episodes > 0);
}

/** True where all runs have played the same tasks, and it is known which. */
function isSameTasks(runs: readonly EvaluatedRun[]): boolean {
  const names = runs.map((run) =>
    countsOf(run)
      .map(({ index, seed }) => `${index}#${seed}`)
      .sort()
      .join(),
  );
  return names[0] !== '' && names.every((one) => one === names[0]);
}

/** Success rate of each task, averaged over runs, in the order of the tasks. */
function ratesOf(runs: readonly EvaluatedRun[]): readonly number[] {
  const rates = new Map<string, number[]>();
  for (const run of runs) {
    for (const { index, seed, episodes, successes } of countsOf(run)) {
      const name = `${index}#${seed}`;
      rates.set(name, [...(rates.get(name) ?? []), successes / episodes]);
    }
  }
  return [...rates]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([, own]) => own.reduce((sum, rate) => sum + rate, 0) / own.length);
}
