/** The HTTP reader, alone and behind a socket: any cut of the bytes, and what must be refused. */
import { connect } from 'node:net';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { BadRequest, type ReadRequest, RequestReader } from '../../src/serve/http-request.ts';
import { type HttpHandler, type HttpServer, type ListenOptions, listen } from '../../src/serve/http-server.ts';

const limits = { maxBodyBytes: 10_000 };

function read(pieces: readonly Buffer[], within = limits): ReadRequest[] {
  const reader = new RequestReader(within);
  const found: ReadRequest[] = [];
  for (const piece of pieces) {
    reader.push(piece);
    for (let request = reader.next(); request; request = reader.next()) found.push(request);
  }
  expect(reader.waiting).toBe(false);
  return found;
}

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly body: string;
  /** Lengths of its chunks; undefined for a body with a stated length. */
  readonly chunks: readonly number[] | undefined;
}

function wire({ method, path, body, chunks }: Sent): Buffer {
  const bytes = Buffer.from(body);
  const head = `${method} ${path} HTTP/1.1\r\nHost: here\r\nContent-TYPE:  application/json \r\nX-Other: ü, 1\r\n`;
  if (!chunks) return Buffer.concat([Buffer.from(`${head}Content-Length: ${bytes.length}\r\n\r\n`, 'latin1'), bytes]);
  const parts = [Buffer.from(`${head}Transfer-Encoding: chunked\r\n\r\n`, 'latin1')];
  let at = 0;
  for (const length of [...chunks, bytes.length]) {
    const part = bytes.subarray(at, at + length);
    if (part.length === 0) continue;
    parts.push(Buffer.from(`${part.length.toString(16)};note=1\r\n`), part, Buffer.from('\r\n'));
    at += part.length;
  }
  return Buffer.concat([...parts, Buffer.from('0\r\nTrailer: yes\r\n\r\n')]);
}

const sent = fc.record({
  method: fc.constantFrom('GET', 'POST', 'DELETE'),
  path: fc.webPath().map((path) => `/${path.replace(/^\/+/, '')}?q=1`),
  body: fc.string({ unit: 'grapheme', maxLength: 200 }),
  chunks: fc.option(fc.array(fc.integer({ min: 1, max: 50 }), { maxLength: 5 }), { nil: undefined }),
});

describe('a reader', () => {
  it('finds the same requests however their bytes are cut', () => {
    fc.assert(
      fc.property(fc.array(sent, { maxLength: 4 }), fc.array(fc.nat(2000), { maxLength: 12 }), (requests, cuts) => {
        const bytes = Buffer.concat(requests.map(wire));
        const places = [0, ...cuts.filter((cut) => cut < bytes.length).sort((a, b) => a - b), bytes.length];
        const pieces = places.slice(1).map((end, i) => bytes.subarray(places[i], end));
        const found = read(pieces.filter(({ length }) => length > 0));
        expect(found.map(({ method, target, body }) => ({ method, path: target, body }))).toEqual(
          requests.map(({ method, path, body }) => ({ method, path, body })),
        );
        for (const { contentType, keepAlive } of found)
          expect([contentType, keepAlive]).toEqual(['application/json', true]);
      }),
    );
  });

  it('never throws anything but a refusal, whatever comes', () => {
    const fragment = fc.constantFrom(
      'POST / HTTP/1.1\r\n',
      'host: x\r\n',
      '\r\n',
      'content-length: 3\r\n',
      'abc',
      '0\r\n',
    );
    const noise = fc.oneof(fc.uint8Array({ maxLength: 30 }), fragment.map(Buffer.from));
    fc.assert(
      fc.property(fc.array(noise, { maxLength: 12 }), (pieces) => {
        const reader = new RequestReader(limits);
        try {
          for (const piece of pieces) {
            reader.push(Buffer.from(piece));
            while (reader.next());
          }
        } catch (thrown) {
          expect(thrown).toBeInstanceOf(BadRequest);
        }
      }),
    );
  });

  it.each([
    ['no request line', 'hello\r\n\r\n', 400],
    ['another protocol', 'GET / HTTP/2.0\r\nhost: x\r\n\r\n', 400],
    ['no host', 'GET / HTTP/1.1\r\n\r\n', 400],
    ['two lengths', 'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\ncontent-length: 3\r\n\r\nabc', 400],
    ['a length that is none', 'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: +3\r\n\r\nabc', 400],
    [
      'a length beside chunks',
      'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n',
      400,
    ],
    ['an unknown coding', 'POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip, chunked\r\n\r\n', 501],
    ['a blank in a name', 'GET / HTTP/1.1\r\nhost: x\r\ncontent-length : 3\r\n\r\nabc', 400],
    ['a folded line', 'GET / HTTP/1.1\r\nhost: x\r\nx-a: 1\r\n more\r\n\r\n', 400],
    ['a bare newline', 'GET / HTTP/1.1\r\nhost: x\nx-a: 1\r\n\r\n', 400],
    ['a chunk without a size', 'POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n', 400],
    ['a chunk that is longer', 'POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n', 400],
    ['a body too long', 'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 10001\r\n\r\n', 413],
    ['chunks too long', 'POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n2711\r\n', 413],
    ['a head too long', `GET / HTTP/1.1\r\nhost: x\r\nx-a: ${'a'.repeat(17_000)}`, 431],
  ] as const)('refuses %s', (_, text, status) => {
    expect(() => read([Buffer.from(text)])).toThrow(expect.objectContaining({ status }) as Error);
  });

  it('knows HTTP/1.0, whole URLs and connections that end', () => {
    const one = (text: string) => read([Buffer.from(text)])[0]!;
    expect(one('GET / HTTP/1.0\r\n\r\n')).toMatchObject({ keepAlive: false, chunks: false });
    expect(one('GET / HTTP/1.0\r\nconnection: Keep-Alive\r\n\r\n')).toMatchObject({ keepAlive: true });
    expect(one('GET http://a:1?q=2 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')).toMatchObject({
      keepAlive: false,
      target: '/?q=2',
    });
  });
});

describe('a server', () => {
  let server: HttpServer | undefined;
  afterEach(async () => {
    await server?.close();
    server = undefined;
  });
  const echo: HttpHandler = async ({ method, path, body }) => {
    await new Promise((resolve) => setTimeout(resolve, path === '/slow' ? 30 : 0));
    return { status: 200, contentType: 'text/plain', body: `${method} ${path} ${body}` };
  };
  /** Sends text on one connection and collects what comes until it is closed. */
  const talk = async (text: string, handler: HttpHandler = echo, options: Partial<ListenOptions> = {}) => {
    server ??= await listen(handler, { port: 0, ...options });
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
    let heard = '';
    socket.on('data', (chunk) => {
      heard += chunk.toString();
    });
    socket.on('error', () => {});
    socket.write(text);
    await new Promise((resolve) => socket.on('close', resolve));
    return heard;
  };

  it('answers requests sent ahead in their order, and closes when asked to', async () => {
    const get = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nhost: x\r\n${more}\r\n`;
    const heard = await talk(get('/slow') + get('/a') + get('/b', 'connection: close\r\n') + get('/never'));
    expect(heard.match(/GET \/\w+/g)).toEqual(['GET /slow', 'GET /a', 'GET /b']);
  });

  it('says 100 Continue to who waits for it, leaves bodies out for HEAD, and streams in chunks', async () => {
    const waiting = talk(
      'POST /p HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 2\r\nconnection: close\r\n\r\n',
    );
    await expect(Promise.race([waiting, new Promise((resolve) => setTimeout(resolve, 60, 'open'))])).resolves.toBe(
      'open',
    );
    await server!.close();
    expect(await waiting).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    server = undefined;
    const head = await talk('HEAD /h HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
    expect(head).toMatch(/content-length: 8\r\n.*\r\n\r\n$/s);
    await server!.close();
    server = undefined;
    async function* pieces() {
      yield 'ab';
      yield '';
      yield 'ü';
    }
    const streamed = await talk('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n', () => ({
      status: 200,
      body: pieces(),
    }));
    expect(streamed.endsWith('\r\n\r\n2\r\nab\r\n2\r\nü\r\n0\r\n\r\n')).toBe(true);
  });

  it('refuses a body too long before it is there, and a request that does not come', async () => {
    const long = await talk('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 99999999\r\n\r\n', echo, { receiveMs: 100 });
    expect(long).toMatch(/^HTTP\/1.1 413 .*\r\n.*connection: close\r\n\r\n\{"error"/s);
    expect(await talk('GET / HTTP/1.1\r\nhost: x\r\n')).toMatch(/^HTTP\/1.1 408 /);
    expect(server!.counts.refused).toBe(2);
  });

  it('does not keep a client that was told goodbye and goes on sending', async () => {
    server = await listen(echo, { port: 0, receiveMs: 200 });
    const socket = connect({ port: Number(new URL(server.url).port), host: '127.0.0.1', allowHalfOpen: true });
    socket.on('error', () => {});
    socket.resume();
    socket.write('GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n');
    const sending = setInterval(() => socket.write('x'.repeat(1000)), 10);
    await new Promise((resolve) => socket.on('close', resolve));
    clearInterval(sending);
  });

  it('tells a handler whose client has gone', async () => {
    const gone = new Promise<void>((resolve) => {
      const waiting: HttpHandler = ({ gone }) =>
        new Promise(() => gone.addEventListener('abort', () => resolve(), { once: true }));
      void listen(waiting, { port: 0 }).then((made) => {
        server = made;
        const socket = connect(Number(new URL(made.url).port), '127.0.0.1');
        socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
        setTimeout(() => socket.destroy(), 30);
      });
    });
    await gone;
  });
});
