/**
 * Progress of a run on the console: one status line that is rewritten on a terminal, plain `key=value` lines where
 * there is none, JSON lines where a program reads.
 */
import type { Writable } from 'node:stream';
import { auditTime, type Observable, type Subscription } from 'rxjs';
import type { MetricsRow } from '../record/metrics.ts';

export interface ConsoleOptions {
  readonly out: Writable & { readonly isTTY?: boolean; readonly columns?: number };
  readonly json: boolean;
}

/** Repaints per second on a terminal, and seconds between plain lines. */
const REPAINT_MS = 250;
const LINE_MS = 5000;

/** Shows metrics as they come. @returns ends it and leaves the cursor on a fresh line */
export function showProgress(metrics$: Observable<MetricsRow>, { out, json }: ConsoleOptions): { close(): void } {
  const live = out.isTTY === true && !json;
  // Whoever reads us may stop reading (`| head`); that is no reason to end the run.
  out.on('error', () => {});
  const history: number[] = [];
  const subscription: Subscription = metrics$.subscribe((row) => {
    if (row.success !== undefined) history.push(row.success);
  });
  subscription.add(
    metrics$.pipe(auditTime(live ? REPAINT_MS : LINE_MS)).subscribe((row) => {
      if (json) out.write(`${JSON.stringify(row)}\n`);
      else if (live) out.write(`\r\x1b[2K${statusLine(row, history).slice(0, (out.columns ?? 80) - 1)}`);
      else out.write(`${plainLine(row)}\n`);
    }),
  );
  return {
    close() {
      subscription.unsubscribe();
      if (live) out.write('\r\x1b[2K');
    },
  };
}

function statusLine(row: MetricsRow, history: readonly number[]): string {
  const left = row.remaining === undefined ? '' : ` · ${duration(row.remaining)} left`;
  return (
    [
      `update ${row.update}`,
      `horizon ${row.horizon}`,
      `success ${percent(mean(history.slice(-20)))} ${sparkline(smooth(history, 16))}`,
      `${Math.round(row.stepsPerSecond ?? 0)} steps/s`,
      `entropy ${(row.entropy ?? 0).toFixed(2)}`,
      `lag ${row.lagMax ?? 0}`,
    ].join(' · ') + left
  );
}

/** Metrics that a person follows a run by. */
const PLAIN = [
  'update',
  'horizon',
  'success',
  'truncated',
  'entropy',
  'klOld',
  'lagMax',
  'envSteps',
  'stepsPerSecond',
  'elapsed',
  'remaining',
] as const;

function plainLine(row: MetricsRow): string {
  return PLAIN.flatMap((name) => {
    const value = row[name];
    return value === undefined ? [] : [`${name}=${Number.isInteger(value) ? value : value.toPrecision(3)}`];
  }).join(' ');
}

/** Eight-step block sparkline of values in [0, 1]. */
export function sparkline(values: readonly number[]): string {
  return values.map((value) => '▁▂▃▄▅▆▇█'[Math.min(7, Math.max(0, Math.floor(value * 8)))]).join('');
}

/** Means of `parts` consecutive parts. */
function smooth(values: readonly number[], parts: number): number[] {
  const n = Math.min(parts, values.length);
  return Array.from({ length: n }, (_, i) =>
    mean(values.slice(Math.floor((i * values.length) / n), Math.floor(((i + 1) * values.length) / n))),
  );
}

/** `4:05` or `1:04:05`. */
export function duration(seconds: number): string {
  const s = Math.max(0, Math.round(seconds));
  const two = (n: number) => String(n).padStart(2, '0');
  const minutes = Math.floor(s / 60);
  return minutes < 60 ? `${minutes}:${two(s % 60)}` : `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${two(s % 60)}`;
}

function percent(value: number): string {
  return Number.isNaN(value) ? '–' : `${Math.round(100 * value)} %`;
}

function mean(values: readonly number[]): number {
  return values.length === 0 ? Number.NaN : values.reduce((sum, value) => sum + value, 0) / values.length;
}
