/** Laws of every server here, behind a real socket: who is answered, what is refused, and what a client may hold. */
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import type { HttpLimits } from '../../src/http/server.ts';

/** Server under test. */
export interface Subject {
  /** Starts it on a free port of the loopback address. */
  start(limits: HttpLimits): Promise<{ readonly url: string; close(): unknown }>;
  /** Path of the GET that is sent. */
  readonly path: string;
  /** Status of its answer. Default 200. */
  readonly status?: number;
  /** Connections at once where the server itself says so. */
  readonly maxConnections?: number;
  /** True where a request without a key is refused by its head, so that its body is not read. */
  readonly isKeyed?: boolean;
}

/** Bytes of a request's end. */
const END = '\r\n\r\n';

export function testServerLaws(
  name: string,
  { start, path, status: answered = 200, maxConnections, isKeyed }: Subject,
): void {
  describe(`the server: ${name}`, () => {
    let server: Awaited<ReturnType<Subject['start']>> | undefined;
    let sockets: Socket[] = [];
    afterEach(async () => {
      for (const socket of sockets) socket.destroy();
      sockets = [];
      await server?.close();
      server = undefined;
    });
    const open = () => {
      const socket = connect(Number(new URL(server!.url).port), '127.0.0.1');
      sockets.push(socket);
      socket.on('error', () => {});
      return socket;
    };
    /** Sends bytes on one connection, and collects what comes until it is closed. */
    const exchange = async (bytes: string, limits: HttpLimits = {}): Promise<string> => {
      server ??= await start(limits);
      const socket = open();
      const received: Buffer[] = [];
      socket.on('data', (chunk) => received.push(chunk));
      socket.write(bytes, 'latin1');
      await new Promise((resolve) => socket.on('close', resolve));
      return Buffer.concat(received).toString('latin1');
    };
    const statusesOf = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
    const statusOf = async (head: string, limits?: HttpLimits) => statusesOf(await exchange(head, limits));
    const get = (...headers: readonly string[]) =>
      [`GET ${path} HTTP/1.1`, ...headers, 'connection: close'].join('\r\n') + END;
    const post = (...headers: readonly string[]) =>
      [`POST ${path} HTTP/1.1`, 'host: localhost', ...headers].join('\r\n');

    it.each([
      ['an own name', ['host: localhost'], 200],
      ['an own name with a port', ['host: 127.0.0.1:1234'], 200],
      ['the own address of the other protocol', ['host: [::1]:80'], 200],
      ['a page of this machine', ['host: localhost', 'origin: http://localhost:3000'], 200],
      ['no host', [], 400],
      ['an empty host', ['host:'], 403],
      ['another name', ['host: evil.example'], 403],
      ['a name that begins as ours', ['host: localhost.evil.example'], 403],
      ['a name behind a user', ['host: localhost@evil.example'], 403],
      ['two hosts, the first of them ours', ['host: localhost', 'host: evil.example'], 400],
      ['two hosts, the last of them ours', ['host: evil.example', 'host: localhost'], 400],
      ['two hosts, both ours', ['host: localhost', 'host: localhost'], 400],
      ['a page from elsewhere', ['host: localhost', 'origin: https://evil.example'], 403],
      ['a page without an origin', ['host: localhost', 'origin: null'], 403],
      ['two origins', ['host: localhost', 'origin: http://localhost', 'origin: https://evil.example'], 400],
    ] as const)('access: %s', async (_, headers, status) => {
      expect(await statusOf(get(...headers))).toEqual([status === 200 ? answered : status]);
    });

    it('access: a whole URL as target counts by its own name', async () => {
      const target = (url: string) => `GET ${url}${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close${END}`;
      expect(await statusOf(target('http://evil.example'))).toEqual([403]);
      expect(await statusOf(target('http://localhost'))).toEqual([answered]);
    });

    it.each([
      ['two lengths', post('content-length: 3', 'content-length: 4') + `${END}abc`],
      ['two equal lengths', post('content-length: 3', 'content-length: 3') + `${END}abc`],
      ['a length beside chunks', post('content-length: 3', 'transfer-encoding: chunked') + `${END}0${END}`],
      ['chunks beside a length', post('transfer-encoding: chunked', 'content-length: 3') + `${END}0${END}`],
      ['chunks that are not the last coding', post('transfer-encoding: chunked, identity') + `${END}0${END}`],
      ['an unknown coding', post('transfer-encoding: xchunked') + `${END}0${END}`],
      ['codings twice', post('transfer-encoding: chunked', 'transfer-encoding: chunked') + `${END}0${END}`],
      ['a blank before the colon', post('transfer-encoding : chunked') + `${END}0${END}`],
      ['a folded header', post('x-a: 1', ' transfer-encoding: chunked') + `${END}0${END}`],
      ['a bare line feed', `GET ${path} HTTP/1.1\r\nhost: localhost\nx-a: 1${END}`],
      ['a bare carriage return', `GET ${path} HTTP/1.1\r\nhost: localhost\rx-a: 1${END}`],
      ['a zero byte', post('x-a: \0') + END],
      ['a signed length', post('content-length: +3') + `${END}abc`],
      ['a hexadecimal length', post('content-length: 0x3') + `${END}abc`],
      ['a list as length', post('content-length: 3, 3') + `${END}abc`],
      ['a chunk of a signed size', post('transfer-encoding: chunked') + `${END}+1\r\na\r\n0${END}`],
      ['a chunk longer than its size', post('transfer-encoding: chunked') + `${END}1\r\nab\r\n0${END}`],
      ['no request line', `hello${END}`],
    ])('form: %s is refused, and nothing behind it is answered', async (_, bytes) => {
      const hidden = get('host: localhost');
      const received = await exchange(bytes + hidden);
      expect(statusesOf(received).filter((status) => status === answered && status < 400)).toEqual([]);
      const unread = statusesOf(received).filter((status) => !isKeyed || status !== answered);
      expect(unread).toEqual([expect.toSatisfy((status: number) => status >= 400 && status < 500)]);
    });

    it('size: a head, and a body, have a bound, stated or not', async () => {
      expect(await statusOf(get('host: localhost', `x-a: ${'a'.repeat(17_000)}`))).toEqual([431]);
      expect(await statusOf(post('content-length: 999999999999') + END)).toEqual([413]);
      await server?.close();
      server = undefined;
      if (isKeyed) return; // its body would not be read
      const long = `${(2000).toString(16)}\r\n${'a'.repeat(2000)}\r\n0${END}`;
      expect(await statusOf(post('transfer-encoding: chunked') + END + long, { maxBodyBytes: 1000 })).toEqual([413]);
    });

    it('time: a request that does not become whole ends, in its head or in its body', async () => {
      const limits = { receiveMs: 150 };
      expect(await statusOf(`GET ${path} HTTP/1.1\r\nhost: local`, limits)).toEqual([408]);
      const early = isKeyed ? [answered] : [];
      expect(await statusOf(post('content-length: 9') + `${END}ab`, limits)).toEqual([...early, 408]);
    });

    it('time: an idle connection ends', async () => {
      const keepAlive = `GET ${path} HTTP/1.1\r\nhost: localhost${END}`;
      expect(await statusOf(keepAlive, { keepAliveMs: 50 })).toEqual([answered]);
    });

    it('count: a connection beyond the bound takes the place of a silent one, and everybody is answered', async () => {
      const max = maxConnections ?? 20;
      server = await start(maxConnections === undefined ? { maxConnections: max } : {});
      let closed = 0;
      for (let i = 0; i < 3 * max; i++) {
        open()
          .on('close', () => closed++)
          .write(`GET ${path} HTTP/1.1\r\nho`);
      }
      while (closed < 2 * max) await new Promise((resolve) => setTimeout(resolve, 5));
      expect(await statusOf(get('host: localhost'))).toEqual([answered]);
      for (const socket of sockets) socket.destroy();
    });

    it('count: requests of one address have a rate', async () => {
      const requests = Array.from({ length: 30 }, () => `GET ${path} HTTP/1.1\r\nhost: localhost${END}`).join('');
      const statuses = await statusOf(requests + get('host: localhost'), { requestsPerSecond: 5 });
      expect(statuses).toHaveLength(31);
      expect(new Set(statuses)).toEqual(new Set([answered, 429]));
    });
  });
}
