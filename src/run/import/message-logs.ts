/**
 * Message logs of OpenAI and Anthropic: whole conversations, and pairs of a request and its response. Pairs that name no
 * session are one episode a file, in which a request continues the reply that it repeats. Pure.
 */
import type { ConversationMessage, Tool } from '../../core/model-call.ts';
import { isRecord, recordOf } from '../../core/record.ts';
import type { Losses } from './losses.ts';
import { readAsked, readParameters, replyOf } from './observation-tables.ts';
import { CallBuilder, countOf, type ReadEpisode, RequestTree, readFinish } from './read-episode.ts';
import { readReplyMessage, unwrapJson } from './read-messages.ts';

type Json = Record<string, unknown>;

/** Maker of a log. Their messages are read alike; the name is for the guess. */
export type LogMaker = 'openai' | 'anthropic';

/** Finds a pair of request and response in a record. A batch's output has the response alone. */
export function pairOf(value: unknown): { readonly request: Json; readonly response: Json } | undefined {
  if (!isRecord(value)) return undefined;
  const request = recordOf(unwrapJson(value.request ?? value.request_body ?? value.body));
  const outer = recordOf(unwrapJson(value.response ?? value.response_body ?? value.completion));
  const response = recordOf(unwrapJson(outer?.body)) ?? outer;
  const asked = recordOf(unwrapJson(request?.body)) ?? request;
  return asked && response ? { request: asked, response } : undefined;
}

/** Names of the session of a pair, in the order in which they are looked for. */
const SESSIONS = ['episode', 'session_id', 'sessionId', 'conversation_id', 'thread_id', 'trace_id', 'traceId'] as const;

/** Session of a pair: one that its record or its request's metadata names. */
export function sessionOf(value: unknown): string | undefined {
  const record = recordOf(value) ?? {};
  const request = recordOf(unwrapJson(record.request)) ?? {};
  for (const place of [record, recordOf(record.metadata), recordOf(request.metadata)]) {
    const name = SESSIONS.find((one) => typeof place?.[one] === 'string' || typeof place?.[one] === 'number');
    if (name !== undefined) return String(place![name]);
  }
  return undefined;
}

/** True for a record of a message log. */
export function isMessageLog(value: unknown): boolean {
  if (pairOf(value)) return true;
  const { messages, input } = recordOf(value) ?? { messages: value };
  const list = messages ?? input;
  return (
    Array.isArray(list) && list.length > 0 && list.every((one) => isRecord(one) && ('role' in one || 'type' in one))
  );
}

/** Maker of a record of a message log, by what only one of them has. */
export function makerOf(value: unknown): LogMaker {
  const text = JSON.stringify(value);
  const isAnthropic =
    /"type":"(?:tool_use|tool_result|thinking|redacted_thinking)"|"stop_reason":|"input_schema":/.test(text) ||
    ('system' in (recordOf(value) ?? {}) && !/"tool_calls":/.test(text));
  return isAnthropic ? 'anthropic' : 'openai';
}

/** Fields of a conversation that are read. */
const CONVERSATION = ['messages', 'input', 'system', 'instructions', 'tools', 'reward', 'score', 'id'];

/**
 * Reads a whole conversation: each turn of the model is a call, and continues the one before. Behind another turn of the model
 * it begins a conversation: a call has to have something to answer.
 */
export function readConversation(value: unknown, losses: Losses): ReadEpisode {
  const record: Json = Array.isArray(value) ? { messages: value } : (recordOf(value) ?? {});
  const { messages: given, input, system, instructions, tools, reward, score, id } = record;
  losses.addOthers(record, CONVERSATION, '');
  const asked = readAsked({ messages: given ?? input, system, instructions, tools }, losses, 'conversation');
  const builder = new CallBuilder();
  const rest = addTurns(builder, asked.messages, asked.tools);
  return {
    calls: builder.calls,
    rest: builder.end(rest),
    scores: scoreOf(reward ?? score),
    ...(typeof id === 'string' ? { id } : {}),
  };
}

/** Adds each turn of the model as a call. @returns the messages behind the last one */
function addTurns(
  builder: CallBuilder,
  messages: readonly ConversationMessage[],
  tools: readonly Tool[],
): readonly ConversationMessage[] {
  let begin = 0;
  let parent: number | null = null;
  for (const [at, message] of messages.entries()) {
    if (message.role !== 'assistant' || at === 0) continue;
    const isRoot: boolean = parent === null || begin === at;
    parent = builder.add(isRoot ? null : parent, messages.slice(isRoot ? 0 : begin, at), message, tools);
    begin = at + 1;
  }
  return messages.slice(begin);
}

function scoreOf(value: unknown): Record<string, number> {
  return typeof value === 'number' && Number.isFinite(value) ? { reward: value } : {};
}

/** Fields of a pair that are read. */
const PAIR = [
  ...['request', 'request_body', 'body', 'response', 'response_body', 'completion', 'reward', 'score', 'metadata'],
  ...SESSIONS,
];
/** Fields of a request and of a response that are read, or that say nothing about the episode. */
const REQUEST = ['messages', 'input', 'system', 'instructions', 'tools', 'stream', 'stream_options'];
const RESPONSE = [
  ...['id', 'object', 'created', 'created_at', 'choices', 'output', 'content', 'role', 'type', 'usage'],
  ...['stop_reason', 'stop_sequence', 'status'],
];

/** Reads pairs of a session, in the order of their lines. */
export function readPairs(values: readonly unknown[], losses: Losses): ReadEpisode {
  const tree = new RequestTree();
  let scores: Record<string, number> = {};
  for (const value of values) {
    const pair = pairOf(value);
    if (!pair) {
      losses.add('records (no request with its response)');
      continue;
    }
    const { request, response } = pair;
    const record = recordOf(value) ?? {};
    const score = scoreOf(record.reward ?? record.score);
    if ('reward' in scores && 'reward' in score) losses.add('scores (several of one name)'); // the last one counts
    scores = { ...scores, ...score };
    losses.addOthers(record, PAIR, '');
    const { messages, system, input, instructions, tools } = request;
    const asked = readAsked({ messages: messages ?? input, system, instructions, tools }, losses, 'request');
    const parameters = readParameters(request, losses, 'request', REQUEST);
    losses.addOthers(response, RESPONSE, 'response');
    const { usage, stop_reason: stop, choices } = response;
    const choice = recordOf(Array.isArray(choices) ? choices[0] : undefined);
    const written = choice || response.output !== undefined ? replyOf(response, losses, 'response') : response;
    const reply = readReplyMessage(pickMessage(written), losses, 'response');
    if (!reply || asked.messages.length === 0) {
      losses.add(`records (no ${reply ? 'messages' : 'reply'})`);
      continue;
    }
    const counts = recordOf(usage) ?? {};
    losses.addOthers(
      counts,
      ['prompt_tokens', 'completion_tokens', 'input_tokens', 'output_tokens', 'total_tokens'],
      'response.usage',
    );
    losses.addOthers(record.metadata, SESSIONS, 'metadata');
    tree.add(asked.messages, asked.tools, reply, {
      ...parameters,
      finish: readFinish(choice?.finish_reason ?? stop),
      promptTokens: countOf(counts.prompt_tokens ?? counts.input_tokens),
      completionTokens: countOf(counts.completion_tokens ?? counts.output_tokens),
    });
  }
  return { calls: tree.calls, rest: [], scores };
}

/** Message of a response: of Anthropic's its role and content alone. */
function pickMessage(value: unknown): unknown {
  if (!isRecord(value) || !('content' in value) || value.type !== 'message' || !('stop_reason' in value)) return value;
  return { role: value.role, content: value.content };
}
