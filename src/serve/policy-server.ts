/**
 * Policy server: a trained policy behind `/v1/models`, `/v1/completions` and `/v1/chat/completions`, as OpenAI's
 * clients speak them. Streaming, log-probabilities, seeds, stop strings, `n`, and lists to choose from
 * (`guided_choice`, or `structured_outputs: { choice }`). A policy that chooses needs such a list; one that writes
 * tokens writes freely without.
 *
 * Beyond the API: token-id prompts with the extension of policy-prompts.ts, `return_token_ids`, and in every choice
 * `longplay: { version, value }`. One choice counts as one token in `logprobs`.
 */
import { randomInt } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { z } from 'zod';
import { messageOf } from '../core/errors.ts';
import type { WorldPrompt } from '../core/prompt.ts';
import type { DecoderKind } from '../model/programs.ts';
import type { Acted } from '../policy/policy.ts';
import type { Codec } from '../reading/codec.ts';
import type { RenderedPrompt } from '../reading/outside.ts';
import type { Decisions } from './decisions.ts';
import { type HttpAnswer, type HttpRequest, type HttpServer, json, type ListenOptions, listen } from './http-server.ts';
import { metricsText } from './metrics.ts';
import { type Answered, chatBody, chatChunks, completionBody, completionChunks } from './openai-answers.ts';
import { actionIn, BadPrompt, readConversation, readText, readTokens } from './policy-prompts.ts';

export interface ServedModelOptions {
  /** Name of the model in the API. */
  readonly name: string;
  readonly codec: Codec;
  readonly decoder: DecoderKind;
  /** Longest run of tokens of one answer. */
  readonly maxTokens: number;
  /** Tokens that the model can read. */
  readonly maxPositions: number;
  /** Version of the weights: the updates they have seen. */
  readonly version: number;
  readonly world: WorldPrompt;
}

export interface PolicyServerOptions extends ListenOptions {
  readonly model: ServedModelOptions;
  readonly decisions: Decisions;
}

const choices = z.array(z.string()).min(1).max(10_000);
const common = {
  model: z.string().optional(),
  temperature: z.number().min(0).max(100).nullish(),
  top_p: z.number().nullish(),
  max_tokens: z.int().min(1).nullish(),
  n: z.int().min(1).max(64).nullish(),
  seed: z.int().nullish(),
  stop: z.union([z.string(), z.array(z.string()).max(16)]).nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().optional() }).nullish(),
  guided_choice: choices.nullish(),
  structured_outputs: z.object({ choice: choices.optional() }).nullish(),
  return_token_ids: z.boolean().nullish(),
};
const ids = z.array(z.int());
const completionRequest = z.object({
  ...common,
  prompt: z.union([z.string(), ids, z.tuple([z.string()]), z.tuple([ids])]),
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
const chatRequest = z.object({
  ...common,
  messages: z
    .array(
      z.object({
        role: z.enum(['system', 'developer', 'user', 'assistant']),
        content: z.union([z.string(), z.array(part)]),
      }),
    )
    .min(1),
  max_completion_tokens: z.int().min(1).nullish(),
  logprobs: z.boolean().nullish(),
});

/** UTF-16 units of a conversation, all messages together. */
const MAX_CONVERSATION_CHARS = 1_000_000;
/** UTF-16 units that one token stands for at most, where a codec does not say. */
const LONGEST_TOKEN = 256;

type Common = z.infer<z.ZodObject<typeof common>>;

/**
 * Serves a policy.
 * @throws {UserError} BAD_ARGUMENT when it cannot listen
 */
export async function servePolicy(options: PolicyServerOptions): Promise<HttpServer> {
  const { decisions, model } = options;
  const completions = new Completions(model, decisions);
  let server: HttpServer | undefined;
  server = await listen(
    (request) => {
      const { method, path } = request;
      if (path === '/health') {
        return json({ status: decisions.healthy ? 'ok' : 'the policy is down' }, decisions.healthy ? 200 : 503);
      }
      if (path === '/metrics') {
        const gauges = { decisions_waiting: decisions.waiting, decisions_waiting_bytes: decisions.waitingBytes };
        return { status: 200, contentType: 'text/plain; version=0.0.4', body: metricsText(server!.counts, gauges) };
      }
      if (path === '/v1/models') return json({ object: 'list', data: [completions.described] });
      if (path === `/v1/models/${encodeURIComponent(model.name)}`) return json(completions.described);
      if (path === '/v1/completions' || path === '/v1/chat/completions') {
        if (method !== 'POST') return problem(405, `expected POST, got ${method}`);
        return completions.answer(path === '/v1/completions' ? 'completions' : 'chat', request);
      }
      return problem(404, `nothing at ${path}`);
    },
    { maxBodyBytes: 8 * 1024 * 1024, ...options },
  );
  return server;
}

class Completions {
  readonly #model: ServedModelOptions;
  readonly #decisions: Decisions;
  #next = 1;

  constructor(model: ServedModelOptions, decisions: Decisions) {
    this.#model = model;
    this.#decisions = decisions;
  }

  get described() {
    const { name, codec, decoder, version, maxPositions } = this.#model;
    return {
      id: name,
      object: 'model',
      created: 0,
      owned_by: 'longplay',
      view: codec.id,
      vocabulary: codec.hash,
      decoder,
      version,
      max_model_len: maxPositions,
    };
  }

  async answer(api: 'completions' | 'chat', request: HttpRequest): Promise<HttpAnswer> {
    try {
      return await (api === 'chat' ? this.#chat(request) : this.#complete(request));
    } catch (thrown) {
      if (thrown instanceof BadPrompt) return problem(400, thrown.message);
      return problem(503, messageOf(thrown));
    }
  }

  async #complete(request: HttpRequest): Promise<HttpAnswer> {
    const body = parse(completionRequest, request.body, (raw) => this.#refuseLong(raw));
    const listed = this.#choicesOf(body);
    const actions = listed ?? [];
    const { codec } = this.#model;
    const prompt = typeof body.prompt[0] === 'string' || Array.isArray(body.prompt[0]) ? body.prompt[0] : body.prompt;
    const read =
      typeof body.prompt === 'string'
        ? readText(body.prompt, codec)
        : typeof prompt === 'string'
          ? readText(prompt, codec)
          : readTokens(prompt as number[], body.longplay ?? {}, actions, codec);
    const withLogprobs = body.logprobs !== null && body.logprobs !== undefined;
    const answered = await this.#decide(body, read, actions, actions, withLogprobs, request);
    const id = `cmpl-${this.#next++}`;
    if (!body.stream) return json(completionBody(id, this.#model.name, answered, withLogprobs));
    const usage = body.stream_options?.include_usage === true;
    return stream(completionChunks(id, this.#model.name, answered, withLogprobs, usage));
  }

  async #chat(request: HttpRequest): Promise<HttpAnswer> {
    const body = parse(chatRequest, request.body, (raw) => this.#refuseLong(raw));
    const { codec, world } = this.#model;
    const messages = body.messages.map(({ role, content }) => ({
      role: role === 'developer' ? ('system' as const) : role,
      content: typeof content === 'string' ? content : content.map(({ text }) => text).join(''),
    }));
    const listed = this.#choicesOf(body) ?? [];
    const actions = listed.map((choice) => actionIn(choice, world));
    const read = readConversation(messages, actions, codec, world);
    const limits = { ...body, max_tokens: body.max_completion_tokens ?? body.max_tokens };
    const withLogprobs = body.logprobs === true;
    const answered = await this.#decide(limits, read, actions, listed, withLogprobs, request);
    const id = `chatcmpl-${this.#next++}`;
    if (!body.stream) return json(chatBody(id, this.#model.name, answered, withLogprobs));
    const usage = body.stream_options?.include_usage === true;
    return stream(chatChunks(id, this.#model.name, answered, withLogprobs, usage));
  }

  /**
   * Refuses, before any work on them, prompts that cannot fit into the model: this thread serves everyone.
   * @throws {BadPrompt}
   */
  #refuseLong(raw: unknown): void {
    const { maxPositions, codec } = this.#model;
    if (typeof raw !== 'object' || raw === null) return;
    const { prompt, messages } = raw as { prompt?: unknown; messages?: unknown };
    const whole = Array.isArray(prompt) && prompt.length === 1 ? prompt[0] : prompt;
    const longest = typeof whole === 'string' ? maxPositions * (codec.longestToken ?? LONGEST_TOKEN) : maxPositions;
    if ((typeof whole === 'string' || Array.isArray(whole)) && whole.length > longest) {
      const [unit, kind] = typeof whole === 'string' ? ['characters', 'text'] : ['ids', 'list'];
      throw new BadPrompt(
        `prompt: a ${kind} of ${whole.length} ${unit} cannot fit; the model reads ${maxPositions} tokens`,
      );
    }
    const chars = Array.isArray(messages) ? textOf(messages, MAX_CONVERSATION_CHARS) : 0;
    if (chars > MAX_CONVERSATION_CHARS) {
      throw new BadPrompt(`messages: more than ${MAX_CONVERSATION_CHARS} characters in all`);
    }
  }

  #choicesOf(body: Common): readonly string[] | undefined {
    const { name, decoder } = this.#model;
    if (body.model !== undefined && body.model !== name) {
      throw new BadPrompt(`model: there is no '${body.model}' here; this server has '${name}'`);
    }
    if (typeof body.top_p === 'number' && body.top_p !== 1) {
      throw new BadPrompt('top_p: only 1: log-probabilities are of the whole distribution');
    }
    const listed = body.guided_choice ?? body.structured_outputs?.choice ?? undefined;
    if (!listed && decoder === 'choice') {
      throw new BadPrompt('guided_choice: this policy chooses among listed actions: send the list');
    }
    return listed;
  }

  /** Decides. @param actions as the policy knows them @param shown as the client does @param withLogprobs each token's */
  async #decide(
    body: Common,
    read: RenderedPrompt,
    actions: readonly string[],
    shown: readonly string[],
    withLogprobs: boolean,
    request: HttpRequest,
  ): Promise<readonly Answered[]> {
    const { maxPositions, maxTokens, decoder, codec } = this.#model;
    const most = Math.min(maxTokens, body.max_tokens ?? maxTokens);
    const length = read.prompt.length + read.after.length + (decoder === 'tokens' ? most : 0);
    if (length > maxPositions) {
      throw new BadPrompt(`the prompt and an answer take up to ${length} tokens; the model reads ${maxPositions}`);
    }
    // Seeds are uint32 here; a longer one keeps its low bits.
    const seed = Number(BigInt.asUintN(32, BigInt(body.seed ?? randomInt(2 ** 32))));
    const given = { ...read, maxTokens: most };
    const temperature = body.temperature ?? 1;
    const stops = typeof body.stop === 'string' ? [body.stop] : (body.stop ?? []);
    if ((body.n ?? 1) > 1) setMaxListeners(0, request.gone); // each answer listens whether its client has gone
    const answers = Array.from({ length: body.n ?? 1 }, async (_, i) => {
      const draw = { given: { ...given, seed: (seed + i) >>> 0 }, actions, temperature };
      const acted = await this.#decisions.decide(draw, request.gone);
      return answeredOf(acted, { actions, shown }, stops, codec, {
        promptTokens: read.prompt.length + read.after.length,
        tokenIds: body.return_token_ids === true,
        byToken: withLogprobs || body.stream === true,
      });
    });
    return Promise.all(answers);
  }
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

function answeredOf(
  { action, decision, response }: Acted,
  { actions, shown }: { readonly actions: readonly string[]; readonly shown: readonly string[] },
  stops: readonly string[],
  codec: Codec,
  facts: { readonly promptTokens: number; readonly tokenIds: boolean; readonly byToken: boolean },
): Answered {
  const { promptTokens } = facts;
  const extra = { longplay: { version: decision?.version ?? 0, value: decision?.value ?? 0 } };
  if (decision?.kind === 'tokens') {
    const { tokens, masked } = decision;
    // A client that sent a list gets an entry of it, letter by letter; the action in it may be spelt in another format.
    const chosen = masked ? shown[actions.indexOf(action)] : undefined;
    // A language model's whole answer is what was asked for; the action is only what a world would read in it.
    const text = chosen ?? response?.text ?? action;
    const ended = masked || codec.ends([...tokens]);
    const pieces = facts.byToken ? piecesOf(decision, codec) : [];
    const answered = {
      text,
      finish: ended ? 'stop' : 'length',
      pieces: pieces.map((piece) => piece.text).join('') === text ? pieces : [whole(text, decision)],
      promptTokens,
      tokens: tokens.length,
    } as const;
    return { ...cut(answered, stops), ...extra, ...(facts.tokenIds ? { tokenIds: [...tokens] } : {}) };
  }
  const text = decision ? shown[decision.choice]! : action;
  const pieces = [{ text, logprob: decision?.logprob ?? 0 }];
  return { ...cut({ text, finish: 'stop', pieces, promptTokens, tokens: 1 }, stops), ...extra };
}

type TokensDecision = Extract<Acted['decision'], { kind: 'tokens' }>;

/** Pieces of an answer, one a token. A character whose bytes come in several tokens counts with the last of them. */
function piecesOf({ tokens, logprobs }: TokensDecision, codec: Codec): Answered['pieces'] {
  let before = '';
  return Array.from(tokens, (_, i) => {
    const text = codec.decode(tokens.subarray(0, i + 1));
    const complete = text.startsWith(before) && (!text.endsWith('\ufffd') || i === tokens.length - 1);
    const piece = complete ? text.slice(before.length) : '';
    if (complete) before = text;
    return { text: piece, logprob: logprobs[i]! };
  });
}

/** An answer as one piece. */
function whole(text: string, { logprobs }: TokensDecision): Answered['pieces'][number] {
  return { text, logprob: logprobs.reduce((sum, one) => sum + one, 0) };
}

/** Ends an answer before the first stop string in it. */
function cut(answered: Answered, stops: readonly string[]): Answered {
  const places = stops.map((stop) => (stop === '' ? -1 : answered.text.indexOf(stop))).filter((at) => at >= 0);
  if (places.length === 0) return answered;
  const end = Math.min(...places);
  const pieces: { text: string; logprob: number }[] = [];
  let at = 0;
  for (const { text, logprob } of answered.pieces) {
    if (at >= end) break;
    pieces.push({ text: text.slice(0, end - at), logprob });
    at += text.length;
  }
  return { ...answered, text: answered.text.slice(0, end), finish: 'stop', pieces };
}

/**
 * Parses a request.
 * @param refuse looks at the parsed body before it is checked entry by entry; may throw
 */
function parse<T>(schema: z.ZodType<T>, text: string, refuse: (raw: unknown) => void): T {
  let raw: unknown;
  try {
    raw = JSON.parse(text);
  } catch (thrown) {
    throw new BadPrompt(`the body is not JSON: ${messageOf(thrown)}`);
  }
  refuse(raw);
  const read = schema.safeParse(raw);
  if (read.success) return read.data;
  const { path, message } = read.error.issues[0]!;
  throw new BadPrompt(`${path.join('.') || 'body'}: ${message}`);
}

function problem(status: number, message: string): HttpAnswer {
  const type = status < 500 ? 'invalid_request_error' : 'server_error';
  return json({ error: { message, type, param: null, code: null } }, status);
}

function stream(chunks: readonly object[]): HttpAnswer {
  const headers = { 'cache-control': 'no-cache' };
  return { status: 200, contentType: 'text/event-stream', headers, body: events(chunks) };
}

async function* events(chunks: readonly object[]): AsyncGenerator<string> {
  for (const chunk of chunks) yield `data: ${JSON.stringify(chunk)}\n\n`;
  yield 'data: [DONE]\n\n';
}
