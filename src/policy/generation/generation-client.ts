/**
 * Generation client of servers that generate under adapters handed over by path: token ids in, token ids and their
 * log-probabilities out. Two dialects: vLLM's completions and SGLang's generate.
 *
 * @see https://docs.vllm.ai/en/latest/features/lora.html, https://docs.sglang.ai/advanced_features/lora.html
 */
import { LongplayError, messageOf } from '../../core/errors.ts';
import { parseJson } from '../../core/json-text.ts';
import { excerpt, HttpClient } from '../../http/http-client.ts';
import { isTokenId } from '../remote/token-id.ts';

export type GenerationApi = 'vllm' | 'sglang';

export interface GenerationRequest {
  /** Name of an adapter that was loaded; absent: the base model alone. */
  readonly adapter?: string;
  readonly ids: readonly number[];
  readonly maxTokens: number;
  /** Temperature; 0 is greedy. */
  readonly temperature: number;
  /** Seed, uint32. */
  readonly seed: number;
  readonly endTokens: readonly number[];
}

export type Generation =
  | {
      readonly kind: 'done';
      readonly tokens: readonly number[];
      readonly logprobs: readonly number[];
      readonly ended: boolean;
    }
  /** Abort: the server gave up between two tokens, neither an end nor a truncation. */
  | { readonly kind: 'aborted' }
  /** Unknown adapter: the server was restarted, or dropped it. */
  | { readonly kind: 'unknown-adapter' };

export interface GenerationOptions {
  readonly api: GenerationApi;
  /** Root of the server, e.g. http://127.0.0.1:8000 */
  readonly url: string;
  /** Base model, as the server calls it. */
  readonly model: string;
  readonly apiKey?: string | undefined;
  /** Milliseconds of one request. */
  readonly attemptMs: number;
}

export interface GenerationClient {
  /**
   * Generates an answer.
   * @throws {LongplayError} REMOTE_FAILED for an answer that cannot be used; another attempt may do better
   */
  generate(request: GenerationRequest): Promise<Generation>;
  /**
   * Loads an adapter under a name that was never used before. A name that is loaded already names the same folder.
   * @param path as the server sees it
   * @throws {LongplayError} REMOTE_FAILED with the server's words
   */
  load(name: string, path: string): Promise<void>;
  /** Unloads an adapter, within two seconds and also once the client is closed; one that is not there is no error. */
  unload(name: string): Promise<void>;
  /** Closes the client: generations and loads under way are given up, further ones are refused. */
  close(): void;
  /** Aborts when the client is closed. */
  readonly closed: AbortSignal;
}

/** Opens a client; nothing is asked of the server yet. */
export function openGenerationClient(options: GenerationOptions): GenerationClient {
  return options.api === 'vllm' ? vllm(options) : sglang(options);
}

function vllm(options: GenerationOptions): GenerationClient {
  const { post, postLast, ...closing } = openPosts(options);
  return {
    ...closing,
    async generate({ adapter, ids, maxTokens, temperature, seed, endTokens }) {
      const model = adapter ?? options.model;
      const reply = await post('/v1/completions', {
        model,
        prompt: ids,
        max_tokens: maxTokens,
        temperature,
        top_p: 1,
        top_k: 0,
        min_p: 0,
        repetition_penalty: 1,
        seed,
        stop_token_ids: endTokens,
        logprobs: 1,
        return_token_ids: true,
        skip_special_tokens: false,
        spaces_between_special_tokens: false,
        add_special_tokens: false,
        cache_salt: model, // a second belt: pasts under one adapter are never read under another
        n: 1,
      });
      return readVllm(model, reply);
    },
    async load(name, path) {
      const { status, body } = await post('/v1/load_lora_adapter', { lora_name: name, lora_path: path });
      // The name is ours alone and stands for one folder for ever: loaded is loaded, whichever attempt did it.
      if (status === 200 || (status === 400 && /already been loaded/.test(text(body)))) return;
      const hint =
        status === 404 && !/adapter/.test(text(body)) ? ' (start vLLM with VLLM_ALLOW_RUNTIME_LORA_UPDATING=True)' : '';
      throw createFailure('/v1/load_lora_adapter', status, `${text(body)}${hint}`);
    },
    async unload(name) {
      await postLast('/v1/unload_lora_adapter', { lora_name: name });
    },
  };
}

function sglang(options: GenerationOptions): GenerationClient {
  const { post, postLast, ...closing } = openPosts(options);
  return {
    ...closing,
    async generate({ adapter, ids, maxTokens, temperature, seed, endTokens }) {
      const reply = await post('/generate', {
        input_ids: ids,
        sampling_params: {
          max_new_tokens: maxTokens,
          temperature,
          top_p: 1,
          top_k: -1,
          min_p: 0,
          repetition_penalty: 1,
          stop_token_ids: endTokens,
          skip_special_tokens: false,
          spaces_between_special_tokens: false,
          sampling_seed: seed,
        },
        return_logprob: true,
        logprob_start_len: -1,
        ...(adapter === undefined ? {} : { lora_path: adapter }),
      });
      return readSglang(adapter, reply);
    },
    async load(name, path) {
      const { status, body } = await post('/load_lora_adapter', { lora_name: name, lora_path: path, pinned: false });
      const { success, error_message: why } = recordOf(body);
      if (success === true || (typeof why === 'string' && /already (been )?(loaded|exists)/i.test(why))) return;
      throw createFailure('/load_lora_adapter', status, why ?? body);
    },
    async unload(name) {
      await postLast('/unload_lora_adapter', { lora_name: name });
    },
  };
}

/** Answer of a server: its body parsed, where it is JSON. */
interface Reply {
  readonly status: number;
  readonly body: unknown;
}

/**
 * Reads vLLM's answer to `/v1/completions`.
 * @param model the name that was asked for
 * @throws {LongplayError} REMOTE_FAILED for one that cannot be used
 */
export function readVllm(model: string, { status, body }: Reply): Generation {
  if (status === 404) return { kind: 'unknown-adapter' };
  if (status !== 200) throw createFailure('/v1/completions', status, body);
  const answer = recordOf(body);
  if (answer.model !== model) {
    throw createFailure('/v1/completions', status, `an answer of ${text(answer.model)}, asked was ${model}`);
  }
  const choice = recordOf(Array.isArray(answer.choices) ? answer.choices[0] : undefined);
  if (choice.finish_reason === 'abort') return { kind: 'aborted' };
  return done(choice.token_ids, recordOf(choice.logprobs).token_logprobs, choice.finish_reason !== 'length');
}

/**
 * Reads SGLang's answer to `/generate`.
 * @param adapter that was asked for
 * @throws {LongplayError} REMOTE_FAILED for one that cannot be used
 */
export function readSglang(adapter: string | undefined, { status, body }: Reply): Generation {
  if (status !== 200) {
    if (adapter !== undefined && /lora|adapter/i.test(text(body))) return { kind: 'unknown-adapter' };
    throw createFailure('/generate', status, body);
  }
  const { output_ids, meta_info } = recordOf(body);
  const { finish_reason, output_token_logprobs } = recordOf(meta_info);
  const finish = recordOf(finish_reason).type;
  if (finish === 'abort') return { kind: 'aborted' };
  const pairs: readonly unknown[] = Array.isArray(output_token_logprobs) ? output_token_logprobs : [];
  const column = (at: 0 | 1) => pairs.map((pair) => (Array.isArray(pair) ? (pair[at] as unknown) : undefined));
  return done(output_ids ?? column(1), column(0), finish !== 'length');
}

/** Reads an answer as an object; anything else has no fields. */
function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function done(tokens: unknown, logprobs: unknown, ended: boolean): Generation {
  const whole =
    Array.isArray(tokens) &&
    Array.isArray(logprobs) &&
    tokens.length > 0 &&
    logprobs.length === tokens.length &&
    logprobs.every((one) => Number.isFinite(one)) &&
    tokens.every(isTokenId);
  if (whole) return { kind: 'done', tokens, logprobs, ended };
  throw new LongplayError('REMOTE_FAILED', 'the server reports no token ids with a log-probability each');
}

/** Milliseconds to unload an adapter: less than an actor has to stop in. */
const UNLOAD_MS = 2000;

/** Requests to a server: `post`, which closing gives up, and `postLast`, which is still sent then. */
function openPosts({ url, apiKey, attemptMs }: GenerationOptions) {
  const baseUrl = url.replace(/\/+$/, '').replace(/\/v1$/, '');
  const open = () => new HttpClient({ baseUrl, headers: apiKey ? { authorization: `Bearer ${apiKey}` } : {} });
  const postBy = (http: HttpClient, deadlineMs: number) => async (path: string, body: unknown) => {
    try {
      const answer = await http.exchange('POST', path.slice(1), JSON.stringify(body), deadlineMs);
      return { status: answer.status, body: parseBody(answer.body) } satisfies Reply;
    } catch (thrown) {
      throw new LongplayError('REMOTE_FAILED', messageOf(thrown), { cause: thrown });
    }
  };
  const http = open();
  return {
    post: postBy(http, attemptMs),
    postLast: postBy(open(), Math.min(attemptMs, UNLOAD_MS)),
    close: () => http.close(),
    closed: http.closed,
  };
}

/** Parses the body of a server's answer; what is no JSON stays a text. */
export function parseBody(body: string): unknown {
  try {
    return parseJson(body);
  } catch {
    return body;
  }
}

function createFailure(path: string, status: number, body: unknown): LongplayError {
  return new LongplayError('REMOTE_FAILED', `${path}: HTTP ${status}: ${excerpt(text(body), 300)}`);
}

function text(body: unknown): string {
  return typeof body === 'string' ? body : JSON.stringify(body ?? null);
}
