/** Laws of every broker. */
import { describe, expect, it } from 'vitest';
import { type Broker, BrokerConflict, measureLoad } from '../../src/cluster/broker.ts';

export interface BrokerLab {
  /** Another connection to the same run. */
  readonly connect: () => Promise<Broker>;
  /** Milliseconds after which a ticket that is not renewed goes to others. */
  readonly leaseMs: number;
  readonly sleep: (ms: number) => Promise<void>;
  /** Ends the server and brings it back with what it had stored. */
  readonly restart: () => Promise<void>;
  readonly close: () => Promise<void>;
}

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (of: Uint8Array) => new TextDecoder().decode(of);

export function testBrokerLaws(name: string, open: () => Promise<BrokerLab>): void {
  const with2 = (use: (learner: Broker, worker: Broker, lab: BrokerLab) => Promise<void>) => async () => {
    const lab = await open();
    try {
      const [learner, worker] = [await lab.connect(), await lab.connect()];
      await learner.prepare();
      await learner.prepare(); // twice does no harm
      await use(learner, worker, lab);
      await learner.close();
      await worker.close();
    } finally {
      await lab.close();
    }
  };

  describe(`${name} keeps the laws of every broker:`, () => {
    it(
      'a ticket is fetched by one worker, and gone once it is done',
      with2(async (learner, worker) => {
        await learner.tickets.put('1', bytes('one'));
        await learner.tickets.put('1', bytes('another'));
        await learner.tickets.put('2', bytes('two'));
        expect([...(await learner.tickets.list())].sort()).toEqual(['1', '2']);
        const [first] = await worker.tickets.fetch(1, 1000);
        expect([first!.name, text(first!.bytes), first!.delivery]).toEqual(['1', 'one', 1]);
        const rest = await worker.tickets.fetch(5, 1000);
        expect(rest.map((one) => one.name)).toEqual(['2']);
        expect(await worker.tickets.fetch(5, 50)).toEqual([]);
        first!.ack();
        rest[0]!.ack();
        await expect.poll(async () => (await learner.tickets.list()).size).toBe(0);
      }),
    );

    it(
      'a ticket whose worker falls silent goes to another, with a higher count; one that is worked on does not',
      with2(async (learner, worker, { leaseMs, sleep, connect }) => {
        const other = await connect();
        await learner.tickets.put('7', bytes('seven'));
        const [held] = await worker.tickets.fetch(1, 1000);
        for (let beat = 0; beat < 6; beat++) {
          await sleep(leaseMs / 3);
          held!.extendLease();
        }
        expect(await other.tickets.fetch(1, 10)).toEqual([]);
        await sleep(leaseMs * 1.5);
        const [again] = await other.tickets.fetch(1, 1000);
        expect([again!.name, again!.delivery]).toEqual(['7', 2]);
        again!.nack();
        const [third] = await worker.tickets.fetch(1, 2000);
        expect(third!.delivery).toBe(3);
        third!.ack();
        await other.close();
      }),
    );

    it(
      'results come in order, one of each name, until they are removed',
      with2(async (learner, worker, { connect }) => {
        for (const n of [1, 2, 3, 2]) await worker.results.put(String(n), bytes(`result ${n}`));
        const taken = await learner.results.read(1000);
        expect(taken.map((one) => `${one.name}: ${text(one.bytes)}`)).toEqual([
          '1: result 1',
          '2: result 2',
          '3: result 3',
        ]);
        await worker.results.put('4', bytes('result 4'));
        expect((await learner.results.read(1000)).map((one) => one.name)).toEqual(['4']);
        await learner.results.removeUpTo(taken[1]!.position);
        const other = await connect(); // a learner that begins anew finds what is left
        expect((await other.results.read(1000)).map((one) => one.name)).toEqual(['3', '4']);
        await other.close();
      }),
    );

    it(
      'counts what is queued, held and stored',
      with2(async (learner, worker) => {
        expect(learner.results.maxResultBytes).toBeGreaterThanOrEqual(2 ** 20);
        for (const n of [1, 2, 3]) await learner.tickets.put(String(n), bytes('ticket'));
        await worker.tickets.fetch(1, 1000);
        await worker.results.put('0', bytes('result'));
        await expect.poll(() => learner.tickets.count()).toEqual({ queued: 2, held: 1 });
        const stored = await learner.results.count();
        expect(stored.results).toBe(1);
        expect(stored.bytes).toBeGreaterThanOrEqual(6);
        const load = await measureLoad(learner);
        expect(load).toMatchObject({ queued: 2, held: 1, results: 1, resultBytes: stored.bytes });
        await learner.tickets.clear();
        expect(await learner.tickets.count()).toMatchObject({ queued: 0 });
        expect((await learner.tickets.list()).size).toBe(0);
      }),
    );

    it(
      'one announcement follows another, and who names the wrong one is refused',
      with2(async (learner, worker) => {
        let hints = 0;
        const end = worker.weights.onAnnouncement(() => hints++);
        expect(await learner.weights.readAnnouncement()).toBeUndefined();
        const first = await learner.weights.announce(bytes('a'), 0);
        await expect(worker.weights.announce(bytes('b'), 0)).rejects.toThrow(BrokerConflict);
        const second = await learner.weights.announce(bytes('c'), first);
        await expect(worker.weights.announce(bytes('d'), first)).rejects.toThrow(BrokerConflict);
        const now = await worker.weights.readAnnouncement();
        expect([text(now!.bytes), now!.revision]).toEqual(['c', second]);
        await expect.poll(() => hints).toBeGreaterThanOrEqual(2);
        end();
      }),
    );

    it(
      'weights come back whole, however large, or not at all',
      with2(async (learner, worker) => {
        const large = Uint8Array.from({ length: 1_300_000 }, (_, i) => (i * 31) & 255);
        await learner.weights.put('v1', large);
        expect(Buffer.compare((await worker.weights.get('v1', large.length))!, large)).toBe(0);
        expect(await worker.weights.get('v1', large.length + 600_000)).toBeUndefined();
        await learner.weights.remove('v1');
        expect(await worker.weights.get('v1', large.length)).toBeUndefined();
      }),
    );

    it(
      'what was stored outlives a restart of the server, and connections come back',
      with2(async (learner, worker, { restart }) => {
        await learner.tickets.put('1', bytes('one'));
        await worker.results.put('5', bytes('five'));
        const revision = await learner.weights.announce(bytes('a'), 0);
        await restart();
        const again = async <T>(call: () => Promise<T>): Promise<T> => {
          for (let n = 0; ; n++) {
            try {
              return await call();
            } catch (thrown) {
              if (n === 20) throw thrown;
              await new Promise((resolve) => setTimeout(resolve, 100));
            }
          }
        };
        expect([...(await again(() => learner.tickets.list()))]).toEqual(['1']);
        expect((await again(() => learner.results.read(1000))).map((one) => one.name)).toEqual(['5']);
        expect((await again(() => worker.tickets.fetch(1, 1000))).map((one) => one.name)).toEqual(['1']);
        expect((await again(() => worker.weights.readAnnouncement()))!.revision).toBe(revision);
      }),
      30_000,
    );
  });
}
