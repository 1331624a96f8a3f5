/**
 * The books under faults, on the twin: dispatcher and consumers as they run, a learner whose weights are a chain of hashes over the
 * results in their order, so that one more, one less, one twice or two exchanged show. Everything may be lost, late,
 * doubled or forgotten; workers and the learner die. Whatever the schedule: the run ends, the identity of the accounts
 * holds after every result, no group is trained twice, no version has two weights, no decision is older than the lag allows.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { REMOVED_AT_ONCE } from '../../src/cluster/ticket-dispatcher.ts';
import { PER_UPDATE, SIZE } from '../support/cluster-books.ts';
import {
  CALM,
  holds,
  ISSUE_AGAIN_MS,
  type Lab,
  RESUME_MS,
  type Schedule,
  type Strike,
} from '../support/cluster-lab.ts';

const schedule: fc.Arbitrary<Schedule> = fc.record({
  seed: fc.nat(0xffffffff),
  maxLag: fc.constantFrom(0, 1, 4),
  faults: fc.record({
    lost: fc.constantFrom(0, 0.05, 0.3),
    lostAnswer: fc.constantFrom(0, 0.05, 0.3),
    delayMs: fc.constantFrom(0, 5, 200),
    duplicate: fc.constantFrom(0, 0.02),
    reorder: fc.constantFrom(0, 0.5),
    again: fc.constantFrom(0, 0.3),
    ghost: fc.constantFrom(0, 0.2),
  }),
  strikes: fc.array(
    fc.record({
      at: fc.nat(6000),
      type: fc.constantFrom(
        'worker' as const,
        'learner' as const,
        'server' as const,
        'forget' as const,
        'stop' as const,
      ),
    }),
    { maxLength: 8 },
  ),
});

/** Fault: the server forgets everything between two calls, unnoticed by its clients; positions begin anew. */
const forgetful: Schedule = {
  seed: 0,
  maxLag: 0,
  faults: { lost: 0, lostAnswer: 0, delayMs: 200, duplicate: 0, reorder: 0, again: 0, ghost: 0 },
  strikes: [{ at: 1000, type: 'forget' }],
};

/** A server that comes back with nothing while tickets are queued, behind a net that sends things twice: what is counted, happens. */
const emptied: Schedule = {
  seed: 0,
  maxLag: 4,
  faults: { lost: 0, lostAnswer: 0, delayMs: 200, duplicate: 0.3, reorder: 0, again: 0, ghost: 0 },
  strikes: [{ at: 200, type: 'forget' }],
};

/** Bar: the faults of one kind, and what must hold beside the books. */
interface Bar {
  readonly title: string;
  readonly strikes: readonly Strike[];
  /** True for seconds that are promised of a net that loses nothing. */
  readonly loses?: false;
  readonly more?: fc.Arbitrary<Partial<Schedule>>;
  readonly also?: (lab: Lab, of: Schedule) => void;
}

const DAY_MS = 86_400_000;
const BARS: readonly Bar[] = [
  { title: 'workers that are killed', strikes: ['worker'] },
  { title: 'a learner that is killed', strikes: ['learner'] },
  {
    title: 'a server that is killed, which has results again within five seconds of its return',
    strikes: ['server'],
    loses: false,
    also: ({ resumedMs }) => {
      for (const ms of resumedMs) expect(ms).toBeLessThanOrEqual(RESUME_MS);
    },
  },
  {
    title: 'a server that comes back with nothing, where every ticket is within ten seconds',
    strikes: ['forget'],
    loses: false,
    also: ({ issuedAgainMs }) => {
      for (const ms of issuedAgainMs) expect(ms).toBeLessThanOrEqual(ISSUE_AGAIN_MS);
    },
  },
  { title: 'workers that are cut off for three leases', strikes: ['stop'] },
  {
    title: 'results that come five times, in any order, some long after',
    strikes: [],
    more: fc.record({ echoes: fc.constant(5) }),
    also: ({ counts }) => expect(counts.duplicates).toBeGreaterThan(0),
  },
  {
    title: 'clocks that are a day off',
    strikes: ['worker', 'server'],
    more: fc.record({ clocksMs: fc.constantFrom([DAY_MS, -DAY_MS], [-DAY_MS, 0], [DAY_MS, DAY_MS]) }),
  },
  {
    title: 'a worker twenty times as slow, a learner that is silent',
    strikes: ['silence'],
    more: fc.record({ slow: fc.constant(20) }),
    also: ({ server }, { maxLag }) => {
      // No memory grows: what waits is bounded by what may be out, and what was taken by what is removed together.
      expect(server.maxWaiting).toBeLessThanOrEqual((maxLag + 2) * PER_UPDATE + REMOVED_AT_ONCE);
    },
  },
  { title: 'disks without room, the learner’s and the server’s', strikes: ['journal-full', 'server-full'] },
];

/** Schedules of one bar: its strikes, on a net that loses and delays now and then. */
function scheduleOf({ strikes, more, loses }: Bar): fc.Arbitrary<Schedule> {
  const lost = loses === false ? fc.constant(0) : fc.constantFrom(0, 0.05);
  const base = fc.record({
    seed: fc.nat(0xffffffff),
    maxLag: fc.constantFrom(0, 1, 4),
    faults: fc.record({
      ...{ lost, lostAnswer: lost, delayMs: fc.constantFrom(0, 5, 50) },
      ...{ duplicate: fc.constant(0), reorder: fc.constantFrom(0, 0.5), again: fc.constant(0), ghost: fc.constant(0) },
    }),
    strikes:
      strikes.length === 0
        ? fc.constant([])
        : fc.array(fc.record({ at: fc.nat(2500), type: fc.constantFrom(...strikes) }), { minLength: 1, maxLength: 8 }),
  });
  return fc.tuple(base, more ?? fc.constant({})).map(([of, rest]) => ({ ...of, ...rest }));
}

describe('tickets and results', () => {
  const long = process.env.LONGPLAY_LONG === '1';
  const runs = long ? 1000 : 20;
  const seeds = long ? 1000 : 6;

  it(`keep the books exact under ${runs} schedules of loss, doubles, delay, another order, deaths and an empty server`, async () => {
    const sums = { duplicates: 0, again: 0, refused: 0, deaths: 0 };
    await fc.assert(
      fc.asyncProperty(schedule, async (of) => {
        const { counts } = await holds(of);
        for (const key of Object.keys(sums) as (keyof typeof sums)[]) sums[key] += counts[key];
      }),
      { numRuns: runs, examples: [[forgetful], [emptied]] },
    );
    console.log(`${runs} schedules: ${JSON.stringify(sums)}`);
    expect(sums.deaths).toBeGreaterThan(10);
    expect(sums.duplicates).toBeGreaterThan(0);
    expect(sums.again).toBeGreaterThan(0);
  }, 3_600_000);

  for (const bar of BARS) {
    it(`${bar.title}: ${seeds} schedules`, async () => {
      const sums = { duplicates: 0, again: 0, deaths: 0, lost: 0 };
      const most = { resumedMs: 0, issuedAgainMs: 0, waiting: 0 };
      await fc.assert(
        fc.asyncProperty(scheduleOf(bar), async (of) => {
          const lab = await holds(of);
          bar.also?.(lab, of);
          for (const key of ['duplicates', 'again', 'deaths'] as const) sums[key] += lab.counts[key];
          sums.lost += lab.lost;
          most.resumedMs = Math.max(most.resumedMs, ...lab.resumedMs);
          most.issuedAgainMs = Math.max(most.issuedAgainMs, ...lab.issuedAgainMs);
          most.waiting = Math.max(most.waiting, lab.server.maxWaiting);
        }),
        { numRuns: seeds },
      );
      console.log(`${bar.title}, ${seeds} schedules: ${JSON.stringify({ ...sums, most })}`);
      if (bar.strikes.length > 0) expect(sums.deaths).toBeGreaterThan(0);
    }, 3_600_000);
  }

  it('workers that come and go every five seconds cost little: updates per simulated second, in five minutes', async () => {
    const forMs = long ? 300_000 : 20_000;
    const strikes = Array.from({ length: forMs / 5000 - 1 }, (_, n) => ({
      at: 5000 * (n + 1),
      type: 'leave' as const,
    }));
    const of: Schedule = { ...CALM, maxLag: 4, forMs, updates: 10_000 };
    const [steady, churn] = [await holds(of), await holds({ ...of, strikes })];
    const share = churn.books.version / steady.books.version;
    console.log(
      `${forMs / 1000} s, ${strikes.length} workers left and joined: ${churn.books.version} updates, ${steady.books.version} without (${share.toFixed(3)}, bar 0.85), ${churn.lost} episodes lost`,
    );
    expect(share).toBeGreaterThanOrEqual(0.85);
  }, 3_600_000);

  const decisions = long ? 100_000 : 600;
  for (const maxLag of [0, 1, 4]) {
    it(`train on ${decisions} decisions under a bound of ${maxLag}, and on none that is older`, async () => {
      const faults = {
        lost: 0.05,
        lostAnswer: 0.05,
        delayMs: 20,
        duplicate: 0.01,
        reorder: 0.5,
        again: 0.3,
        ghost: 0.1,
      };
      const updates = decisions / (PER_UPDATE * SIZE);
      const { books } = await holds({ seed: 7, maxLag, faults, strikes: [], updates });
      const { stale } = books.account;
      console.log(
        `maxLag ${maxLag}: ${books.decisions} decisions trained on, largest lag ${books.maxSeen}, ${stale} episodes stale`,
      );
      expect(books.decisions).toBeGreaterThanOrEqual(decisions);
      expect(books.maxSeen).toBe(maxLag); // and the bound is met
    }, 3_600_000);
  }

  const calm: Schedule = {
    ...CALM,
    seed: 5,
    faults: { ...CALM.faults, delayMs: 5 },
    strikes: [
      { at: 300, type: 'learner' },
      { at: 500, type: 'learner' },
    ],
  };
  it('would be noticed with effects of what is not in the journal', async () => {
    const full = [300, 600, 900].map((at) => ({ at, type: 'journal-full' as const }));
    await expect(holds({ ...calm, strikes: [...full, { at: 1000, type: 'learner' }] }, 'early')).rejects.toThrow();
  }, 60_000);

  for (const breaks of ['order', 'twice'] as const) {
    it(`would be noticed with the journal read ${breaks === 'order' ? 'in another order' : 'with an entry twice'}`, async () => {
      await expect(holds(calm, breaks)).rejects.toThrow();
    }, 60_000);
  }
});
