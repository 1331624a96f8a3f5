/** The env hosts as the environment server needs them: episodes by promise. The actors implement it. */
import type { EnvStep, First } from '../core/env.ts';
import type { Failure } from '../core/failure.ts';
import type { Task } from '../core/task.ts';

export interface EpisodeAnswer {
  /** Names the episode in `step` and `close`. */
  readonly episode: number;
  /** Actions taken so far. */
  readonly turn: number;
  readonly step: First | EnvStep;
  /** Actions possible now; empty after the end, where the env lists nothing, and where it was not asked to. */
  readonly actions: readonly string[];
}

export interface OpenOptions {
  /** Answers list the actions; a step is cheaper without. */
  readonly listActions: boolean;
  /** Actions taken at once; the answer tells where they lead. */
  readonly replay?: readonly string[];
}

/** After `terminated`, and after a failure, an episode is over and its number unknown. */
export interface Episodes {
  /** @throws {EpisodeFailed} */
  open(task: Task, options: OpenOptions): Promise<EpisodeAnswer>;
  /** @param turn 1 for the first action @throws {EpisodeFailed} */
  step(episode: number, turn: number, action: string): Promise<EpisodeAnswer>;
  /** Gives an episode up; an unknown one is ignored. */
  close(episode: number): void;
  /** Episodes now open. */
  readonly count: number;
  /** False once hosts cannot be started any more. */
  readonly healthy: boolean;
}

/** The episode broke; it is over. */
export class EpisodeFailed extends Error {
  readonly failure: Failure;
  constructor(failure: Failure) {
    super(`${failure.cause}: ${failure.message}`);
    this.failure = failure;
  }
}
