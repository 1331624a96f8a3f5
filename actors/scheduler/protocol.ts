/**
 * Messages of the scheduler, which decides what is played and counts what became of it: horizon, admission, tasks,
 * evaluations, the end of training, checkpoints.
 */
import type { Accounting, Failure } from '../../src/core/failure.ts';
import type { Task } from '../../src/core/task.ts';
import type { Group, Trajectory } from '../../src/core/trajectory.ts';
import type { RolloutTotals, RunStatus } from '../../src/record/run-status.ts';
import type { ReplyTo } from '../../src/runtime/actor.ts';
import type { HorizonState } from '../../src/schedule/horizon-schedule.ts';
import type { TaskSamplerState } from '../../src/schedule/task-sampler.ts';
import type { SaveReport, UpdateReport } from '../learner/protocol.ts';
import type { RolloutState, SavedGroup } from '../rollout/protocol.ts';

export type SchedulerCommand =
  | Train
  | Halt
  | Evaluate
  | Status
  | Updated
  | Dropped
  | Snapshot
  | Saved
  | Played
  | Progressed
  | Captured;

/** Starts training. Answered once the run's stop condition holds. */
export interface Train {
  readonly type: 'train';
  readonly replyTo: ReplyTo<TrainEnded>;
}

/** Ends training early: answers the pending `train`. */
export interface Halt {
  readonly type: 'halt';
}

export interface TrainEnded {
  readonly why: 'updates' | 'minutes' | 'envSteps' | 'halted';
  readonly status: RunStatus;
}

/** Plays episodes of given tasks; they are recorded, never trained on. */
export interface Evaluate {
  readonly type: 'evaluate';
  readonly plan: EvaluationPlan;
  readonly replyTo: ReplyTo<EvaluationRecord>;
}

export interface EvaluationPlan {
  /** Names the evaluation in traces, e.g. `test h24 sampled`. */
  readonly name: string;
  readonly tasks: readonly Task[];
  /** Episodes of each task, ≥ 1. */
  readonly episodes: number;
  readonly horizon: number;
  /** 0 is greedy. */
  readonly temperature: number;
  readonly seed: number;
}

/** Per task, per finished episode. */
export interface EvaluationRecord {
  readonly plan: EvaluationPlan;
  readonly results: readonly TaskResult[];
  /** Episodes that failed for good; they count nowhere. */
  readonly failed: number;
}

export interface TaskResult {
  readonly task: Task;
  readonly successes: readonly boolean[];
  readonly returns: readonly number[];
  readonly turns: readonly number[];
}

/** Asks how far the run is. */
export interface Status {
  readonly type: 'status';
  readonly replyTo: ReplyTo<RunStatus>;
}

/** Told by the learner: it made an update. */
export interface Updated {
  readonly type: 'updated';
  readonly report: UpdateReport;
}

/** Told by the learner: groups came too late to be trained on; no update was made. */
export interface Dropped {
  readonly type: 'dropped';
  readonly stale: readonly number[];
}

/** Asks for everything of the run that a checkpoint keeps besides weights and optimiser. */
export interface Snapshot {
  readonly type: 'snapshot';
  readonly replyTo: ReplyTo<SchedulerSnapshot>;
}

export interface SchedulerSnapshot {
  readonly run: SchedulerState;
  readonly horizon: HorizonState;
}

/** Told by the learner: what became of the checkpoint that a snapshot was for. */
export interface Saved {
  readonly type: 'saved';
  readonly report: SaveReport;
}

/** Told by the rollouts whenever episodes ended: what became of them, and how far the rollouts are. */
export interface Played {
  readonly type: 'played';
  /** Finished groups, in the order in which they finished. */
  readonly groups: readonly PlayedGroup[];
  /** Groups given up: an episode failed too often. */
  readonly gaveUp: readonly GaveUp[];
  /** Attempts that failed and were made again. */
  readonly failed: readonly FailedAttempt[];
  readonly totals: RolloutTotals;
}

export interface PlayedGroup {
  readonly group: number;
  /** By member. */
  readonly trajectories: readonly Trajectory[];
  /** Steps of training episodes when it finished. */
  readonly envSteps: number;
}

export interface GaveUp {
  readonly group: number;
  /** The failure that the last attempt died of. */
  readonly failure: Failure;
  readonly attempts: number;
}

export interface FailedAttempt {
  readonly group: number;
  readonly failure: Failure;
}

/** Told by the rollouts between two `played`, at most every 250 ms; never in serial mode, where it would be a timer. */
export interface Progressed {
  readonly type: 'progressed';
  readonly totals: RolloutTotals;
}

/** Told by the rollouts: their state, after a `capture`. */
export interface Captured {
  readonly type: 'captured';
  readonly id: number;
  readonly state: RolloutState;
}

/** State of a run that a checkpoint keeps, besides weights, optimiser and horizon. Plain JSON. */
export interface SchedulerState {
  readonly format: 2;
  readonly sampler: TaskSamplerState;
  readonly nextGroup: number;
  readonly nextEpisode: number;
  readonly envSteps: number;
  readonly episodes: number;
  /** Milliseconds of training so far. */
  readonly elapsedMs: number;
  readonly accounting: Accounting;
  /** Groups with episodes running, in launch order. */
  readonly running: readonly SavedGroup[];
  /** Finished groups that no update has consumed, in the order in which they were handed over. */
  readonly delivered: readonly SavedDelivery[];
  /** Task indices that kept failing. */
  readonly quarantined: readonly number[];
}

export interface SavedDelivery {
  readonly group: Group;
  /** Share of the run that was done when it finished, in [0, 1]. */
  readonly progress: number;
}
