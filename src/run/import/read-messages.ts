/**
 * Messages of many makers in one form: OpenAI's chat and responses, Anthropic's blocks, LangChain's serialised messages, the
 * parts of OpenTelemetry's GenAI conventions. What has no place in ours, an image, is counted as lost. Pure.
 */
import { parseJson } from '../../core/json-text.ts';
import type { AssistantMessage, ConversationMessage, Tool, ToolCall } from '../../core/model-call.ts';
import { isRecord, recordOf } from '../../core/record.ts';
import type { Losses } from './losses.ts';

type Json = Record<string, unknown>;
type Role = ConversationMessage['role'];

const ROLES: Readonly<Record<string, Role>> = {
  ...{ system: 'system', developer: 'system', SystemMessage: 'system', SystemMessageChunk: 'system' },
  ...{ user: 'user', human: 'user', HumanMessage: 'user', HumanMessageChunk: 'user' },
  ...{ assistant: 'assistant', ai: 'assistant', model: 'assistant', gpt: 'assistant' },
  ...{ AIMessage: 'assistant', AIMessageChunk: 'assistant' },
  ...{ tool: 'tool', function: 'tool', ToolMessage: 'tool', FunctionMessage: 'tool' },
};

/** Keys of a message that are read here; others are lost. */
const MESSAGE = [
  ...['role', 'content', 'parts', 'type', 'id', 'tool_calls', 'tool_call_id', 'function_call', 'reasoning_content'],
  ...['reasoning', 'additional_kwargs', 'is_error', 'finish_reason', 'call_id'],
];
/** Keys of the result of a tool: its name is that of the call. */
const RESULT = [...MESSAGE, 'name', 'status'];
/** Keys of an item of the responses API. */
const ITEM = ['type', 'id', 'call_id', 'name', 'arguments', 'output', 'summary', 'status'];
/** Keys of a part of a message. */
const PART = [
  ...['type', 'text', 'content', 'thinking', 'reasoning', 'refusal', 'id', 'name', 'input', 'arguments', 'args'],
  ...['response', 'result', 'output', 'toolCallId', 'toolName', 'tool_use_id', 'is_error'],
];

/** Message that is read, and the results that came in it. */
interface Draft {
  text: string;
  reasoning: string;
  readonly calls: ToolCall[];
  readonly results: { readonly callId: string; readonly content: string; readonly isError?: true }[];
}

/** Text that may be JSON: a value of a span or of a table. @returns the value in it, or the text */
export function unwrapJson(value: unknown): unknown {
  if (typeof value !== 'string' || !/^\s*[[{]/.test(value)) return value;
  try {
    return parseJson(value);
  } catch {
    return value;
  }
}

/**
 * Reads a conversation: a list of messages, one of them, or a text of the user's.
 * @param path names the place in the count of losses
 */
export function readMessages(given: unknown, losses: Losses, path: string, bare: Role = 'user'): ConversationMessage[] {
  const value = unwrapJson(given);
  if (value === null || value === undefined) return [];
  if (typeof value === 'string') return value === '' ? [] : [bareMessage(value, bare)];
  // LangChain has a list of conversations.
  if (Array.isArray(value) && value.length > 0 && Array.isArray(value[0])) {
    losses.add(`${path}[] (other conversations)`, value.length - 1);
    return readMessages(value[0], losses, path, bare);
  }
  const messages: ConversationMessage[] = [];
  for (const one of Array.isArray(value) ? value : [value]) readOne(one, messages, losses, `${path}[]`, bare);
  return matchResults(messages);
}

/** Reads instructions: messages, a text, or the parts of a system message. */
export function readInstructions(given: unknown, losses: Losses, path: string): ConversationMessage[] {
  const value = unwrapJson(given);
  const isParts = Array.isArray(value) && !value.some((one) => recordOf(one)?.role !== undefined);
  return readMessages(isParts ? [{ role: 'system', content: value }] : value, losses, path, 'system');
}

/** Reads the reply of a model. @returns undefined where there is none */
export function readReplyMessage(given: unknown, losses: Losses, path: string): AssistantMessage | undefined {
  const messages = readMessages(given, losses, path, 'assistant');
  const [first, ...others] = messages.filter((message) => message.role === 'assistant');
  losses.add(`${path}[] (not of the model)`, messages.length - (first ? 1 : 0) - others.length);
  losses.add(`${path}[] (other choices)`, others.length);
  return first;
}

function bareMessage(content: string, role: Role): ConversationMessage {
  return role === 'system' || role === 'assistant' ? { role, content } : { role: 'user', content };
}

function readOne(given: unknown, messages: ConversationMessage[], losses: Losses, path: string, bare: Role): void {
  if (typeof given === 'string') {
    messages.push(bareMessage(given, bare));
    return;
  }
  if (!isRecord(given)) {
    losses.add(path);
    return;
  }
  const { message, role: kind } = unwrapSerialised(given);
  const draft: Draft = { text: '', reasoning: '', calls: [], results: [] };
  // Items of the responses API.
  if (readItem(message, draft, losses, path)) {
    losses.addOthers(message, ITEM, path);
    addDraft('assistant', draft, messages, true);
    return;
  }
  const role = kind ?? (bare === 'assistant' ? 'assistant' : undefined);
  if (role === undefined) {
    losses.add(`${path} (role ${String(message.role ?? message.type)})`);
    return;
  }
  losses.addOthers(message, role === 'tool' ? RESULT : MESSAGE, path);
  losses.addOthers(
    message.additional_kwargs,
    ['tool_calls', 'function_call', 'reasoning_content'],
    `${path}.additional_kwargs`,
  );
  readContent(message.parts ?? message.content, draft, losses, path);
  readReasoning(message, draft);
  if (role === 'tool') {
    const { tool_call_id: id, call_id: other, status, is_error: isError } = message;
    const callId = typeof id === 'string' ? id : typeof other === 'string' ? other : '';
    // OpenTelemetry puts a result in a part of its own.
    if (draft.results.length === 0) {
      const failed = status === 'error' || isError === true;
      draft.results.push({ callId, content: draft.text, ...(failed ? { isError: true as const } : {}) });
    } else losses.add(`${path}.content (text beside a result)`, draft.text === '' ? 0 : 1);
    draft.text = '';
  }
  readCalls(message, draft, losses, path);
  addDraft(role, draft, messages, message.type === 'message');
}

/** Takes the wrapping of LangChain's serialised messages off. */
function unwrapSerialised(given: Json): { readonly message: Json; readonly role: Role | undefined } {
  const { lc, id, kwargs, data, type, role } = given;
  if (lc !== undefined && isRecord(kwargs)) {
    const name = Array.isArray(id) ? id.at(-1) : undefined;
    return { message: kwargs, role: roleOf(name) ?? roleOf(kwargs.type) };
  }
  if (isRecord(data) && role === undefined) return { message: data, role: roleOf(type) };
  return { message: given, role: roleOf(role) ?? roleOf(type) };
}

function roleOf(name: unknown): Role | undefined {
  return typeof name === 'string' && Object.hasOwn(ROLES, name) ? ROLES[name] : undefined;
}

/** Reads an item of the responses API that is no message. @returns true where it was one */
function readItem(item: Json, draft: Draft, losses: Losses, path: string): boolean {
  const { type, call_id: callId, name, arguments: args, output, summary } = item;
  if (item.role !== undefined || typeof type !== 'string') return false;
  if (type === 'function_call') {
    draft.calls.push({ id: textOr(callId, ''), name: textOr(name, ''), arguments: printArguments(args) });
    return true;
  }
  if (type === 'function_call_output') {
    draft.results.push({ callId: textOr(callId, ''), content: printValue(output, losses, `${path}.output`) });
    return true;
  }
  if (type === 'reasoning') {
    readContent(summary, draft, losses, `${path}.summary`);
    draft.reasoning += draft.text;
    draft.text = '';
    return true;
  }
  return false;
}

function readReasoning({ reasoning_content: open, reasoning, additional_kwargs: more }: Json, draft: Draft): void {
  const kept = [open, reasoning, recordOf(more)?.reasoning_content].find(
    (one) => typeof one === 'string' && one !== '',
  );
  if (typeof kept === 'string') draft.reasoning += kept;
}

function readContent(content: unknown, draft: Draft, losses: Losses, path: string): void {
  if (content === null || content === undefined) return;
  if (typeof content === 'string') {
    draft.text += content;
    return;
  }
  if (!Array.isArray(content)) {
    draft.text += JSON.stringify(content);
    return;
  }
  for (const part of content) readPart(part, draft, losses, path);
}

function readPart(part: unknown, draft: Draft, losses: Losses, path: string): void {
  if (typeof part === 'string') {
    draft.text += part;
    return;
  }
  if (!isRecord(part)) {
    losses.add(`${path}.content[]`);
    return;
  }
  const { type, text, content, thinking, id, name, input, arguments: args, response, result } = part;
  switch (type) {
    case 'text':
    case 'input_text':
    case 'output_text':
    case 'summary_text':
    case 'refusal':
      draft.text += textOr(text ?? content ?? part.refusal, '');
      break;
    case 'thinking':
    case 'reasoning':
      draft.reasoning += textOr(thinking ?? content ?? text ?? part.reasoning, '');
      break;
    case 'tool_use':
    case 'tool_call':
    case 'tool-call':
      draft.calls.push({
        id: textOr(id ?? part.toolCallId, ''),
        name: textOr(name ?? part.toolName, ''),
        arguments: printArguments(input ?? args ?? part.args),
      });
      break;
    case 'tool_result':
    case 'tool_call_response':
    case 'tool-result': {
      const callId = textOr(part.tool_use_id ?? id ?? part.toolCallId, '');
      const value = content ?? response ?? result ?? part.output;
      const isError = part.is_error === true ? { isError: true as const } : {};
      draft.results.push({ callId, content: printValue(value, losses, `${path}.content[type=${type}]`), ...isError });
      break;
    }
    default:
      losses.add(`${path}.content[type=${String(type)}]`);
      return;
  }
  losses.addOthers(part, PART, `${path}.content[]`);
}

/** Calls of OpenAI's messages and of LangChain's. The same calls stand twice in many of the latter. */
function readCalls(message: Json, draft: Draft, losses: Losses, path: string): void {
  const { tool_calls: direct, additional_kwargs: more } = message;
  const legacy = message.function_call ?? recordOf(more)?.function_call;
  if (draft.calls.length > 0) return;
  const listed = [direct, recordOf(more)?.tool_calls].find((one) => Array.isArray(one) && one.length > 0);
  const all = Array.isArray(listed) ? listed : legacy === undefined || legacy === null ? [] : [legacy];
  for (const one of all) {
    const call = recordOf(one);
    const called = recordOf(call?.function) ?? call;
    if (!call || !called || typeof called.name !== 'string') {
      losses.add(`${path}.tool_calls[]`);
      continue;
    }
    draft.calls.push({
      id: textOr(call.id, ''),
      name: called.name,
      arguments: printArguments(called.arguments ?? called.args),
    });
  }
}

function printArguments(args: unknown): string {
  return typeof args === 'string' ? args : JSON.stringify(args ?? {});
}

/** Prints a result as text: the texts of its parts, else JSON. */
function printValue(value: unknown, losses: Losses, path: string): string {
  if (typeof value === 'string') return value;
  if (value === null || value === undefined) return '';
  const isParts = Array.isArray(value) && value.length > 0 && value.every((one) => isRecord(one) && 'type' in one);
  if (!isParts) return JSON.stringify(value);
  const draft: Draft = { text: '', reasoning: '', calls: [], results: [] };
  readContent(value, draft, losses, path);
  return draft.text;
}

function textOr(value: unknown, other: string): string {
  return typeof value === 'string' ? value : value === undefined || value === null ? other : JSON.stringify(value);
}

/** Adds what a message held: results first, each as a message of its own. @param joins true for an item of a turn */
function addDraft(role: Role, draft: Draft, messages: ConversationMessage[], joins: boolean): void {
  const { text, reasoning, calls, results } = draft;
  for (const result of results) messages.push({ role: 'tool', ...result });
  if (role !== 'assistant') {
    if (role !== 'tool' && (text !== '' || results.length === 0)) messages.push({ role, content: text });
    return;
  }
  if (joins && text === '' && reasoning === '' && calls.length === 0) return;
  const last = messages.at(-1);
  const before = joins && last?.role === 'assistant' ? last : undefined;
  if (before) messages.pop();
  const thought = `${before?.reasoning ?? ''}${reasoning}`;
  const all = [...(before?.calls ?? []), ...calls];
  messages.push({
    role,
    content: `${before?.content ?? ''}${text}`,
    ...(thought === '' ? {} : { reasoning: thought }),
    ...(all.length === 0 ? {} : { calls: all }),
  });
}

/** Gives calls and results without an id one: results answer the calls before them in order. */
function matchResults(messages: readonly ConversationMessage[]): ConversationMessage[] {
  let minted = 0;
  let open: string[] = [];
  return messages.map((message): ConversationMessage => {
    if (message.role === 'assistant' && message.calls) {
      const calls = message.calls.map((call) => (call.id === '' ? { ...call, id: `unnamed_${minted++}` } : call));
      open = calls.map(({ id }) => id);
      return { ...message, calls };
    }
    if (message.role !== 'tool') return message;
    const callId = message.callId === '' ? (open[0] ?? '') : message.callId;
    open = open.filter((id) => id !== callId);
    return { ...message, callId };
  });
}

/** Reads declared tools, of any maker. */
export function readTools(given: unknown, losses: Losses, path: string): Tool[] {
  const value = unwrapJson(given);
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) {
    losses.add(path);
    return [];
  }
  return value.flatMap((one) => {
    const tool = recordOf(unwrapJson(one));
    const declared = recordOf(tool?.function) ?? tool;
    const { name, description, parameters, input_schema: schema } = declared ?? {};
    if (typeof name !== 'string') {
      losses.add(`${path}[type=${String(tool?.type)}]`);
      return [];
    }
    const shape = recordOf(parameters) ?? recordOf(schema) ?? { type: 'object', properties: {} };
    return [{ name, ...(typeof description === 'string' ? { description } : {}), parameters: shape }];
  });
}
