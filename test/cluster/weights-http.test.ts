/** Weights over HTTP: parts, ranges, digests, seals, and hands that pass them on. */
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { BrokerAway } from '../../src/cluster/broker.ts';
import type { Announcement } from '../../src/cluster/identity.ts';
import { MemoryServer } from '../../src/cluster/memory-broker.ts';
import {
  type FetchOptions,
  fetchWeights,
  parseServedAt,
  sealWeights,
  WeightsServer,
  type WeightsSource,
} from '../../src/cluster/weights-http.ts';
import { WeightsRelay } from '../../src/cluster/weights-relay.ts';
import { encodeReport } from '../../src/cluster/worker-report.ts';
import { systemClock } from '../../src/core/clock.ts';
import { Rng } from '../../src/core/rng.ts';
import { digestOf } from '../../src/learner/weights-file.ts';

const closing: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const weights = Uint8Array.from({ length: 1_000_003 }, (_, i) => (i * 31 + (i >> 8)) & 255);
const digest = digestOf(weights);
const LOOPBACK = { host: '127.0.0.1', port: 0 };

/** A learner's server of the weights in parts of 256 KB. */
async function learner(): Promise<{
  readonly server: WeightsServer;
  readonly source: WeightsSource;
  readonly parts: readonly Uint8Array[];
}> {
  const server = await WeightsServer.open(LOOPBACK);
  closing.push(() => server.close());
  const { parts, source } = sealWeights(weights, 256 * 1024);
  for (const [part, sealed] of parts.entries()) server.put(digest, part, sealed);
  return { server, source: { ...source, url: server.url }, parts };
}

/** A server that does as it likes. */
async function stranger(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function options(more: Partial<FetchOptions> = {}): FetchOptions {
  return { digest, bytes: weights.length, relays: () => [], rng: Rng.fromSeed(3), idleMs: 300, ...more };
}

const partOf = (url: string | undefined) => Number(/(\d+)$/.exec(url ?? '')![1]);

describe('weights over HTTP', () => {
  it('arrive whole, and are not to be read on the way', async () => {
    const { source, parts } = await learner();
    expect(source.parts.length).toBe(4);
    expect(Buffer.compare(await fetchWeights(source, options()), weights)).toBe(0);
    for (const [n, part] of parts.entries()) {
      const plain = weights.subarray(n * source.partBytes, n * source.partBytes + 64);
      expect(Buffer.from(part).includes(Buffer.from(plain))).toBe(false);
    }
    expect(sealWeights(weights).source.key).not.toBe(source.key); // one for each time
  });

  it('are served by ranges; what is not there, or asked otherwise, is refused', async () => {
    const { source, parts } = await learner();
    const get = (path: string, range?: string) => fetch(`${source.url}${path}`, range ? { headers: { range } } : {});
    const whole = await get(`/weights/${digest}/0`);
    expect([whole.status, (await whole.arrayBuffer()).byteLength]).toEqual([200, parts[0]!.length]);
    const rest = await get(`/weights/${digest}/0`, 'bytes=262000-');
    expect(rest.status).toBe(206);
    expect(rest.headers.get('content-range')).toBe(`bytes 262000-${parts[0]!.length - 1}/${parts[0]!.length}`);
    expect(Buffer.compare(Buffer.from(await rest.arrayBuffer()), Buffer.from(parts[0]!.subarray(262_000)))).toBe(0);
    expect((await get(`/weights/${digest}/0`, 'bytes=99999999-')).status).toBe(416);
    for (const path of ['/', `/weights/${digest}/4`, `/weights/${'0'.repeat(64)}/0`, '/weights/../../etc/passwd']) {
      expect((await get(path)).status, path).toBe(404);
    }
    expect((await fetch(`${source.url}/weights/${digest}/0`, { method: 'POST' })).status).toBe(404);
  });

  it('go on where another source broke off', async () => {
    const { source, parts } = await learner();
    const asked: (string | undefined)[] = [];
    const half = await stranger((request, response) => {
      asked.push(request.headers.range);
      const part = parts[partOf(request.url)]!;
      response.writeHead(200, { 'content-length': part.length });
      response.write(part.subarray(0, part.length >> 1), () => response.destroy());
    });
    let resumed = 0;
    const { url } = source;
    const watched = await stranger(async (request, response) => {
      if (request.headers.range) resumed++;
      const headers: Record<string, string> = request.headers.range ? { range: request.headers.range } : {};
      const found = await fetch(`${url}${request.url}`, { headers });
      response.writeHead(found.status).end(Buffer.from(await found.arrayBuffer()));
    });
    const got = await fetchWeights({ ...source, url: watched }, options({ relays: () => [half] }));
    expect(Buffer.compare(got, weights)).toBe(0);
    expect(asked.length).toBe(4);
    expect(resumed).toBe(4);
  });

  it('do not come from who sends something else, too much, nothing, or hangs: the learner is asked', async () => {
    const { source, parts } = await learner();
    const liars: readonly RequestListener[] = [
      (request, response) => void response.end(Buffer.alloc(parts[partOf(request.url)]!.length, 7)),
      (_, response) => void response.end(Buffer.alloc(9_000_000)),
      (_, response) => void response.end(),
      (_, response) => void response.writeHead(500).end(),
      (_, response) => void response.write('x'), // and no more
      (_, response) => void response.writeHead(302, { location: 'http://127.0.0.1:9/' }).end(),
    ];
    for (const liar of liars) {
      const relay = await stranger(liar);
      expect(Buffer.compare(await fetchWeights(source, options({ relays: () => [relay] })), weights)).toBe(0);
    }
  }, 60_000);

  it('that nobody has now are asked for again by the caller', async () => {
    const { source, server } = await learner();
    server.remove(digest);
    await expect(fetchWeights(source, options())).rejects.toThrow(BrokerAway);
    await expect(fetchWeights(source, options())).rejects.toThrow(
      /part \d of the weights cannot be fetched: 127\.0\.0\.1:\d+ answered 404/,
    );
    const odd = { ...source, parts: source.parts.map(() => '0'.repeat(64)) };
    const again = await learner();
    await expect(fetchWeights({ ...odd, url: again.source.url }, options())).rejects.toThrow(/another digest/);
  });
});

describe('workers', () => {
  it('hand weights on: the learner sends them once, and they outlive it', async () => {
    const { source, server } = await learner();
    const broker = new MemoryServer(systemClock, Rng.fromSeed(1), 1000);
    const announcement = { digest, bytes: weights.length, where: source } as Announcement;
    const relays = ['a', 'b', 'c'].map((name) => {
      const connection = broker.connect();
      const relay = new WeightsRelay(connection, name, LOOPBACK, 1);
      closing.push(() => relay.close());
      return { name, connection, relay };
    });
    const facts = { slots: 1, held: 0, waiting: 0, finished: 0, groupsPerSecond: 0, tokensPerSecond: 0, version: 1 };
    for (const { name, connection, relay } of relays) {
      expect(Buffer.compare((await relay.fetch(announcement))!, weights)).toBe(0);
      connection.report(name, encodeReport({ format: 1, ...facts, relay: relay.url }));
    }
    await expect.poll(() => server.sent).toBe(weights.length + 4 * 16);
    await server.close();
    const late = new WeightsRelay(broker.connect(), 'd', LOOPBACK, 2);
    closing.push(() => late.close());
    for (const { name, connection, relay } of relays) {
      connection.report(name, encodeReport({ format: 1, ...facts, relay: relay.url }));
    }
    expect(Buffer.compare((await late.fetch(announcement))!, weights)).toBe(0);
    // Small ones come from the broker, as ever; and an address with more to it is not followed.
    await relays[0]!.connection.putWeights('small', Uint8Array.of(1, 2));
    expect(await late.fetch({ digest: 'small', bytes: 2 } as Announcement)).toEqual(Uint8Array.of(1, 2));
  }, 60_000);
});

describe('an address to serve at', () => {
  it('is a host, with a port or without', () => {
    expect(parseServedAt('learner.lan')).toEqual({ host: 'learner.lan', port: 0 });
    expect(parseServedAt('10.0.0.7:8080')).toEqual({ host: '10.0.0.7', port: 8080 });
    expect(parseServedAt('[::1]:80')).toEqual({ host: '[::1]', port: 80 });
    for (const text of ['', 'a b', 'host/path', 'user@host', 'host?x']) {
      expect(() => parseServedAt(text), text).toThrow(/expected an address as others reach it/);
    }
  });
});
