/** Monitor of a cluster: the table of workers by their reports, and the warnings. */
import { describe, expect, it } from 'vitest';
import { type ClusterFacts, ClusterMonitor, listWarnings } from '../../src/cluster/cluster-monitor.ts';
import { encodeTicket } from '../../src/cluster/result.ts';
import { TicketConsumer } from '../../src/cluster/ticket-consumer.ts';
import { decodeReport, encodeReport, type WorkerReport, WorkerTable } from '../../src/cluster/worker-report.ts';
import { SimulatedClock } from '../../src/core/clock.ts';
import { Rng } from '../../src/core/rng.ts';
import { Books, playedBy } from '../support/cluster-books.ts';
import { MemoryServer } from '../support/memory-broker.ts';

const rates = { groupsPerSecond: 1, tokensPerSecond: 500 };
const report = (over: Partial<WorkerReport> = {}): WorkerReport => {
  return { format: 1, slots: 8, held: 3, waiting: 1, finished: 5, version: 7, ...rates, ...over };
};

describe('the table of workers', () => {
  it('comes from reports; workers turn silent and gone, and are removed', () => {
    const table = new WorkerTable();
    table.add('b', encodeReport(report()), 0);
    table.add('a', encodeReport(report({ slots: 2 })), 2000);
    table.addRefused('a');
    expect(table.list(2500).map(({ name, state, refused }) => [name, state, refused])).toEqual([
      ['a', 'here', 1],
      ['b', 'here', 0],
    ]);
    expect(table.list(4000).map(({ name, state }) => [name, state])).toEqual([
      ['a', 'here'],
      ['b', 'silent'],
    ]);
    expect(table.list(20_000).map(({ state }) => state)).toEqual(['gone', 'gone']);
    table.add('a', encodeReport(report()), 61_000);
    expect(table.list(61_000).map(({ name, state }) => [name, state])).toEqual([['a', 'here']]);
  });

  it('ignores invalid bytes', () => {
    const table = new WorkerTable();
    const invalid = [
      '',
      '{',
      'null',
      '[]',
      '{"format":2}',
      JSON.stringify({ ...report(), held: -1 }),
      JSON.stringify({ ...report(), stuck: 'a word of its own' }),
      JSON.stringify(report()).replace('"slots":8', '"slots":1e999'),
    ];
    for (const text of [...invalid, JSON.stringify({ ...report(), note: 'x'.repeat(5000) })]) {
      expect(decodeReport(Buffer.from(text)), text.slice(0, 40)).toBeUndefined();
      table.add('a', Buffer.from(text), 0);
    }
    expect(table.list(0)).toEqual([]);
  });
});

describe('a worker', () => {
  it('reports that its results cannot be stored, for as long as that is so', async () => {
    const clock = new SimulatedClock();
    const server = new MemoryServer(clock, Rng.fromSeed(1), 60_000);
    const learner = server.connect();
    const ticket = new Books(1).launch()[0]!;
    await learner.tickets.put('0', encodeTicket(ticket));
    const played: number[] = [];
    const consumer = new TicketConsumer({
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
    consumer.setWeights(0, 'digest');
    consumer.start();
    await pass(100);
    expect(played).toEqual([0]);
    server.room = 0;
    void consumer.storeResult(0, { trajectories: playedBy(ticket, 0) });
    await pass(2000);
    expect(consumer.stuck).toBeUndefined(); // no need to worry anyone yet
    await pass(8000);
    expect(consumer.stuck).toBe('results');
    server.room = 1;
    await pass(3000);
    expect([consumer.stuck, consumer.finished]).toEqual([undefined, 1]);
    consumer.stop();
  });
});

describe('warnings of a cluster', () => {
  const at = { version: 7, maxLag: 2, groups: 24 };
  const facts = (workers: readonly (readonly [string, Partial<WorkerReport>])[], now = 0): ClusterFacts => {
    const monitor = new ClusterMonitor();
    for (const [name, over] of workers) monitor.workers.add(name, encodeReport(report(over)), 0);
    return monitor.facts(now);
  };

  it('stay silent while all is well', () => {
    expect(
      listWarnings(
        facts([
          ['a', {}],
          ['b', {}],
          ['c', {}],
        ]),
        at,
      ),
    ).toEqual([]);
  });

  it('report that more machines are no use once slots exceed the groups that may be out', () => {
    const many = facts([
      ['a', {}],
      ['b', {}],
      ['c', {}],
      ['d', {}],
    ]);
    expect(listWarnings(many, at)).toEqual([
      '4 workers have 32 slots, and learner.maxLag allows 24 groups at once: more machines are no use; raise learner.groupsPerUpdate or maxLag',
    ]);
    expect(listWarnings(facts([['a', { slots: 99 }]]), at)).toEqual([]); // one machine is needed
  });

  it('name workers that are late, silent or refused, a slow server, and that there is no worker', () => {
    expect(
      listWarnings(
        facts([
          ['a', { version: 4 }],
          ['b', {}],
        ]),
        at,
      ),
    ).toEqual(['a: weights lag more than learner.maxLag 2; their decisions come too late']);
    expect(listWarnings(facts([['a', {}]], 5000), at)).toEqual(['a: no report; their tickets go to others']);
    const stuck = facts([
      ['a', { stuck: 'disk' }],
      ['b', { stuck: 'disk' }],
      ['c', { stuck: 'results' }],
    ]);
    expect(listWarnings(stuck, at)).toEqual([
      'a, b: results cannot be stored: the NATS server cannot write: its disk is full, or fails; workers retry',
      'c: results cannot be stored: the NATS server has no room: the learner has to read the results that are stored; workers retry',
    ]);
    expect(listWarnings(facts([]), at)).toEqual(['no worker has reported yet: longplay worker <url> --run <name>']);
    const monitor = new ClusterMonitor();
    monitor.workers.add('a', encodeReport(report()), 0);
    monitor.workers.addRefused('a');
    monitor.load = { queued: 0, held: 0, results: 0, resultBytes: 0, roundTripMs: 150 };
    expect(listWarnings(monitor.facts(0), at)).toEqual([
      'a: results were refused',
      'the NATS server answers in 150 ms: it is busy, or far away',
    ]);
  });
});
