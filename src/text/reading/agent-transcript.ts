/**
 * Transcript of an agent program's episode. Its calls form a tree: each continues the reply to an earlier one, or begins a
 * conversation. Token ids are kept per call, and a sampled reply is never rendered again.
 *
 * A call that continues the newest reply appends what is new: an end for a reply that was cut off, and the template's tail.
 * Any other call begins a new prompt. Of a branch that is the ids up to its parent's reply and the tail, of a root
 * the whole rendering. So each reply is trained once, under the ids that it was sampled under, and what a branch
 * shares with another is its context.
 *
 * Templates that leave the reasoning out of earlier turns do not here: the policy reads on what it has written.
 */
import {
  type AgentCall,
  type AgentReply,
  createReplyMessage,
  readAgentCall,
  readAgentReply,
} from '../../core/agent-call.ts';
import { messageOf } from '../../core/errors.ts';
import type { AssistantMessage, ConversationMessage, Tool } from '../../core/model-call.ts';
import type { AnswerLimits, Observed, Prompt, Refusal, Transcript } from './transcript.ts';

/** Reading of an agent's conversations as token ids: what a transcript needs of its codec. */
export interface AgentReading {
  /** Renders a whole conversation, up to the position that decides. @throws {RangeError} where the template refuses it */
  render(messages: readonly ConversationMessage[], tools: readonly Tool[]): number[];
  /** Renders what follows the end of a reply. @throws {RangeError} where the template refuses it */
  renderTail(reply: AssistantMessage, fresh: readonly ConversationMessage[], tools: readonly Tool[]): number[];
  /** Id that ends a reply which others follow. */
  readonly turnEnd: number;
  /** True when a run ends with an end token. */
  ends(run: readonly number[]): boolean;
  /** Ids of a reply that was not sampled here, without its end. */
  spell(action: string): Int32Array;
  /** Reads a run as the reply to a call. @param promptTokens length of its prompt */
  readReply(run: readonly number[], turn: AgentTurn, promptTokens: number): ReadReply;
  /** Limits of the reply to a call; undefined where it sets none. @throws {RangeError} where replies cannot be held to them */
  limitsOf(turn: AgentTurn): AnswerLimits | undefined;
  /** Refusal of a prompt that leaves no room for a reply. */
  refuseLength(tokens: number): Refusal | undefined;
}

/** Limits of a reply that has none: what a choosing policy is offered is nothing to write. */
const FREE: AnswerLimits = {};

/** Reply as it was read. */
export interface ReadReply {
  readonly reply: AgentReply;
  /** Reason why a call in it could not be read; it is text then. */
  readonly malformed?: string | undefined;
}

/** Call, with the tools of its conversation. */
export interface AgentTurn {
  readonly call: AgentCall;
  readonly tools: readonly Tool[];
}

/** Ids under one prompt. */
interface Stretch {
  readonly prompt: Prompt;
  readonly tokens: number[];
}

/** Call that was answered. */
interface Answered {
  readonly tools: readonly Tool[];
  readonly reply: AgentReply;
  readonly stretch: Stretch;
  /** Number of the stretch's tokens up to the end of the reply. */
  readonly length: number;
  /** False for a reply that was cut off. */
  readonly isEnded: boolean;
}

const NO_FOCUS: ReadonlySet<number> = new Set();
const NOWHERE: readonly number[] = [0];

/** Transcript of one episode. */
export class AgentTranscript implements Transcript {
  readonly table: string[] = [];
  refusal: Refusal | undefined;
  limits: AnswerLimits | undefined;
  readonly #reading: AgentReading;
  /** Calls that were answered, by number. */
  readonly #answered = new Map<number, Answered>();
  #turn: AgentTurn | undefined;
  /** Texts that end replies, besides those that a call names. */
  readonly #stop: readonly string[];
  /** Tokens up to the position that decides on the present reply. */
  #asked = 0;
  #stretch!: Stretch;
  #run: number[] = [];
  #unread: number[] = [];

  /** @param first observation; absent for a text whose ids are given, at least two */
  constructor(reading: AgentReading, first: Observed | undefined, ids?: readonly number[]) {
    this.#reading = reading;
    this.#stop = first?.stop ?? [];
    if (ids) this.#begin(ids, true);
    else this.#take(first!.observation);
  }

  get prompt(): Prompt {
    return this.#stretch.prompt;
  }

  get tokens(): readonly number[] {
    return this.#stretch.tokens;
  }

  candidate(action: string): string {
    return action;
  }

  takeContext(): Int32Array {
    const context = Int32Array.from(this.#unread);
    this.#unread = [];
    return context;
  }

  write(ids: Iterable<number>): void {
    for (const id of ids) {
      this.#stretch.tokens.push(id);
      this.#run.push(id);
    }
  }

  /** Reads a run as the reply to the present call, whether it has been written here or not. */
  readReply(run: readonly number[]): ReadReply | undefined {
    return this.#turn && this.#reading.readReply(run, this.#turn, this.#asked);
  }

  /** Reads the next call; an observation that is no JSON object ends the episode, and nothing of it is read. */
  observe(action: string, { observation }: Observed): void {
    if (this.#turn) this.#finish(action, this.#turn);
    this.#take(observation);
  }

  /** Keeps the reply to a call. A reply that was not sampled here is spelt out, as context. */
  #finish(action: string, { call, tools }: AgentTurn): void {
    const run = this.#run;
    this.#run = [];
    const reading = this.#reading;
    const isSampled = run.length > 0;
    if (!isSampled) this.#read(reading.spell(action));
    this.#answered.set(call.call, {
      tools,
      reply: isSampled ? reading.readReply(run, { call, tools }, 0).reply : readAgentReply(action),
      stretch: this.#stretch,
      length: this.tokens.length,
      isEnded: isSampled && reading.ends(run),
    });
  }

  /** Takes the call of an observation. */
  #take(observation: string): void {
    this.#turn = undefined;
    this.limits = undefined;
    try {
      if (observation.trimStart().startsWith('{')) this.#ask(readAgentCall(observation));
      else if (!this.#stretch) throw new RangeError('agent call: the first observation is none');
    } catch (thrown) {
      if (!(thrown instanceof RangeError)) throw thrown;
      this.refusal = { message: messageOf(thrown) };
      if (!this.#stretch) this.#begin([this.#reading.turnEnd, this.#reading.turnEnd], false);
    }
  }

  #ask(call: AgentCall): void {
    const parent = call.parent === null ? undefined : this.#answered.get(call.parent);
    if (call.parent !== null && !parent) throw new RangeError(`agent call: its parent ${call.parent} was not answered`);
    const tools = call.tools ?? parent?.tools ?? [];
    const turn = {
      call: this.#stop.length === 0 ? call : { ...call, stop: [...(call.stop ?? []), ...this.#stop] },
      tools,
    };
    if (parent) this.#continue(parent, call, tools);
    else this.#begin(this.#reading.render(call.messages, tools), this.#stretch === undefined);
    this.#turn = turn;
    this.#asked = this.prompt.tokens.length + this.tokens.length;
    this.refusal = this.#reading.refuseLength(this.#asked);
    this.limits = this.#reading.limitsOf(turn) ?? FREE;
  }

  #continue(parent: Answered, call: AgentCall, tools: readonly Tool[]): void {
    const reply = createReplyMessage(parent.reply, call.parent!, call.messages);
    const tail = this.#reading.renderTail(reply, call.messages, tools);
    if (!parent.isEnded) tail.unshift(this.#reading.turnEnd);
    const { stretch, length } = parent;
    if (stretch === this.#stretch && length === this.tokens.length) this.#read(tail);
    else this.#begin([...stretch.prompt.tokens, ...stretch.tokens.slice(0, length), ...tail], false);
  }

  /** One by one: what is spread over a call's arguments may not be long. */
  #read(ids: Iterable<number>): void {
    for (const id of ids) {
      this.#stretch.tokens.push(id);
      this.#unread.push(id);
    }
  }

  /** Begins a prompt. @param shared true for the first one of an episode, which others of its group may have too */
  #begin(ids: readonly number[], shared: boolean): void {
    const prompt = { tokens: Int32Array.from(ids.slice(0, -1)), shared, focus: NO_FOCUS, mentions: () => NOWHERE };
    this.#stretch = { prompt, tokens: ids.slice(-1) };
    this.#unread = [...ids];
  }
}
