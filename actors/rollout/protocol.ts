/**
 * Messages of the rollout actor, which owns every running episode: it opens them on the env hosts, sends their turns
 * to the batcher, applies the horizon, and hands finished groups to the learner.
 */
import type { Accounting } from '../../src/core/failure.ts';
import type { Task } from '../../src/core/task.ts';
import type { Group, Trajectory, Turn } from '../../src/core/trajectory.ts';
import type { SlotTime } from '../../src/record/slot-time.ts';
import type { ReplyTo } from '../../src/runtime/actor.ts';
import type { TaskSamplerState } from '../../src/schedule/task-sampler.ts';
import type { EnvEvent } from '../env/protocol.ts';
import type { ActedEvent } from '../inference/protocol.ts';
import type { SaveReport, UpdateReport } from '../learner/protocol.ts';

export type RolloutCommand =
  | Train
  | Halt
  | Evaluate
  | Snapshot
  | Saved
  | Status
  | Advance
  | Dropped
  | ActedEvent
  | EnvObserved;

/** Starts launching training groups. Answered once the run's stop condition holds. */
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
  readonly status: RolloutStatus;
}

/** Runs episodes of given tasks; they are recorded, never trained on. */
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

/** Everything of the rollouts that a checkpoint keeps. */
export interface Snapshot {
  readonly type: 'snapshot';
  readonly replyTo: ReplyTo<RolloutState>;
}

/** What became of the checkpoint that a snapshot was for. */
export interface Saved {
  readonly type: 'saved';
  readonly report: SaveReport;
}

/** Plain JSON. */
export interface RolloutState {
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

/** A group of which not all episodes are finished. */
export interface SavedGroup {
  readonly group: number;
  readonly task: Task;
  readonly horizon: number;
  readonly finished: readonly { readonly member: number; readonly trajectory: Trajectory }[];
  readonly running: readonly SavedEpisode[];
}

/** An episode in flight: its finished turns hold actions, sampled ids and versions; the env is brought back by them. */
export interface SavedEpisode {
  readonly episode: number;
  readonly member: number;
  readonly attempt: number;
  readonly turns: readonly Turn[];
}

export interface SavedDelivery {
  readonly group: Group;
  readonly progress: number;
}

export interface Status {
  readonly type: 'status';
  readonly replyTo: ReplyTo<RolloutStatus>;
}

export interface RolloutStatus {
  readonly version: number;
  readonly horizon: number;
  readonly envSteps: number;
  readonly episodes: number;
  readonly elapsedMs: number;
  /** Share of the run that is done, in [0, 1]. */
  readonly progress: number;
  readonly runningEpisodes: number;
  readonly accounting: Accounting;
  /** Tokens the policy has computed, padding left out. */
  readonly tokens: number;
  /** Engine calls that finished turns, and the turns they finished. */
  readonly calls: number;
  readonly decidedTurns: number;
  readonly time: SlotTime;
}

/** An update was made, and the horizon for new episodes is now `horizon`. Sent by the horizon scheduler. */
export interface Advance {
  readonly type: 'advance';
  readonly report: UpdateReport;
  readonly horizon: number;
}

/** Groups that came too late to be trained on; no update was made. */
export interface Dropped {
  readonly type: 'dropped';
  readonly stale: readonly number[];
}

/** What the env hosts emitted in one tick. */
export interface EnvObserved {
  readonly type: 'observed';
  readonly events: readonly EnvEvent[];
}

/** Told to the learner. */
export interface GroupFinished {
  readonly type: 'group';
  readonly group: Group;
  /** Share of the run that is done, in [0, 1]. */
  readonly progress: number;
  /** Counts the barriers (serial checkpoints) before it: everything is handed over again after one. */
  readonly era: number;
}

/** Told to the recorder. */
export interface EpisodesRecorded {
  readonly type: 'episodes';
  readonly trajectories: readonly Trajectory[];
  /** `train`, or the name of the evaluation. */
  readonly purpose: string;
}
