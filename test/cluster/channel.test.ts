/** Channels over a switchboard that loses: every byte in order, or an end that says so. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Channel, type ChannelEnd, isOfChannel, WINDOW_BYTES } from '../../src/cluster/channel.ts';
import { decodeHostAnswer, decodeHostCall, decodeHostTake } from '../../src/cluster/host-call.ts';
import { MemoryExchange, type MemorySwitchboard } from '../../src/cluster/memory-switchboard.ts';
import { SimulatedClock } from '../../src/core/clock.ts';
import { Rng } from '../../src/core/rng.ts';

const long = process.env.LONGPLAY_LONG === '1';
const ticks = () => new Promise<void>((resolve) => setImmediate(resolve));

interface End {
  readonly channel: Channel;
  readonly switchboard: MemorySwitchboard;
  readonly ends: ChannelEnd[];
  readonly heard: Buffer[];
  messages: number;
}

/** Two ends of a channel under a simulated clock. */
class Pair {
  readonly clock = new SimulatedClock();
  readonly exchange: MemoryExchange;
  readonly a: End;
  readonly b: End;

  constructor(seed: number, delayMs: number) {
    this.exchange = new MemoryExchange(this.clock, Rng.fromSeed(seed));
    this.exchange.delayMs = delayMs;
    this.a = this.#end('up', 'down');
    this.b = this.#end('down', 'up');
  }

  #end(to: 'up' | 'down', at: 'up' | 'down'): End {
    const switchboard = this.exchange.connect();
    const ends: ChannelEnd[] = [];
    const heard: Buffer[] = [];
    const channel = new Channel({
      clock: this.clock,
      say: (bytes) => switchboard.say({ kind: to, channel: 'c' }, bytes),
      mostBytes: 1000 * 1000,
      onEnd: (end) => ends.push(end),
    });
    const made: End = { channel, switchboard, ends, heard, messages: 0 };
    switchboard.hear({ kind: at, channel: 'c' }, (bytes) => {
      made.messages++;
      channel.heard(bytes);
    });
    channel.stream.on('error', () => {});
    return made;
  }

  read(end: End): void {
    end.channel.stream.on('data', (bytes: Buffer) => end.heard.push(bytes));
  }

  async pass(ms: number): Promise<void> {
    for (let at = 0; at < ms; at += 50) {
      this.clock.advance(50);
      await ticks();
    }
  }
}

/** Schedule in which the word that something was read is lost, and the writer has no room for the rest. */
const lostWord = { seed: 1657811693, delayMs: 0, lost: 0.02, writes: [{ size: 5_000_000, gapMs: 0 }] };

describe('a channel', () => {
  const runs = long ? 1000 : 40;

  it(`delivers every byte in order, or is lost at both ends: ${runs} schedules`, async () => {
    const outcomes = { whole: 0, lost: 0 };
    const one = fc.record({
      seed: fc.nat(),
      delayMs: fc.constantFrom(0, 1, 200),
      lost: fc.constantFrom(0, 0, 0.02, 0.3),
      writes: fc.array(fc.record({ size: fc.constantFrom(0, 1, 5000, 300_000, 5_000_000), gapMs: fc.nat(300) }), {
        maxLength: 6,
      }),
    });
    await fc.assert(
      fc.asyncProperty(one, async ({ seed, delayMs, lost, writes }) => {
        const pair = new Pair(seed, delayMs);
        pair.exchange.lost = lost;
        pair.read(pair.b);
        const sent: Buffer[] = [];
        for (const [n, { size, gapMs }] of writes.entries()) {
          const bytes = Buffer.alloc(size, n + 1);
          sent.push(bytes);
          if (pair.a.channel.stream.writable) pair.a.channel.stream.write(bytes);
          await pair.pass(gapMs);
        }
        pair.a.channel.end({ said: sent.length });
        await pair.pass(12_000);
        const [whole, heard] = [Buffer.concat(sent), Buffer.concat(pair.b.heard)];
        expect(whole.subarray(0, heard.length).equals(heard)).toBe(true); // never a gap, never another order
        expect(pair.b.ends).toHaveLength(1);
        const [end] = pair.b.ends;
        if (end!.type === 'ended') {
          expect(end!.words).toEqual({ said: sent.length });
          expect(heard.length).toBe(whole.length);
          outcomes.whole++;
        } else outcomes.lost++;
        if (lost === 0) expect(end!.type).toBe('ended');
        expect(pair.a.ends.length).toBeLessThanOrEqual(1); // its own end, or it was lost before
        pair.a.channel.close();
      }),
      { numRuns: runs, examples: [[lostWord]] },
    );
    console.log(`channels: ${JSON.stringify(outcomes)}`);
    expect(outcomes.whole).toBeGreaterThan(0);
    expect(outcomes.lost).toBeGreaterThan(0);
  }, 600_000);

  it('holds back an end whose other one does not read, and fills no memory', async () => {
    const pair = new Pair(1, 0);
    for (let n = 0; n < 40; n++) pair.a.channel.stream.write(Buffer.alloc(1_000_000, n));
    await pair.pass(2000);
    expect(pair.b.channel.stream.readableLength).toBeLessThanOrEqual(WINDOW_BYTES + 300_000);
    pair.read(pair.b);
    await pair.pass(2000);
    expect(Buffer.concat(pair.b.heard).length).toBe(40_000_000);
    pair.a.channel.close();
    pair.b.channel.close();
  });

  it('is lost after five signs of its own without one of the other end, and not for being late itself', async () => {
    const pair = new Pair(1, 0);
    await pair.pass(60_000);
    expect(pair.b.ends).toEqual([]);
    pair.a.switchboard.isCut = true;
    await pair.pass(4000);
    expect(pair.b.ends).toEqual([]);
    await pair.pass(2500);
    expect(pair.b.ends).toEqual([{ type: 'lost', why: 'nothing was heard of it for 5 s' }]);
    expect(pair.a.ends).toHaveLength(1);
  });

  it('breaks off at once, whatever was not read', async () => {
    const pair = new Pair(1, 0);
    pair.a.channel.stream.write(Buffer.alloc(5_000_000));
    pair.a.channel.break('enough');
    await pair.pass(100);
    expect(pair.b.ends).toEqual([{ type: 'ended', words: 'enough' }]);
  });

  it('believes nothing: bytes of any kind end it as lost or change nothing, and never throw', () => {
    const seen = new Map<string, number>();
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ minLength: 1, maxLength: 40 }), { maxLength: 8 }), (messages) => {
        const pair = new Pair(1, 0);
        for (const bytes of messages) {
          const [first, ...rest] = bytes;
          pair.b.channel.heard(Uint8Array.of(16 + (first! % 6), ...rest));
          for (const decode of [decodeHostCall, decodeHostAnswer, decodeHostTake]) {
            expect(decode(Uint8Array.of(0, ...rest))).toBeUndefined();
          }
        }
        for (const end of pair.b.ends) {
          const what = end.type === 'lost' ? end.why : 'ended';
          seen.set(what, (seen.get(what) ?? 0) + 1);
        }
        expect(pair.b.ends.length).toBeLessThanOrEqual(1);
        pair.a.channel.close();
        pair.b.channel.close();
      }),
      { numRuns: long ? 20_000 : 500 },
    );
    console.log(`ends of channels by bytes of any kind: ${JSON.stringify(Object.fromEntries(seen))}`);
    expect(seen.size).toBeGreaterThan(3);
    expect(isOfChannel(Uint8Array.of(0, 1))).toBe(false);
  });

  it('a window that is not heeded ends it', () => {
    const pair = new Pair(1, 0);
    for (let n = 0; n < 30; n++) {
      const head = Buffer.alloc(5);
      head[0] = 16;
      head.writeUInt32LE(n, 1);
      pair.b.channel.heard(Buffer.concat([head, Buffer.alloc(200_000)]));
    }
    expect(pair.b.ends).toEqual([{ type: 'lost', why: 'the other end sends more than it was asked for' }]);
    pair.a.channel.close();
  });
});
