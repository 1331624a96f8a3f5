/** Numbers as a person reads them in a narrow column. Pure. */
import { largestOf } from '../core/extremes.ts';

/** Value between two bounds. */
interface Interval {
  readonly value: number;
  readonly low: number;
  readonly high: number;
}

/** Duration as `4:05` or `1:04:05`. */
export function duration(seconds: number): string {
  const s = Math.max(0, Math.round(seconds));
  const two = (n: number) => String(n).padStart(2, '0');
  const minutes = Math.floor(s / 60);
  return minutes < 60 ? `${minutes}:${two(s % 60)}` : `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(s % 60)}`;
}

/** Percentage as `62 %`; a dash where it is not known. */
export function percent(value: number | undefined): string {
  return value === undefined || Number.isNaN(value) ? '–' : `${Math.round(100 * value)} %`;
}

/**
 * Compact number, of three significant digits or whole with separators: `0.00725`, `1.66`, `1,204`, `24.1k`, `3.2M`.
 */
export function compact(value: number | undefined): string {
  if (value === undefined || Number.isNaN(value)) return '–';
  const size = Math.abs(value);
  if (size >= 1e6) return `${(value / 1e6).toPrecision(3)}M`;
  if (size >= 1e4) return `${(value / 1e3).toPrecision(3)}k`;
  if (Number.isInteger(value)) return whole(value);
  if (size >= 1000) return whole(Math.round(value));
  if (size > 0 && size < 0.001) return value.toExponential(1);
  return value.toPrecision(3);
}

/** Whole number as `12,345`. */
export function whole(value: number): string {
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** Estimate with its interval, as `1.2 [0.9, 1.5]`; alone where the interval has no bounds. */
export function estimate({ value, low, high }: Interval): string {
  const isBounded = Number.isFinite(low) && Number.isFinite(high);
  return `${compact(value)}${isBounded ? ` [${compact(low)}, ${compact(high)}]` : ''}`;
}

/** Share and its interval as a bar from 0 to 1, under `shareScale`. @param width characters */
export function shareBar({ value, low, high }: Interval, width: number): string {
  const at = (share: number) => Math.round(Math.min(1, Math.max(0, share)) * (width - 1));
  return Array.from({ length: width }, (_, i) => {
    if (i === at(value)) return '●';
    if (i === at(low)) return '├';
    if (i === at(high)) return '┤';
    return i > at(low) && i < at(high) ? '─' : '·';
  }).join('');
}

/** Scale of bars: `0 %` at their beginning, `100 %` at their end. */
export function shareScale(width: number): string {
  return `0 %${'100 %'.padStart(width - 3)}`;
}

export function mean(values: readonly number[]): number {
  return values.length === 0 ? Number.NaN : values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Smooths by means of consecutive parts: at most `parts` of them, in order. */
export function smooth(values: readonly number[], parts: number): number[] {
  const n = Math.min(parts, values.length);
  return Array.from({ length: n }, (_, i) =>
    mean(values.slice(Math.floor((i * values.length) / n), Math.floor(((i + 1) * values.length) / n))),
  );
}

/** Sparkline of eight-step blocks; from 0 to `top`, or to the largest value. */
export function sparkline(values: readonly number[], top = largestOf(values, 1e-12)): string {
  return values.map((value) => '▁▂▃▄▅▆▇█'[Math.min(7, Math.max(0, Math.floor((value / top) * 8)))] ?? ' ').join('');
}
