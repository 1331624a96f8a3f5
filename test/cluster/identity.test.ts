/** A worker on a machine that has not what the run was announced with: exit 2, one line, what the run has and what is here. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Broker } from '../../src/cluster/broker.ts';
import { type Announcement, checkIdentity, clusterIdentity, encodeAnnouncement } from '../../src/cluster/identity.ts';
import { connectNats } from '../../src/cluster/nats/connect.ts';
import { digestOf, encodeWeights } from '../../src/learning/learner/weights-file.ts';
import { setUpLocalPolicy } from '../../src/policy/setup.ts';
import { loadWorld } from '../../src/world/open-world.ts';
import { type NatsServer, noServer, startNats } from '../support/nats-server.ts';
import { smallConfig, temporaryFolder, textcraftUrl } from '../support/small-run.ts';
import { typed } from '../support/typed.ts';

const folder = temporaryFolder('identity');
const config = smallConfig();
let announcement: Announcement;
let weights: Uint8Array;

beforeAll(async () => {
  const world = await loadWorld(textcraftUrl);
  const policy = setUpLocalPolicy<never, never>(config, world.view, undefined);
  weights = encodeWeights(policy.model, policy.params);
  const identity = clusterIdentity(policy as never, config);
  const facts = { format: 1, life: 1, version: 0, ended: false } as const;
  announcement = { ...facts, identity, config, digest: digestOf(weights), bytes: weights.length };
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What a run may have that this machine has not, and the message. */
const OTHERS: readonly (readonly [string, (of: Announcement) => unknown, RegExp])[] = [
  ['protocol', (of) => withIdentity(of, { protocol: 99 }), /has protocol 99, here it is 1/],
  ['version of longplay', (of) => withIdentity(of, { longplay: '9.9.9' }), /has longplay "9\.9\.9", here it is "0\./],
  ['world', (of) => withIdentity(of, { env: 'another' }), /has env "another", here it is "textcraft/],
  ['view', (of) => withIdentity(of, { view: 'v99' }), /has view "v99", here it is/],
  ['vocabulary', (of) => withIdentity(of, { vocabulary: 'words' }), /has vocabulary "words", here it is/],
  ['decoder', (of) => withIdentity(of, { decoder: 'tokens' }), /has decoder "tokens", here it is "choice"/],
  [
    'model',
    (of) => withIdentity(of, { model: { ...of.identity.model, hiddenSize: 8 } }),
    /has model\.hiddenSize 8, here it is 16/,
  ],
  [
    'a world of its own',
    (of) => withIdentity(of, { world: 'a'.repeat(64) }),
    /has a world of its user's own; name it on this machine: --env/,
  ],
  [
    'options of the world',
    (of) => ({ ...of, config: { ...of.config, env: { id: 'textcraft', options: { rows: 3 } } } }),
    /rows/,
  ],
  ['unknown world', (of) => ({ ...of, config: { ...of.config, env: { id: 'textcrft' } } }), /textcrft/],
  [
    'keys of a configuration',
    (of) => ({ ...of, config: { ...of.config, learner: { maxLg: 1 } } }),
    /unknown key 'learner\.maxLg'/,
  ],
  ['an announcement that is none', () => ({ format: 7 }), /the announcement of the run: /],
];

function withIdentity(of: Announcement, more: object): unknown {
  return { ...of, identity: { ...of.identity, ...more } };
}

describe.skipIf(noServer)('a worker', () => {
  let server: NatsServer;
  let broker: Broker;
  let revision = 0;

  beforeAll(async () => {
    server = await startNats(join(folder, 'store'));
    broker = await connectNats({ url: server.url, run: 'one' });
    await broker.prepare();
    await broker.weights.put(announcement.digest, weights);
  });
  afterAll(async () => {
    await broker?.close();
    await server?.kill();
  });

  for (const [what, change, pattern] of OTHERS) {
    it(`without the run's ${what} fails with one line`, async () => {
      revision = await broker.weights.announce(encodeAnnouncement(change(announcement) as Announcement), revision);
      const { status, stdout, stderr } = await typed('worker', server.url, '--run', 'one');
      expect(stderr).toMatch(pattern);
      expect([status, stdout, stderr.trim().split('\n').length]).toEqual([what.includes('is none') ? 1 : 2, '', 1]);
    }, 60_000);
  }

  it('of another run, or one that has no longplay behind it, is refused: none is announced', async () => {
    const { status, stderr } = await typed('worker', server.url, '--run', 'other');
    expect([status, stderr.trim().split('\n').length]).toEqual([2, 1]);
    expect(stderr).toMatch(
      /no run 'other' is announced at nats:.*; its learner: longplay train … --name other --cluster/,
    );
  }, 60_000);

  it('whose weights are gone fails with one line', async () => {
    revision = await broker.weights.announce(encodeAnnouncement({ ...announcement, digest: 'f'.repeat(64) }), revision);
    const { status, stderr } = await typed('worker', server.url, '--run', 'one');
    expect(status).toBe(1);
    expect(stderr).toMatch(/the weights of update 0 are not at the broker; start the worker again/);
  }, 60_000);
});

describe('identities', () => {
  it('that are alike pass, whatever the order of their keys', () => {
    const { identity } = announcement;
    const turned = Object.fromEntries(Object.entries(identity).reverse()) as unknown as typeof identity;
    expect(() => checkIdentity('x', turned, identity)).not.toThrow();
  });
});
