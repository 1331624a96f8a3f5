/** Messages of the recorder, which owns the run's files. */
import type { Failure } from '../../src/core/failure.ts';
import type { Task } from '../../src/core/task.ts';
import type { Trajectory } from '../../src/core/trajectory.ts';
import type { ConsumedFacts } from '../../src/metrics/group-facts.ts';
import type { MetricsRow } from '../../src/metrics/metric-table.ts';
import type { RunStatus } from '../../src/metrics/run-status.ts';
import type { ReplyTo } from '../../src/runtime/actor.ts';
import type { SaveReport, UpdateReport } from '../learner/protocol.ts';
import type { EvaluationRecord } from '../scheduler/protocol.ts';

export type RecorderCommand =
  | EpisodesRecorded
  | UpdateRecorded
  | MetricsRecorded
  | EvaluationRecorded
  | CheckpointRecorded
  | FailureRecorded
  | TaskQuarantined
  | ProgressRecorded
  | Noticed
  | Flush;

/** Episodes of a finished group. */
export interface EpisodesRecorded {
  readonly type: 'episodes';
  readonly trajectories: readonly Trajectory[];
  /** `train`, or the name of the evaluation. */
  readonly purpose: string;
}

/** Update that was made: a row of metrics, and advantages for the traces. */
export interface UpdateRecorded {
  readonly type: 'updated';
  readonly report: UpdateReport;
  readonly status: RunStatus;
  readonly consumed: ConsumedFacts;
}

/** Evaluation made while training went on, begun at `version`. */
export interface EvaluationRecorded {
  readonly type: 'evaluated';
  readonly version: number;
  readonly record: EvaluationRecord;
}

/** Checkpoint that was written, or could not be. */
export interface CheckpointRecorded {
  readonly type: 'saved';
  readonly report: SaveReport;
}

/** Failure of an episode. */
export interface FailureRecorded {
  readonly type: 'failed';
  readonly task: Task;
  readonly failure: Failure;
}

/** Progress, sent a few times a second while episodes are played. */
export interface ProgressRecorded {
  readonly type: 'progressed';
  readonly status: RunStatus;
}

/** Metrics, one row of them. */
export interface MetricsRecorded {
  readonly type: 'metrics';
  readonly row: MetricsRow;
}

/** Task that kept failing: it is not drawn again in this run. */
export interface TaskQuarantined {
  readonly type: 'quarantined';
  readonly task: Task;
  /** Failure of its last attempt. */
  readonly failure: Failure;
  readonly attempts: number;
}

/** Notice for a person, one line. */
export interface Noticed {
  readonly type: 'noticed';
  readonly text: string;
}

/** Flush request, answered when everything sent before is on disk. */
export interface Flush {
  readonly type: 'flush';
  readonly replyTo: ReplyTo<null>;
}
