/**
 * The books under faults, on the twin: issuer and takers as they run, a learner whose weights are a chain of hashes over the
 * results in their order, so that one more, one less, one twice or two exchanged show. Everything may be lost, late,
 * doubled or forgotten; workers and the learner die. Whatever the schedule: the run ends, the identity of the accounts
 * holds after every result, no group is trained twice, no version has two weights, no decision is older than the lag allows.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TicketIssuer } from '../../src/cluster/issuer.ts';
import { type BrokerFaults, type MemoryBroker, MemoryServer } from '../../src/cluster/memory-broker.ts';
import type { GroupResult } from '../../src/cluster/result.ts';
import { TicketTaker } from '../../src/cluster/taker.ts';
import { SimulatedClock } from '../../src/core/clock.ts';
import { Rng } from '../../src/core/rng.ts';
import type { GroupTicket } from '../../src/core/ticket.ts';
import { Books, PER_UPDATE, playedBy, SIZE, VOCABULARY } from '../support/cluster-books.ts';

const UPDATES = 6;
const LEASE_MS = 300;

interface Schedule {
  readonly seed: number;
  readonly maxLag: number;
  readonly faults: BrokerFaults;
  /** Faults between calls, each at a time in ms. */
  readonly strikes: readonly {
    readonly at: number;
    readonly type: 'worker' | 'learner' | 'server' | 'forget' | 'stop';
  }[];
}

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

type Entry = GroupResult | 'refused';

/** A run under a schedule; ends when it has made its updates. */
class Lab {
  readonly clock = new SimulatedClock();
  readonly rng: Rng;
  readonly #updates: number;
  readonly server: MemoryServer;
  /** The learner's disk: tickets of each launch by the entries before it, and the entries. */
  readonly journal: Entry[] = [];
  /** Every digest that was ever announced, by version. */
  readonly announced = new Map<number, Set<string>>();
  books: Books;
  readonly counts = { duplicates: 0, again: 0, refused: 0, deaths: 0 };
  error: unknown;
  readonly #schedule: Schedule;
  readonly #breaks: 'order' | 'twice' | 'stale' | undefined;
  #issuer: TicketIssuer | undefined;
  #takers: TicketTaker[] = [];
  readonly #connections: MemoryBroker[] = [];

  /** @param breaks a planted bug */
  constructor(of: Schedule, breaks: 'order' | 'twice' | 'stale' | undefined, updates: number) {
    this.#updates = updates;
    this.#schedule = of;
    this.#breaks = breaks;
    this.rng = Rng.fromSeed(of.seed);
    this.server = new MemoryServer(this.clock, this.rng.split('server'), LEASE_MS);
    this.server.faults = of.faults;
    this.books = new Books(of.maxLag);
  }

  async run(): Promise<void> {
    this.#startLearner();
    for (let n = 0; n < 2; n++) this.#startWorker(n);
    for (const { at, type } of this.#schedule.strikes) this.clock.after(at, () => this.#strike(type));
    for (let quiet = 0; this.books.version < this.#updates && this.error === undefined; ) {
      for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
      const step = this.clock.untilNext;
      if (step === undefined || ++quiet > 10_000 * this.#updates)
        throw new Error(`it does not end: version ${this.books.version}, ${this.clock.now()} ms`);
      this.clock.advance(step);
    }
    this.#collect();
    this.#issuer!.stop();
    for (const taker of this.#takers) taker.stop();
    if (this.error !== undefined) throw this.error;
  }

  /** The learner begins with its journal, as after a kill: the fold is all that it remembers. */
  #startLearner(): void {
    this.books = new Books(this.#schedule.maxLag);
    this.books.launch();
    const entries = this.#breaks === 'order' ? [...this.journal].reverse() : this.journal;
    for (const entry of entries) this.#apply(entry);
    const issuer = new TicketIssuer({
      broker: this.server.connect(),
      clock: this.clock,
      vocabSize: VOCABULARY,
      digestOf: (version) => this.books.digests[version],
      onResult: (result) => this.#guarded(issuer, () => this.#taken(result)),
      onRefused: () => this.#guarded(issuer, () => this.#taken('refused')),
      onError: (thrown) => this.#guarded(issuer, () => Promise.reject(thrown)),
    });
    this.#issuer = issuer;
    issuer.issue([...this.books.outstanding.values()]);
    issuer.start();
    this.#announce();
  }

  #taken(entry: Entry): void {
    this.journal.push(entry);
    if (this.#breaks === 'twice' && entry !== 'refused' && this.journal.length === 5) this.journal.push(entry);
    const { version } = this.books;
    this.#issuer!.issue(this.#apply(entry));
    if (this.books.version > version) this.#announce();
  }

  #apply(entry: Entry): GroupTicket[] {
    applyTo(this.books, entry);
    return this.books.launch();
  }

  #announce(): void {
    const { version, digests } = this.books;
    this.announced.set(version, (this.announced.get(version) ?? new Set()).add(digests[version]!));
    for (const taker of this.#takers) this.#tellWeights(taker);
  }

  /** Weights reach each worker by themselves, some time later, and never an older one after a newer. */
  #tellWeights(taker: TicketTaker): void {
    this.clock.after(100 * this.rng.float(), () => {
      const { version, digests } = this.books;
      if (version > (this.#loaded.get(taker) ?? -1)) {
        this.#loaded.set(taker, version);
        taker.loaded(version, digests[version]!);
      }
    });
  }
  readonly #loaded = new Map<TicketTaker, number>();

  #startWorker(n: number): void {
    const connection = this.server.connect();
    this.#connections[n] = connection;
    const taker = new TicketTaker({
      broker: connection,
      clock: this.clock,
      worker: `w${n}`,
      slots: 3,
      leaseMs: LEASE_MS,
      maxDeliveries: 1000,
      play: (ticket) => {
        const version = this.#loaded.get(taker)!;
        if (version < ticket.version && this.#breaks !== 'stale') throw new Error('played before its weights came');
        this.clock.after(
          20 + 200 * this.rng.float(),
          () => void taker.played(ticket.group, { trajectories: playedBy(ticket, version) }),
        );
      },
      onNotice() {},
      onError: (thrown) => {
        this.error ??= thrown;
      },
    });
    this.#takers[n] = taker;
    taker.start();
    this.#tellWeights(taker);
  }

  #strike(type: Schedule['strikes'][number]['type']): void {
    const n = this.rng.int(this.#takers.length);
    this.counts.deaths++;
    if (type === 'worker') {
      void this.#connections[n]!.close();
      this.#takers[n]!.stop();
      this.#startWorker(n);
    } else if (type === 'learner') {
      this.#collect();
      this.#issuer!.stop();
      this.#startLearner();
    } else if (type === 'stop') {
      // Silent for three leases, and back: its tickets went to others meanwhile.
      this.#connections[n]!.cut(3 * LEASE_MS);
    } else this.server.restart(400, type === 'forget');
  }

  #collect(): void {
    const { duplicates, issuedAgain, refused } = this.#issuer!.counts;
    this.counts.duplicates += duplicates;
    this.counts.again += issuedAgain;
    this.counts.refused += refused;
  }

  /** What a learner that was killed still hears has no effect. */
  #guarded(issuer: TicketIssuer, work: () => unknown): void {
    if (issuer !== this.#issuer) return;
    try {
      const result = work();
      if (result instanceof Promise) result.catch((thrown) => (this.error ??= thrown));
    } catch (thrown) {
      this.error ??= thrown;
    }
  }
}

function applyTo(books: Books, entry: Entry): void {
  if (entry === 'refused') books.failed(SIZE);
  else books.take(entry.ticket.group, entry.trajectories, (entry.delivery - 1) * SIZE);
}

async function holds(of: Schedule, breaks?: 'order' | 'twice' | 'stale', updates = UPDATES) {
  const lab = new Lab(of, breaks, updates);
  await lab.run();
  const { trained, maxSeen } = lab.books;
  expect(new Set(trained).size).toBe(trained.length);
  for (const [version, digests] of lab.announced) expect([version, digests.size]).toEqual([version, 1]);
  expect(maxSeen).toBeLessThanOrEqual(of.maxLag);
  // A replay of the journal ends with the same weights.
  const again = new Books(of.maxLag);
  again.launch();
  for (const entry of lab.journal) {
    applyTo(again, entry);
    again.launch();
  }
  expect(again.digests).toEqual(lab.books.digests);
  return lab;
}

/** The server forgets everything between two calls, and nobody sees it go away: positions begin anew. */
const forgetful: Schedule = {
  seed: 0,
  maxLag: 0,
  faults: { lost: 0, lostAnswer: 0, delayMs: 200, duplicate: 0, reorder: 0, again: 0, ghost: 0 },
  strikes: [{ at: 1000, type: 'forget' }],
};

describe('tickets and results', () => {
  const long = process.env.LONGPLAY_LONG === '1';
  const runs = long ? 1000 : 40;

  it(`keep the books exact under ${runs} schedules of loss, doubles, delay, another order, deaths and an empty server`, async () => {
    const sums = { duplicates: 0, again: 0, refused: 0, deaths: 0 };
    await fc.assert(
      fc.asyncProperty(schedule, async (of) => {
        const { counts } = await holds(of);
        for (const key of Object.keys(sums) as (keyof typeof sums)[]) sums[key] += counts[key];
      }),
      { numRuns: runs, examples: [[forgetful]] },
    );
    console.log(`${runs} schedules: ${JSON.stringify(sums)}`);
    expect(sums.deaths).toBeGreaterThan(10);
    expect(sums.duplicates).toBeGreaterThan(0);
    expect(sums.again).toBeGreaterThan(0);
  }, 3_600_000);

  const decisions = long ? 100_000 : 1000;
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
      const of: Schedule = { seed: 7, maxLag, faults, strikes: [] };
      const { books } = await holds(of, undefined, decisions / (PER_UPDATE * SIZE));
      const { stale } = books.account;
      console.log(
        `maxLag ${maxLag}: ${books.decisions} decisions trained on, largest lag ${books.maxSeen}, ${stale} episodes stale`,
      );
      expect(books.decisions).toBeGreaterThanOrEqual(decisions);
      expect(books.maxSeen).toBe(maxLag); // and the bound is met
    }, 3_600_000);
  }

  const calm: Schedule = {
    seed: 5,
    maxLag: 1,
    faults: { lost: 0, lostAnswer: 0, delayMs: 5, duplicate: 0, reorder: 0, again: 0, ghost: 0 },
    strikes: [
      { at: 300, type: 'learner' },
      { at: 500, type: 'learner' },
    ],
  };
  for (const breaks of ['order', 'twice'] as const) {
    it(`would be noticed with the journal read ${breaks === 'order' ? 'in another order' : 'with an entry twice'}`, async () => {
      await expect(holds(calm, breaks)).rejects.toThrow();
    }, 60_000);
  }
});
