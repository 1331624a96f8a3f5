/**
 * Codec of agent programs whose model is a language model: an observation is a call (`core/agent-call.ts`), rendered by the
 * model's chat template; the action is the reply, with calls of tools as the model's format writes them.
 */
import { createHash } from 'node:crypto';
import { type AgentCall, printAgentReply, readAgentCall, readAgentReply } from '../../core/agent-call.ts';
import { UserError } from '../../core/errors.ts';
import type { AssistantMessage, ConversationMessage, Tool } from '../../core/model-call.ts';
import { checkCall } from '../../core/tool-counts.ts';
import { Grammar, type Node } from '../grammar/grammar.ts';
import { replyNode } from '../grammar/reply-grammar.ts';
import { TokenGrammar, Vocabulary } from '../grammar/token-mask.ts';
import type { ChatTemplate } from '../templates/chat-template.ts';
import { openText } from '../templates/model-text.ts';
import type { BpeTokenizer } from '../templates/tokenizer.ts';
import { type ParsedReply, splitReasoning, type WrittenCall } from '../tools/tool-format.ts';
import { AgentTemplate } from './agent-template.ts';
import { type AgentReading, AgentTranscript, type AgentTurn, type ReadReply } from './agent-transcript.ts';
import { exceedsTokens } from './chat-codec.ts';
import type { Answer, Codec } from './codec.ts';
import { ControlTokens } from './control-tokens.ts';
import { cutAtStop, stopWindow } from './stop-texts.ts';
import type { AnswerLimits, Observed, Refusal, Transcript } from './transcript.ts';

export interface AgentCodecOptions {
  readonly tokenizer: BpeTokenizer;
  readonly template: ChatTemplate;
  /** Ids that end an answer, by the model's generation config. */
  readonly endTokens: readonly number[];
  /** Ids the model has; more than the tokenizer's in many models. */
  readonly vocabSize: number;
  /** Longest sequence, in tokens. */
  readonly contextTokens: number;
}

/**
 * Opens a codec.
 * @param folder of the model
 * @throws {UserError} BAD_CHECKPOINT for a folder without a usable tokenizer or template
 */
export function openAgentCodec(folder: string, options: Omit<AgentCodecOptions, 'tokenizer' | 'template'>): AgentCodec {
  const { tokenizer, template } = openText(folder, true);
  if (template) return new AgentCodec({ ...options, tokenizer, template });
  throw new UserError('BAD_CHECKPOINT', `${folder}: it has no chat template; use an instruct model`);
}

/** Texts that open and close reasoning: a decoder keeps them. */
const THOUGHTS = ['<think>', '</think>', '[THINK]', '[/THINK]'];

/** Grammars kept; a program asks for the same forms over and over. */
const MAX_GRAMMARS = 16;

export class AgentCodec implements Codec, AgentReading {
  readonly id: string;
  readonly hash: string;
  readonly vocabSize: number;
  readonly sampled: { readonly from: number; readonly to: number };
  readonly rendersAnew = false;
  readonly end: number;
  readonly turnEnd: number;
  readonly #options: AgentCodecOptions;
  readonly #template: AgentTemplate;
  readonly #ends: ReadonlySet<number>;
  /** Special tokens that are left out of a reply's text. */
  readonly #dropped: ReadonlySet<number>;
  /** Grammars of replies, by what was asked for. */
  readonly #grammars = new Map<string, TokenGrammar>();
  #vocabulary: Vocabulary | undefined;

  /** @throws {UserError} BAD_CHECKPOINT for a template without an end of turns that the tokenizer has as one token */
  constructor(options: AgentCodecOptions) {
    const { tokenizer, template, endTokens, vocabSize } = options;
    this.#options = options;
    const textOf = new Map([...tokenizer.special].map(([text, id]) => [id, text]));
    const endTexts = endTokens.flatMap((id) => textOf.get(id) ?? []);
    this.#template = new AgentTemplate(template, new ControlTokens(tokenizer), endTexts);
    const { format, isNative, end, turnEnd } = this.#template;
    this.end = end;
    this.turnEnd = turnEnd;
    this.#ends = new Set([end, ...endTokens]);
    const kept = new Set([...format.markers, ...THOUGHTS]);
    this.#dropped = new Set([...tokenizer.special].filter(([text]) => !kept.has(text)).map(([, id]) => id));
    this.vocabSize = vocabSize;
    this.sampled = { from: 0, to: vocabSize };
    this.id = `agent/${isNative ? format.id : 'plain'}/1`;
    this.hash = createHash('sha256')
      .update(JSON.stringify([tokenizer.fingerprint, template.text, this.id, vocabSize]))
      .digest('hex');
  }

  open(first: Observed): Transcript {
    return new AgentTranscript(this, first);
  }

  exceeds(text: string, tokens: number): boolean {
    return exceedsTokens(this.#options.tokenizer, text, tokens);
  }

  openText(text: string): Transcript {
    const ids = this.#options.tokenizer.encode(text);
    if (ids.length < 2) throw new RangeError(`agent: expected a text of two tokens or more, got ${ids.length}`);
    return new AgentTranscript(this, undefined, ids);
  }

  divide(ids: readonly number[], promptLength = ids.length - 1) {
    if (ids.length < 2) throw new RangeError(`agent: expected two token ids or more, got ${ids.length}`);
    const at = Math.min(Math.max(1, promptLength), ids.length - 1);
    return { prompt: ids.slice(0, at), tokens: ids.slice(at) };
  }

  /** Ids of a reply, printed as JSON, as the model would write it; its reasoning as far as the template renders some. */
  spell(action: string): Int32Array {
    return Int32Array.from(this.#template.spell(readAgentReply(action)));
  }

  decode(ids: Iterable<number>): string {
    return this.#options.tokenizer.decode([...ids], { special: false });
  }

  ends(run: readonly number[]): boolean {
    return run.length > 0 && this.#ends.has(run.at(-1)!);
  }

  answer(run: readonly number[], transcript?: Transcript): Answer {
    const text = this.#textOf(run);
    const read = transcript instanceof AgentTranscript ? transcript.readReply(run) : undefined;
    if (!read) return { action: text, text };
    const { reply, malformed } = read;
    return { action: printAgentReply(reply), text, ...(malformed === undefined ? {} : { formatError: malformed }) };
  }

  readReply(run: readonly number[], { call, tools }: AgentTurn, promptTokens: number): ReadReply {
    const whole = this.#textOf(run);
    const { text, isStopped } = cutAtStop(whole, call.stop ?? []);
    const isEnded = this.ends(run) || isStopped;
    const parsed = this.#parse(text, call, tools, !isEnded);
    const { content, reasoning, calls, repairs, malformed } = parsed;
    const isDone = isEnded || (call.parallelCalls === false && calls.length > 0);
    const finish = isDone ? (calls.length > 0 ? 'calls' : 'stop') : 'length';
    const usage = { promptTokens, completionTokens: run.length };
    const rest = { ...(reasoning === undefined ? {} : { reasoning }), ...(repairs.length === 0 ? {} : { repairs }) };
    return { reply: { content, calls, finish, usage, ...rest }, malformed };
  }

  limitsOf({ call, tools }: AgentTurn): AnswerLimits | undefined {
    const { maxTokens, stop = [], parallelCalls = true } = call;
    const grammar = this.#grammarOf(call, tools);
    const held = { maxTokens, ...(grammar ? { mask: () => grammar.begin() } : {}) };
    if (stop.length === 0 && parallelCalls) return maxTokens === undefined && !grammar ? undefined : held;
    const window = stopWindow(stop);
    return {
      ...held,
      ends: (run) => {
        const newest = this.#textOf(run.slice(-window));
        if (stop.some((text) => newest.includes(text))) return true;
        // Every format closes a call by one of these.
        return (
          !parallelCalls && /[}>)\]]/.test(newest) && this.#parse(this.#textOf(run), call, tools, true).calls.length > 0
        );
      },
    };
  }

  /** Limits of the reply to a call that begins a conversation, as it was printed. @throws {RangeError} */
  limitsOfCall(text: string): AnswerLimits | undefined {
    const call = readAgentCall(text);
    return this.limitsOf({ call, tools: call.tools ?? [] });
  }

  /** Grammar of the reply to a call; undefined where it is free. @throws {RangeError} where it cannot be held to one */
  #grammarOf(call: AgentCall, tools: readonly Tool[]): TokenGrammar | undefined {
    const { toolChoice = 'auto', parallelCalls, format: answer } = call;
    const isStrict = toolChoice === 'auto' && tools.some(({ strict }) => strict);
    if ((toolChoice === 'auto' || toolChoice === 'none') && !answer && !isStrict) return undefined;
    const key = JSON.stringify([toolChoice, parallelCalls, answer, tools]);
    const known = this.#grammars.get(key);
    if (known) return known;
    const { format, opensThought } = this.#template;
    const thought = opensThought ? 'opened' : this.#options.template.text.includes('<think>') ? 'optional' : 'none';
    let node: Node | undefined;
    try {
      node = replyNode(call, tools, format, thought);
    } catch (thrown) {
      // Calls that cannot be held to their schemas as they are written are checked once they are read.
      if (!isStrict || answer || !(thrown instanceof RangeError)) throw thrown;
    }
    if (!node) return undefined;
    const grammar = new TokenGrammar(new Grammar(node), this.#vocabularyOf());
    if (grammar.begin().allowed().length === 0) throw new RangeError('the call asks for a reply that no text can be');
    if (this.#grammars.size >= MAX_GRAMMARS) this.#grammars.clear();
    this.#grammars.set(key, grammar);
    return grammar;
  }

  #vocabularyOf(): Vocabulary {
    if (!this.#vocabulary) {
      const bytes = this.#options.tokenizer.bytesOfTokens();
      if (!bytes) throw new RangeError('replies cannot be held to a form: the bytes of this tokenizer are not known');
      const isText = (id: number) => id < this.vocabSize && !this.#dropped.has(id) && !this.#ends.has(id);
      const texts = bytes.map((token, id) => (isText(id) ? token : undefined));
      this.#vocabulary = new Vocabulary(texts, this.#ends);
    }
    return this.#vocabulary;
  }

  refuseLength(tokens: number): Refusal | undefined {
    const { contextTokens } = this.#options;
    if (tokens < contextTokens) return undefined;
    const message = `the call is ${tokens} tokens long, which leaves no room for a reply in ${contextTokens} (policy.chat.contextTokens)`;
    return { message, ends: true };
  }

  /** Text of a run without its end; tokens of the format and of reasoning are kept. */
  #textOf(run: readonly number[]): string {
    const ids = (this.ends(run) ? run.slice(0, -1) : run).filter((id) => !this.#dropped.has(id));
    return this.#options.tokenizer.decode(ids);
  }

  #parse(text: string, { toolChoice, parallelCalls }: AgentCall, tools: readonly Tool[], isCut: boolean): ParsedReply {
    const { format, opensThought } = this.#template;
    const parsed = format.parse(opensThought ? `<think>${text}` : text, tools, isCut);
    if (toolChoice === 'none' || tools.length === 0) {
      // Nothing in it is a call.
      if (parsed.calls.length === 0 && parsed.malformed === undefined) return parsed;
      const { body } = splitReasoning(opensThought ? `<think>${text}` : text);
      return { ...parsed, content: body, calls: [], repairs: [], malformed: undefined };
    }
    const calls = parallelCalls === false ? parsed.calls.slice(0, 1) : parsed.calls;
    const unfit = calls.find((one) => isUnfit(one, tools));
    if (!unfit) return parallelCalls === false ? { ...parsed, calls } : parsed;
    const malformed = `the arguments of ${unfit.name}, a strict tool, do not fit its schema`;
    const { body } = splitReasoning(opensThought ? `<think>${text}` : text);
    return { ...parsed, content: body, calls: [], repairs: [], malformed };
  }

  /** Tokens of the shortest prompt: a message of nothing. */
  get shortestPrompt(): number {
    return this.render([{ role: 'user', content: '' }], []).length;
  }

  render(messages: readonly ConversationMessage[], tools: readonly Tool[]): number[] {
    return this.#template.render(messages, tools);
  }

  renderTail(reply: AssistantMessage, fresh: readonly ConversationMessage[], tools: readonly Tool[]): number[] {
    return this.#template.renderTail(reply, fresh, tools);
  }
}

/** True for a call of a strict tool that its schema does not allow. */
function isUnfit(call: WrittenCall, tools: readonly Tool[]): boolean {
  return tools.some(({ name, strict }) => strict && name === call.name) && checkCall(call, tools) !== 'valid';
}
