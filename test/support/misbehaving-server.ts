/**
 * A server on loopback that gives scripted answers, or misbehaves: `faults` lists for each request in turn what is
 * wrong with it; behind them everything is well.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Fault =
  | 'ok'
  | 'slow' // answers after `SLOW_MS`
  | 'reset' // closes the connection instead of answering
  | '429' // with Retry-After: 0
  | '500'
  | 'not-json'
  | 'half' // states a length and sends half of it
  | 'wrong' // an answer for somebody else, made by `wrong`
  | 'silence'; // never answers

export const SLOW_MS = 150;

export interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
  readonly authorization: string | undefined;
}

export interface MisbehavingServer {
  readonly url: string;
  /** Requests that reached it. */
  readonly log: readonly (Exchange & { readonly fault: Fault; readonly at: number })[];
  close(): Promise<void>;
}

/**
 * @param answer a good answer: status and JSON
 * @param faultOf what is wrong with the n-th request, counted from 0
 * @param wrong makes another's answer out of a good one
 */
export async function misbehavingServer(
  answer: (exchange: Exchange) => Promise<{ status: number; json: unknown }>,
  faultOf: (n: number, exchange: Exchange) => Fault,
  wrong: (json: unknown) => unknown = (json) => json,
): Promise<MisbehavingServer> {
  const log: (Exchange & { fault: Fault; at: number })[] = [];
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    let text = '';
    for await (const chunk of request) text += chunk;
    const exchange = {
      method: request.method ?? '',
      path: request.url ?? '',
      body: text === '' ? undefined : (JSON.parse(text) as unknown),
      authorization: request.headers.authorization,
    };
    const fault = faultOf(log.length, exchange);
    log.push({ ...exchange, fault, at: performance.now() });
    const send = (status: number, body: string, headers: Record<string, string> = {}) => {
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(body);
    };
    if (fault === 'silence') return;
    if (fault === 'reset') {
      request.socket.destroy();
      return;
    }
    if (fault === '429') return send(429, '{}', { 'retry-after': '0' });
    if (fault === '500') return send(500, '{"error":"boom"}');
    if (fault === 'not-json') return send(200, '<html>upstream error</html>');
    if (fault === 'slow') await new Promise((resolve) => setTimeout(resolve, SLOW_MS));
    const { status, json } = await answer(exchange);
    const body = status === 204 ? '' : JSON.stringify(fault === 'wrong' ? wrong(json) : json);
    if (fault === 'half') {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
      response.write(body.slice(0, body.length >> 1));
      setTimeout(() => response.destroy(), 10);
      return;
    }
    send(status, body);
  };
  const server = createServer((request, response) => void serve(request, response).catch(() => response.destroy()));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    log,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
