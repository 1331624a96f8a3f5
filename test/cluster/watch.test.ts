/** What is seen of a cluster: rows of workers by what they report, and the warnings. */
import { describe, expect, it } from 'vitest';
import { encodeTicket } from '../../src/cluster/result.ts';
import { TicketTaker } from '../../src/cluster/taker.ts';
import { type ClusterFacts, ClusterWatch, clusterWarnings } from '../../src/cluster/watch.ts';
import { decodeReport, encodeReport, type WorkerReport, WorkerRows } from '../../src/cluster/worker-report.ts';
import { SimulatedClock } from '../../src/core/clock.ts';
import { Rng } from '../../src/core/rng.ts';
import { Books, playedBy } from '../support/cluster-books.ts';
import { MemoryServer } from '../support/memory-broker.ts';

const rates = { groupsPerSecond: 1, tokensPerSecond: 500 };
const report = (over: Partial<WorkerReport> = {}): WorkerReport => {
  return { format: 1, slots: 8, held: 3, waiting: 1, finished: 5, version: 7, ...rates, ...over };
};

describe('rows of workers', () => {
  it('come from reports, turn silent and gone, and are forgotten', () => {
    const rows = new WorkerRows();
    rows.heard('b', encodeReport(report()), 0);
    rows.heard('a', encodeReport(report({ slots: 2 })), 2000);
    rows.refused('a');
    expect(rows.rows(2500).map(({ name, state, refused }) => [name, state, refused])).toEqual([
      ['a', 'here', 1],
      ['b', 'here', 0],
    ]);
    expect(rows.rows(4000).map(({ name, state }) => [name, state])).toEqual([
      ['a', 'here'],
      ['b', 'silent'],
    ]);
    expect(rows.rows(20_000).map(({ state }) => state)).toEqual(['gone', 'gone']);
    rows.heard('a', encodeReport(report()), 61_000);
    expect(rows.rows(61_000).map(({ name, state }) => [name, state])).toEqual([['a', 'here']]);
  });

  it('take nothing from bytes that are no report', () => {
    const rows = new WorkerRows();
    const odd = [
      '',
      '{',
      'null',
      '[]',
      '{"format":2}',
      JSON.stringify({ ...report(), held: -1 }),
      JSON.stringify({ ...report(), stuck: 'a word of its own' }),
      JSON.stringify(report()).replace('"slots":8', '"slots":1e999'),
    ];
    for (const text of [...odd, JSON.stringify({ ...report(), note: 'x'.repeat(5000) })]) {
      expect(decodeReport(Buffer.from(text)), text.slice(0, 40)).toBeUndefined();
      rows.heard('a', Buffer.from(text), 0);
    }
    expect(rows.rows(0)).toEqual([]);
  });
});

describe('a worker', () => {
  it('says so while its results find no room, and no longer', async () => {
    const clock = new SimulatedClock();
    const server = new MemoryServer(clock, Rng.fromSeed(1), 60_000);
    const learner = server.connect();
    const ticket = new Books(1).launch()[0]!;
    await learner.tickets.put('0', encodeTicket(ticket));
    const played: number[] = [];
    const taker = new TicketTaker({
      ...{ broker: server.connect(), clock, worker: 'w', slots: 1, leaseMs: 60_000, maxDeliveries: 5 },
      play: ({ group }) => played.push(group),
      onNotice() {},
      onError(thrown) {
        throw thrown;
      },
    });
    const pass = async (ms: number) => {
      for (const end = clock.now() + ms; clock.now() < end; ) {
        for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
        clock.advance(50);
      }
    };
    taker.loaded(0, 'digest');
    taker.start();
    await pass(100);
    expect(played).toEqual([0]);
    server.room = 0;
    void taker.played(0, { trajectories: playedBy(ticket, 0) });
    await pass(2000);
    expect(taker.stuck).toBeUndefined(); // no need to worry anyone yet
    await pass(8000);
    expect(taker.stuck).toBe('results');
    server.room = 1;
    await pass(3000);
    expect([taker.stuck, taker.finished]).toEqual([undefined, 1]);
    taker.stop();
  });
});

describe('warnings of a cluster', () => {
  const at = { version: 7, maxLag: 2, groups: 24 };
  const facts = (workers: readonly (readonly [string, Partial<WorkerReport>])[], now = 0): ClusterFacts => {
    const watch = new ClusterWatch();
    for (const [name, over] of workers) watch.workers.heard(name, encodeReport(report(over)), 0);
    return watch.facts(now);
  };

  it('stay silent while all is well', () => {
    expect(
      clusterWarnings(
        facts([
          ['a', {}],
          ['b', {}],
          ['c', {}],
        ]),
        at,
      ),
    ).toEqual([]);
  });

  it('say that more machines buy nothing once slots exceed the groups that may be out', () => {
    const many = facts([
      ['a', {}],
      ['b', {}],
      ['c', {}],
      ['d', {}],
    ]);
    expect(clusterWarnings(many, at)).toEqual([
      '4 workers have 32 slots, and learner.maxLag lets 24 groups be out: more machines buy nothing; raise learner.groupsPerUpdate or maxLag',
    ]);
    expect(clusterWarnings(facts([['a', { slots: 99 }]]), at)).toEqual([]); // one machine is needed
  });

  it('name workers that are late, silent or cannot be believed, a slow server, and that nobody is there', () => {
    expect(
      clusterWarnings(
        facts([
          ['a', { version: 4 }],
          ['b', {}],
        ]),
        at,
      ),
    ).toEqual(['a: weights lag more than learner.maxLag 2; what they decide comes too late']);
    expect(clusterWarnings(facts([['a', {}]], 5000), at)).toEqual(['a: nothing heard; what they held goes to others']);
    const stuck = facts([
      ['a', { stuck: 'disk' }],
      ['b', { stuck: 'disk' }],
      ['c', { stuck: 'results' }],
    ]);
    expect(clusterWarnings(stuck, at)).toEqual([
      'a, b: results cannot be stored: the NATS server cannot write: its disk is full, or fails; workers retry',
      'c: results cannot be stored: the NATS server has no room: the learner has to read the results that are stored; workers retry',
    ]);
    expect(clusterWarnings(facts([]), at)).toEqual(['no worker has reported yet: longplay worker <url> --run <name>']);
    const watch = new ClusterWatch();
    watch.workers.heard('a', encodeReport(report()), 0);
    watch.workers.refused('a');
    watch.load = { queued: 0, held: 0, results: 0, resultBytes: 0, roundTripMs: 150 };
    expect(clusterWarnings(watch.facts(0), at)).toEqual([
      'a: results that cannot be believed',
      'the NATS server answers in 150 ms: it is busy, or far away',
    ]);
  });
});
