/** Roles in a cluster, and the subjects of the NATS server that each may use. Everything else is denied. */

/** Learner: trains. Worker: plays. Observer: reads the status (`longplay cluster status`). */
export const ROLES = ['learner', 'worker', 'observer'] as const;
export type Role = (typeof ROLES)[number];

export function isRole(text: string | undefined): text is Role {
  return (ROLES as readonly (string | undefined)[]).includes(text);
}

/** Names of a run at the server: streams, and subjects by kind and name. A `*` as the run stands for every run. */
export interface RunNames {
  readonly tickets: string;
  readonly results: string;
  readonly state: string;
  readonly subject: (kind: string, name: string) => string;
}

/** Returns the names of a run. @param run as `isRunName` has it, or `*` */
export function runNames(run: string): RunNames {
  const stream = (kind: string) => (run === '*' ? '*' : `LP_${run}_${kind}`);
  return {
    tickets: stream('TICKETS'),
    results: stream('RESULTS'),
    state: stream('STATE'),
    subject: (kind, name) => `lp.${run}.${kind}.${name}`,
  };
}

/** Name of the workers' consumer of tickets. */
export const WORKERS = 'workers';

/** Returns the prefix of a role's inboxes: no role may subscribe to another's. */
export function inboxOf(role: Role): string {
  return `_INBOX.${role}`;
}

export interface Permissions {
  readonly publish: readonly string[];
  readonly subscribe: readonly string[];
}

/** Lists the permissions of a role. @param runs names; none: every run of the server */
export function listPermissions(role: Role, runs: readonly string[]): Permissions {
  const named = runs.length === 0 ? ['*'] : runs;
  const publish = new Set(named.flatMap((run) => PUBLISH[role](runNames(run))));
  const subscribe = new Set([`${inboxOf(role)}.>`, ...named.flatMap((run) => SUBSCRIBE[role](runNames(run)))]);
  return { publish: [...publish], subscribe: [...subscribe] };
}

const API = '$JS.API';

const PUBLISH: Readonly<Record<Role, (names: RunNames) => readonly string[]>> = {
  learner: ({ tickets, results, state, subject }) => [
    `${API}.INFO`,
    subject('ticket', '*'),
    subject('announced', 'run'),
    subject('weights', '>'),
    ...[tickets, results, state].flatMap((stream) =>
      ['CREATE', 'UPDATE', 'INFO', 'PURGE'].map((call) => `${API}.STREAM.${call}.${stream}`),
    ),
    ...listReads(state),
    `${API}.CONSUMER.DURABLE.CREATE.${tickets}.${WORKERS}`,
    `${API}.CONSUMER.CREATE.${tickets}.>`,
    `${API}.CONSUMER.INFO.${tickets}.${WORKERS}`,
    // The learner's own consumer of results, which the client creates, names and deletes.
    ...['CREATE', 'INFO', 'MSG.NEXT', 'DELETE'].map((call) => `${API}.CONSUMER.${call}.${results}.>`),
    `${API}.CONSUMER.CREATE.${results}`,
  ],
  worker: ({ tickets, state, subject }) => [
    `${API}.INFO`,
    subject('result', '*'),
    subject('worker', '*'),
    `${API}.CONSUMER.INFO.${tickets}.${WORKERS}`,
    `${API}.CONSUMER.MSG.NEXT.${tickets}.${WORKERS}`,
    `$JS.ACK.${tickets}.${WORKERS}.>`,
    ...listReads(state),
  ],
  observer: ({ tickets, results, state, subject }) => [
    `${API}.INFO`,
    `${API}.STREAM.NAMES`,
    `${API}.STREAM.INFO.${tickets}`,
    `${API}.STREAM.INFO.${results}`,
    `${API}.CONSUMER.INFO.${tickets}.${WORKERS}`,
    `${API}.DIRECT.GET.${state}.${subject('announced', 'run')}`, // and not the weights
  ],
};

const SUBSCRIBE: Readonly<Record<Role, (names: RunNames) => readonly string[]>> = {
  learner: ({ subject }) => [subject('announced', 'run'), subject('worker', '*')],
  worker: ({ subject }) => [subject('announced', 'run')],
  observer: ({ subject }) => [subject('announced', 'run'), subject('worker', '*')],
};

/** Lists the requests that read single messages of a stream. */
function listReads(stream: string): string[] {
  return [`${API}.DIRECT.GET.${stream}`, `${API}.DIRECT.GET.${stream}.>`];
}

/** User of a server's configuration: a role and its public key. */
export interface RoleKey {
  readonly role: Role;
  /** `U…` */
  readonly publicKey: string;
}

export interface ServerSettings {
  /** Address to listen on, and port. */
  readonly host: string;
  readonly port: number;
  /** Paths of the certificate and its key, and of the folder of streams. */
  readonly certificate: string;
  readonly key: string;
  readonly store: string;
  /** Bytes of all streams on the disk. A full disk blocks the whole server, so this is less than there is. */
  readonly maxStoreBytes: number;
  readonly users: readonly RoleKey[];
  /** Runs that the keys are for; none: every run. */
  readonly runs: readonly string[];
}

/** Bytes of one message: a result is at most 8 MiB. */
const MAX_PAYLOAD = 8 * 2 ** 20;

/** Writes the configuration of a NATS server, 2.9 or newer. */
export function formatServerConfig(settings: ServerSettings): string {
  const { host, port, certificate, key, store, maxStoreBytes, users, runs } = settings;
  const list = (subjects: readonly string[]) => subjects.map((one) => `          ${quote(one)}`).join('\n');
  const user = ({ role, publicKey }: RoleKey) => {
    const { publish, subscribe } = listPermissions(role, runs);
    return `    # ${role}
    {
      nkey: ${publicKey}
      permissions: {
        publish: { allow: [
${list(publish)}
        ] }
        subscribe: { allow: [
${list(subscribe)}
        ] }
      }
    }`;
  };
  return `# NATS server of a longplay cluster, written by longplay cluster init
listen: ${quote(`${host.includes(':') ? `[${host}]` : host}:${port}`)}
max_payload: ${MAX_PAYLOAD}

jetstream {
  store_dir: ${quote(store)}
  max_file_store: ${maxStoreBytes}
}

tls {
  cert_file: ${quote(certificate)}
  key_file: ${quote(key)}
  timeout: 5
}

authorization {
  users: [
${users.map(user).join('\n')}
  ]
}
`;
}

function quote(text: string): string {
  return JSON.stringify(text);
}
