/**
 * HTTP server, version 1.1 over `node:http`: loopback by default, a token for every other address, and limits on body,
 * head, connections, rate and idle time.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { type Clock, systemClock } from '../core/clock.ts';
import { messageOf, UserError } from '../core/errors.ts';
import { GrowingBuffer } from '../core/growing-buffer.ts';
import { Access, type Refusal, requireToken } from './access.ts';
import { type Connection, Connections } from './connections.ts';

export interface HttpRequest {
  readonly method: string;
  /** Path without the query, percent-encoded as it came. */
  readonly path: string;
  /** Query behind the `?`; empty without one. */
  readonly query: string;
  readonly contentType: string | undefined;
  /** Body as UTF-8; empty without one. */
  readonly body: string;
  /** Signal that aborts when the client has gone. */
  readonly gone: AbortSignal;
}

/** Status and headers of an answer. */
interface HttpHead {
  readonly status: number;
  /** Content type. Default `application/json`; empty for none. */
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface HttpAnswer extends HttpHead {
  /** Body as a whole, or its pieces as they come. */
  readonly body: string | AsyncIterable<string>;
}

/**
 * Takes a WebSocket's connection over, after the access rules let it in.
 * @returns false for a path where there is none
 */
export type UpgradeHandler = (path: string, request: IncomingMessage, socket: Socket, head: Buffer) => boolean;

export type HttpHandler = (request: HttpRequest) => HttpAnswer | Promise<HttpAnswer>;

export interface HttpLimits {
  /** Bytes of the longest body. Default 1 MiB. */
  readonly maxBodyBytes?: number;
  /** Connections at once. Default 1024. */
  readonly maxConnections?: number;
  /** Requests per second of one client address, sustained; bursts of a second's worth pass. Default 100000. */
  readonly requestsPerSecond?: number;
  /** Milliseconds that a client has to send a request, its head and its body. Default 30000. */
  readonly receiveMs?: number;
  /** Milliseconds in which a client may take nothing of an answer that waits for it. Default 30000. */
  readonly sendMs?: number;
}

export interface ListenOptions extends HttpLimits {
  /** Host. Default `127.0.0.1`. */
  readonly host?: string;
  /** Port; 0 takes a free one. */
  readonly port: number;
  /** Token that every request must carry as `Authorization: Bearer …`. Needed off loopback. */
  readonly token?: string | undefined;
  /** WebSockets; without it there are none. */
  readonly upgrade?: UpgradeHandler;
  /** Clock of rates and times counted; the waits of connections are node's own. Default: the machine's. */
  readonly clock?: Clock | undefined;
}

export interface HttpServer {
  /** URL, e.g. `http://127.0.0.1:36001`. */
  readonly url: string;
  readonly counts: HttpCounts;
  /** Closes the server, and open connections too. */
  close(): Promise<void>;
}

/** Totals since the start. */
export interface HttpCounts {
  requests: number;
  /** Milliseconds from a whole request to its answer, refusals left out. */
  busyMs: number;
  /** Answers by the first of `DURATION_BOUNDS_MS` that their time is not above; the last counts slower ones. */
  readonly durations: number[];
  /** Requests refused before a handler saw them: form, rate, size, token, origin. */
  refused: number;
  readonly byStatus: Map<number, number>;
}

/** Bounds by which the times of answers are counted, in milliseconds: from an env's step to a language model's turn. */
export const DURATION_BOUNDS_MS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000];

/** Bytes of the longest head of a request. */
const MAX_HEAD_BYTES = 16 * 1024;
/** Milliseconds that a connection without a request is kept. */
const KEEP_ALIVE_MS = 60_000;
/** Requests that a client may send ahead of its answers before no more of them are read. */
const MAX_AHEAD = 64;
/** Milliseconds that a client of unreadable bytes gets to read why, while what it still sends is dropped. */
const LINGER_MS = 500;
/** Milliseconds in which a client may take nothing of an answer, as a rule. */
export const SEND_MS = 30_000;

/** Makes a JSON answer. */
export function json(value: unknown, status = 200): HttpAnswer {
  return { status, body: JSON.stringify(value) };
}

/**
 * Starts to listen.
 * @throws {UserError} BAD_ARGUMENT for an address off loopback without a token, or one that cannot be had
 */
export async function listen(handler: HttpHandler, options: ListenOptions): Promise<HttpServer> {
  const { host = '127.0.0.1', port, token, receiveMs = 30_000, clock = systemClock } = options;
  requireToken(host, token);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new UserError('BAD_ARGUMENT', `cannot listen on port ${port}: expected a whole number from 0 to 65535`);
  }
  const durations = Array<number>(DURATION_BOUNDS_MS.length + 1).fill(0);
  const counts: HttpCounts = { requests: 0, busyMs: 0, durations, refused: 0, byStatus: new Map() };
  const connections = new Connections(options.maxConnections ?? 1024);
  const access = new Access(host, token, options.requestsPerSecond ?? 100_000);
  const { maxBodyBytes = 1024 * 1024, sendMs = SEND_MS } = options;
  const front = new Front(handler, access, connections, { counts, maxBodyBytes, sendMs, clock });
  const server = createServer({
    noDelay: true,
    maxHeaderSize: MAX_HEAD_BYTES,
    requireHostHeader: false, // asked for in badForm, so that its absence is counted
    keepAliveTimeout: KEEP_ALIVE_MS,
    headersTimeout: receiveMs,
    requestTimeout: receiveMs,
    connectionsCheckingInterval: Math.min(1000, Math.max(10, receiveMs / 4)),
  });
  server.on('connection', (socket) => connections.add(socket));
  server.on('request', (request, response) => front.take(request, response));
  server.on('checkContinue', (request, response) => front.take(request, response));
  const { upgrade } = options;
  if (upgrade) server.on('upgrade', (request, socket, head) => front.upgrade(request, socket as Socket, head, upgrade));
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => front.refuseUnread(error, socket as Socket));
  await bind(server, host, port);
  const at = (server.address() as AddressInfo).port;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${at}`,
    counts,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        connections.closeAll();
      }),
  };
}

function bind(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error) =>
      reject(new UserError('BAD_ARGUMENT', `cannot listen on ${host}:${port}: ${messageOf(error)}`)),
    );
    server.listen(port, host, resolve);
  });
}

class Front {
  readonly #handler: HttpHandler;
  readonly #access: Access;
  readonly #connections: Connections;
  readonly #counts: HttpCounts;
  readonly #maxBodyBytes: number;
  readonly #sendMs: number;
  readonly #clock: Clock;

  constructor(
    handler: HttpHandler,
    access: Access,
    connections: Connections,
    { counts, maxBodyBytes, sendMs, clock }: { counts: HttpCounts; maxBodyBytes: number; sendMs: number; clock: Clock },
  ) {
    this.#handler = handler;
    this.#access = access;
    this.#connections = connections;
    this.#counts = counts;
    this.#maxBodyBytes = maxBodyBytes;
    this.#sendMs = sendMs;
    this.#clock = clock;
  }

  /** Answers a request; never throws. */
  take(request: IncomingMessage, response: ServerResponse): void {
    const now = this.#clock.now();
    const refusal = badForm(request) ?? this.#access.refusalOf(request, now) ?? this.#tooLong(request);
    if (refusal) {
      this.#refuse(request, response, refusal, now);
      return;
    }
    const connection = this.#connections.of(request.socket);
    if (!connection) return; // closed meanwhile
    if (!connection.answering) {
      this.#answer(request, response, connection);
      return;
    }
    connection.ahead.push(() => this.#answer(request, response, connection));
    if (connection.ahead.length < MAX_AHEAD) return;
    // Node reads on where the request ends, which is after this.
    setImmediate(() => {
      if (connection.ahead.length >= MAX_AHEAD) request.socket.pause();
    });
  }

  /** Hands a connection over to a WebSocket; it counts as one with a request under way until it closes. */
  upgrade(request: IncomingMessage, socket: Socket, head: Buffer, handler: UpgradeHandler): void {
    const now = this.#clock.now();
    socket.on('error', () => socket.destroy());
    const refuse = ({ status, message }: Refusal) => {
      this.#count(status, now, true);
      sendRefusal(socket, status, message);
    };
    const refusal = badForm(request) ?? this.#access.refusalOf(request, now);
    if (refusal) {
      refuse(refusal);
      return;
    }
    if (request.headers.upgrade?.toLowerCase() !== 'websocket') {
      refuse({ status: 501, message: 'of upgrades only websocket is spoken here; ask without one' });
      return;
    }
    const connection = this.#connections.of(socket);
    if (connection) this.#connections.begin(socket, connection);
    if (handler(pathOf(request.url ?? '/').split('?', 1)[0]!, request, socket, head)) this.#count(101, now, false);
    else refuse({ status: 404, message: 'no WebSocket here' });
  }

  /** Refuses unreadable bytes with the reason. The start of the next request is unknown, so the connection ends. */
  refuseUnread(error: NodeJS.ErrnoException, socket: Socket): void {
    const connection = this.#connections.of(socket);
    if (connection?.answering && !connection.reading) {
      // Answers to what it sent first are still to come; the one that it asked to be the last ends the connection.
      connection.ahead.push(() => this.refuseUnread(error, socket));
      return;
    }
    if (error.code === 'ECONNRESET' || error.code === 'HPE_CLOSED_CONNECTION' || !socket.writable) {
      socket.destroySoon();
      return;
    }
    const { status, message } = unread(error);
    this.#count(status, this.#clock.now(), true);
    sendRefusal(socket, status, message);
  }

  #tooLong({ headers }: IncomingMessage): Refusal | undefined {
    if (!(Number(headers['content-length'] ?? 0) > this.#maxBodyBytes)) return undefined;
    return { status: 413, message: `a body may have ${this.#maxBodyBytes} bytes` };
  }

  /** Answers an admitted request, then those that were sent ahead. Callbacks: promises took a fifth of its time. */
  #answer(request: IncomingMessage, response: ServerResponse, connection: Connection): void {
    connection.answering = true;
    if (request.headers.expect !== undefined) response.writeContinue();
    if (!hasBody(request)) {
      request.resume();
      this.#handle(request, response, connection, '');
      return;
    }
    connection.reading = true;
    readBody(request, this.#maxBodyBytes, (body) => {
      connection.reading = false;
      if (body === undefined) {
        const message = `a body may have ${this.#maxBodyBytes} bytes`;
        this.#refuse(request, response, { status: 413, message }, this.#clock.now());
        this.#next(request.socket, connection);
      } else this.#handle(request, response, connection, body);
    });
  }

  #handle(request: IncomingMessage, response: ServerResponse, connection: Connection, body: string): void {
    const began = this.#clock.now();
    this.#connections.begin(request.socket, connection);
    const end = () => {
      this.#connections.end(connection);
      this.#next(request.socket, connection);
    };
    const answer = (made: HttpAnswer) => {
      this.#count(made.status, began, false);
      try {
        if (typeof made.body === 'string') {
          writeWhole(response, made, made.body);
          if (made.body.length > MAX_HEAD_BYTES) limitWait(response, this.#sendMs);
          end();
        } else writePieces(response, made, made.body, this.#sendMs).then(end, () => request.socket.destroy());
      } catch {
        request.socket.destroy(); // a header that none may be
      }
    };
    let made: HttpAnswer | Promise<HttpAnswer>;
    try {
      made = this.#handler(new Asked(request, response, body));
    } catch (thrown) {
      made = internal(thrown);
    }
    if (made instanceof Promise) made.then(answer, (thrown) => answer(internal(thrown)));
    else answer(made);
  }

  /** Goes on with what the connection sent ahead. A loop: answers at once would end in each other's calls. */
  #next(socket: Socket, connection: Connection): void {
    connection.answering = false;
    if (connection.goesOn) return;
    connection.goesOn = true;
    while (!connection.answering && connection.ahead.length > 0) {
      const next = connection.ahead.shift()!;
      if (connection.ahead.length === MAX_AHEAD / 2) socket.resume();
      next();
    }
    connection.goesOn = false;
  }

  #refuse(request: IncomingMessage, response: ServerResponse, refusal: Refusal, began: number): void {
    this.#count(refusal.status, began, true);
    const { body, ...answer } = refused(refusal.status, refusal.message);
    const headers = { ...refusal.headers, ...(refusal.status === 413 ? { connection: 'close' } : {}) };
    writeWhole(response, { ...answer, headers }, body as string);
    request.resume(); // drops what the client still sends of it
  }

  #count(status: number, began: number, isRefusal: boolean): void {
    const counts = this.#counts;
    counts.requests++;
    if (isRefusal) counts.refused++;
    else {
      const ms = this.#clock.now() - began;
      counts.busyMs += ms;
      let bound = 0;
      while (ms > DURATION_BOUNDS_MS[bound]!) bound++; // ends behind the last: a comparison with undefined is false
      counts.durations[bound]!++;
    }
    counts.byStatus.set(status, (counts.byStatus.get(status) ?? 0) + 1);
  }
}

/** Request as a handler sees it. A class, since V8 makes each object literal with a getter a dictionary. */
class Asked implements HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly contentType: string | undefined;
  readonly body: string;
  readonly #response: ServerResponse;
  #gone: AbortController | undefined;

  constructor({ method, url, headers }: IncomingMessage, response: ServerResponse, body: string) {
    const target = pathOf(url ?? '/');
    const mark = target.indexOf('?');
    this.method = method ?? 'GET';
    this.path = mark < 0 ? target : target.slice(0, mark);
    this.query = mark < 0 ? '' : target.slice(mark + 1);
    this.contentType = headers['content-type'];
    this.body = body;
    this.#response = response;
  }

  /** Signal made when it is first read: most handlers answer before a client could leave. */
  get gone(): AbortSignal {
    if (!this.#gone) {
      const gone = (this.#gone = new AbortController());
      if (this.#response.destroyed) gone.abort();
      this.#response.once('close', () => {
        if (!this.#response.writableFinished) gone.abort();
      });
    }
    return this.#gone.signal;
  }
}

/** Path and query; a whole URL, as a proxy is asked for, without its host. */
function pathOf(target: string): string {
  if (target.startsWith('/') || !URL.canParse(target)) return target;
  const { pathname, search } = new URL(target);
  return pathname + search;
}

/**
 * Reads a body as UTF-8, held in one growing buffer whatever pieces it comes in.
 * @param done gets it, or `undefined` for one longer than `maxBytes`; not called where the client leaves in the middle
 */
function readBody(request: IncomingMessage, maxBytes: number, done: (body: string | undefined) => void): void {
  const held = new GrowingBuffer(maxBytes);
  const take = (chunk: Buffer): void => {
    if (held.add(chunk)) return;
    request.off('data', take).off('end', end);
    done(undefined);
  };
  const end = () => done(held.text());
  request.on('data', take);
  request.on('end', end);
  request.on('error', () => void request.socket.destroy()); // the client left in the middle of it
}

/** Writes an answer whose body is at hand. */
function writeWhole(response: ServerResponse, { status, contentType, headers }: HttpHead, body: string): void {
  if (response.destroyed) return;
  const all: Record<string, string | number> = {};
  if (status !== 204) {
    if (contentType !== '') all['content-type'] = contentType ?? 'application/json';
    all['content-length'] = Buffer.byteLength(body);
  }
  if (headers) Object.assign(all, headers);
  response.writeHead(status, all);
  response.end(body);
}

/** Writes an answer piece by piece. */
async function writePieces(
  response: ServerResponse,
  { status, contentType, headers }: HttpHead,
  body: AsyncIterable<string>,
  sendMs: number,
): Promise<void> {
  if (response.destroyed) return;
  const type = status === 204 || contentType === '' ? {} : { 'content-type': contentType ?? 'application/json' };
  response.writeHead(status, { ...type, ...headers });
  try {
    for await (const piece of body) {
      if (response.destroyed) return;
      if (piece !== '' && !response.write(piece)) await drained(response, sendMs);
    }
    response.end();
    limitWait(response, sendMs);
  } catch {
    response.destroy(); // the client sees a broken body, not a whole one
  }
}

/**
 * Ends the connection of a client that takes nothing of what waits for it. Until it has taken something nothing is read
 * from it: what it says would count as a sign of life. Node takes the limit away with the next request.
 */
function limitWait(response: ServerResponse, sendMs: number): void {
  const { socket } = response;
  if (!socket || response.writableFinished) return;
  socket.setTimeout(sendMs);
  response.once('finish', () => socket.resume());
  // Node reads on where the request ends, which may be after this.
  setImmediate(() => {
    if (!response.writableFinished) socket.pause();
  });
}

function drained(response: ServerResponse, sendMs: number): Promise<void> {
  return new Promise((resolve) => {
    if (response.destroyed) resolve();
    const { socket } = response;
    socket?.setTimeout(sendMs);
    socket?.pause(); // as in `limitWait`
    const done = () => {
      socket?.setTimeout(0); // the next piece may be long in coming
      socket?.resume();
      response.off('drain', done).off('close', done);
      resolve();
    };
    response.on('drain', done).on('close', done);
  });
}

/** Ends a connection that no response object belongs to with a refusal. */
function sendRefusal(socket: Socket, status: number, message: string): void {
  const { body } = refused(status, message);
  const length = Buffer.byteLength(body as string);
  socket.end(
    `HTTP/1.1 ${status} Refused\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\nconnection: close\r\n\r\n${body}`,
  );
  linger(socket);
}

/** Reads and drops what a client still sends for a while: a closed window would lose it the answer. */
function linger(socket: Socket): void {
  socket.resume();
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}

/** True if a body is to be read; one that a GET or HEAD brings along is dropped. */
function hasBody({ method, headers }: IncomingMessage): boolean {
  if (method === 'GET' || method === 'HEAD') return false;
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

function badForm({ httpVersion, headers }: IncomingMessage): Refusal | undefined {
  if (!httpVersion.startsWith('1.')) return { status: 505, message: 'only HTTP/1.0 and HTTP/1.1 are spoken here' };
  if (httpVersion === '1.1' && headers.host === undefined)
    return { status: 400, message: 'the Host header is missing' };
  return undefined;
}

function unread({ code }: NodeJS.ErrnoException): { status: number; message: string } {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return { status: 431, message: `the head of a request may have ${MAX_HEAD_BYTES} bytes` };
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return { status: 408, message: 'no whole request came in time' };
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return { status: 413, message: 'the notes of a chunk are too long' };
    default:
      return { status: 400, message: `this is no HTTP/1.1 request (${code ?? 'unknown error'})` };
  }
}

function internal(thrown: unknown): HttpAnswer {
  return json({ error: { message: messageOf(thrown), type: 'internal', code: 500 } }, 500);
}

function refused(status: number, message: string): HttpAnswer {
  return json({ error: { message, type: 'refused', code: status } }, status);
}
