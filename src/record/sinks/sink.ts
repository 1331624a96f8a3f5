/** A place that metrics go to. A new one is a few lines: take `points(row)` and write them somewhere. */
import type { MetricsRow } from '../metrics.ts';

export interface MetricSink {
  /** For messages, e.g. `tensorboard`. */
  readonly name: string;
  /** Takes one row. May throw: that is reported once, and the run goes on. */
  write(row: MetricsRow): void;
  /** Releases files and sockets; twice does no harm. */
  close(): void;
}
