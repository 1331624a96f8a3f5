import { type AddressInfo, createServer, type Socket } from 'node:net';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { GrowingBuffer } from '../../src/core/growing-buffer.ts';
import { Rng } from '../../src/core/rng.ts';
import { appOf, type HttpHandler } from '../../src/http/app.ts';
import { attempt } from '../../src/http/attempts.ts';
import { excerpt, HttpClient } from '../../src/http/http-client.ts';
import type { RemoteError } from '../../src/http/retry.ts';
import { type ListenOptions, listen as listenTo } from '../../src/http/server.ts';
import { readCompletion } from '../../src/policy/remote/openai-client.ts';
import { bytesInUse } from '../../src/world/conformance/measure.ts';

const listen = (handler: HttpHandler, options: ListenOptions) => listenTo(appOf(handler), options);

it('quotes a server on one line, without what a terminal would obey', () => {
  expect(excerpt('<html>\n  <h1>\u001b[31mError\u0007</h1>\r\n', 300)).toBe('<html> <h1> [31mError </h1>');
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 40 }), fc.nat(30), (text, length) => {
      const quoted = excerpt(text, length);
      expect(quoted.length).toBeLessThanOrEqual(length);
      expect(quoted).not.toMatch(/\p{Cc}|\p{Zl}|\p{Zp}/u);
    }),
  );
});

it('strikes its key out of whatever a server echoes', async () => {
  const server = await listen(
    ({ path }) => ({ status: path === '/bad' ? 400 : 200, body: '{"you sent":"sk-12345678"}' }),
    {
      port: 0,
    },
  );
  const client = new HttpClient({ baseUrl: server.url, headers: { Authorization: 'Bearer sk-12345678' } });
  try {
    expect((await client.send('GET', 'good', undefined, 5000)).body).toBe('{"you sent":"[key]"}');
    await expect(client.send('GET', 'bad', undefined, 5000)).rejects.toThrow(/HTTP 400 .*\[key\]/);
    await expect(client.send('GET', 'bad', undefined, 5000)).rejects.not.toThrow(/12345678/);
  } finally {
    client.close();
    await server.close();
  }
});

it('follows no redirect, and reveals neither its key nor where it was sent', async () => {
  const paths: string[] = [];
  const elsewhere = await listen(
    ({ path }) => {
      paths.push(path);
      return { status: 200, body: '{}' };
    },
    { port: 0 },
  );
  const location = `${elsewhere.url}/v1?key=sk-12345678`;
  const server = await listen(
    ({ path }) => ({
      status: Number(path.slice(1)),
      headers: { location, 'www-authenticate': 'Bearer sk-12345678', 'retry-after': 'sk-12345678' },
      body: `<a href="${location}">moved for sk-12345678</a>`,
    }),
    { port: 0 },
  );
  const client = new HttpClient({ baseUrl: server.url, headers: { Authorization: 'Bearer sk-12345678' } });
  try {
    for (const status of ['301', '302', '303', '307', '308', '401']) {
      const error = await client.send('POST', status, '{}', 5000).catch((thrown: RemoteError) => thrown);
      expect(error).toMatchObject({
        fault: 'status',
        status: Number(status),
        message: expect.stringContaining('[key]'),
      });
      expect(JSON.stringify({ ...(error as object), message: (error as Error).message })).not.toContain('sk-12345678');
    }
    expect(paths).toEqual([]);
  } finally {
    client.close();
    await server.close();
    await elsewhere.close();
  }
});

it('holds an answer that comes byte by byte in little more than its size', async () => {
  const body = 60_000;
  const server = createServer();
  const connected = new Promise<Socket>((resolve) => {
    server.on('connection', (socket) => {
      socket.on('error', () => {});
      socket.once('data', () => resolve(socket));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const client = new HttpClient({ baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  let pieces = 0;
  const { add } = GrowingBuffer.prototype;
  GrowingBuffer.prototype.add = function (piece) {
    pieces++;
    return add.call(this, piece);
  };
  try {
    const before = bytesInUse();
    const answer = client.send('GET', 'x', undefined, 60_000);
    const socket = await connected;
    socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
    socket.write('1\r\na\r\n'.repeat(body));
    while (pieces < body) await new Promise((resolve) => setTimeout(resolve, 5));
    const grown = bytesInUse() - before;
    socket.write('0\r\n\r\n');
    expect((await answer).body).toBe('a'.repeat(body));
    expect(grown / body).toBeLessThan(40); // a buffer object for each byte takes some 100 and more
  } finally {
    GrowingBuffer.prototype.add = add;
    client.close();
    server.close();
  }
});

it('gives up what is under way when it is closed, and sends nothing more', async () => {
  let requests = 0;
  let came = () => {};
  const asked = new Promise<void>((resolve) => {
    came = resolve;
  });
  const server = await listen(
    () => {
      if (++requests === 2) came();
      return new Promise<never>(() => {});
    },
    { port: 0 },
  );
  const client = new HttpClient({ baseUrl: server.url });
  const context = { clock: systemClock, rng: Rng.fromSeed(1), closed: client.closed };
  const limits = { attempts: 9, minMs: 1, maxMs: 1, attemptMs: 30_000, totalMs: 60_000 };
  try {
    const one = client.send('GET', 'x', undefined, 30_000);
    const retried = attempt(limits, context, (ms) => client.send('GET', 'y', undefined, ms));
    const both = Promise.allSettled([one, retried]);
    await asked;
    client.close();
    expect(await both).toMatchObject([{ reason: { fault: 'closed' } }, { reason: { fault: 'closed' } }]);
    await expect(client.send('GET', 'z', undefined, 30_000)).rejects.toMatchObject({ fault: 'closed' });
    expect(requests).toBe(2);
  } finally {
    await server.close();
  }
});

it('takes no URL with a password, and does not print it', () => {
  const make = () => new HttpClient({ baseUrl: 'http://me:secret@127.0.0.1:1/v1' });
  expect(make).toThrow(/no name or password/);
  expect(make).not.toThrow(/secret/);
});

it.each(['1e999', '-1e999', '-1e300'])('takes a log-probability of %s for a malformed answer', (logprob) => {
  const answer = JSON.parse(`{"choices":[{"text":"a","token_ids":[1],"logprobs":{"token_logprobs":[${logprob}]}}]}`);
  expect(() => readCompletion('completions', answer)).toThrow(/not finite/);
});
