/** Messages of Anthropic (`POST …/v1/messages`), and the requests of `…/v1/messages/count_tokens`. */
import { parseJson } from '../../core/json-text.ts';
import type { AnswerFormat, ModelCall, ModelReply, ReplyFinish, ToolCall, ToolChoice } from '../../core/model-call.ts';
import { isRecord } from '../../core/record.ts';
import { Conversation } from './conversation.ts';
import { type Dialect, type ParsedRequest, RefusedCall, type ReplyIds } from './dialect.ts';
import { printEvent } from './events.ts';
import { FIELDS, readRequest } from './fields.ts';
import {
  type Fields,
  finishOf,
  isAbsent,
  joinTools,
  readContent,
  readFlag,
  readFunction,
  readInteger,
  readJsonFormat,
  readList,
  readName,
  readRecord,
  readStops,
  readText,
  refusePart,
  refuseTool,
  refuseValue,
} from './read-fields.ts';
import { readSampling } from './sampling.ts';

/** Signature of our blocks of thinking: clients ask for one, and give it back. */
const SIGNATURE = 'longplay';

const FINISH: Readonly<Record<ReplyFinish, string>> = {
  stop: 'end_turn',
  calls: 'tool_use',
  length: 'max_tokens',
  filter: 'refusal',
};

function parseMessages(body: unknown): ParsedRequest {
  const { model, call, stream } = parseCount(body);
  // Anthropic's models go on with such a turn; ours would begin a turn of its own.
  if (call.messages.at(-1)!.role === 'assistant') {
    const message =
      "messages: expected a user's turn or a tool's result as the last one; no turn of the model is continued";
    throw new RefusedCall(400, message, 'messages', 'unsupported_prefill');
  }
  return { model, call, stream, includeUsage: true, store: false, instructions: 0 };
}

/**
 * Reads a request to count tokens: as one for a reply, but the last turn may be the model's.
 * @throws {RefusedCall}
 */
export function parseCount(body: unknown): Pick<ParsedRequest, 'model' | 'call' | 'stream'> {
  const request = readRequest(body, FIELDS.messages);
  const { choice, isSingle } = readChoice(request.tool_choice);
  const tools = isAbsent(request.tools) ? [] : readList(request.tools, 'tools').map(readTool);
  const call: ModelCall = {
    messages: readMessages(request),
    ...joinTools(tools, choice),
    parallelCalls: !isSingle,
    format: readFormat(request),
    maxTokens: readInteger(request.max_tokens, 'max_tokens', 1),
    stop: readStops(request.stop_sequences, 'stop_sequences'),
    sampling: readSampling(request),
  };
  return { model: readText(request.model, 'model'), call, stream: readFlag(request.stream, 'stream', false) };
}

function readMessages(request: Fields): Conversation['messages'] {
  const conversation = new Conversation();
  const system = readContent(request.system, 'system', readTextBlock);
  if (system !== '') conversation.addText('system', system);
  const list = readList(request.messages, 'messages', 1);
  for (let i = 0; i < list.length; i++) {
    const path = `messages[${i}]`;
    const { role, content } = readRecord(list[i], path);
    if (role === 'user') readUser(conversation, content, `${path}.content`);
    else if (role === 'assistant') readAssistant(conversation, content, `${path}.content`);
    else if (role === 'system') {
      conversation.addText('system', readContent(content, `${path}.content`, readTextBlock));
    } else throw refuseValue(`${path}.role`, 'user, assistant or system', role);
  }
  return conversation.messages;
}

/** Reads a turn of the user: texts beside each other are one message, each result of a tool is one of its own. */
function readUser(conversation: Conversation, content: unknown, path: string): void {
  if (typeof content === 'string') {
    conversation.addText('user', content);
    return;
  }
  const blocks = readList(content, path);
  let text: string | undefined = blocks.length === 0 ? '' : undefined;
  for (let i = 0; i < blocks.length; i++) {
    const at = `${path}[${i}]`;
    const block = readRecord(blocks[i], at);
    if (block.type !== 'tool_result') {
      text = (text ?? '') + readTextBlock(block, at, 'text or tool_result');
      continue;
    }
    if (text !== undefined) conversation.addText('user', text);
    text = undefined;
    const result = readContent(block.content, `${at}.content`, readTextBlock);
    const isError = readFlag(block.is_error, `${at}.is_error`, false);
    conversation.addResult(readName(block.tool_use_id, `${at}.tool_use_id`), result, `${at}.tool_use_id`, isError);
  }
  if (text !== undefined) conversation.addText('user', text);
}

function readAssistant(conversation: Conversation, content: unknown, path: string): void {
  let reasoning = '';
  const calls: ToolCall[] = [];
  const text = readContent(content, path, (block, at) => {
    switch (block.type) {
      case 'thinking':
        reasoning += readText(block.thinking, `${at}.thinking`);
        return '';
      case 'redacted_thinking':
        return '';
      case 'tool_use':
        calls.push(readCall(block, at));
        return '';
      default:
        return readTextBlock(block, at, 'text, thinking or tool_use');
    }
  });
  conversation.addTurn(text, reasoning, calls);
}

function readTextBlock(block: Fields, path: string, expected = 'text'): string {
  if (block.type !== 'text') throw refusePart(path, block.type, expected);
  return readText(block.text, `${path}.text`);
}

/** Reads a call. Its input is an object; broken arguments of an earlier reply come back as the text that they were. */
function readCall(block: Fields, path: string): ToolCall {
  const { input } = block;
  if (typeof input !== 'string' && !isRecord(input)) throw refuseValue(`${path}.input`, 'an object', input);
  return {
    id: readName(block.id, `${path}.id`),
    name: readName(block.name, `${path}.name`),
    arguments: typeof input === 'string' ? input : JSON.stringify(input),
  };
}

function readTool(value: unknown, i: number) {
  const path = `tools[${i}]`;
  const tool = readRecord(value, path);
  if (tool.type !== 'custom' && !isAbsent(tool.type)) throw refuseTool(path, tool.type, 'custom');
  return readFunction(tool, path, 'input_schema');
}

function readChoice(value: unknown): { choice: ToolChoice; isSingle: boolean } {
  if (isAbsent(value)) return { choice: 'auto', isSingle: false };
  const { type, name, disable_parallel_tool_use: disable } = readRecord(value, 'tool_choice');
  const isSingle = readFlag(disable, 'tool_choice.disable_parallel_tool_use', false);
  if (type === 'auto' || type === 'none') return { choice: type, isSingle };
  if (type === 'any') return { choice: 'required', isSingle };
  if (type === 'tool') return { choice: { name: readName(name, 'tool_choice.name') }, isSingle };
  throw refuseValue('tool_choice.type', 'auto, any, tool or none', type);
}

/** Reads the form of the answer: `output_config.format`, or `output_format` as it was called before. */
function readFormat(request: Fields): AnswerFormat | undefined {
  const config = isAbsent(request.output_config) ? {} : readRecord(request.output_config, 'output_config');
  const isOld = isAbsent(config.format);
  const [given, path] = isOld ? [request.output_format, 'output_format'] : [config.format, 'output_config.format'];
  if (isAbsent(given)) return undefined;
  const format = readRecord(given, path);
  if (format.type !== 'json_schema') throw refuseValue(`${path}.type`, 'json_schema', format.type);
  return readJsonFormat(undefined, format.schema, path);
}

/** Input of a call as the API has it: an object, or the text where the arguments are none. */
function printInput(given: string): unknown {
  try {
    const input = parseJson(given || '{}');
    return isRecord(input) ? input : given;
  } catch {
    return given;
  }
}

function printMessage(reply: ModelReply, { model }: ParsedRequest, { reply: id }: ReplyIds): unknown {
  const content: object[] = [];
  if (reply.reasoning) content.push({ type: 'thinking', thinking: reply.reasoning, signature: SIGNATURE });
  if (reply.content !== '') content.push({ type: 'text', text: reply.content });
  for (const { id: callId, name, arguments: given } of reply.calls) {
    content.push({ type: 'tool_use', id: callId, name, input: printInput(given) });
  }
  const { promptTokens, completionTokens } = reply.usage;
  return {
    ...printHead(id, model, content),
    stop_reason: FINISH[finishOf(reply)],
    stop_sequence: null,
    usage: { input_tokens: promptTokens, output_tokens: completionTokens },
  };
}

function printHead(id: string, model: string, content: readonly object[]) {
  return { id, type: 'message', role: 'assistant', model, content };
}

function printMessageEvents(reply: ModelReply, { model }: ParsedRequest, { reply: id }: ReplyIds): string[] {
  const { promptTokens, completionTokens } = reply.usage;
  // Clients add the two counts of output up or take the later one: 0 is right for both.
  const usage = { input_tokens: promptTokens, output_tokens: 0 };
  const message = { ...printHead(id, model, []), stop_reason: null, stop_sequence: null, usage };
  const events = [printEvent({ type: 'message_start', message }), printEvent({ type: 'ping' })];
  let index = 0;
  const add = (block: object, ...deltas: readonly object[]) => {
    events.push(printEvent({ type: 'content_block_start', index, content_block: block }));
    for (const delta of deltas) events.push(printEvent({ type: 'content_block_delta', index, delta }));
    events.push(printEvent({ type: 'content_block_stop', index }));
    index++;
  };
  if (reply.reasoning) {
    const delta = { type: 'thinking_delta', thinking: reply.reasoning };
    add({ type: 'thinking', thinking: '', signature: '' }, delta, { type: 'signature_delta', signature: SIGNATURE });
  }
  if (reply.content !== '') add({ type: 'text', text: '' }, { type: 'text_delta', text: reply.content });
  for (const { id: callId, name, arguments: given } of reply.calls) {
    const delta = { type: 'input_json_delta', partial_json: given || '{}' };
    add({ type: 'tool_use', id: callId, name, input: {} }, delta);
  }
  const delta = { stop_reason: FINISH[finishOf(reply)], stop_sequence: null };
  events.push(printEvent({ type: 'message_delta', delta, usage: { output_tokens: completionTokens } }));
  events.push(printEvent({ type: 'message_stop' }));
  return events;
}

const ERROR_TYPES: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  405: 'invalid_request_error',
  413: 'request_too_large',
  422: 'invalid_request_error',
  429: 'rate_limit_error',
  503: 'overloaded_error',
  529: 'overloaded_error',
};

/** Prints an error. The code goes where Anthropic's clients look for one: `error.details.error_code`. */
function printMessagesError(status: number, message: string, param?: string, code?: string) {
  const type = ERROR_TYPES[status] ?? 'api_error';
  const named = code === 'thread_unsupported_request' ? { unsupported: [param] } : {};
  const details = code === undefined ? {} : { details: { error_code: code, ...named } };
  return { type: 'error', error: { type, message, ...details } };
}

/** Dialect of messages. */
export const messages: Dialect = {
  id: 'messages',
  parse: parseMessages,
  print: printMessage,
  events: printMessageEvents,
  error: printMessagesError,
  errorEvent: (status, message) => printEvent(printMessagesError(status, message)),
};
