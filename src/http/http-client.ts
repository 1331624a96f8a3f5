/**
 * HTTP client for requests to another server: kept-alive connections, a deadline over the whole exchange, a bound on
 * the answer. Over `node:http` rather than `fetch`, which costs its caller about three times the CPU time.
 */
import { setMaxListeners } from 'node:events';
import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { messageOf, UserError } from '../core/errors.ts';
import { GrowingBuffer } from '../core/growing-buffer.ts';
import { parseJson } from '../core/json-text.ts';
import { redact } from '../core/secrets.ts';
import { openProxyAgent } from './proxy.ts';
import { RemoteError, retryAfterMs } from './retry.ts';

export interface HttpClientOptions {
  /** Base URL, e.g. `http://127.0.0.1:8000/v1`; a path is kept. */
  readonly baseUrl: string;
  /** Headers of every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Connections at most. Default 256. */
  readonly maxConnections?: number;
  /** Bytes of the longest answer. Default 16 MiB. */
  readonly maxBytes?: number;
}

export interface Exchange {
  readonly status: number;
  readonly body: string;
}

/** Text written in place of a key. */
export const STRUCK_OUT = '[key]';

/** UTF-16 units of an error's answer that are kept: enough for any API's JSON. */
const MAX_ERROR_CHARS = 16_384;

export class HttpClient {
  readonly #base: URL;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #agent: HttpAgent;
  readonly #request: typeof httpRequest;
  readonly #maxBytes: number;
  /** Key that is sent; an echo of it in an answer is struck out before anything reads, prints or stores it. */
  readonly #key: string | undefined;
  readonly #closing = new AbortController();

  /** @throws {UserError} BAD_ARGUMENT for an URL that is none, or that carries a password; BAD_CONFIG for an invalid proxy */
  constructor({ baseUrl, headers = {}, maxConnections = 256, maxBytes = 16 * 1024 * 1024 }: HttpClientOptions) {
    let base: URL;
    try {
      base = new URL(baseUrl.endsWith('/') ? baseUrl : `${baseUrl}/`);
    } catch {
      throw new UserError('BAD_ARGUMENT', `'${baseUrl}' is no URL; expected e.g. http://127.0.0.1:8000/v1`);
    }
    if (base.protocol !== 'http:' && base.protocol !== 'https:') {
      throw new UserError('BAD_ARGUMENT', `'${baseUrl}': expected http or https`);
    }
    if (base.username || base.password) {
      throw new UserError('BAD_ARGUMENT', `${base.host}: an URL may carry no name or password; send a key in a header`);
    }
    const secure = base.protocol === 'https:';
    this.#base = base;
    this.#headers = headers;
    const options = { keepAlive: true, maxSockets: maxConnections };
    this.#agent = openProxyAgent(base, options) ?? new (secure ? HttpsAgent : HttpAgent)(options);
    this.#request = secure ? httpsRequest : httpRequest;
    this.#maxBytes = maxBytes;
    setMaxListeners(0, this.#closing.signal); // one a request under way
    this.#key = Object.entries(headers)
      .find(([name]) => name.toLowerCase() === 'authorization')?.[1]
      .replace(/^Bearer /, '');
  }

  /**
   * Sends a request once and reads its whole answer.
   * @param path below the base URL, without a leading slash
   * @param deadlineMs over connecting, sending, waiting and reading
   * @returns an answer of status 2xx
   * @throws {RemoteError} for everything else
   */
  async send(method: string, path: string, body: string | undefined, deadlineMs: number): Promise<Exchange> {
    const { headers, ...answer } = await this.exchange(method, path, body, deadlineMs);
    const { status } = answer;
    if (status >= 200 && status < 300) return answer;
    const url = new URL(path, this.#base);
    const message = `${method} ${url.href}: HTTP ${status} ${excerpt(answer.body, 500)}`.trimEnd();
    const beginning = answer.body.slice(0, MAX_ERROR_CHARS);
    throw new RemoteError('status', message, { status, retryAfterMs: retryAfterMs(headers), body: beginning });
  }

  /**
   * Sends a request once and reads its whole answer, whatever its status.
   * @param path below the base URL, without a leading slash
   * @param deadlineMs over connecting, sending, waiting and reading
   * @throws {RemoteError} where no whole answer comes
   */
  exchange(
    method: string,
    path: string,
    body: string | undefined,
    deadlineMs: number,
  ): Promise<Exchange & Pick<IncomingMessage, 'headers'>> {
    const { closed } = this;
    return new Promise((resolve, reject) => {
      const headers: Record<string, string | number> = { accept: 'application/json', ...this.#headers };
      if (body !== undefined) {
        headers['content-type'] = 'application/json';
        headers['content-length'] = Buffer.byteLength(body);
      }
      const url = new URL(path, this.#base);
      const createClosedError = () => new RemoteError('closed', `${method} ${url.href}: the client was closed`);
      if (closed.aborted) return reject(createClosedError());
      const request = this.#request(url, { method, headers, agent: this.#agent });
      const settle = () => {
        clearTimeout(timer);
        closed.removeEventListener('abort', giveUp);
      };
      const fail = (error: RemoteError) => {
        settle();
        request.destroy();
        reject(error);
      };
      const giveUp = () => fail(createClosedError());
      closed.addEventListener('abort', giveUp);
      const timer = setTimeout(() => {
        fail(new RemoteError('timeout', `${method} ${url.href}: no whole answer within ${deadlineMs} ms`));
      }, deadlineMs);
      request.on('error', (error) => fail(new RemoteError('network', `${method} ${url.href}: ${messageOf(error)}`)));
      request.on('response', (response) => {
        read(response, this.#maxBytes).then(
          (received) => {
            settle();
            const text = this.#key ? received.replaceAll(this.#key, STRUCK_OUT) : received;
            resolve({ status: response.statusCode ?? 0, body: text, headers: response.headers });
          },
          (error: unknown) =>
            fail(error instanceof RemoteError ? error : new RemoteError('network', `${url.href}: ${messageOf(error)}`)),
        );
      });
      request.end(body);
    });
  }

  /** Aborts when the client is closed. */
  get closed(): AbortSignal {
    return this.#closing.signal;
  }

  /** Closes the client: requests under way are given up, further ones are refused, both by the fault `closed`. */
  close(): void {
    this.#closing.abort();
    this.#agent.destroy();
  }
}

function read(response: IncomingMessage, maxBytes: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const held = new GrowingBuffer(maxBytes);
    response.on('data', (chunk: Buffer) => {
      if (!held.add(chunk)) reject(new RemoteError('oversized', `an answer of more than ${maxBytes} bytes`));
    });
    response.on('end', () => resolve(held.text()));
    response.on('error', reject);
    // The connection ended before the answer did.
    response.on('aborted', () => reject(new RemoteError('malformed', 'the answer broke off in the middle')));
  });
}

/**
 * Excerpt of an answer, its beginning on one line: it may be a page of HTML, or hold a terminal's commands, or a key of
 * ours, which must go before the cut that could leave half of it.
 */
export function excerpt(text: string, length: number): string {
  return redact(text)
    .slice(0, length)
    .toWellFormed()
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
}

/** Parses the JSON of an answer. @throws {RemoteError} malformed */
export function parseAnswer(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    throw new RemoteError('malformed', `the answer is not JSON: ${excerpt(text, 120)}`);
  }
}
