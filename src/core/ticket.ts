/** Tickets of groups to be played, and what became of them. Plain data: they cross threads, machines and disks. */
import type { Failure } from './failure.ts';
import type { TokenSampling } from './model-call.ts';
import type { Task } from './task.ts';
import type { Trajectory, Turn } from './trajectory.ts';

/** Ticket of a group to be played. */
export interface GroupTicket {
  /** Group number, unique in the run. */
  readonly group: number;
  readonly task: Task;
  /** Turns each episode may take. */
  readonly horizon: number;
  /** Size: the number of episodes. */
  readonly size: number;
  readonly purpose: Purpose;
  /**
   * Policy version that it was issued under. It waits for these weights, or newer ones: played under older ones the
   * group would be stale before it is finished.
   */
  readonly version: number;
  /** Beginning that all its episodes share; absent where they begin with the task's first observation. */
  readonly beginning?: EpisodeBeginning | undefined;
}

/** Beginning of an episode: recorded turns, whose actions the env takes again and whose history the policy reads. */
export interface EpisodeBeginning {
  /** Turns without decisions: token ids of one policy mean nothing to another. Their actions index the env's own table. */
  readonly turns: readonly Turn[];
  /** Observation behind them. An env that shows another one is no function of the actions, and fails the episode. */
  readonly observation: string;
}

/** Purpose that a group's episodes are played for. */
export interface Purpose {
  /** `train`, or the name of an evaluation. */
  readonly name: string;
  readonly temperature: number;
  /** Settings of a language model's sampling; absent in training, which draws from the whole distribution. */
  readonly sampling?: TokenSampling | undefined;
  /** Texts that end an answer; they are not part of it. */
  readonly stop?: readonly string[] | undefined;
  /** Seed of this group, uint32; each episode's sampling seed follows from it. */
  readonly seed: number;
}

/** Group that was played to its end. */
export interface PlayedGroup {
  readonly group: number;
  /** Trajectories by member. */
  readonly trajectories: readonly Trajectory[];
  /** Steps of training episodes when it finished. */
  readonly envSteps: number;
}

/** Group given up: one of its episodes failed too often. */
export interface GaveUp {
  readonly group: number;
  /** Failure of the last attempt. */
  readonly failure: Failure;
  readonly attempts: number;
}

/** Attempt at an episode that failed and was made again. */
export interface FailedAttempt {
  readonly group: number;
  readonly failure: Failure;
}
