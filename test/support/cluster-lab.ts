/**
 * A learner and workers on the broker in memory, under a simulated clock: the real dispatcher and consumers, a learner whose weights are a
 * chain of hashes over the results in their order (`cluster-books.ts`), and faults by a seeded schedule.
 */
import { expect } from 'vitest';
import type { ResultLog } from '../../src/cluster/broker.ts';
import type { GroupResult } from '../../src/cluster/result.ts';
import { TicketConsumer } from '../../src/cluster/ticket-consumer.ts';
import { TicketDispatcher } from '../../src/cluster/ticket-dispatcher.ts';
import { type Clock, SimulatedClock } from '../../src/core/clock.ts';
import { Rng } from '../../src/core/rng.ts';
import type { GroupTicket } from '../../src/core/ticket.ts';
import { Books, playedBy, SIZE, VOCABULARY } from './cluster-books.ts';
import { type BrokerFaults, type MemoryBroker, MemoryServer, NO_FAULTS } from './memory-broker.ts';

export const LEASE_MS = 300;
/** Milliseconds that a server is away when it is struck. */
const AWAY_MS = 400;
/** Milliseconds in which a resumed run must have a result again, and the tickets that a server forgot be there again. */
export const RESUME_MS = 5000;
export const ISSUE_AGAIN_MS = 10_000;

/**
 * Strikes: a worker or the learner dies and begins anew; the server is away, and may come back with nothing; a worker is cut off for three
 * leases; the learner is; its disk, or the server, has no room for a while; a worker leaves in order and another joins.
 */
export type Strike =
  | 'worker'
  | 'learner'
  | 'server'
  | 'forget'
  | 'stop'
  | 'silence'
  | 'journal-full'
  | 'server-full'
  | 'leave';

export interface Schedule {
  readonly seed: number;
  readonly maxLag: number;
  readonly faults: BrokerFaults;
  /** Faults between calls, each at a time in ms. */
  readonly strikes: readonly { readonly at: number; readonly type: Strike }[];
  /** Updates that the run makes. */
  readonly updates?: number | undefined;
  /** Milliseconds that the clock of each worker is off. */
  readonly clocksMs?: readonly number[] | undefined;
  /** Times that each result is stored again, at any later time. */
  readonly echoes?: number | undefined;
  /** Factor on the time that the first worker takes for a group. */
  readonly slow?: number | undefined;
  /** Milliseconds that a silence of the learner lasts. */
  readonly silenceMs?: number | undefined;
  /** Milliseconds after which the run is ended, whatever it has made. */
  readonly forMs?: number | undefined;
}

export const CALM: Schedule = { seed: 1, maxLag: 1, faults: NO_FAULTS, strikes: [] };

/** Bug that is planted, for tests of the tests. */
export type Planted = 'order' | 'twice' | 'stale' | 'early' | undefined;

type Entry = GroupResult | 'refused';

/** A run under a schedule; ends when it has made its updates. */
export class Lab {
  readonly clock = new SimulatedClock();
  readonly rng: Rng;
  readonly server: MemoryServer;
  /** The learner's disk. */
  readonly journal: Entry[] = [];
  /** Every digest that was ever announced, by version. */
  readonly announced = new Map<number, Set<string>>();
  books: Books;
  readonly counts = { duplicates: 0, again: 0, refused: 0, deaths: 0 };
  /** Deliveries of results that counted beyond the first, in episodes. */
  lost = 0;
  /** Milliseconds from each return of the server to the next result; and to all that it had forgotten. */
  readonly resumedMs: number[] = [];
  readonly issuedAgainMs: number[] = [];
  error: unknown;
  readonly #schedule: Schedule;
  readonly #updates: number;
  readonly #breaks: Planted;
  #dispatcher: TicketDispatcher | undefined;
  #connection: MemoryBroker | undefined;
  readonly #consumers: TicketConsumer[] = [];
  readonly #connections: MemoryBroker[] = [];
  readonly #loaded = new Map<TicketConsumer, number>();
  #workers = 0;
  /** Clock of the server's last return, until a result has come since. */
  #returnedAt: number | undefined;
  #fullUntil = 0;
  #held: Entry[] = [];

  constructor(of: Schedule, breaks?: Planted) {
    this.#schedule = of;
    this.#updates = of.updates ?? 6;
    this.#breaks = breaks;
    this.rng = Rng.fromSeed(of.seed);
    this.server = new MemoryServer(this.clock, this.rng.split('server'), LEASE_MS);
    this.server.faults = of.faults;
    this.books = new Books(of.maxLag);
  }

  async run(): Promise<void> {
    this.#startLearner();
    for (let n = 0; n < 2; n++) this.#startWorker(n);
    for (const { at, type } of this.#schedule.strikes) this.clock.setTimer(at, () => this.#strike(type));
    const { forMs } = this.#schedule;
    const isOver = () => (forMs === undefined ? this.books.version >= this.#updates : this.clock.now() >= forMs);
    for (let quiet = 0; !isOver() && this.error === undefined; ) {
      for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
      const step = this.clock.untilNext;
      if (step === undefined || ++quiet > 10_000 * this.#updates)
        throw new Error(`it does not end: version ${this.books.version}, ${this.clock.now()} ms`);
      this.clock.advance(step);
    }
    this.#collect();
    this.#dispatcher!.stop();
    for (const consumer of this.#consumers) consumer.stop();
    if (this.error !== undefined) throw this.error;
  }

  /** The learner begins with its journal, as after a kill: the fold is all that it remembers. */
  #startLearner(): void {
    this.books = new Books(this.#schedule.maxLag);
    this.books.launch();
    this.lost = 0;
    this.#held = [];
    const entries = this.#breaks === 'order' ? [...this.journal].reverse() : this.journal;
    for (const entry of entries) this.#apply(entry);
    this.#connection = this.server.connect();
    const dispatcher = new TicketDispatcher({
      broker: this.#connection,
      clock: this.clock,
      vocabSize: VOCABULARY,
      digestOf: (version) => this.books.digests[version],
      onResult: (result) => this.#guarded(dispatcher, () => this.#taken(result)),
      onRefused: () => this.#guarded(dispatcher, () => this.#taken('refused')),
      onError: (thrown) => this.#guarded(dispatcher, () => Promise.reject(thrown)),
    });
    this.#dispatcher = dispatcher;
    dispatcher.dispatch([...this.books.outstanding.values()]);
    dispatcher.start();
    this.#announce();
  }

  #taken(entry: Entry): void {
    const now = this.clock.now();
    if (this.#returnedAt !== undefined && now >= this.#returnedAt) {
      this.resumedMs.push(now - this.#returnedAt);
      this.#returnedAt = undefined;
    }
    // A disk without room holds everything that follows back, in its order.
    if (now < this.#fullUntil && this.#breaks !== 'early') this.#held.push(entry);
    else this.#keep(entry, now < this.#fullUntil);
  }

  #keep(entry: Entry, isUnwritten: boolean): void {
    if (!isUnwritten) this.journal.push(entry);
    if (this.#breaks === 'twice' && entry !== 'refused' && this.journal.length === 5) this.journal.push(entry);
    const { version } = this.books;
    this.#dispatcher!.dispatch(this.#apply(entry));
    if (this.books.version > version) this.#announce();
  }

  #apply(entry: Entry): GroupTicket[] {
    if (entry !== 'refused') this.lost += (entry.delivery - 1) * SIZE;
    applyTo(this.books, entry);
    return this.books.launch();
  }

  #announce(): void {
    const { version, digests } = this.books;
    this.announced.set(version, (this.announced.get(version) ?? new Set()).add(digests[version]!));
    for (const consumer of this.#consumers) this.#sendWeights(consumer);
  }

  /** Weights reach each worker by themselves, some time later, and never an older one after a newer. */
  #sendWeights(consumer: TicketConsumer): void {
    this.clock.setTimer(100 * this.rng.float(), () => {
      const { version, digests } = this.books;
      if (version > (this.#loaded.get(consumer) ?? -1)) {
        this.#loaded.set(consumer, version);
        consumer.setWeights(version, digests[version]!);
      }
    });
  }

  #startWorker(n: number): void {
    const connection = this.server.connect();
    this.#connections[n] = connection;
    const { tickets, results } = connection;
    const { echoes } = this.#schedule;
    const offMs = this.#schedule.clocksMs?.[n] ?? 0;
    const clock: Clock = { now: () => this.clock.now() + offMs, setTimer: (ms, fn) => this.clock.setTimer(ms, fn) };
    const factor = n === 0 ? (this.#schedule.slow ?? 1) : 1;
    const consumer = new TicketConsumer({
      broker: { tickets, results: echoes === undefined ? results : this.#repeatResults(results, echoes) },
      clock,
      worker: `w${this.#workers++}`,
      slots: 3,
      leaseMs: LEASE_MS,
      maxDeliveries: 1000,
      play: (ticket) => {
        const version = this.#loaded.get(consumer)!;
        if (version < ticket.version && this.#breaks !== 'stale') throw new Error('played before its weights came');
        this.clock.setTimer(
          factor * (20 + 200 * this.rng.float()),
          () => void consumer.storeResult(ticket.group, { trajectories: playedBy(ticket, version) }),
        );
      },
      onNotice() {},
      onError: (thrown) => {
        this.error ??= thrown;
      },
    });
    this.#consumers[n] = consumer;
    consumer.start();
    this.#sendWeights(consumer);
  }

  /** Log whose results are stored again and again, some after everything else. */
  #repeatResults(log: ResultLog, echoes: number): ResultLog {
    return {
      ...log,
      put: (name, bytes) => {
        for (let n = 0; n < echoes; n++) {
          this.clock.setTimer(10_000 * this.rng.float() ** 4, () => this.server.store(name, bytes));
        }
        return log.put(name, bytes);
      },
    };
  }

  #strike(type: Strike): void {
    const n = this.rng.int(this.#consumers.length);
    this.counts.deaths++;
    if (type === 'worker') {
      void this.#connections[n]!.close();
      this.#consumers[n]!.stop();
      this.#startWorker(n);
    } else if (type === 'leave') {
      this.#consumers[n]!.drain();
      const left = this.#consumers[n]!;
      // What it holds is given back when its time is over.
      this.clock.setTimer(LEASE_MS, () => left.stop());
      this.#startWorker(n);
    } else if (type === 'learner') {
      this.#collect();
      this.#dispatcher!.stop();
      this.#startLearner();
    } else if (type === 'stop') this.#connections[n]!.cut(3 * LEASE_MS);
    else if (type === 'silence') this.#connection!.cut(this.#schedule.silenceMs ?? 6000);
    else if (type === 'server-full') this.#fullServer();
    else if (type === 'journal-full') this.#fullJournal();
    else this.#restartServer(type === 'forget');
  }

  #restartServer(forget: boolean): void {
    const missing = forget ? [...this.books.outstanding.keys()] : [];
    this.server.restart(AWAY_MS, forget);
    const returns = this.clock.now() + AWAY_MS;
    this.#returnedAt = returns;
    const strikes = this.counts.deaths;
    const look = () => {
      if (this.counts.deaths !== strikes) return; // struck again meanwhile: another look began
      const isThere = (group: number) =>
        !this.books.outstanding.has(group) ||
        [...this.server.tickets.keys()].some((name) => Number.parseInt(name, 10) === group);
      if (missing.every(isThere)) this.issuedAgainMs.push(this.clock.now() - returns);
      else this.clock.setTimer(50, look);
    };
    if (forget) this.clock.setTimer(AWAY_MS, look);
  }

  #fullServer(): void {
    this.server.room = 0;
    this.clock.setTimer(2000, () => {
      this.server.room = Number.POSITIVE_INFINITY;
    });
  }

  #fullJournal(): void {
    this.#fullUntil = this.clock.now() + 1000;
    const before = this.#fullUntil;
    this.clock.setTimer(1000, () => {
      if (this.#fullUntil !== before) return;
      for (const entry of this.#held.splice(0)) this.#keep(entry, false);
    });
  }

  #collect(): void {
    const { duplicates, reissued, refused } = this.#dispatcher!.counts;
    this.counts.duplicates += duplicates;
    this.counts.again += reissued;
    this.counts.refused += refused;
  }

  /** Messages to a learner that was killed have no effect. */
  #guarded(dispatcher: TicketDispatcher, work: () => unknown): void {
    if (dispatcher !== this.#dispatcher) return;
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

/** Runs a schedule and holds its books to be exact. @returns the lab, for what else is to be looked at */
export async function holds(of: Schedule, breaks?: Planted): Promise<Lab> {
  const lab = new Lab(of, breaks);
  await lab.run();
  const { trained, maxSeen, account } = lab.books;
  expect(new Set(trained).size).toBe(trained.length);
  for (const [version, digests] of lab.announced) expect([version, digests.size]).toEqual([version, 1]);
  expect(maxSeen).toBeLessThanOrEqual(of.maxLag);
  expect(account.failed).toBe(lab.lost + lab.journal.filter((entry) => entry === 'refused').length * SIZE);
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
