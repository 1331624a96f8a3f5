/**
 * Broker: carries tickets, results, weights and reports between a learner and its workers. It is transport and never the
 * truth: a result counts only if its group is outstanding in the learner's ledger. What the broker forgets, repeats or
 * reorders costs computing and nothing else.
 *
 * NATS JetStream implements it (`nats/`). The tests have one in memory that fails on purpose; both keep the laws of
 * `test/cluster/broker-laws.ts`.
 */
import { LongplayError } from '../core/errors.ts';

/** Connection to a broker, for one run. Every call but `close` may throw `BrokerUnavailable`. */
export interface Broker {
  readonly tickets: TicketQueue;
  readonly results: ResultLog;
  readonly weights: WeightsStore;
  readonly reports: WorkerReports;
  /** Creates what the run needs, unless it exists. The learner calls it; workers find it there. */
  prepare(): Promise<void>;
  close(): Promise<void>;
}

/** Queue of tickets: each goes to one worker at a time, until it is acknowledged. */
export interface TicketQueue {
  /** Queues a ticket. A second one of the same name changes nothing while the first is queued or held. */
  put(name: string, bytes: Uint8Array): Promise<void>;
  /** Lists the names of tickets that are queued or held. */
  list(): Promise<ReadonlySet<string>>;
  /** Removes every ticket: the run is over. */
  clear(): Promise<void>;
  /** Fetches tickets. @param max tickets, ≥ 1 @param waitMs milliseconds to wait for the first */
  fetch(max: number, waitMs: number): Promise<readonly FetchedTicket[]>;
  count(): Promise<TicketCounts>;
}

/** Counts of a queue. */
export interface TicketCounts {
  /** Tickets that nobody has fetched. */
  readonly queued: number;
  /** Tickets that workers hold. */
  readonly held: number;
}

/** Ticket that was fetched. It stays with this worker as long as the lease is extended in time. */
export interface FetchedTicket {
  readonly name: string;
  readonly bytes: Uint8Array;
  /** Number of times that it was fetched, this one included. */
  readonly delivery: number;
  /** Extends the lease by its full length. */
  extendLease(): void;
  /** Acknowledges it: its result is stored. If the message is lost, the group is played once more. */
  ack(): void;
  /** Returns it to the queue now, for other workers. */
  nack(): void;
}

/** Log of results, in the order in which they were stored. */
export interface ResultLog {
  /** Bytes that one result may have. */
  readonly maxResultBytes: number;
  /** Appends a result. A second one of the same name changes nothing while the first is stored. */
  put(name: string, bytes: Uint8Array): Promise<void>;
  /**
   * Reads results that this connection has not read. Some may come again: after an error, and after a read that found
   * none, it starts over with what is stored.
   * @param waitMs milliseconds to wait for the first
   */
  read(waitMs: number): Promise<readonly StoredResult[]>;
  /** Removes results up to and including a position. */
  removeUpTo(position: number): Promise<void>;
  count(): Promise<ResultCounts>;
}

/** Counts of a log. */
export interface ResultCounts {
  readonly results: number;
  readonly bytes: number;
}

/** Result that was read. */
export interface StoredResult {
  /** Position in the log, ascending; a broker that was restarted may give one twice. */
  readonly position: number;
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** Store of weights, and the announcement that names the current ones. */
export interface WeightsStore {
  /** Stores weights under a name. */
  put(name: string, bytes: Uint8Array): Promise<void>;
  /** Returns the weights of a name, or undefined where they are not there. @param size of all of them, bytes */
  get(name: string, size: number): Promise<Uint8Array | undefined>;
  remove(name: string): Promise<void>;
  /** Returns the newest announcement, or undefined where there is none. */
  readAnnouncement(): Promise<StoredAnnouncement | undefined>;
  /**
   * Announces by compare-and-set.
   * @param revision of the announcement that this one replaces; 0 for the first
   * @returns the new revision
   * @throws {BrokerConflict} where another announcement was made since
   */
  announce(bytes: Uint8Array, revision: number): Promise<number>;
  /** Calls `listener` when an announcement may have been made. Calls get lost. @returns unsubscribes */
  onAnnouncement(listener: () => void): () => void;
}

/** Announcement as the broker has it. */
export interface StoredAnnouncement {
  readonly bytes: Uint8Array;
  readonly revision: number;
}

/** Reports of workers, to whoever listens now; nothing keeps them. */
export interface WorkerReports {
  /** Publishes a report. @param name of the worker: letters, digits, `_`, `-` */
  publish(name: string, bytes: Uint8Array): void;
  /** Calls `listener` with every report. @returns unsubscribes */
  subscribe(listener: (name: string, bytes: Uint8Array) => void): () => void;
}

/** Load of a run at its broker. */
export interface BrokerLoad extends TicketCounts {
  /** Results that the learner has not read, and their bytes. */
  readonly results: number;
  readonly resultBytes: number;
  /** Milliseconds from a request to its answer. */
  readonly roundTripMs: number;
}

/** Measures the load of a run at its broker. */
export async function measureLoad({ tickets, results }: Pick<Broker, 'tickets' | 'results'>): Promise<BrokerLoad> {
  const startedAt = performance.now();
  const counts = await tickets.count();
  const roundTripMs = performance.now() - startedAt;
  const { results: stored, bytes: resultBytes } = await results.count();
  return { ...counts, results: stored, resultBytes, roundTripMs };
}

/** Reasons why a broker is unavailable, as words that follow its name. */
export const UNAVAILABLE = {
  silent: 'does not answer: it is busy or not running, or its disk is full',
  disk: 'cannot write: its disk is full, or fails',
  quota: 'has no room: raise max_file_store in its configuration',
  results: 'has no room: the learner has to read the results that are stored',
} as const;
export type UnavailableReason = keyof typeof UNAVAILABLE;
export const UNAVAILABLE_REASONS = Object.keys(UNAVAILABLE) as readonly UnavailableReason[];

/** Error of a broker that did not answer in time, or has no room. The call may have had its effect; repeat it. */
export class BrokerUnavailable extends LongplayError {
  readonly reason: UnavailableReason;

  constructor(
    message: string,
    { reason = 'silent', ...options }: ErrorOptions & { readonly reason?: UnavailableReason } = {},
  ) {
    super('REMOTE_FAILED', message, options);
    this.reason = reason;
  }
}

/** Error of an announcement whose revision is not the newest one. */
export class BrokerConflict extends LongplayError {
  constructor(message: string) {
    super('REMOTE_FAILED', message);
  }
}

/** Returns undefined for `BrokerUnavailable`: no learner has prepared a run there. @throws every other error */
export function ignoreUnavailable(thrown: unknown): undefined {
  if (!(thrown instanceof BrokerUnavailable)) throw thrown;
}

/** Milliseconds after which a ticket whose lease is not extended goes to others. */
export const LEASE_MS = 10_000;

/** Bytes of one version of the weights. The broker keeps up to five versions, in parts of 512 KiB. */
export const MAX_WEIGHTS_BYTES = 200 * 2 ** 20;

/** Names that every broker takes for a run. */
const NAME = /^[A-Za-z0-9_-]{1,64}$/;

/** Returns true for a run name that every broker takes: letters, digits, `_` and `-`, at most 64. */
export function isRunName(name: string): boolean {
  return NAME.test(name);
}
