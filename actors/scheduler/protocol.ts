/**
 * Messages of the scheduler, which decides what is played and keeps the accounts: horizon, admission, tasks,
 * evaluations, the end of training, checkpoints.
 */
import type { EpisodeReport } from '../../src/core/agent-call.ts';
import type { Accounting, Failure } from '../../src/core/failure.ts';
import type { TokenSampling } from '../../src/core/model-call.ts';
import type { Task } from '../../src/core/task.ts';
import type { EpisodeBeginning, FailedAttempt, GaveUp, GroupTicket, PlayedGroup } from '../../src/core/ticket.ts';
import type { Group } from '../../src/core/trajectory.ts';
import type { HorizonState } from '../../src/learning/schedule/horizon-schedule.ts';
import type { TaskSamplerState } from '../../src/learning/schedule/task-sampler.ts';
import type { WorldSamplerState } from '../../src/learning/schedule/world-sampler.ts';
import type { RolloutTotals, RunStatus } from '../../src/metrics/run-status.ts';
import type { ReplyTo } from '../../src/runtime/actor.ts';
import type { SaveReport, UpdateReport } from '../learner/protocol.ts';
import type { RolloutState, SavedGroup } from '../rollout/protocol.ts';

export type { FailedAttempt, GaveUp, PlayedGroup } from '../../src/core/ticket.ts';

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

/** End of training: the reason, and where the run stood. */
export interface TrainEnded {
  readonly why: 'updates' | 'minutes' | 'envSteps' | 'halted';
  readonly status: RunStatus;
}

/** Evaluates: plays episodes of given tasks; they are recorded, never trained on. */
export interface Evaluate {
  readonly type: 'evaluate';
  readonly plan: EvaluationPlan;
  readonly replyTo: ReplyTo<EvaluationRecord>;
}

/** Plan of an evaluation: which tasks are played, how often, and how. */
export interface EvaluationPlan {
  /** Name of the evaluation in traces, e.g. `test h24 sampled`. */
  readonly name: string;
  /** Tasks; one that is listed several times is played in as many groups. */
  readonly tasks: readonly Task[];
  /** Episodes of each group, ≥ 1. */
  readonly episodes: number;
  readonly horizon: number;
  /** Temperature; 0 is greedy. */
  readonly temperature: number;
  /** Settings of a language model's sampling; absent: the whole distribution. */
  readonly sampling?: TokenSampling | undefined;
  /** Texts that end an answer; they are not part of it. */
  readonly stop?: readonly string[] | undefined;
  readonly seed: number;
  /** Beginning that all its episodes share, of the one task that it then has. */
  readonly beginning?: EpisodeBeginning | undefined;
}

/** Record of an evaluation, per task and finished episode. */
export interface EvaluationRecord {
  readonly plan: EvaluationPlan;
  readonly results: readonly TaskResult[];
  /** Episodes that failed for good; they count in no average. */
  readonly failed: number;
  /** Failure of the last of them. */
  readonly failure: Failure | undefined;
}

export interface TaskResult {
  readonly task: Task;
  /** Episodes that were to be played. */
  readonly asked: number;
  readonly successes: readonly boolean[];
  readonly returns: readonly number[];
  readonly turns: readonly number[];
  /** Reports of the episodes: what agents and worlds of tools measured. */
  readonly reports: readonly EpisodeReport[];
}

/** Asks for the status of the run. */
export interface Status {
  readonly type: 'status';
  readonly replyTo: ReplyTo<RunStatus>;
}

/** Update that the learner made. */
export interface Updated {
  readonly type: 'updated';
  readonly report: UpdateReport;
}

/** Groups that the learner dropped as too old to be trained on; no update was made. */
export interface Dropped {
  readonly type: 'dropped';
  readonly stale: readonly number[];
}

/** Asks for the state of the run that a checkpoint keeps besides weights and optimiser. */
export interface Snapshot {
  readonly type: 'snapshot';
  readonly replyTo: ReplyTo<SchedulerSnapshot>;
}

export interface SchedulerSnapshot {
  readonly run: SchedulerState;
  readonly horizon: HorizonState;
}

/** Result of the checkpoint that a snapshot was for, from the learner. */
export interface Saved {
  readonly type: 'saved';
  readonly report: SaveReport;
}

/** Report of the rollouts whenever episodes ended: their outcomes, and the totals. */
export interface Played {
  readonly type: 'played';
  /** Finished groups, in the order in which they finished. */
  readonly groups: readonly PlayedGroup[];
  /** Groups given up: an episode failed too often. */
  readonly gaveUp: readonly GaveUp[];
  /** Failed attempts that were made again. */
  readonly failed: readonly FailedAttempt[];
  readonly totals: RolloutTotals;
}

/**
 * Progress of the rollouts between two `played`, at most every 250 ms; never in serial mode, where it would be a timer.
 */
export interface Progressed {
  readonly type: 'progressed';
  readonly totals: RolloutTotals;
}

/** State of the rollouts, in answer to a `capture`. */
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
  /** Training groups of which nothing has been played: the tickets are all there is of them. Absent where there are none. */
  readonly tickets?: readonly GroupTicket[];
  /** Position in the run's journal: entries up to it are in this state. Absent in a run without a journal. */
  readonly journal?: number;
  /** Finished groups that no update has consumed, in the order in which they were handed over. */
  readonly delivered: readonly SavedDelivery[];
  /** Task indices that kept failing. */
  readonly quarantined: readonly number[];
  /** Rest of a run of several worlds: `sampler`, `quarantined` and the checkpoint's `horizon` are of the first. */
  readonly mixture?: SavedMixture;
}

/** State of the worlds beside the first. */
export interface SavedMixture {
  readonly draw: WorldSamplerState;
  /** The other worlds, in the configuration's order. */
  readonly others: readonly {
    readonly horizon: HorizonState;
    readonly sampler: TaskSamplerState;
    readonly quarantined: readonly number[];
  }[];
}

export interface SavedDelivery {
  readonly group: Group;
  /** Share of the run that was done when it finished, in [0, 1]. */
  readonly progress: number;
}
