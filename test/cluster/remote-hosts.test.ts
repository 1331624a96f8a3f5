/** Env hosts on other machines: how they are found, what becomes of a machine that goes away, and what is not believed. */
import { afterEach, describe, expect, it } from 'vitest';
import { createEnvPool, type EnvPool, type EnvPoolOptions } from '../../actors/env/env-pool.ts';
import { hostIdentity, moduleOf } from '../../actors/env/host-identity.ts';
import type { EnvEvent, Observed } from '../../actors/env/protocol.ts';
import { decodeSign, encodeSign } from '../../actors/env/remote-sign.ts';
import { encodeCall, HOST_PROTOCOL, type HostCall } from '../../src/cluster/host-call.ts';
import { noModule, RemoteMachines } from '../support/remote-hosts.ts';

const url = new URL('../support/faulty-env.ts', import.meta.url);
const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

function machines(): RemoteMachines {
  const far = new RemoteMachines();
  open.push(far);
  return far;
}

async function poolOn(far: RemoteMachines, options: Partial<EnvPoolOptions> = {}): Promise<EnvPool> {
  const pool = await createEnvPool({
    envs: [{ id: 'faulty', url }],
    threads: 2,
    isolation: 'remote',
    stepDeadlineMs: 20_000,
    openDeadlineMs: 20_000,
    hosts: far.hosts(),
    ...options,
  });
  open.unshift(pool); // before its machines
  return pool;
}

/** Next event of an episode. */
function answer(pool: EnvPool, episode: number): Promise<EnvEvent> {
  return new Promise((resolve) => {
    const subscription = pool.observations$.subscribe((event) => {
      if (event.episode !== episode) return;
      subscription.unsubscribe();
      resolve(event);
    });
  });
}

const said = (event: EnvEvent) => (event as Observed).step.observation;

function opened(pool: EnvPool, episode: number): Promise<EnvEvent> {
  const next = answer(pool, episode);
  pool.tell({ type: 'open', episode, attempt: 1, task: { env: 'faulty', index: episode, seed: 0 } });
  return next;
}

function stepped(pool: EnvPool, episode: number, turn: number, action: string): Promise<EnvEvent> {
  const next = answer(pool, episode);
  pool.tell({ type: 'step', episode, turn, action });
  return next;
}

describe('env hosts on other machines', { timeout: 60_000 }, () => {
  it('are spread over them; those of one that is cut off are begun anew on the others, and no episode is blamed', async () => {
    const far = machines();
    const [first, second] = [far.add(2, () => url), far.add(2, () => url)];
    const pool = await poolOn(far);
    expect([first.size, second.size]).toEqual([1, 1]); // the one with more free places is taken
    await Promise.all([1, 2].map((episode) => opened(pool, episode)));
    for (const episode of [1, 2]) await stepped(pool, episode, 1, '+3');
    const thinking = [1, 2].map((episode) => stepped(pool, episode, 2, 'slow'));
    far.connections[0]!.isCut = true;
    for (const one of thinking) expect(said(await one)).toBe('sum 3 slowly');
    for (const episode of [1, 2]) {
      expect(said(await stepped(pool, episode, 3, '+1'))).toBe(`task ${episode}: sum 4`);
    }
    const stats = pool.stats();
    expect(stats).toMatchObject({ open: 2, restored: 1, failed: {} });
    expect(stats.hosts.reduce((sum, { replaced }) => sum + replaced, 0)).toBe(1);
    expect(second.size).toBe(2);
    await expect.poll(() => first.size, { timeout: 10_000 }).toBe(0); // it hears nothing either: it ends what nobody asks for
  });

  it('of a machine that leaves are begun anew at once; where none has a place, as soon as one has', async () => {
    const far = machines();
    const first = far.add(1, () => url);
    const pool = await poolOn(far, { threads: 1 });
    await opened(pool, 1);
    await stepped(pool, 1, 1, '+5');
    await first.close();
    const next = stepped(pool, 1, 2, '+1');
    await new Promise((resolve) => setTimeout(resolve, 3600));
    expect(far.notices).toEqual([
      'no machine offers a place for env hosts; start one: longplay worker; waiting for one',
    ]);
    far.add(1, () => url);
    expect(said(await next)).toBe('task 1: sum 6');
    expect(pool.stats()).toMatchObject({ restored: 1, failed: {} });
  });

  it('that have no place are waited for; that cannot have this world end the run with what differs', async () => {
    const far = machines();
    far.add(1, noModule);
    await expect(poolOn(far)).rejects.toMatchObject({
      code: 'BAD_CONFIG',
      message: 'no machine can host this world: machine-0: the run has env "other", here it is "test"',
    });
    expect(far.notices[0]).toContain('a run cannot have hosts here: the run has env "other"');
  });

  it('that tell other facts about their world than this machine knows are not believed', async () => {
    const far = machines();
    far.add(2, () => url);
    const facts = { replay: 'exact', bounds: { minReward: 0, maxReward: 9, maxObservationChars: 1000 } } as const;
    await expect(poolOn(far, { hosts: far.hosts({ facts }) })).rejects.toThrow(/tells other facts about its world/);
    await expect.poll(() => far.servers[0]!.size, { timeout: 10_000 }).toBe(0);
  });

  it('hear each other through bytes that are no message of theirs', async () => {
    const far = machines();
    const server = far.add(1, () => url);
    const noise = far.exchange.connect();
    for (const bytes of [new Uint8Array(), Uint8Array.of(0), Uint8Array.of(99, 1, 2), new Uint8Array(300_000)]) {
      noise.say({ kind: 'call' }, bytes);
    }
    const call: HostCall = {
      type: 'call',
      channel: 'f'.repeat(32),
      identity: { protocol: HOST_PROTOCOL, longplay: 'x', env: 'y' },
      options: {},
    };
    noise.say({ kind: 'call' }, encodeCall(call)); // an offer that nobody takes
    noise.say({ kind: 'up', channel: call.channel }, Uint8Array.of(17, 1, 2, 3));
    const pool = await poolOn(far, { threads: 1 });
    expect(said(await opened(pool, 1))).toBe('task 1');
    expect(server.started).toBe(1);
  });
});

describe('the world of a call', () => {
  const call = (env: Parameters<typeof hostIdentity>[0], more: object = {}): HostCall => ({
    type: 'call',
    channel: '0'.repeat(32),
    identity: { ...hostIdentity(env), ...more },
    options: env.options,
  });
  const textcraft = { id: 'textcraft', options: {} };
  const own = { id: new URL('../support/curious-env.ts', import.meta.url).pathname, options: {} };

  it('is one of the package by its id, and a user’s own by its bytes; its path comes from this machine', () => {
    expect(moduleOf(call(textcraft), undefined).href).toMatch(/textcraft/);
    expect(moduleOf(call(own), own.id).pathname).toBe(own.id);
    expect(JSON.stringify(call(own))).not.toContain('curious');
  });

  it.each([
    [
      'another version',
      () => moduleOf(call(textcraft, { longplay: '9.9.9' }), undefined),
      /longplay "9.9.9", here it is/,
    ],
    [
      'another protocol',
      () => moduleOf(call(textcraft, { protocol: 0 }), undefined),
      new RegExp(`has protocol 0, here it is ${HOST_PROTOCOL}`),
    ],
    [
      'a world nobody knows',
      () => moduleOf(call({ ...textcraft, id: 'textcrft' }), undefined),
      /did you mean 'textcraft'/,
    ],
    ['other bytes', () => moduleOf(call(own, { world: 'ff' }), own.id), /has world "ff", here it is "[0-9a-f]{64}"/],
    ['an own world that is not named here', () => moduleOf(call(own), undefined), /name it here: --env/],
    ['a path from elsewhere', () => moduleOf(call(textcraft, { env: '/etc/x.mjs' }), undefined), /by a path/],
    [
      'a path inside its options',
      () =>
        moduleOf(
          {
            ...call(textcraft),
            identity: { ...call(textcraft).identity, env: 'agentgym' },
            options: { world: './x.mjs' },
          },
          undefined,
        ),
      /by a path/,
    ],
  ])('is refused for %s, in one line', (_, made, words) => {
    expect(made).toThrow(words);
  });
});

it('a sign of life is five numbers, or none', () => {
  const sign = { beacon: { current: -1, began: 3, calls: 7 }, overweight: -5e8, waitedMs: 12.5 };
  expect(decodeSign(encodeSign(sign))).toEqual(sign);
  expect(decodeSign(new Uint8Array(39))).toBeUndefined();
  for (const odd of [
    [0.5, 0, 0, 0, 0],
    [0, 0, 0, 0, Number.NaN],
    [0, 0, 0, 0, -1],
  ]) {
    expect(decodeSign(new Uint8Array(Float64Array.from(odd).buffer)), odd.join()).toBeUndefined();
  }
  expect(decodeSign(encodeSign({ ...sign, overweight: Number.NEGATIVE_INFINITY }))?.overweight).toBe(0);
});
