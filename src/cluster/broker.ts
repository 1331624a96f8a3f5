/**
 * Broker: transport and rendezvous between a learner and its workers, and never the truth. Whatever it forgets, repeats
 * or delivers in another order costs computing and no more: a result counts only if its group is outstanding in the
 * learner's ledger.
 *
 * Two implement it and keep the laws of `test/cluster/broker-laws.ts`: NATS JetStream (`nats.ts`) and, in the tests, one in
 * memory that breaks on purpose.
 */
import { LongplayError } from '../core/errors.ts';

/** Reasons of a broker that takes nothing now, in words that follow its name. */
export const AWAY = {
  silent: 'does not answer (busy, away, or its disk is full)',
  disk: 'cannot write to its disk, which is full or fails',
  quota: 'has no room: max_file_store of its configuration is reached',
  results: 'has no room: as many results wait as it may hold, for a learner that takes none',
} as const;
export type AwayReason = keyof typeof AWAY;
export const AWAY_REASONS = Object.keys(AWAY) as readonly AwayReason[];

/** Error of a broker that did not answer in time, or has no room: the call may or may not have had its effect. Say it again. */
export class BrokerAway extends LongplayError {
  readonly reason: AwayReason;

  constructor(
    message: string,
    { reason = 'silent', ...options }: ErrorOptions & { readonly reason?: AwayReason } = {},
  ) {
    super('REMOTE_FAILED', message, options);
    this.reason = reason;
  }
}

/** Refusal of an announcement: another one was made since the revision that it names. */
export class BrokerConflict extends LongplayError {
  constructor(message: string) {
    super('REMOTE_FAILED', message);
  }
}

/** Ticket that was fetched. It belongs to this worker as long as `working` is called within each lease. */
export interface FetchedTicket {
  readonly name: string;
  readonly bytes: Uint8Array;
  /** Number of times that it was fetched, this one included. */
  readonly delivery: number;
  /** Renews the lease. */
  working(): void;
  /** Ends it: its result is stored. Should that get lost, it is played once more. */
  done(): void;
  /** Gives it back to be fetched by others, now. */
  giveBack(): void;
}

/** Result that was taken. */
export interface StoredResult {
  /** Position in the store, ascending; a broker that was restarted may give one twice. */
  readonly position: number;
  readonly name: string;
  readonly bytes: Uint8Array;
}

export interface Announced {
  readonly bytes: Uint8Array;
  readonly revision: number;
}

/** Connection to a broker, for one run. Every call but `close` may throw `BrokerAway`. */
export interface Broker {
  /** Makes what the run needs, where it is not there. The learner calls it; workers find it there. */
  prepare(): Promise<void>;
  /** Queues a ticket. A second one of that name, while the first is queued, changes nothing. */
  putTicket(name: string, bytes: Uint8Array): Promise<void>;
  /** Names of tickets that are queued or fetched, and not done. */
  tickets(): Promise<ReadonlySet<string>>;
  /** Removes every ticket: the run is over. */
  removeTickets(): Promise<void>;
  /** Fetches up to `most` tickets; waits up to `waitMs` for the first. */
  fetchTickets(most: number, waitMs: number): Promise<readonly FetchedTicket[]>;
  /** Stores a result. A second one of that name, while the first is stored, changes nothing. */
  putResult(name: string, bytes: Uint8Array): Promise<void>;
  /**
   * Takes results that this connection has not taken; waits up to `waitMs` for the first. Some may come again: after an
   * error, and after a take that found none, it begins with what is left.
   */
  takeResults(waitMs: number): Promise<readonly StoredResult[]>;
  /** Removes results up to and including a position. */
  removeResults(position: number): Promise<void>;
  announced(): Promise<Announced | undefined>;
  /**
   * Announces, where nothing has been announced since.
   * @param revision of the announcement that this one follows; 0 for the first
   * @returns the revision
   * @throws {BrokerConflict}
   */
  announce(bytes: Uint8Array, revision: number): Promise<number>;
  /** Calls `heard` when something may have been announced: time to ask. Hints get lost. @returns ends it */
  onAnnounced(heard: () => void): () => void;
  /** Stores weights under a name, in parts. */
  putWeights(name: string, bytes: Uint8Array): Promise<void>;
  /** Weights of a name. @param size of all parts, in bytes. @returns undefined where they are not there (any more) */
  weights(name: string, size: number): Promise<Uint8Array | undefined>;
  removeWeights(name: string): Promise<void>;
  /** Says how a worker is, to whoever listens now; nothing keeps it. @param name of the worker: letters, digits, `_`, `-` */
  report(name: string, bytes: Uint8Array): void;
  /** Calls `heard` with workers' reports. @returns ends it */
  onReport(heard: (name: string, bytes: Uint8Array) => void): () => void;
  load(): Promise<BrokerLoad>;
  /** Most bytes of one result. */
  readonly mostResultBytes: number;
  close(): Promise<void>;
}

/** Load of a run at its broker. */
export interface BrokerLoad {
  /** Tickets that nobody has fetched, and those that workers hold. */
  readonly queued: number;
  readonly held: number;
  /** Results that the learner has not taken, and their bytes. */
  readonly results: number;
  readonly resultBytes: number;
  /** Milliseconds from a question to its answer. */
  readonly roundTripMs: number;
}

/** Nothing: the answer of a server on which no learner has prepared a run. @throws what is something else */
export function nothingPrepared(thrown: unknown): undefined {
  if (!(thrown instanceof BrokerAway)) throw thrown;
}

/** Milliseconds after which a ticket that nobody works on goes to others. */
export const LEASE_MS = 10_000;

/** Bytes of one version of the weights that a broker carries: parts of 512 KiB, which it keeps for five versions. */
export const MAX_WEIGHTS_BYTES = 200 * 2 ** 20;

/** Longest name of a run at a broker. */
const NAME = /^[A-Za-z0-9_-]{1,64}$/;

/** True for a run name that every broker takes: letters, digits, `_` and `-`, at most 64. */
export function isRunName(name: string): boolean {
  return NAME.test(name);
}
