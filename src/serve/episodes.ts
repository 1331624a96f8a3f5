/** Episodes on the env hosts, by promises, as the environment server needs them. The actors implement it. */
import type { EnvStep, First } from '../core/env.ts';
import type { Failure } from '../core/failure.ts';
import type { Task } from '../core/task.ts';

export interface EpisodeAnswer {
  /** Episode number for `step` and `close`. */
  readonly episode: number;
  /** Actions taken so far. */
  readonly turn: number;
  readonly step: First | EnvStep;
  /** Actions possible now; empty after the end, where the env lists nothing, and where it was not asked to. */
  readonly actions: readonly string[];
}

export interface OpenOptions {
  /** True when answers list the actions; a step is cheaper without. */
  readonly listActions: boolean;
  /** Actions to replay at once; the answer is the observation after them. */
  readonly replay?: readonly string[];
}

/** Episodes. After `terminated`, and after a failure, one is over and its number unknown. */
export interface Episodes {
  /** Opens an episode. @throws {EpisodeFailed} */
  open(task: Task, options: OpenOptions): Promise<EpisodeAnswer>;
  /** Steps an episode. @param turn 1 for the first action @throws {EpisodeFailed} */
  step(episode: number, turn: number, action: string): Promise<EpisodeAnswer>;
  /** Closes an episode; an unknown one is ignored. */
  close(episode: number): void;
  /** Number of open episodes. */
  readonly count: number;
  /** False once hosts cannot be started any more. */
  readonly healthy: boolean;
}

/** Error of an episode that broke and is over. */
export class EpisodeFailed extends Error {
  readonly failure: Failure;
  constructor(failure: Failure) {
    super(`${failure.cause}: ${failure.message}`);
    this.failure = failure;
  }
}
