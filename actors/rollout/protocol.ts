/**
 * Messages of the rollout actor, which plays the groups it is told: it opens their episodes on the env hosts, sends
 * their turns to the policy, applies the horizon, and tells the scheduler what became of them.
 */
import type { RunConfig } from '../../src/config/run-config.ts';
import type { Task } from '../../src/core/task.ts';
import type { Trajectory, Turn } from '../../src/core/trajectory.ts';
import type { RolloutTotals } from '../../src/record/run-status.ts';
import type { EnvEvent } from '../env/protocol.ts';
import type { ActedEvent } from '../inference/protocol.ts';

export type RolloutCommand = Play | Abandon | Restore | Pause | Resume | Capture | ActedEvent | EnvObserved;

/** Starts groups. Each is answered, sooner or later, by its place in a `played`. */
export interface Play {
  readonly type: 'play';
  readonly groups: readonly GroupTicket[];
}

/** A group to be played. */
export interface GroupTicket {
  /** Unique in the run. */
  readonly group: number;
  readonly task: Task;
  /** Turns each episode may take. */
  readonly horizon: number;
  /** Episodes. */
  readonly size: number;
  readonly purpose: Purpose;
}

/** The purpose that a group's episodes are played for. */
export interface Purpose {
  /** `train`, or the name of an evaluation. */
  readonly name: string;
  readonly temperature: number;
  /** uint32, of this group alone; each episode's sampling seed follows from it. */
  readonly seed: number;
}

/** Ends groups that are no longer wanted; nothing is told of them. */
export interface Abandon {
  readonly type: 'abandon';
  readonly groups: readonly number[];
}

/** Opens the groups of a checkpoint, paused: their episodes are brought back to their last turn and wait there. */
export interface Restore {
  readonly type: 'restore';
  readonly groups: readonly { readonly ticket: GroupTicket; readonly saved: SavedGroup }[];
}

/** Training groups ask for no more decisions. */
export interface Pause {
  readonly type: 'pause';
  /**
   * For good: training is over. In asynchronous mode its episodes then stay exactly as they are, answers still to come
   * are not taken; in serial mode they come to rest.
   */
  readonly ended: boolean;
}

/** Clears the policy's cache and asks for every decision that a pause held back. */
export interface Resume {
  readonly type: 'resume';
}

/** Asks for the state of all training groups; answered by `captured`. */
export interface Capture {
  readonly type: 'capture';
  /** Comes back with the answer; of several that wait, only the last is answered. */
  readonly id: number;
  /** Only once every episode awaits a decision that has not been asked for. */
  readonly atRest: boolean;
}

/** State of the rollouts, for a checkpoint. Plain JSON. */
export interface RolloutState {
  /** Training groups, in launch order. */
  readonly running: readonly SavedGroup[];
  readonly nextEpisode: number;
  readonly totals: RolloutTotals;
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

/** Told by the env hosts: what they emitted in one tick. */
export interface EnvObserved {
  readonly type: 'observed';
  readonly events: readonly EnvEvent[];
}

/** Everything that the actor is made from; plain data. */
export interface RolloutInit extends Pick<RunConfig['rollout'], 'envThreads' | 'maxAttempts' | 'maxFailures'> {
  /** Id of the view the policy reads through, for the record. */
  readonly view: string | undefined;
  /** The policy has a thread of its own: what is sent there is packed. */
  readonly policyInThread: boolean;
  /** Episodes that may run at once, for the account of where time goes. */
  readonly slots: number;
  /** Serial mode: episodes come to rest when training ends. */
  readonly barrier: boolean;
  /** Numbers to go on from. */
  readonly start: { readonly nextEpisode: number; readonly envSteps: number; readonly episodes: number };
  readonly paths: { readonly inference: string; readonly envs: string; readonly scheduler: string };
}
