/**
 * Connection of an OpenEnv client: one WebSocket, which is one session of the server. Requests are answered one after
 * the other; what does not fit ends the connection, so that no late answer is taken for another's.
 */
import { WebSocket } from 'ws';
import { messageOf } from '../../core/errors.ts';
import { excerpt } from '../http-client.ts';
import { RemoteError } from '../retry.ts';

/** Bytes of the longest answer. */
const MAX_BYTES = 16 * 1024 * 1024;
/** Milliseconds in which a server may confirm that a connection is closed. */
const CLOSE_MS = 2000;
/** Text written in place of the token. */
const STRUCK_OUT = '[key]';
/** Status that stands for a server without a free session: it may have one later. */
const UNAVAILABLE = 503;

/** Error frame: the server's code and message. It was received whole, so that asking again is no help. */
export class ServerRefusal extends Error {
  /** OpenEnv's code, e.g. VALIDATION_ERROR. */
  readonly code: string;
  constructor(code: string, message: string) {
    super(`the server reports ${code}: ${message}`);
    this.name = 'ServerRefusal';
    this.code = code;
  }
}

/** Request that waits for its answer. */
interface PendingRequest {
  readonly resolve: (data: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly expected: string;
  readonly timer: NodeJS.Timeout;
}

/** Options of a connection. */
export interface ConnectionOptions {
  /** URL of the server's `/ws`. */
  readonly url: string;
  /** Bearer token; none where the server asks for none. */
  readonly token?: string | undefined;
}

export class OpenEnvConnection {
  readonly #socket: WebSocket;
  readonly #token: string | undefined;
  #pending: PendingRequest | undefined;
  /** Reason why the connection is of no more use. */
  #lost: RemoteError | undefined;

  private constructor(socket: WebSocket, token: string | undefined) {
    this.#socket = socket;
    this.#token = token;
    socket.on('message', (data, isBinary) => this.#receive(isBinary ? undefined : data.toString()));
    socket.on('error', (error) => this.#fail(faultOf(error)));
    socket.on('close', (code, reason) => {
      const why = excerpt(reason.toString(), 100);
      this.#fail(new RemoteError('network', `the connection was closed (${code}${why === '' ? '' : `, ${why}`})`));
    });
  }

  /**
   * Opens a connection.
   * @param timeoutMs until it stands
   * @throws {RemoteError}
   */
  static open({ url, token }: ConnectionOptions, timeoutMs: number): Promise<OpenEnvConnection> {
    return new Promise((resolve, reject) => {
      const socket = new WebSocket(url, {
        headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
        maxPayload: MAX_BYTES,
        perMessageDeflate: false, // a few bytes of deflate unpack to gigabytes
        followRedirects: false,
      });
      const fail = (error: RemoteError) => {
        clearTimeout(timer);
        socket.on('error', () => {}); // that it was given up
        socket.terminate();
        reject(error);
      };
      const timer = setTimeout(() => {
        fail(new RemoteError('timeout', `${url}: no connection within ${Math.round(timeoutMs)} ms`));
      }, timeoutMs);
      socket.once('error', (error) => fail(new RemoteError('network', `${url}: ${messageOf(error)}`)));
      socket.once('unexpected-response', (_request, { statusCode = 0 }) => {
        fail(new RemoteError('status', `${url}: HTTP ${statusCode}, no WebSocket`, { status: statusCode }));
      });
      // Listened to at once: a server may answer before the promise is awaited.
      socket.once('open', () => {
        clearTimeout(timer);
        socket.removeAllListeners('error');
        resolve(new OpenEnvConnection(socket, token));
      });
    });
  }

  /** True while requests can be sent. */
  get isOpen(): boolean {
    return this.#lost === undefined;
  }

  /**
   * Sends a request and waits for its answer.
   * @param expected type of the answer, `observation` or `state`
   * @returns the answer's `data`
   * @throws {ServerRefusal} for an error frame; the connection stays
   * @throws {RemoteError} for no answer, or one that makes no sense; the connection ends
   */
  request(message: object, expected: string, timeoutMs: number): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#lost) {
        reject(this.#lost);
        return;
      }
      const timer = setTimeout(() => {
        this.#fail(new RemoteError('timeout', `no whole answer within ${Math.round(timeoutMs)} ms`));
      }, timeoutMs);
      this.#pending = { resolve, reject, expected, timer };
      this.#socket.send(JSON.stringify(message), (error) => {
        if (error) this.#fail(new RemoteError('network', messageOf(error)));
      });
    });
  }

  /** Ends the connection without a word: what it may still bring is of no use. */
  drop(): void {
    this.#fail(new RemoteError('network', 'the connection was given up'));
  }

  /** Closes the connection in order; the server ends the session. Resolves after 2 s at most. */
  close(): Promise<void> {
    const socket = this.#socket;
    if (socket.readyState === socket.CLOSED) return Promise.resolve();
    return new Promise((resolve) => {
      const late = setTimeout(() => socket.terminate(), CLOSE_MS);
      socket.once('close', () => {
        clearTimeout(late);
        resolve();
      });
      if (socket.readyState === socket.OPEN) socket.send('{"type":"close"}', () => {});
      socket.close(1000);
    });
  }

  #receive(raw: string | undefined): void {
    const pending = this.#pending;
    let message: Readonly<Record<string, unknown>>;
    try {
      const parsed: unknown = JSON.parse(this.#withoutToken(raw ?? ''));
      if (typeof parsed !== 'object' || parsed === null) throw new Error('no object');
      message = parsed as typeof message;
    } catch {
      this.#fail(new RemoteError('malformed', `the answer is no JSON object: ${excerpt(raw ?? 'binary data', 120)}`));
      return;
    }
    const { type, data } = message;
    if (type === 'error') {
      const { code, message: text, errors } = (data ?? {}) as Readonly<Record<string, unknown>>;
      const details = errors === undefined ? '' : ` ${JSON.stringify(errors)}`; // which fields are wrong, and how
      const why = excerpt(typeof text === 'string' ? text + details : JSON.stringify(data ?? null), 500);
      // One that nothing was asked for: the server has no session for us.
      if (!pending || code === 'CAPACITY_REACHED')
        this.#fail(new RemoteError('status', `the server gives no session: ${why}`, { status: UNAVAILABLE }));
      else this.#settle()!.reject(new ServerRefusal(typeof code === 'string' ? excerpt(code, 40) : 'an error', why));
      return;
    }
    if (!pending) {
      this.#fail(new RemoteError('mismatch', 'the server sent a message that nothing was asked for'));
      return;
    }
    if (type !== pending.expected) {
      const got = typeof type === 'string' ? `'${excerpt(type, 40)}'` : typeof type;
      this.#fail(new RemoteError('mismatch', `expected an answer of type '${pending.expected}', got ${got}`));
      return;
    }
    this.#settle()!.resolve(data);
  }

  /** Text without our token, which a server may echo. */
  #withoutToken(text: string): string {
    return this.#token ? text.replaceAll(this.#token, STRUCK_OUT) : text;
  }

  #settle(): PendingRequest | undefined {
    const pending = this.#pending;
    this.#pending = undefined;
    clearTimeout(pending?.timer);
    return pending;
  }

  #fail(error: RemoteError): void {
    if (this.#lost) return;
    this.#lost = error;
    this.#settle()?.reject(error);
    const { readyState, OPEN } = this.#socket;
    if (readyState === OPEN) this.#socket.terminate();
  }
}

function faultOf(error: Error & { code?: string }): RemoteError {
  if (error.code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH')
    return new RemoteError('oversized', `an answer of more than ${MAX_BYTES} bytes`);
  const isNonsense = error.code?.startsWith('WS_ERR_') ?? false;
  return new RemoteError(isNonsense ? 'malformed' : 'network', messageOf(error));
}
