/**
 * Codec between a world's text and a model's token ids. A local policy's is view + word tokenizer (`view-codec.ts`); a
 * language model's is chat template + BPE. Inference, training batches, imitation, token prompting and the policy server
 * all read through a codec, so none of them can read an episode differently.
 *
 * World text is never a control token: whatever an observation spells, `<act>` and `<|im_end|>` included, is encoded as
 * plain text.
 */
import type { ConversationOpening } from '../../core/trajectory.ts';
import type { Message } from '../prompts/conversation.ts';
import type { Observed, Transcript } from './transcript.ts';

/** Codec: renders, tokenises and reads back; stateless but for bounded memoisation. */
export interface Codec {
  /** Name and revision of the view or template; recorded in traces and checkpoints. */
  readonly id: string;
  /** Identity of the vocabulary; weights are only valid under the same one. */
  readonly hash: string;
  /** Number of token ids; ids are 0 … vocabSize − 1. */
  readonly vocabSize: number;
  /** UTF-16 units of text that one token stands for at most; absent where that is not known. */
  readonly longestToken?: number;
  /** Half-open range of the ids that free sampling may draw: padding and markers of the framework lie outside. */
  readonly sampled: { readonly from: number; readonly to: number };
  /** True when every turn is rendered anew as a prompt and one token: nothing is worth caching between turns. */
  readonly rendersAnew: boolean;
  /** Token id that ends an answer written by the framework: in spellings of listed actions and in demonstrations. */
  readonly end: number;
  /** Beginning of the conversation that a language model reads; absent where the codec makes none. */
  readonly opening?: ConversationOpening;

  /**
   * Transcript of a new episode.
   * @param world its name (`Task.env`), where the codec reads several worlds; others look at none
   * @throws {RangeError} for an opening that the view cannot read, or a world that the codec does not read
   */
  open(first: Observed, world?: string): Transcript;
  /**
   * True where a text has more than `tokens` tokens for certain, found out in the time that a few times as many take;
   * absent where reading is so fast that it need not be asked.
   */
  exceeds?(text: string, tokens: number): boolean;
  /** Transcript of a plain text, as it stands. @throws {RangeError} for one without a token */
  openText(text: string): Transcript;
  /**
   * Transcript of a conversation that ends with a user's message, as a language model's template renders it; absent where
   * the codec reads episodes alone.
   * @throws {UserError} BAD_CHECKPOINT with what the template itself raises
   */
  openMessages?(messages: readonly Message[]): Transcript;
  /**
   * Division of token ids that a client rendered into a prompt and what follows it.
   * @param ids at least one, the last of them decides
   * @param promptLength tokens of the prompt; absent: found by the codec's own marker
   * @returns both non-empty
   */
  divide(ids: readonly number[], promptLength?: number): { readonly prompt: number[]; readonly tokens: number[] };

  /** Token ids of an action's text as the policy writes (or reads) it by itself, without the end token. */
  spell(action: string): Int32Array;
  /**
   * Token ids of a recorded answer, without the end token: as it was written where this codec reads it as the action, else its
   * thought and the action in this codec's format; absent where answers are actions alone.
   */
  spellReply?(reply: string, action: string): Int32Array;
  /** Text of token ids; control tokens are left out. */
  decode(ids: Iterable<number>): string;
  /** True when a run of sampled ids is a whole answer: an end token was sampled. */
  ends(run: readonly number[]): boolean;
  /**
   * Reads the action out of an answer.
   * @param transcript of the episode, where the run answers; a codec of agents reads it as the reply to its last call
   * @param stop texts that end an answer before them
   */
  answer(run: readonly number[], transcript?: Transcript, stop?: readonly string[]): Answer;
}

/** Sampled run of ids, read as text. */
export interface Answer {
  /** Text for the env; empty where none could be read. */
  readonly action: string;
  /** Text of the whole answer, where the action is only a part of it. */
  readonly text?: string;
  /** Reason why no action could be read. */
  readonly formatError?: string;
}
