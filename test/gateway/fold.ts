/**
 * Folds what a server sent back, plain or as events, into the reply that it stands for: written from the APIs' pages, not
 * from our printers. Strict: a missing finish, a broken event or a field of a wrong form throws.
 */
import type { ModelReply, ReplyFinish, ToolCall } from '../../src/core/model-call.ts';
import type { DialectId } from '../../src/gateway/dialects/dialect.ts';

/** Reply as its client reads it. */
export interface FoldedReply {
  /** Usage is absent where the server sent none. */
  readonly reply: Omit<ModelReply, 'usage'> & { readonly usage?: ModelReply['usage'] };
  readonly model: string;
  readonly ids: FoldedIds;
  /** Unix time in whole seconds; absent in messages. */
  readonly created?: number;
}

/** Ids that a reply carried, those of its calls apart. */
export interface FoldedIds {
  /** `chatcmpl-…`, `resp_…`, `msg_…`. */
  readonly reply: string;
  /** Ids of the items of a response, absent where it has none of the kind. */
  readonly message?: string;
  readonly reasoning?: string;
  readonly callItems: readonly string[];
}

/** One server-sent event. */
export interface ServerEvent {
  readonly event?: string;
  readonly data: string;
}

// biome-ignore lint/suspicious/noExplicitAny: bodies of another server; a wrong form shall throw
type Json = any;

/** Reads the events of a stream; comments are left out. @throws for a stream that ends within an event */
export function readEvents(text: string): readonly ServerEvent[] {
  if (!text.endsWith('\n\n')) throw new Error('a stream ends with an empty line');
  return text.split('\n\n').flatMap((block) => {
    const lines = block.split('\n').filter((line) => line !== '' && !line.startsWith(':'));
    if (lines.length === 0) return [];
    let event: string | undefined;
    const data: string[] = [];
    for (const line of lines) {
      if (line.startsWith('event: ')) event = line.slice('event: '.length);
      else if (line.startsWith('data: ')) data.push(line.slice('data: '.length));
      else throw new Error(`a line of no event: ${line}`);
    }
    return [event === undefined ? { data: data.join('\n') } : { event, data: data.join('\n') }];
  });
}

/**
 * Folds a reply.
 * @param body bytes of the reply as text: a JSON object, or events
 * @param contentType value of its header
 * @throws for a reply that is not whole
 */
export function foldReply(dialect: DialectId, body: string, contentType: string): FoldedReply {
  if (contentType.startsWith('text/event-stream')) return STREAMS[dialect](readEvents(body));
  if (!contentType.startsWith('application/json')) throw new Error(`no content type of a reply: ${contentType}`);
  return BODIES[dialect](JSON.parse(body));
}

/** Folds the printed body of a reply. */
export function foldBody(dialect: DialectId, body: unknown): FoldedReply {
  return BODIES[dialect](JSON.parse(JSON.stringify(body)));
}

function require(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(`a reply has ${what}`);
}

function textOf(value: unknown, what: string): string {
  require(typeof value === 'string', `${what} as a text, got ${JSON.stringify(value)}`);
  return value;
}

function numberOf(value: unknown, what: string): number {
  require(typeof value === 'number', `${what} as a number, got ${JSON.stringify(value)}`);
  return value;
}

function makeReply(
  parts: { content: string; reasoning?: string | undefined; calls: ToolCall[] },
  finish: ReplyFinish,
  usage: ModelReply['usage'] | undefined,
): FoldedReply['reply'] {
  const { content, reasoning, calls } = parts;
  return { content, ...(reasoning ? { reasoning } : {}), calls, finish, ...(usage ? { usage } : {}) };
}

const CHAT_FINISH: Readonly<Record<string, ReplyFinish>> = {
  stop: 'stop',
  tool_calls: 'calls',
  length: 'length',
  content_filter: 'filter',
};

function chatFinish(value: unknown): ReplyFinish {
  const finish = CHAT_FINISH[textOf(value, 'finish_reason')];
  require(finish !== undefined, `a known finish_reason, got ${value}`);
  return finish;
}

function chatUsage(usage: Json): ModelReply['usage'] | undefined {
  if (usage === null || usage === undefined) return undefined;
  return {
    promptTokens: numberOf(usage.prompt_tokens, 'prompt_tokens'),
    completionTokens: numberOf(usage.completion_tokens, 'completion_tokens'),
  };
}

function foldChat(body: Json): FoldedReply {
  require(body.choices.length === 1 && body.choices[0].index === 0, 'one choice, of index 0');
  const { message, finish_reason: finish } = body.choices[0];
  require(message.role === 'assistant', 'the role assistant');
  const calls = (message.tool_calls ?? []).map((call: Json) => {
    require(call.type === 'function', 'calls of type function');
    return {
      id: textOf(call.id, 'tool_calls[].id'),
      name: textOf(call.function.name, 'name'),
      arguments: textOf(call.function.arguments, 'arguments'),
    };
  });
  const parts = { content: message.content ?? '', reasoning: message.reasoning_content, calls };
  return {
    reply: makeReply(parts, chatFinish(finish), chatUsage(body.usage)),
    model: body.model,
    ids: { reply: body.id, callItems: [] },
    created: body.created,
  };
}

function foldChatStream(events: readonly ServerEvent[]): FoldedReply {
  require(events.at(-1)?.data === '[DONE]', '[DONE] at its end');
  const chunks = events.slice(0, -1).map(({ data }) => JSON.parse(data) as Json);
  let content = '';
  let reasoning = '';
  let finish: ReplyFinish | undefined;
  let usage: ModelReply['usage'] | undefined;
  const calls: { id: string; name: string; arguments: string }[] = [];
  require(chunks[0]?.choices[0].delta.role === 'assistant', 'the role in its first delta');
  for (const chunk of chunks) {
    if (chunk.error) throw new Error(`an error: ${chunk.error.message}`);
    usage = chatUsage(chunk.usage) ?? usage;
    for (const { index, delta, finish_reason: end } of chunk.choices) {
      require(index === 0, 'choices of index 0');
      require(finish === undefined, 'nothing behind its finish');
      content += delta.content ?? '';
      reasoning += delta.reasoning_content ?? '';
      for (const part of delta.tool_calls ?? []) {
        const at = numberOf(part.index, 'tool_calls[].index');
        if (at === calls.length) {
          require(part.type === 'function', 'calls of type function');
          calls.push({ id: textOf(part.id, 'id'), name: textOf(part.function.name, 'name'), arguments: '' });
        }
        calls[at]!.arguments += textOf(part.function.arguments, 'arguments');
      }
      if (end !== null) finish = chatFinish(end);
    }
  }
  require(finish !== undefined, 'a finish_reason');
  const [first] = chunks;
  return {
    reply: makeReply({ content, reasoning, calls }, finish, usage),
    model: first.model,
    ids: { reply: first.id, callItems: [] },
    created: first.created,
  };
}

function foldResponse(body: Json): FoldedReply {
  require(body.object === 'response', 'the object response');
  let content = '';
  let reasoning = '';
  let message: string | undefined;
  let thought: string | undefined;
  const calls: ToolCall[] = [];
  const callItems: string[] = [];
  for (const item of body.output) {
    const id = textOf(item.id, 'output[].id');
    if (item.type === 'reasoning') {
      thought = id;
      for (const part of item.summary) reasoning += textOf(part.text, 'summary[].text');
    } else if (item.type === 'message') {
      require(item.role === 'assistant', 'the role assistant');
      message = id;
      for (const part of item.content) {
        require(part.type === 'output_text' && Array.isArray(part.annotations), 'output_text with annotations');
        content += textOf(part.text, 'text');
      }
    } else {
      require(item.type === 'function_call', `items of a known type, got ${item.type}`);
      callItems.push(id);
      calls.push({
        id: textOf(item.call_id, 'call_id'),
        name: textOf(item.name, 'name'),
        arguments: textOf(item.arguments, 'arguments'),
      });
    }
  }
  const reason = body.incomplete_details?.reason;
  require(body.status === 'completed' || body.status === 'incomplete', `a status, got ${body.status}`);
  require((body.status === 'incomplete') === (reason !== undefined), 'a reason where it is incomplete');
  const whole = calls.length > 0 ? 'calls' : 'stop';
  const finish = reason === undefined ? whole : reason === 'max_output_tokens' ? 'length' : 'filter';
  const usage = {
    promptTokens: numberOf(body.usage.input_tokens, 'input_tokens'),
    completionTokens: numberOf(body.usage.output_tokens, 'output_tokens'),
  };
  return {
    reply: makeReply({ content, reasoning, calls }, finish, usage),
    model: body.model,
    ids: {
      reply: body.id,
      callItems,
      ...(message === undefined ? {} : { message }),
      ...(thought === undefined ? {} : { reasoning: thought }),
    },
    created: numberOf(body.created_at, 'created_at'),
  };
}

/** Texts that the deltas of a response's stream make, by item, and the checks that its order asks for. */
function foldResponseStream(events: readonly ServerEvent[]): FoldedReply {
  const parsed = events
    .filter(({ data }) => data !== '[DONE]')
    .map(({ event, data }) => ({ event, body: JSON.parse(data) as Json }));
  const texts = new Map<string, string>();
  const added: string[] = [];
  const done: Json[] = [];
  let last: Json;
  require(parsed[0]?.body.type === 'response.created', 'response.created as its first event');
  for (const [i, { event, body }] of parsed.entries()) {
    require(event === body.type, 'events named by their type');
    require(body.sequence_number === i, 'its events numbered');
    require(last === undefined, 'nothing behind its end');
    switch (body.type) {
      case 'response.created':
      case 'response.in_progress':
        require(body.response.status === 'in_progress', 'the status in_progress');
        textOf(body.response.id, 'response.id');
        numberOf(body.response.created_at, 'response.created_at');
        textOf(body.response.model, 'response.model');
        break;
      case 'response.output_item.added':
        require(body.output_index === added.length, 'its items in order');
        require(body.item.type === 'reasoning' || body.item.status === 'in_progress', 'items in progress');
        added.push(textOf(body.item.id, 'item.id'));
        break;
      case 'response.content_part.added':
        require(body.content_index === 0 && Array.isArray(body.part.annotations), 'a part with annotations');
        break;
      case 'response.output_text.delta':
      case 'response.reasoning_summary_text.delta':
      case 'response.function_call_arguments.delta':
        require(added[body.output_index] === body.item_id, 'deltas of an added item');
        texts.set(body.item_id, (texts.get(body.item_id) ?? '') + textOf(body.delta, 'delta'));
        break;
      case 'response.output_text.done':
      case 'response.content_part.done':
      case 'response.reasoning_summary_part.added':
      case 'response.reasoning_summary_text.done':
      case 'response.reasoning_summary_part.done':
      case 'response.function_call_arguments.done':
        require(added[body.output_index] === body.item_id, 'events of an added item');
        break;
      case 'response.output_item.done':
        done.push(body.item);
        break;
      case 'response.completed':
      case 'response.incomplete':
        last = body.response;
        require(body.type === `response.${last.status}`, 'an end of its status');
        break;
      default:
        throw new Error(`an unknown event ${body.type}`);
    }
  }
  require(last !== undefined, 'its end');
  require(JSON.stringify(done) === JSON.stringify(last.output), 'the finished items in its output');
  for (const item of done) {
    const text = item.arguments ?? (item.content ?? item.summary).map((part: Json) => part.text).join('');
    require((texts.get(item.id) ?? '') === text, 'deltas that make its items');
  }
  return foldResponse(last);
}

const MESSAGE_FINISH: Readonly<Record<string, ReplyFinish>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  tool_use: 'calls',
  max_tokens: 'length',
  refusal: 'filter',
};

function foldMessage(body: Json): FoldedReply {
  require(body.type === 'message' && body.role === 'assistant', 'the type message and the role assistant');
  let content = '';
  let reasoning = '';
  const calls: ToolCall[] = [];
  for (const block of body.content) {
    if (block.type === 'text') content += textOf(block.text, 'text');
    else if (block.type === 'thinking') {
      textOf(block.signature, 'signature');
      reasoning += textOf(block.thinking, 'thinking');
    } else {
      require(block.type === 'tool_use', `blocks of a known type, got ${block.type}`);
      // Broken arguments are delivered as the text that they are.
      const given = typeof block.input === 'string' ? block.input : JSON.stringify(block.input);
      calls.push({ id: textOf(block.id, 'id'), name: textOf(block.name, 'name'), arguments: textOf(given, 'input') });
    }
  }
  const finish = MESSAGE_FINISH[textOf(body.stop_reason, 'stop_reason')];
  require(finish !== undefined, `a known stop_reason, got ${body.stop_reason}`);
  const usage = {
    promptTokens: numberOf(body.usage.input_tokens, 'input_tokens'),
    completionTokens: numberOf(body.usage.output_tokens, 'output_tokens'),
  };
  return {
    reply: makeReply({ content, reasoning, calls }, finish, usage),
    model: body.model,
    ids: { reply: textOf(body.id, 'id'), callItems: [] },
  };
}

function foldMessageStream(events: readonly ServerEvent[]): FoldedReply {
  let message: Json;
  let isOpen = false;
  let isEnded = false;
  let json = '';
  for (const { event, data } of events) {
    const body = JSON.parse(data) as Json;
    require(event === body.type, 'events named by their type');
    require(!isEnded, 'nothing behind its end');
    if (body.type === 'ping') continue;
    if (body.type === 'message_start') {
      message = body.message;
      require(Array.isArray(message.content) && message.content.length === 0, 'content: [] at its start');
      numberOf(message.usage.input_tokens, 'usage.input_tokens');
      numberOf(message.usage.output_tokens, 'usage.output_tokens');
      continue;
    }
    require(message !== undefined, 'message_start as its first event');
    const at = message.content.length;
    const block = message.content[at - 1];
    switch (body.type) {
      case 'content_block_start':
        require(!isOpen && body.index === at, 'its blocks one after another');
        message.content.push(body.content_block);
        isOpen = true;
        json = '';
        break;
      case 'content_block_delta':
        require(isOpen && body.index === at - 1, 'deltas of the open block');
        if (body.delta.type === 'text_delta') block.text += textOf(body.delta.text, 'text');
        else if (body.delta.type === 'thinking_delta') block.thinking += textOf(body.delta.thinking, 'thinking');
        else if (body.delta.type === 'signature_delta') block.signature = textOf(body.delta.signature, 'signature');
        else json += textOf(body.delta.partial_json, 'partial_json');
        break;
      case 'content_block_stop':
        require(isOpen && body.index === at - 1, 'the end of the open block');
        if (block.type === 'tool_use' && json !== '') block.input = readInput(json);
        isOpen = false;
        break;
      case 'message_delta':
        require(!isOpen, 'its blocks ended');
        Object.assign(message, body.delta);
        message.usage = { ...message.usage, ...body.usage };
        break;
      case 'message_stop':
        isEnded = true;
        break;
      default:
        throw new Error(`an unknown event ${body.type}`);
    }
  }
  require(isEnded, 'message_stop');
  return foldMessage(message);
}

/** Input of a tool as its deltas make it; the text itself where it is broken. */
function readInput(json: string): unknown {
  try {
    const input: unknown = JSON.parse(json);
    return typeof input === 'string' ? json : input;
  } catch {
    return json;
  }
}

const BODIES = { chat: foldChat, responses: foldResponse, messages: foldMessage };
const STREAMS = { chat: foldChatStream, responses: foldResponseStream, messages: foldMessageStream };
