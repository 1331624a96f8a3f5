/**
 * Language models that worlds talk to themselves: a simulated user, a judge of rewards. A world gets `openChatModel` when it is started
 * (`StartContext`); programs import it from the library.
 */
import type { AgentReply } from './agent-call.ts';
import { describeValue } from './describe-value.ts';
import type { MaybePromise } from './env.ts';
import { UserError } from './errors.ts';
import type { ConversationMessage, Tool } from './model-call.ts';
import { isRecord } from './record.ts';

/** Options of a model behind an OpenAI-compatible API. */
export interface ChatModelOptions {
  /** Base URL, e.g. `http://127.0.0.1:8000/v1`. */
  readonly url: string;
  /** Name of the model at the server. */
  readonly model: string;
  /** Variable that holds the API key. Default `OPENAI_API_KEY`, and no key where that is unset. */
  readonly apiKeyEnv?: string | undefined;
  /** Temperature, in [0, 2]. Default 0. */
  readonly temperature?: number | undefined;
  /** Tokens of a reply at most. Default: what the server allows. */
  readonly maxTokens?: number | undefined;
  /** Milliseconds of one attempt. Default 60000. */
  readonly timeoutMs?: number | undefined;
  /** Attempts at a request, in [1, 100]. Default 4. */
  readonly attempts?: number | undefined;
  /** Requests in flight at most. Default 16. */
  readonly concurrency?: number | undefined;
  /** Fields merged into every request, e.g. `{ reasoning_effort: low }`. */
  readonly body?: Readonly<Record<string, unknown>> | undefined;
}

/** Request to such a model. */
export interface ChatRequest {
  readonly messages: readonly ConversationMessage[];
  /** Tools that it may call; none where absent. */
  readonly tools?: readonly Tool[] | undefined;
  /** Seed, for servers that sample by one. */
  readonly seed?: number | undefined;
}

/** Language model that answers one request at a time or many at once. */
export interface ChatModel {
  /** Identity for caches: its server, name and settings. */
  readonly id: string;
  /** Replies to a request. @throws {LongplayError} REMOTE_FAILED once no attempt was answered */
  reply(request: ChatRequest): Promise<AgentReply>;
  /** Gives requests under way up; further ones fail. Calling it twice does no harm. */
  close(): void;
}

/** Opens a model. @throws {UserError} BAD_CONFIG, BAD_ARGUMENT for options that cannot be used, e.g. a key that is not set */
export type OpenChatModel = (options: ChatModelOptions) => MaybePromise<ChatModel>;

/** Bounds of the options that are numbers. */
const RANGES = {
  temperature: [0, 2],
  maxTokens: [1, 1_000_000],
  timeoutMs: [1, 3_600_000],
  attempts: [1, 100],
  concurrency: [1, 1024],
} as const;
const KNOWN = ['url', 'model', 'apiKeyEnv', ...Object.keys(RANGES), 'body'];

/**
 * Reads options of a model as a configuration writes them.
 * @param at place in the configuration, for messages, e.g. `judge`
 * @throws {UserError} BAD_CONFIG naming the option
 */
export function readChatModelOptions(value: unknown, at: string): ChatModelOptions {
  const fail = (place: string, expected: string, got: unknown): never => {
    throw new UserError('BAD_CONFIG', `${place}: expected ${expected}, got ${describeValue(got)}`);
  };
  if (!isRecord(value)) return fail(at, '{ url, model, … } of an OpenAI-compatible API', value);
  const { url, model, apiKeyEnv, body } = value;
  for (const key of Object.keys(value)) {
    if (!KNOWN.includes(key)) fail(`${at}.${key}`, `one of the options ${KNOWN.join(', ')}`, value[key]);
  }
  if (typeof url !== 'string' || !/^https?:/.test(url) || !URL.canParse(url)) {
    return fail(`${at}.url`, 'a URL, e.g. http://127.0.0.1:8000/v1', url);
  }
  if (typeof model !== 'string' || model === '') return fail(`${at}.model`, 'the name of a model', model);
  if (apiKeyEnv !== undefined && (typeof apiKeyEnv !== 'string' || apiKeyEnv === '')) {
    return fail(`${at}.apiKeyEnv`, 'the name of a variable', apiKeyEnv);
  }
  if (body !== undefined && !isRecord(body)) return fail(`${at}.body`, 'an object of fields', body);
  for (const [name, [min, max]] of Object.entries(RANGES)) {
    const number = value[name];
    if (number === undefined) continue;
    const isWhole = name === 'temperature' || Number.isInteger(number);
    if (!(isWhole && typeof number === 'number' && number >= min && number <= max)) {
      return fail(`${at}.${name}`, `${name === 'temperature' ? 'a number' : 'an integer'} in [${min}, ${max}]`, number);
    }
  }
  return value as unknown as ChatModelOptions;
}
