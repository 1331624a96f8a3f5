/**
 * HTTP server of every part that listens: Hono over `node:http`, loopback by default, a token for every other address.
 *
 * Node's own limits bound the head of a request and the time until it is whole. What neither Node nor Hono has stands
 * in front of the app:
 *
 *     access       token, host names, origins, rate: refused before a body is read, and counted (`access.ts`)
 *     body         read here, up to a bound, into one buffer: Hono's `bodyLimit` keeps a list of chunks, which for a body
 *                  that comes byte by byte is a hundred times its size
 *     connections  a newcomer takes the place of a silent one: Node's `maxConnections` turns newcomers away, so that
 *                  silent clients keep all others out (`connections.ts`)
 *     slow readers a client that takes nothing of an answer is let go: Node waits for ever
 *     sent ahead   a connection with many requests under way is read no further: Node handles as many as it is sent
 *     WebSockets   let in by the same rules, and counted
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { type Clock, systemClock } from '../core/clock.ts';
import { messageOf, UserError } from '../core/errors.ts';
import { GrowingBuffer } from '../core/growing-buffer.ts';
import { Access, type Refusal, requireToken } from './access.ts';
import { type HttpApp, type HttpEnv, refusalOf, targetOf } from './app.ts';
import { Connections } from './connections.ts';

/**
 * Hands a connection over to a WebSocket, after the access rules let it in.
 * @returns false for a path where there is none
 */
export type UpgradeHandler = (path: string, request: IncomingMessage, socket: Socket, head: Buffer) => boolean;

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
  /** Milliseconds that a connection without a request is kept. Default 60000. */
  readonly keepAliveMs?: number;
}

/** Bound on the body of one request. */
export interface BodyLimit {
  readonly maxBodyBytes: number;
  /** Refusal of a longer one. */
  readonly tooLarge: Refusal;
}

/**
 * Reads the head of a request, before its body: refuses it, or bounds its body. It checks the keys of requests: off loopback
 * a server that has it needs no token.
 */
export type HeadCheck = (request: IncomingMessage) => Refusal | BodyLimit;

export interface ListenOptions extends HttpLimits {
  /** Host. Default `127.0.0.1`. */
  readonly host?: string;
  /** Port; 0 takes a free one. */
  readonly port: number;
  /** Token that every request must carry as `Authorization: Bearer …` or `x-api-key`. Needed off loopback. */
  readonly token?: string | undefined;
  /** Check of each request's own key, and the bound on its body; in place of `token` and `maxBodyBytes`. */
  readonly checkHead?: HeadCheck | undefined;
  /** Prints a refusal in the form that the clients of a request's target read; by default all servers share one. */
  readonly printRefusal?: ((request: IncomingMessage, refusal: Refusal) => string) | undefined;
  /** WebSockets; without it there are none. */
  readonly upgrade?: UpgradeHandler;
  /** Clock of rates and times counted; the waits of connections are node's own. Default: the machine's. */
  readonly clock?: Clock | undefined;
}

export interface HttpServer {
  /** URL, e.g. `http://127.0.0.1:36001`. */
  readonly url: string;
  readonly counts: HttpCounts;
  /** Lets the process end while the server listens. */
  unref(): void;
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
/** Milliseconds that a connection without a request is kept, as a rule. */
const KEEP_ALIVE_MS = 60_000;
/** Requests under way on one connection from which on no more of them are read. */
const MAX_AHEAD = 64;
/** Milliseconds that a client of unreadable bytes gets to read why, while what it still sends is dropped. */
const LINGER_MS = 500;
/** Milliseconds in which a client may take nothing of an answer, as a rule. */
export const SEND_MS = 30_000;

/**
 * Starts to listen.
 * @throws {UserError} BAD_ARGUMENT for an address off loopback without a token, or one that cannot be had
 */
export async function listen(app: HttpApp, options: ListenOptions): Promise<HttpServer> {
  const { host = '127.0.0.1', port, token, receiveMs = 30_000 } = options;
  if (!options.checkHead) requireToken(host, token);
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new UserError('BAD_ARGUMENT', `cannot listen on port ${port}: expected a whole number from 0 to 65535`);
  }
  const durations = Array<number>(DURATION_BOUNDS_MS.length + 1).fill(0);
  const counts: HttpCounts = { requests: 0, busyMs: 0, durations, refused: 0, byStatus: new Map() };
  const connections = new Connections(options.maxConnections ?? 1024);
  const access = new Access(host, token, options.requestsPerSecond ?? 100_000, options.checkHead !== undefined);
  const front = new Front(app, access, connections, counts, options);
  const server = createServer({
    noDelay: true,
    maxHeaderSize: MAX_HEAD_BYTES,
    requireHostHeader: false, // checked in badForm, so that its absence is counted
    keepAliveTimeout: options.keepAliveMs ?? KEEP_ALIVE_MS,
    headersTimeout: receiveMs,
    requestTimeout: receiveMs,
    connectionsCheckingInterval: Math.min(1000, Math.max(10, Math.ceil(receiveMs / 4))),
  });
  server.on('connection', (socket) => connections.add(socket));
  server.on('request', (request, response) => front.admit(request, response));
  server.on('checkContinue', (request, response) => front.admit(request, response));
  const { upgrade } = options;
  if (upgrade) server.on('upgrade', (request, socket, head) => front.upgrade(request, socket as Socket, head, upgrade));
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => front.refuseUnread(error, socket as Socket));
  await bind(server, host, port);
  const stop = connections.limitWaits(options.sendMs ?? SEND_MS);
  const at = (server.address() as AddressInfo).port;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${at}`,
    counts,
    unref: () => void server.unref(),
    close: () =>
      new Promise((resolve) => {
        stop();
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

/** Front of the app: admits requests, reads their bodies, counts. */
class Front {
  readonly #access: Access;
  readonly #connections: Connections;
  readonly #counts: HttpCounts;
  readonly #checkHead: HeadCheck;
  readonly #printRefusal: (request: IncomingMessage, refusal: Refusal) => string;
  readonly #clock: Clock;
  readonly #listener: (request: IncomingMessage, response: ServerResponse) => Promise<void>;

  constructor(app: HttpApp, access: Access, connections: Connections, counts: HttpCounts, options: ListenOptions) {
    const { maxBodyBytes = 1024 * 1024, clock = systemClock } = options;
    this.#access = access;
    this.#connections = connections;
    this.#counts = counts;
    const tooLarge = { status: 413, message: `a body may have ${maxBodyBytes} bytes` };
    this.#checkHead = options.checkHead ?? (() => ({ maxBodyBytes, tooLarge }));
    this.#printRefusal =
      options.printRefusal ?? ((_, { status, message }) => refusalOf(status, message).body as string);
    this.#clock = clock;
    this.#listener = getRequestListener((request, env) => this.#fetch(app, request, env as HttpEnv['Bindings']), {
      hostname: 'localhost', // of a request without a Host header
      autoCleanupIncoming: false, // bodies are read here
      errorHandler: (error) => {
        const { status, body } = refusalOf(400, messageOf(error)); // a target that is no URL
        this.#count(status, this.#clock.now(), true);
        return new Response(body as string, { status, headers: { 'content-type': 'application/json' } });
      },
    });
  }

  /** Admits a request or refuses it; never throws. */
  admit(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const connection = this.#connections.of(socket);
    if (!connection) return; // closed meanwhile
    this.#connections.begin(connection);
    response.once('close', () => this.#connections.end(connection));
    if (connection.busy >= MAX_AHEAD) {
      // Node reads on where the request ends, which is after this.
      setImmediate(() => {
        if (connection.busy >= MAX_AHEAD) socket.pause();
      });
    }
    const now = this.#clock.now();
    const admitted = badForm(request) ?? this.#access.refusalOf(request, now) ?? this.#checkBody(request);
    if ('status' in admitted) {
      this.#refuse(request, response, admitted, now);
      return;
    }
    if (request.headers.expect !== undefined) response.writeContinue();
    if (!hasBody(request)) {
      request.resume();
      this.#handle(request, response);
      return;
    }
    connection.reading++;
    readBody(request, admitted.maxBodyBytes, (body) => {
      connection.reading--;
      if (body === undefined) {
        this.#refuse(request, response, admitted.tooLarge, this.#clock.now());
        return;
      }
      (request as { rawBody?: Buffer }).rawBody = body;
      this.#handle(request, response);
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
      refuse({ status: 501, message: 'the only upgrade here is websocket; send the request without one' });
      return;
    }
    const connection = this.#connections.of(socket);
    if (connection) {
      this.#connections.begin(connection);
      this.#connections.prove(connection);
      connection.isUpgraded = true;
    }
    if (handler(targetOf(request.url ?? '/').split('?', 1)[0]!, request, socket, head)) this.#count(101, now, false);
    else refuse({ status: 404, message: 'no WebSocket here' });
  }

  /** Refuses unreadable bytes with the reason. The start of the next request is unknown, so the connection ends. */
  refuseUnread(error: NodeJS.ErrnoException, socket: Socket): void {
    const connection = this.#connections.of(socket);
    if (connection && connection.busy > connection.reading) {
      // Answers to what it sent before are still to come; the one that it wanted to be the last ends the connection.
      connection.whenIdle = () => this.refuseUnread(error, socket);
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

  #checkBody(request: IncomingMessage): Refusal | BodyLimit {
    const checked = this.#checkHead(request);
    if ('status' in checked) return checked;
    return Number(request.headers['content-length'] ?? 0) > checked.maxBodyBytes ? checked.tooLarge : checked;
  }

  /** Has the app answer a request that is whole. */
  #handle(request: IncomingMessage, response: ServerResponse): void {
    const connection = this.#connections.of(request.socket);
    if (!connection) return;
    this.#connections.prove(connection);
    this.#listener(request, response).catch(() => request.socket.destroy());
  }

  /** Answers by the app, and counts. */
  #fetch(app: HttpApp, request: Request, env: HttpEnv['Bindings']): Response | Promise<Response> {
    const began = this.#clock.now();
    const answer = app.fetch(request, env);
    if (!(answer instanceof Promise)) {
      this.#count(answer.status, began, false);
      return answer;
    }
    return answer.then((response) => {
      this.#count(response.status, began, false);
      return response;
    });
  }

  #refuse(request: IncomingMessage, response: ServerResponse, refusal: Refusal, began: number) {
    const { status, headers, body = this.#printRefusal(request, refusal) } = refusal;
    this.#count(status, began, true);
    response.writeHead(status, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      ...headers,
      ...(status === 413 ? { connection: 'close' } : {}),
    });
    response.end(body);
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

/**
 * Reads a body, held in one growing buffer whatever pieces it comes in.
 * @param done gets it, or `undefined` for one longer than `maxBytes`; not called where the client leaves in the middle
 */
function readBody(request: IncomingMessage, maxBytes: number, done: (body: Buffer | undefined) => void): void {
  const held = new GrowingBuffer(maxBytes);
  const add = (chunk: Buffer): void => {
    if (held.add(chunk)) return;
    request.off('data', add).off('end', end);
    done(undefined);
  };
  const end = () => done(held.bytes());
  request.on('data', add);
  request.on('end', end);
  request.on('error', () => void request.socket.destroy()); // the client left in the middle of it
}

/** Ends a connection that no response object belongs to with a refusal. */
function sendRefusal(socket: Socket, status: number, message: string): void {
  const body = refusalOf(status, message).body as string;
  socket.end(
    `HTTP/1.1 ${status} Refused\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
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

/**
 * Headers that a request has once. Node takes the first of several, a proxy in front may take the last: they would
 * disagree about what was asked of whom.
 */
const SINGLE: ReadonlySet<string> = new Set(['host', 'authorization', 'origin', 'content-type', 'transfer-encoding']);

/** First header that a request has twice and may have once. */
function findRepeated({ rawHeaders }: IncomingMessage): string | undefined {
  const seen = new Set<string>();
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!.toLowerCase();
    if (!SINGLE.has(name)) continue;
    if (seen.has(name)) return name;
    seen.add(name);
  }
  return undefined;
}

function badForm(request: IncomingMessage): Refusal | undefined {
  const { httpVersion, headers } = request;
  if (!httpVersion.startsWith('1.')) return { status: 505, message: 'expected HTTP/1.0 or HTTP/1.1' };
  if (httpVersion === '1.1' && headers.host === undefined)
    return { status: 400, message: 'the Host header is missing' };
  const repeated = findRepeated(request);
  if (repeated) return { status: 400, message: `expected one ${repeated} header, got several` };
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
