/**
 * Refusals of a request: which key a server does not take, or takes in a smaller value, and whether the conversation no longer fits
 * its context. Read from the fields of the error (`param`, `code`) first, and from its words only where it has none. Pure.
 */
import { parseJson } from '../../core/json-text.ts';
import { recordOf } from '../../core/record.ts';
import type { RemoteError } from '../../http/retry.ts';

/** Keys that a request can do without, and what may stand in their place. */
const DISPENSABLE: Readonly<Record<string, string | undefined>> = {
  max_tokens: 'max_completion_tokens',
  seed: undefined,
  top_p: undefined,
  temperature: undefined,
};

/** Keys whose value a server may bound. */
const BOUNDED = ['max_tokens', 'max_completion_tokens'];

/** Codes by which servers refuse a key as such, or its value. */
const REFUSING_CODES = new Set([
  ...['unsupported_parameter', 'unknown_parameter', 'unsupported_value', 'extra_forbidden', 'unrecognized_parameter'],
]);

const REFUSING_WORDS =
  /unsupported|not (?:be )?(?:supported|permitted|allowed|recogni[sz]ed|accepted)|does(?: not|n't) support|unrecogni[sz]ed|unknown|unexpected|extra_forbidden|invalid (?:parameter|argument|key|field|option)|deprecated/i;

const OVERFLOW_CODES = new Set(['context_length_exceeded', 'string_above_max_length', 'context_window_exceeded']);
const OVERFLOW_WORDS =
  /context (?:length|window|size)|maximum (?:prompt|input|sequence|model) length|(?:prompt|input|conversation) is too long|too many (?:input |prompt )?tokens/i;

/** Change that a refusal asks for. */
export interface RefusedKey {
  readonly key: string;
  /** The key that the server asks for in its place. */
  readonly instead?: string;
  /** The largest value that the server takes. */
  readonly max?: number;
}

/** Fields of an error, as far as it has them. */
export interface ServerRefusal {
  readonly param: string | undefined;
  readonly code: string | undefined;
  readonly message: string;
}

/** Fields of an error, as OpenAI, vLLM and FastAPI write them; the message alone where it has none. */
export function readRefusal({ body, message }: RemoteError): ServerRefusal {
  let parsed: unknown;
  try {
    parsed = parseJson(body ?? '');
  } catch {
    return { param: undefined, code: undefined, message: body ?? message };
  }
  const root = recordOf(parsed) ?? {};
  const error = recordOf(root.error) ?? root;
  const [detail] = Array.isArray(root.detail) ? root.detail.map(recordOf) : [];
  const place = Array.isArray(detail?.loc) ? detail.loc.at(-1) : undefined;
  const text = [error.message, detail?.msg, root.detail, root.error].find((one) => typeof one === 'string');
  const code = [error.code, detail?.type, error.type].find((one) => typeof one === 'string' && one !== '');
  return {
    param: [error.param, place].find((one) => typeof one === 'string' && one !== '') as string | undefined,
    code: code as string | undefined,
    message: (text as string | undefined) ?? body ?? message,
  };
}

function isRefusal({ fault, status }: RemoteError): boolean {
  return fault === 'status' && (status === 400 || status === 422);
}

/** True where the conversation is longer than the model's context. */
export function isContextOverflow(error: RemoteError): boolean {
  if (error.fault === 'status' && error.status === 413) return true;
  if (!isRefusal(error)) return false;
  const { code, message } = readRefusal(error);
  return OVERFLOW_CODES.has(code ?? '') || OVERFLOW_WORDS.test(message);
}

/** Least answer that is worth asking for, in tokens. */
const MIN_ANSWER = 16;

/**
 * Room for an answer, where a conversation fits the model's context but not with the answer that was asked for: vLLM and OpenAI
 * say how long both are. @returns tokens, or undefined where the conversation leaves none, or the error does not say
 */
export function answerRoom(error: RemoteError): number | undefined {
  if (!isContextOverflow(error)) return undefined;
  const { message } = readRefusal(error);
  const context = /(?:maximum )?context (?:length|window)[^\d]{0,40}?(\d+)/i.exec(message)?.[1];
  const prompt =
    /(\d+) (?:tokens )?(?:in|from) (?:the |your )?(?:messages|prompt|input)|(?:messages|prompt|input) (?:resulted in|contains?(?: at least)?|has) (\d+)|(\d+) input tokens/i;
  const found = prompt
    .exec(message)
    ?.slice(1)
    .find((digits) => digits !== undefined);
  if (context === undefined || found === undefined) return undefined;
  const room = Number(context) - Number(found);
  return room >= MIN_ANSWER ? room : undefined;
}

/** @returns the key of `body` that a server's refusal names, where the request can do without it or with less of it */
export function findRefusedKey(error: RemoteError, body: Readonly<Record<string, unknown>>): RefusedKey | undefined {
  if (!isRefusal(error)) return undefined;
  const { param, code, message } = readRefusal(error);
  const names = (key: string) => (param === undefined ? new RegExp(`\\b${key}\\b`).test(message) : param === key);
  const refuses = code !== undefined && REFUSING_CODES.has(code);
  if (!refuses) {
    const bounded = BOUNDED.find((key) => key in body && names(key));
    const max = bounded === undefined ? undefined : boundIn(message, body[bounded]);
    if (max !== undefined) return { key: bounded!, max };
  }
  // A field that says which key and why is believed; words are needed where there is none.
  if (isContextOverflow(error) || !(refuses || REFUSING_WORDS.test(message))) return undefined;
  for (const [key, other] of Object.entries(DISPENSABLE)) {
    if (!(key in body) || !names(key)) continue;
    return other !== undefined && !(other in body) && message.includes(other) ? { key, instead: other } : { key };
  }
  return undefined;
}

/** Bound that a message names for a value that is too large: the largest number below it. */
function boundIn(message: string, value: unknown): number | undefined {
  if (typeof value !== 'number') return undefined;
  const isTooLarge =
    /too (?:large|high|big|many)|at most|less than|or equal to|maximum|exceed|greater than|above|<=|≤|up to|limit/i;
  if (!isTooLarge.test(message)) return undefined;
  const numbers = Array.from(
    message.matchAll(/(?<![\w.])\d{1,3}(?:,\d{3})+(?!\d)|(?<![\w.])\d+(?![\w.]*\w)/g),
    ([digits]) => Number(digits.replaceAll(',', '')),
  );
  const below = numbers.filter((n) => n >= 1 && n < value);
  return below.length === 0 ? undefined : below.reduce((a, b) => Math.max(a, b));
}

/** A request for an answer of at most `tokens`. */
export function limitAnswer(
  body: Readonly<Record<string, unknown>>,
  tokens: number,
): Readonly<Record<string, unknown>> {
  return omitKey(
    body,
    BOUNDED.map((key) => ({ key, max: tokens })),
  );
}

/** A request without the refused keys; a key that stands in for one has its value, and none is above its bound. */
export function omitKey(
  body: Readonly<Record<string, unknown>>,
  refused: readonly RefusedKey[],
): Readonly<Record<string, unknown>> {
  if (refused.length === 0) return body;
  const kept = { ...body };
  for (const { key, instead, max } of refused) {
    if (max !== undefined) {
      if (typeof kept[key] === 'number') kept[key] = Math.min(kept[key], max);
      continue;
    }
    if (instead !== undefined && key in kept) kept[instead] = kept[key];
    delete kept[key];
  }
  return kept;
}
