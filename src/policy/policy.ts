/**
 * What the batching actor drives: a policy takes turns in, and gives decisions out some engine calls later. A choice
 * is out after one call; a run of tokens takes one call per token, and other turns join and leave between calls.
 */

import type { MaybePromise } from '../core/env.ts';
import type { Decision, ModelResponse, TurnStages } from '../core/trajectory.ts';

/** What the policy reads in one turn, told by a client that rendered the view itself; nothing is remembered of it. */
export interface GivenPrompt {
  /** [P] token ids of the prompt, P ≥ 1. */
  readonly prompt: Int32Array;
  /** [T] token ids after it, up to the position that decides, T ≥ 1. */
  readonly after: Int32Array;
  /** Token ids that carry the focus bit. */
  readonly focus: readonly number[];
  /** By action text: positions in the prompt that mention it; none counts as position 0. */
  readonly mentions: ReadonlyMap<string, readonly number[]>;
  /** uint32; fixes the draw, in place of `samplingSeed` and `turn`. */
  readonly seed: number;
  /** Longest run of tokens; at most what the policy allows anyway. */
  readonly maxTokens: number;
}

/** A turn that waits for its action. */
export interface ActRequest {
  readonly episode: number;
  readonly group: number;
  /** Index within the group, in [0, group size). */
  readonly member: number;
  readonly groupSize: number;
  /** 0 for the first decision of the episode. */
  readonly turn: number;
  /** What the env said last. */
  readonly observation: string;
  /** What the policy did before it; absent on turn 0. */
  readonly lastAction?: string;
  /** Indices into the episode's action table: what can be done now. */
  readonly actions: Int32Array;
  /** Texts appended to that table now. */
  readonly newActions: readonly string[];
  /** uint32; with the turn number it fixes the draw. */
  readonly samplingSeed: number;
  /** 0 is greedy. */
  readonly temperature: number;
  /** In place of an observation; the episode has this one turn. */
  readonly given?: GivenPrompt;
  /**
   * The finished turns, sent when an episode comes to a policy that has not seen its beginning (a restart, a resume).
   */
  readonly history?: readonly { readonly observation: string; readonly action: string; readonly decision?: Decision }[];
}

export interface Acted {
  readonly episode: number;
  readonly turn: number;
  /** Exact text for the env. */
  readonly action: string;
  readonly decision?: Decision;
  readonly stages?: TurnStages;
  readonly response?: ModelResponse;
}

export interface Policy {
  /** Queues turns; they join the next call. @throws {RangeError} for a request the policy cannot serve */
  submit(requests: readonly ActRequest[]): void;
  /** Turns that wait for a call or are in the middle of a run of tokens. */
  readonly waiting: number;
  /**
   * True when some call would leave nobody behind: everyone who could still join it waits already, or a run of tokens
   * is under way that others can join later.
   */
  readonly complete: boolean;
  /** Engine calls are made for at most this many turns at once. */
  readonly maxBatch: number;
  /** Makes one engine call. @returns the turns it finished */
  step(): MaybePromise<readonly Acted[]>;
  /** Forgets episodes that ended or were abandoned; unknown ones are ignored. */
  release(episodes: readonly number[]): void;
  /** Tokens computed so far, padding left out. */
  readonly tokens: number;
  dispose(): MaybePromise<void>;
}
