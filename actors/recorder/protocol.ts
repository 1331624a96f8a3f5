/** Messages of the recorder, which owns the run's files. */
import type { Failure } from '../../src/core/failure.ts';
import type { Task } from '../../src/core/task.ts';
import type { MetricsRow } from '../../src/record/metrics.ts';
import type { Credit } from '../../src/record/trace.ts';
import type { ReplyTo } from '../../src/runtime/actor.ts';
import type { EpisodesRecorded } from '../rollout/protocol.ts';

export type RecorderCommand = EpisodesRecorded | CreditRecorded | MetricsRecorded | TaskQuarantined | Flush;

/** What an update credited the decisions of its groups with. */
export interface CreditRecorded {
  readonly type: 'credit';
  /** Policy version after the update. */
  readonly update: number;
  readonly groups: readonly Credit[];
}

/** One row of metrics. */
export interface MetricsRecorded {
  readonly type: 'metrics';
  readonly row: MetricsRow;
}

/** A task that kept failing: it is not drawn again in this run. */
export interface TaskQuarantined {
  readonly type: 'quarantined';
  readonly task: Task;
  /** What its last attempt died of. */
  readonly failure: Failure;
  readonly attempts: number;
}

/** Answered when everything told before is on disk. */
export interface Flush {
  readonly type: 'flush';
  readonly replyTo: ReplyTo<null>;
}
