/**
 * NATS session: one connection for one run, and what its queue, log, store and reports share.
 *
 * Written for servers from 2.9.10 on. Nothing relies on the server's disk (it acknowledges before it syncs), on its
 * windows for duplicates, or on its clock.
 *
 * - A request in flight when the connection drops blocks until its timeout; so timeouts are short and callers retry.
 * - Disk full: an empty stream returns an error and recovers. One with an open file stops responding until the server
 *   restarts, and so does the connection that wrote to it. Reads keep working: a learner, which mostly reads, learns of
 *   a full disk from its workers.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import { LongplayError, messageOf, UserError } from '../../core/errors.ts';
import { BrokerUnavailable, UNAVAILABLE, type UnavailableReason } from '../broker.ts';
import { type RunNames, runNames } from '../roles.ts';
import { Pull } from './pull.ts';

export type JetStream = typeof import('@nats-io/jetstream');
export type Client = ReturnType<JetStream['jetstream']>;
export type Admin = Awaited<ReturnType<JetStream['jetstreamManager']>>;
export type Consumer = Awaited<ReturnType<Client['consumers']['get']>>;

/** Milliseconds that a request may take. */
export const REQUEST_MS = 1000;
/** Bytes of a message below the 1 MiB that servers take by default. */
export const PART_BYTES = 512 * 1024;

/** Error codes of the server. */
export const CODES = {
  noResources: 10023,
  notFound: 10037,
  noRoom: 10047,
  /** Stream of that name with other settings. */
  otherSettings: 10058,
  /** Another message was stored before this one. */
  wrongSequence: 10071,
  /** Message that was not stored: a limit of the stream, or the disk. Only the text names which. */
  notStored: 10077,
} as const;
/** Codes of errors that pass: no quorum yet, no resources, a full stream, a stream or consumer that is not back yet. */
const TRANSIENT: ReadonlySet<number> = new Set([
  ...[503, 10008, 10014, CODES.noResources, CODES.noRoom, 10059, CODES.notStored],
]);
/** Text of an error that names a limit of the stream. */
const LIMIT = /^maximum /;

export interface SessionOptions {
  readonly connection: NatsConnection;
  readonly js: JetStream;
  readonly admin: Admin;
  readonly run: string;
  /** Names an inbox that this connection may subscribe to. */
  readonly newInbox: () => string;
}

export class NatsSession {
  readonly connection: NatsConnection;
  readonly js: JetStream;
  readonly client: Client;
  readonly admin: Admin;
  readonly names: RunNames;
  readonly #run: string;
  readonly #newInbox: () => string;
  readonly #listeners: (() => void)[] = [];

  constructor({ connection, js, admin, run, newInbox }: SessionOptions) {
    this.connection = connection;
    this.js = js;
    this.client = js.jetstream(connection, { timeout: REQUEST_MS });
    this.admin = admin;
    this.names = runNames(run);
    this.#run = run;
    this.#newInbox = newInbox;
    void this.#watchConnection();
  }

  /** Calls `listener` whenever the connection drops, and before it is closed. */
  onDisconnect(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Calls `listener` with every message of a subject. @returns unsubscribes */
  subscribe(subject: string, listener: (name: string, bytes: Uint8Array) => void): () => void {
    const subscription = this.connection.subscribe(subject, {
      callback: (error, message) => {
        if (!error) listener(nameOf(message.subject), message.data);
      },
    });
    return () => subscription.unsubscribe();
  }

  newPull(stream: string, consumer: string): Pull {
    const { connection } = this;
    return new Pull({ connection, stream, consumer, newInbox: this.#newInbox, silenceMs: REQUEST_MS });
  }

  /** Stores a message, unless its subject has one. */
  putOnce(subject: string, bytes: Uint8Array): Promise<void> {
    return this.request(async () => {
      try {
        await this.client.publish(subject, bytes, { expect: { lastSubjectSequence: 0 } });
      } catch (thrown) {
        if (codeOf(thrown) !== CODES.wrongSequence) throw thrown;
      }
    });
  }

  /**
   * Sends a request and translates its errors.
   * @throws {BrokerUnavailable} where it may be repeated
   * @throws {UserError} BAD_ARGUMENT where the credentials do not allow it
   * @throws {LongplayError} REMOTE_FAILED where the server refuses it
   */
  async request<T>(send: () => Promise<T>): Promise<T> {
    try {
      return await send();
    } catch (thrown) {
      throw this.#translate(thrown);
    }
  }

  async close(): Promise<void> {
    for (const listener of this.#listeners) listener();
    await this.connection.close();
  }

  async #watchConnection(): Promise<void> {
    for await (const { type } of this.connection.status()) {
      if (type === 'disconnect') for (const listener of this.#listeners) listener();
    }
  }

  #translate(thrown: unknown): unknown {
    if (thrown instanceof LongplayError) return thrown;
    const text = messageOf(thrown);
    if (/^Permissions Violation/i.test(text)) {
      const why = `the credentials do not let us do that to run '${this.#run}'`;
      return new UserError('BAD_ARGUMENT', `${why}: ${text}; they are for another role or other runs`);
    }
    const code = codeOf(thrown);
    if (code >= 10_000 && !TRANSIENT.has(code)) {
      return new LongplayError('REMOTE_FAILED', `the NATS server refuses: ${text}`, { cause: thrown });
    }
    const reason = reasonOf(code, text);
    const details = reason === 'silent' || reason === 'disk' ? ` (${text})` : '';
    return new BrokerUnavailable(`the NATS server ${UNAVAILABLE[reason]}${details}`, { cause: thrown, reason });
  }
}

function reasonOf(code: number, text: string): UnavailableReason {
  if (code === CODES.noResources || code === CODES.noRoom) return 'quota';
  if (code !== CODES.notStored) return 'silent';
  return LIMIT.test(text) ? 'results' : 'disk';
}

/** Returns the name at the end of a subject. */
export function nameOf(subject: string): string {
  return subject.slice(subject.lastIndexOf('.') + 1);
}

/** Returns the code of a server's error; 0 for other errors. */
export function codeOf(thrown: unknown): number {
  const code = (thrown as { readonly code?: unknown } | undefined)?.code;
  return typeof code === 'number' ? code : 0;
}
