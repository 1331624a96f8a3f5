/**
 * Answers that come as a stream though none was asked for: server-sent events whose `data` lines are chunks of a
 * completion, put together to the answer that they amount to.
 */

import { parseJson } from '../../core/json-text.ts';
import { recordOf } from '../../core/record.ts';
import { parseAnswer } from '../../http/http-client.ts';
import { RemoteError } from '../../http/retry.ts';
import type { Api } from './openai-client.ts';

/** True for a body of server-sent events. */
export function isStream(body: string): boolean {
  return /^\s*(?:data|event|id|retry)?:/.test(body);
}

type Json = Record<string, unknown>;

/**
 * The answer that the chunks of a stream make.
 * @throws {RemoteError} malformed for a chunk that is no JSON, and for a stream that broke off: it ended without a reason and
 *   without `[DONE]`
 */
export function joinStream(api: Api, body: string): Json {
  const choice: Json = api === 'chat' ? { message: { content: null } } : { text: '' };
  const answer: Json = { choices: [choice] };
  let chunks = 0;
  let isWhole = false;
  for (const line of body.split(/\r?\n/)) {
    const data = /^data:\s?(.*)$/s.exec(line)?.[1];
    if (data?.trim() === '[DONE]') isWhole = true;
    if (data === undefined || data.trim() === '' || data.trim() === '[DONE]') continue;
    const chunk = recordOf(parseChunk(data)) ?? {};
    if (recordOf(chunk.usage)) answer.usage = chunk.usage;
    if (chunk.prompt_token_ids !== undefined) answer.prompt_token_ids = chunk.prompt_token_ids;
    const part = recordOf(Array.isArray(chunk.choices) ? chunk.choices[0] : undefined);
    if (!part) continue;
    chunks++;
    addChoice(choice, part);
  }
  if (chunks > 0 && !isWhole && typeof choice.finish_reason !== 'string') {
    throw new RemoteError(
      'malformed',
      `the stream broke off after ${chunks} chunks: no finish_reason and no [DONE] came`,
    );
  }
  // Halves of a pair that lay in two chunks are one character now.
  return chunks > 0 ? (parseJson(JSON.stringify(answer)) as Json) : {};
}

/** Parses a chunk as it is: a character may be spread over two. @throws {RemoteError} malformed */
function parseChunk(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return parseAnswer(data);
  }
}

function addChoice(choice: Json, part: Json): void {
  if (typeof part.text === 'string') choice.text = String(choice.text ?? '') + part.text;
  if (typeof part.finish_reason === 'string') choice.finish_reason = part.finish_reason;
  for (const name of ['token_ids', 'prompt_token_ids']) {
    if (Array.isArray(part[name])) choice[name] = [...list(choice[name]), ...list(part[name])];
  }
  if (recordOf(part.longplay)) choice.longplay = part.longplay;
  const logprobs = recordOf(part.logprobs);
  if (logprobs) {
    const known = recordOf(choice.logprobs) ?? {};
    for (const [name, values] of Object.entries(logprobs)) {
      if (Array.isArray(values)) known[name] = [...list(known[name]), ...values];
    }
    choice.logprobs = known;
  }
  const delta = recordOf(part.delta) ?? recordOf(part.message);
  if (delta) addDelta(choice.message as Json, delta);
}

function addDelta(message: Json, delta: Json): void {
  for (const name of ['content', 'reasoning_content', 'reasoning', 'refusal']) {
    if (typeof delta[name] === 'string') message[name] = String(message[name] ?? '') + delta[name];
  }
  for (const raw of list(delta.tool_calls)) {
    const call = recordOf(raw) ?? {};
    const calls = list(message.tool_calls);
    const at = typeof call.index === 'number' ? call.index : calls.length;
    const known = recordOf(recordOf(calls[at])?.function) ?? {};
    const more = recordOf(call.function) ?? {};
    const name = String(known.name ?? '') + String(more.name ?? '');
    calls[Math.min(at, calls.length)] = {
      function: { name, arguments: String(known.arguments ?? '') + String(more.arguments ?? '') },
    };
    message.tool_calls = calls;
  }
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}
