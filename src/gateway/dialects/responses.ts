/** Responses of OpenAI (`POST …/v1/responses`). */
import { describeValue } from '../../core/describe-value.ts';
import type { AnswerFormat, ModelReply, ToolCall } from '../../core/model-call.ts';
import { Conversation } from './conversation.ts';
import { type Dialect, type ParsedRequest, RefusedCall, type ReplyIds, type StoredItems } from './dialect.ts';
import { printEvent } from './events.ts';
import { FIELDS, readRequest } from './fields.ts';
import { printOpenAiError } from './openai-error.ts';
import { readAnswerFormat, readFlat, readToolChoice, readTools } from './openai-tools.ts';
import {
  type Fields,
  finishOf,
  isAbsent,
  joinTools,
  readContent,
  readFlag,
  readInteger,
  readName,
  readOptionalText,
  readRecord,
  readStops,
  readText,
  refusePart,
  refuseValue,
} from './read-fields.ts';
import { readSampling } from './sampling.ts';

function parseResponses(body: unknown, items: StoredItems): ParsedRequest {
  const request = readRequest(body, FIELDS.responses);
  const { choice, allowed } = readToolChoice(request.tool_choice, readFlat);
  const tools = readTools(request.tools, readFlat);
  const instructions = readContent(request.instructions, 'instructions', readPart);
  return {
    model: readText(request.model, 'model'),
    call: {
      messages: readMessages(request, instructions, items),
      ...joinTools(tools, choice, allowed),
      parallelCalls: readFlag(request.parallel_tool_calls, 'parallel_tool_calls', true),
      format: readFormat(request.text),
      maxTokens: readInteger(request.max_output_tokens, 'max_output_tokens', 1),
      stop: readStops(request.stop, 'stop'),
      sampling: readSampling(request),
    },
    stream: readFlag(request.stream, 'stream', false),
    includeUsage: true,
    store: readFlag(request.store, 'store', true),
    instructions: instructions === '' ? 0 : 1,
  };
}

function readMessages(request: Fields, instructions: string, items: StoredItems): Conversation['messages'] {
  const conversation = new Conversation();
  if (instructions !== '') conversation.addText('system', instructions);
  const previous = readOptionalText(request.previous_response_id, 'previous_response_id');
  if (previous !== undefined) {
    const context = items.response(previous);
    if (context === undefined) throw refuseId('previous_response_id', 'response', previous);
    conversation.addAll(context);
  }
  const { input } = request;
  if (typeof input === 'string') conversation.addText('user', input);
  else if (!isAbsent(input) || previous === undefined) {
    if (!Array.isArray(input)) throw refuseValue('input', 'a text or a list of items', input);
    if (input.length === 0 && previous === undefined) throw refuseValue('input', 'at least one item', input);
    const turns = new Turns(conversation, items, instructions === '' ? 0 : 1);
    for (let i = 0; i < input.length; i++) turns.read(input[i], `input[${i}]`);
    turns.close();
  }
  return conversation.messages;
}

/** Refusal of an id that nothing is behind, as OpenAI's server answers it. */
function refuseId(path: string, kind: string, id: string): RefusedCall {
  return new RefusedCall(
    404,
    `${path}: expected the id of a ${kind} that is kept here, got ${describeValue(id)}`,
    path,
  );
}

/**
 * Items of an input, joined to turns: reasoning, then a message, then calls are one turn of the model. Another item closes
 * it, and so does a reasoning or a message that comes later than its place.
 */
class Turns {
  readonly #conversation: Conversation;
  readonly #items: StoredItems;
  /** Messages at the beginning that are no items. */
  readonly #instructions: number;
  #reasoning = '';
  #content: string | undefined;
  #calls: ToolCall[] = [];

  constructor(conversation: Conversation, items: StoredItems, instructions: number) {
    this.#conversation = conversation;
    this.#items = items;
    this.#instructions = instructions;
  }

  read(value: unknown, path: string): void {
    const item = readRecord(value, path);
    switch (item.type ?? 'message') {
      case 'message':
        this.#readMessage(item, path);
        break;
      case 'reasoning':
        this.#addReasoning(this.#readReasoning(item, path));
        break;
      case 'function_call':
        this.#calls.push({
          id: readName(item.call_id, `${path}.call_id`),
          name: readName(item.name, `${path}.name`),
          arguments: readText(item.arguments, `${path}.arguments`),
        });
        break;
      case 'function_call_output': {
        this.close();
        const at = `${path}.call_id`;
        const output = readContent(item.output, `${path}.output`, readPart);
        this.#conversation.addResult(readName(item.call_id, at), output, at);
        break;
      }
      case 'item_reference':
        this.#readReference(readName(item.id, `${path}.id`), path);
        break;
      case 'compaction':
        this.#readCompaction(readName(item.encrypted_content, `${path}.encrypted_content`), path);
        break;
      default:
        throw refusePart(path, item.type, 'a message, reasoning, a function call, its output or an item_reference');
    }
  }

  /** Ends the open turn, where there is one. */
  close(): void {
    if (this.#content === undefined && this.#calls.length === 0 && this.#reasoning === '') return;
    this.#conversation.addTurn(this.#content ?? '', this.#reasoning, this.#calls);
    this.#reasoning = '';
    this.#content = undefined;
    this.#calls = [];
  }

  #readMessage(item: Fields, path: string): void {
    const content = readContent(item.content, `${path}.content`, readPart);
    switch (item.role) {
      case 'assistant':
        this.#addContent(content);
        break;
      case 'user':
        this.close();
        this.#conversation.addText('user', content);
        break;
      case 'system':
      case 'developer':
        this.close();
        this.#conversation.addText('system', content);
        break;
      default:
        throw refuseValue(`${path}.role`, 'system, developer, user or assistant', item.role);
    }
  }

  /** Text of a reasoning item; where it carries none, that of the item which was kept under its id. */
  #readReasoning(item: Fields, path: string): string {
    const text =
      readContent(item.content, `${path}.content`, readThought) ||
      readContent(item.summary, `${path}.summary`, readThought);
    if (text !== '' || typeof item.id !== 'string') return text;
    const kept = this.#items.item(item.id);
    return kept?.type === 'reasoning' ? kept.text : '';
  }

  #readReference(id: string, path: string): void {
    const item = this.#items.item(id);
    switch (item?.type) {
      case 'message':
        this.#addContent(item.content);
        break;
      case 'reasoning':
        this.#addReasoning(item.text);
        break;
      case 'call':
        this.#calls.push({ id: item.callId, name: item.name, arguments: item.arguments });
        break;
      default:
        throw refuseId(`${path}.id`, 'item', id);
    }
  }

  /** Reads an item of `/responses/compact`: it stands for the whole context behind the response id that it carries. */
  #readCompaction(id: string, path: string): void {
    const context = this.#items.response(id);
    if (context === undefined) throw refuseId(`${path}.encrypted_content`, 'response', id);
    this.close();
    this.#conversation.restart(this.#instructions, context); // what came before it is copied from there
  }

  #addReasoning(text: string): void {
    if (this.#content !== undefined || this.#calls.length > 0) this.close();
    this.#reasoning += text;
  }

  #addContent(content: string): void {
    if (this.#content !== undefined || this.#calls.length > 0) this.close();
    this.#content = content;
  }
}

function readPart(part: Fields, path: string): string {
  if (part.type === 'input_text' || part.type === 'output_text' || part.type === 'text') {
    return readText(part.text, `${path}.text`);
  }
  if (part.type === 'refusal') return readText(part.refusal, `${path}.refusal`);
  throw refusePart(path, part.type, 'input_text or output_text');
}

function readThought(part: Fields, path: string): string {
  return readText(part.text, `${path}.text`);
}

function readFormat(text: unknown): AnswerFormat | undefined {
  return isAbsent(text) ? undefined : readAnswerFormat(readRecord(text, 'text').format, 'text.format', readFlat);
}

/** Items of a finished reply. A reply without text and calls has a message that is empty. */
function printItems(reply: ModelReply, ids: ReplyIds): readonly Item[] {
  const items: Item[] = [];
  if (reply.reasoning) {
    items.push({ id: ids.reasoning, type: 'reasoning', summary: [{ type: 'summary_text', text: reply.reasoning }] });
  }
  if (reply.content !== '' || reply.calls.length === 0) {
    const content = [{ type: 'output_text' as const, text: reply.content, annotations: [], logprobs: [] }];
    items.push({ id: ids.message, type: 'message', status: 'completed', role: 'assistant', content });
  }
  for (const [i, { id, name, arguments: given }] of reply.calls.entries()) {
    const item = { id: ids.callItem(i), type: 'function_call' as const, status: 'completed', call_id: id, name };
    items.push({ ...item, arguments: given || '{}' });
  }
  return items;
}

type Item =
  | { id: string; type: 'reasoning'; summary: readonly { type: 'summary_text'; text: string }[] }
  | {
      id: string;
      type: 'message';
      status: string;
      role: 'assistant';
      content: readonly {
        type: 'output_text';
        text: string;
        annotations: readonly never[];
        logprobs: readonly never[];
      }[];
    }
  | { id: string; type: 'function_call'; status: string; call_id: string; name: string; arguments: string };

/**
 * Prints a response. What it repeats of the request in OpenAI's server, tools and settings, is left out: no client reads it,
 * and a stream holds it three times.
 */
function printResponse(reply: ModelReply, request: ParsedRequest, ids: ReplyIds) {
  const finish = finishOf(reply);
  const reason = finish === 'length' ? 'max_output_tokens' : finish === 'filter' ? 'content_filter' : undefined;
  const { promptTokens, completionTokens } = reply.usage;
  return {
    ...printHead(request, ids),
    status: reason === undefined ? ('completed' as const) : ('incomplete' as const),
    incomplete_details: reason === undefined ? null : { reason },
    output: printItems(reply, ids),
    usage: {
      input_tokens: promptTokens,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: completionTokens,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: promptTokens + completionTokens,
    },
  };
}

function printHead({ model }: ParsedRequest, { reply: id, created }: ReplyIds) {
  return { id, object: 'response', created_at: created, model, error: null };
}

function printResponseEvents(reply: ModelReply, request: ParsedRequest, ids: ReplyIds): string[] {
  const events: string[] = [];
  const add = (type: string, fields: object) => {
    events.push(printEvent({ type, sequence_number: events.length, ...fields }));
  };
  const begun = {
    ...printHead(request, ids),
    status: 'in_progress',
    incomplete_details: null,
    output: [],
    usage: null,
  };
  add('response.created', { response: begun });
  add('response.in_progress', { response: begun });
  const response = printResponse(reply, request, ids);
  for (const [i, item] of response.output.entries()) {
    const place = { item_id: item.id, output_index: i };
    if (item.type === 'reasoning') addReasoning(add, item, place);
    else if (item.type === 'message') addMessage(add, item, place);
    else addCall(add, item, place);
    add('response.output_item.done', { output_index: i, item });
  }
  add(`response.${response.status}`, { response });
  return events;
}

type AddEvent = (type: string, fields: object) => void;
interface ItemPlace {
  readonly item_id: string;
  readonly output_index: number;
}

function addReasoning(add: AddEvent, item: Item & { type: 'reasoning' }, place: ItemPlace): void {
  add('response.output_item.added', { output_index: place.output_index, item: { ...item, summary: [] } });
  const [part] = item.summary;
  const at = { ...place, summary_index: 0 };
  add('response.reasoning_summary_part.added', { ...at, part: { ...part, text: '' } });
  add('response.reasoning_summary_text.delta', { ...at, delta: part!.text });
  add('response.reasoning_summary_text.done', { ...at, text: part!.text });
  add('response.reasoning_summary_part.done', { ...at, part });
}

function addMessage(add: AddEvent, item: Item & { type: 'message' }, place: ItemPlace): void {
  const begun = { ...item, status: 'in_progress', content: [] };
  add('response.output_item.added', { output_index: place.output_index, item: begun });
  const [part] = item.content;
  const at = { ...place, content_index: 0 };
  add('response.content_part.added', { ...at, part: { ...part, text: '' } });
  if (part!.text !== '') add('response.output_text.delta', { ...at, delta: part!.text, logprobs: [] });
  add('response.output_text.done', { ...at, text: part!.text, logprobs: [] });
  add('response.content_part.done', { ...at, part });
}

function addCall(add: AddEvent, item: Item & { type: 'function_call' }, place: ItemPlace): void {
  const begun = { ...item, status: 'in_progress', arguments: '' };
  add('response.output_item.added', { output_index: place.output_index, item: begun });
  add('response.function_call_arguments.delta', { ...place, delta: item.arguments });
  add('response.function_call_arguments.done', { ...place, name: item.name, arguments: item.arguments });
}

/** Dialect of responses. */
export const responses: Dialect = {
  id: 'responses',
  parse: parseResponses,
  print: printResponse,
  events: printResponseEvents,
  error: printOpenAiError,
  errorEvent: (status, message) => {
    const { error } = printOpenAiError(status, message);
    // Clients differ in where they look: openai reads the event itself, AI SDK its `error`.
    const { code, param } = error;
    return printEvent({ type: 'error', sequence_number: 0, code, message, param, error });
  },
};
