/**
 * Server of the gateway. An episode's URL holds an unguessable id, its requests carry a key of the episode;
 * both are checked before a body is read. It speaks the three dialects:
 *
 *     POST /e/<id>/v1/chat/completions        POST /e/<id>/v1/responses       POST /e/<id>/v1/messages
 *     GET  /e/<id>/v1/models                  POST …/responses/compact        POST …/messages/count_tokens
 *     POST /e/<id>/reward                     reward of the episode, from programs in any language
 *
 * The key may stand in the path, for clients that have no other place: `/e/<id>/key/<key>/v1/…`.
 *
 * Bodies are bounded twice: what no context could hold is refused as too long for one, without being read.
 */
import { hash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { type AgentOutcome, readOutcome } from '../core/agent-call.ts';
import { type Clock, systemClock } from '../core/clock.ts';
import { messageOf } from '../core/errors.ts';
import type { ModelCall } from '../core/model-call.ts';
import type { Refusal } from '../http/access.ts';
import { createApp, type HttpAnswer, json, respond, targetOf } from '../http/app.ts';
import { type BodyLimit, type HttpLimits, listen } from '../http/server.ts';
import { compactHistory } from './compaction.ts';
import { type Dialect, type DialectId, RefusedCall } from './dialects/dialect.ts';
import { DIALECTS, dialectOf } from './dialects/dialects.ts';
import { parseCount } from './dialects/messages.ts';
import { Episode, errorOf, parseBody, parseRecord, printRefusalOf } from './episode.ts';
import { Exchange } from './exchange.ts';
import type { Gateway } from './gateway.ts';

export interface GatewayOptions {
  /** Host. Default `127.0.0.1`. */
  readonly host?: string | undefined;
  /** Port. Default 0: a free one. */
  readonly port?: number | undefined;
  /** Limits of the server. A body may have 64 MiB here, and there may be 8192 connections, where they do not say otherwise. */
  readonly limits?: HttpLimits | undefined;
  /** Name of the model that is listed; any name is accepted and echoed. Default `policy`. */
  readonly model?: string | undefined;
  /** Tokens of a rendered prompt, for `count_tokens`. Default: its characters divided by 4. */
  readonly countTokens?: ((call: ModelCall) => number | Promise<number>) | undefined;
  /** Bytes of a body beyond which no context could hold it: 400. It bounds the time that one request takes. Default 2 MiB. */
  readonly maxContextBytes?: number | undefined;
  /** Clock of held calls. Default: the machine's. */
  readonly clock?: Clock | undefined;
  /** Unix time in milliseconds, stated in replies. Default: the machine's. */
  readonly unixMs?: (() => number) | undefined;
}

/** Gateway that listens. */
export interface OpenGateway extends Gateway {
  /** URL of the server, without an episode. */
  readonly url: string;
  open(): Episode;
}

const { chat, responses, messages } = DIALECTS;

/** Ended episodes that are remembered as such; of older ones nothing is known. */
const MAX_ENDED = 10_000;
/** Connections at once: a program may hold several. */
const MAX_CONNECTIONS = 8192;
/** Bytes of a posted reward. */
const MAX_REWARD_BYTES = 64 * 1024;

/** Route of a request, and whose it is. */
interface Target {
  readonly episode: Episode;
  readonly route: Route;
  readonly dialect: Dialect;
}

type Route = 'call' | 'count' | 'compact' | 'models' | 'reward';

/** Routes below `/v1/`: method, what it does, dialect of its errors. */
const ROUTES: Readonly<Record<string, { readonly method: string; readonly route: Route; readonly dialect: Dialect }>> =
  {
    'chat/completions': { method: 'POST', route: 'call', dialect: chat },
    responses: { method: 'POST', route: 'call', dialect: responses },
    'responses/compact': { method: 'POST', route: 'compact', dialect: responses },
    messages: { method: 'POST', route: 'call', dialect: messages },
    'messages/count_tokens': { method: 'POST', route: 'count', dialect: messages },
    models: { method: 'GET', route: 'models', dialect: chat },
  };

/**
 * Opens a gateway.
 * @throws {UserError} BAD_ARGUMENT for an address that cannot be had
 */
export async function openGateway(options: GatewayOptions = {}): Promise<OpenGateway> {
  const doors = new Doors(options);
  const routes = new Routes(options);
  const app = createApp();
  app.all('*', (c): Response | Promise<Response> => {
    const { incoming, outgoing } = c.env;
    const target = doors.take(incoming)!;
    const { episode, route, dialect } = target;
    const body = incoming.rawBody ?? Buffer.alloc(0);
    if (route === 'models') return respond(c, routes.models());
    if (route === 'reward') return respond(c, routes.reward(episode, body));
    const n = episode.countArrival();
    if (route === 'call') {
      const exchange = new Exchange(outgoing, `req_${n}`, options.clock ?? systemClock);
      episode.receive(dialect, body, isMarkedRetry(incoming.headers), n, exchange);
      return exchange.answer.then((answer) => respond(c, answer));
    }
    if (route === 'count') return routes.count(body).then((answer) => respond(c, answer));
    return respond(c, routes.compact(episode, body, n));
  });
  const server = await listen(app, {
    maxConnections: MAX_CONNECTIONS,
    ...options.limits,
    host: options.host ?? '127.0.0.1',
    port: options.port ?? 0,
    checkHead: (request) => doors.check(request),
    printRefusal: printRefusalOf,
  });
  return {
    url: server.url,
    open: () => doors.open(server.url, options),
    async close() {
      doors.closeAll();
      await setImmediate(); // the refusals of waiting calls go out
      await server.close();
    },
  };
}

/** Doors of the episodes: their ids and keys. Texts of others are compared by their hashes, in constant time. */
class Doors {
  readonly #maxBodyBytes: number;
  /** Bounds on what a context may have. */
  readonly #limits: Readonly<Record<DialectId, BodyLimit>>;
  readonly #episodes = new Map<string, { readonly episode: Episode; readonly key: Buffer }>();
  /** Hashes of the keys of living episodes. */
  readonly #keys = new Set<string>();
  /** Hashes of the ids of ended ones, the oldest first. */
  readonly #ended = new Set<string>();
  readonly #targets = new WeakMap<IncomingMessage, Target>();

  constructor({ limits, maxContextBytes = 2 * 1024 * 1024 }: GatewayOptions) {
    this.#maxBodyBytes = limits?.maxBodyBytes ?? 64 * 1024 * 1024;
    const max = Math.min(maxContextBytes, this.#maxBodyBytes);
    const message = `prompt is too long: more than the maximum of ${max} bytes`;
    const limit = (dialect: Dialect) => limitOf(dialect, max, 400, message, 'context_length_exceeded');
    this.#limits = { chat: limit(chat), responses: limit(responses), messages: limit(messages) };
  }

  /** Opens an episode. @param url of the server */
  open(url: string, { clock = systemClock, unixMs = Date.now }: GatewayOptions): Episode {
    const id = randomBytes(18).toString('base64url');
    const key = `lp-${randomBytes(24).toString('base64url')}`;
    const root = `${url}/e/${id}`;
    const idHash = hashOf(id);
    const keyHash = hashOf(key);
    const onClose = () => {
      this.#episodes.delete(idHash);
      this.#keys.delete(keyHash);
      this.#ended.add(idHash);
      if (this.#ended.size > MAX_ENDED) this.#ended.delete(this.#ended.values().next().value!);
    };
    const episode = new Episode({ baseURL: `${root}/v1`, root, key, clock, unixMs, onClose });
    this.#episodes.set(idHash, { episode, key: Buffer.from(keyHash) });
    this.#keys.add(keyHash);
    return episode;
  }

  closeAll(): void {
    for (const { episode } of this.#episodes.values()) episode.close();
  }

  /** Target of a request that was let in. */
  take(request: IncomingMessage): Target | undefined {
    return this.#targets.get(request);
  }

  /** Checks a request by its head. */
  check(request: IncomingMessage): Refusal | BodyLimit {
    const { id, key: inPath, path } = splitPath(request.url ?? '/');
    const dialect = dialectOf(path);
    const length = Number(request.headers['content-length'] ?? 0);
    if (length > this.#maxBodyBytes) {
      return { status: 413, message: `a body may have ${this.#maxBodyBytes} bytes, got ${length}` };
    }
    if (id === undefined) return { status: 404, message: 'expected a path of an episode: /e/<id>/v1/…' };
    const idHash = hashOf(id);
    const found = this.#episodes.get(idHash);
    if (!found) {
      if (this.#ended.has(idHash)) return { status: 403, message: 'the episode is over' };
      return { status: 404, message: 'there is no such episode' };
    }
    const keys = [...keysOf(request.headers), ...(inPath === undefined ? [] : [inPath])].map((key) => hashOf(key));
    if (!keys.some((key) => timingSafeEqual(Buffer.from(key), found.key))) {
      if (keys.some((key) => this.#keys.has(key)))
        return { status: 403, message: 'this is the key of another episode' };
      return { status: 401, message: 'expected the key of the episode: Authorization: Bearer …, or x-api-key' };
    }
    const { episode } = found;
    const method = request.method ?? 'GET';
    if (path === 'reward' && method === 'POST') {
      this.#targets.set(request, { episode, route: 'reward', dialect });
      return limitOf(dialect, MAX_REWARD_BYTES, 413, `a reward may have ${MAX_REWARD_BYTES} bytes`);
    }
    const known = path.startsWith('v1/') ? ROUTES[path.replace(/^v1\/(?:v1\/)?/, '')] : undefined;
    if (!known || known.method !== method) return { status: 404, message: `nothing at ${method} /${path}` };
    this.#targets.set(request, { episode, ...known });
    return this.#limits[dialect.id];
  }
}

/** Answers of the routes that ask no model. */
class Routes {
  readonly #model: string;
  readonly #countTokens: (call: ModelCall) => number | Promise<number>;
  readonly #unixMs: () => number;

  constructor({ model = 'policy', countTokens = estimateTokens, unixMs = Date.now }: GatewayOptions) {
    this.#model = model;
    this.#countTokens = countTokens;
    this.#unixMs = unixMs;
  }

  models(): HttpAnswer {
    const created = Math.floor(this.#unixMs() / 1000);
    return json({ object: 'list', data: [{ id: this.#model, object: 'model', created, owned_by: 'longplay' }] });
  }

  async count(body: Buffer): Promise<HttpAnswer> {
    try {
      const { call } = parseCount(parseBody(body));
      return json({ input_tokens: await this.#countTokens(call) });
    } catch (thrown) {
      return errorOf(messages, thrown);
    }
  }

  compact(episode: Episode, body: Buffer, n: number): HttpAnswer {
    return compactHistory(body, episode.items, { n, unixMs: this.#unixMs() });
  }

  reward(episode: Episode, body: Buffer): HttpAnswer {
    try {
      const posted = parseRecord(body);
      const { reward } = readReward(posted);
      if (!episode.post(posted)) throw new RefusedCall(400, 'another reward was posted before: an episode has one');
      return json({ reward });
    } catch (thrown) {
      return errorOf(chat, thrown);
    }
  }
}

/** Reads a posted reward. @throws {RefusedCall} */
function readReward(posted: Readonly<Record<string, unknown>>): AgentOutcome {
  try {
    return readOutcome(posted)!;
  } catch (thrown) {
    throw new RefusedCall(400, messageOf(thrown), 'reward');
  }
}

/** Tokens of a prompt, where nothing counts them: one for four characters. */
function estimateTokens({ messages, tools }: ModelCall): number {
  return Math.ceil((JSON.stringify(messages).length + (tools.length > 0 ? JSON.stringify(tools).length : 0)) / 4);
}

/** Id of the episode that a target names, the key in it, and what follows, without the query. */
function splitPath(url: string): {
  readonly id: string | undefined;
  readonly key: string | undefined;
  readonly path: string;
} {
  const match = /^\/e\/([\w-]{1,64})\/(?:key\/([\w-]{1,64})\/)?([^?]*)/.exec(targetOf(url));
  return { id: match?.[1], key: match?.[2], path: match?.[3] ?? url };
}

/** Keys that a request carries: OpenAI's header, Anthropic's, or both. */
function keysOf({ authorization, 'x-api-key': key }: IncomingHttpHeaders): readonly string[] {
  const bearer = /^Bearer (.+)$/i.exec(authorization ?? '')?.[1];
  return [bearer, key].filter((one): one is string => typeof one === 'string');
}

/** True where a client says that it has sent the request before. */
function isMarkedRetry(headers: IncomingHttpHeaders): boolean {
  return Number(headers['x-stainless-retry-count'] ?? 0) >= 1;
}

function limitOf(dialect: Dialect, maxBodyBytes: number, status: number, message: string, code?: string): BodyLimit {
  const { body } = errorOf(dialect, new RefusedCall(status, message, undefined, code));
  return { maxBodyBytes, tooLarge: { status, message, body } };
}

function hashOf(text: string): string {
  return hash('sha256', text, 'base64');
}
