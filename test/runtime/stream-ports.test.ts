/** Ports over a byte stream: messages arrive whole and in order however they are cut, and nothing else does. */
import { Duplex, PassThrough } from 'node:stream';
import { serialize } from 'node:v8';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type StreamPortsOptions, streamPorts } from '../../src/runtime/stream-ports.ts';

interface End {
  readonly stream: Duplex;
  readonly received: (readonly [port: number, value: unknown])[];
  readonly ends: boolean[];
  readonly ports: ReturnType<typeof streamPorts>;
}

/** One end of a stream: `feed` puts in what it receives; what it sends is dropped or goes to `out`. */
function end(
  out: PassThrough = new PassThrough(),
  options: Partial<StreamPortsOptions> = {},
): End & { feed: PassThrough } {
  const feed = new PassThrough();
  const stream = Duplex.from({ readable: feed, writable: out });
  const received: (readonly [number, unknown])[] = [];
  const ends: boolean[] = [];
  const ports = streamPorts(stream, {
    count: 3,
    maxBytes: 1000,
    onEnd: (malformed) => ends.push(malformed),
    ...options,
  });
  for (const [n, port] of ports.ports.entries()) port.on('message', (value: unknown) => received.push([n, value]));
  return { stream, received, ends, ports, feed };
}

function frame(port: number, bytes: Uint8Array, length = bytes.length): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32LE(length, 0);
  head[4] = port;
  return Buffer.concat([head, bytes]);
}

const settled = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
const message = fc.tuple(
  fc.nat(2),
  fc.oneof(fc.string(), fc.integer(), fc.constant(null), fc.array(fc.string(), { maxLength: 3 })),
);

describe('messages', () => {
  it('arrive in order, on their ports, wherever the bytes are cut', async () => {
    let compared = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(message, { maxLength: 8 }),
        fc.array(fc.integer({ min: 1, max: 40 })),
        async (sent, cuts) => {
          const out = new PassThrough();
          const here = end(out);
          for (const [port, value] of sent) here.ports.ports[port]!.postMessage(value);
          await settled();
          const bytes: Buffer = out.read() ?? Buffer.alloc(0);
          const there = end();
          let at = 0;
          for (const length of [...cuts, bytes.length]) {
            if (at < bytes.length) there.feed.write(bytes.subarray(at, at + length));
            at += length;
          }
          await settled();
          expect(there.received).toEqual(sent);
          expect(there.ends).toEqual([]);
          compared += sent.length;
        },
      ),
      { numRuns: 50 },
    );
    expect(compared).toBeGreaterThan(0);
  });

  it('find a listener that the one before them brought', async () => {
    const { ports, feed } = end();
    const [first, second] = ports.ports;
    const late: unknown[] = [];
    first!.on('message', () => second!.on('message', (value: unknown) => late.push(value)));
    feed.write(Buffer.concat([frame(0, serialize('a')), frame(1, serialize('b'))]));
    await settled();
    expect(late).toEqual(['b']);
  });
});

describe('an invalid message', () => {
  it.each([
    ['longer than may be', frame(1, Buffer.alloc(0), 1001)],
    ['for no port', frame(3, serialize(1))],
    ['no value', frame(1, Buffer.alloc(20, 0xff))],
    ['empty', frame(1, Buffer.alloc(0))],
  ])('%s: ends the reading, and is reported once', async (_, bytes) => {
    const { received, ends, feed } = end();
    feed.write(frame(0, serialize('before')));
    feed.write(bytes);
    feed.write(frame(0, serialize('after')));
    await settled();
    expect(received).toEqual([[0, 'before']]);
    expect(ends).toEqual([true]);
  });

  it('differs from an orderly end of the other side', async () => {
    const { ends, feed } = end();
    feed.end();
    await settled();
    expect(ends).toEqual([false]);
  });

  it('nor what follows our own farewell', async () => {
    const { ports, ends, feed } = end();
    await new Promise<void>((resolve) => ports.end(resolve));
    feed.end();
    await settled();
    expect(ends).toEqual([]);
  });
});
