/** The HTTP server behind a real socket: any cut of the bytes, what must be refused, and clients that mean harm. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { connect, type Socket } from 'node:net';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { isOwnHost } from '../../src/http/access.ts';
import { appOf, type HttpHandler } from '../../src/http/app.ts';
import { type HttpServer, type ListenOptions, listen as listenTo } from '../../src/http/server.ts';
import { bytesInUse } from '../../src/world/conformance/measure.ts';

const listen = (handler: HttpHandler, options: ListenOptions) => listenTo(appOf(handler), options);

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly body: string;
  /** Lengths of its chunks; undefined for a body with a stated length. */
  readonly chunks: readonly number[] | undefined;
}

function wire({ method, path, body, chunks }: Sent): Buffer {
  const bytes = Buffer.from(body);
  const head = `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nContent-TYPE:  application/json \r\nX-Other: ü, 1\r\n`;
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
    let received = '';
    socket.on('data', (chunk) => {
      received += chunk.toString();
    });
    socket.on('error', () => {});
    socket.write(text);
    await new Promise((resolve) => socket.on('close', resolve));
    return received;
  };

  it('reads the same requests however their bytes are cut', async () => {
    server = await listen(
      ({ method, path, query, body }) => ({ status: 200, body: JSON.stringify({ method, path, query, body }) }),
      { port: 0 },
    );
    const port = Number(new URL(server.url).port);
    let compared = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(sent, { minLength: 1, maxLength: 4 }),
        fc.array(fc.nat(2000), { maxLength: 8 }),
        async (requests, cuts) => {
          const bytes = Buffer.concat(requests.map(wire));
          const places = [0, ...cuts.filter((cut) => cut < bytes.length).sort((a, b) => a - b), bytes.length];
          const received = await new Promise<string>((resolve) => {
            const socket = connect({ port, host: '127.0.0.1', noDelay: true });
            socket.setEncoding('utf8');
            let text = '';
            let fed = false;
            const endWhenAnswered = () => {
              if (fed && text.match(/"body":/g)?.length === requests.length && text.endsWith('}')) socket.end();
            };
            socket.on('data', (chunk) => {
              text += chunk;
              endWhenAnswered();
            });
            socket.on('close', () => resolve(text));
            const feed = async () => {
              for (const [i, end] of places.slice(1).entries()) {
                socket.write(bytes.subarray(places[i], end));
                await new Promise(setImmediate);
              }
              fed = true; // a GET is answered before its body is sent
              endWhenAnswered();
            };
            void feed();
          });
          // A body may hold U+2028, at which `.` stops.
          const answers = received.match(/^\{[^\n]*\}/gm)!.map((line) => JSON.parse(line));
          expect(answers).toEqual(
            requests.map(({ method, path, body }) => ({
              method,
              path: path.slice(0, path.indexOf('?')),
              query: path.slice(path.indexOf('?') + 1),
              body: method === 'GET' ? '' : body,
            })),
          );
          compared += answers.length;
        },
      ),
      { numRuns: 60 },
    );
    expect(compared).toBeGreaterThan(60);
  });

  it.each([
    ['no request line', 'hello\r\n\r\n', 400],
    ['another protocol', 'GET / HTTP/2.0\r\nhost: localhost\r\nconnection: close\r\n\r\n', 505],
    ['no host', 'GET / HTTP/1.1\r\nconnection: close\r\n\r\n', 400],
    ['two lengths', 'POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\ncontent-length: 3\r\n\r\nabc', 400],
    ['a length that is none', 'POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: +3\r\n\r\nabc', 400],
    [
      'a length beside chunks',
      'POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n',
      400,
    ],
    ['a blank in a name', 'GET / HTTP/1.1\r\nhost: localhost\r\ncontent-length : 3\r\n\r\nabc', 400],
    ['a bare newline', 'GET / HTTP/1.1\r\nhost: localhost\nx-a: 1\r\n\r\n', 400],
    ['a chunk without a size', 'POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n', 400],
    [
      'a chunk that is longer',
      'POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n',
      400,
    ],
    [
      'chunks too long',
      `POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n100001\r\n${'a'.repeat(0x100001)}\r\n`,
      413,
    ],
    ['a head too long', `GET / HTTP/1.1\r\nhost: localhost\r\nx-a: ${'a'.repeat(17_000)}`, 431],
    ['a host of another name', 'GET / HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n', 403],
    [
      'a page from elsewhere',
      'GET / HTTP/1.1\r\nhost: localhost\r\norigin: https://evil.example\r\nconnection: close\r\n\r\n',
      403,
    ],
  ] as const)('refuses %s', async (_, text, status) => {
    expect(await talk(text)).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(server!.counts.refused).toBe(1);
  });

  it('survives any bytes, and answers the next client', async () => {
    server = await listen(echo, { port: 0 });
    const port = Number(new URL(server.url).port);
    const fragment = fc.constantFrom(
      'POST / HTTP/1.1\r\n',
      'host: localhost\r\n',
      '\r\n',
      'content-length: 3\r\n',
      'abc',
      '0\r\n',
    );
    const noise = fc.oneof(fc.uint8Array({ maxLength: 30 }), fragment.map(Buffer.from));
    await fc.assert(
      fc.asyncProperty(fc.array(noise, { maxLength: 12 }), async (pieces) => {
        const socket = connect(port, '127.0.0.1');
        socket.on('error', () => {});
        for (const piece of pieces) socket.write(Buffer.from(piece));
        await new Promise<void>((resolve) => socket.end(() => resolve()));
        socket.destroy();
      }),
      { numRuns: 200 },
    );
    expect(await (await fetch(`${server.url}/after`)).text()).toBe('GET /after ');
  });

  it('answers newcomers while half-sent requests occupy all the room there is', async () => {
    server = await listen(echo, { port: 0, maxConnections: 40 });
    const port = Number(new URL(server.url).port);
    const slow: Socket[] = [];
    let ended = 0;
    for (let i = 0; i < 120; i++) {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => {});
      socket.write(
        i % 2 === 0 ? 'GET / HTTP/1.1\r\nho' : 'POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\nab',
      );
      socket.on('close', () => ended++);
      slow.push(socket);
    }
    while (ended < 100) await new Promise((resolve) => setTimeout(resolve, 5)); // clients unproven have half the room

    for (let i = 0; i < 20; i++) expect(await (await fetch(`${server.url}/${i}`)).text()).toBe(`GET /${i} `);
    for (const socket of slow) socket.destroy();
  });

  it('lets no address push out the half-sent request of another, however many connections it opens', async () => {
    server = await listen(echo, { port: 0, maxConnections: 40 });
    const port = Number(new URL(server.url).port);
    const open = (localAddress: string) => {
      const socket = connect({ port, host: '127.0.0.1', localAddress });
      socket.on('error', () => {});
      return socket;
    };
    const slow = open('127.0.0.1');
    let received = '';
    slow.on('data', (chunk) => (received += chunk.toString()));
    slow.write('POST /slow HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 4\r\n\r\nab');
    await new Promise((resolve) => slow.once('connect', resolve));

    let ended = 0;
    const flood: Socket[] = [];
    for (let i = 0; i < 120; i++) {
      const socket = open('127.0.0.2');
      socket.write('GET / HTTP/1.1\r\nho');
      socket.on('close', () => ended++);
      flood.push(socket);
    }
    while (ended < 100) await new Promise((resolve) => setTimeout(resolve, 5));

    slow.write('cd');
    await new Promise((resolve) => slow.once('close', resolve));
    expect(received).toMatch(/POST \/slow abcd$/);
    for (const socket of flood) socket.destroy();
  });

  it.each([
    ['whole', () => 'x'.repeat(64_000_000)],
    [
      'in pieces',
      async function* () {
        for (;;) yield 'x'.repeat(100_000);
      },
    ],
  ])('ends the connection of a client that takes nothing of an answer: %s', async (_, body) => {
    server = await listen(() => ({ status: 200, contentType: 'text/plain', body: body() }), { port: 0, sendMs: 50 });
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
    socket.pause();
    socket.write('GET / HTTP/1.1\r\nhost: localhost\r\n\r\n');
    // It does not read, so only a failed write shows it that the connection has ended.
    const written = setInterval(() => socket.write('\r\n'), 5); // what it sends does not count as life
    const error = await new Promise<NodeJS.ErrnoException>((resolve) => socket.on('error', resolve));
    clearInterval(written);
    expect(['EPIPE', 'ECONNRESET']).toContain(error.code);
  });

  it('lets a client wait for the next piece longer than it may wait itself', async () => {
    const slowly: HttpHandler = () => ({
      status: 200,
      body: (async function* () {
        yield 'x'.repeat(1_000_000);
        await new Promise((resolve) => setTimeout(resolve, 150));
        yield 'end';
      })(),
    });
    server = await listen(slowly, { port: 0, sendMs: 50 });
    expect(await (await fetch(server.url)).text()).toMatch(/xend$/);
  });

  it('lets silent clients have half the room, and no client that was served before', async () => {
    server = await listen(echo, { port: 0, maxConnections: 6 });
    const port = Number(new URL(server.url).port);
    const opened: {
      readonly socket: Socket;
      readonly wait: (event: 'data' | 'close') => Promise<void>;
      closed: boolean;
    }[] = [];
    const open = () => {
      const socket = connect(port, '127.0.0.1');
      socket.on('error', () => {});
      const wait = (event: 'data' | 'close') =>
        new Promise<void>((resolve) => void socket.once(event, () => resolve()));
      const state = { socket, wait, closed: false };
      socket.on('close', () => (state.closed = true));
      opened.push(state);
      return state;
    };
    const served = open();
    served.socket.write('GET /a HTTP/1.1\r\nhost: localhost\r\n\r\n');
    await served.wait('data');

    for (let i = 0; i < 3; i++) await new Promise((resolve) => open().socket.once('connect', resolve));
    const [, first, second] = opened;
    const given = first!.wait('close');
    await new Promise((resolve) => open().socket.once('connect', resolve)); // the fourth, where six have room
    await given;
    expect(opened.map(({ closed }) => closed)).toEqual([false, true, false, false, false]);

    const more = second!.wait('close');
    open();
    await more;
    expect(served.closed).toBe(false);
    for (const { socket } of opened) socket.destroy();
  });

  it('gives no idle client precedence over a newcomer, but every client with a request under way', async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    let begun = 0;
    const handler: HttpHandler = async ({ path }) => {
      begun++;
      if (path === '/held') await held;
      return { status: 200, contentType: 'text/plain', body: path };
    };
    server = await listen(handler, { port: 0, maxConnections: 4 });
    const port = Number(new URL(server.url).port);
    const ask = (path: string) => {
      const socket = connect(port, '127.0.0.1');
      const state = { socket, received: '', closed: false };
      socket.on('error', () => {});
      socket.on('close', () => (state.closed = true));
      socket.on('data', (chunk) => (state.received += chunk.toString()));
      socket.write(`GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`);
      return state;
    };
    const until = async (done: () => boolean) => {
      while (!done()) await new Promise((resolve) => setTimeout(resolve, 5));
    };
    const busy = [ask('/held'), ask('/held')];
    await until(() => begun === busy.length);
    const idle: ReturnType<typeof ask>[] = [];
    for (const path of ['/a', '/b']) {
      const one = ask(path);
      await until(() => one.received.endsWith(path));
      idle.push(one);
    }
    const newcomer = ask('/c');
    await until(() => newcomer.received.endsWith('/c'));

    await until(() => idle[0]!.closed);
    expect([...busy, idle[1]!].map(({ closed }) => closed)).toEqual([false, false, false]);
    release();
    await until(() => busy.every(({ received }) => received.endsWith('/held')));

    const next = ask('/d'); // those answered last are not the ones that were idle longest
    await until(() => next.received.endsWith('/d'));
    await until(() => idle[1]!.closed);
    expect([...busy, newcomer].map(({ closed }) => closed)).toEqual([false, false, false]);
  });

  it('holds a body that comes byte by byte in little more than its size', async () => {
    const body = 60_000;
    let grown = 0;
    const before = bytesInUse();
    server = await listen(
      (request) => {
        grown = bytesInUse() - before;
        return { status: 200, body: `${request.body.length}` };
      },
      { port: 0 },
    );
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
    let received = '';
    socket.on('data', (chunk) => (received += chunk.toString()));
    socket.write('POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n');
    socket.write(`${'1\r\na\r\n'.repeat(body)}0\r\n\r\n`);
    await new Promise((resolve) => socket.on('close', resolve));
    expect(received).toContain(`\r\n${body}`);
    expect(grown / body).toBeLessThan(40); // a buffer object for each byte takes some 100 and more
  });

  it('reads no further than a few requests ahead of its answers', async () => {
    let taken = 0;
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    server = await listen(
      async ({ path }) => {
        await held;
        taken++;
        return { status: 200, contentType: 'text/plain', body: path };
      },
      { port: 0 },
    );
    const accepted: Socket[] = [];
    const onSocket = (message: unknown) => accepted.push((message as { socket: Socket }).socket);
    subscribe('net.server.socket', onSocket);
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
    socket.resume();
    const requests = 6000; // 48 MB
    const sending = new Promise<void>((resolve) => {
      socket.write(`GET /${'a'.repeat(8000)} HTTP/1.1\r\nhost: localhost\r\n\r\n`.repeat(requests), () => resolve());
    });
    const read = () => accepted.reduce((sum, { bytesRead }) => sum + bytesRead, 0);
    let before = -1;
    while (read() === 0 || before !== read()) {
      before = read();
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    unsubscribe('net.server.socket', onSocket);
    // What the server has not read stays with the client or in the kernel, whose buffers may hold all of it.
    expect(read()).toBeLessThan(8_000_000);
    release();
    await sending;
    while (taken < requests) await new Promise((resolve) => setTimeout(resolve, 10));
    socket.destroy();
  });

  it('answers thousands of requests that came in one piece, the first of them slowly', async () => {
    const handler: HttpHandler = ({ path }) => {
      const answer = { status: 200, contentType: 'text/plain', body: `[${path}]` };
      return path === '/0' ? new Promise((resolve) => setTimeout(() => resolve(answer), 30)) : answer;
    };
    const paths = Array.from({ length: 5000 }, (_, i) => `/${i}`);
    const requests = paths.map((path) => `GET ${path} HTTP/1.1\r\nhost: localhost\r\n\r\n`);
    const received = await talk(
      `${requests.join('')}GET /end HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n`,
      handler,
    );
    expect([...received.matchAll(/\[(.*?)\]/g)].map(([, path]) => path)).toEqual([...paths, '/end']);
    expect(received).not.toContain('HTTP/1.1 500');
  });

  it('answers 500 where an answer cannot be written, and goes on', async () => {
    const handler: HttpHandler = ({ path }) => ({
      status: 200,
      headers: path === '/bad' ? { 'x-bad': 'a\nb' } : {},
      body: '{}',
    });
    const received = await talk(
      'GET /bad HTTP/1.1\r\nhost: localhost\r\n\r\nGET / HTTP/1.0\r\nhost: localhost\r\n\r\n',
      handler,
    );
    expect(received).toMatch(/^HTTP\/1.1 500 .*"type":"internal".*HTTP\/1.1 200 OK/s);
  });

  it('answers requests sent ahead in their order, and closes on request', async () => {
    const get = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nhost: localhost\r\n${more}\r\n`;
    const received = await talk(get('/slow') + get('/a') + get('/b', 'connection: close\r\n') + get('/never'));
    expect(received.match(/GET \/\w+/g)).toEqual(['GET /slow', 'GET /a', 'GET /b']);
  });

  it('sends 100 Continue to a client that waits for it, leaves bodies out for HEAD, and streams in chunks', async () => {
    server = await listen(echo, { port: 0 });
    const socket = connect(Number(new URL(server.url).port), '127.0.0.1');
    let received = '';
    const first = new Promise<void>((resolve) =>
      socket.on('data', (chunk) => {
        received += chunk.toString();
        resolve();
      }),
    );
    const closed = new Promise((resolve) => socket.on('close', resolve));
    socket.write(
      'POST /p HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 2\r\nconnection: close\r\n\r\n',
    );
    await first;
    await server.close();
    await closed;
    expect(received).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    server = undefined;
    const head = await talk('HEAD /h HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n');
    expect(head).toMatch(/content-length: 8\r\n.*\r\n\r\n$/s);
    await server!.close();
    server = undefined;
    async function* pieces() {
      yield 'ab';
      yield '';
      yield 'ü';
    }
    const streamed = await talk('GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n', () => ({
      status: 200,
      body: pieces(),
    }));
    expect(streamed.endsWith('\r\n\r\n2\r\nab\r\n2\r\nü\r\n0\r\n\r\n')).toBe(true);
  });

  it('refuses a body too long before it is there, and a request that does not come', async () => {
    const long = await talk('POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999\r\n\r\n', echo, {
      receiveMs: 100,
    });
    expect(long).toMatch(/^HTTP\/1.1 413 .*connection: close\r\n.*\r\n\r\n\{"error"/s);
    expect(await talk('GET / HTTP/1.1\r\nhost: localhost\r\n')).toMatch(/^HTTP\/1.1 408 /);
    expect(server!.counts.refused).toBe(2);
  });

  it('refuses a body too long behind a request that takes its time, which is answered first', async () => {
    const received = await talk(
      'GET /first HTTP/1.1\r\nhost: localhost\r\n\r\nPOST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 99999999\r\n\r\n',
      async ({ path }) => {
        await new Promise((resolve) => setTimeout(resolve, 700));
        return { status: 200, contentType: 'text/plain', body: path };
      },
    );
    expect(received).toMatch(/^HTTP\/1.1 200 .*\/firstHTTP\/1.1 413 /s);
  });

  it('does not keep a client whose bytes are no request, however long it goes on sending', async () => {
    server = await listen(echo, { port: 0 });
    const socket = connect({ port: Number(new URL(server.url).port), host: '127.0.0.1', allowHalfOpen: true });
    socket.on('error', () => {});
    let received = '';
    socket.on('data', (chunk) => (received += chunk.toString()));
    const sending = setInterval(() => socket.write('hello\r\n\r\n'), 10);
    await new Promise((resolve) => socket.on('close', resolve));
    clearInterval(sending);
    expect(received).toMatch(/^HTTP\/1.1 400 /);
  });

  it('drops a client that goes on sending after `connection: close`', async () => {
    server = await listen(echo, { port: 0, receiveMs: 200 });
    const socket = connect({ port: Number(new URL(server.url).port), host: '127.0.0.1', allowHalfOpen: true });
    socket.on('error', () => {});
    socket.resume();
    socket.write('GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n');
    const sending = setInterval(() => socket.write('x'.repeat(1000)), 10);
    await new Promise((resolve) => socket.on('close', resolve));
    clearInterval(sending);
  });

  it('notifies a handler whose client has gone', async () => {
    const gone = new Promise<void>((resolve) => {
      let socket: Socket | undefined;
      const waiting: HttpHandler = ({ gone }) =>
        new Promise(() => {
          gone.addEventListener('abort', () => resolve(), { once: true });
          socket!.destroy();
        });
      void listen(waiting, { port: 0 }).then((made) => {
        server = made;
        socket = connect(Number(new URL(made.url).port), '127.0.0.1');
        socket.write('GET / HTTP/1.1\r\nhost: localhost\r\n\r\n');
      });
    });
    await gone;
  });
});

describe('own host names', () => {
  it.each([
    ['127.0.0.1:36001', true],
    ['localhost', true],
    ['LOCALHOST:80', true],
    ['[::1]:8', true],
    ['10.0.0.2:36001', true],
    ['evil.example', false],
    ['127.0.0.1.evil.example', false],
    ['localhost:80:90', false],
    ['', false],
    [undefined, false],
  ])('%s: %s', (header, own) => {
    expect(isOwnHost(header, '10.0.0.2')).toBe(own);
  });
});
