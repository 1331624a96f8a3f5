/** Sink: a place that metrics go to. A new one is a few lines: take `points(row)` and write them somewhere. */
import type { MetricsRow } from '../metric-table.ts';

/** Sink of metrics: takes every row of a run. */
export interface MetricSink {
  /** Name for messages, e.g. `tensorboard`. */
  readonly name: string;
  /** Writes one row. May throw: that is reported once, and the run goes on. */
  write(row: MetricsRow): void;
  /** Closes files and sockets; closing twice does no harm. */
  close(): void;
}
