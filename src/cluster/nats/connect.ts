/** Connections to a NATS server with JetStream. The packages are loaded when a connection is made. */
import type { ConnectionOptions, NatsConnection } from '@nats-io/transport-node';
import { LongplayError, messageOf, UserError } from '../../core/errors.ts';
import { redact } from '../../core/secrets.ts';
import { type Broker, isRunName, LEASE_MS } from '../broker.ts';
import type { Credentials } from '../credentials.ts';
import { inboxOf } from '../roles.ts';
import { NatsResultLog } from './result-log.ts';
import { NatsSession } from './session.ts';
import { NatsTicketQueue } from './ticket-queue.ts';
import { NatsWeightsStore } from './weights-store.ts';
import { NatsWorkerReports } from './worker-reports.ts';

/** Options of a connection. */
export interface NatsOptions {
  /** Server, `nats://host:port`. */
  readonly url: string;
  /** Name of the run, as `isRunName` has it. */
  readonly run: string;
  /** Key and certificate. Without them the server must be on this machine. */
  readonly credentials?: Credentials | undefined;
  /** Milliseconds after which a ticket whose lease is not extended goes to others. Default 10000. */
  readonly leaseMs?: number | undefined;
  /** Bytes of all results that may be stored; workers wait beyond that. Default 1 GiB. */
  readonly maxStreamBytes?: number | undefined;
}

/** Milliseconds of the first connection. */
const CONNECT_MS = 3000;
/** Milliseconds between two attempts to reconnect, of which there is no limit. */
const RECONNECT_MS = 200;

/**
 * Parses the address of a server.
 * @param secured true where the connection is encrypted and authenticated
 * @throws {UserError} BAD_ARGUMENT for any other text, and for another machine that is not secured
 */
export function checkNatsUrl(text: string, secured = false): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'nats:' || url.hostname === '') {
    throw new UserError(
      'BAD_ARGUMENT',
      `expected the address of a NATS server, nats://host:4222, got '${redact(text)}'`,
    );
  }
  if (url.username !== '' || url.password !== '') {
    throw new UserError('BAD_ARGUMENT', `${redact(text)}: a key is not part of the address; give --creds <file>`);
  }
  if (!secured && !isLoopback(url)) {
    throw new UserError(
      'BAD_ARGUMENT',
      `${url.host} is another machine: that takes TLS and a key; longplay cluster init makes them for the server, then give --creds <role>.creds here`,
    );
  }
  return url;
}

/** Returns true for a loopback address. */
function isLoopback({ hostname }: URL): boolean {
  const host = hostname.replace(/^\[|\]$/g, '');
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host);
}

/**
 * Connects to a server, for one run.
 * @throws {UserError} BAD_ARGUMENT for an invalid address, name or credentials
 * @throws {LongplayError} REMOTE_FAILED where no server with JetStream answers within 3 s
 */
export async function connectNats(options: NatsOptions): Promise<Broker> {
  checkRunName(options.run);
  const { createInbox } = await import('@nats-io/transport-node');
  const { connection, js, admin } = await connectServer(options);
  const { credentials } = options;
  const newInbox = () => createInbox(credentials && inboxOf(credentials.role));
  const session = new NatsSession({ connection, js, admin, run: options.run, newInbox });
  return createBroker(session, options);
}

function createBroker(session: NatsSession, { leaseMs = LEASE_MS, maxStreamBytes = 2 ** 30 }: NatsOptions): Broker {
  const tickets = new NatsTicketQueue(session, leaseMs);
  const results = new NatsResultLog(session, maxStreamBytes);
  const weights = new NatsWeightsStore(session);
  return {
    tickets,
    results,
    weights,
    reports: new NatsWorkerReports(session),
    async prepare() {
      for (const one of [tickets, results, weights]) await one.prepare();
    },
    close: () => session.close(),
  };
}

function checkRunName(run: string): void {
  if (isRunName(run)) return;
  throw new UserError(
    'BAD_ARGUMENT',
    `run '${run}': at a broker a name has letters, digits, '-' and '_', 64 at most; choose another (--name)`,
  );
}

/** Lists the names of the runs that a server has. @throws as `connectNats` */
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

/** Creates the key of a user: its seed, which is secret, and its public half for the server. */
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
  const options: ConnectionOptions = {
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
    return await connect(options);
  } catch (thrown) {
    throw explainRefusal(host, credentials, thrown);
  }
}

/** Turns the error of a failed connection into one that names the cause and what to do. */
function explainRefusal(host: string, credentials: Credentials | undefined, thrown: unknown): LongplayError {
  const text = messageOf(thrown);
  const matches = (pattern: RegExp) => pattern.test(`${text} ${messageOf((thrown as Error).cause ?? '')}`);
  if (matches(/authorization|authentication/i)) {
    const why = credentials ? `does not know the key of this ${credentials.role}` : 'takes nobody without a key';
    return new UserError('BAD_ARGUMENT', `the NATS server at ${host} ${why}; give --creds of its own cluster init`);
  }
  if (matches(/certificate|self.signed|altnames/i)) {
    const why = credentials ? 'is not the one that the credentials know' : 'shows a certificate of its own';
    return new UserError(
      'BAD_ARGUMENT',
      `the NATS server at ${host} ${why} (${text}); give --creds of its cluster init`,
    );
  }
  if (credentials && matches(/tls/i)) {
    return new UserError(
      'BAD_ARGUMENT',
      `the NATS server at ${host} does not encrypt (${text}); start it with -c server.conf of longplay cluster init`,
    );
  }
  return new LongplayError('REMOTE_FAILED', `no NATS server answers at ${host}: ${text}; start one: nats-server -js`);
}
