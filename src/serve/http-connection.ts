/**
 * One client's connection: requests in, answers out, one after the other. What a client sends ahead, what it does not
 * read and how long it takes are bounded.
 */
import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { BadRequest, type ReadRequest, type RequestLimits, RequestReader } from './http-request.ts';
import type { HttpAnswer } from './http-server.ts';

/** Who answers. */
export interface ConnectionFront {
  /** Never throws and never rejects. @param gone asked for when the client's leaving matters */
  serve(request: ReadRequest, address: string, gone: () => AbortSignal): HttpAnswer | Promise<HttpAnswer>;
  /** What a request that cannot be read is told; a whole body. */
  refuse(bad: BadRequest): HttpAnswer;
}

/** Milliseconds that a connection without a request, or one that does not read its answer, is kept. */
const KEEP_ALIVE_MS = 60_000;
/** Milliseconds that a refused client gets to read why. */
const LINGER_MS = 500;
/** Bytes of further requests that a client may send ahead of its answers. */
const MAX_AHEAD = 64 * 1024;

/** One client. Requests are answered one after the other, in the order they came. */
export class Connection {
  readonly #socket: Socket;
  readonly #front: ConnectionFront;
  readonly #reader: RequestReader;
  readonly #address: string;
  #answering = false;
  #ended = false;
  /** Tick of the last progress; a request must be whole `receiveMs` after its first byte. */
  #since: number;
  /** Bytes of answers that the client had not read when last looked. */
  #unread = 0;
  #gone: AbortController | undefined;

  constructor(socket: Socket, front: ConnectionFront, limits: RequestLimits, tick: () => number, closed: () => void) {
    this.#socket = socket;
    this.#front = front;
    this.#reader = new RequestReader(limits);
    this.#address = socket.remoteAddress ?? '';
    this.#since = tick();
    socket.on('data', (chunk: Buffer) => {
      if (this.#ended) return; // it was told that this is the end
      if (!this.#reader.waiting) this.#since = tick();
      this.#reader.push(chunk);
      if (!this.#answering) this.#pump(tick);
      else if (this.#reader.held > MAX_AHEAD) socket.pause();
    });
    // A client that leaves in the middle of its request needs no answer.
    socket.on('error', () => {});
    socket.on('close', () => {
      this.#ended = true;
      this.#gone?.abort();
      closed();
    });
  }

  /** Ends a client that does not get on. @param now the present tick */
  check(now: number, receiveMs: number): void {
    const unread = this.#socket.writableLength;
    if (unread !== this.#unread) this.#since = now;
    this.#unread = unread;
    if (this.#answering && unread === 0) return;
    const waited = now - this.#since;
    if (this.#ended) {
      if (waited > (unread > 0 ? KEEP_ALIVE_MS : LINGER_MS)) this.#socket.destroy();
    } else if (this.#reader.waiting && !this.#answering) {
      if (waited > receiveMs) this.#stop(new BadRequest(408, `no whole request within ${receiveMs} ms`));
    } else if (waited > KEEP_ALIVE_MS) this.#socket.destroy();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  #pump(tick: () => number): void {
    while (!this.#ended) {
      let request: ReadRequest | undefined;
      try {
        request = this.#reader.next();
      } catch (thrown) {
        if (!(thrown instanceof BadRequest)) throw thrown;
        this.#stop(thrown);
        return;
      }
      if (!request) {
        if (this.#reader.takeContinue()) this.#socket.write('HTTP/1.1 100 Continue\r\n\r\n');
        return;
      }
      this.#answering = true;
      const answer = this.#front.serve(request, this.#address, () => this.#goneSignal());
      if (answer instanceof Promise || typeof answer.body !== 'string' || this.#socket.writableNeedDrain) {
        void this.#answerLater(request, answer, tick);
        return;
      }
      this.#write(request, answer.body, answer);
      this.#answered(request, tick);
    }
  }

  async #answerLater(request: ReadRequest, later: HttpAnswer | Promise<HttpAnswer>, tick: () => number): Promise<void> {
    const answer = later instanceof Promise ? await later : later;
    if (this.#ended) return;
    if (typeof answer.body === 'string') this.#write(request, answer.body, answer);
    else await pour(this.#socket, request, answer, answer.body);
    // One answer at most waits in memory for a client that does not read.
    if (this.#socket.writableNeedDrain) await drained(this.#socket);
    this.#answered(request, tick);
    this.#pump(tick);
  }

  #write(request: ReadRequest, body: string, answer: HttpAnswer): void {
    const head = headOf(request, answer, Buffer.byteLength(body));
    this.#socket.write(request.method === 'HEAD' ? head : head + body);
  }

  #answered({ keepAlive }: ReadRequest, tick: () => number): void {
    this.#answering = false;
    this.#gone = undefined;
    this.#since = tick();
    if (!keepAlive) {
      this.#ended = true;
      this.#socket.end();
    } else if (this.#socket.isPaused()) this.#socket.resume();
  }

  /** A last answer to what cannot be read; where the next request would begin nobody knows. */
  #stop(bad: BadRequest): void {
    this.#ended = true;
    const { body, ...answer } = this.#front.refuse(bad);
    const request = { method: 'POST', keepAlive: false, chunks: true };
    this.#socket.write(headOf(request, { ...answer, body }, Buffer.byteLength(body as string)) + (body as string));
    this.#socket.end();
    // What it still sends is read and dropped for a while: a closed window would lose it the answer.
    this.#socket.removeAllListeners('data').resume();
    setTimeout(() => this.#socket.destroy(), LINGER_MS).unref();
  }

  #goneSignal(): AbortSignal {
    this.#gone ??= new AbortController();
    if (this.#ended) this.#gone.abort();
    return this.#gone.signal;
  }
}

type Asked = Pick<ReadRequest, 'method' | 'keepAlive' | 'chunks'>;

/** @param length bytes of the body; undefined where nobody knows yet */
function headOf(request: Asked, { status, contentType, headers }: HttpAnswer, length: number | undefined): string {
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Unknown'}\r\n`;
  if (status !== 204) {
    if (contentType !== '') head += `content-type: ${contentType ?? 'application/json'}\r\n`;
    if (length !== undefined) head += `content-length: ${length}\r\n`;
    else if (request.chunks) head += 'transfer-encoding: chunked\r\n';
  }
  if (headers) for (const name in headers) head += `${name}: ${headers[name]}\r\n`;
  return `${head}date: ${dateNow()}\r\nconnection: ${request.keepAlive ? 'keep-alive' : 'close'}\r\n\r\n`;
}

/** A body as it comes. */
async function pour(socket: Socket, asked: Asked, answer: HttpAnswer, pieces: AsyncIterable<string>): Promise<void> {
  const request = asked.chunks ? asked : { ...asked, keepAlive: false }; // HTTP/1.0: the body ends with the connection
  socket.write(headOf(request, answer, undefined));
  if (asked.method === 'HEAD') return;
  try {
    for await (const piece of pieces) {
      if (socket.destroyed) return;
      if (piece === '') continue; // would end the body
      const size = Buffer.byteLength(piece).toString(16);
      if (!socket.write(asked.chunks ? `${size}\r\n${piece}\r\n` : piece)) await drained(socket);
    }
    if (asked.chunks) socket.write('0\r\n\r\n');
    else socket.end();
  } catch {
    socket.destroy(); // the client sees a broken body, not a whole one
  }
}

function drained(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    if (socket.destroyed) resolve();
    const done = () => {
      socket.off('drain', done).off('close', done);
      resolve();
    };
    socket.on('drain', done).on('close', done);
  });
}

let dateText = '';
let dateAt = Number.NEGATIVE_INFINITY;

/** The `date` header, made anew once a second. */
function dateNow(): string {
  const now = performance.now();
  if (now - dateAt >= 1000) {
    dateText = new Date().toUTCString();
    dateAt = now;
  }
  return dateText;
}
