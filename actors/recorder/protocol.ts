/** Messages of the recorder, which owns the run's files. */
import type { MetricsRow } from '../../src/record/metrics.ts';
import type { ReplyTo } from '../../src/runtime/actor.ts';
import type { EpisodesRecorded } from '../rollout/protocol.ts';

export type RecorderCommand = EpisodesRecorded | MetricsRecorded | Flush;

/** One row of metrics. */
export interface MetricsRecorded {
  readonly type: 'metrics';
  readonly row: MetricsRow;
}

/** Answered when everything told before is on disk. */
export interface Flush {
  readonly type: 'flush';
  readonly replyTo: ReplyTo<null>;
}
