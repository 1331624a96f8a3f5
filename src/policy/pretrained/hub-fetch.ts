/** Requests to the hub through the proxy that the environment names: Node's own `fetch` knows none. */
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { Readable } from 'node:stream';
import { openProxyAgent } from '../../http/proxy.ts';

/** Redirects in a row; the hub answers a download with one or two. */
const MAX_REDIRECTS = 8;

/**
 * Fetches as `fetch` does, through the environment's proxy where it names one. Redirects are followed; what authorises is
 * sent to the first origin alone.
 * @throws {UserError} BAD_CONFIG for an invalid proxy; TypeError where the server cannot be reached, as `fetch` does
 */
export async function fetchThroughProxy(input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
  const first = new URL(input instanceof Request ? input.url : input);
  if (!openProxyAgent(first, {})) return fetch(input, init);
  const { method = 'GET', body, signal } = init;
  let url = first;
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    const headers = new Headers(init.headers);
    if (url.origin !== first.origin) headers.delete('authorization');
    const response = await ask(url, method, headers, typeof body === 'string' ? body : undefined, signal);
    const { statusCode = 0, headers: answered } = response;
    if (statusCode < 300 || statusCode > 399 || !answered.location || init.redirect === 'manual') {
      return toResponse(response, url);
    }
    response.resume();
    url = new URL(answered.location, url);
  }
  throw new TypeError(`more than ${MAX_REDIRECTS} redirects from ${first.host}`);
}

function ask(
  url: URL,
  method: string,
  headers: Headers,
  body: string | undefined,
  signal: AbortSignal | null | undefined,
): Promise<IncomingMessage> {
  const agent = openProxyAgent(url, {});
  const request = url.protocol === 'https:' ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const options = { method, headers: Object.fromEntries(headers), agent, ...(signal ? { signal } : {}) };
    const sent = request(url, options, resolve);
    sent.on('error', (cause) => reject(new TypeError('fetch failed', { cause })));
    sent.end(body);
  });
}

function toResponse(message: IncomingMessage, url: URL): Response {
  const { statusCode: status = 0, headers: answered } = message;
  const headers = new Headers();
  for (const [name, value] of Object.entries(answered)) {
    for (const one of Array.isArray(value) ? value : [value ?? '']) headers.append(name, one);
  }
  const hasBody = status !== 204 && status !== 304;
  const response = new Response(hasBody ? (Readable.toWeb(message) as ReadableStream) : null, { status, headers });
  // A response that is made has no address, and the library compares it with the hub's.
  Object.defineProperty(response, 'url', { value: url.href });
  return response;
}
