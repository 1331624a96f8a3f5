/** Curves: several runs, bands over seeds, the horizon's phases behind them, and where the time went. */
import type UPlot from 'uplot';
import type { Curves, RunInfo } from '../api.ts';
import { h, numberText, visible } from './dom.ts';

/** Global of uPlot, whose script comes before ours in the page. */
declare const uPlot: typeof UPlot;

export interface RunCurves {
  readonly info: RunInfo;
  readonly curves: Curves;
}

export interface Line {
  readonly label: string;
  readonly color: string;
  readonly x: readonly number[];
  readonly y: readonly (number | null)[];
  /** Lower edge of a band over seeds. */
  readonly low?: readonly (number | null)[];
  readonly high?: readonly (number | null)[];
}

/** Palette whose colours differ in light and dark, also for most colour-blind people. */
const PALETTE = ['#3b82d8', '#d9772b', '#2f9e6e', '#b34fb8', '#c9a227', '#d14b5a', '#4fb0c6', '#7d8590'];

function colorOf(index: number): string {
  return PALETTE[index % PALETTE.length]!;
}

/** Charts of the overview, in order; `unit: share` runs from 0 to 1. */
const CHARTS: readonly (readonly [name: string, title: string, share: boolean])[] = [
  ['success', 'Success', true],
  ['return', 'Return', false],
  ['turns', 'Turns an episode', false],
  ['truncated', 'Truncated', true],
  ['entropy', 'Entropy [nats]', false],
  ['loss', 'Loss', false],
  ['klOld', 'KL to the behaviour policy', false],
  ['clipFraction', 'Clipped', true],
  ['gradNorm', 'Gradient norm', false],
  ['lagMean', 'Lag [updates]', false],
  ['zeroVarianceGroups', 'Groups that score all the same', true],
  ['repeatedTurns', 'Repeated turns', true],
  ['stepsPerSecond', 'Env steps per second', false],
  ['tokensPerSecond', 'Tokens per second', false],
];

export type XAxis = 'update' | 'elapsed' | 'envSteps';

const X_NAMES: Readonly<Record<XAxis, string>> = { update: 'update', elapsed: 'seconds', envSteps: 'env steps' };

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
      return { label, color, x: numbers(along(first!.curves, x)), y: first!.curves.series[name]! };
    }
    return { label, color, ...bandOf(members, name, x) };
  });
}

/** Positions of a run's points on the axis; a rollout makes no updates, and goes by its time. */
function along({ series }: RunCurves['curves'], x: XAxis): Curves['series'][string] | undefined {
  return series[x] ?? series.elapsed;
}

/** Mean, least and largest over runs at the x of the longest; between its points a run is read at its nearest. */
function bandOf(members: readonly RunCurves[], name: string, x: XAxis): Pick<Line, 'x' | 'y' | 'low' | 'high'> {
  const lengths = members.map(({ curves }) => along(curves, x)?.length ?? 0);
  const longest = members[lengths.indexOf(Math.max(...lengths))]!;
  const xs = numbers(along(longest.curves, x));
  const samples = members.map(({ curves }) => resampled(numbers(along(curves, x)), curves.series[name]!, xs));
  const at = (i: number) => samples.flatMap((values) => values[i] ?? []);
  return {
    x: xs,
    y: xs.map((_, i) => (at(i).length === 0 ? null : at(i).reduce((sum, value) => sum + value, 0) / at(i).length)),
    low: xs.map((_, i) => (at(i).length === 0 ? null : Math.min(...at(i)))),
    high: xs.map((_, i) => (at(i).length === 0 ? null : Math.max(...at(i)))),
  };
}

function resampled(x: readonly number[], y: readonly (number | null)[], to: readonly number[]): (number | null)[] {
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
function smoothed(values: readonly (number | null)[], span: number): (number | null)[] {
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

/** Changes of the horizon: x of each phase's start, and its turns. */
function phasesOf(run: RunCurves | undefined, x: XAxis): { readonly at: number; readonly turns: number }[] {
  const horizon = run?.curves.series.horizon ?? [];
  const xs = numbers(run && along(run.curves, x));
  const phases: { at: number; turns: number }[] = [];
  horizon.forEach((turns, i) => {
    if (turns !== null && turns !== phases.at(-1)?.turns) phases.push({ at: xs[i] ?? 0, turns });
  });
  return phases;
}

export interface ChartsOptions {
  readonly x: XAxis;
  readonly bands: boolean;
  readonly smooth: number;
}

/** Overview charts, with those of sub-tasks for a single run. */
export function overviewCharts(runs: readonly RunCurves[], options: ChartsOptions): HTMLElement {
  const box = h('div', { class: 'charts' });
  const phases = phasesOf(runs[0], options.x);
  for (const [name, title, share] of CHARTS) {
    const lines = linesOf(runs, name, options.x, options.bands);
    if (lines.length > 0) box.append(chart(title, lines, phases, share, options));
  }
  for (const { info, curves } of runs.slice(0, 4)) {
    const keys = Object.keys(curves.series).filter((name) => name.startsWith('successByLabel/'));
    if (keys.length === 0) continue;
    const lines = keys.slice(0, 12).map((name, i): Line => {
      return {
        label: name.slice(15),
        color: colorOf(i),
        x: numbers(along(curves, options.x)),
        y: curves.series[name]!,
      };
    });
    box.append(chart(`Success by sub-task, ${info.name}`, lines, phasesOf({ info, curves }, options.x), true, options));
  }
  return box;
}

function chart(
  title: string,
  lines: readonly Line[],
  phases: readonly { readonly at: number; readonly turns: number }[],
  share: boolean,
  { x, smooth }: ChartsOptions,
): HTMLElement {
  const shown = lines.map((line) => ({ ...line, y: smoothed(line.y, smooth) }));
  const words = shown.map(({ label, y }) => `${label} ${numberText(y.findLast((value) => value !== null))}`);
  const plot = h('div', {
    role: 'img',
    aria: { 'aria-label': `${title} over ${X_NAMES[x]}; last: ${words.join(', ')}` },
  });
  const legend = h('ul', { class: 'legend' });
  for (const { label, color, y } of shown) {
    const last = numberText(y.findLast((value) => value !== null));
    legend.append(
      h(
        'li',
        {},
        h('span', { class: 'swatch', style: { background: color } }),
        `${visible(label)} `,
        h('strong', {}, last),
      ),
    );
  }
  const card = h('section', { class: 'card' }, h('h2', {}, title), plot, legend);
  whenPlaced(plot, () => draw(plot, shown, phases, share));
  return card;
}

/** Runs once the element is in the page: uPlot measures its parent. */
function whenPlaced(element: HTMLElement, then: () => void): void {
  requestAnimationFrame(() => {
    if (element.isConnected) then();
  });
}

function draw(
  parent: HTMLElement,
  lines: readonly Line[],
  phases: readonly { readonly at: number; readonly turns: number }[],
  share: boolean,
): void {
  const css = getComputedStyle(document.documentElement);
  const ink = css.getPropertyValue('--soft').trim();
  const grid = { stroke: css.getPropertyValue('--line').trim(), width: 1 };
  const tables = lines.flatMap(({ x, y, low, high }) => {
    return low && high ? [table(x, y), table(x, low), table(x, high)] : [table(x, y)];
  });
  const data = uPlot.join(tables as UPlot.AlignedData[]);
  const series: UPlot.Series[] = [{}];
  const bands: UPlot.Band[] = [];
  for (const { label, color, low } of lines) {
    series.push({ label, stroke: color, width: 1.6, spanGaps: true, points: { show: lines[0]!.x.length < 2 } });
    if (!low) continue;
    series.push({ stroke: color, width: 0.4, spanGaps: true, points: { show: false } });
    series.push({ stroke: color, width: 0.4, spanGaps: true, points: { show: false } });
    bands.push({ series: [series.length - 1, series.length - 2], fill: `${color}33` });
  }
  new uPlot(
    {
      width: Math.max(200, parent.clientWidth),
      height: 190,
      legend: { show: false },
      cursor: { y: false },
      scales: { x: { time: false }, y: share ? { range: [0, 1] } : {} },
      axes: [
        { stroke: ink, grid, ticks: grid, size: 32 },
        { stroke: ink, grid, ticks: grid, size: 52 },
      ],
      series,
      bands,
      hooks: { drawClear: [(plot) => drawPhases(plot, phases, ink)] },
    },
    data,
    parent,
  );
}

function table(x: readonly number[], y: readonly (number | null)[]): UPlot.AlignedData {
  return [[...x], [...y]] as UPlot.AlignedData;
}

/** Draws phases: every other one shaded, each with its turns. */
function drawPhases(
  plot: UPlot,
  phases: readonly { readonly at: number; readonly turns: number }[],
  ink: string,
): void {
  const { ctx, bbox, scales } = plot;
  const end = scales.x?.max ?? 0;
  ctx.save();
  phases.forEach(({ at, turns }, i) => {
    const from = Math.max(bbox.left, plot.valToPos(at, 'x', true));
    const to = Math.min(bbox.left + bbox.width, plot.valToPos(phases[i + 1]?.at ?? end, 'x', true));
    if (to <= from) return;
    ctx.fillStyle = ink;
    ctx.globalAlpha = i % 2 === 1 ? 0.12 : 0;
    ctx.fillRect(from, bbox.top, to - from, bbox.height);
    ctx.globalAlpha = 0.9;
    ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
    ctx.fillText(`h ${turns}`, from + 4, bbox.top + 12 * devicePixelRatio);
  });
  ctx.restore();
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
  const series = TIME_PARTS.map(([part]) => smoothed(curves.series[`time/${part}`] ?? [], options.smooth));
  const last = series.map((values) => values.findLast((value) => value !== null) ?? 0);
  const words = TIME_PARTS.map(([, name], i) => `${name} ${Math.round(100 * last[i]!)} %`).join(', ');
  const bar = h('div', { class: 'bar', role: 'img', aria: { 'aria-label': `last: ${words}` } });
  const legend = h('ul', { class: 'legend' });
  TIME_PARTS.forEach(([, name, color], i) => {
    bar.append(
      h('span', {
        title: `${name} ${Math.round(100 * last[i]!)} %`,
        style: { width: `${100 * last[i]!}%`, background: color },
      }),
    );
    legend.append(
      h(
        'li',
        {},
        h('span', { class: 'swatch', style: { background: color } }),
        `${name} `,
        h('strong', {}, `${Math.round(100 * last[i]!)} %`),
      ),
    );
  });
  const plot = h('div', {
    role: 'img',
    aria: { 'aria-label': `shares of the slots' time over ${X_NAMES[options.x]}` },
  });
  whenPlaced(plot, () => drawStacked(plot, numbers(along(curves, options.x)), series));
  return h('section', { class: 'card' }, h('h2', {}, visible(info.name)), bar, legend, plot);
}

function drawStacked(parent: HTMLElement, x: readonly number[], parts: readonly (readonly (number | null)[])[]): void {
  const css = getComputedStyle(document.documentElement);
  const ink = css.getPropertyValue('--soft').trim();
  const grid = { stroke: css.getPropertyValue('--line').trim(), width: 1 };
  const sums: (number | null)[][] = [];
  parts.forEach((values, i) => {
    sums.push(
      x.map((_, at) =>
        values[at] === null || values[at] === undefined ? null : (sums[i - 1]?.[at] ?? 0) + values[at]!,
      ),
    );
  });
  new uPlot(
    {
      width: Math.max(200, parent.clientWidth),
      height: 240,
      legend: { show: false },
      scales: { x: { time: false }, y: { range: [0, 1] } },
      axes: [
        { stroke: ink, grid, ticks: grid, size: 32 },
        { stroke: ink, grid, ticks: grid, size: 52 },
      ],
      series: [
        {},
        ...TIME_PARTS.map(([, label, color]) => ({
          label,
          stroke: color,
          fill: `${color}cc`,
          width: 1,
          points: { show: false },
        })),
      ],
      bands: sums.slice(1).map((_, i) => ({ series: [i + 2, i + 1] as [number, number] })),
    },
    [[...x], ...sums] as UPlot.AlignedData,
    parent,
  );
}
