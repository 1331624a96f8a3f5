/** Page of the horizon study, from its rows. Pure. */
import { Rng } from '../src/core/rng.ts';
import type { TaskTable } from '../src/core/task.ts';
import { bootstrap, type Estimated, interquartileMean } from '../src/learning/evaluation/intervals.ts';
import { averageOverSeeds, comparePaired } from '../src/learning/evaluation/over-seeds.ts';
import { columns } from '../src/learning/evaluation/table.ts';
import type { Curve } from '../src/run/curve-plot.ts';
import type { CellRow, Evaluated } from './cells.ts';

/** A world of the study. */
export interface StudiedWorld {
  readonly id: string;
  readonly title: string;
  /** Arms in the order of the table; the first two are the fixed ones. */
  readonly arms: readonly string[];
  /** Pairs whose difference is reported: first minus second. */
  readonly pairs: readonly (readonly [arm: string, other: string])[];
  /** The paper's figure, and what is not comparable about it. */
  readonly paper: string;
}

/**
 * A cell has collapsed when its last point has lost at least this share of what its best one has above random play, and
 * that was at least `WORTH`. Fixed before any cell was played.
 */
export const COLLAPSE = 0.5;
export const WORTH = 0.1;

/** Success rate over all tasks, in [0, 1]; tasks that could not be played count nowhere. */
export function rateOf({ episodes, wins }: Pick<Evaluated, 'episodes' | 'wins'>): number {
  const played = wins.filter((won) => won !== null);
  return played.reduce((sum, won) => sum + won, 0) / (played.length * episodes);
}

/** Success of one evaluation by task. */
export interface Rates {
  readonly tasks: readonly number[];
  /** [T] in [0, 1]; null where not played. */
  readonly rates: readonly (number | null)[];
}

/** Rates of a row's evaluation, task by task. */
export function ratesOf({ tasks }: CellRow, { set, wins, episodes }: Evaluated): Rates {
  return { tasks: tasks[set]!, rates: wins.map((won) => (won === null ? null : won / episodes)) };
}

/** Mean over the tasks that `keep` keeps; NaN over none. */
export function share({ tasks, rates }: Rates, keep: (index: number) => boolean): number {
  const kept = rates.filter((rate, i): rate is number => rate !== null && keep(tasks[i]!));
  return kept.reduce((sum, rate) => sum + rate, 0) / kept.length;
}

/** Rate of the first evaluation of a kind. */
export function finalRate({ final }: CellRow, kind: Evaluated['kind']): number {
  const found = final.find((one) => one.kind === kind);
  return found ? rateOf(found) : Number.NaN;
}

/** @param random success of random play over the same tasks */
export function hasCollapsed({ curve }: CellRow, random: number): boolean {
  const rates = curve.map(({ evaluated }) => rateOf(evaluated));
  const best = Math.max(0, ...rates) - random;
  const last = (rates.at(-1) ?? 0) - random;
  return best >= WORTH && last <= (1 - COLLAPSE) * best;
}

/** Success after so many tokens, between the points of the curve linear; undefined past its ends. */
export function rateAtTokens({ curve }: CellRow, tokens: number): number | undefined {
  const points = curve.map((mark) => ({ x: mark.tokens, y: rateOf(mark.evaluated) }));
  const after = points.findIndex(({ x }) => x >= tokens);
  if (after < 0) return undefined;
  const b = points[after]!;
  const a = points[after - 1];
  if (!a) return b.x === tokens ? b.y : undefined;
  return a.y + ((tokens - a.x) / (b.x - a.x)) * (b.y - a.y);
}

/** Mean success over the points of a curve, which lie evenly over the environment steps: how soon it was learnt. */
function meanOfCurve({ curve }: CellRow): number {
  return curve.reduce((sum, { evaluated }) => sum + rateOf(evaluated), 0) / curve.length;
}

/** Most tokens that every cell has seen. */
export function findSharedTokens(rows: readonly CellRow[]): number {
  return Math.min(...rows.map(({ curve }) => curve.at(-1)?.tokens ?? 0));
}

/**
 * Differences of two arms over the seeds that both have.
 * @returns undefined with fewer than two such seeds
 */
export function difference(
  rows: readonly CellRow[],
  [one, other]: readonly [string, string],
  value: (row: CellRow) => number | undefined,
): Estimated | undefined {
  const bySeed = (arm: string) => new Map(rows.filter((row) => row.arm === arm).map((row) => [row.seed, value(row)]));
  const [a, b] = [bySeed(one), bySeed(other)];
  const pairs = [...a].flatMap(([seed, x]) => {
    const y = b.get(seed);
    return x === undefined || y === undefined ? [] : [[x, y] as const];
  });
  if (pairs.length < 2) return undefined;
  return comparePaired(
    pairs.map(([x]) => x),
    pairs.map(([, y]) => y),
  );
}

const percent = (share: number) => (Number.isFinite(share) ? (100 * share).toFixed(1) : '–');
const formatSigned = (share: number) => `${share < 0 ? '−' : '+'}${Math.abs(100 * share).toFixed(1)}`;

/** `+1.7 [−2.1, +5.5]`, points of success. */
function points({ value, low, high }: Estimated): string {
  return `${formatSigned(value)} [${formatSigned(low)}, ${formatSigned(high)}]`;
}

/** `63.2 [60.1, 66.3]`, per cent; a single seed has no interval. */
function withInterval({ value, low, high, n }: Estimated): string {
  return n < 2 ? percent(value) : `${percent(value)} [${percent(Math.max(0, low))}, ${percent(Math.min(1, high))}]`;
}

/**
 * One world's part of the page, without its plots.
 * @param rows of that world; players that are not trained among them
 * @param tasks the world's, for their labels
 */
export function worldSection(
  world: StudiedWorld,
  rows: readonly CellRow[],
  tasks: Pick<TaskTable, 'label' | 'labels'>,
): string {
  const cells = rows.filter(({ curve }) => curve.length > 0);
  const own = (arm: string) => cells.filter((row) => row.arm === arm);
  const random = rows.find(({ arm }) => arm === 'random');
  const chance = random ? finalRate(random, 'sampled') : 0;
  const planner = rows.find(({ arm }) => arm === 'planner');
  if (cells.length === 0) return `## ${world.title}\n\nNo cell is finished yet.`;
  const tokens = findSharedTokens(cells);
  const table = columns([
    [
      'success %',
      'seeds',
      'sampled: IQM',
      'mean [95 % over seeds]',
      'mean of curve',
      `at ${millions(tokens)} tokens`,
      'greedy',
      'tokens',
      'collapsed',
    ],
    ...world.arms.map((arm) => {
      const of = own(arm);
      if (of.length === 0) return [arm, '0', '–', '–', '–', '–', '–', '–', '–'];
      const sampled = of.map((row) => finalRate(row, 'sampled'));
      return [
        arm,
        String(of.length),
        percent(interquartileMean(sampled)),
        withInterval(averageOverSeeds(sampled)),
        withInterval(averageOverSeeds(of.map(meanOfCurve))),
        withInterval(averageOverSeeds(of.map((row) => rateAtTokens(row, tokens) ?? Number.NaN))),
        withInterval(averageOverSeeds(of.map((row) => finalRate(row, 'greedy')))),
        millions(of.reduce((sum, { curve }) => sum + curve.at(-1)!.tokens, 0) / of.length),
        `${of.filter((row) => hasCollapsed(row, chance)).length} of ${of.length}`,
      ];
    }),
    ['random', '', '', random ? percent(chance) : '–', '', '', '', '', ''],
    ['scripted planner', '', '', planner ? percent(finalRate(planner, 'planner')) : '–', '', '', '', '', ''],
  ]);
  const pairs = world.pairs.map((pair) => {
    const steps = difference(cells, pair, (row) => finalRate(row, 'sampled'));
    const equal = difference(cells, pair, (row) => rateAtTokens(row, tokens));
    const curve = difference(cells, pair, meanOfCurve);
    const greedy = difference(cells, pair, (row) => finalRate(row, 'greedy'));
    return [
      `${pair[0]} − ${pair[1]}`,
      String(steps?.n ?? 0),
      ...[steps, curve, equal, greedy].map((one) => (one ? points(one) : '–')),
    ];
  });
  const differences = columns([
    ['paired over seeds, points [95 %]', 'seeds', 'equal steps', 'mean of curve', 'equal tokens', 'greedy'],
    ...pairs,
  ]);
  return [
    `## ${world.title}`,
    '',
    '```',
    ...table,
    '',
    ...differences,
    '',
    ...byLabel(world, rows, tasks),
    '```',
    '',
    verdict(world, cells),
    '',
    world.paper,
  ].join('\n');
}

/** Success of each arm in each kind of task, mean over its seeds, with the number of tasks. */
function byLabel(
  { arms }: StudiedWorld,
  rows: readonly CellRow[],
  tasks: Pick<TaskTable, 'label' | 'labels'>,
): string[] {
  const played = rows.map((row) => {
    const evaluated = row.final.find(({ kind }) => kind !== 'greedy')!;
    return { arm: row.arm, rates: ratesOf(row, evaluated) };
  });
  const labels = tasks.labels.flatMap((label) => {
    const count = played[0]!.rates.tasks.filter((index) => tasks.label(index) === label).length;
    return count > 0 ? [{ label, count }] : [];
  });
  const line = (arm: string, name = arm) => {
    const own = played.filter((one) => one.arm === arm);
    const averageOver = (label: string) =>
      own.reduce((sum, { rates }) => sum + share(rates, (index) => tasks.label(index) === label), 0) / own.length;
    return [name, ...labels.map(({ label }) => percent(averageOver(label)))];
  };
  return columns([
    ['sampled success by kind of task, % (tasks)', ...labels.map(({ label, count }) => `${label} (${count})`)],
    ...arms.map((arm) => line(arm)),
    line('random'),
    line('planner', 'scripted planner'),
  ]);
}

/** The findings in words: which differences are distinguishable from zero. */
function verdict({ pairs }: StudiedWorld, cells: readonly CellRow[]): string {
  const lines = pairs.map((pair) => {
    const found = difference(cells, pair, (row) => finalRate(row, 'sampled'));
    const [one, other] = pair;
    if (!found) return `${one} against ${other}: fewer than two seeds have both, there is no result yet.`;
    const apart = found.low > 0 ? 'better' : found.high < 0 ? 'worse' : undefined;
    const seeds = `${found.n} seeds`;
    if (apart) return `${one} is ${apart} than ${other} by ${points(found)} points at equal steps (${seeds}).`;
    return `${one} and ${other} are not distinguishable at equal steps: ${points(found)} points (${seeds}).`;
  });
  return lines.map((line) => `- ${line}`).join('\n');
}

/** IQM over seeds of each point of the curves, with the range of a percentile bootstrap as band. */
export function curves(world: StudiedWorld, rows: readonly CellRow[], by: 'envSteps' | 'tokens'): Curve[] {
  return world.arms.flatMap((arm) => {
    const own = rows.filter((row) => row.arm === arm && row.curve.length > 0);
    if (own.length === 0) return [];
    const length = Math.min(...own.map(({ curve }) => curve.length));
    const at = Array.from({ length }, (_, k) => {
      const marks = own.map(({ curve }) => curve[k]!);
      const rates = marks.map(({ evaluated }) => rateOf(evaluated));
      const { value, low, high } = bootstrap(rates, interquartileMean, Rng.fromSeed(k), 1000);
      return { x: marks.reduce((sum, mark) => sum + mark[by], 0) / marks.length, y: value, low, high };
    });
    return [{ name: arm, points: at }];
  });
}

function millions(count: number): string {
  return `${(count / 1e6).toFixed(1)}M`;
}
