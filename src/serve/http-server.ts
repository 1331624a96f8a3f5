/**
 * A small HTTP server over `node:http`: loopback by default, a token for every other address, and bounds on bodies,
 * connections and rate, so that nobody's mistake grows without end. Raw `node:http`, because a framework's request and
 * response objects cost as much as a whole environment step.
 */
import { timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { messageOf, UserError } from '../core/errors.ts';

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
  /** Default `application/json`. */
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
  /** Refused before a handler saw them: rate, size, token, origin. */
  refused: number;
  readonly byStatus: Map<number, number>;
}

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
  const server = createServer({ requestTimeout: options.receiveMs ?? 30_000 }, (request, response) =>
    front.serve(request, response),
  );
  server.maxConnections = options.maxConnections ?? 1024;
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) =>
      reject(new UserError('BAD_ARGUMENT', `cannot listen on ${host}:${port}: ${messageOf(error)}`)),
    );
    server.listen(port, host, resolve);
  });
  const at = (server.address() as AddressInfo).port;
  return { url: `http://${host.includes(':') ? `[${host}]` : host}:${at}`, counts, close: () => close(server) };
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

class Front {
  readonly #handler: HttpHandler;
  readonly #counts: HttpCounts;
  readonly #token: Buffer | undefined;
  readonly #maxBody: number;
  readonly #rate: RateLimit;

  constructor(handler: HttpHandler, options: ListenOptions, counts: HttpCounts) {
    this.#handler = handler;
    this.#counts = counts;
    this.#token = options.token ? Buffer.from(`Bearer ${options.token}`) : undefined;
    this.#maxBody = options.maxBodyBytes ?? 1024 * 1024;
    this.#rate = new RateLimit(options.requestsPerSecond ?? 100_000);
  }

  serve(request: IncomingMessage, response: ServerResponse): void {
    const refusal = this.#refuse(request);
    if (refusal) {
      this.#counts.refused++;
      request.resume();
      this.#answer(response, refusal, performance.now());
      return;
    }
    if (request.method === 'GET' || request.method === 'HEAD') {
      request.resume();
      this.#handle(request, response, '');
      return;
    }
    let first: Buffer | undefined;
    let more: Buffer[] | undefined;
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > this.#maxBody) {
        if (response.headersSent) return;
        this.#counts.refused++;
        response.setHeader('connection', 'close');
        this.#answer(response, refused(413, `the body exceeds ${this.#maxBody} bytes`), performance.now());
        first = more = undefined;
      } else if (!first) first = chunk;
      else (more ??= [first]).push(chunk);
    });
    request.on('end', () => {
      if (size > this.#maxBody) return;
      this.#handle(request, response, more ? Buffer.concat(more).toString() : first ? first.toString() : '');
    });
    // A client that leaves in the middle of its request needs no answer.
    request.on('error', () => {});
  }

  #handle(request: IncomingMessage, response: ServerResponse, body: string): void {
    const began = performance.now();
    const url = request.url ?? '/';
    const mark = url.indexOf('?');
    let gone: AbortController | undefined;
    let answer: HttpAnswer | Promise<HttpAnswer>;
    try {
      answer = this.#handler({
        method: request.method ?? 'GET',
        path: mark < 0 ? url : url.slice(0, mark),
        query: mark < 0 ? '' : url.slice(mark + 1),
        contentType: request.headers['content-type'],
        body,
        // Made when asked for: most handlers answer before anybody could leave.
        get gone() {
          if (!gone) {
            const made = (gone = new AbortController());
            response.once('close', () => made.abort());
          }
          return gone.signal;
        },
      });
    } catch (thrown) {
      answer = broke(thrown);
    }
    if (answer instanceof Promise) {
      answer.then(
        (value) => this.#answer(response, value, began),
        (thrown) => this.#answer(response, broke(thrown), began),
      );
    } else this.#answer(response, answer, began);
  }

  #answer(response: ServerResponse, { status, contentType, headers, body }: HttpAnswer, began: number): void {
    this.#counts.requests++;
    this.#counts.busyMs += performance.now() - began;
    this.#counts.byStatus.set(status, (this.#counts.byStatus.get(status) ?? 0) + 1);
    if (response.destroyed || response.headersSent) return;
    const type = contentType ?? 'application/json';
    if (typeof body === 'string') {
      response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body), ...headers });
      response.end(body);
      return;
    }
    response.writeHead(status, { 'content-type': type, ...headers });
    void pour(body, response);
  }

  #refuse(request: IncomingMessage): HttpAnswer | undefined {
    if (!this.#rate.admit(request.socket.remoteAddress ?? '', performance.now())) {
      return { ...refused(429, 'too many requests'), headers: { 'retry-after': '1' } };
    }
    if (this.#token) {
      const given = Buffer.from(request.headers.authorization ?? '');
      if (given.length !== this.#token.length || !timingSafeEqual(given, this.#token)) {
        return refused(401, 'send the token of this server: Authorization: Bearer …');
      }
    } else if (request.headers.origin !== undefined && !isLoopbackOrigin(request.headers.origin)) {
      // A web page that a person has open must not be able to use a server on their machine.
      return refused(403, 'requests of web pages from elsewhere are not answered');
    }
    return undefined;
  }
}

async function pour(pieces: AsyncIterable<string>, response: ServerResponse): Promise<void> {
  try {
    for await (const piece of pieces) {
      if (response.destroyed) return;
      if (!response.write(piece))
        await new Promise((resolve) => response.once('drain', resolve).once('close', resolve));
    }
    response.end();
  } catch {
    response.destroy(); // the client sees a broken body, not a whole one
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
