/**
 * Conversations with tools under a model's chat template: whole ones as token ids, and what follows a reply (the tail).
 * What a template can do is found by rendering probes. A template without tools, or one whose calls could not be read
 * back, gets them in plain messages.
 *
 * The tail is found by rendering a short conversation that ends as the real one does. Its assistant's turn carries a mark
 * that no foreign text can hold; the tail begins behind the token that ends that turn. So a call costs what is new in it,
 * however long the conversation is, and earlier turns are never rendered again.
 */
import { createHash } from 'node:crypto';
import type { AgentReply } from '../../core/agent-call.ts';
import { messageOf, UserError } from '../../core/errors.ts';
import { largestOf, smallestOf } from '../../core/extremes.ts';
import { parseJson } from '../../core/json-text.ts';
import type { AssistantMessage, ConversationMessage, Tool } from '../../core/model-call.ts';
import { isRecord } from '../../core/record.ts';
import type { ChatMessage, ChatTemplate, RenderOptions } from '../templates/chat-template.ts';
import { formatOf } from '../tools/formats.ts';
import { hermes } from '../tools/hermes.ts';
import { printJson } from '../tools/literal.ts';
import { printChatTool, renderPlainTools } from '../tools/plain-tools.ts';
import type { ToolFormat } from '../tools/tool-format.ts';
import { BREAK, type ControlTokens } from './control-tokens.ts';

/** Mark of a turn; `ControlTokens.breakUp` takes it out of every foreign text. */
const MARK = `A${BREAK}${BREAK}`;
const QUESTION = { role: 'user', content: 'PROBE QUESTION' } as const;
const PROBE_TOOL: Tool = {
  name: 'probe_tool',
  description: 'A probe.',
  parameters: { type: 'object', properties: { probe_key: { type: 'string' } }, required: ['probe_key'] },
};

/** Properties of a template, found by probes. */
interface Abilities {
  /** True where it renders tools, calls and results by itself. */
  readonly isNative: boolean;
  /** True where arguments are given as objects; false as JSON text. */
  readonly takesObjects: boolean;
  /** True where one turn may have several calls. */
  readonly isParallel: boolean;
  /** True where ids of calls must be of nine letters and digits. */
  readonly shortensIds: boolean;
}

const PLAIN: Abilities = { isNative: false, takesObjects: true, isParallel: true, shortensIds: false };

/** Chat template of a model, with tools. */
export class AgentTemplate {
  /** Format in which the model writes calls. */
  readonly format: ToolFormat;
  /** True where the template itself renders tools. */
  readonly isNative: boolean;
  /** Token id that ends the last turn of a rendering. */
  readonly end: number;
  /** Token id that ends a reply which others follow; mostly the same. */
  readonly turnEnd: number;
  /** True where the template itself opens the thought of each reply. */
  readonly opensThought: boolean;
  readonly #template: ChatTemplate;
  readonly #controls: ControlTokens;
  readonly #abilities: Abilities;
  /** Texts of the tokens that end a turn. */
  readonly #ends: readonly string[];
  /** Texts before and behind the reasoning of a turn; undefined where the template renders none. */
  readonly #thought: readonly [before: string, behind: string] | undefined;

  /**
   * @param endTexts texts of the tokens that end an answer, by the model's generation config
   * @throws {UserError} BAD_CHECKPOINT for a template without an end of turns that the tokenizer has as one token
   */
  constructor(template: ChatTemplate, controls: ControlTokens, endTexts: readonly string[]) {
    this.#template = template;
    this.#controls = controls;
    const marked: ChatMessage = { role: 'assistant', content: MARK };
    const end = this.#endOf([QUESTION, marked]);
    const turnEnd = this.#endOf([QUESTION, marked, QUESTION]);
    this.end = controls.idOf(end);
    this.turnEnd = controls.idOf(turnEnd);
    this.#ends = [...new Set([end, turnEnd, ...endTexts])];
    this.opensThought = /<think>\s*$/.test(template.render([{ ...QUESTION }], { addGenerationPrompt: true }));
    const format = formatOf(template.text);
    this.#abilities = format ? this.#probe(format) : PLAIN;
    this.isNative = this.#abilities.isNative;
    this.format = this.isNative ? format! : hermes;
    this.#thought = this.#probeThought();
  }

  /** Renders a whole conversation, up to the position that decides. @throws {RangeError} where the template refuses it */
  render(messages: readonly ConversationMessage[], tools: readonly Tool[]): number[] {
    return this.#controls.encode(this.#render(this.#breakUp(messages), tools));
  }

  /**
   * Renders what follows a reply, up to the next position that decides.
   * @param reply as it was written; only what it calls matters
   * @param fresh messages behind it
   * @returns the ids behind the token that ends the reply
   * @throws {RangeError} where the template refuses the messages
   */
  renderTail(reply: AssistantMessage, fresh: readonly ConversationMessage[], tools: readonly Tool[]): number[] {
    const { calls: written = [] } = reply;
    // Where a turn has one call at most, one stands for all: the reply is whole, and all results are behind it.
    const shown = this.#abilities.isParallel ? written : written.slice(-1);
    const calls = shown.map((call) => ({ ...call, arguments: JSON.stringify({ probe_key: MARK }) }));
    // Where there are calls they are what is marked: some templates write the content behind their results.
    const marked: AssistantMessage = { role: 'assistant', content: calls.length === 0 ? MARK : '', calls };
    const rendered = this.#render([QUESTION, marked, ...this.#breakUp(fresh)], tools);
    const tail = this.#behindMark(rendered);
    if (tail === undefined) throw new RangeError("the chat template renders no end of the assistant's turn");
    return this.#controls.encode(tail);
  }

  /**
   * Encodes a reply as the model would write it, without its end. Its reasoning is written as the template renders it; it is left out
   * where the template renders none, or none that is read back from a reply.
   */
  spell({ content, reasoning, calls }: Pick<AgentReply, 'content' | 'reasoning' | 'calls'>): number[] {
    const reply: AssistantMessage = { role: 'assistant', content, calls: calls.map((call) => ({ ...call, id: '' })) };
    const [broken] = this.#breakUp([reasoning ? { ...reply, reasoning } : reply]) as [AssistantMessage];
    const printed = this.format.print(broken.content, broken.calls ?? []);
    if (this.#thought && broken.reasoning) {
      const [before, behind] = this.#thought;
      return this.#controls.encode(before + broken.reasoning + behind + printed);
    }
    return this.#controls.encode(this.opensThought ? `\n</think>\n\n${printed}` : printed);
  }

  /** Finds what the template writes around the reasoning of the newest turn, by a probe that the format reads back. */
  #probeThought(): readonly [string, string] | undefined {
    const [thought, answer] = ['PROBE THOUGHT', 'PROBE ANSWER'];
    const reply: AssistantMessage = { role: 'assistant', content: answer, reasoning: thought };
    let opened: string;
    let rendered: string;
    try {
      opened = this.#renderAs(this.#abilities, [QUESTION], [], true);
      rendered = this.#renderAs(this.#abilities, [QUESTION, reply], [], false);
    } catch {
      return undefined; // the template refuses it
    }
    const at = rendered.indexOf(thought);
    const answered = rendered.indexOf(answer, at);
    if (!rendered.startsWith(opened) || at < opened.length || answered < 0) return undefined;
    const before = rendered.slice(opened.length, at);
    const behind = rendered.slice(at + thought.length, answered);
    const written = before + thought + behind + answer;
    const read = this.format.parse(this.opensThought ? `<think>${written}` : written, [], false);
    return read.reasoning === thought && read.content === answer ? [before, behind] : undefined;
  }

  /** Breaks up control tokens in every text of foreign messages. */
  #breakUp(messages: readonly ConversationMessage[]): ConversationMessage[] {
    const broken = (text: string) => this.#controls.breakUp(text);
    return messages.map((message): ConversationMessage => {
      const content = broken(message.content);
      if (message.role === 'tool') return { ...message, content, callId: broken(message.callId) };
      if (message.role !== 'assistant') return { ...message, content };
      const { reasoning, calls = [] } = message;
      return {
        ...{ role: 'assistant', content },
        ...(reasoning === undefined ? {} : { reasoning: broken(reasoning) }),
        calls: calls.map(({ id, name, arguments: args }) => ({
          id: broken(id),
          name: broken(name),
          arguments: printJson(mapTexts(objectOf(args), broken)),
        })),
      };
    });
  }

  /** Text of the token that ends the marked turn. */
  #endOf(messages: readonly ChatMessage[]): string {
    const rendered = this.#template.render(messages);
    const end = this.#controls.findFirst(rendered.slice(rendered.lastIndexOf(MARK) + MARK.length));
    if (end !== undefined && rendered.includes(MARK)) return end;
    throw new UserError(
      'BAD_CHECKPOINT',
      "the model's chat template cannot be used: an answer is not followed by a special token",
    );
  }

  /** Text behind the token that ends the marked turn; undefined where there is none. */
  #behindMark(rendered: string): string | undefined {
    const mark = rendered.lastIndexOf(MARK);
    if (mark < 0) return undefined;
    let first = Number.POSITIVE_INFINITY;
    let behind = 0;
    for (const end of this.#ends) {
      const at = rendered.indexOf(end, mark + MARK.length);
      if (at < 0 || at >= first) continue;
      first = at;
      behind = at + end.length;
    }
    return behind === 0 ? undefined : rendered.slice(behind);
  }

  /** Text of the turn that holds the probe's argument, as the model would have written it. */
  #turnOf(called: string, opened: string): string {
    const argument = called.indexOf('PROBE ARGUMENT');
    const before = this.#ends.map((end) => called.lastIndexOf(end, argument) + end.length);
    const from = called.startsWith(opened) ? opened.length : largestOf(before);
    const behind = this.#ends.map((end) => called.indexOf(end, argument)).filter((at) => at >= 0);
    return called.slice(from, smallestOf(behind, called.length));
  }

  /**
   * Tries the template with tools. It is native where it shows a tool, a call of it and the result, where the format reads
   * that call back, and where the result lies behind the end of the turn.
   */
  #probe(format: ToolFormat): Abilities {
    const call = { id: 'call_0_0', name: PROBE_TOOL.name, arguments: '{"probe_key": "PROBE ARGUMENT"}' };
    const result: ConversationMessage = { role: 'tool', callId: call.id, content: 'PROBE RESULT' };
    const other: ConversationMessage = { role: 'tool', callId: 'call_0_1', content: 'OTHER RESULT' };
    const calling: AssistantMessage = { role: 'assistant', content: '', calls: [call] };
    for (const takesObjects of [true, false]) {
      const abilities = {
        isNative: true,
        takesObjects,
        isParallel: true,
        shortensIds: format.id.startsWith('mistral'),
      };
      const render = (messages: readonly ConversationMessage[], opens = false) => {
        try {
          return this.#renderAs(abilities, messages, [PROBE_TOOL], opens);
        } catch {
          return ''; // the template refuses it
        }
      };
      const opened = render([QUESTION], true);
      const called = render([QUESTION, calling]);
      const [read] = format.parse(this.#turnOf(called, opened), [PROBE_TOOL]).calls;
      const mark = { ...call, arguments: JSON.stringify({ probe_key: MARK }) };
      const tail = this.#behindMark(render([QUESTION, { ...calling, calls: [mark] }, result], true));
      const isRead = read?.name === call.name && read.arguments.includes('PROBE ARGUMENT');
      if (!opened.includes(PROBE_TOOL.name) || !isRead || !tail?.includes(result.content)) continue;
      const second = { ...call, id: other.callId, arguments: '{"probe_key": "OTHER ARGUMENT"}' };
      const both = render([QUESTION, { ...calling, calls: [call, second] }, result, other]);
      return { ...abilities, isParallel: both.includes('PROBE ARGUMENT') && both.includes('OTHER ARGUMENT') };
    }
    return PLAIN;
  }

  /** @param messages broken up */
  #render(messages: readonly ConversationMessage[], tools: readonly Tool[]): string {
    try {
      return this.#renderAs(this.#abilities, messages, tools, true);
    } catch (thrown) {
      throw new RangeError(messageOf(thrown), { cause: thrown });
    }
  }

  #renderAs(
    { isNative, takesObjects, isParallel, shortensIds }: Abilities,
    messages: readonly ConversationMessage[],
    tools: readonly Tool[],
    addGenerationPrompt: boolean,
  ): string {
    const listed = tools.map((tool) => mapTexts(tool, (text) => this.#controls.breakUp(text)) as Tool);
    if (!isNative) {
      const plain = renderPlainTools(messages, listed).map((message): ChatMessage => ({ ...message }));
      return this.#renderMessages(plain, { addGenerationPrompt });
    }
    const idOf = (id: string) => (shortensIds ? shortenId(id) : id);
    const rendered = (isParallel ? messages : splitCalls(messages)).map((message): ChatMessage => {
      const { role, content } = message;
      if (role === 'tool') return { role, content, tool_call_id: idOf(message.callId) };
      if (role !== 'assistant') return { role, content };
      const { reasoning, calls = [] } = message;
      const list = calls.map(({ id, name, arguments: args }) => {
        return { id: idOf(id), type: 'function', function: { name, arguments: takesObjects ? objectOf(args) : args } };
      });
      return {
        ...{ role, content },
        // One name in most templates, the other in gpt-oss's.
        ...(reasoning === undefined ? {} : { reasoning_content: reasoning, thinking: reasoning }),
        ...(list.length === 0 ? {} : { tool_calls: list }),
      };
    });
    const objects = listed.length === 0 ? null : listed.map(printChatTool);
    return this.#renderMessages(rendered, { tools: objects, addGenerationPrompt });
  }

  /** Renders messages; for a template that refuses the system's role with its text in the first message of the user. */
  #renderMessages(messages: readonly ChatMessage[], options: RenderOptions): string {
    try {
      return this.#template.render(messages, options);
    } catch (thrown) {
      const folded = foldSystem(messages);
      if (!folded) throw thrown;
      return this.#template.render(folded, options);
    }
  }
}

/** Divides turns with several calls into turns of one call, each followed by its result. */
function splitCalls(messages: readonly ConversationMessage[]): ConversationMessage[] {
  const split: ConversationMessage[] = [];
  for (let i = 0; i < messages.length; i++) {
    const message = messages[i]!;
    if (message.role !== 'assistant' || (message.calls?.length ?? 0) < 2) {
      split.push(message);
      continue;
    }
    const { calls = [], ...rest } = message;
    let next = i + 1;
    while (messages[next]?.role === 'tool') next++;
    const results = messages.slice(i + 1, next);
    const isResultOf = (result: ConversationMessage, id: string) => result.role === 'tool' && result.callId === id;
    calls.forEach((call, c) => {
      split.push({ ...rest, ...(c === 0 ? {} : { content: '', reasoning: undefined }), calls: [call] });
      for (const result of results) if (isResultOf(result, call.id)) split.push(result);
    });
    for (const result of results) if (!calls.some(({ id }) => isResultOf(result, id))) split.push(result);
    i = next - 1;
  }
  return split;
}

/** Moves the system message into the first one of the user; undefined where one of them is missing. */
function foldSystem(messages: readonly ChatMessage[]): ChatMessage[] | undefined {
  const [system, ...rest] = messages;
  const at = rest.findIndex(({ role }) => role === 'user');
  if (system?.role !== 'system' || at < 0) return undefined;
  return rest.map((one, i) => (i === at ? { ...one, content: `${system.content}\n\n${one.content}` } : one));
}

/** Object of JSON arguments; an empty one where they are none. */
function objectOf(json: string): Record<string, unknown> {
  try {
    const value = parseJson(json);
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}

/** Value with every text in it changed, keys included. */
function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value);
  if (Array.isArray(value)) return value.map((one) => mapTexts(one, change));
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [change(key), mapTexts(one, change)]));
}

/** Id of nine letters and digits, as Mistral's templates ask for. */
function shortenId(id: string): string {
  return createHash('sha256').update(id).digest('hex').slice(0, 9);
}
