/**
 * Access rules that every server here shares: a token for every address off loopback, own host names and no foreign
 * pages without one, and a request rate per client address.
 */
import { timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { UserError } from '../core/errors.ts';

const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', '::1', 'localhost']);

/** Refusal of a request, before a handler sees it. */
export interface Refusal {
  readonly status: number;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON in place of the form that all servers here share. */
  readonly body?: string;
}

/**
 * Requires a token.
 * @throws {UserError} BAD_ARGUMENT for an address off loopback without one
 */
export function requireToken(host: string, token: string | undefined): void {
  if (LOOPBACK.has(host) || token) return;
  throw new UserError(
    'BAD_ARGUMENT',
    `listening on ${host} lets others in: set LONGPLAY_SERVER_TOKEN, which they must then send, or listen on 127.0.0.1`,
  );
}

/**
 * True where a `Host` header names this machine's loopback address or the address listened on. A page from elsewhere
 * can have its own name point at 127.0.0.1 (DNS rebinding); the name it then sends is its own.
 * @param own the address listened on
 */
export function isOwnHost(header: string | undefined, own: string): boolean {
  const name = /^(?:\[([^\]]*)\]|([^:]*))(?::\d+)?$/.exec((header ?? '').toLowerCase());
  const host = name?.[1] ?? name?.[2];
  return host !== undefined && (LOOPBACK.has(host) || host === own.toLowerCase());
}

function isLoopbackOrigin(origin: string): boolean {
  return URL.canParse(origin) && LOOPBACK.has(new URL(origin).hostname.replace(/^\[|\]$/g, ''));
}

export class Access {
  readonly #host: string;
  readonly #token: Buffer | undefined;
  readonly #rate: RateLimit;
  /** True where any host name will do. */
  readonly #anyName: boolean;
  /** Host header that was found to be our own last: as a rule they are all alike. */
  #ownHost: string | undefined;

  /**
   * @param requestsPerSecond of one client address, sustained
   * @param isKeyed true where every request carries a key that something else checks; off loopback any host name will do then
   */
  constructor(host: string, token: string | undefined, requestsPerSecond: number, isKeyed = false) {
    this.#anyName = isKeyed && !LOOPBACK.has(host);
    this.#host = host;
    this.#token = token ? Buffer.from(`Bearer ${token}`) : undefined;
    this.#rate = new RateLimit(requestsPerSecond);
  }

  /** Refusal of a request, or `undefined` for one that may be answered. @param now milliseconds */
  refusalOf({ headers, socket, url = '/' }: IncomingMessage, now: number): Refusal | undefined {
    if (!this.#rate.admit(socket.remoteAddress ?? '', now)) {
      return { status: 429, message: 'too many requests', headers: { 'retry-after': '1' } };
    }
    if (this.#token) {
      const given = Buffer.from(headers.authorization ?? bearerOf(headers['x-api-key']));
      if (given.length === this.#token.length && timingSafeEqual(given, this.#token)) return undefined;
      return { status: 401, message: 'send the token of this server: Authorization: Bearer …, or x-api-key' };
    }
    if (this.#anyName) return undefined;
    // The name in a target that is a whole URL counts more than the header (RFC 9112, 3.2.2).
    if (!url.startsWith('/') && URL.canParse(url) && !isOwnHost(new URL(url).host, this.#host)) {
      return { status: 403, message: `only requests to this machine's own names are answered, not to another host` };
    }
    if (headers.host === undefined || headers.host !== this.#ownHost) {
      if (!isOwnHost(headers.host, this.#host)) {
        return { status: 403, message: `only requests to this machine's own names are answered, not to another host` };
      }
      this.#ownHost = headers.host;
    }
    if (headers.origin !== undefined && !isLoopbackOrigin(headers.origin)) {
      // A web page that a person has open must not be able to use a server on their machine.
      return { status: 403, message: 'requests of web pages from elsewhere are not answered' };
    }
    return undefined;
  }
}

/** Authorization that a key in Anthropic's header stands for. */
function bearerOf(key: string | string[] | undefined): string {
  return typeof key === 'string' ? `Bearer ${key}` : '';
}

/** Addresses whose rate is remembered; past it all are forgotten, and each starts with a full second's worth. */
const MAX_ADDRESSES = 10_000;

/** Token bucket per client address. */
class RateLimit {
  readonly #perSecond: number;
  readonly #buckets = new Map<string, { tokens: number; at: number }>();

  constructor(perSecond: number) {
    this.#perSecond = perSecond;
  }

  admit(address: string, now: number): boolean {
    let bucket = this.#buckets.get(address);
    if (!bucket) {
      if (this.#buckets.size >= MAX_ADDRESSES) this.#buckets.clear();
      this.#buckets.set(address, (bucket = { tokens: this.#perSecond, at: now }));
    }
    bucket.tokens = Math.min(this.#perSecond, bucket.tokens + ((now - bucket.at) / 1000) * this.#perSecond);
    bucket.at = now;
    if (bucket.tokens < 1) return false;
    bucket.tokens--;
    return true;
  }
}
