/** A cluster that `longplay cluster init` has set up, on a real server: each role may do its own work, and nothing else. */
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect, nkeyAuthenticator } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Broker, measureLoad } from '../../src/cluster/broker.ts';
import { encodeCredentials, findCredentials, readCredentials } from '../../src/cluster/credentials.ts';
import { type InitialisedCluster, initCluster } from '../../src/cluster/init.ts';
import { connectNats, createUserKey, listRuns } from '../../src/cluster/nats/connect.ts';
import { inboxOf, listPermissions, ROLES, type Role } from '../../src/cluster/roles.ts';
import { freePort, type NatsServer, noServer, startNats } from '../support/nats-server.ts';
import { temporaryFolder } from '../support/small-run.ts';

const folder = temporaryFolder('security');
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const bytes = (text: string) => new TextEncoder().encode(text);

describe('cluster init', () => {
  it('writes keys that only their owner reads, and refuses a folder that has some', async () => {
    const dir = join(folder, 'files');
    const of = { dir, hosts: ['learner.lan', '10.0.0.7'], port: 4222, runs: [] };
    const { config, credentials, url } = await initCluster(of, createUserKey);
    expect(url).toBe('nats://learner.lan:4222');
    for (const path of [config, ...Object.values(credentials), join(dir, 'server-key.pem')]) {
      expect(statSync(path).mode & 0o077, path).toBe(0);
    }
    const text = readFileSync(config, 'utf8');
    expect(text).toContain('listen: "0.0.0.0:4222"');
    for (const role of ROLES) {
      const { seed } = readCredentials(credentials[role]);
      expect(text).not.toContain(seed); // the server has public keys alone
    }
    await expect(initCluster(of, createUserKey)).rejects.toThrow(/server\.conf is there already: choose another --dir/);
  });

  it('names a host that is none, a run that cannot be, and a folder that cannot be written', async () => {
    const init = (more: object) =>
      initCluster({ dir: join(folder, 'no'), hosts: [], port: 1, runs: [], ...more }, createUserKey);
    await expect(init({ hosts: ['a b'] })).rejects.toThrow(/--host 'a b': expected a name or an address/);
    await expect(init({ runs: ['*'] })).rejects.toThrow(/--run '\*'/);
    await expect(init({ dir: '/sys/nowhere' })).rejects.toThrow(/--dir: /);
    expect(existsSync(join(folder, 'no'))).toBe(false);
  });

  it('names the missing openssl in one line', async () => {
    const path = process.env.PATH;
    process.env.PATH = folder;
    try {
      await expect(
        initCluster({ dir: join(folder, 'bare'), hosts: [], port: 1, runs: [] }, createUserKey),
      ).rejects.toThrow(/by the openssl command, which does not start here .*install openssl/);
    } finally {
      process.env.PATH = path;
    }
  });
});

describe('credentials', () => {
  it('come from a flag or the environment; an invalid file is named, its content never shown', async () => {
    const { seed } = await createUserKey();
    const path = join(folder, 'mine.creds');
    writeFileSync(path, encodeCredentials({ role: 'worker', seed }));
    expect(readCredentials(path)).toEqual({ role: 'worker', seed, ca: undefined });
    process.env.LONGPLAY_CLUSTER_CREDS = path;
    try {
      expect(findCredentials(undefined)?.role).toBe('worker');
    } finally {
      delete process.env.LONGPLAY_CLUSTER_CREDS;
    }
    expect(findCredentials(undefined)).toBeUndefined();
    writeFileSync(path, `password ${seed}`);
    expect(() => readCredentials(path)).toThrow(/expected credentials as longplay cluster init writes them/);
    expect(() => readCredentials(path)).not.toThrow(seed);
    expect(() => readCredentials(join(folder, 'none.creds'))).toThrow(/no such file/);
  });
});

/** Subjects of run `mine`, of another, and of the server: each role may use its own, and no role another's. */
const PUBLISHED: readonly (readonly [string, readonly Role[]])[] = [
  ['$JS.API.INFO', ['learner', 'worker', 'observer']],
  ...['TICKETS', 'RESULTS', 'STATE'].flatMap((stream) => [
    ...['CREATE', 'UPDATE', 'PURGE'].map((call) => [`$JS.API.STREAM.${call}.LP_mine_${stream}`, ['learner']] as const),
    ...['DELETE', 'SNAPSHOT', 'RESTORE'].map((call) => [`$JS.API.STREAM.${call}.LP_mine_${stream}`, []] as const),
  ]),
  ['$JS.API.STREAM.INFO.LP_mine_STATE', ['learner']],
  ['$JS.API.STREAM.INFO.LP_mine_RESULTS', ['learner', 'observer']],
  ['$JS.API.CONSUMER.CREATE.LP_mine_TICKETS.workers.x', ['learner']],
  ['$JS.API.CONSUMER.CREATE.LP_mine_RESULTS', ['learner']],
  ['$JS.API.CONSUMER.INFO.LP_mine_RESULTS.r', ['learner']],
  ['$JS.API.CONSUMER.DELETE.LP_mine_RESULTS.r', ['learner']],
  ['lp.mine.ticket.1', ['learner']],
  ['lp.mine.announced.run', ['learner']],
  ['lp.mine.weights.v.0', ['learner']],
  ['lp.mine.result.1', ['worker']],
  ['lp.mine.worker.w', ['worker']],
  ['$JS.API.STREAM.MSG.DELETE.LP_mine_RESULTS', []],
  ['$JS.API.STREAM.MSG.GET.LP_mine_RESULTS', []],
  ['$JS.API.STREAM.INFO.LP_mine_TICKETS', ['learner', 'observer']],
  ['$JS.API.STREAM.NAMES', ['observer']],
  ['$JS.API.DIRECT.GET.LP_mine_STATE', ['learner', 'worker']],
  ['$JS.API.DIRECT.GET.LP_mine_STATE.lp.mine.weights.v.0', ['learner', 'worker']],
  ['$JS.API.DIRECT.GET.LP_mine_STATE.lp.mine.announced.run', ['learner', 'worker', 'observer']],
  ['$JS.API.DIRECT.GET.LP_mine_RESULTS', []],
  ['$JS.API.CONSUMER.DURABLE.CREATE.LP_mine_TICKETS.workers', ['learner']],
  ['$JS.API.CONSUMER.CREATE.LP_mine_RESULTS.r.x', ['learner']],
  ['$JS.API.CONSUMER.MSG.NEXT.LP_mine_RESULTS.r', ['learner']],
  ['$JS.API.CONSUMER.MSG.NEXT.LP_mine_TICKETS.workers', ['worker']],
  ['$JS.API.CONSUMER.DELETE.LP_mine_TICKETS.workers', []],
  ['$JS.API.CONSUMER.INFO.LP_mine_TICKETS.workers', ['learner', 'worker', 'observer']],
  ['$JS.ACK.LP_mine_TICKETS.workers.1.1.1.1.1', ['worker']],
  ['$JS.ACK.LP_mine_RESULTS.workers.1.1.1.1.1', []],
  ['lp.other.ticket.1', []],
  ['lp.other.result.1', []],
  ['lp.other.announced.run', []],
  ['lp.other.worker.w', []],
  ['$JS.API.STREAM.PURGE.LP_other_TICKETS', []],
  ['$JS.API.CONSUMER.MSG.NEXT.LP_other_TICKETS.workers', []],
  ['$JS.API.DIRECT.GET.LP_other_STATE', []],
  ['$SYS.REQ.SERVER.PING', []],
  ['anything', []],
];
const SUBSCRIBED: readonly (readonly [string, readonly Role[]])[] = [
  ['lp.mine.announced.run', ['learner', 'worker', 'observer']],
  ['lp.mine.worker.*', ['learner', 'observer']],
  ['lp.mine.result.*', []],
  ['lp.mine.ticket.*', []],
  ['lp.mine.weights.>', []],
  ['lp.other.announced.run', []],
  ...ROLES.map((role) => [`${inboxOf(role)}.x`, [role]] as const),
  ['_INBOX.>', []],
  ['>', []],
];

describe.skipIf(noServer)('on the server of a cluster,', () => {
  let server: NatsServer;
  let made: InitialisedCluster;
  const credentials = (role: Role) => readCredentials(made.credentials[role]);
  const brokers: Broker[] = [];
  const as = async (role: Role, run = 'mine') => {
    const broker = await connectNats({ url: server.url, run, credentials: credentials(role), leaseMs: 2000 });
    brokers.push(broker);
    return broker;
  };

  beforeAll(async () => {
    const port = await freePort();
    made = await initCluster({ dir: join(folder, 'cluster'), hosts: [], port, runs: ['mine', 'also'] }, createUserKey);
    server = await startNats(join(folder, 'cluster', 'store'), { config: made.config, port });
  });
  afterAll(async () => {
    for (const broker of brokers) await broker.close();
    await server?.kill();
  });

  it('a group goes round: issued by the learner, played by a worker, looked at by an observer', async () => {
    const learner = await as('learner');
    const worker = await as('worker');
    const observer = await as('observer');
    await learner.prepare();
    await learner.weights.put('v0', new Uint8Array(600_000));
    const received: string[] = [];
    observer.reports.subscribe((name) => received.push(name));
    worker.weights.onAnnouncement(() => received.push('announced'));
    await sleep(50); // a subscription has no answer
    const revision = await learner.weights.announce(bytes('a'), 0);
    expect(await learner.weights.announce(bytes('b'), revision)).toBeGreaterThan(revision);
    await learner.tickets.put('1', bytes('one'));
    expect([...(await learner.tickets.list())]).toEqual(['1']);
    expect((await worker.weights.get('v0', 600_000))?.length).toBe(600_000);
    expect((await worker.weights.readAnnouncement())?.bytes).toEqual(
      (await observer.weights.readAnnouncement())?.bytes,
    );
    worker.reports.publish('w', bytes('hello'));
    const [ticket] = await worker.tickets.fetch(4, 1000);
    ticket!.extendLease();
    expect(await measureLoad(observer)).toMatchObject({ queued: 0, held: 1, results: 0 });
    await worker.results.put(ticket!.name, bytes('result'));
    ticket!.ack();
    const [result] = await learner.results.read(1000);
    expect(result!.name).toBe('1');
    await learner.results.removeUpTo(result!.position);
    await expect.poll(() => measureLoad(learner)).toMatchObject({ queued: 0, held: 0, results: 0 });
    await learner.tickets.put('2', bytes('two'));
    await learner.tickets.clear();
    await learner.weights.remove('v0');
    expect(await worker.weights.get('v0', 600_000)).toBeUndefined();
    await expect.poll(() => received.sort()).toEqual(['announced', 'announced', 'w']);
    expect(await listRuns({ url: server.url, credentials: credentials('observer') })).toEqual(['mine']);
  }, 30_000);

  it('each role may use its own subjects, and no others', async () => {
    const requests = { allowed: 0, refused: 0 };
    for (const role of ROLES) {
      const { seed, ca } = credentials(role);
      const connection = await connect({
        servers: `127.0.0.1:${server.port}`,
        tls: { ca: ca! },
        authenticator: nkeyAuthenticator(bytes(seed)),
        inboxPrefix: inboxOf(role),
      });
      let violated = false;
      void (async () => {
        for await (const status of connection.status()) if (status.type === 'error') violated = true;
      })();
      const check = async (what: string, mayRoles: readonly Role[], act: () => void) => {
        violated = false;
        act();
        await connection.flush();
        await new Promise((resolve) => setImmediate(resolve));
        const may = mayRoles.includes(role);
        expect(`${role} ${what}: ${violated ? 'refused' : 'allowed'}`).toBe(
          `${role} ${what}: ${may ? 'allowed' : 'refused'}`,
        );
        requests[may ? 'allowed' : 'refused']++;
      };
      for (const [subject, roles] of PUBLISHED) {
        await check(`publishes ${subject}`, roles, () => connection.publish(subject, new Uint8Array()));
      }
      for (const [subject, roles] of SUBSCRIBED) {
        await check(`subscribes to ${subject}`, roles, () => void connection.subscribe(subject, { callback() {} }));
      }
      await connection.close();
    }
    console.log(`permissions tried one by one: ${JSON.stringify(requests)}`);
    expect(requests.allowed).toBeGreaterThan(30);
    expect(requests.refused).toBeGreaterThan(60);
  }, 30_000);

  it('every permission that is given is among those tried', () => {
    const matches = (pattern: string, subject: string) => {
      const [a, b] = [pattern.split('.'), subject.split('.')];
      return (
        a.every((word, i) => (word === '>' ? i < b.length : word === '*' || word === b[i])) &&
        (a.at(-1) === '>' || a.length === b.length)
      );
    };
    const given = ROLES.flatMap((role) =>
      listPermissions(role, ['mine']).publish.map((pattern) => ({ role, pattern })),
    );
    expect(given.length).toBeGreaterThan(30);
    const untried = given.filter(
      ({ role, pattern }) => !PUBLISHED.some(([subject, roles]) => roles.includes(role) && matches(pattern, subject)),
    );
    expect(untried).toEqual([]);
  });

  it('refuses a client without key, with a key of another cluster, another certificate or another run, in one line', async () => {
    const { url } = server;
    const refused = (more: object) => connectNats({ url, run: 'mine', ...more });
    await expect(refused({})).rejects.toThrow(/takes nobody without a key|shows a certificate of its own/);
    const stranger = await createUserKey();
    const own = credentials('worker');
    await expect(refused({ credentials: { ...own, seed: stranger.seed } })).rejects.toThrow(
      /does not know the key of this worker; give --creds of its own cluster init/,
    );
    const other = await initCluster({ dir: join(folder, 'other'), hosts: [], port: 1, runs: [] }, createUserKey);
    const { ca } = readCredentials(other.credentials.worker);
    await expect(refused({ credentials: { ...own, ca } })).rejects.toThrow(/is not the one that the credentials know/);
    const elsewhere = await as('worker', 'elsewhere');
    await expect(elsewhere.weights.readAnnouncement()).rejects.toThrow(
      /do not let us do that to run 'elsewhere'.*another role or other runs/,
    );
  }, 30_000);

  it('a server without TLS gets no key, and one of another machine no connection without it', async () => {
    const plain = await startNats(join(folder, 'plain'));
    try {
      await expect(connectNats({ url: plain.url, run: 'mine', credentials: credentials('worker') })).rejects.toThrow(
        /does not encrypt/,
      );
    } finally {
      await plain.kill();
    }
    await expect(connectNats({ url: 'nats://10.0.0.1:4222', run: 'mine' })).rejects.toThrow(
      /another machine: that takes TLS and a key; longplay cluster init makes them/,
    );
  }, 30_000);
});
