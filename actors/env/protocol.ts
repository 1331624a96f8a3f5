/**
 * Messages between the env pool and its hosts. Commands are imperatives and flow in, events are facts and flow out;
 * both travel in batches (batch.ts). Every open episode has at most one command without an answer.
 */
import type { EnvStep, First } from '../../src/core/env.ts';
import type { Failure } from '../../src/core/failure.ts';
import type { Task } from '../../src/core/task.ts';

export type EnvCommand = Open | Step | Close;
/** Event of an environment: an answer, or the end of an episode that broke. */
export type EnvEvent = Observed | Failed;

/** Commands for the env hosts, for any of their episodes, in order. */
export interface EnvCommands {
  readonly type: 'commands';
  readonly commands: readonly EnvCommand[];
}

/** Starts an episode. Answered by `observed` of turn 0, or of turn `replay.length`. */
export interface Open {
  readonly type: 'open';
  /** Episode number, unique among the open episodes, int32. */
  readonly episode: number;
  /** Attempt, 1 unless the episode was re-issued after a failure. */
  readonly attempt: number;
  readonly task: Task;
  /** Turns it may take; absent where nobody counts them. */
  readonly horizon?: number;
  /** Actions already taken: the host repeats them and answers with the last observation. */
  readonly replay?: readonly string[];
  /** True to list actions in its answers; by default as in the pool's options. */
  readonly listActions?: boolean;
}

/** Takes one action. Answered by `observed` of the same turn. */
export interface Step {
  readonly type: 'step';
  readonly episode: number;
  /** Turn, 1 for the first action of the episode. */
  readonly turn: number;
  readonly action: string;
}

/** Closes an episode that the env has not ended. Not answered; an episode that has ended needs none. */
export interface Close {
  readonly type: 'close';
  readonly episode: number;
}

/** Answer of an environment to an opening or an action. */
export interface Observed {
  readonly type: 'observed';
  readonly episode: number;
  /** Turn: actions taken so far, 0 for the first observation. */
  readonly turn: number;
  /** Step: `first` for turn 0, else the env's answer. After `terminated` the episode is closed. */
  readonly step: First | EnvStep;
  /**
   * Actions that are possible now, as indices into the episode's action table: every text the env listed in this
   * episode, in order of first appearance. Empty after `terminated`, where the env lists nothing, and where the pool
   * does not list actions.
   */
  readonly actions: Int32Array;
  /** Texts appended to that table by this observation (after a replay: the whole table). */
  readonly newActions: readonly string[];
  /** Milliseconds that the env took; after a replay, of its last step. */
  readonly envMs: number;
}

/** Failure: the episode is over without a result, and the host holds nothing of it any more. */
export interface Failed {
  readonly type: 'failed';
  readonly episode: number;
  readonly failure: Failure;
}

/** Specification of an env, as a host loads it. */
export interface EnvSpec {
  readonly id: string;
  /** Module that exports `createEnv` (a `World` with rules). */
  readonly url: URL;
  readonly options?: Readonly<Record<string, unknown>>;
  /** Result of the world's `share`, for hosts of this process. */
  readonly shared?: unknown;
}
