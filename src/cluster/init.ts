/**
 * Setup of a cluster: the files of a NATS server that requires TLS and a key, and the credentials of each role. The
 * certificate is made by the `openssl` command; nothing is downloaded, and no server is started.
 */
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, statfsSync, writeFileSync } from 'node:fs';
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { readText } from '../core/bounded-file.ts';
import { messageOf, UserError } from '../core/errors.ts';
import { makeFolder } from '../storage/atomic-file.ts';
import { isRunName } from './broker.ts';
import { encodeCredentials } from './credentials.ts';
import { formatServerConfig, ROLES, type Role, type RoleKey } from './roles.ts';

export interface InitOptions {
  /** Folder for the files; it must not hold a cluster yet. */
  readonly dir: string;
  /** Names and addresses that other machines reach the server by; none: it listens on loopback alone. */
  readonly hosts: readonly string[];
  readonly port: number;
  /** Runs that the keys are for; none: every run of the server. */
  readonly runs: readonly string[];
}

export interface InitialisedCluster {
  readonly config: string;
  readonly credentials: Readonly<Record<Role, string>>;
  /** Address for the learner and the workers. */
  readonly url: string;
}

/** Days that a certificate is good for. */
const DAYS = 825;
/** Share of the free disk that streams may take, and its bound in bytes. */
const STORE_SHARE = 0.5;
const MAX_STORE_BYTES = 64 * 2 ** 30;
const LOOPBACK = ['localhost', '127.0.0.1', '::1'];

/**
 * Writes server.conf, the server's certificate and key, and credentials for each role.
 * @param createKey makes a user's nkey
 * @throws {UserError} for a folder that holds a cluster, an invalid host or run, or a machine without openssl
 */
export async function initCluster(
  { dir, hosts, port, runs }: InitOptions,
  createKey: () => Promise<{ readonly seed: string; readonly publicKey: string }>,
): Promise<InitialisedCluster> {
  for (const host of hosts) checkHost(host);
  for (const run of runs) {
    if (isRunName(run)) continue;
    throw new UserError(
      'BAD_ARGUMENT',
      `--run '${run}': at a broker a name has letters, digits, '-' and '_', 64 at most`,
    );
  }
  const root = resolve(dir);
  const config = join(root, 'server.conf');
  if (existsSync(config)) {
    throw new UserError(
      'RUN_EXISTS',
      `${config} is there already: choose another --dir, or remove that folder (the keys in it end with it)`,
    );
  }
  const file = (name: string) => join(root, name);
  const names = [...new Set([...hosts, ...LOOPBACK, ...(isHostName(hostname()) ? [hostname()] : [])])];
  makePrivateFolder(root);
  writeFileSync(file('.gitignore'), '*\n'); // keys
  const certificate = file('server.pem');
  const key = file('server-key.pem');
  makeCertificate(certificate, key, names);
  chmodSync(key, 0o600);
  const ca = readText(certificate);
  const users: RoleKey[] = [];
  const credentials = {} as Record<Role, string>;
  for (const role of ROLES) {
    const { seed, publicKey } = await createKey();
    users.push({ role, publicKey });
    credentials[role] = file(`${role}.creds`);
    writeFileSync(credentials[role], encodeCredentials({ role, seed, ca }), { mode: 0o600 });
  }
  const { bavail, bsize } = statfsSync(root);
  const maxStoreBytes = Math.floor(Math.min(MAX_STORE_BYTES, STORE_SHARE * bavail * bsize));
  const host = hosts.length === 0 ? '127.0.0.1' : '0.0.0.0';
  const store = file('store');
  const settings = { host, port, certificate, key, store, maxStoreBytes, users, runs };
  writeFileSync(config, formatServerConfig(settings), { mode: 0o600 });
  const [first = '127.0.0.1'] = hosts;
  return { config, credentials, url: `nats://${isIP(first) === 6 ? `[${first}]` : first}:${port}` };
}

function makePrivateFolder(dir: string): void {
  try {
    makeFolder(dir);
    chmodSync(dir, 0o700);
  } catch (thrown) {
    throw new UserError('NO_PERMISSION', `--dir: ${messageOf(thrown)}`);
  }
}

/** Makes a self-signed certificate, which is also the authority that clients check the server by. */
function makeCertificate(certificate: string, key: string, names: readonly string[]): void {
  const alternatives = names.map((name) => (isIP(name) ? `IP:${name}` : `DNS:${name}`)).join(',');
  const made = spawnSync(
    'openssl',
    [
      ...['req', '-x509', '-nodes', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-days', String(DAYS)],
      ...['-subj', '/CN=longplay cluster', '-addext', `subjectAltName=${alternatives}`],
      ...['-keyout', key, '-out', certificate],
    ],
    { encoding: 'utf8' },
  );
  if (made.error) {
    throw new UserError(
      'BAD_ARGUMENT',
      `cluster init makes certificates by the openssl command, which does not start here (${messageOf(made.error)}); install openssl, then type this again`,
    );
  }
  if (made.status !== 0) {
    const reason = made.stderr.trim().split('\n').slice(-1)[0];
    throw new UserError('BAD_ARGUMENT', `openssl made no certificate for ${names.join(', ')}: ${reason}`);
  }
}

function isHostName(text: string): boolean {
  return /^(?=.{1,253}$)[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$/.test(text);
}

function checkHost(host: string): void {
  if (isIP(host) || isHostName(host)) return;
  throw new UserError(
    'BAD_ARGUMENT',
    `--host '${host}': expected a name or an address of this machine, as learner.lan`,
  );
}
