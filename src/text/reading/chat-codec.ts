/**
 * Codec of a language model: episodes as conversations under the model's own chat template and byte-pair tokens.
 *
 * The first prompt is rendered and tokenised whole. After that an episode only grows: sampled ids stay as they were
 * sampled, and between them goes the template's joint with the observation. Where that cannot be (a template that
 * renders earlier turns otherwise once there are later ones, a context that is full) the conversation is rendered anew.
 *
 * Text of a world or a model never becomes a control token (control-tokens.ts). The joint of a template is found by
 * template-joint.ts; what an episode keeps is in chat-transcript.ts.
 */

import { createHash } from 'node:crypto';
import { UserError } from '../../core/errors.ts';
import type { WorldPrompt } from '../../core/prompt.ts';
import type { ConversationOpening } from '../../core/trajectory.ts';
import {
  ACKNOWLEDGEMENT,
  type InstructionLength,
  instructions,
  type Message,
  renderObservation,
} from '../prompts/conversation.ts';
import { FORMATS, type PromptFormat, readReply } from '../prompts/formats.ts';
import type { ChatMessage, ChatTemplate } from '../templates/chat-template.ts';
import { openText } from '../templates/model-text.ts';
import type { BpeTokenizer } from '../templates/tokenizer.ts';
import { ChatTranscript, type Conversation } from './chat-transcript.ts';
import type { Answer, Codec } from './codec.ts';
import { ControlTokens } from './control-tokens.ts';
import { cutAtStop } from './stop-texts.ts';
import { findJoint, type Joint } from './template-joint.ts';
import type { Observed, Transcript } from './transcript.ts';

export interface ChatCodecOptions {
  readonly tokenizer: BpeTokenizer;
  readonly template: ChatTemplate;
  /** Ids that end an answer, by the model's generation config. */
  readonly endTokens: readonly number[];
  /** Ids the model has; more than the tokenizer's in many models. */
  readonly vocabSize: number;
  readonly world: WorldPrompt;
  /** Shape of an answer; `world`: the one the world asks for. */
  readonly format: keyof typeof FORMATS | 'world';
  /** Length of the instructions; `full` where absent. */
  readonly instructions?: InstructionLength;
  /** True where listed actions are shown to the model. */
  readonly listActions: boolean;
  /** Content of a system message; none where absent. */
  readonly system?: string;
  /** Longest sequence, in tokens. */
  readonly contextTokens: number;
  /** Room to keep for one answer, in tokens. */
  readonly answerTokens: number;
}

/** Reading of a chat codec as plain data: each thread opens tokenizer and template for itself. */
export interface ChatCodecSpec extends Omit<ChatCodecOptions, 'tokenizer' | 'template'> {
  /** Folder of the model. */
  readonly folder: string;
  /** True where observations are calls of agent programs: the reading is then an agent codec's (`codec-of.ts`). */
  readonly agent?: true | undefined;
}

/** Opens a codec. @throws {UserError} BAD_CHECKPOINT for a folder without a usable tokenizer or template */
export function openChatCodec(reading: ChatCodecSpec): ChatCodec {
  const { tokenizer, template } = openText(reading.folder);
  if (!template) {
    throw new UserError(
      'BAD_CHECKPOINT',
      `${reading.folder}: it has no chat template (chat_template.jinja, or chat_template in tokenizer_config.json); use an instruct model`,
    );
  }
  return new ChatCodec({ ...reading, tokenizer, template });
}

/** Spellings kept; worlds list the same actions over and over. */
const MAX_SPELT = 20_000;

export class ChatCodec implements Codec, Conversation {
  readonly id: string;
  readonly hash: string;
  readonly vocabSize: number;
  readonly sampled: { readonly from: number; readonly to: number };
  readonly end: number;
  readonly opening: ConversationOpening;
  readonly #options: ChatCodecOptions;
  readonly #format: PromptFormat;
  readonly #start: string;
  readonly #controls: ControlTokens;
  readonly #ends: ReadonlySet<number>;
  readonly #spelt = new Map<string, Int32Array>();
  /** Text that a template puts between the end token of an answer and the next question, and after the question. */
  readonly #joint: Joint | undefined;
  /** True where the template itself opens the thought of each answer. */
  readonly #opensThought: boolean;

  /** @throws {UserError} BAD_CHECKPOINT for a template without an end of turns that the tokenizer has as one token */
  constructor(options: ChatCodecOptions) {
    const { tokenizer, template, world, format, vocabSize } = options;
    this.#options = options;
    this.#format = FORMATS[format === 'world' ? world.format : format];
    this.#start = instructions(world, this.#format, options.instructions);
    const { system, listActions } = options;
    this.opening = { ...(system === undefined ? {} : { system }), instructions: this.#start, listed: listActions };
    this.#controls = new ControlTokens(tokenizer);
    this.vocabSize = vocabSize;
    this.sampled = { from: 0, to: vocabSize };
    const { end, joint } = findJoint(template, this.#controls, this.#format, world);
    this.end = end;
    this.#joint = joint;
    const opened = template.render([{ role: 'user', content: 'PROBE QUESTION' }], { addGenerationPrompt: true });
    this.#opensThought = /<think>\s*$/.test(opened);
    this.#ends = new Set([end, ...options.endTokens]);
    this.id = `chat/${this.#format.id}${options.listActions ? '/listed' : ''}/1`;
    this.hash = createHash('sha256')
      .update(JSON.stringify([tokenizer.fingerprint, template.text, this.#start, options.system ?? '', vocabSize]))
      .digest('hex');
  }

  /** False where episodes only grow under this template, until the context is full. */
  get rendersAnew(): boolean {
    return this.#joint === undefined;
  }

  open(first: Observed): Transcript {
    return new ChatTranscript(this, first);
  }

  /**
   * Looks at ever longer beginnings. What follows a beginning changes how its end is cut into tokens, never half of it, so
   * one of twice the tokens is proof enough.
   */
  exceeds(text: string, tokens: number): boolean {
    return exceedsTokens(this.#options.tokenizer, text, tokens);
  }

  openText(text: string): Transcript {
    const ids = this.#options.tokenizer.encode(text);
    if (ids.length < 2) throw new RangeError(`chat: expected a text of two tokens or more, got ${ids.length}`);
    return new ChatTranscript(this, undefined, ids);
  }

  openMessages(messages: readonly Message[]): Transcript {
    const escaped = messages.map(({ role, content }) => ({ role, content: this.#controls.breakUp(content) }));
    const rendered = this.#options.template.render(escaped, { addGenerationPrompt: true });
    return new ChatTranscript(this, undefined, this.#controls.encode(rendered));
  }

  divide(ids: readonly number[], promptLength = ids.length - 1) {
    if (ids.length < 2) throw new RangeError(`chat: expected two token ids or more, got ${ids.length}`);
    const at = Math.min(Math.max(1, promptLength), ids.length - 1);
    return { prompt: ids.slice(0, at), tokens: ids.slice(at) };
  }

  spell(action: string): Int32Array {
    let spelt = this.#spelt.get(action);
    if (!spelt) {
      const { tokenizer, world } = this.#options;
      spelt = Int32Array.from(tokenizer.encodePlain(this.#format.print('', action, world)));
      if (this.#spelt.size >= MAX_SPELT) this.#spelt.clear();
      this.#spelt.set(action, spelt);
    }
    return spelt;
  }

  spellReply(reply: string, action: string): Int32Array {
    const { tokenizer, world } = this.#options;
    const written = this.#opensThought ? reply.replace(/^\s*<think>\s*/, '') : reply;
    const printed = this.#format.print(readReply(reply, world).thought, action, world);
    const readsBack = (text: string) => {
      const parsed = this.#parse(text);
      return 'action' in parsed && parsed.action === action;
    };
    const text = [written, printed].find(readsBack);
    return text === undefined ? this.spell(action) : Int32Array.from(tokenizer.encodePlain(text));
  }

  decode(ids: Iterable<number>): string {
    return this.#options.tokenizer.decode([...ids], { special: false });
  }

  ends(run: readonly number[]): boolean {
    return run.length > 0 && this.#ends.has(run.at(-1)!);
  }

  answer(run: readonly number[], _transcript?: Transcript, stop: readonly string[] = []): Answer {
    const whole = this.decode(this.#ends.has(run.at(-1)!) ? run.slice(0, -1) : run);
    const { text, isStopped } = cutAtStop(whole, stop);
    const ended = this.ends(run) || isStopped;
    const parsed = this.#parse(text);
    if ('action' in parsed) return { action: parsed.action, text };
    return { action: '', text, formatError: `${parsed.error}${ended ? '' : ' The answer was cut off: be shorter.'}` };
  }

  #parse(text: string) {
    return this.#format.parse(this.#opensThought ? `<think>${text}` : text, this.#options.world);
  }

  /** Ids of a whole conversation up to the position that decides. */
  render(questions: readonly string[], answers: readonly string[]): number[] {
    const { template, system } = this.#options;
    const messages: ChatMessage[] = system === undefined ? [] : [{ role: 'system', content: system }];
    messages.push({ role: 'user', content: this.#start }, { role: 'assistant', content: ACKNOWLEDGEMENT });
    for (const [i, question] of questions.entries()) {
      messages.push({ role: 'user', content: this.#controls.breakUp(question) });
      const answer = answers[i];
      if (answer !== undefined) messages.push({ role: 'assistant', content: this.#controls.breakUp(answer) });
    }
    return this.#controls.encode(template.render(messages, { addGenerationPrompt: true }));
  }

  /** Tokens of the shortest prompt: the instructions, and a question of nothing. */
  get shortestPrompt(): number {
    return this.render([''], []).length;
  }

  /** Ids between an answer and the next one; `undefined` where the template does not let an episode grow. */
  joint(question: string, answer: string): number[] | undefined {
    if (!this.#joint) return undefined;
    const { before, after, trims } = this.#joint;
    if (trims && answer !== answer.trim()) return undefined;
    return this.#controls.encode(before + this.#controls.breakUp(question) + after);
  }

  /** Renders an observation as the question that the model is asked. @param table of the episode @param error of its last answer */
  formatQuestion(observed: Observed, table: readonly string[], error: string | undefined): string {
    const actions = Array.from(observed.actions, (index) => table[index]!);
    return renderObservation(observed.observation, error, this.#options.listActions ? actions : undefined);
  }

  /** True when a sequence of this length leaves room for an answer. */
  fits(length: number): boolean {
    return length + this.#options.answerTokens <= this.#options.contextTokens;
  }

  isEnd(id: number | undefined): boolean {
    return id !== undefined && this.#ends.has(id);
  }
}

/** True where a text has more than `tokens` tokens for certain, found out in the time that a few times as many take. */
export function exceedsTokens(tokenizer: BpeTokenizer, text: string, tokens: number): boolean {
  for (let length = 4 * tokens; length < text.length; length *= 2) {
    if (tokenizer.encodePlain(text.slice(0, length)).length > 2 * tokens) return true;
  }
  return false;
}
