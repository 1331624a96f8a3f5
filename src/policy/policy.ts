/**
 * Policy interface, driven by the batching actor: turns go in, and decisions come out some engine calls later. A choice
 * is out after one call; a run of tokens takes one call per token, and other turns join and leave between calls.
 */

import type { ParamSet } from '../compute/model/parameters.ts';
import type { MaybePromise } from '../core/env.ts';
import type { TokenSampling } from '../core/model-call.ts';
import type { Task } from '../core/task.ts';
import type { Decision, ModelResponse, TurnStages } from '../core/trajectory.ts';
import type { RenderedPrompt } from '../text/reading/received-transcript.ts';
import type { NextTurn } from '../text/reading/replay-turns.ts';
import type { ServedAdapter } from './served-adapters.ts';

/** Prompt that a client rendered itself, in place of an observation; nothing is remembered of it. */
export interface GivenPrompt extends RenderedPrompt {
  /** Seed of the draw, uint32, in place of `samplingSeed` and `turn`. */
  readonly seed: number;
  /** Longest run of tokens; at most what the policy allows anyway. */
  readonly maxTokens: number;
  /** Call of an agent program whose reply it is, for the limits that the call sets: as `printAgentCall` prints one. */
  readonly call?: string | undefined;
}

/** Request to a policy: a turn that waits for its action. */
export interface ActRequest extends NextTurn {
  readonly episode: number;
  readonly group: number;
  /** Index within the group, in [0, group size). */
  readonly member: number;
  readonly groupSize: number;
  /** Seed of sampling, uint32; with the turn number it fixes the draw. */
  readonly samplingSeed: number;
  /** Temperature; 0 is greedy. */
  readonly temperature: number;
  /** Settings that reshape the distribution of tokens; absent: the whole distribution, as in training. */
  readonly sampling?: TokenSampling | undefined;
  /** Task of the episode, with its first request; left out where requests cross threads, as no policy there looks at it. */
  readonly task?: Task;
  /** Prompt given in place of an observation; the episode has this one turn. */
  readonly given?: GivenPrompt;
}

/** Message for a turn that lists nothing where a policy chooses. */
export function nothingListed({ turn }: ActRequest): string {
  return `the world lists no action on turn ${turn}, and the policy chooses among listed ones (policy.decoder: tokens writes them)`;
}

/** Message for an episode that a model cannot read. @param tokens of it, the one to come included */
export function formatTooLong(tokens: number, maxPositions: number): string {
  return `the episode is ${tokens} tokens long and the model reads ${maxPositions} (raise policy.model.maxPositions, of a language model policy.chat.contextTokens, or shorten the horizon)`;
}

/** Answer of a policy: the action it decided for a turn, and the decision as it is trained on. */
export interface Acted {
  readonly episode: number;
  readonly turn: number;
  /** Exact text for the env. */
  readonly action: string;
  readonly decision?: Decision;
  readonly stages?: TurnStages;
  readonly response?: ModelResponse;
}

/** Turn that a policy does not decide. Its episode fails alone, and the others go on. */
export interface Unanswered {
  readonly episode: number;
  readonly message: string;
  /** The episode ends here, truncated: the conversation no longer fits the model's context, or the oracle gives up. */
  readonly ends?: true;
}

/**
 * Policy: decides turns, in batches, and remembers episodes between them. Its laws, held by `test/policy/laws.ts`: every submitted turn is answered once, or refused at once; releasing
 * twice, or what is unknown, does no harm; after `forget` it is as a fresh policy with the same weights; the batches in
 * which turns are read change no decision; an episode that comes with its history goes on as if it had never left.
 */
export interface Policy {
  /** Version (updates seen) of the weights in force; 0 for a policy without weights. */
  readonly version: number;
  /**
   * Takes new weights; they hold from the next call on. Ignored by a policy without weights.
   * @throws {UserError} BAD_WEIGHTS when they do not fit the model
   */
  load(params: ParamSet): void;
  /** Server policies: switches to an adapter that another process loaded. */
  useAdapter?(adapter: ServedAdapter): void;
  /** Resolves with the newest adapter once the server has it; of a policy behind one. @throws {LongplayError} REMOTE_FAILED */
  serving?(): Promise<ServedAdapter>;
  /**
   * Queues turns; they join the next call.
   * @returns those that cannot be decided: without a list to choose from, or longer than the model reads
   */
  submit(requests: readonly ActRequest[]): readonly Unanswered[];
  /** Turns that wait for a call or are in the middle of a run of tokens. */
  readonly waiting: number;
  /**
   * True when some call would leave no turn behind: every turn that could still join it is waiting already, or a run of
   * tokens is under way that others can join later.
   */
  readonly complete: boolean;
  /** Most turns of one engine call. */
  readonly maxBatch: number;
  /**
   * True where a second call may begin while one is under way: its turns are then prepared beside the engine. `waiting` and
   * `complete` leave out what a call under way has taken. Absent: one call at a time, and nothing else meanwhile.
   */
  readonly overlaps?: boolean;
  /** Makes one engine call. @returns the turns it finished */
  step(): MaybePromise<readonly Acted[]>;
  /** Drops episodes that ended or were abandoned; unknown ones are ignored. */
  release(episodes: readonly number[]): void;
  /** Drops everything but the weights. */
  forget(): void;
  /** Tokens computed so far, padding left out. */
  readonly tokens: number;
  dispose(): MaybePromise<void>;
}
