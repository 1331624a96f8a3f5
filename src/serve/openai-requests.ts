/** OpenAI requests: completions and chats as clients send them, checked, with their prompts and choices read. Pure. */
import { z } from 'zod';
import { cutText } from '../core/describe-value.ts';
import { messageOf } from '../core/errors.ts';
import { parseJson } from '../core/json-text.ts';
import type { TokenSampling } from '../core/model-call.ts';
import { isRecord } from '../core/record.ts';
import { FIELDS } from '../gateway/dialects/fields.ts';
import type { Codec } from '../text/reading/codec.ts';
import { choicesOfSchema } from './schema-choices.ts';

/** Refusal of a request, in OpenAI's error form. */
export class RefusedRequest extends Error {
  readonly status: number;
  /** Key of the body that is wrong; null where it is the body. */
  readonly param: string | null;
  /** Code that clients compare, e.g. `model_not_found`; mostly null. */
  readonly code: string | null;

  /** @param param key of the body that is wrong; it begins the message */
  constructor(param: string | null, message: string, status = 400, code: string | null = null) {
    super(param === null ? message : `${param}: ${message}`);
    this.status = status;
    this.param = param;
    this.code = code;
  }
}

const choices = z.array(z.string()).min(1).max(10_000);
const common = {
  model: z.string().optional(),
  temperature: z.number().min(0).max(100).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  top_k: z.int().min(-1).nullish(),
  min_p: z.number().min(0).max(1).nullish(),
  repetition_penalty: z.number().min(0.01).max(100).nullish(),
  presence_penalty: z.number().min(-2).max(2).nullish(),
  frequency_penalty: z.number().min(-2).max(2).nullish(),
  max_tokens: z.int().min(1).nullish(),
  n: z.int().min(1).max(64).nullish(),
  seed: z.int().nullish(),
  stop: z.union([z.string(), z.array(z.string()).max(16)]).nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().optional() }).nullish(),
  guided_choice: choices.nullish(),
  structured_outputs: z.object({ choice: choices.optional() }).nullish(),
  response_format: z.object({ type: z.string(), json_schema: z.unknown().optional() }).nullish(),
  return_token_ids: z.boolean().nullish(),
};
const ids = z.array(z.int());
const promptForm = 'expected a text, token ids, or a list of texts or of lists of token ids';

/** Body of `POST /v1/completions`. */
export const completionRequest = z.object({
  ...common,
  prompt: z.union([z.string(), ids, z.array(z.string()), z.array(ids)], { error: promptForm }),
  echo: z.boolean().nullish(),
  logprobs: z.int().min(0).nullish(),
  longplay: z
    .object({
      prompt_length: z.int().optional(),
      focus: ids.optional(),
      mentions: z.array(z.array(z.int()).max(64)).optional(),
      candidates: z.array(z.string()).optional(),
    })
    .nullish(),
});
const part = z.object({ type: z.literal('text'), text: z.string() });
const noCalls = z.tuple([], { error: 'expected no calls: this policy calls no tools' }).nullish();

/** Body of `POST /v1/chat/completions`. */
export const chatRequest = z.object({
  ...common,
  messages: z
    .array(
      z.object({
        role: z.enum(['system', 'developer', 'user', 'assistant']),
        content: z.union([z.string(), z.array(part)]),
        tool_calls: noCalls,
      }),
    )
    .min(1),
  max_completion_tokens: z.int().min(1).nullish(),
  logprobs: z.boolean().nullish(),
});

/** Keys that completions and chats share. */
export type CommonRequest = z.infer<z.ZodObject<typeof common>>;
export type CompletionRequest = z.infer<typeof completionRequest>;

/** UTF-16 units of a conversation, all messages together. */
const MAX_CONVERSATION_CHARS = 1_000_000;
/** UTF-16 units that one token stands for at most, where a codec states none. */
const LONGEST_TOKEN = 256;
/** Answers of one request: prompts times `n`. */
const MAX_ANSWERS = 1024;

/** Keys that change an answer and that no policy here can follow, with the values that change nothing. */
const UNSUPPORTED: Readonly<Record<string, (value: unknown) => boolean>> = {
  tools: (value) => Array.isArray(value) && value.length === 0,
  tool_choice: (value) => value === 'none' || value === 'auto',
  parallel_tool_calls: (value) => typeof value === 'boolean',
  functions: (value) => Array.isArray(value) && value.length === 0,
  function_call: (value) => value === 'none',
  logit_bias: (value) => typeof value === 'object' && Object.keys(value as object).length === 0,
  best_of: (value) => value === 1,
  suffix: (value) => value === '',
  modalities: (value) => Array.isArray(value) && value.every((one) => one === 'text'),
  audio: () => false,
  guided_json: () => false,
  guided_regex: () => false,
  guided_grammar: () => false,
};

/** Refuses keys that would be dropped without a word. @throws {RefusedRequest} with `unsupported_parameter` */
function refuseUnsupported(raw: unknown): void {
  if (typeof raw !== 'object' || raw === null) return;
  const { structured_outputs: outputs } = raw as { structured_outputs?: unknown };
  const inner = typeof outputs === 'object' && outputs !== null ? Object.keys(outputs) : [];
  const other = inner.find((key) => key !== 'choice');
  if (other !== undefined) throw createUnsupported(`structured_outputs.${other}`);
  for (const [key, isNeutral] of Object.entries(UNSUPPORTED)) {
    const value = (raw as Record<string, unknown>)[key];
    if (value !== undefined && value !== null && !isNeutral(value)) throw createUnsupported(key);
  }
}

/**
 * Refuses keys of a chat that are neither read here nor known to the dialect of chat completions as ignorable: dropped without
 * a word, they would be taken for obeyed.
 * @throws {RefusedRequest}
 */
export function refuseUnknown(raw: unknown): void {
  if (!isRecord(raw)) return;
  for (const [key, value] of Object.entries(raw)) {
    if (value === null || Object.hasOwn(chatRequest.shape, key) || Object.hasOwn(UNSUPPORTED, key)) continue;
    const field = FIELDS.chat.request.get(key);
    if (field?.use === 'ignored') continue;
    if (field) throw createUnsupported(key);
    const shown = cutText(key);
    throw new RefusedRequest(shown, 'this server does not know it; leave it out', 400, 'unknown_parameter');
  }
}

function createUnsupported(key: string): RefusedRequest {
  return new RefusedRequest(key, 'this server cannot follow it; leave it out', 400, 'unsupported_parameter');
}

/**
 * Parses a request's body.
 * @param refuse looks at the parsed body before it is checked entry by entry; may throw
 * @throws {RefusedRequest}
 */
export function parseRequest<T>(schema: z.ZodType<T>, text: string, refuse: (raw: unknown) => void): T {
  let raw: unknown;
  try {
    raw = parseJson(text);
  } catch (thrown) {
    throw new RefusedRequest(null, `the body is not JSON: ${messageOf(thrown)}`);
  }
  refuseUnsupported(raw);
  refuse(raw);
  const read = schema.safeParse(raw);
  if (read.success) return read.data;
  const { path, message } = read.error.issues[0]!;
  if (path.length === 0) throw new RefusedRequest(null, `body: ${message}`);
  throw new RefusedRequest(path.join('.'), message);
}

/**
 * Refuses, before any work on them, prompts that cannot fit into the model: one thread serves everyone.
 * @param maxPositions tokens that the model reads
 * @throws {RefusedRequest}
 */
export function refuseLong(raw: unknown, maxPositions: number, codec: Codec): void {
  if (typeof raw !== 'object' || raw === null) return;
  const { prompt, messages } = raw as { prompt?: unknown; messages?: unknown };
  const list = isListOfPrompts(prompt) ? prompt : [prompt];
  if (list.length > MAX_ANSWERS) {
    throw new RefusedRequest('prompt', `${list.length} prompts are too many; at most ${MAX_ANSWERS} in a request`);
  }
  for (const one of list) {
    if (typeof one !== 'string' && !Array.isArray(one)) continue;
    const isText = typeof one === 'string';
    const longest = isText ? maxPositions * (codec.longestToken ?? LONGEST_TOKEN) : maxPositions;
    if (one.length <= longest) continue;
    const [unit, kind] = isText ? ['characters', 'text'] : ['ids', 'list'];
    const why = `a ${kind} of ${one.length} ${unit} cannot fit; the model reads ${maxPositions} tokens`;
    throw new RefusedRequest('prompt', why);
  }
  const chars = Array.isArray(messages) ? textOf(messages, MAX_CONVERSATION_CHARS) : 0;
  if (chars > MAX_CONVERSATION_CHARS) {
    throw new RefusedRequest('messages', `more than ${MAX_CONVERSATION_CHARS} characters in all`);
  }
}

/** Prompts of a completion, at least one. @throws {RefusedRequest} */
export function promptsOf({ prompt, n, longplay }: CompletionRequest): readonly (string | readonly number[])[] {
  const prompts = isListOfPrompts(prompt) ? prompt : [prompt as string | readonly number[]];
  if (prompts.length > 1 && longplay) {
    throw new RefusedRequest('longplay', `it describes one prompt, got ${prompts.length}: send them one at a time`);
  }
  if (prompts.length * (n ?? 1) > MAX_ANSWERS) {
    throw new RefusedRequest('n', `${n} answers to ${prompts.length} prompts are more than ${MAX_ANSWERS} in all`);
  }
  return prompts;
}

/** Keys of sampling settings, and the values that change nothing. */
const NEUTRAL = {
  top_p: [1],
  top_k: [0, -1],
  min_p: [0],
  repetition_penalty: [1],
  presence_penalty: [0],
  frequency_penalty: [0],
} as const satisfies Partial<Record<keyof CommonRequest, readonly number[]>>;

/**
 * Reads the settings of sampling.
 * @param choosesActions the policy scores listed actions, and has no tokens to draw
 * @returns undefined where nothing is changed
 * @throws {RefusedRequest} for a setting that such a policy cannot follow
 */
export function readSettings(body: CommonRequest, choosesActions: boolean): TokenSampling | undefined {
  const given = Object.entries(NEUTRAL).flatMap(([key, neutral]) => {
    const value = body[key as keyof typeof NEUTRAL];
    const changes = typeof value === 'number' && !(neutral as readonly number[]).includes(value);
    return changes ? [[key, value] as const] : [];
  });
  const [first] = given;
  if (!first) return undefined;
  if (choosesActions) {
    throw new RefusedRequest(
      first[0],
      'it shapes the drawing of tokens, and this policy chooses among whole actions; leave it out',
      400,
      'unsupported_parameter',
    );
  }
  const { top_p, top_k, min_p, repetition_penalty, presence_penalty, frequency_penalty } = Object.fromEntries(given);
  return {
    ...{ topP: top_p, topK: top_k, minP: min_p, repetitionPenalty: repetition_penalty },
    ...{ presencePenalty: presence_penalty, frequencyPenalty: frequency_penalty },
  };
}

/** List of answers to choose among. */
export interface Choices {
  /** Choices as the client sent them. */
  readonly values: readonly string[];
  /** Answers that mean them, in the same order. */
  readonly texts: readonly string[];
}

/** Reads the answers to choose among. @returns undefined where any answer is allowed @throws {RefusedRequest} */
export function readChoices(body: CommonRequest): Choices | undefined {
  const values = body.guided_choice ?? body.structured_outputs?.choice;
  const format = body.response_format;
  if (!format || format.type === 'text') return values ? { values, texts: values } : undefined;
  if (format.type !== 'json_schema') {
    throw new RefusedRequest('response_format', `expected type text or json_schema, got ${format.type}`);
  }
  if (values) throw new RefusedRequest('response_format', 'a list of choices is given too; send one of them');
  const given = format.json_schema as { readonly schema?: unknown } | null | undefined;
  const found = choicesOfSchema(given?.schema);
  if (!found) {
    const why = 'an enum of texts, or an object whose only property is one: this policy chooses, it fills in no schema';
    throw new RefusedRequest('response_format', `json_schema.schema: expected ${why}`);
  }
  const read = choices.safeParse(found.map(({ value }) => value));
  if (!read.success) throw new RefusedRequest('response_format', read.error.issues[0]!.message);
  return { values: read.data, texts: found.map(({ json }) => json) };
}

/** True for several prompts in a list; token ids are one prompt. */
function isListOfPrompts(prompt: unknown): prompt is readonly (string | readonly number[])[] {
  return Array.isArray(prompt) && prompt.length > 0 && typeof prompt[0] !== 'number';
}

/** Levels of a conversation's JSON: list, message, parts, part, text. Deeper ones count as too long. */
const CONVERSATION_DEPTH = 5;

/** UTF-16 units of the strings in a value, counted until they are more than `enough`. */
function textOf(value: unknown, enough: number, depth = 0): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 1;
  if (depth >= CONVERSATION_DEPTH) return enough + 1;
  let chars = 1;
  for (const entry of Object.values(value)) {
    chars += textOf(entry, enough - chars, depth + 1);
    if (chars > enough) break;
  }
  return chars;
}
