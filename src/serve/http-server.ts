/**
 * A small HTTP/1.1 server on `node:net`: loopback by default, a token for every other address, and bounds on bodies,
 * heads, connections, rate and patience, so that nobody's mistake grows without end. Not `node:http`, whose request and
 * response objects cost several times as much as a whole environment step.
 */
import { timingSafeEqual } from 'node:crypto';
import { type AddressInfo, createServer } from 'node:net';
import { messageOf, UserError } from '../core/errors.ts';
import { Connection, type ConnectionFront } from './http-connection.ts';
import type { BadRequest, ReadRequest } from './http-request.ts';

export interface HttpRequest {
  readonly method: string;
  /** Without the query, percent-encoded as it came. */
  readonly path: string;
  /** Behind the `?`; empty without one. */
  readonly query: string;
  readonly contentType: string | undefined;
  /** UTF-8; empty without a body. */
  readonly body: string;
  /** Aborted when the client has gone. */
  readonly gone: AbortSignal;
}

export interface HttpAnswer {
  readonly status: number;
  /** Default `application/json`; empty for none. */
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** A whole body, or its pieces as they come. */
  readonly body: string | AsyncIterable<string>;
}

export type HttpHandler = (request: HttpRequest) => HttpAnswer | Promise<HttpAnswer>;

export interface HttpLimits {
  /** Default 1 MiB. */
  readonly maxBodyBytes?: number;
  /** Connections at once. Default 1024. */
  readonly maxConnections?: number;
  /** Of one client address, sustained; bursts of a second's worth pass. Default 100000. */
  readonly requestsPerSecond?: number;
  /** Milliseconds a client gets to send a request. Default 30000. */
  readonly receiveMs?: number;
}

export interface ListenOptions extends HttpLimits {
  /** Default `127.0.0.1`. */
  readonly host?: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** Asked of every request as `Authorization: Bearer …`. Needed off loopback. */
  readonly token?: string | undefined;
}

export interface HttpServer {
  /** `http://127.0.0.1:36001` */
  readonly url: string;
  readonly counts: HttpCounts;
  /** Ends open connections too. */
  close(): Promise<void>;
}

/** Totals since the start. */
export interface HttpCounts {
  requests: number;
  /** Milliseconds from a whole request to its answer. */
  busyMs: number;
  /** Refused before a handler saw them: form, rate, size, token, origin. */
  refused: number;
  readonly byStatus: Map<number, number>;
}

/** How often silent clients are looked for, milliseconds. */
const SWEEP_MS = 1000;

const LOOPBACK = new Set(['127.0.0.1', '::1', 'localhost']);

/** A JSON answer. */
export function json(value: unknown, status = 200): HttpAnswer {
  return { status, body: JSON.stringify(value) };
}

/**
 * Starts to listen.
 * @throws {UserError} BAD_ARGUMENT for an address off loopback without a token, or one that cannot be had
 */
export async function listen(handler: HttpHandler, options: ListenOptions): Promise<HttpServer> {
  const { host = '127.0.0.1', port, token } = options;
  if (!LOOPBACK.has(host) && !token) {
    throw new UserError(
      'BAD_ARGUMENT',
      `listening on ${host} lets others in: set LONGPLAY_SERVER_TOKEN, which they must then send, or listen on 127.0.0.1`,
    );
  }
  const counts: HttpCounts = { requests: 0, busyMs: 0, refused: 0, byStatus: new Map() };
  const front = new Front(handler, options, counts);
  const limits = { maxBodyBytes: options.maxBodyBytes ?? 1024 * 1024 };
  const connections = new Set<Connection>();
  let tick = 0;
  const server = createServer({ noDelay: true }, (socket) => {
    const closed = () => void connections.delete(connection);
    const connection = new Connection(socket, front, limits, () => tick, closed);
    connections.add(connection);
  });
  server.maxConnections = options.maxConnections ?? 1024;
  const { receiveMs = 30_000 } = options;
  const every = Math.min(SWEEP_MS, receiveMs / 4);
  const sweep = setInterval(() => {
    tick += every;
    for (const connection of connections) connection.check(tick, receiveMs);
  }, every).unref();
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => {
      clearInterval(sweep);
      reject(new UserError('BAD_ARGUMENT', `cannot listen on ${host}:${port}: ${messageOf(error)}`));
    });
    server.listen(port, host, resolve);
  });
  const at = (server.address() as AddressInfo).port;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${at}`,
    counts,
    close: () =>
      new Promise((resolve) => {
        clearInterval(sweep);
        server.close(() => resolve());
        for (const connection of connections) connection.destroy();
      }),
  };
}

class Front implements ConnectionFront {
  readonly #handler: HttpHandler;
  readonly #counts: HttpCounts;
  readonly #token: Buffer | undefined;
  readonly #rate: RateLimit;

  constructor(handler: HttpHandler, options: ListenOptions, counts: HttpCounts) {
    this.#handler = handler;
    this.#counts = counts;
    this.#token = options.token ? Buffer.from(`Bearer ${options.token}`) : undefined;
    this.#rate = new RateLimit(options.requestsPerSecond ?? 100_000);
  }

  /** Answers at once, or when the promise settles; never throws. */
  serve(request: ReadRequest, address: string, gone: () => AbortSignal): HttpAnswer | Promise<HttpAnswer> {
    const began = performance.now();
    const refusal = this.#refuse(request, address, began);
    if (refusal) {
      this.#counts.refused++;
      return this.#counted(refusal, began);
    }
    let answer: HttpAnswer | Promise<HttpAnswer>;
    try {
      answer = this.#handler(new Asked(request, gone));
    } catch (thrown) {
      answer = broke(thrown);
    }
    if (!(answer instanceof Promise)) return this.#counted(answer, began);
    return answer.then(
      (value) => this.#counted(value, began),
      (thrown) => this.#counted(broke(thrown), began),
    );
  }

  /** What a request that cannot be read is told. */
  refuse({ status, message }: BadRequest): HttpAnswer {
    this.#counts.refused++;
    return this.#counted(refused(status, message), performance.now());
  }

  #counted(answer: HttpAnswer, began: number): HttpAnswer {
    const counts = this.#counts;
    counts.requests++;
    counts.busyMs += performance.now() - began;
    counts.byStatus.set(answer.status, (counts.byStatus.get(answer.status) ?? 0) + 1);
    return answer;
  }

  #refuse({ authorization, origin }: ReadRequest, address: string, now: number): HttpAnswer | undefined {
    if (!this.#rate.admit(address, now)) {
      return { ...refused(429, 'too many requests'), headers: { 'retry-after': '1' } };
    }
    if (this.#token) {
      const given = Buffer.from(authorization ?? '');
      if (given.length !== this.#token.length || !timingSafeEqual(given, this.#token)) {
        return refused(401, 'send the token of this server: Authorization: Bearer …');
      }
    } else if (origin !== undefined && !isLoopbackOrigin(origin)) {
      // A web page that a person has open must not be able to use a server on their machine.
      return refused(403, 'requests of web pages from elsewhere are not answered');
    }
    return undefined;
  }
}

/** A class, not a literal with a getter: V8 makes each of those a dictionary, which costs more than reading the head. */
class Asked implements HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly contentType: string | undefined;
  readonly body: string;
  readonly #gone: () => AbortSignal;

  constructor({ method, target, contentType, body }: ReadRequest, gone: () => AbortSignal) {
    const mark = target.indexOf('?');
    this.method = method;
    this.path = mark < 0 ? target : target.slice(0, mark);
    this.query = mark < 0 ? '' : target.slice(mark + 1);
    this.contentType = contentType;
    this.body = method === 'GET' || method === 'HEAD' ? '' : body;
    this.#gone = gone;
  }

  /** Made when asked for: most handlers answer before anybody could leave. */
  get gone(): AbortSignal {
    return this.#gone();
  }
}

function refused(status: number, message: string): HttpAnswer {
  return json({ error: { message, type: 'refused', code: status } }, status);
}

function broke(thrown: unknown): HttpAnswer {
  return json({ error: { message: messageOf(thrown), type: 'internal', code: 500 } }, 500);
}

function isLoopbackOrigin(origin: string): boolean {
  try {
    return LOOPBACK.has(new URL(origin).hostname.replace(/^\[|\]$/g, ''));
  } catch {
    return false;
  }
}

/** A token bucket per client address. */
class RateLimit {
  readonly #perSecond: number;
  readonly #buckets = new Map<string, { tokens: number; at: number }>();

  constructor(perSecond: number) {
    this.#perSecond = perSecond;
  }

  admit(address: string, now: number): boolean {
    let bucket = this.#buckets.get(address);
    if (!bucket) {
      if (this.#buckets.size >= 10_000) this.#buckets.clear(); // bounded; who is known anew starts full
      this.#buckets.set(address, (bucket = { tokens: this.#perSecond, at: now }));
    }
    bucket.tokens = Math.min(this.#perSecond, bucket.tokens + ((now - bucket.at) / 1000) * this.#perSecond);
    bucket.at = now;
    if (bucket.tokens < 1) return false;
    bucket.tokens--;
    return true;
  }
}
