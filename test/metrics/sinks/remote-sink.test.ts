/** Remote sinks, by laws: each row arrives once, in order, whatever the server and the process do. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/core/clock.ts';
import { Rng } from '../../../src/core/rng.ts';
import { RemoteError } from '../../../src/http/retry.ts';
import { type Entry, Outbox, type OutboxBounds } from '../../../src/metrics/sinks/outbox.ts';
import { openRemoteSink, type SinkTransport } from '../../../src/metrics/sinks/remote-sink.ts';

const root = mkdtempSync(join(tmpdir(), 'longplay-remote-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let folders = 0;
const newFolder = () => join(root, String(folders++));

const KEY = 'a'.repeat(32);
const quick = { lingerMs: 0, minMs: 0, maxMs: 1, attemptMs: 1000, flushMs: 5000 };

/** Stand-in of a server: it keeps what it takes by the entry's own name, as servers keep points by time and step. */
function standIn(act: () => 'take' | 'lose-answer' | 'away' | 'refuse' = () => 'take') {
  const taken = new Map<string, Entry>();
  const order: number[] = [];
  let conflicts = 0;
  const transport: SinkTransport = {
    async send(entries) {
      const next = act();
      if (next === 'away') throw new RemoteError('network', 'nobody is there');
      if (next === 'refuse') throw new RemoteError('status', 'HTTP 400', { status: 400 });
      for (const entry of entries) {
        const name = entry.kind === 'row' ? `row ${entry.number}` : `spans ${entry.at} ${JSON.stringify(entry.spans)}`;
        const before = taken.get(name);
        if (before && JSON.stringify(before) !== JSON.stringify(entry)) conflicts++;
        if (!before && entry.kind === 'row') order.push(entry.row.update!);
        taken.set(name, entry);
      }
      if (next === 'lose-answer') throw new RemoteError('timeout', 'no whole answer');
    },
    spansOf: (trajectories) => trajectories,
    close() {},
  };
  return { transport, order, taken, conflicts: () => conflicts };
}

function open(dir: string, transport: SinkTransport, notices: string[] = [], bounds: OutboxBounds = {}) {
  const outbox = new Outbox(dir, KEY, 1_700_000_000_000, bounds);
  const sink = openRemoteSink({
    name: 'stand-in',
    url: 'http://127.0.0.1:1',
    outbox,
    transport,
    clock: systemClock,
    wallClock: Date.now,
    rng: Rng.fromSeed(1),
    onNotice: (line) => notices.push(line),
    timing: quick,
  });
  return { sink, outbox };
}

const pause = () => new Promise((resolve) => setTimeout(resolve, 1));

describe('a remote sink', () => {
  it('sends each row once and in order, over outages, lost answers, kills and resumes', async () => {
    let compared = 0;
    const step = fc.oneof(
      { weight: 6, arbitrary: fc.constant('row') },
      { weight: 2, arbitrary: fc.constant('spans') },
      { weight: 3, arbitrary: fc.constant('pause') },
      { weight: 1, arbitrary: fc.constant('kill') },
      { weight: 1, arbitrary: fc.constant('resume-back') },
      { weight: 1, arbitrary: fc.constant('stop') },
    );
    const answers = fc.array(fc.constantFrom('take', 'take', 'lose-answer', 'away'), { maxLength: 30, size: 'max' });
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 10, maxLength: 40, size: 'max' }),
        answers,
        fc.constantFrom(200, 4096),
        async (steps, faults, segmentBytes) => {
          const dir = newFolder();
          const left = [...faults] as ('take' | 'lose-answer' | 'away')[];
          let alive = { is: true };
          const server = standIn(() => left.shift() ?? 'take');
          // A killed process sends nothing more, and hears no answers.
          const begin = () => {
            alive = { is: true };
            const mine = alive;
            const guarded: SinkTransport = {
              ...server.transport,
              async send(entries, deadlineMs) {
                if (!mine.is) return new Promise(() => {});
                await server.transport.send(entries, deadlineMs);
                if (!mine.is) return new Promise(() => {});
              },
            };
            return open(dir, guarded, [], { segmentBytes });
          };
          let { sink } = begin();
          let update = 0;
          let most = 0;
          let spans = 0;
          for (const one of steps) {
            if (one === 'row') {
              sink.write({ update: ++update, success: update / 100 });
              most = Math.max(most, update);
            } else if (one === 'spans') sink.episodes!([{ episode: spans++ }] as never, 'train');
            else if (one === 'pause') await pause();
            else if (one === 'stop') {
              await sink.close('stopped');
              ({ sink } = begin());
            } else {
              alive.is = false;
              if (one === 'resume-back') update = Math.floor(update / 2); // the checkpoint is older than the last row
              ({ sink } = begin());
            }
          }
          await sink.close('finished');
          expect(server.order).toEqual(Array.from({ length: most }, (_, i) => i + 1));
          expect(server.conflicts()).toBe(0);
          expect([...server.taken.values()].filter(({ kind }) => kind === 'spans')).toHaveLength(spans);
          expect(readdirSync(dir).filter((name) => name.endsWith('.jsonl')).length).toBeLessThanOrEqual(1);
          compared += most;
        },
      ),
      { numRuns: 40 },
    );
    expect(compared).toBeGreaterThan(100);
  });

  it('reports a server that goes and comes back once each, and goes on with what waited', async () => {
    const notices: string[] = [];
    let isAway = true;
    const server = standIn(() => (isAway ? 'away' : 'take'));
    const { sink, outbox } = open(newFolder(), server.transport, notices);
    for (let update = 1; update <= 5; update++) {
      sink.write({ update });
      await pause();
    }
    expect(outbox.pending).toBe(5);
    expect(notices).toEqual([expect.stringMatching(/is away; rows wait .* and the run goes on: nobody is there/)]);
    isAway = false;
    while (outbox.pending > 0) await pause();
    await sink.close();
    expect(server.order).toEqual([1, 2, 3, 4, 5]);
    expect(notices.slice(1)).toEqual([expect.stringMatching(/is back$/)]);
  });

  it('leaves out what the server refuses for good, and counts it', async () => {
    const notices: string[] = [];
    const server = standIn();
    const picky: SinkTransport = {
      ...server.transport,
      async send(entries, deadlineMs) {
        const isWrong = (entry: Entry) => entry.kind === 'row' && entry.row.update === 3;
        if (entries.some(isWrong)) throw new RemoteError('status', 'HTTP 400 a bad row', { status: 400 });
        await server.transport.send(entries, deadlineMs);
      },
    };
    const { sink } = open(newFolder(), picky, notices);
    for (let update = 1; update <= 9; update++) sink.write({ update });
    await sink.close();
    expect(server.order).toEqual([1, 2, 4, 5, 6, 7, 8, 9]);
    expect(notices).toEqual([
      expect.stringMatching(/refuses an entry, which is left out: HTTP 400 a bad row/),
      expect.stringMatching(/1 entries are lost: 0 had no room, 1 the server refused; metrics.jsonl has every row/),
    ]);
  });

  it('ends within its bound where the server hangs, and says what is left; a resumed run sends it', async () => {
    const notices: string[] = [];
    const dir = newFolder();
    const hanging: SinkTransport = { send: () => new Promise(() => {}), close() {} };
    let giveUp = () => {};
    hanging.send = () =>
      new Promise((_, reject) => {
        giveUp = () => reject(new RemoteError('closed', 'the client was closed'));
      });
    hanging.close = () => giveUp();
    const outbox = new Outbox(dir, KEY, 1);
    const timing = { ...quick, flushMs: 20 };
    const rest = { name: 's', url: 'u', clock: systemClock, wallClock: Date.now, rng: Rng.fromSeed(1) };
    const sink = openRemoteSink({ ...rest, outbox, transport: hanging, onNotice: (l) => notices.push(l), timing });
    sink.write({ update: 1 });
    sink.write({ update: 2 });
    await sink.close('stopped');
    expect(notices).toEqual([expect.stringMatching(/2 entries could not be sent; .* resuming the run sends them/)]);
    const server = standIn();
    await open(dir, server.transport).sink.close();
    expect(server.order).toEqual([1, 2]);
  });

  it('bounds the disk: spans leave room for rows', async () => {
    const notices: string[] = [];
    const server = standIn(() => 'away');
    const { sink, outbox } = open(newFolder(), server.transport, notices, { maxSpanBytes: 1000, maxBytes: 2000 });
    for (let i = 0; i < 100; i++) sink.episodes!([{ text: 'x'.repeat(100) }] as never, 'train');
    expect(outbox.pending).toBeLessThan(10);
    for (let update = 1; update <= 5; update++) sink.write({ update });
    expect(outbox.update).toBe(5);
    for (let update = 6; update <= 100; update++) sink.write({ update });
    expect(outbox.update).toBeLessThan(40);
    expect(notices.filter((line) => /outbox is full/.test(line))).toHaveLength(1);
  });

  it('refuses a state that is none in one line', () => {
    const dir = newFolder();
    new Outbox(dir, KEY, 1);
    writeFileSync(join(dir, 'state.json'), '{"format":1');
    expect(() => new Outbox(dir, KEY, 1)).toThrow(/expected the state of a sink: .*; remove the folder/);
    writeFileSync(join(dir, 'state.json'), '{"format":1,"key":"zz"}');
    expect(() => new Outbox(dir, KEY, 1)).toThrow(/it has another shape; remove the folder/);
  });

  it('passes over lines that are no entries', async () => {
    const dir = newFolder();
    new Outbox(dir, KEY, 1).appendRow(5, { update: 1 });
    const file = join(dir, '00001.jsonl');
    const wrong = [
      '',
      'null',
      '[]',
      '{"kind":"row"}',
      '{"kind":"row","at":1,"number":"x","row":{}}',
      '{"kind":"spans","at":1}',
    ];
    const lines = [...wrong, '{"kind":"row","at":1,"number":2,"row":{"update":"9"}}', '{"at":1,"kind":"other"}'];
    writeFileSync(file, `${lines.join('\n')}\n${readFileSync(file, 'utf8')}${lines.join('\n')}\n`);
    const server = standIn();
    const { sink } = open(dir, server.transport);
    sink.write({ update: 2 });
    await sink.close();
    expect(server.order).toEqual([1, 2]);
    new Outbox(dir, KEY, 1); // the state is a good one
  });

  it('passes over a line that was cut off by a kill', async () => {
    const dir = newFolder();
    const outbox = new Outbox(dir, KEY, 1);
    outbox.appendRow(5, { update: 1 });
    const file = join(dir, '00001.jsonl');
    writeFileSync(file, `${readFileSync(file, 'utf8')}{"kind":"row","at":6,"num`);
    const server = standIn();
    const { sink } = open(dir, server.transport);
    sink.write({ update: 2 });
    await sink.close();
    expect(server.order).toEqual([1, 2]);
  });
});
