/**
 * Codec of a language model: episodes as conversations under the model's own chat template and byte-pair tokens.
 *
 * The first prompt is rendered and tokenised whole. After that an episode only grows: sampled ids stay as they were
 * sampled, and between them goes the template's joint with the observation. Where that cannot be (a template that
 * renders earlier turns otherwise once there are later ones, a context that is full) the conversation is rendered anew.
 *
 * Text of a world or a model never becomes a control token: its special tokens are spelt out.
 */

import { createHash } from 'node:crypto';
import { UserError } from '../../core/errors.ts';
import type { WorldPrompt } from '../../core/prompt.ts';
import type { ConversationOpening } from '../../core/trajectory.ts';
import { ACKNOWLEDGEMENT, instructions, type Message, renderObservation } from '../prompts/conversation.ts';
import { FORMATS, type PromptFormat } from '../prompts/formats.ts';
import type { ChatMessage, ChatTemplate } from '../templates/chat-template.ts';
import { openText } from '../templates/model-text.ts';
import type { BpeTokenizer } from '../templates/tokenizer.ts';
import type { Answer, Codec } from './codec.ts';
import type { Observed, Prompt, Transcript } from './transcript.ts';

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

/** Breaks special tokens in foreign text, so that it differs from the rendering; taken out again before encoding. */
const BREAK = '\ue000';

/** Spellings kept; worlds list the same actions over and over. */
const MAX_SPELT = 20_000;

export class ChatCodec implements Codec {
  readonly id: string;
  readonly hash: string;
  readonly vocabSize: number;
  readonly sampled: { readonly from: number; readonly to: number };
  readonly end: number;
  readonly opening: ConversationOpening;
  readonly #options: ChatCodecOptions;
  readonly #format: PromptFormat;
  readonly #start: string;
  readonly #special: RegExp;
  readonly #ends: ReadonlySet<number>;
  readonly #spelt = new Map<string, Int32Array>();
  /** Text that a template puts between the end token of an answer and the next question, and after the question. */
  readonly #joint: { readonly before: string; readonly after: string } | undefined;

  /** @throws {UserError} BAD_CHECKPOINT for a template without an end of turns that the tokenizer has as one token */
  constructor(options: ChatCodecOptions) {
    const { tokenizer, template, world, format, vocabSize } = options;
    this.#options = options;
    this.#format = FORMATS[format === 'world' ? world.format : format];
    this.#start = instructions(world, this.#format);
    const { system, listActions } = options;
    this.opening = { ...(system === undefined ? {} : { system }), instructions: this.#start, listed: listActions };
    this.#special = specialPattern(tokenizer);
    this.vocabSize = vocabSize;
    this.sampled = { from: 0, to: vocabSize };
    const { end, joint } = jointOf(template, tokenizer, this.#format, world, this.#special);
    this.end = end;
    this.#joint = joint;
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
    for (let length = 4 * tokens; length < text.length; length *= 2) {
      if (this.#options.tokenizer.encodePlain(text.slice(0, length)).length > 2 * tokens) return true;
    }
    return false;
  }

  openText(text: string): Transcript {
    const ids = this.#options.tokenizer.encode(text);
    if (ids.length < 2) throw new RangeError(`chat: expected a text of two tokens or more, got ${ids.length}`);
    return new ChatTranscript(this, undefined, ids);
  }

  openMessages(messages: readonly Message[]): Transcript {
    const escaped = messages.map(({ role, content }) => ({ role, content: this.#breakControlTokens(content) }));
    const rendered = this.#options.template.render(escaped, { addGenerationPrompt: true });
    return new ChatTranscript(this, undefined, this.#encode(rendered));
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

  decode(ids: Iterable<number>): string {
    return this.#options.tokenizer.decode([...ids], { special: false });
  }

  ends(run: readonly number[]): boolean {
    return run.length > 0 && this.#ends.has(run.at(-1)!);
  }

  answer(run: readonly number[]): Answer {
    const ended = this.ends(run);
    const text = this.decode(this.#ends.has(run.at(-1)!) ? run.slice(0, -1) : run);
    const parsed = this.#format.parse(text, this.#options.world);
    if ('action' in parsed) return { action: parsed.action, text };
    return { action: '', text, formatError: `${parsed.error}${ended ? '' : ' The answer was cut off: be shorter.'}` };
  }

  /** Ids of a whole conversation up to the position that decides. */
  render(questions: readonly string[], answers: readonly string[]): number[] {
    const { template, system } = this.#options;
    const messages: ChatMessage[] = system === undefined ? [] : [{ role: 'system', content: system }];
    messages.push({ role: 'user', content: this.#start }, { role: 'assistant', content: ACKNOWLEDGEMENT });
    for (const [i, question] of questions.entries()) {
      messages.push({ role: 'user', content: this.#breakControlTokens(question) });
      const answer = answers[i];
      if (answer !== undefined) messages.push({ role: 'assistant', content: this.#breakControlTokens(answer) });
    }
    return this.#encode(template.render(messages, { addGenerationPrompt: true }));
  }

  /** Ids between an answer and the next one; `undefined` where the template does not let an episode grow. */
  joint(question: string): number[] | undefined {
    const { before, after } = this.#joint ?? {};
    return before === undefined ? undefined : this.#encode(before + this.#breakControlTokens(question) + after);
  }

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

  #breakControlTokens(text: string): string {
    return text.replaceAll(BREAK, '').replace(this.#special, (token) => `${token[0]}${BREAK}${token.slice(1)}`);
  }

  /**
   * Encodes a rendering: special tokens become themselves, and the text between two of them is encoded at once, as the
   * template's own text is.
   */
  #encode(text: string): number[] {
    return encodeParts(text, this.#options.tokenizer, this.#special);
  }
}

class ChatTranscript implements Transcript {
  prompt!: Prompt;
  tokens: number[] = [];
  readonly table: string[] = [];
  readonly #codec: ChatCodec;
  /** Questions that the model was asked, and its answers to all but the last. */
  readonly #questions: string[] = [];
  readonly #answers: string[] = [];
  /** Run of ids sampled since the last question. */
  #run: number[] = [];
  #unread: number[] = [];

  constructor(codec: ChatCodec, first: Observed | undefined, ids?: readonly number[]) {
    this.#codec = codec;
    if (!first) {
      this.#begin(ids!, true);
      return;
    }
    for (const text of first.newActions) this.table.push(text);
    this.#questions.push(codec.formatQuestion(first, this.table, undefined));
    this.#begin(codec.render(this.#questions, []), true);
  }

  candidate(action: string): string {
    return action;
  }

  takeContext(): Int32Array {
    const context = Int32Array.from(this.#unread);
    this.#unread = [];
    return context;
  }

  /** One by one: what is spread over a call's arguments may not be long. */
  #read(ids: readonly number[]): void {
    for (const id of ids) {
      this.tokens.push(id);
      this.#unread.push(id);
    }
  }

  write(ids: Iterable<number>): void {
    for (const id of ids) {
      this.tokens.push(id);
      this.#run.push(id);
    }
  }

  observe(action: string, observed: Observed): void {
    const run = this.#run;
    this.#run = [];
    for (const text of observed.newActions) this.table.push(text);
    // An answer that was not sampled here (of a demonstration, or lost in a restart) is its action.
    const sampled = run.length > 0 ? this.#codec.answer(run) : undefined;
    const answer = sampled?.text ?? this.#codec.decode(this.#codec.spell(action));
    if (run.length === 0) {
      const spelt = [...this.#codec.spell(action), this.#codec.end];
      this.#read(spelt);
    }
    this.#answers.push(answer);
    this.#questions.push(this.#codec.formatQuestion(observed, this.table, sampled?.formatError));
    const joint = this.#codec.joint(this.#questions.at(-1)!);
    if (joint) {
      // An answer that was cut off is ended for it; that end is given, not sampled.
      if (run.length > 0 && !this.#codec.isEnd(run.at(-1))) joint.unshift(this.#codec.end);
      if (this.#codec.fits(this.prompt.tokens.length + this.tokens.length + joint.length)) {
        this.#read(joint);
        return;
      }
    }
    this.#renew();
  }

  /**
   * Renews the conversation, rendered from the start: the first turn, and as many of the newest as leave room for an
   * answer.
   */
  #renew(): void {
    const turns = this.#answers.length;
    for (let from = 1; from <= turns; from++) {
      const kept = [0, ...Array.from({ length: turns - from }, (_, i) => from + i)];
      const questions = [...kept.map((turn) => this.#questions[turn]!), this.#questions.at(-1)!];
      const ids = this.#codec.render(
        questions,
        kept.map((turn) => this.#answers[turn]!),
      );
      if (!this.#codec.fits(ids.length) && from < turns) continue;
      this.#begin(ids, false);
      return;
    }
  }

  #begin(ids: readonly number[], shared: boolean): void {
    const { prompt, tokens } = this.#codec.divide(ids);
    this.prompt = { tokens: Int32Array.from(prompt), shared, focus: NO_FOCUS, mentions: () => NOWHERE };
    this.tokens = tokens;
    this.#unread = [...prompt, ...tokens];
  }
}

const NO_FOCUS: ReadonlySet<number> = new Set();
const NOWHERE: readonly number[] = [0];

function specialPattern(tokenizer: BpeTokenizer): RegExp {
  const texts = [...tokenizer.special.keys()].sort((a, b) => b.length - a.length);
  const source = texts.map((text) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|');
  return new RegExp(source === '' ? '(?!)' : source, 'g');
}

function encodeParts(text: string, tokenizer: BpeTokenizer, special: RegExp): number[] {
  const ids: number[] = [];
  let at = 0;
  const plain = (part: string) => {
    for (const id of tokenizer.encodePlain(part.replaceAll(BREAK, ''))) ids.push(id);
  };
  for (const match of text.matchAll(special)) {
    plain(text.slice(at, match.index));
    ids.push(tokenizer.special.get(match[0])!);
    at = match.index + match[0].length;
  }
  plain(text.slice(at));
  return ids;
}

/**
 * Joint of a template: how it goes on after an answer, found by rendering a probe and cutting. It exists where what is
 * rendered of two turns begins with what is rendered of one, reasoning included.
 */
function jointOf(
  template: ChatTemplate,
  tokenizer: BpeTokenizer,
  format: PromptFormat,
  world: WorldPrompt,
  special: RegExp,
): { readonly end: number; readonly joint: { readonly before: string; readonly after: string } | undefined } {
  const refuse = (why: string): never => {
    throw new UserError('BAD_CHECKPOINT', `the model's chat template cannot be used: ${why}`);
  };
  const question = 'PROBE QUESTION';
  const answer = format.print('PROBE THOUGHT', 'PROBE ACTION', world);
  const one: ChatMessage[] = [{ role: 'user', content: question }];
  const opened = template.render(one, { addGenerationPrompt: true });
  const plainly = template.render([...one, { role: 'assistant', content: 'PROBE ACTION' }]);
  const after = plainly.slice(plainly.lastIndexOf('PROBE ACTION') + 'PROBE ACTION'.length);
  const [ending] = after.match(special) ?? [];
  if (ending === undefined || !after.startsWith(ending)) {
    return refuse(`an answer is not followed by a special token, but by ${JSON.stringify(after.slice(0, 40))}`);
  }
  const end = tokenizer.special.get(ending)!;
  const more = [...one, { role: 'assistant', content: answer }, { role: 'user', content: 'SECOND QUESTION' }];
  const rendered = template.render(more, { addGenerationPrompt: true });
  const expected = opened + answer + ending;
  if (!rendered.startsWith(expected)) return { end, joint: undefined };
  const [before, rest, ...others] = rendered.slice(expected.length).split('SECOND QUESTION');
  return others.length > 0 || rest === undefined
    ? { end, joint: undefined }
    : { end, joint: { before: before!, after: rest } };
}
