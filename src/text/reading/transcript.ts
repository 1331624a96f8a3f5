/**
 * Transcript of a running or finished episode: the token ids a model reads of it, which of them are new, and the
 * actions listed so far. Made by a codec; nothing else keeps an episode's tokens.
 *
 * A transcript is a prompt and the tokens after it; the last token is the position that decides. While an episode only
 * grows, `tokens` grows and a KV cache stays valid. Where its text is rendered anew (a window view every turn, a chat
 * whose context is full), `prompt` becomes a new object and `tokens` begin anew. Nothing cached before it holds.
 */
import type { Decision } from '../../core/trajectory.ts';
import type { TokenMask } from '../grammar/token-mask.ts';

/** Mentions of one action that the pointer looks at; more add cost and little else. */
export const MAX_MENTIONS = 6;

/** Prompt of an episode as token ids, with the places in it that its actions mention. */
export interface Prompt {
  /** [P] token ids, P ≥ 1. */
  readonly tokens: Int32Array;
  /** True when all episodes of a group read the very same prompt: it is then computed and cached once. */
  readonly shared: boolean;
  /** Token ids that carry the focus bit wherever they occur in the episode. */
  readonly focus: ReadonlySet<number>;
  /** Token positions in the prompt that mention the action: 1 … MAX_MENTIONS of them, position 0 where there is none. */
  mentions(action: string): readonly number[];
}

/** Listed action, and the text that the policy reads of it. */
export interface Candidate {
  /** Text that is played, and that mentions are looked up by. */
  readonly action: string;
  readonly read: string;
}

/** Observation as the policy gets it, with the actions that are possible now. */
export interface Observed {
  readonly observation: string;
  /** Indices into the episode's action table; empty where the world lists nothing. */
  readonly actions: Int32Array;
  /** Texts appended to that table now. */
  readonly newActions: readonly string[];
  /** True when the last action was a stage, not yet a whole action: the world has not moved. */
  readonly partial?: true;
  /** Texts that end the episode's answers, besides those that an agent's call names; they are not part of an answer. */
  readonly stop?: readonly string[] | undefined;
}

/** True for the same ids in the same order. */
export function equalTokens(a: Int32Array, b: Int32Array): boolean {
  return a === b || (a.length === b.length && a.every((id, i) => id === b[i]));
}

/** Refusal of a turn: the policy cannot decide it. */
export interface Refusal {
  /** Reason, for people. */
  readonly message: string;
  /** The episode ends here, truncated; absent: it has failed. */
  readonly ends?: true;
}

/** Limits of the answer that is asked for now, besides those of the policy. */
export interface AnswerLimits {
  /** Most tokens of it, ≥ 1. */
  readonly maxTokens?: number | undefined;
  /** True where a run of sampled ids is a whole answer, though no end token was sampled. */
  ends?(run: readonly number[]): boolean;
  /** Makes the mask that the answer is sampled under; absent: it is sampled freely. */
  mask?(): TokenMask;
}

/** Transcript: an episode as token ids, as the policy reads it; see the head of the file. */
export interface Transcript {
  /** Prompt in force; a new object whenever the text was rendered anew. */
  readonly prompt: Prompt;
  /** Token ids after the prompt, at least one; the last one is the position that decides. */
  readonly tokens: readonly number[];
  /** Action texts listed so far, in order of first appearance. */
  readonly table: readonly string[];
  /** Name of the situation that the view's memory is in (`Track.situation`); absent where it names none. */
  readonly situation?: string | undefined;
  /** Refusal of the present turn; absent where it can be decided. */
  readonly refusal?: Refusal | undefined;
  /** Limits of the present answer; absent where the policy's alone hold. */
  readonly limits?: AnswerLimits | undefined;
  /** Text that the policy reads of a listed action now; usually the action itself. */
  candidate(action: string): string;
  /**
   * Ids read since the previous decision, from the prompt on where it is new: a decision's `context`. Each id is given
   * once.
   */
  takeContext(): Int32Array;
  /** Appends sampled ids, kept exactly as they were sampled; they are never part of a context. */
  write(ids: Iterable<number>): void;
  /** Appends the result of the last action. @throws {RangeError} for a text that the view cannot read */
  observe(action: string, observed: Observed): void;
}

/** Past turn: a finished one, as it is sent to a reader that has not seen it. */
export interface PastTurn {
  readonly observation: string;
  readonly action: string;
  readonly decision?: Decision;
  /** Indices of the actions that were listed; absent where the source has not kept them. */
  readonly actions?: Int32Array;
  /** True when the action was a stage: the world had not moved when it answered. */
  readonly partial?: true;
}
