/**
 * NATS JetStream as a broker. The only file, with `pull.ts`, that knows it; the packages are loaded when it is used.
 *
 * Written for servers from 2.9.10 on: a work queue for tickets, a log for results, a store of one message a subject for
 * the announcement and the weights (in parts, fetched directly). Nothing relies on the server's disk (it acknowledges
 * before it syncs), on its windows for duplicates, or on its clock.
 *
 * - Results are pulled, not consumed: a pull ends and another begins, where an endless consumer may fall silent for good
 *   after the server was restarted.
 * - A call that is under way when the connection breaks waits for its whole timeout: hence a short one, and callers that
 *   say it again.
 * - On a full disk a stream that was emptied refuses in words, and takes again once there is room; one in the middle of a file
 *   answers nothing from then on, nor does the connection that wrote to it, until the server is started again. What only reads is
 *   answered all the while: a learner hears of it from its workers.
 */
import type { ConnectionOptions, NatsConnection } from '@nats-io/transport-node';
import { LongplayError, messageOf, UserError } from '../core/errors.ts';
import { redacted } from '../core/secrets.ts';
import {
  type Announced,
  AWAY,
  type AwayReason,
  type Broker,
  BrokerAway,
  BrokerConflict,
  type BrokerLoad,
  type FetchedTicket,
  isRunName,
  type StoredResult,
} from './broker.ts';
import type { Credentials } from './credentials.ts';
import { Pull } from './pull.ts';
import { inboxOf, type RunNames, runNames, WORKERS } from './roles.ts';

/** Options of a connection. */
export interface NatsOptions {
  /** Server, `nats://host:port`. */
  readonly url: string;
  /** Name of the run, as `isRunName` has it. */
  readonly run: string;
  /** Key and certificate. Without them the server is one of this machine's own. */
  readonly credentials?: Credentials | undefined;
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
/** Codes of the server: another message was stored before; nothing there; no room; a stream that is made otherwise. */
const WRONG_SEQUENCE = 10071;
const NOT_FOUND = 10037;
/** Code of a message that the server could not store: a limit of the stream, or its disk; only the words say which. */
const NOT_STORED = 10077;
const LIMIT = /^maximum /;
/** Codes that mean `say it again`: no quorum yet, resources, a full stream, a stream or consumer that is not back yet. */
const NO_RESOURCES = 10023;
const NO_ROOM = 10047;
const AGAIN: ReadonlySet<number> = new Set([503, 10008, 10014, NO_RESOURCES, NO_ROOM, 10059, NOT_STORED]);
const OTHERWISE = 10058;
/** Bytes of results that a server must have room for. */
const LEAST_RESULT_BYTES = 2 ** 22;
const NS_PER_MS = 1_000_000;

type JetStream = typeof import('@nats-io/jetstream');
type Client = ReturnType<JetStream['jetstream']>;
type Admin = Awaited<ReturnType<JetStream['jetstreamManager']>>;
type Consumer = Awaited<ReturnType<Client['consumers']['get']>>;

/**
 * Address of a server.
 * @param secured true where the connection is encrypted and authenticated
 * @throws {UserError} BAD_ARGUMENT for what is none, and for one of another machine that is not secured
 */
export function checkNatsUrl(text: string, secured = false): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'nats:' || url.hostname === '') {
    throw new UserError(
      'BAD_ARGUMENT',
      `expected the address of a NATS server, nats://host:4222, got '${redacted(text)}'`,
    );
  }
  if (url.username !== '' || url.password !== '') {
    throw new UserError('BAD_ARGUMENT', `${redacted(text)}: a key is not part of the address; give --creds <file>`);
  }
  if (!secured && !isLoopback(url)) {
    throw new UserError(
      'BAD_ARGUMENT',
      `${url.host} is another machine: that takes TLS and a key; longplay cluster init makes them for the server, then give --creds <role>.creds here`,
    );
  }
  return url;
}

/** True for an address of this machine alone. */
export function isLoopback({ hostname }: URL): boolean {
  const host = hostname.replace(/^\[|\]$/g, '');
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

/**
 * Connects.
 * @throws {UserError} BAD_ARGUMENT for an address, a name or credentials that cannot be; {LongplayError} REMOTE_FAILED where no
 *   server with JetStream answers within 3 s
 */
export async function connectNats(options: NatsOptions): Promise<Broker> {
  checkRunName(options.run);
  const { createInbox } = await import('@nats-io/transport-node');
  const { connection, js, admin } = await connectServer(options);
  const { credentials } = options;
  const newInbox = () => createInbox(credentials && inboxOf(credentials.role));
  return new NatsBroker(connection, js, admin, newInbox, options);
}

function checkRunName(run: string): void {
  if (isRunName(run)) return;
  throw new UserError(
    'BAD_ARGUMENT',
    `run '${run}': at a broker a name has letters, digits, '-' and '_', 64 at most; choose another (--name)`,
  );
}

/** Names of the runs that a server has. @throws as `connectNats` */
export async function listRuns(options: Pick<NatsOptions, 'url' | 'credentials'>): Promise<readonly string[]> {
  const { connection, admin } = await connectServer(options);
  try {
    const names: string[] = [];
    for await (const name of admin.streams.names()) {
      const run = /^LP_(.+)_STATE$/.exec(name)?.[1];
      if (run !== undefined) names.push(run);
    }
    return names.sort();
  } finally {
    await connection.close();
  }
}

/** Key of a user: its seed, which is secret, and its public half for the server. */
export async function createUserKey(): Promise<{ readonly seed: string; readonly publicKey: string }> {
  const { nkeys } = await import('@nats-io/transport-node');
  const key = nkeys.createUser();
  return { seed: Buffer.from(key.getSeed()).toString('ascii'), publicKey: key.getPublicKey() };
}

async function connectServer(options: Pick<NatsOptions, 'url' | 'credentials'>) {
  const connection = await connectTo(options);
  const js = await import('@nats-io/jetstream');
  try {
    const admin = await js.jetstreamManager(connection, { timeout: CONNECT_MS });
    return { connection, js, admin };
  } catch (thrown) {
    await connection.close();
    const { host } = new URL(options.url);
    throw new LongplayError(
      'REMOTE_FAILED',
      `the NATS server at ${host} has no JetStream (${messageOf(thrown)}); start it with -js`,
    );
  }
}

async function connectTo({ url, credentials }: Pick<NatsOptions, 'url' | 'credentials'>): Promise<NatsConnection> {
  const { host } = checkNatsUrl(url, credentials !== undefined);
  const { connect, nkeyAuthenticator } = await import('@nats-io/transport-node');
  const how: ConnectionOptions = {
    servers: host,
    maxReconnectAttempts: -1,
    reconnectTimeWait: RECONNECT_MS,
    timeout: CONNECT_MS,
    noAsyncTraces: true, // a stack for every request costs more than the request
    ...(credentials && {
      tls: credentials.ca === undefined ? {} : { ca: credentials.ca },
      authenticator: nkeyAuthenticator(Buffer.from(credentials.seed)),
      inboxPrefix: inboxOf(credentials.role),
    }),
  };
  try {
    return await connect(how);
  } catch (thrown) {
    throw refusal(host, credentials, thrown);
  }
}

/** Error of a server that does not let us in. */
function refusal(host: string, credentials: Credentials | undefined, thrown: unknown): LongplayError {
  const words = messageOf(thrown);
  const isOf = (pattern: RegExp) => pattern.test(`${words} ${messageOf((thrown as Error).cause ?? '')}`);
  if (isOf(/authorization|authentication/i)) {
    const why = credentials ? `does not know the key of this ${credentials.role}` : 'takes nobody without a key';
    return new UserError('BAD_ARGUMENT', `the NATS server at ${host} ${why}; give --creds of its own cluster init`);
  }
  if (isOf(/certificate|self.signed|altnames/i)) {
    const why = credentials ? 'is not the one that the credentials know' : 'shows a certificate of its own';
    return new UserError(
      'BAD_ARGUMENT',
      `the NATS server at ${host} ${why} (${words}); give --creds of its cluster init`,
    );
  }
  if (credentials && isOf(/tls/i)) {
    return new UserError(
      'BAD_ARGUMENT',
      `the NATS server at ${host} does not encrypt (${words}); start it with -c server.conf of longplay cluster init`,
    );
  }
  return new LongplayError('REMOTE_FAILED', `no NATS server answers at ${host}: ${words}; start one: nats-server -js`);
}

/** Reader of results. */
interface ResultLog {
  readonly consumer: Consumer;
  readonly pull: Pull;
  /** Number of its last message: another one than the next means that something was lost. */
  number: number;
}

class NatsBroker implements Broker {
  readonly #connection: NatsConnection;
  readonly #js: JetStream;
  readonly #client: Client;
  readonly #admin: Admin;
  readonly #run: string;
  readonly #names: RunNames;
  readonly #leaseMs: number;
  readonly #maxResultBytes: number;
  readonly #newInbox: () => string;
  #workers: Pull | undefined;
  #log: ResultLog | undefined;
  /** Position of the last result taken; 0 to begin with what is there. */
  #taken = 0;

  /** @param newInbox names an inbox that the connection may hear */
  constructor(connection: NatsConnection, js: JetStream, admin: Admin, newInbox: () => string, options: NatsOptions) {
    const { run, leaseMs = 10_000, maxResultBytes = 2 ** 30 } = options;
    this.#connection = connection;
    this.#js = js;
    this.#client = js.jetstream(connection, { timeout: CALL_MS });
    this.#admin = admin;
    this.#newInbox = newInbox;
    this.#run = run;
    this.#names = runNames(run);
    this.#leaseMs = leaseMs;
    this.#maxResultBytes = maxResultBytes;
    void this.#watch();
  }

  /** Gives up what is being pulled when the connection breaks: its answer would come to nobody. */
  async #watch(): Promise<void> {
    for await (const { type } of this.#connection.status()) if (type === 'disconnect') this.#giveUp();
  }

  #giveUp(): void {
    for (const pull of [this.#workers, this.#log?.pull]) pull?.giveUp('the connection broke');
  }

  async prepare(): Promise<void> {
    const { tickets, results, state, subject } = this.#names;
    const { RetentionPolicy, DiscardPolicy, AckPolicy } = this.#js;
    await this.#said(async () => {
      const { streams, consumers } = this.#admin;
      await streams.add({ name: tickets, subjects: [subject('ticket', '*')], retention: RetentionPolicy.Workqueue });
      const log = {
        ...{ name: results, subjects: [subject('result', '*')] },
        ...{ retention: RetentionPolicy.Limits, discard: DiscardPolicy.New },
      };
      // The server sets the room aside: where it has less, less will do.
      for (let most = this.#maxResultBytes; ; most = Math.ceil(most / 4)) {
        const added = streams.add({ ...log, max_bytes: most });
        const isThere = await added.catch((thrown) => {
          if (codeOf(thrown) === OTHERWISE) return true; // made before, when there was less room
          if (codeOf(thrown) !== NO_ROOM || most / 4 < LEAST_RESULT_BYTES) throw thrown;
        });
        if (isThere) break;
      }
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
        const { tickets } = this.#names;
        // Asked for by name first: a pull from a consumer that is not there gets no answer.
        if (!this.#workers) {
          await this.#client.consumers.get(tickets, WORKERS);
          this.#workers = this.#pullOf(tickets, WORKERS);
        }
        return (await this.#workers.take(most, waitMs)).map((one) => ({
          name: nameIn(one.subject),
          bytes: one.data,
          delivery: one.delivery,
          working: one.working,
          done: one.ack,
          giveBack: one.giveBack,
        }));
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
        this.#log ??= await this.#openLog();
        const log = this.#log;
        const found = await log.pull.take(RESULTS, waitMs);
        for (const { number, position } of found) {
          if (number !== ++log.number) throw new Error('results were lost on the way');
          this.#taken = position;
        }
        // A server that forgot everything counts from 1 again, and does not say so.
        if (found.length === 0) this.#beginAnew();
        return found.map(({ position, subject, data }) => ({ position, name: nameIn(subject), bytes: data }));
      });
    } catch (thrown) {
      this.#beginAnew();
      throw thrown;
    }
  }

  /** Opens a reader of the results that were not taken yet. */
  async #openLog(): Promise<ResultLog> {
    const { DeliverPolicy } = this.#js;
    const { results } = this.#names;
    const consumer = await this.#client.consumers.get(
      results,
      this.#taken > 0
        ? { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: this.#taken + 1 }
        : { deliver_policy: DeliverPolicy.All },
    );
    const { name } = await consumer.info(true);
    return { consumer, pull: this.#pullOf(results, name), number: 0 };
  }

  #pullOf(stream: string, consumer: string): Pull {
    return new Pull({ connection: this.#connection, stream, consumer, newInbox: this.#newInbox, silenceMs: CALL_MS });
  }

  /** Takes results from what is left: those taken are removed, and a restarted server may give a position twice. */
  #beginAnew(): void {
    const log = this.#log;
    this.#log = undefined;
    this.#taken = 0;
    log?.pull.giveUp('it begins anew');
    log?.consumer.delete().catch(() => {}); // the server forgets it by itself, in minutes
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

  report(name: string, bytes: Uint8Array): void {
    if (!this.#connection.isClosed()) this.#connection.publish(this.#names.subject('worker', name), bytes);
  }

  onReport(heard: (name: string, bytes: Uint8Array) => void): () => void {
    const subscription = this.#connection.subscribe(this.#names.subject('worker', '*'), {
      callback: (error, message) => {
        if (!error) heard(nameIn(message.subject), message.data);
      },
    });
    return () => subscription.unsubscribe();
  }

  load(): Promise<BrokerLoad> {
    return this.#said(async () => {
      const { streams, consumers } = this.#admin;
      const [tickets, results] = [this.#names.tickets, this.#names.results];
      const asked = performance.now();
      const { num_pending, num_ack_pending } = await consumers.info(tickets, WORKERS);
      const roundTripMs = performance.now() - asked;
      const { state } = await streams.info(results);
      const { messages, bytes } = state;
      return { queued: num_pending, held: num_ack_pending, results: messages, resultBytes: bytes, roundTripMs };
    });
  }

  get mostResultBytes(): number {
    return this.#connection.info?.max_payload ?? PART_BYTES;
  }

  async close(): Promise<void> {
    this.#giveUp();
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
      if (/^Permissions Violation/i.test(messageOf(thrown))) {
        const why = `the credentials do not let us do that to run '${this.#run}'`;
        throw new UserError('BAD_ARGUMENT', `${why}: ${messageOf(thrown)}; they are for another role or other runs`);
      }
      const code = codeOf(thrown);
      if (code >= 10_000 && !AGAIN.has(code)) {
        throw new LongplayError('REMOTE_FAILED', `the NATS server refuses: ${messageOf(thrown)}`, { cause: thrown });
      }
      const reason = reasonOf(code, messageOf(thrown));
      const details = reason === 'silent' || reason === 'disk' ? ` (${messageOf(thrown)})` : '';
      throw new BrokerAway(`the NATS server ${AWAY[reason]}${details}`, { cause: thrown, reason });
    }
  }
}

/** Reason why a server takes nothing. @param words of its error */
function reasonOf(code: number, words: string): AwayReason {
  if (code === NO_RESOURCES || code === NO_ROOM) return 'quota';
  if (code !== NOT_STORED) return 'silent';
  return LIMIT.test(words) ? 'results' : 'disk';
}

/** Name at the end of a subject. */
function nameIn(subject: string): string {
  return subject.slice(subject.lastIndexOf('.') + 1);
}

/** Code of the server's error; 0 for others. */
function codeOf(thrown: unknown): number {
  const code = (thrown as { readonly code?: unknown } | undefined)?.code;
  return typeof code === 'number' ? code : 0;
}
