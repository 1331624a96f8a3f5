/**
 * NATS JetStream as a broker. The only file that knows it; the packages are loaded when it is used.
 *
 * Written for servers from 2.9.10 on: a work queue for tickets, a log for results, a store of one message a subject for
 * the announcement and the weights (in parts, fetched directly). Nothing relies on the server's disk (it acknowledges
 * before it syncs), on its windows for duplicates, or on its clock.
 *
 * - Results are fetched, not consumed: a fetch ends and begins anew, where an endless consumer may fall silent for good
 *   after the server was restarted.
 * - A call that is under way when the connection breaks waits for its whole timeout: hence a short one, and callers that
 *   say it again.
 */
import type { ConnectionOptions, NatsConnection } from '@nats-io/transport-node';
import { LongplayError, messageOf, UserError } from '../core/errors.ts';
import { redacted } from '../core/secrets.ts';
import {
  type Announced,
  type Broker,
  BrokerAway,
  BrokerConflict,
  type FetchedTicket,
  isRunName,
  type StoredResult,
} from './broker.ts';

/** Options of a connection. */
export interface NatsOptions {
  /** Server, `nats://host:port`. */
  readonly url: string;
  /** Name of the run, as `isRunName` has it. */
  readonly run: string;
  /** Milliseconds that a worker may be silent before its tickets go to others. Default 10000. */
  readonly leaseMs?: number | undefined;
  /** Most bytes of results that wait for the learner; workers wait beyond that. Default 1 GiB. */
  readonly maxResultBytes?: number | undefined;
}

/** Milliseconds of a call, and of the first connection. */
const CALL_MS = 1000;
const CONNECT_MS = 3000;
/** Milliseconds between two tries to connect again; without an end. */
const RECONNECT_MS = 200;
/** Bytes of a part of weights: below the 1 MiB that servers take by default. */
const PART_BYTES = 512 * 1024;
/** Results taken at once. */
const RESULTS = 64;
/** Codes of the server: another message was stored before; messages in its way; no room; nothing there. */
const WRONG_SEQUENCE = 10071;
const NOT_FOUND = 10037;
/** Codes that mean `say it again`: no quorum yet, resources, a full stream, a stream or consumer that is not back yet. */
const AGAIN: ReadonlySet<number> = new Set([503, 10008, 10014, 10023, 10059, 10077]);
const NS_PER_MS = 1_000_000;

type JetStream = typeof import('@nats-io/jetstream');
type Client = ReturnType<JetStream['jetstream']>;
type Admin = Awaited<ReturnType<JetStream['jetstreamManager']>>;
type Consumer = Awaited<ReturnType<Client['consumers']['get']>>;

interface Names {
  readonly tickets: string;
  readonly results: string;
  readonly state: string;
  readonly subject: (kind: string, name: string) => string;
}

const namesOf = (run: string): Names => ({
  tickets: `LP_${run}_TICKETS`,
  results: `LP_${run}_RESULTS`,
  state: `LP_${run}_STATE`,
  subject: (kind, name) => `lp.${run}.${kind}.${name}`,
});

/** Address of a server. @throws {UserError} BAD_ARGUMENT for what is none, and for one that is not this machine's own */
export function checkNatsUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'nats:' || url.hostname === '') {
    throw new UserError(
      'BAD_ARGUMENT',
      `expected the address of a NATS server, nats://host:4222, got '${redacted(text)}'`,
    );
  }
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (host !== 'localhost' && host !== '::1' && !/^127(\.\d{1,3}){3}$/.test(host)) {
    throw new UserError(
      'BAD_ARGUMENT',
      `${url.host} is another machine: connections are neither encrypted nor authenticated yet, so only loopback is taken; forward its port: ssh -L 4222:127.0.0.1:4222 ${host}`,
    );
  }
  return url;
}

/**
 * Connects.
 * @throws {UserError} BAD_ARGUMENT for an address or a name that cannot be; {LongplayError} REMOTE_FAILED where no server with
 *   JetStream answers within 3 s
 */
export async function connectNats(options: NatsOptions): Promise<Broker> {
  const { host } = checkNatsUrl(options.url);
  if (!isRunName(options.run)) {
    throw new UserError(
      'BAD_ARGUMENT',
      `run '${options.run}': at a broker a name has letters, digits, '-' and '_', 64 at most; choose another (--name)`,
    );
  }
  const { connect } = await import('@nats-io/transport-node');
  const js = await import('@nats-io/jetstream');
  const how: ConnectionOptions = {
    servers: host,
    maxReconnectAttempts: -1,
    reconnectTimeWait: RECONNECT_MS,
    timeout: CONNECT_MS,
  };
  let connection: NatsConnection;
  try {
    connection = await connect(how);
  } catch (thrown) {
    throw new LongplayError(
      'REMOTE_FAILED',
      `no NATS server answers at ${host}: ${messageOf(thrown)}; start one: nats-server -js`,
    );
  }
  try {
    const admin = await js.jetstreamManager(connection, { timeout: CONNECT_MS });
    return new NatsBroker(connection, js, js.jetstream(connection, { timeout: CALL_MS }), admin, options);
  } catch (thrown) {
    await connection.close();
    throw new LongplayError(
      'REMOTE_FAILED',
      `the NATS server at ${host} has no JetStream (${messageOf(thrown)}); start it with -js`,
    );
  }
}

class NatsBroker implements Broker {
  readonly #connection: NatsConnection;
  readonly #js: JetStream;
  readonly #client: Client;
  readonly #admin: Admin;
  readonly #names: Names;
  readonly #leaseMs: number;
  readonly #maxResultBytes: number;
  #workers: Consumer | undefined;
  #log: Consumer | undefined;
  /** Position of the last result taken; 0 to begin with what is there. */
  #taken = 0;

  constructor(connection: NatsConnection, js: JetStream, client: Client, admin: Admin, options: NatsOptions) {
    const { run, leaseMs = 10_000, maxResultBytes = 2 ** 30 } = options;
    this.#connection = connection;
    this.#js = js;
    this.#client = client;
    this.#admin = admin;
    this.#names = namesOf(run);
    this.#leaseMs = leaseMs;
    this.#maxResultBytes = maxResultBytes;
  }

  async prepare(): Promise<void> {
    const { tickets, results, state, subject } = this.#names;
    const { RetentionPolicy, DiscardPolicy, AckPolicy } = this.#js;
    await this.#said(async () => {
      const { streams, consumers } = this.#admin;
      await streams.add({ name: tickets, subjects: [subject('ticket', '*')], retention: RetentionPolicy.Workqueue });
      await streams.add({
        name: results,
        subjects: [subject('result', '*')],
        retention: RetentionPolicy.Limits,
        discard: DiscardPolicy.New,
        max_bytes: this.#maxResultBytes,
      });
      const kept = [subject('announced', 'run'), subject('weights', '>')];
      await streams.add({ name: state, subjects: kept, max_msgs_per_subject: 1, allow_direct: true });
      await consumers.add(tickets, {
        durable_name: WORKERS,
        ack_policy: AckPolicy.Explicit,
        ack_wait: this.#leaseMs * NS_PER_MS,
        max_ack_pending: 10_000,
      });
    });
  }

  putTicket(name: string, bytes: Uint8Array): Promise<void> {
    return this.#put(this.#names.subject('ticket', name), bytes);
  }

  tickets(): Promise<ReadonlySet<string>> {
    return this.#said(async () => {
      const { state } = await this.#admin.streams.info(this.#names.tickets, {
        subjects_filter: this.#names.subject('ticket', '*'),
      });
      return new Set(Object.keys(state.subjects ?? {}).map(nameIn));
    });
  }

  removeTickets(): Promise<void> {
    return this.#said(async () => void (await this.#admin.streams.purge(this.#names.tickets)));
  }

  async fetchTickets(most: number, waitMs: number): Promise<readonly FetchedTicket[]> {
    try {
      return await this.#said(async () => {
        this.#workers ??= await this.#client.consumers.get(this.#names.tickets, WORKERS);
        const found: FetchedTicket[] = [];
        // One at first: a fetch of many waits for all of them.
        const first = await this.#workers.next({ expires: Math.max(CALL_MS, waitMs) });
        if (!first) return found;
        const take = (message: typeof first) => {
          found.push({
            name: nameIn(message.subject),
            bytes: message.data,
            delivery: message.info.deliveryCount,
            working: () => message.working(),
            done: () => message.ack(),
            giveBack: () => message.nak(),
          });
        };
        take(first);
        const { num_pending } = await this.#workers.info();
        const more = Math.min(most - 1, num_pending);
        if (more > 0)
          for await (const one of await this.#workers.fetch({ max_messages: more, expires: CALL_MS })) take(one);
        return found;
      });
    } catch (thrown) {
      this.#workers = undefined;
      throw thrown;
    }
  }

  putResult(name: string, bytes: Uint8Array): Promise<void> {
    return this.#put(this.#names.subject('result', name), bytes);
  }

  async takeResults(waitMs: number): Promise<readonly StoredResult[]> {
    try {
      return await this.#said(async () => {
        const { DeliverPolicy } = this.#js;
        this.#log ??= await this.#client.consumers.get(
          this.#names.results,
          this.#taken > 0
            ? { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: this.#taken + 1 }
            : { deliver_policy: DeliverPolicy.All },
        );
        const found: StoredResult[] = [];
        const take = ({ seq, subject, data }: { seq: number; subject: string; data: Uint8Array }) => {
          found.push({ position: seq, name: nameIn(subject), bytes: data });
          this.#taken = seq;
        };
        const first = await this.#log.next({ expires: Math.max(CALL_MS, waitMs) });
        if (!first) {
          this.#beginAnew(); // a server that forgot everything counts from 1 again, and does not say so
          return found;
        }
        take(first);
        const more = Math.min(RESULTS, first.info.pending);
        if (more > 0)
          for await (const one of await this.#log.fetch({ max_messages: more, expires: CALL_MS })) take(one);
        return found;
      });
    } catch (thrown) {
      this.#beginAnew();
      throw thrown;
    }
  }

  /** Takes results from what is left: those taken are removed, and a restarted server may give a position twice. */
  #beginAnew(): void {
    this.#log = undefined;
    this.#taken = 0;
  }

  removeResults(position: number): Promise<void> {
    // Up to, but not including.
    return this.#said(async () => void (await this.#admin.streams.purge(this.#names.results, { seq: position + 1 })));
  }

  announced(): Promise<Announced | undefined> {
    return this.#said(async () => {
      const found = await this.#direct(this.#names.subject('announced', 'run'));
      return found && { bytes: found.data, revision: found.seq };
    });
  }

  announce(bytes: Uint8Array, revision: number): Promise<number> {
    return this.#said(async () => {
      const subject = this.#names.subject('announced', 'run');
      try {
        return (await this.#client.publish(subject, bytes, { expect: { lastSubjectSequence: revision } })).seq;
      } catch (thrown) {
        if (codeOf(thrown) !== WRONG_SEQUENCE) throw thrown;
        throw new BrokerConflict(`another announcement was made: ${messageOf(thrown)}`);
      }
    });
  }

  onAnnounced(heard: () => void): () => void {
    const subscription = this.#connection.subscribe(this.#names.subject('announced', 'run'), {
      callback: () => heard(),
    });
    return () => subscription.unsubscribe();
  }

  async putWeights(name: string, bytes: Uint8Array): Promise<void> {
    for (let at = 0, part = 0; at < bytes.length; at += PART_BYTES, part++) {
      await this.#put(this.#names.subject('weights', `${name}.${part}`), bytes.subarray(at, at + PART_BYTES));
    }
  }

  weights(name: string, size: number): Promise<Uint8Array | undefined> {
    return this.#said(async () => {
      const parts = Array.from({ length: Math.ceil(size / PART_BYTES) }, (_, part) =>
        this.#direct(this.#names.subject('weights', `${name}.${part}`)),
      );
      const found = await Promise.all(parts);
      const whole = Buffer.concat(found.flatMap((part) => (part ? [part.data] : [])));
      return whole.length === size ? whole : undefined;
    });
  }

  removeWeights(name: string): Promise<void> {
    const filter = this.#names.subject('weights', `${name}.*`);
    return this.#said(async () => void (await this.#admin.streams.purge(this.#names.state, { filter })));
  }

  async close(): Promise<void> {
    await this.#connection.close();
  }

  /** Stores a message, unless its subject has one. */
  #put(subject: string, bytes: Uint8Array): Promise<void> {
    return this.#said(async () => {
      try {
        await this.#client.publish(subject, bytes, { expect: { lastSubjectSequence: 0 } });
      } catch (thrown) {
        if (codeOf(thrown) !== WRONG_SEQUENCE) throw thrown;
      }
    });
  }

  async #direct(subject: string): Promise<{ readonly data: Uint8Array; readonly seq: number } | undefined> {
    try {
      return (await this.#admin.direct.getMessage(this.#names.state, { last_by_subj: subject })) ?? undefined;
    } catch (thrown) {
      if (codeOf(thrown) === NOT_FOUND || codeOf(thrown) === 404) return undefined;
      throw thrown;
    }
  }

  /** Says something to the server. @throws {BrokerAway} where it may be said again */
  async #said<T>(say: () => Promise<T>): Promise<T> {
    try {
      return await say();
    } catch (thrown) {
      if (thrown instanceof LongplayError) throw thrown;
      const code = codeOf(thrown);
      if (code >= 10_000 && !AGAIN.has(code)) {
        throw new LongplayError('REMOTE_FAILED', `the NATS server refuses: ${messageOf(thrown)}`, { cause: thrown });
      }
      throw new BrokerAway(`the NATS server does not answer: ${messageOf(thrown)}`, { cause: thrown });
    }
  }
}

/** Name of the workers' consumer. */
const WORKERS = 'workers';

/** Name at the end of a subject. */
function nameIn(subject: string): string {
  return subject.slice(subject.lastIndexOf('.') + 1);
}

/** Code of the server's error; 0 for others. */
function codeOf(thrown: unknown): number {
  const code = (thrown as { readonly code?: unknown } | undefined)?.code;
  return typeof code === 'number' ? code : 0;
}
