/**
 * Broker in memory: keeps the laws of every broker, and fails on purpose. Calls are lost before or after they had their
 * effect, take their time, or are reordered; tickets are delivered twice; the server goes away, comes back, and forgets.
 * All of it follows from a seed and a clock.
 */

import {
  type Broker,
  BrokerConflict,
  BrokerUnavailable,
  type FetchedTicket,
  type ResultLog,
  type StoredAnnouncement,
  type StoredResult,
  type TicketQueue,
  type WeightsStore,
  type WorkerReports,
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
  /** Leased ticket is delivered to another worker too. */
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
const POLL_MS = 5;

export class MemoryServer {
  readonly clock: Clock;
  readonly rng: Rng;
  readonly leaseMs: number;
  faults: BrokerFaults = NO_FAULTS;
  tickets = new Map<string, Queued>();
  results: StoredResult[] = [];
  position = 0;
  announcement: StoredAnnouncement | undefined;
  weights = new Map<string, Uint8Array>();
  readonly announcementListeners = new Set<() => void>();
  readonly reportListeners = new Set<(name: string, bytes: Uint8Array) => void>();
  /** Clock until which it cannot be reached. */
  downUntil = 0;
  /** Results that it has room for; workers wait beyond that. */
  room = Number.POSITIVE_INFINITY;
  /** Largest number of results that ever waited. */
  maxWaiting = 0;

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
    this.downUntil = this.clock.now() + ms;
    if (!forget) return;
    this.tickets.clear();
    this.results = [];
    this.position = 0;
    this.announcement = undefined;
    this.weights.clear();
  }

  /** Stores a result even where it is stored already, as a network that doubles messages would. */
  store(name: string, bytes: Uint8Array): void {
    this.results.push({ position: ++this.position, name, bytes: bytes.slice() });
    this.maxWaiting = Math.max(this.maxWaiting, this.results.length);
  }

  chance(probability: number): boolean {
    return probability > 0 && this.rng.float() < probability;
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.clock.setTimer(ms, resolve));
  }
}

/** Connection to the server; `cut` disconnects it for a while, `close` for good, as a death does. */
export class MemoryBroker implements Broker {
  readonly tickets: TicketQueue;
  readonly results: ResultLog;
  readonly weights: WeightsStore;
  readonly reports: WorkerReports;
  readonly #server: MemoryServer;
  /** Position of the last result that was read. */
  #position = 0;
  #closed = false;
  #cutUntil = 0;

  constructor(server: MemoryServer) {
    this.#server = server;
    this.tickets = this.#ticketQueue();
    this.results = this.#resultLog();
    this.weights = this.#weightsStore();
    this.reports = this.#workerReports();
  }

  prepare(): Promise<void> {
    return this.#call(() => {});
  }

  async close(): Promise<void> {
    this.#closed = true;
  }

  cut(ms: number): void {
    this.#cutUntil = this.#server.clock.now() + ms;
  }

  #ticketQueue(): TicketQueue {
    const server = this.#server;
    return {
      put: (name, bytes) =>
        this.#call(() => {
          const { tickets } = server;
          if (!tickets.has(name)) tickets.set(name, { bytes: bytes.slice(), delivery: 0, until: 0 });
        }),
      list: () => this.#call(() => new Set(server.tickets.keys())),
      clear: () => this.#call(() => server.tickets.clear()),
      fetch: (max, waitMs) => this.#call(() => this.#poll(waitMs, () => this.#fetch(max))),
      count: () =>
        this.#call(() => {
          const now = server.clock.now();
          const held = [...server.tickets.values()].filter(({ until }) => until > now).length;
          return { queued: server.tickets.size - held, held };
        }),
    };
  }

  #resultLog(): ResultLog {
    const server = this.#server;
    return {
      maxResultBytes: 8 * 2 ** 20,
      put: (name, bytes) =>
        this.#call(() => {
          if (server.results.some((one) => one.name === name)) return;
          if (server.results.length >= server.room)
            throw new BrokerUnavailable('the server has no room', { reason: 'results' });
          server.store(name, bytes);
        }),
      read: async (waitMs) => {
        let found: readonly StoredResult[] = [];
        try {
          found = await this.#call(() => this.#poll(waitMs, () => this.#read()));
          return found;
        } finally {
          // As NATS, with what is stored: a server that was restarted or forgot everything reuses positions.
          if (found.length === 0) this.#position = 0;
        }
      },
      removeUpTo: (position) =>
        this.#call(() => {
          server.results = server.results.filter((one) => one.position > position);
        }),
      count: () =>
        this.#call(() => {
          const bytes = server.results.reduce((sum, one) => sum + one.bytes.length, 0);
          return { results: server.results.length, bytes };
        }),
    };
  }

  #weightsStore(): WeightsStore {
    const server = this.#server;
    return {
      put: (name, bytes) => this.#call(() => void server.weights.set(name, bytes.slice())),
      get: (name, size) =>
        this.#call(() => {
          const bytes = server.weights.get(name);
          return bytes?.length === size ? bytes : undefined;
        }),
      remove: (name) => this.#call(() => void server.weights.delete(name)),
      readAnnouncement: () => this.#call(() => server.announcement),
      announce: (bytes, revision) =>
        this.#call(() => {
          const now = server.announcement?.revision ?? 0;
          if (now !== revision) throw new BrokerConflict(`announcement ${now}, expected ${revision}`);
          server.announcement = { bytes: bytes.slice(), revision: now + 1 };
          for (const listener of server.announcementListeners) if (!server.chance(server.faults.lost)) listener();
          return now + 1;
        }),
      onAnnouncement: (listener) => {
        server.announcementListeners.add(listener);
        return () => server.announcementListeners.delete(listener);
      },
    };
  }

  #workerReports(): WorkerReports {
    const server = this.#server;
    return {
      publish: (name, bytes) => {
        if (this.#isCut || server.chance(server.faults.lost)) return;
        for (const listener of server.reportListeners) listener(name, bytes);
      },
      subscribe: (listener) => {
        server.reportListeners.add(listener);
        return () => server.reportListeners.delete(listener);
      },
    };
  }

  get #isCut(): boolean {
    const now = this.#server.clock.now();
    return this.#closed || now < this.#cutUntil || now < this.#server.downUntil;
  }

  async #call<T>(work: () => T | Promise<T>): Promise<T> {
    const server = this.#server;
    const { faults } = server;
    const delay = async () => {
      if (faults.delayMs > 0) await server.sleep(faults.delayMs * server.rng.float());
    };
    await delay();
    if (this.#isCut || server.chance(faults.lost)) throw new BrokerUnavailable('the server is down');
    const answer = await work();
    await delay();
    if (server.chance(faults.lostAnswer)) throw new BrokerUnavailable('the answer was lost');
    return answer;
  }

  /** Polls until something is found, `waitMs` at most. */
  async #poll<T>(waitMs: number, look: () => readonly T[]): Promise<readonly T[]> {
    const { clock } = this.#server;
    const end = clock.now() + waitMs;
    for (;;) {
      const found = look();
      if (found.length > 0 || clock.now() >= end || this.#closed) return found;
      await this.#server.sleep(POLL_MS);
      if (this.#isCut) throw new BrokerUnavailable('the server went down');
    }
  }

  #fetch(max: number): readonly FetchedTicket[] {
    const server = this.#server;
    const now = server.clock.now();
    const free = [...server.tickets].filter(([, { until }]) => until <= now || server.chance(server.faults.duplicate));
    return free.slice(0, max).map(([name, ticket]) => {
      ticket.delivery++;
      ticket.until = now + server.leaseMs;
      const mine = ticket.delivery;
      const isHeld = () => server.tickets.get(name) === ticket && ticket.delivery === mine;
      return {
        name,
        bytes: ticket.bytes,
        delivery: mine,
        extendLease: () => {
          if (!this.#isCut && isHeld()) ticket.until = server.clock.now() + server.leaseMs;
        },
        ack: () => {
          if (this.#isCut) return;
          if (server.chance(server.faults.ghost)) ticket.until = 0;
          else if (server.tickets.get(name) === ticket) server.tickets.delete(name);
        },
        nack: () => {
          if (!this.#isCut && isHeld()) ticket.until = 0;
        },
      };
    });
  }

  #read(): readonly StoredResult[] {
    const server = this.#server;
    const { faults } = server;
    const found = server.results.filter(({ position }) => position > this.#position || server.chance(faults.again));
    for (const { position } of found) this.#position = Math.max(this.#position, position);
    return server.chance(faults.reorder) ? server.rng.shuffle(found) : found;
  }
}
