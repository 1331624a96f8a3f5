/**
 * A closed-loop HTTP load generator on raw sockets: each client is one keep-alive connection that sends its next
 * request when the last one is answered. It parses just enough of an answer to find its end, so that what is measured
 * is the server.
 */
import { connect, type Socket } from 'node:net';

/** Next request of a client, given the body of the last answer; undefined ends it. */
export type Client = (lastBody: string) => LoadRequest | undefined;

export interface LoadRequest {
  readonly path: string;
  /** Further lines of the head, each with its end. */
  readonly headers?: string;
  readonly body: string;
}

/** Result of a load: requests a second, and latencies in milliseconds. */
export interface LoadResult {
  readonly requestsPerSecond: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  readonly requests: number;
}

/**
 * Loads a server with so many clients at once. @param warmMs left out of the figures @throws {Error} when a
 * connection breaks, or an answer's status is not 2xx /
 */
export async function load(
  url: string,
  clients: readonly Client[],
  { seconds, warmMs = 300 }: { readonly seconds: number; readonly warmMs?: number },
): Promise<LoadResult> {
  const { hostname, port, host } = new URL(url);
  const start = performance.now() + warmMs;
  const end = start + 1000 * seconds;
  const latencies: number[] = [];
  let errors = 0;
  await Promise.all(
    clients.map(
      (next) =>
        new Promise<void>((resolve, reject) => {
          const socket: Socket = connect(Number(port), hostname);
          socket.setNoDelay(true);
          let sentAt = 0;
          let buffer: Buffer = Buffer.alloc(0);
          const send = (lastBody: string) => {
            const request = performance.now() < end ? next(lastBody) : undefined;
            if (!request) {
              socket.end();
              resolve();
              return;
            }
            const { path, headers = '', body } = request;
            sentAt = performance.now();
            socket.write(
              `POST ${path} HTTP/1.1\r\nhost: ${host}\r\n${headers}content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
            );
          };
          socket.on('connect', () => send(''));
          socket.on('error', reject);
          socket.on('close', () => resolve());
          socket.on('data', (chunk) => {
            buffer = buffer.length === 0 ? chunk : Buffer.concat([buffer, chunk]);
            const head = buffer.indexOf('\r\n\r\n');
            if (head < 0) return;
            const headers = buffer.toString('latin1', 0, head);
            const length = Number(/content-length: (\d+)/i.exec(headers)?.[1] ?? 0);
            if (buffer.length < head + 4 + length) return;
            const now = performance.now();
            if (sentAt >= start && now <= end) {
              latencies.push(now - sentAt);
              if (headers[9] !== '2') errors++;
            }
            const body = buffer.toString('utf8', head + 4, head + 4 + length);
            buffer = Buffer.alloc(0);
            send(body);
          });
        }),
    ),
  );
  // A refusal is quicker than an answer: a rate with refusals in it is no rate of answers.
  if (errors > 0) throw new Error(`${url}: ${errors} of ${latencies.length} requests were answered with an error`);
  latencies.sort((a, b) => a - b);
  const at = (share: number) => latencies[Math.min(latencies.length - 1, Math.floor(share * latencies.length))] ?? NaN;
  return {
    requestsPerSecond: Math.round(latencies.length / seconds),
    p50: at(0.5),
    p99: at(0.99),
    requests: latencies.length,
  };
}
