/** Curves: several runs, bands over seeds, evaluations beside them, the horizon's phases, and where the time went. */
import { largestOf, smallestOf } from '../../core/extremes.ts';
import { type Metric, metricTable } from '../../metrics/metric-table.ts';
import type { Curves, RunInfo } from '../api.ts';
import { h, legendItem, numberText, visible } from './dom.ts';
import { drawLines, drawStacked, type Line, type Marks, type PhasePlan, PLOT_HEIGHT, STRIP } from './plot.ts';

export interface RunCurves {
  readonly info: RunInfo;
  readonly curves: Curves;
}

/** Palette whose colours differ in light and dark, also for most colour-blind people. */
const PALETTE = ['#3b82d8', '#d9772b', '#2f9e6e', '#b34fb8', '#c9a227', '#d14b5a', '#4fb0c6', '#7d8590'];

function colorOf(index: number): string {
  return PALETTE[index % PALETTE.length]!;
}

/** Charts of the overview, as the table of metrics defines them. */
const CHARTS = metricTable.filter((metric: Metric) => metric.chart !== undefined) as readonly Metric[];

export type XAxis = 'update' | 'elapsed' | 'envSteps';

const X_NAMES: Readonly<Record<XAxis, string>> = { update: 'updates', elapsed: 'seconds', envSteps: 'env steps' };

/** Lines of one metric: a run each, or one with a band for runs that differ by their seed alone. */
function linesOf(runs: readonly RunCurves[], name: string, x: XAxis, bands: boolean): Line[] {
  const families = new Map<string, RunCurves[]>();
  for (const run of runs) {
    if (!run.curves.series[name]) continue;
    const key = bands ? run.info.family : `run ${run.info.id}`;
    families.set(key, [...(families.get(key) ?? []), run]);
  }
  return [...families.values()].map((members) => {
    const [first] = members;
    const color = colorOf(first!.info.id);
    const label = members.length === 1 ? first!.info.name : `${first!.info.name} and ${members.length - 1} more seeds`;
    if (members.length === 1) {
      return { label, color, x: numbers(readPositions(first!.curves, x)), y: first!.curves.series[name]! };
    }
    return { label, color, ...bandOf(members, name, x) };
  });
}

/** Positions of a run's points on the axis; a rollout makes no updates, and goes by its time. */
function readPositions({ series }: RunCurves['curves'], x: XAxis): Curves['series'][string] | undefined {
  return series[x] ?? series.elapsed;
}

/** Mean, least and largest over runs at the x of the longest; between its points a run is read at its nearest. */
function bandOf(members: readonly RunCurves[], name: string, x: XAxis): Pick<Line, 'x' | 'y' | 'low' | 'high'> {
  const lengths = members.map(({ curves }) => readPositions(curves, x)?.length ?? 0);
  const longest = members[lengths.indexOf(largestOf(lengths))]!;
  const xs = numbers(readPositions(longest.curves, x));
  const samples = members.map(({ curves }) => resample(numbers(readPositions(curves, x)), curves.series[name]!, xs));
  const at = (i: number) => samples.flatMap((values) => values[i] ?? []);
  return {
    x: xs,
    y: xs.map((_, i) => (at(i).length === 0 ? null : at(i).reduce((sum, value) => sum + value, 0) / at(i).length)),
    low: xs.map((_, i) => (at(i).length === 0 ? null : smallestOf(at(i)))),
    high: xs.map((_, i) => (at(i).length === 0 ? null : largestOf(at(i)))),
  };
}

function resample(x: readonly number[], y: readonly (number | null)[], to: readonly number[]): (number | null)[] {
  let i = 0;
  return to.map((at) => {
    while (i + 1 < x.length && Math.abs(x[i + 1]! - at) <= Math.abs(x[i]! - at)) i++;
    return at > (x.at(-1) ?? -1) ? null : (y[i] ?? null);
  });
}

function numbers(values: readonly (number | null)[] | undefined): number[] {
  let last = 0;
  return (values ?? []).map((value) => (last = value ?? last));
}

/** Running mean: shares of few episodes jump. */
function smoothValues(values: readonly (number | null)[], span: number): (number | null)[] {
  if (span <= 1) return [...values];
  const out: (number | null)[] = [];
  const window: number[] = [];
  for (const value of values) {
    if (value !== null) window.push(value);
    if (window.length > span) window.shift();
    out.push(window.length === 0 ? null : window.reduce((sum, one) => sum + one, 0) / window.length);
  }
  return out;
}

/** Most rows of phases above a plot. */
const MAX_PLANS = 5;

/** Phases of each run; runs whose horizon changes alike share one row. */
export function phasePlans(runs: readonly RunCurves[], { x, bands }: Pick<ChartsOptions, 'x' | 'bands'>): PhasePlan[] {
  const plans = new Map<string, PhasePlan>();
  for (const { info, curves } of runs) {
    const horizon = curves.series.horizon ?? [];
    const xs = numbers(readPositions(curves, x));
    const phases: { at: number; turns: number }[] = [];
    horizon.forEach((turns, i) => {
      if (turns !== null && turns !== phases.at(-1)?.turns) phases.push({ at: xs[i] ?? 0, turns });
    });
    // By seconds or env steps the seeds of a family change at slightly different places: one schedule all the same.
    const places = phases.map(({ at, turns }) => (x === 'update' ? `${turns} from ${at}` : `${turns}`)).join();
    const key = x === 'update' ? places : `${places} ${info.family}`;
    if (phases.length === 0 || plans.has(key)) continue;
    const drawnAs = bands ? runs.find((run) => run.info.family === info.family)! : { info };
    plans.set(key, { color: colorOf(drawnAs.info.id), phases });
  }
  const all = [...plans.values()].slice(0, MAX_PLANS);
  return all.length === 1 ? [{ ...all[0]!, color: undefined }] : all;
}

/** Metrics that evaluations measure too. */
const EVALUATED: Readonly<Record<string, 'success' | 'score' | 'turns'>> = {
  success: 'success',
  return: 'score',
  turns: 'turns',
};

/** True for the name of an evaluation of random play. */
export function isRandom(name: string): boolean {
  return / random$/.test(name);
}

/** Marks of the evaluations on a chart: where training stood when they began. */
export function evaluationMarks(runs: readonly RunCurves[], metric: string, x: XAxis): Marks[] {
  const measured = EVALUATED[metric];
  if (!measured) return [];
  const names = [...new Set(runs.flatMap(({ curves }) => curves.evaluations.map(({ name }) => name)))];
  return runs.flatMap(({ info, curves }) =>
    names.flatMap((name, n) => {
      const points = curves.evaluations.flatMap((one) => {
        const { value, low, high } = measured === 'success' ? one.all.success : { value: one.all[measured] };
        if (one.name !== name || one.update === null || value === null || value === undefined) return [];
        return [{ x: placeOf(curves, one.update, x), y: value, low: low ?? undefined, high: high ?? undefined }];
      });
      const color = runs.length === 1 ? colorOf(n + 1) : colorOf(info.id);
      const label = runs.length === 1 ? name : `${info.name}, ${name}`;
      if (points.length === 0) return [];
      return [{ label, color, hollow: isRandom(name), points: points.sort((a, b) => a.x - b.x) }];
    }),
  );
}

/** Place of an update on the axis: that of the nearest point. */
function placeOf(curves: Curves, update: number, x: XAxis): number {
  const updates = numbers(curves.series.update);
  const xs = numbers(readPositions(curves, x));
  if (updates.length === 0) return 0;
  let nearest = 0;
  updates.forEach((at, i) => {
    if (Math.abs(at - update) <= Math.abs(updates[nearest]! - update)) nearest = i;
  });
  return xs[nearest] ?? 0;
}

export interface ChartsOptions {
  readonly x: XAxis;
  readonly bands: boolean;
  readonly smooth: number;
}

/** Outcomes that depend on how much of each world was drawn, where a run has several: those have charts by world instead. */
const POOLED: ReadonlySet<string> = new Set(['success', 'return', 'turns', 'truncated']);

/** Charts of a run by worlds and by sub-tasks: the metric that is split, and their title. */
const SPLIT_CHARTS: readonly { readonly metric: string; readonly title: string; readonly share: boolean }[] = [
  { metric: 'successByWorld', title: 'Success by world', share: true },
  { metric: 'returnByWorld', title: 'Return by world', share: false },
  { metric: 'horizonByWorld', title: 'Horizon by world', share: false },
  { metric: 'shareByWorld', title: 'Groups drawn by world', share: true },
  { metric: 'successByLabel', title: 'Success by sub-task', share: true },
];

/** True for a run of several worlds. */
function hasWorlds({ curves }: RunCurves): boolean {
  return Object.keys(curves.series).some((name) => name.startsWith('shareByWorld/'));
}

/** Overview charts, with those of worlds and sub-tasks for a single run. */
export function overviewCharts(runs: readonly RunCurves[], options: ChartsOptions): HTMLElement {
  const box = h('div', { class: 'charts' });
  const plans = phasePlans(runs, options);
  for (const { name, chart: title = name, share = false } of CHARTS) {
    const drawn = POOLED.has(name) ? runs.filter((run) => !hasWorlds(run)) : runs;
    const lines = linesOf(drawn, name, options.x, options.bands);
    if (lines.length === 0) continue;
    box.append(chart({ title, lines, marks: evaluationMarks(drawn, name, options.x), plans, share }, options));
  }
  for (const run of runs.slice(0, 4)) {
    const { info, curves } = run;
    const own = hasWorlds(run) ? [] : phasePlans([run], options); // several worlds have no phase in common
    for (const { metric, title, share } of SPLIT_CHARTS) {
      const keys = Object.keys(curves.series).filter((name) => name.startsWith(`${metric}/`));
      if (keys.length === 0) continue;
      const lines = keys.slice(0, 12).map((name, i): Line => {
        return {
          label: name.slice(metric.length + 1),
          color: colorOf(i),
          x: numbers(readPositions(curves, options.x)),
          y: curves.series[name]!,
        };
      });
      box.append(chart({ title: `${title}, ${info.name}`, lines, marks: [], plans: own, share }, options));
    }
  }
  return box;
}

/** Most lines whose raw values are drawn behind them: more would hide each other. */
const MAX_RAW = 4;

/** Lines as they are drawn: smoothed, with the raw values behind where they differ and there is room. */
export function buildDrawnLines(lines: readonly Line[], smooth: number): Line[] {
  const withRaw = smooth > 1 && lines.length <= MAX_RAW;
  return lines.map((line) => ({
    ...line,
    y: smoothValues(line.y, smooth),
    raw: withRaw && !line.low ? line.y : undefined,
  }));
}

interface ChartContent {
  readonly title: string;
  readonly lines: readonly Line[];
  readonly marks: readonly Marks[];
  readonly plans: readonly PhasePlan[];
  readonly share: boolean;
}

function chart({ title, lines, marks, plans, share }: ChartContent, { x, smooth }: ChartsOptions): HTMLElement {
  const shown = buildDrawnLines(lines, smooth);
  const last = (y: readonly (number | null)[]) => numberText(y.findLast((value) => value !== null));
  const words = shown.map(({ label, y }) => `${label} ${last(y)}`);
  const marked = marks.map(({ label, points }) => `${label} ${numberText(points.at(-1)?.y)}`);
  const evaluated = marked.length === 0 ? '' : `; evaluated: ${marked.join(', ')}`;
  const plot = h('div', {
    class: 'plot',
    role: 'img',
    style: { 'min-height': `${PLOT_HEIGHT + STRIP * plans.length}px` },
    aria: { 'aria-label': `${title} over ${X_NAMES[x]}; last: ${words.join(', ')}${evaluated}` },
  });
  const legend = h('ul', { class: 'legend' });
  for (const { label, color, y } of shown) legend.append(legendItem(color, label, last(y)));
  // With several runs the table above lists the evaluations apart; here they would be more than the lines.
  if (marks.length > 3) legend.append(h('li', { class: 'muted' }, 'dots: evaluations; rings: random play'));
  else {
    for (const { label, color, hollow, points } of marks) {
      const item = legendItem(color, label, numberText(points.at(-1)?.y));
      item.firstElementChild!.classList.add('dot', ...(hollow ? ['ring'] : []));
      legend.append(item);
    }
  }
  if (shown.some(({ raw: behind }) => behind)) {
    legend.append(h('li', { class: 'muted' }, `thin: each point; thick: mean of ${smooth}`));
  }
  const over = h('span', { class: 'over' }, ` over ${X_NAMES[x]}`);
  const card = h('section', { class: 'card' }, h('h2', {}, visible(title), over), plot, legend);
  runWhenPlaced(plot, () => drawLines(plot, shown, { marks, plans, share }));
  return card;
}

/** Runs once the element is in the page: uPlot measures its parent. */
function runWhenPlaced(element: HTMLElement, then: () => void): void {
  requestAnimationFrame(() => {
    if (element.isConnected) then();
  });
}

const TIME_PARTS: readonly (readonly [part: string, name: string, color: string])[] = [
  ['env', 'environments', '#2f9e6e'],
  ['batchWait', 'waiting for a batch', '#c9a227'],
  ['prefill', 'prefill', '#3b62d8'],
  ['decode', 'decode', '#4fb0c6'],
  ['learner', 'empty, waiting for the learner', '#b34fb8'],
  ['group', 'waiting for its group', '#7d8590'],
  ['messages', 'messages', '#d14b5a'],
];

/** Time of one run by its parts: the newest shares as a bar, and all of them stacked over the run. */
export function timeCharts({ info, curves }: RunCurves, options: ChartsOptions): HTMLElement {
  const parts = TIME_PARTS.map(([part, label, color]) => {
    const values = smoothValues(curves.series[`time/${part}`] ?? [], options.smooth);
    return { label, color, values, last: values.findLast((value) => value !== null) ?? 0 };
  });
  const percent = (share: number) => `${Math.round(100 * share)} %`;
  const words = parts.map(({ label, last }) => `${label} ${percent(last)}`).join(', ');
  const bar = h('div', { class: 'bar', role: 'img', aria: { 'aria-label': `last: ${words}` } });
  const legend = h('ul', { class: 'legend' });
  for (const { label, color, last } of parts) {
    const title = `${label} ${percent(last)}`;
    bar.append(h('span', { title, style: { width: `${100 * last}%`, background: color } }));
    legend.append(legendItem(color, label, percent(last)));
  }
  const plot = h('div', {
    class: 'plot',
    role: 'img',
    aria: { 'aria-label': `shares of the slots' time over ${X_NAMES[options.x]}` },
  });
  runWhenPlaced(plot, () => drawStacked(plot, numbers(readPositions(curves, options.x)), parts));
  const over = h('span', { class: 'over' }, ` over ${X_NAMES[options.x]}`);
  return h('section', { class: 'card' }, h('h2', {}, visible(info.name), over), bar, legend, plot);
}
