/** Plots by uPlot: axes whose labels fit, raw lines behind smoothed ones, marks of evaluations, phases in a strip above. */

import type UPlot from 'uplot';
import { largestOf, smallestOf } from '../../core/extremes.ts';

/** Global of uPlot, whose script comes before ours in the page. */
declare const uPlot: typeof UPlot;

/** Line of a chart. */
export interface Line {
  readonly label: string;
  readonly color: string;
  readonly x: readonly number[];
  readonly y: readonly (number | null)[];
  /** Lower edge of a band over seeds. */
  readonly low?: readonly (number | null)[];
  readonly high?: readonly (number | null)[];
  /** Values before smoothing, drawn thin behind the line. */
  readonly raw?: readonly (number | null)[] | undefined;
}

/** Marks of one evaluation over training: points with their intervals. */
export interface Marks {
  readonly label: string;
  readonly color: string;
  /** True for rings in place of dots: random play, which the others are compared with. */
  readonly hollow: boolean;
  /** In order of x. */
  readonly points: readonly {
    readonly x: number;
    readonly y: number;
    readonly low?: number | undefined;
    readonly high?: number | undefined;
  }[];
}

/** Phases of the horizon of one run, or of all that have the same. */
export interface PhasePlan {
  /** Colour of the run whose phases they are; absent where all runs have the same. */
  readonly color: string | undefined;
  /** x of each phase's start, and its turns. */
  readonly phases: readonly { readonly at: number; readonly turns: number }[];
}

/** Settings of a plot besides its lines. */
export interface PlotSettings {
  readonly marks: readonly Marks[];
  readonly plans: readonly PhasePlan[];
  /** True for shares: y runs from 0 to 1. */
  readonly share: boolean;
}

/** CSS pixels of a plot's height, of one row of phases above it, and of what is left free on the right for half a label. */
export const PLOT_HEIGHT = 190;
export const STRIP = 16;
const RIGHT = 26;

const FONT = '12px system-ui, sans-serif';
const STRIP_FONT = '11px system-ui, sans-serif';

/** Colours of the page's theme. */
function themeColors(): { readonly ink: string; readonly line: string; readonly panel: string } {
  const css = getComputedStyle(document.documentElement);
  const color = (name: string) => css.getPropertyValue(name).trim();
  return { ink: color('--soft'), line: color('--line'), panel: color('--panel') };
}

/**
 * Texts of an axis: thousands as k, millions as M, and as many digits as keep them apart.
 * @param splits places on the axis; null where it shows none
 */
export function axisTexts(splits: readonly (number | null)[]): string[] {
  const values = splits.filter((value) => value !== null);
  const most = largestOf(values.map(Math.abs), 0);
  const [unit, suffix] = most >= 1e9 ? [1e9, 'G'] : most >= 1e6 ? [1e6, 'M'] : most >= 1e4 ? [1e3, 'k'] : [1, ''];
  const steps = values.slice(1).map((value, i) => Math.abs(value - values[i]!));
  const exact =
    (smallestOf(
      steps.filter((step) => step > 0),
      most || 1,
    ) /
      unit) *
    1e-3;
  let digits = 0;
  while (digits < 7 && values.some((v) => Math.abs(Number((v / unit).toFixed(digits)) - v / unit) > exact)) digits++;
  return splits.map((value) => {
    if (value === null) return '';
    if (value === 0) return '0';
    return digits === 7 ? value.toExponential(1) : `${(value / unit).toFixed(digits)}${suffix}`;
  });
}

/** Axes whose labels have the room they need. */
function axesOf(ink: string, line: string): UPlot.Axis[] {
  const grid = { stroke: line, width: 1 };
  const both = { stroke: ink, grid, ticks: { ...grid, size: 5 }, font: FONT };
  const values = (_: UPlot, splits: number[]) => axisTexts(splits);
  const widest = (plot: UPlot, texts: string[] | null): number => {
    plot.ctx.save();
    plot.ctx.font = FONT;
    const width = largestOf(
      (texts ?? []).map((text) => plot.ctx.measureText(text).width),
      0,
    );
    plot.ctx.restore();
    return Math.ceil(width) + 14; // tick and gap
  };
  return [
    { ...both, values, size: 30, space: 60 },
    { ...both, values, size: widest },
  ];
}

/** Draws lines with their bands, raw values and marks. @param parent an element in the page, whose width is taken */
export function drawLines(parent: HTMLElement, lines: readonly Line[], { marks, plans, share }: PlotSettings): void {
  const { ink, line: gridColor, panel } = themeColors();
  const tables: UPlot.AlignedData[] = [];
  const series: UPlot.Series[] = [{}];
  const bands: UPlot.Band[] = [];
  const add = (x: readonly number[], y: readonly (number | null)[], one: UPlot.Series): void => {
    tables.push([[...x], [...y]] as UPlot.AlignedData);
    series.push({ spanGaps: true, points: { show: false }, ...one });
  };
  // What comes first lies behind.
  for (const { x, raw, color } of lines) if (raw) add(x, raw, { stroke: `${color}66`, width: 1 });
  for (const { x, y, low, high, color, label } of lines) {
    if (low && high) {
      add(x, low, { stroke: color, width: 0.4 });
      add(x, high, { stroke: color, width: 0.4 });
      bands.push({ series: [series.length - 1, series.length - 2], fill: `${color}33` });
    }
    add(x, y, { label, stroke: color, width: raw(lines) ? 2 : 1.6, points: { show: x.length < 2 } });
  }
  for (const { label, color, hollow, points } of marks) {
    const x = points.map((point) => point.x);
    const y = points.map((point) => point.y);
    const [stroke, fill] = hollow ? [color, panel] : [panel, color];
    add(x, y, { label, stroke, paths: () => null, points: { show: true, size: 9, width: 1.5, stroke, fill } });
  }
  new uPlot(
    {
      width: Math.max(200, parent.clientWidth),
      height: PLOT_HEIGHT + STRIP * plans.length,
      padding: [8 + STRIP * plans.length, RIGHT, 0, 0],
      legend: { show: false },
      cursor: { y: false },
      scales: { x: { time: false }, y: share ? { range: [0, 1] } : {} },
      axes: axesOf(ink, gridColor),
      series,
      bands,
      hooks: {
        drawClear: [(plot) => drawPhases(plot, plans, ink)],
        draw: [(plot) => drawIntervals(plot, marks)],
      },
    },
    uPlot.join(tables),
    parent,
  );
}

function raw(lines: readonly Line[]): boolean {
  return lines.some((line) => line.raw);
}

/** Draws the interval of each mark as a vertical line through it. */
function drawIntervals(plot: UPlot, marks: readonly Marks[]): void {
  const { ctx } = plot;
  ctx.save();
  ctx.lineWidth = 1.5 * devicePixelRatio;
  for (const { color, points } of marks) {
    ctx.strokeStyle = color;
    for (const { x, low, high } of points) {
      if (low === undefined || high === undefined) continue;
      const at = plot.valToPos(x, 'x', true);
      ctx.beginPath();
      ctx.moveTo(at, plot.valToPos(low, 'y', true));
      ctx.lineTo(at, plot.valToPos(high, 'y', true));
      ctx.stroke();
    }
  }
  ctx.restore();
}

/**
 * Draws phases: a row of blocks above the plot for each plan, each block with its turns, clear of the grid. With one plan
 * every other phase is shaded in the plot too; with several, each change is a dashed line in the run's colour.
 */
function drawPhases(plot: UPlot, plans: readonly PhasePlan[], ink: string): void {
  const { ctx, bbox } = plot;
  const row = STRIP * devicePixelRatio;
  const end = plot.scales.x?.max ?? 0;
  const right = bbox.left + bbox.width;
  ctx.save();
  ctx.font = STRIP_FONT.replace('11', String(11 * devicePixelRatio));
  ctx.textBaseline = 'middle';
  plans.forEach(({ color = ink, phases }, p) => {
    const top = bbox.top - row * (plans.length - p) - 2 * devicePixelRatio;
    phases.forEach(({ at, turns }, i) => {
      const from = Math.max(bbox.left, plot.valToPos(at, 'x', true));
      const to = Math.min(right, plot.valToPos(phases[i + 1]?.at ?? end, 'x', true));
      if (to <= from) return;
      ctx.fillStyle = color;
      ctx.globalAlpha = i % 2 === 0 ? 0.16 : 0.32;
      ctx.fillRect(from, top, to - from, row - 2 * devicePixelRatio);
      if (plans.length === 1 && i % 2 === 1) {
        ctx.globalAlpha = 0.1;
        ctx.fillRect(from, bbox.top, to - from, bbox.height);
      }
      ctx.globalAlpha = 1;
      if (plans.length > 1 && i > 0) drawDashed(ctx, color, from, bbox);
      const room = to - from - 6 * devicePixelRatio;
      const text = [`h ${turns}`, String(turns)].find((one) => ctx.measureText(one).width <= room);
      ctx.fillStyle = ink;
      if (text) ctx.fillText(text, from + 3 * devicePixelRatio, top + row / 2 - devicePixelRatio);
    });
  });
  ctx.restore();
}

function drawDashed(ctx: CanvasRenderingContext2D, color: string, x: number, { top, height }: UPlot.BBox): void {
  ctx.save();
  ctx.globalAlpha = 0.7;
  ctx.strokeStyle = color;
  ctx.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
  ctx.beginPath();
  ctx.moveTo(x, top);
  ctx.lineTo(x, top + height);
  ctx.stroke();
  ctx.restore();
}

/** Part of a stacked plot, from the bottom up. */
export interface StackedPart {
  readonly label: string;
  readonly color: string;
  readonly values: readonly (number | null)[];
}

/** Draws shares stacked on each other. */
export function drawStacked(parent: HTMLElement, x: readonly number[], parts: readonly StackedPart[]): void {
  const { ink, line } = themeColors();
  const sums: (number | null)[][] = [];
  parts.forEach(({ values }, i) => {
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
      padding: [8, RIGHT, 0, 0],
      legend: { show: false },
      scales: { x: { time: false }, y: { range: [0, 1] } },
      axes: axesOf(ink, line),
      series: [
        {},
        ...parts.map(({ label, color }) => ({
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
