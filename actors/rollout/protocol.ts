/**
 * Messages of the rollout actor, which plays the groups it receives. It opens their episodes on the env hosts, sends
 * their turns to the policy, applies the horizon, and reports their outcomes to the scheduler.
 */
import type { RunConfig } from '../../src/config/run-config.ts';
import type { Task } from '../../src/core/task.ts';
import type { GroupTicket } from '../../src/core/ticket.ts';
import type { Trajectory, Turn } from '../../src/core/trajectory.ts';
import type { RolloutTotals } from '../../src/metrics/run-status.ts';
import type { EnvEvent } from '../env/protocol.ts';
import type { ActedEvent } from '../inference/protocol.ts';
import type { RetryLimits } from './retry.ts';

export type { GroupTicket, Purpose } from '../../src/core/ticket.ts';

export type RolloutCommand = Play | Abandon | Restore | Pause | Resume | Capture | ActedEvent | EnvObserved | Truncated;

/** Starts groups. Each is reported once, in a later `played`. */
export interface Play {
  readonly type: 'play';
  readonly groups: readonly GroupTicket[];
}

/** Abandons groups that are no longer wanted; they are not reported. */
export interface Abandon {
  readonly type: 'abandon';
  readonly groups: readonly number[];
}

/** Restores the groups of a checkpoint, paused: their episodes are brought back to their last turn and wait there. */
export interface Restore {
  readonly type: 'restore';
  readonly groups: readonly { readonly ticket: GroupTicket; readonly saved: SavedGroup }[];
}

/** Pauses training groups: they ask for no more decisions. */
export interface Pause {
  readonly type: 'pause';
  /**
   * True at the end of training. In asynchronous mode its episodes then stay exactly as they are and later answers are
   * ignored; in serial mode they come to rest.
   */
  readonly ended: boolean;
}

/** Resumes: clears the policy's cache and asks for every decision that a pause held back. */
export interface Resume {
  readonly type: 'resume';
}

/** Asks for the state of all training groups; answered by `captured`. */
export interface Capture {
  readonly type: 'capture';
  /** Id that the answer repeats; of several captures that wait, only the last is answered. */
  readonly id: number;
  /** True to wait until every episode awaits a decision that has not been asked for. */
  readonly atRest: boolean;
}

/** State of the rollouts, for a checkpoint. Plain JSON. */
export interface RolloutState {
  /** Training groups, in launch order. */
  readonly running: readonly SavedGroup[];
  readonly nextEpisode: number;
  /** Training groups that other machines play; absent where there are none. */
  readonly elsewhere?: readonly number[];
  readonly totals: RolloutTotals;
}

/** Group that is not finished, as a checkpoint keeps it. */
export interface SavedGroup {
  readonly group: number;
  readonly task: Task;
  readonly horizon: number;
  readonly finished: readonly { readonly member: number; readonly trajectory: Trajectory }[];
  readonly running: readonly SavedEpisode[];
}

/**
 * Episode in flight, as a checkpoint keeps it: its finished turns hold actions, sampled ids and versions, and the env
 * is restored by them.
 */
export interface SavedEpisode {
  readonly episode: number;
  readonly member: number;
  readonly attempt: number;
  readonly turns: readonly Turn[];
}

/** Answers that the env hosts emitted in one tick. */
export interface EnvObserved {
  readonly type: 'observed';
  readonly events: readonly EnvEvent[];
}

/** Episodes that the policy ends, truncated: they no longer fit the model's context, or the oracle gives up. */
export interface Truncated {
  readonly type: 'truncated';
  readonly episodes: readonly number[];
}

/** Init of the rollout actor; plain data. */
export interface RolloutInit extends Pick<RunConfig['rollout'], 'envThreads'>, RetryLimits {
  /** Names of the worlds of a run of several, as tasks have them; absent where it has one. */
  readonly worlds?: readonly string[] | undefined;
  /** Id of the view the policy reads through, for the record. */
  readonly view: string | undefined;
  /** True when the policy has a thread of its own: messages to it are packed. */
  readonly policyInThread: boolean;
  /** Episodes that may run at once, for the account of where time goes. */
  readonly slots: number;
  /** True in serial mode: episodes come to rest when training ends. */
  readonly barrier: boolean;
  /** Start of the counters. */
  readonly start: { readonly nextEpisode: number; readonly envSteps: number; readonly episodes: number };
  readonly paths: { readonly inference: string; readonly envs: string; readonly scheduler: string };
}
