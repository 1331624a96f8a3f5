/** Requests of a remote environment: sent again where that cannot take an action twice. */
import { systemClock } from '../../core/clock.ts';
import { Rng, seedFrom } from '../../core/rng.ts';
import { readApiKey } from '../../http/api-key.ts';
import { attempt } from '../../http/attempts.ts';
import { HttpClient, parseAnswer } from '../../http/http-client.ts';
import { RemoteError } from '../../http/retry.ts';
import type { RemoteEnvOptions } from './options.ts';

export type Fields = Readonly<Record<string, unknown>>;

export class RemoteRequests {
  readonly #http: HttpClient;
  readonly #options: RemoteEnvOptions;
  #sent = 0;

  constructor(options: RemoteEnvOptions) {
    const token = readApiKey(options.tokenEnv);
    this.#options = options;
    this.#http = new HttpClient({ baseUrl: options.url, headers: token ? { authorization: `Bearer ${token}` } : {} });
  }

  /**
   * Sends a request, with attempts.
   * @param totalMs over all attempts
   * @param again whether the request may be sent again after it may have reached the server
   * @param read reads the answer's JSON; one that it refuses is asked for again, where that may be
   * @throws {RemoteError}
   */
  send<T>(
    method: string,
    path: string,
    body: Fields | undefined,
    totalMs: number,
    again: boolean,
    read: (answer: unknown) => T,
  ): Promise<T> {
    const { attempts, attemptMs } = this.#options;
    const text = body === undefined ? undefined : JSON.stringify(body);
    // Only the waits are drawn, no answer depends on them; each request has its own sequence.
    const rng = Rng.fromSeed(seedFrom('remote-env', this.#sent++));
    const policy = { attempts, attemptMs, minMs: 200, maxMs: 10_000, totalMs };
    return attempt(policy, { clock: systemClock, rng, closed: this.#http.closed }, async (deadlineMs) => {
      try {
        const answer = await this.#http.send(method, path, text, deadlineMs);
        return read(answer.body === '' ? undefined : parseAnswer(answer.body));
      } catch (thrown) {
        if (thrown instanceof RemoteError && !again && !isUnprocessed(thrown)) throw new Unrepeatable(thrown);
        throw thrown;
      }
    }).catch((thrown: unknown) => {
      throw thrown instanceof Unrepeatable ? thrown.cause : thrown;
    });
  }

  close(): void {
    this.#http.close();
  }
}

/** Wraps an error so that it ends the attempts. */
class Unrepeatable extends Error {
  override readonly cause: RemoteError;
  constructor(cause: RemoteError) {
    super(cause.message);
    this.cause = cause;
  }
}

/** True when the server refused the request before it did anything, so that sending it again takes no action twice. */
function isUnprocessed(error: RemoteError): boolean {
  if (error.fault === 'status') return error.status === 429 || error.status === 503;
  return error.fault === 'network' && /ECONNREFUSED/.test(error.message);
}
