/**
 * WebSocket client for requests that are answered one at a time: a deadline for each answer, a bound on its size, no
 * compression. A message that nobody asked for breaks the connection, so that no answer is taken for another's.
 */
import { type RawData, WebSocket } from 'ws';
import { messageOf } from '../core/errors.ts';
import { excerpt, parseAnswer, STRUCK_OUT } from './http-client.ts';
import { RemoteError, retryAfterMs } from './retry.ts';

export interface WebSocketOptions {
  /** Bearer token that is sent when connecting. An echo of it in an answer is struck out. */
  readonly token?: string | undefined;
  /** Milliseconds in which the connection must be open. */
  readonly deadlineMs: number;
  /** Bytes of the longest answer. Default 16 MiB. */
  readonly maxBytes?: number;
}

interface Waiting {
  readonly resolve: (text: string) => void;
  readonly reject: (error: RemoteError) => void;
}

/** Milliseconds that a peer has to answer a close. */
const CLOSE_MS = 2000;

export class WebSocketClient {
  readonly #socket: WebSocket;
  readonly #url: string;
  readonly #token: string | undefined;
  /** Message that came before it was asked for. */
  #early: string | undefined;
  #waiting: Waiting | undefined;
  #failure: RemoteError | undefined;

  private constructor(socket: WebSocket, url: string, token: string | undefined) {
    this.#socket = socket;
    this.#url = url;
    this.#token = token;
    socket.on('message', (data, isBinary) => this.#receive(data, isBinary));
    socket.on('error', (error) => this.#fail(new RemoteError(faultOf(error), `${url}: ${messageOf(error)}`)));
    socket.on('close', (code, reason) => {
      const why = excerpt(reason.toString(), 120);
      this.#fail(new RemoteError('network', `${url}: the connection was closed (${code}${why && `: ${why}`})`));
    });
  }

  /**
   * Opens a connection.
   * @param url `ws://…` or `wss://…`
   * @throws {RemoteError}
   */
  static connect(url: string, { token, deadlineMs, maxBytes = 16 * 1024 * 1024 }: WebSocketOptions) {
    return new Promise<WebSocketClient>((resolve, reject) => {
      const socket = new WebSocket(url, {
        perMessageDeflate: false, // a few bytes of deflate unpack to gigabytes
        maxPayload: maxBytes,
        handshakeTimeout: deadlineMs,
        headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      });
      const client = new WebSocketClient(socket, url, token);
      socket.once('open', () => resolve(client));
      socket.once('error', (error) => reject(new RemoteError('network', `${url}: ${messageOf(error)}`)));
      socket.once('unexpected-response', (_, { statusCode: status = 0, headers }) => {
        const after = { status, retryAfterMs: retryAfterMs(headers) };
        reject(new RemoteError('status', `${url}: HTTP ${status} instead of a WebSocket`, after));
        socket.terminate();
      });
    });
  }

  /** True while messages can be exchanged. */
  get isOpen(): boolean {
    return this.#failure === undefined;
  }

  /**
   * Sends a message and waits for its answer. One request at a time.
   * @param deadlineMs a connection without an answer in time is closed
   * @returns the answer's JSON
   * @throws {RemoteError}
   */
  async request(message: object, deadlineMs: number): Promise<unknown> {
    return parseAnswer(await this.#exchange(JSON.stringify(message), deadlineMs));
  }

  #exchange(text: string, deadlineMs: number): Promise<string> {
    if (this.#failure) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#fail(new RemoteError('timeout', `${this.#url}: no answer within ${Math.round(deadlineMs)} ms`));
      }, deadlineMs);
      const settle = () => {
        clearTimeout(timer);
        this.#waiting = undefined;
      };
      this.#waiting = {
        resolve(answer) {
          settle();
          resolve(answer);
        },
        reject(error) {
          settle();
          reject(error);
        },
      };
      this.#socket.send(text, (error) => {
        if (error) this.#fail(new RemoteError('network', `${this.#url}: ${messageOf(error)}`));
      });
    });
  }

  /** Takes the message that came before any request, if one did: a server that is full sends its refusal at once. */
  takeEarly(): unknown {
    const early = this.#early;
    this.#early = undefined;
    return early === undefined ? undefined : parseAnswer(early);
  }

  /** Sends a last message, after which the peer closes; resolves when it is closed, in two seconds at the latest. */
  async close(last: object): Promise<void> {
    if (this.#failure) return;
    const socket = this.#socket;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => socket.terminate(), CLOSE_MS);
      socket.once('close', () => {
        clearTimeout(timer);
        resolve();
      });
      socket.send(JSON.stringify(last), () => {});
    });
  }

  /** Breaks the connection off. */
  terminate(): void {
    this.#fail(new RemoteError('network', `${this.#url}: the connection was broken off`));
  }

  #receive(data: RawData, isBinary: boolean): void {
    if (isBinary) {
      this.#fail(new RemoteError('malformed', `${this.#url}: expected text, got a binary message`));
      return;
    }
    const text = this.#token ? data.toString().replaceAll(this.#token, STRUCK_OUT) : data.toString();
    if (this.#waiting) this.#waiting.resolve(text);
    else if (this.#early === undefined) this.#early = text;
    else this.#fail(new RemoteError('mismatch', `${this.#url}: more messages than requests`));
  }

  #fail(error: RemoteError): void {
    if (this.#failure) return;
    this.#failure = error;
    this.#waiting?.reject(error);
    this.#socket.terminate();
  }
}

function faultOf(error: Error): 'oversized' | 'network' {
  return (error as NodeJS.ErrnoException).code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH' ? 'oversized' : 'network';
}
