/**
 * Hono apps of the servers here, and handlers as functions from a request to an answer, both plain data: protocols are
 * written and tested as such, without a server.
 */
import { validateHeaderValue } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import { messageOf } from '../core/errors.ts';

/** Node's request beside Hono's, with the body that the server has read. */
export interface HttpEnv {
  Bindings: HttpBindings & { readonly incoming: { readonly rawBody?: Buffer } };
}

export type HttpApp = Hono<HttpEnv>;

export interface HttpRequest {
  readonly method: string;
  /** Path without the query, percent-encoded as it was sent. */
  readonly path: string;
  /** Query behind the `?`; empty without one. */
  readonly query: string;
  readonly contentType: string | undefined;
  /** Body as UTF-8; empty without one. */
  readonly body: string;
  /** Signal that aborts when the client has gone. */
  readonly gone: AbortSignal;
}

export interface HttpAnswer {
  readonly status: number;
  /** Content type. Default `application/json`; empty for none. */
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Body as a whole, or its pieces as they come. */
  readonly body: string | AsyncIterable<string>;
}

/** Function from a request to its answer. */
export type HttpHandler = (request: HttpRequest) => HttpAnswer | Promise<HttpAnswer>;

/** Makes a JSON answer. */
export function json(value: unknown, status = 200): HttpAnswer {
  return { status, body: JSON.stringify(value) };
}

/** Makes the answer to a request that is refused before a handler sees it, or that nothing handles. */
export function refusalOf(status: number, message: string): HttpAnswer {
  return json({ error: { message, type: 'refused', code: status } }, status);
}

/** Makes an app whose errors are JSON. */
export function createApp(): HttpApp {
  const app = new Hono<HttpEnv>();
  app.notFound((c) => respond(c, refusalOf(404, `nothing at ${c.req.path}`)));
  app.onError((thrown, c) => {
    const error = { message: messageOf(thrown), type: 'internal', code: 500 };
    return respond(c, json({ error }, 500));
  });
  return app;
}

/** Makes an app of one handler. */
export function appOf(handler: HttpHandler): HttpApp {
  return createApp().all('*', handle(handler));
}

/** Makes Hono's handler of a handler. */
export function handle(handler: HttpHandler): (c: Context<HttpEnv>) => Response | Promise<Response> {
  return (c) => {
    const made = handler(new NodeRequest(c));
    return made instanceof Promise ? made.then((answer) => respond(c, answer)) : respond(c, made);
  };
}

/**
 * Makes Hono's response of an answer.
 * @throws {TypeError} for a header that cannot be sent
 */
export function respond(c: Context<HttpEnv>, { status, contentType, headers, body }: HttpAnswer): Response {
  const all: Record<string, string> = {};
  if (status !== 204 && contentType !== '') all['content-type'] = contentType ?? 'application/json';
  for (const name in headers) {
    validateHeaderValue(name, headers[name]!);
    all[name] = headers[name]!;
  }
  if (typeof body !== 'string') return new Response(streamOf(c, body), { status, headers: all });
  if (c.req.method === 'HEAD') all['content-length'] = String(Buffer.byteLength(body)); // Hono leaves the body out
  return new Response(status === 204 ? null : body, { status, headers: all });
}

/** Stream of pieces. One that breaks ends the connection: the client sees a broken body, not a whole one. */
function streamOf(c: Context<HttpEnv>, pieces: AsyncIterable<string>): ReadableStream<Uint8Array> {
  const iterator = pieces[Symbol.asyncIterator]();
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        for (;;) {
          const { done, value } = await iterator.next();
          if (done) return controller.close();
          if (value === '') continue; // an empty chunk would end the body
          return controller.enqueue(encoder.encode(value));
        }
      } catch {
        c.env.outgoing.destroy();
      }
    },
    async cancel() {
      await iterator.return?.();
    },
  });
}

/** Request as a handler sees it. A class, since V8 makes each object literal with a getter a dictionary. */
class NodeRequest implements HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly contentType: string | undefined;
  readonly body: string;
  readonly #context: Context<HttpEnv>;
  #gone: AbortController | undefined;

  constructor(c: Context<HttpEnv>) {
    const { incoming } = c.env;
    const { method, url, headers, rawBody } = incoming;
    const target = targetOf(url ?? '/');
    const mark = target.indexOf('?');
    this.method = method ?? 'GET';
    this.path = mark < 0 ? target : target.slice(0, mark);
    this.query = mark < 0 ? '' : target.slice(mark + 1);
    this.contentType = headers['content-type'];
    this.body = rawBody?.toString('utf8') ?? '';
    this.#context = c;
  }

  /** Signal made when it is first read: most handlers answer before a client could leave. */
  get gone(): AbortSignal {
    if (!this.#gone) {
      const { outgoing } = this.#context.env;
      const gone = (this.#gone = new AbortController());
      if (outgoing.destroyed) gone.abort();
      outgoing.once('close', () => {
        if (!outgoing.writableFinished) gone.abort();
      });
    }
    return this.#gone.signal;
  }
}

/** Path and query of a request's target; of a whole URL, as a proxy is sent, without its host. */
export function targetOf(target: string): string {
  if (target.startsWith('/') || !URL.canParse(target)) return target;
  const { pathname, search } = new URL(target);
  return pathname + search;
}
