/** Tables of what was learnt from scratch: one list of tasks, every arm that played it. Pure. */
import type { TaskTable } from '../src/core/task.ts';
import { averageOverSeedsAndTasks } from '../src/learning/evaluation/over-seeds.ts';
import { columns } from '../src/learning/evaluation/table.ts';
import type { CellRow, Evaluated } from './cells.ts';
import { type Rates, rateOf, ratesOf, share } from './horizon-report.ts';

/** A list of tasks and what stands beside it. */
export interface List {
  readonly set: string;
  /** Turns. */
  readonly horizon: number;
  readonly title: string;
  /** Sentence under the table. */
  readonly note: string;
  /** Rows of the paper: name, all, and by label where it has them. */
  readonly paper: readonly (readonly string[])[];
  /** Weight of each label in `all`; by its number of tasks where absent. */
  readonly weights?: Readonly<Record<string, number>>;
}

const percent = (share: number) => (Number.isFinite(share) ? (100 * share).toFixed(1) : '–');

/** Section of the page for one list. */
export function listSection(list: List, rows: readonly CellRow[], table: TaskTable): string {
  const played = rows.filter((row) => ratesOn(row, list, ['sampled', 'planner']) !== undefined);
  if (played.length === 0) return `## ${list.title}\n\nNot played yet.`;
  const tasks = ratesOn(played[0]!, list, ['sampled', 'planner'])!.tasks;
  const labels = table.labels.filter((label) => tasks.some((index) => table.label(index) === label));
  const isSeen = (index: number) => table.isSeen?.(index) ?? false;
  const withUnseen = tasks.some(isSeen) && !tasks.every(isSeen);
  const header = [
    'success %',
    'env steps',
    list.weights ? 'all, weighted' : 'all',
    ...labels,
    ...(withUnseen ? ['unseen'] : []),
    'greedy',
  ];
  const cells = (rates: Rates) => [
    percent(mean(rates, list, table)),
    ...labels.map((label) => percent(share(rates, (index) => table.label(index) === label))),
    ...(withUnseen ? [percent(share(rates, (index) => !isSeen(index)))] : []),
  ];
  const line = (row: CellRow, name: string) => {
    const greedy = ratesOn(row, list, ['greedy']);
    const steps = row.curve.at(-1)?.envSteps;
    return [
      name,
      steps === undefined ? '' : `${Math.round(steps / 1000)}k`,
      ...cells(ratesOn(row, list, ['sampled', 'planner'])!),
      greedy ? percent(mean(greedy, list, table)) : '',
    ];
  };
  const trained = played.filter(({ curve }) => curve.length > 0);
  const arms = [...new Set(trained.map(({ arm }) => arm))];
  const body = [
    ...played.filter(({ curve }) => curve.length === 0).map((row) => line(row, row.arm.split(',')[0]!)),
    ...arms.flatMap((arm) => {
      const own = trained.filter((row) => row.arm === arm);
      const each = own.map((row) => line(row, `${arm}, seed ${row.seed}`));
      return own.length < 2 ? each : [...each, summary(arm, own, list, table, header.length)];
    }),
    ...list.paper.map(([name, ...figures]) => [name!, '', ...figures]),
  ];
  const full = body.map((row) => [...row, ...Array(header.length - row.length).fill('')] as string[]);
  const curves = trained.flatMap((row) => curveLine(row, list));
  const framed = ['```', ...columns([header, ...full]), ...(curves.length > 0 ? ['', ...curves] : []), '```'];
  return [`## ${list.title}`, '', list.note, '', ...framed].join('\n');
}

/** Learning curve in one line, where it was taken on this list. */
function curveLine({ arm, seed, curve }: CellRow, { set, horizon }: List): string[] {
  const own = curve.filter(({ evaluated }) => evaluated.set === set && evaluated.horizon === horizon);
  if (own.length === 0) return [];
  const points = own.map(({ envSteps, evaluated }) => `${Math.round(envSteps / 1000)}k ${percent(rateOf(evaluated))}`);
  return [`curve of ${arm}, seed ${seed} (one sampled episode a task): ${points.join(' · ')}`];
}

/** Mean of an arm's seeds with its interval over seeds and tasks. */
function summary(arm: string, own: readonly CellRow[], list: List, table: TaskTable, width: number): string[] {
  const of = (kind: Evaluated['kind']) => {
    const found = own.flatMap((row) => ratesOn(row, list, [kind]) ?? []);
    const value = found.reduce((sum, rates) => sum + mean(rates, list, table), 0) / found.length;
    if (list.weights || found.length < 2) return percent(value);
    const { low, high } = averageOverSeedsAndTasks(found.map(({ rates }) => rates.map((rate) => rate ?? 0)));
    return `${percent(value)} [${percent(low)}, ${percent(high)}]`;
  };
  return [`${arm}, mean`, '', of('sampled'), ...Array(width - 4).fill(''), of('greedy')];
}

/** Rates of a row on a list, by the first evaluation of one of the kinds; undefined where it has none. */
function ratesOn(row: CellRow, { set, horizon }: List, kinds: readonly Evaluated['kind'][]): Rates | undefined {
  const found = row.final.find((one) => one.set === set && one.horizon === horizon && kinds.includes(one.kind));
  return found && ratesOf(row, found);
}

/** Mean over all tasks, weighted by label where the list has weights. */
export function mean(rates: Rates, { weights }: Pick<List, 'weights'>, table: Pick<TaskTable, 'label'>): number {
  if (!weights) return share(rates, () => true);
  const entries = Object.entries(weights);
  const total = entries.reduce((sum, [, weight]) => sum + weight, 0);
  const part = (label: string) => share(rates, (index) => table.label(index) === label);
  return entries.reduce((sum, [label, weight]) => sum + (weight / total) * part(label), 0);
}
