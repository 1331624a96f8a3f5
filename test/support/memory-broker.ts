/**
 * Twin of a broker in memory, for tests: it keeps the same laws, and breaks on purpose. Calls are lost before or after they
 * had their effect, take their time, come in another order; tickets are delivered twice; the server goes away, comes
 * back, and forgets. All of it follows from a seed and the clock it is given.
 */

import {
  type Announced,
  type Broker,
  BrokerAway,
  BrokerConflict,
  type BrokerLoad,
  type FetchedTicket,
  type StoredResult,
} from '../../src/cluster/broker.ts';
import type { Clock } from '../../src/core/clock.ts';
import type { Rng } from '../../src/core/rng.ts';

/** Faults, as probabilities of one call, in [0, 1]. */
export interface BrokerFaults {
  /** Call is lost before it had an effect. */
  readonly lost: number;
  /** Answer is lost after the call had its effect. */
  readonly lostAnswer: number;
  /** Milliseconds that a call takes at most, either way. */
  readonly delayMs: number;
  /** Ticket that is leased is delivered to another worker all the same. */
  readonly duplicate: number;
  /** Results taken together come in another order. */
  readonly reorder: number;
  /** Result that was taken comes again. */
  readonly again: number;
  /** Ticket that was done is queued again. */
  readonly ghost: number;
}

/** Faults of a broker that works. */
export const NO_FAULTS: BrokerFaults = {
  lost: 0,
  lostAnswer: 0,
  delayMs: 0,
  duplicate: 0,
  reorder: 0,
  again: 0,
  ghost: 0,
};

interface Queued {
  readonly bytes: Uint8Array;
  delivery: number;
  /** Clock until which a worker holds it. */
  until: number;
}

/** Milliseconds between two looks at an empty queue. */
const LOOK_MS = 5;

export class MemoryServer {
  readonly clock: Clock;
  readonly rng: Rng;
  readonly leaseMs: number;
  faults: BrokerFaults = NO_FAULTS;
  tickets = new Map<string, Queued>();
  results: StoredResult[] = [];
  position = 0;
  announcement: Announced | undefined;
  weights = new Map<string, Uint8Array>();
  readonly announcedTo = new Set<() => void>();
  readonly reportedTo = new Set<(name: string, bytes: Uint8Array) => void>();
  /** Clock until which it cannot be reached. */
  awayUntil = 0;
  /** Results that it has room for; workers wait beyond that. */
  room = Number.POSITIVE_INFINITY;
  /** Most results that ever waited. */
  mostWaiting = 0;

  constructor(clock: Clock, rng: Rng, leaseMs: number) {
    this.clock = clock;
    this.rng = rng;
    this.leaseMs = leaseMs;
  }

  connect(): MemoryBroker {
    return new MemoryBroker(this);
  }

  /** Goes away for `ms`. @param forget true to come back with nothing */
  restart(ms: number, forget: boolean): void {
    this.awayUntil = this.clock.now() + ms;
    if (!forget) return;
    this.tickets.clear();
    this.results = [];
    this.position = 0;
    this.announcement = undefined;
    this.weights.clear();
  }

  /** Stores a result, also one that is stored already: what a network that doubles messages would do. */
  store(name: string, bytes: Uint8Array): void {
    this.results.push({ position: ++this.position, name, bytes: bytes.slice() });
    this.mostWaiting = Math.max(this.mostWaiting, this.results.length);
  }

  chance(probability: number): boolean {
    return probability > 0 && this.rng.float() < probability;
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.clock.after(ms, resolve));
  }
}

/** Connection to the twin; `cut` takes it from the net for a while, `close` for good, as a death does. */
export class MemoryBroker implements Broker {
  readonly #server: MemoryServer;
  #taken = 0;
  #closed = false;
  #cutUntil = 0;

  constructor(server: MemoryServer) {
    this.#server = server;
  }

  prepare(): Promise<void> {
    return this.#call(() => {});
  }

  putTicket(name: string, bytes: Uint8Array): Promise<void> {
    return this.#call(() => {
      const { tickets } = this.#server;
      if (!tickets.has(name)) tickets.set(name, { bytes: bytes.slice(), delivery: 0, until: 0 });
    });
  }

  tickets(): Promise<ReadonlySet<string>> {
    return this.#call(() => new Set(this.#server.tickets.keys()));
  }

  removeTickets(): Promise<void> {
    return this.#call(() => this.#server.tickets.clear());
  }

  fetchTickets(most: number, waitMs: number): Promise<readonly FetchedTicket[]> {
    return this.#call(() => this.#first(waitMs, () => this.#fetch(most)));
  }

  putResult(name: string, bytes: Uint8Array): Promise<void> {
    return this.#call(() => {
      const server = this.#server;
      if (server.results.some((one) => one.name === name)) return;
      if (server.results.length >= server.room) throw new BrokerAway('the server has no room', { reason: 'results' });
      server.store(name, bytes);
    });
  }

  async takeResults(waitMs: number): Promise<readonly StoredResult[]> {
    let found: readonly StoredResult[] = [];
    try {
      found = await this.#call(() => this.#first(waitMs, () => this.#take()));
      return found;
    } finally {
      // As NATS, with what is left: a server that was restarted or forgot everything gives positions again.
      if (found.length === 0) this.#taken = 0;
    }
  }

  removeResults(position: number): Promise<void> {
    return this.#call(() => {
      this.#server.results = this.#server.results.filter((one) => one.position > position);
    });
  }

  announced(): Promise<Announced | undefined> {
    return this.#call(() => this.#server.announcement);
  }

  announce(bytes: Uint8Array, revision: number): Promise<number> {
    return this.#call(() => {
      const server = this.#server;
      const now = server.announcement?.revision ?? 0;
      if (now !== revision) throw new BrokerConflict(`announcement ${now}, expected ${revision}`);
      server.announcement = { bytes: bytes.slice(), revision: now + 1 };
      for (const heard of server.announcedTo) if (!server.chance(server.faults.lost)) heard();
      return now + 1;
    });
  }

  onAnnounced(heard: () => void): () => void {
    this.#server.announcedTo.add(heard);
    return () => this.#server.announcedTo.delete(heard);
  }

  putWeights(name: string, bytes: Uint8Array): Promise<void> {
    return this.#call(() => void this.#server.weights.set(name, bytes.slice()));
  }

  weights(name: string, size: number): Promise<Uint8Array | undefined> {
    return this.#call(() => {
      const bytes = this.#server.weights.get(name);
      return bytes?.length === size ? bytes : undefined;
    });
  }

  removeWeights(name: string): Promise<void> {
    return this.#call(() => void this.#server.weights.delete(name));
  }

  report(name: string, bytes: Uint8Array): void {
    const server = this.#server;
    if (this.#isCut || server.chance(server.faults.lost)) return;
    for (const heard of server.reportedTo) heard(name, bytes);
  }

  onReport(heard: (name: string, bytes: Uint8Array) => void): () => void {
    this.#server.reportedTo.add(heard);
    return () => this.#server.reportedTo.delete(heard);
  }

  load(): Promise<BrokerLoad> {
    return this.#call(() => {
      const { tickets, results, clock } = this.#server;
      const held = [...tickets.values()].filter(({ until }) => until > clock.now()).length;
      const resultBytes = results.reduce((sum, { bytes }) => sum + bytes.length, 0);
      return { queued: tickets.size - held, held, results: results.length, resultBytes, roundTripMs: 0 };
    });
  }

  readonly mostResultBytes = 8 * 2 ** 20;

  async close(): Promise<void> {
    this.#closed = true;
  }

  cut(ms: number): void {
    this.#cutUntil = this.#server.clock.now() + ms;
  }

  get #isCut(): boolean {
    const now = this.#server.clock.now();
    return this.#closed || now < this.#cutUntil || now < this.#server.awayUntil;
  }

  async #call<T>(work: () => T | Promise<T>): Promise<T> {
    const server = this.#server;
    const { faults } = server;
    const late = async () => {
      if (faults.delayMs > 0) await server.sleep(faults.delayMs * server.rng.float());
    };
    await late();
    if (this.#isCut || server.chance(faults.lost)) throw new BrokerAway('the server is away');
    const answer = await work();
    await late();
    if (server.chance(faults.lostAnswer)) throw new BrokerAway('the answer was lost');
    return answer;
  }

  /** First look that finds something, within `waitMs`. */
  async #first<T>(waitMs: number, look: () => readonly T[]): Promise<readonly T[]> {
    const { clock } = this.#server;
    const end = clock.now() + waitMs;
    for (;;) {
      const found = look();
      if (found.length > 0 || clock.now() >= end || this.#closed) return found;
      await this.#server.sleep(LOOK_MS);
      if (this.#isCut) throw new BrokerAway('the server went away');
    }
  }

  #fetch(most: number): readonly FetchedTicket[] {
    const server = this.#server;
    const now = server.clock.now();
    const free = [...server.tickets].filter(([, { until }]) => until <= now || server.chance(server.faults.duplicate));
    return free.slice(0, most).map(([name, ticket]) => {
      ticket.delivery++;
      ticket.until = now + server.leaseMs;
      const mine = ticket.delivery;
      const held = () => server.tickets.get(name) === ticket && ticket.delivery === mine;
      return {
        name,
        bytes: ticket.bytes,
        delivery: mine,
        working: () => {
          if (!this.#isCut && held()) ticket.until = server.clock.now() + server.leaseMs;
        },
        done: () => {
          if (this.#isCut) return;
          if (server.chance(server.faults.ghost)) ticket.until = 0;
          else if (server.tickets.get(name) === ticket) server.tickets.delete(name);
        },
        giveBack: () => {
          if (!this.#isCut && held()) ticket.until = 0;
        },
      };
    });
  }

  #take(): readonly StoredResult[] {
    const server = this.#server;
    const { faults } = server;
    const found = server.results.filter(({ position }) => position > this.#taken || server.chance(faults.again));
    for (const { position } of found) this.#taken = Math.max(this.#taken, position);
    return server.chance(faults.reorder) ? server.rng.shuffle(found) : found;
  }
}
