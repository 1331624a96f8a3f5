/** Laws of every broker. */
import { describe, expect, it } from 'vitest';
import { type Broker, BrokerConflict } from '../../src/cluster/broker.ts';

export interface BrokerLab {
  /** Another connection to the same run. */
  readonly connect: () => Promise<Broker>;
  /** Milliseconds after which a ticket that nobody works on goes to others. */
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
        await learner.putTicket('1', bytes('one'));
        await learner.putTicket('1', bytes('another'));
        await learner.putTicket('2', bytes('two'));
        expect([...(await learner.tickets())].sort()).toEqual(['1', '2']);
        const [first] = await worker.fetchTickets(1, 1000);
        expect([first!.name, text(first!.bytes), first!.delivery]).toEqual(['1', 'one', 1]);
        const rest = await worker.fetchTickets(5, 1000);
        expect(rest.map((one) => one.name)).toEqual(['2']);
        expect(await worker.fetchTickets(5, 50)).toEqual([]);
        first!.done();
        rest[0]!.done();
        await expect.poll(async () => (await learner.tickets()).size).toBe(0);
      }),
    );

    it(
      'a ticket whose worker falls silent goes to another, with a higher count; one that is worked on does not',
      with2(async (learner, worker, { leaseMs, sleep, connect }) => {
        const other = await connect();
        await learner.putTicket('7', bytes('seven'));
        const [held] = await worker.fetchTickets(1, 1000);
        for (let beat = 0; beat < 6; beat++) {
          await sleep(leaseMs / 3);
          held!.working();
        }
        expect(await other.fetchTickets(1, 10)).toEqual([]);
        await sleep(leaseMs * 1.5);
        const [again] = await other.fetchTickets(1, 1000);
        expect([again!.name, again!.delivery]).toEqual(['7', 2]);
        again!.giveBack();
        const [third] = await worker.fetchTickets(1, 2000);
        expect(third!.delivery).toBe(3);
        third!.done();
        await other.close();
      }),
    );

    it(
      'results come in order, one of each name, until they are removed',
      with2(async (learner, worker, { connect }) => {
        for (const n of [1, 2, 3, 2]) await worker.putResult(String(n), bytes(`result ${n}`));
        const taken = await learner.takeResults(1000);
        expect(taken.map((one) => `${one.name}: ${text(one.bytes)}`)).toEqual([
          '1: result 1',
          '2: result 2',
          '3: result 3',
        ]);
        await worker.putResult('4', bytes('result 4'));
        expect((await learner.takeResults(1000)).map((one) => one.name)).toEqual(['4']);
        await learner.removeResults(taken[1]!.position);
        const other = await connect(); // a learner that begins anew finds what is left
        expect((await other.takeResults(1000)).map((one) => one.name)).toEqual(['3', '4']);
        await other.close();
      }),
    );

    it(
      'one announcement follows another, and who names the wrong one is refused',
      with2(async (learner, worker) => {
        let hints = 0;
        const end = worker.onAnnounced(() => hints++);
        expect(await learner.announced()).toBeUndefined();
        const first = await learner.announce(bytes('a'), 0);
        await expect(worker.announce(bytes('b'), 0)).rejects.toThrow(BrokerConflict);
        const second = await learner.announce(bytes('c'), first);
        await expect(worker.announce(bytes('d'), first)).rejects.toThrow(BrokerConflict);
        const now = await worker.announced();
        expect([text(now!.bytes), now!.revision]).toEqual(['c', second]);
        await expect.poll(() => hints).toBeGreaterThanOrEqual(2);
        end();
      }),
    );

    it(
      'weights come back whole, however large, or not at all',
      with2(async (learner, worker) => {
        const large = Uint8Array.from({ length: 1_300_000 }, (_, i) => (i * 31) & 255);
        await learner.putWeights('v1', large);
        expect(Buffer.compare((await worker.weights('v1', large.length))!, large)).toBe(0);
        expect(await worker.weights('v1', large.length + 600_000)).toBeUndefined();
        await learner.removeWeights('v1');
        expect(await worker.weights('v1', large.length)).toBeUndefined();
      }),
    );

    it(
      'what was stored outlives a restart of the server, and connections come back',
      with2(async (learner, worker, { restart }) => {
        await learner.putTicket('1', bytes('one'));
        await worker.putResult('5', bytes('five'));
        const revision = await learner.announce(bytes('a'), 0);
        await restart();
        const again = async <T>(say: () => Promise<T>): Promise<T> => {
          for (let n = 0; ; n++) {
            try {
              return await say();
            } catch (thrown) {
              if (n === 20) throw thrown;
              await new Promise((resolve) => setTimeout(resolve, 100));
            }
          }
        };
        expect([...(await again(() => learner.tickets()))]).toEqual(['1']);
        expect((await again(() => learner.takeResults(1000))).map((one) => one.name)).toEqual(['5']);
        expect((await again(() => worker.fetchTickets(1, 1000))).map((one) => one.name)).toEqual(['1']);
        expect((await again(() => worker.announced()))!.revision).toBe(revision);
      }),
      30_000,
    );
  });
}
