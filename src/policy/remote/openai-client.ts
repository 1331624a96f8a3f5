/**
 * OpenAI client, for compatible servers: `/models`, `/completions`, `/chat/completions`. Answers are checked by hand,
 * field by field: what a server leaves out stays out, and what has another shape is a `malformed` answer, which is
 * asked for again.
 *
 * @see https://platform.openai.com/docs/api-reference; `token_ids`, `prompt_token_ids` as vLLM gives them
 */

import { describeValue } from '../../core/describe-value.ts';
import { recordOf } from '../../core/record.ts';
import { excerpt, HttpClient, type HttpClientOptions, parseAnswer } from '../../http/http-client.ts';
import { RemoteError } from '../../http/retry.ts';
import { isStream, joinStream } from './answer-stream.ts';
import { isTokenId } from './token-id.ts';

export type Api = 'chat' | 'completions';

/** A function that the model called instead of writing. */
export interface ToolCall {
  readonly name: string;
  /** Arguments as the model wrote them: JSON, or an attempt at it. */
  readonly args: string;
}

export interface Completion {
  /** Text that the model wrote, its reasoning in front between `<think>` and `</think>`. */
  readonly text: string;
  /** Reasoning alone, where the server reports it separately. */
  readonly reasoning?: string;
  readonly calls?: readonly ToolCall[];
  /** Reason of the end: `stop`, `length`, … as the server calls it. */
  readonly finish: string;
  readonly promptTokens: number;
  readonly completionTokens: number;
  /** [T] ids of the answer's tokens. */
  readonly tokens?: Int32Array;
  readonly promptTokenIds?: Int32Array;
  /** [T] log π of each token of the answer. */
  readonly logprobs?: Float32Array;
  /** Extension of our own policy server. */
  readonly longplay?: { readonly version: number; readonly value: number };
}

export interface ServedModel {
  readonly id: string;
  /** View of our own policy server: the meaning of its token ids. */
  readonly view?: string;
  readonly vocabulary?: string;
  readonly decoder?: string;
}

const PATHS: Readonly<Record<Api, string>> = { chat: 'chat/completions', completions: 'completions' };

export class OpenAIClient {
  readonly #http: HttpClient;

  constructor(options: HttpClientOptions) {
    this.#http = new HttpClient(options);
  }

  /** Makes one attempt. @throws {RemoteError} */
  async complete(api: Api, body: object, deadlineMs: number): Promise<Completion> {
    const answer = await this.#http.send('POST', PATHS[api], JSON.stringify(body), deadlineMs);
    return readCompletion(api, isStream(answer.body) ? joinStream(api, answer.body) : parseAnswer(answer.body));
  }

  /** Makes one attempt. @throws {RemoteError} */
  async models(deadlineMs: number): Promise<readonly ServedModel[]> {
    const answer = await this.#http.send('GET', 'models', undefined, deadlineMs);
    const { data } = (parseAnswer(answer.body) ?? {}) as { data?: unknown };
    if (!Array.isArray(data)) throw createMalformedError('a list of models without "data"');
    return data.filter((one): one is ServedModel => typeof (one as ServedModel | null)?.id === 'string');
  }

  /** Aborts when the client is closed. */
  get closed(): AbortSignal {
    return this.#http.closed;
  }

  /** Closes the client: answers under way are given up. */
  close(): void {
    this.#http.close();
  }
}

/**
 * Reads a completion.
 * @throws {RemoteError} malformed
 */
export function readCompletion(api: Api, answer: unknown): Completion {
  const root = recordOf(answer) ?? {};
  const choice = recordOf(Array.isArray(root.choices) ? root.choices[0] : undefined);
  if (!choice) throw createMalformedError(`an answer without "choices": ${excerpt(describeValue(answer, 4000), 120)}`);
  const content = api === 'completions' ? { text: completionText(choice) } : chatAnswer(choice);
  const usage = recordOf(root.usage) ?? {};
  const tokens = ids(choice.token_ids);
  const promptTokenIds = ids(choice.prompt_token_ids ?? root.prompt_token_ids);
  const logprobs = logprobsOf(api, recordOf(choice.logprobs));
  const ours = recordOf(choice.longplay);
  return {
    ...content,
    finish: typeof choice.finish_reason === 'string' ? choice.finish_reason : 'stop',
    promptTokens: whole(usage.prompt_tokens),
    completionTokens: whole(usage.completion_tokens),
    ...(tokens ? { tokens } : {}),
    ...(promptTokenIds ? { promptTokenIds } : {}),
    ...(logprobs ? { logprobs } : {}),
    ...(ours ? { longplay: { version: whole(ours.version), value: finite(ours.value) } } : {}),
  };
}

function completionText(choice: Record<string, unknown>): string {
  if (typeof choice.text === 'string') return choice.text;
  throw createMalformedError('a completion without "text"');
}

/** A chat answer in the shapes that servers give it: a text, parts, calls of tools, reasoning beside it, or a refusal. */
function chatAnswer(choice: Record<string, unknown>): Pick<Completion, 'text' | 'reasoning' | 'calls'> {
  const message = recordOf(choice.message);
  if (!message) throw createMalformedError('a chat completion without "message"');
  const { content, refusal, tool_calls: tools, function_call: legacy } = message;
  const reasoning = message.reasoning_content ?? message.reasoning;
  const calls = [...(Array.isArray(tools) ? tools.map((one) => recordOf(one)?.function) : []), legacy].flatMap(callOf);
  const parts = typeof content === 'string' ? content : partsText(content);
  const reply = parts ?? (typeof refusal === 'string' ? refusal : undefined);
  const thought = typeof reasoning === 'string' && reasoning !== '' ? reasoning : undefined;
  if (reply === undefined && content !== null && calls.length === 0 && thought === undefined) {
    throw createMalformedError('a message without "content"');
  }
  return {
    text: thought === undefined ? (reply ?? '') : `<think>${thought}</think>\n${reply ?? ''}`,
    ...(thought === undefined ? {} : { reasoning: thought }),
    ...(calls.length > 0 ? { calls } : {}),
  };
}

/** The texts of a content in parts; undefined where it is none. */
function partsText(content: unknown): string | undefined {
  if (!Array.isArray(content)) return undefined;
  return content
    .map((part) => recordOf(part)?.text ?? part)
    .filter((text) => typeof text === 'string')
    .join('');
}

function callOf(value: unknown): ToolCall[] {
  const { name, arguments: args } = recordOf(value) ?? {};
  if (typeof name !== 'string') return [];
  return [{ name, args: typeof args === 'string' ? args : JSON.stringify(args ?? {}) }];
}

function finite(value: unknown): number {
  return Number.isFinite(value) ? (value as number) : 0;
}

function logprobsOf(api: Api, logprobs: Record<string, unknown> | undefined): Float32Array | undefined {
  const list =
    api === 'completions'
      ? logprobs?.token_logprobs
      : Array.isArray(logprobs?.content)
        ? logprobs.content.map((token) => recordOf(token)?.logprob)
        : undefined;
  if (!Array.isArray(list) || !list.every((value) => typeof value === 'number')) return undefined;
  const values = Float32Array.from(list); // JSON's 1e999 is infinite, and so is -1e300 in single precision
  if (!values.every(Number.isFinite)) throw createMalformedError('a log-probability that is not finite');
  return values;
}

/** Token ids; a list in which one is none of int32 is no list of them. */
function ids(value: unknown): Int32Array | undefined {
  return Array.isArray(value) && value.every(isTokenId) ? Int32Array.from(value as number[]) : undefined;
}

function whole(value: unknown): number {
  return Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : 0;
}

function createMalformedError(message: string): RemoteError {
  return new RemoteError('malformed', message);
}
