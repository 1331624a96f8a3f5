/**
 * Policy server: a trained policy behind `/v1/models`, `/v1/completions` and `/v1/chat/completions`, as OpenAI's
 * clients speak them. Streaming, log-probabilities, seeds, stop strings, `n`, and lists to choose from
 * (`guided_choice`, `structured_outputs: { choice }`, or `response_format` with a JSON schema whose values can be listed).
 * A policy that chooses needs such a list; one that writes tokens writes freely without.
 *
 * A language model also answers agents: `tools` in chats, `/v1/responses`, `/v1/messages` (agent-replies.ts).
 *
 * Beyond the API: token-id prompts with the extension of policy-prompts.ts, `return_token_ids`, and in every choice
 * `longplay: { version, value }`. One choice counts as one token in `logprobs`.
 */

import { randomInt } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import type { Context } from 'hono';
import type { z } from 'zod';
import type { DecoderKind } from '../compute/model/programs.ts';
import { messageOf } from '../core/errors.ts';
import type { WorldPrompt } from '../core/prompt.ts';
import { type Dialect, RefusedCall } from '../gateway/dialects/dialect.ts';
import { DIALECTS, dialectOf } from '../gateway/dialects/dialects.ts';
import { errorOf, printRefusalOf } from '../gateway/episode.ts';
import { createApp, type HttpAnswer, type HttpEnv, type HttpRequest, handle, json, respond } from '../http/app.ts';
import { type HttpServer, type ListenOptions, listen } from '../http/server.ts';
import type { AgentCodec } from '../text/reading/agent-codec.ts';
import type { Codec } from '../text/reading/codec.ts';
import type { RenderedPrompt } from '../text/reading/received-transcript.ts';
import { AgentReplies, isAgentChat } from './agent-replies.ts';
import { makeAnswer } from './decision-answers.ts';
import type { Decisions } from './decisions.ts';
import {
  type Answered,
  type AnswerHead,
  chatBody,
  chatChunks,
  completionBody,
  completionChunks,
} from './openai-answers.ts';
import {
  type Choices,
  type CommonRequest,
  chatRequest,
  completionRequest,
  parseRequest,
  promptsOf,
  RefusedRequest,
  readChoices,
  readSettings,
  refuseLong,
  refuseUnknown,
} from './openai-requests.ts';
import { actionIn, readConversation, readText, readTokens } from './policy-prompts.ts';
import { metricsAnswer } from './server-metrics.ts';

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
  /** Unix time at which the weights were written, in whole seconds. */
  readonly created: number;
  readonly world: WorldPrompt;
  /** Reader of agents' calls; absent where the policy is no language model that could read them. */
  readonly agents?: AgentCodec | undefined;
}

export interface PolicyServerOptions extends ListenOptions {
  readonly model: ServedModelOptions;
  readonly decisions: Decisions;
  /** Unix time in milliseconds, for `created` in answers. Default: the machine's. */
  readonly unixMs?: () => number;
}

/**
 * Serves a policy.
 * @throws {UserError} BAD_ARGUMENT when it cannot listen
 */
export async function servePolicy(options: PolicyServerOptions): Promise<HttpServer> {
  const { decisions, model } = options;
  const unixMs = options.unixMs ?? Date.now;
  const completions = new Completions(model, decisions, unixMs);
  const { name, agents: codec, maxTokens, maxPositions } = model;
  const agents = new AgentReplies({ model: name, codec, decisions, maxTokens, maxPositions, unixMs });
  const answerAgent = async (c: Context<HttpEnv>, dialect: Dialect) => {
    const { incoming, outgoing } = c.env;
    return respond(c, await agents.answer(dialect, incoming.rawBody ?? Buffer.alloc(0), outgoing));
  };
  let server: HttpServer | undefined;
  const app = createApp();
  app.get(
    '/health',
    handle(() => {
      const { healthy } = decisions;
      return json({ status: healthy ? 'ok' : 'the policy is down' }, healthy ? 200 : 503);
    }),
  );
  app.get(
    '/metrics',
    handle(() => {
      const { waiting, waitingBytes } = decisions;
      return metricsAnswer(server!.counts, [
        { name: 'waiting_decisions', type: 'gauge', help: 'Turns that wait for their decision.', value: waiting },
        { name: 'waiting_decisions_bytes', type: 'gauge', help: 'Memory held for them.', value: waitingBytes },
      ]);
    }),
  );
  app.get(
    '/v1/models',
    handle(() => json({ object: 'list', data: [completions.described] })),
  );
  app.get('/v1/models/:model{.+}', (c) => {
    const asked = c.req.param('model');
    return respond(c, asked === model.name ? json(completions.described) : refusal(completions.unknownModel(asked)));
  });
  app.post(
    '/v1/completions',
    handle((request) => completions.answer('completions', request)),
  );
  const answerChat = handle((request) => completions.answer('chat', request));
  app.post('/v1/chat/completions', (c) => {
    const { rawBody } = c.env.incoming;
    const isAgent = codec !== undefined && (codec === model.codec || isAgentChat(rawBody?.toString('utf8') ?? ''));
    return isAgent ? answerAgent(c, DIALECTS.chat) : answerChat(c);
  });
  app.post('/v1/responses', (c) => answerAgent(c, DIALECTS.responses));
  app.post('/v1/responses/compact', (c) => respond(c, agents.compact(c.env.incoming.rawBody ?? Buffer.alloc(0))));
  app.post('/v1/messages', (c) => answerAgent(c, DIALECTS.messages));
  app.post('/v1/messages/count_tokens', (c) => respond(c, agents.count(c.env.incoming.rawBody ?? Buffer.alloc(0))));
  for (const path of POSTED) {
    app.all(
      path,
      handle(({ method }) => problem(path, 405, `expected POST, got ${method}`)),
    );
  }
  for (const path of ['/v1/models', '/v1/models/:model{.+}', '/health', '/metrics']) {
    app.all(
      path,
      handle(({ method }) => problem(path, 405, `expected GET, got ${method}`)),
    );
  }
  app.notFound((c) => respond(c, problem(c.req.path, 404, `nothing at ${c.req.path}`)));
  app.onError((thrown, c) => respond(c, problem(c.req.path, 500, messageOf(thrown))));
  server = await listen(app, { maxBodyBytes: 8 * 1024 * 1024, printRefusal: printRefusalOf, ...options });
  return server;
}

class Completions {
  readonly #model: ServedModelOptions;
  readonly #decisions: Decisions;
  readonly #unixMs: () => number;
  #next = 1;

  constructor(model: ServedModelOptions, decisions: Decisions, unixMs: () => number) {
    this.#model = model;
    this.#decisions = decisions;
    this.#unixMs = unixMs;
  }

  get described() {
    const { name, codec, decoder, version, created, maxPositions } = this.#model;
    return {
      id: name,
      object: 'model',
      created,
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
      if (thrown instanceof RefusedRequest) return refusal(thrown);
      return problem(request.path, 503, messageOf(thrown));
    }
  }

  /** Refusal of a model that is not served, as OpenAI's clients know it. */
  unknownModel(asked: string): RefusedRequest {
    const message = `there is no '${asked}' here; this server has '${this.#model.name}'`;
    return new RefusedRequest('model', message, 404, 'model_not_found');
  }

  async #complete(request: HttpRequest): Promise<HttpAnswer> {
    const body = this.#parse(completionRequest, request);
    const withLogprobs = body.logprobs !== null && body.logprobs !== undefined;
    if (body.echo && withLogprobs) {
      throw new RefusedRequest('echo', 'not with logprobs: a prompt has no log-probabilities here');
    }
    const listed = this.#readChoices(body);
    const actions = listed?.values ?? [];
    const { codec } = this.#model;
    // All are read before one is decided, so that a request is refused whole; others are answered in between.
    const reads: { readonly text: string; readonly read: RenderedPrompt }[] = [];
    for (const prompt of promptsOf(body)) {
      if (reads.length > 0) await setImmediate();
      const read =
        typeof prompt === 'string'
          ? readText(this.#requireFit(prompt, 'prompt'), codec)
          : readTokens(prompt, body.longplay ?? {}, actions, codec);
      this.#refuseUnfit(body, read);
      reads.push({ text: typeof prompt === 'string' ? prompt : body.echo ? codec.decode(prompt) : '', read });
    }
    const answers = await Promise.all(
      reads.map(async ({ text, read }) => {
        const answered = await this.#decide(body, read, actions, listed?.texts ?? [], withLogprobs, request);
        return body.echo ? answered.map((one) => ({ ...one, echo: text })) : answered;
      }),
    );
    const head = this.#head('cmpl');
    if (!body.stream) return json(completionBody(head, answers.flat(), withLogprobs));
    const usage = body.stream_options?.include_usage === true;
    return stream(completionChunks(head, answers.flat(), withLogprobs, usage));
  }

  async #chat(request: HttpRequest): Promise<HttpAnswer> {
    const body = this.#parse(chatRequest, request, refuseUnknown);
    const { codec, world } = this.#model;
    const messages = body.messages.map(({ role, content }) => ({
      role: role === 'developer' ? ('system' as const) : role,
      content: typeof content === 'string' ? content : content.map(({ text }) => text).join(''),
    }));
    const listed = this.#readChoices(body);
    const actions = (listed?.values ?? []).map((choice) => actionIn(choice, world));
    if (codec.openMessages) this.#requireFit(messages.map(({ content }) => content).join('\n'), 'messages');
    const read = readConversation(messages, actions, codec, world);
    const limits = { ...body, max_tokens: body.max_completion_tokens ?? body.max_tokens };
    this.#refuseUnfit(limits, read);
    const withLogprobs = body.logprobs === true;
    const answered = await this.#decide(limits, read, actions, listed?.texts ?? [], withLogprobs, request);
    const head = this.#head('chatcmpl');
    if (!body.stream) return json(chatBody(head, answered, withLogprobs));
    const usage = body.stream_options?.include_usage === true;
    return stream(chatChunks(head, answered, withLogprobs, usage));
  }

  #head(kind: string): AnswerHead {
    const created = Math.floor(this.#unixMs() / 1000);
    return { id: `${kind}-${this.#next++}`, model: this.#model.name, created };
  }

  /** Parsed body of a request for this model. @param refuse looks at its keys; may throw @throws {RefusedRequest} */
  #parse<T extends CommonRequest>(
    schema: z.ZodType<T>,
    { body }: HttpRequest,
    refuse: (raw: unknown) => void = () => {},
  ): T {
    const { name, maxPositions, codec } = this.#model;
    const parsed = parseRequest(schema, body, (raw) => {
      refuse(raw);
      refuseLong(raw, maxPositions, codec);
    });
    if (parsed.model !== undefined && parsed.model !== name) throw this.unknownModel(parsed.model);
    return parsed;
  }

  /** Answers to choose among. @returns undefined where anything may be written @throws {RefusedRequest} */
  #readChoices(body: CommonRequest): Choices | undefined {
    const listed = readChoices(body);
    if (!listed && this.#model.decoder === 'choice') {
      const how = 'send the list, or an enum as response_format';
      throw new RefusedRequest('guided_choice', `this policy chooses among listed actions: ${how}`);
    }
    return listed;
  }

  /** Text that may fit, before it is read. @throws {RefusedRequest} for one that cannot */
  #requireFit(text: string, field: string): string {
    const { codec, maxPositions } = this.#model;
    if (!codec.exceeds?.(text, maxPositions)) return text;
    throw new RefusedRequest(field, `${text.length} characters cannot fit; the model reads ${maxPositions} tokens`);
  }

  /** Tokens of an answer at most. */
  #maxTokens({ max_tokens }: CommonRequest): number {
    const { maxTokens } = this.#model;
    return Math.min(maxTokens, max_tokens ?? maxTokens);
  }

  /** @throws {RefusedRequest} for a prompt that leaves no room for its answer */
  #refuseUnfit(body: CommonRequest, { prompt, after }: RenderedPrompt): void {
    const { maxPositions, decoder } = this.#model;
    const length = prompt.length + after.length + (decoder === 'tokens' ? this.#maxTokens(body) : 0);
    if (length <= maxPositions) return;
    throw new RefusedRequest(
      null,
      `the prompt and an answer take up to ${length} tokens; the model reads ${maxPositions}`,
    );
  }

  /** Decides, `n` times. @param actions as the policy knows them @param shown the answers that mean them @param withLogprobs each token's */
  async #decide(
    body: CommonRequest,
    read: RenderedPrompt,
    actions: readonly string[],
    shown: readonly string[],
    withLogprobs: boolean,
    request: HttpRequest,
  ): Promise<readonly Answered[]> {
    const { codec, decoder } = this.#model;
    const maxTokens = this.#maxTokens(body);
    // Seeds are uint32 here; a longer one keeps its low bits.
    const seed = Number(BigInt.asUintN(32, BigInt(body.seed ?? randomInt(2 ** 32))));
    const given = { ...read, maxTokens };
    const temperature = body.temperature ?? 1;
    const sampling = readSettings(body, decoder === 'choice');
    const stops = typeof body.stop === 'string' ? [body.stop] : (body.stop ?? []);
    if ((body.n ?? 1) > 1) setMaxListeners(0, request.gone); // each answer listens whether its client has gone
    const answers = Array.from({ length: body.n ?? 1 }, async (_, i) => {
      const draw = { given: { ...given, seed: (seed + i) >>> 0 }, actions, temperature, sampling, stop: stops };
      const acted = await this.#decisions.decide(draw, request.gone);
      return makeAnswer(acted, { actions, shown }, stops, codec, {
        promptTokens: i === 0 ? read.prompt.length + read.after.length : 0,
        tokenIds: body.return_token_ids === true,
        byToken: withLogprobs || body.stream === true,
      });
    });
    return Promise.all(answers);
  }
}

/** Paths that take requests. */
const POSTED = [
  '/v1/completions',
  '/v1/chat/completions',
  '/v1/responses',
  '/v1/responses/compact',
  '/v1/messages',
  '/v1/messages/count_tokens',
];

/** Error answer in the form of the dialect that a path belongs to: Anthropic's of messages, OpenAI's of all others. */
function problem(path: string, status: number, message: string): HttpAnswer {
  return errorOf(dialectOf(path), new RefusedCall(status, message));
}

function refusal({ status, message, param, code }: RefusedRequest): HttpAnswer {
  return json({ error: { message, type: 'invalid_request_error', param, code } }, status);
}

function stream(chunks: readonly object[]): HttpAnswer {
  const headers = { 'cache-control': 'no-cache' };
  return { status: 200, contentType: 'text/event-stream', headers, body: events(chunks) };
}

async function* events(chunks: readonly object[]): AsyncGenerator<string> {
  for (const chunk of chunks) yield `data: ${JSON.stringify(chunk)}\n\n`;
  yield 'data: [DONE]\n\n';
}
