/** Sink: a place that metrics go to. A new one is a few lines: take `points(row)` and write them somewhere. */
import { messageOf } from '../../core/errors.ts';
import type { Trajectory } from '../../core/trajectory.ts';
import type { MetricsRow } from '../metric-table.ts';

/** Ending of a run: it did what its configuration asks for, was ended early, or broke. */
export type RunEnding = 'finished' | 'stopped' | 'failed';

/** Sink of metrics: takes every row of a run. */
export interface MetricSink {
  /** Name for messages, e.g. `tensorboard`. */
  readonly name: string;
  /** Writes one row. May throw: that is reported once, and the run goes on. */
  write(row: MetricsRow): void;
  /**
   * Writes the episodes of a finished group, where the sink takes some: those that the traces keep. May throw, like `write`.
   * @param purpose `train`, or the name of the evaluation
   */
  readonly episodes?: ((trajectories: readonly Trajectory[], purpose: string) => void) | undefined;
  /**
   * Closes files and sockets, behind the run's last row; closing twice does no harm. What waits is sent within a bound.
   * @param ending of the run; `finished` where absent
   */
  close(ending?: RunEnding): void | Promise<void>;
}

/** Closes the sinks of a run, all at once. One that cannot be closed is reported, and holds nothing up. */
export async function closeSinks(
  sinks: readonly MetricSink[],
  ending: RunEnding,
  onNotice: (line: string) => void,
): Promise<void> {
  await Promise.all(
    sinks.map(async (sink) => {
      try {
        await sink.close(ending);
      } catch (thrown) {
        onNotice(`cannot close ${sink.name}: ${messageOf(thrown)}`);
      }
    }),
  );
}
