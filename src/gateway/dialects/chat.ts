/** Chat completions of OpenAI (`POST …/v1/chat/completions`). */
import type { ModelReply, ReplyFinish, ToolCall } from '../../core/model-call.ts';
import { Conversation } from './conversation.ts';
import type { Dialect, ParsedRequest, ReplyIds } from './dialect.ts';
import { printData } from './events.ts';
import { FIELDS, readRequest, refuseNested } from './fields.ts';
import { printOpenAiError } from './openai-error.ts';
import { readAnswerFormat, readNested, readToolChoice, readTools } from './openai-tools.ts';
import {
  type Fields,
  finishOf,
  isAbsent,
  joinTools,
  readContent,
  readFlag,
  readInteger,
  readList,
  readName,
  readOptionalText,
  readRecord,
  readStops,
  readText,
  refusePart,
  refuseTool,
  refuseValue,
} from './read-fields.ts';
import { readSampling } from './sampling.ts';

const FINISH: Readonly<Record<ReplyFinish, string>> = {
  stop: 'stop',
  calls: 'tool_calls',
  length: 'length',
  filter: 'content_filter',
};

function parseChat(body: unknown): ParsedRequest {
  const request = readRequest(body, FIELDS.chat);
  const options = isAbsent(request.stream_options) ? {} : readRecord(request.stream_options, 'stream_options');
  const limit =
    readInteger(request.max_completion_tokens, 'max_completion_tokens', 1) ??
    readInteger(request.max_tokens, 'max_tokens', 1);
  const { choice, allowed } = readToolChoice(request.tool_choice, readNested);
  const tools = readTools(request.tools, readNested);
  return {
    model: readText(request.model, 'model'),
    call: {
      messages: readMessages(request.messages),
      ...joinTools(tools, choice, allowed),
      parallelCalls: readFlag(request.parallel_tool_calls, 'parallel_tool_calls', true),
      format: readAnswerFormat(request.response_format, 'response_format', readNested),
      maxTokens: limit,
      stop: readStops(request.stop, 'stop'),
      sampling: readSampling(request),
    },
    stream: readFlag(request.stream, 'stream', false),
    includeUsage: readFlag(options.include_usage, 'stream_options.include_usage', false),
    store: false,
    instructions: 0,
  };
}

function readMessages(value: unknown): Conversation['messages'] {
  const conversation = new Conversation();
  const list = readList(value, 'messages', 1);
  for (let i = 0; i < list.length; i++) readMessage(conversation, list[i], `messages[${i}]`);
  return conversation.messages;
}

function readMessage(conversation: Conversation, value: unknown, path: string): void {
  const message = readRecord(value, path);
  refuseNested(message, FIELDS.chat, 'messages[].', path);
  const content = readContent(message.content, `${path}.content`, readPart);
  switch (message.role) {
    case 'system':
    case 'developer':
      conversation.addText('system', content);
      break;
    case 'user':
      conversation.addText('user', content);
      break;
    case 'assistant': {
      const calls = isAbsent(message.tool_calls) ? [] : readList(message.tool_calls, `${path}.tool_calls`);
      const reasoning =
        readOptionalText(message.reasoning_content, `${path}.reasoning_content`) ??
        readOptionalText(message.reasoning, `${path}.reasoning`);
      const read = calls.map((call, i) => readCall(call, `${path}.tool_calls[${i}]`));
      conversation.addTurn(content, reasoning ?? '', read);
      break;
    }
    case 'tool': {
      const at = `${path}.tool_call_id`;
      conversation.addResult(readName(message.tool_call_id, at), content, at);
      break;
    }
    default:
      throw refuseValue(`${path}.role`, 'system, developer, user, assistant or tool', message.role);
  }
}

function readPart(part: Fields, path: string): string {
  if (part.type === 'text') return readText(part.text, `${path}.text`);
  if (part.type === 'refusal') return readText(part.refusal, `${path}.refusal`);
  throw refusePart(path, part.type, 'text');
}

function readCall(value: unknown, path: string): ToolCall {
  const call = readRecord(value, path);
  if (call.type !== 'function' && !isAbsent(call.type)) throw refuseTool(path, call.type, 'function');
  const called = readRecord(call.function, `${path}.function`);
  return {
    id: readName(call.id, `${path}.id`),
    name: readName(called.name, `${path}.function.name`),
    arguments: readText(called.arguments, `${path}.function.arguments`),
  };
}

function printCall({ id, name, arguments: given }: ToolCall) {
  return { id, type: 'function', function: { name, arguments: given || '{}' } };
}

function printUsage({ promptTokens, completionTokens }: ModelReply['usage']) {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
}

function printChat(reply: ModelReply, { model }: ParsedRequest, { reply: id, created }: ReplyIds): unknown {
  const message = {
    role: 'assistant',
    content: reply.content === '' ? null : reply.content,
    refusal: null,
    ...(reply.reasoning ? { reasoning_content: reply.reasoning } : {}),
    ...(reply.calls.length > 0 ? { tool_calls: reply.calls.map(printCall) } : {}),
  };
  const choice = { index: 0, message, logprobs: null, finish_reason: FINISH[finishOf(reply)] };
  return { id, object: 'chat.completion', created, model, choices: [choice], usage: printUsage(reply.usage) };
}

function printChatEvents(reply: ModelReply, request: ParsedRequest, { reply: id, created }: ReplyIds): string[] {
  const head = { id, object: 'chat.completion.chunk', created, model: request.model };
  const chunk = (delta: object, finish: string | null = null) =>
    printData({ ...head, choices: [{ index: 0, delta, finish_reason: finish }] });
  const events = [chunk({ role: 'assistant', content: '' })];
  if (reply.reasoning) events.push(chunk({ reasoning_content: reply.reasoning }));
  if (reply.content !== '') events.push(chunk({ content: reply.content }));
  for (const [index, call] of reply.calls.entries()) {
    const { function: called, ...first } = printCall(call);
    events.push(chunk({ tool_calls: [{ index, ...first, function: { ...called, arguments: '' } }] }));
    events.push(chunk({ tool_calls: [{ index, function: { arguments: called.arguments } }] }));
  }
  events.push(chunk({}, FINISH[finishOf(reply)]));
  if (request.includeUsage) events.push(printData({ ...head, choices: [], usage: printUsage(reply.usage) }));
  events.push('data: [DONE]\n\n');
  return events;
}

/** Dialect of chat completions. */
export const chat: Dialect = {
  id: 'chat',
  parse: parseChat,
  print: printChat,
  events: printChatEvents,
  error: printOpenAiError,
  errorEvent: (status, message) => printData(printOpenAiError(status, message)),
};
