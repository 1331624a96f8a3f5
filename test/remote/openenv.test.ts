/**
 * Worlds behind OpenEnv servers: one of ours plays as it would here, and its episodes outlive their connections; with
 * another's no action is sent twice, and nothing that it does wrong becomes a reward.
 */
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Env, Session } from '../../src/core/env.ts';
import type { World } from '../../src/core/world.ts';
import { connect } from '../../src/remote/env/openenv.ts';
import { findWorld, worldUrl } from '../../src/run/find-world.ts';
import { startEnvServer } from '../../src/run/serve-worlds.ts';
import { factsOf, readFacts } from '../../src/world/facts.ts';
import { type Message, type OpenEnvFault, type OpenEnvServer, openEnvServer } from '../support/openenv-server.ts';

vi.setConfig({ testTimeout: 60_000 });
const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const TOKEN = 'LONGPLAY_SERVER_TOKEN';
const quick = { attemptMs: 400, deadlineMs: 2500, attempts: 4 };
const textAction = { properties: { message: { type: 'string' }, metadata: {} }, required: ['message'] };
const task = (env: Env, index = 3) => ({ env: env.id, index, seed: 7 });

/** A server that is not ours: it echoes, and pays a quarter for each action until it is done. */
async function foreign(options: {
  readonly action?: unknown;
  readonly observe?: (text: string) => object;
  readonly faultOf?: (n: number, message: Message) => OpenEnvFault;
}): Promise<OpenEnvServer & { readonly steps: readonly unknown[] }> {
  const steps: unknown[] = [];
  const { observe = (text) => ({ echo: text }) } = options;
  const server = await openEnvServer({
    pages: {
      '/schema': { action: options.action ?? textAction, observation: {}, state: {} },
      '/metadata': { name: 'Echo Env', description: 'It echoes.' },
    },
    session() {
      let taken = 0;
      return {
        answer({ type, data }) {
          if (type === 'reset') {
            taken = 0;
            return { observation: observe(`start ${data?.seed}`), reward: null, done: false };
          }
          steps.push(data);
          const done = ++taken === 4;
          return { observation: observe(`after ${JSON.stringify(data)}`), reward: done ? 0.25 : null, done };
        },
      };
    },
    ...(options.faultOf ? { faultOf: options.faultOf } : {}),
  });
  closing.push(() => server.close());
  return Object.assign(server, { steps });
}

describe('a server that is not ours', () => {
  it('is a world: tasks are seeds, text goes into the text field, null pays 0, done ends', async () => {
    const server = await foreign({});
    const { env } = await findWorld(`openenv+${server.url}`, { ...quick, tasks: 20 });
    expect(env).toMatchObject({ id: 'openenv', description: 'It echoes.', replay: 'never' });
    expect([env.tasks.count, env.tasks.split('train').length, env.tasks.split('test')]).toEqual([20, 18, [18, 19]]);
    const session = await env.open(task(env));
    expect(session.first).toEqual({ kind: 'first', observation: 'start 3' });
    expect(session.actions()).toEqual([]);
    const hi = await session.step('hi');
    expect(hi).toEqual({ kind: 'mid', observation: 'after {"message":"hi"}', reward: 0 });
    await session.step('a');
    await session.step('b');
    expect(await session.step('c')).toMatchObject({ kind: 'terminated', reward: 0.25, success: true });
    expect(await session.step('after the end')).toMatchObject({ kind: 'terminated', reward: 0 });
    await session.close();
    expect(server.steps).toHaveLength(4);
    await vi.waitFor(() => expect(server.connections).toBe(0));
  });

  it('is sent one JSON object where an action needs more than a text, and another text is answered in words', async () => {
    const action = { properties: { row: { type: 'integer' }, col: { type: 'integer' } }, required: ['row', 'col'] };
    const observe = (text: string) => ({ board: [text], turn: 1, metadata: {} });
    const server = await foreign({ action, observe });
    const { env } = await findWorld(`openenv+${server.url}`, quick);
    const session = await env.open(task(env));
    expect(session.first.observation).toBe('{"board":["start 3"],"turn":1}');
    for (const text of ['hello', '[1]', 'null', '{"row":']) {
      const { kind, observation, reward } = await session.step(text);
      expect([kind, reward]).toEqual(['mid', 0]);
      expect(observation).toBe('Invalid action: expected one JSON object with the fields row, col.');
    }
    expect(await session.step(' {"row": 1, "col": 2} ')).toMatchObject({ kind: 'mid' });
    expect(server.steps).toEqual([{ row: 1, col: 2 }]);
    await session.close();
  });

  it.each([
    [{ properties: { code: { type: 'string' }, timeout: { type: 'number' } }, required: ['code'] }, { code: 'x' }],
    [{ properties: { text: { anyOf: [{ type: 'string' }, { type: 'null' }] } } }, { text: 'x' }],
    [{ properties: { a: { type: 'string' }, b: { type: 'string' } }, required: ['a', 'b'] }, undefined],
    [{ properties: { a: { type: 'string' }, b: { type: 'string' } } }, undefined],
    [{ properties: { n: { type: 'integer' } }, required: ['n'] }, undefined],
  ])('takes text where %o needs no more: %o', async (action, sent) => {
    const server = await foreign({ action });
    const { env } = await findWorld(`openenv+${server.url}`, quick);
    const session = await env.open(task(env));
    await session.step('x');
    expect(server.steps).toEqual(sent === undefined ? [] : [sent]);
    await session.close();
  });

  const isStep = ({ type }: Message) => type === 'step';
  it.each([
    ['closed', /the connection was closed \(1011, restarting\)/],
    ['cut', /the connection was closed \(1006\)/],
    ['error', /the server reports EXECUTION_ERROR: it is EXECUTION_ERROR/],
    ['full', /gives no session/],
    ['not-json', /no JSON object: <html>upstream error/],
    ['binary', /no JSON object: binary data/],
    ['not-websocket', /Invalid WebSocket frame/],
    ['other-type', /expected an answer of type 'observation', got 'state'/],
    ['no-observation', /not an observation/],
    ['text-reward', /not an observation/],
    ['oversized', /more than 16777216 bytes/],
    ['silence', /no whole answer within 400 ms/],
  ] as const)('that does this to a step, %s, fails the episode and is sent no action twice', async (fault, message) => {
    let count = 0;
    const server = await foreign({ faultOf: (_, one) => (isStep(one) && ++count === 2 ? fault : 'ok') });
    const { env } = await findWorld(`openenv+${server.url}`, quick);
    const session = await env.open(task(env));
    await session.step('a');
    await expect(Promise.resolve(session.step('b'))).rejects.toThrow(message);
    expect(server.log.filter(isStep)).toHaveLength(2);
    await session.close();
  });

  it.each(['closed', 'full', 'not-json', 'silence', 'no-observation', 'cut', 'slow'] as const)(
    'that does this to a first reset, %s, is asked again',
    async (fault) => {
      const server = await foreign({ faultOf: (n) => (n === 0 ? fault : 'ok') });
      const { env } = await findWorld(`openenv+${server.url}`, quick);
      const session = await env.open(task(env));
      expect(session.first.observation).toBe('start 3');
      await session.close();
      await vi.waitFor(() => expect(server.connections).toBe(0));
    },
  );

  it('that refuses an action as invalid has its words for an observation', async () => {
    const server = await foreign({ faultOf: (n) => (n === 1 ? 'invalid' : 'ok') });
    const { env } = await findWorld(`openenv+${server.url}`, quick);
    const session = await env.open(task(env));
    expect(await session.step('x')).toMatchObject({ kind: 'mid', reward: 0, observation: /VALIDATION_ERROR/ });
    expect(await session.step('y')).toMatchObject({ kind: 'mid', observation: 'after {"message":"y"}' });
    await session.close();
  });

  it('that sends an answer unasked is believed no further', async () => {
    const server = await foreign({ faultOf: (n) => (n === 1 ? 'twice' : 'ok') });
    const { env } = await findWorld(`openenv+${server.url}`, quick);
    const session = await env.open(task(env));
    await session.step('a');
    await vi.waitFor(() => expect(server.connections).toBe(0));
    await expect(Promise.resolve(session.step('b'))).rejects.toThrow(/nothing was asked for/);
  });

  it('that never answers a reset fails within the deadline', async () => {
    const server = await foreign({ faultOf: () => 'silence' });
    const { env } = await findWorld(`openenv+${server.url}`, { attemptMs: 100, deadlineMs: 150 });
    await expect(env.open(task(env))).rejects.toThrow('no whole answer');
  });

  it('is sent the token of the variable that tokenEnv names', async () => {
    vi.stubEnv('MY_HUB_TOKEN', 'hub-12345678');
    const server = await foreign({ observe: (text) => ({ echo: `${text} hub-12345678` }) });
    const { env } = await findWorld(`openenv+${server.url}`, { ...quick, tokenEnv: 'MY_HUB_TOKEN' });
    const session = await env.open(task(env));
    expect(session.first.observation).toBe('start 3 [key]');
    await session.close();
    expect(new Set(server.authorizations)).toEqual(new Set(['Bearer hub-12345678']));
    vi.unstubAllEnvs();
  });
});

describe('mistakes are one message', () => {
  it.each([
    ['no server', {}, /expected an OpenEnv server \(with \/schema, \/metadata and \/ws\); .*HTTP 404/],
    ['a page', { '/schema': '<html>', '/metadata': {} }, /expected an OpenEnv server .*not JSON: <html>/],
    ['another schema', { '/schema': { action: 7 }, '/metadata': {} }, /action: expected the JSON schema of an object/],
    [
      'facts that are none',
      { '/schema': { action: textAction }, '/metadata': { name: 'x', longplay: { tasks: 1 } } },
      /rewardRange: /,
    ],
  ])('%s', async (_, pages, message) => {
    const server = await openEnvServer({ pages, session: () => ({ answer: () => ({}) }) });
    closing.push(() => server.close());
    await expect(connect(server.url, TOKEN)).rejects.toThrow(message);
  });

  it('in the URL, and in the options', async () => {
    expect(() => worldUrl('openenv+ftp://x')).toThrow(/expected e\.g\. openenv\+http:\/\/127\.0\.0\.1:8000/);
    expect(() => worldUrl('openenv+nonsense')).toThrow(/got 'openenv\+nonsense'/);
    expect(() => worldUrl('openenv+http://me:secret@host')).toThrow(/no name or password/);
    expect(() => worldUrl('openenv+http://me:secret@host')).not.toThrow(/secret/);
    const server = await foreign({});
    const id = `openenv+${server.url}`;
    await expect(findWorld(id, { taks: 3 })).rejects.toThrow(/openenv has no option 'taks'; it has: tasks, attemptMs/);
    await expect(findWorld(id, { tasks: 0 })).rejects.toThrow(/tasks: expected a number from 1/);
  });
});

/** Our own server in miniature: it counts, says its facts, and replays. */
async function ours(faultOf: (n: number, message: Message) => OpenEnvFault, replay: 'exact' | 'never' = 'exact') {
  /** Actions of each session that was opened. */
  const sessions: string[][] = [];
  const labels = ['small', 'large'];
  const tasks = { count: 5, labels, evalSeed: 4, split: () => [0, 1, 2, 3, 4], label: (k: number) => labels[k & 1]! };
  const facts = factsOf(
    {
      id: 'counter',
      description: 'It counts.',
      rewardRange: [0, 1],
      maxObservationChars: 99,
      replay,
      tasks,
      open: fail,
    },
    { role: 'Count.', forms: [], hints: [], format: 'action', foreign: /[^a-z]+/g },
  );
  const server = await openEnvServer({
    pages: {
      '/schema': { action: { properties: { action: { type: 'string' } }, required: ['action'] } },
      '/metadata': { name: 'counter', description: 'It counts.', longplay: facts },
    },
    session() {
      const actions: string[] = [];
      sessions.push(actions);
      return {
        answer({ type, data }) {
          if (type === 'reset') actions.push(...((data?.replay as string[] | undefined) ?? []));
          else actions.push(data?.action as string);
          const partial = actions.at(-1) === 'p' ? { metadata: { longplay: { partial: true } } } : {};
          const turn = actions.length;
          const reward = turn === 0 ? null : partial.metadata ? 0 : 0.25;
          return {
            observation: { text: actions.join(), actions: ['a', 'p'], turn, success: null, ...partial },
            reward,
            done: false,
          };
        },
      };
    },
    faultOf,
  });
  closing.push(() => server.close());
  return { server, sessions };
}

function fail(): never {
  throw new Error('for facts only');
}

describe('a server of ours', () => {
  it('says its facts: tasks, bounds, prompt', async () => {
    const { server } = await ours(() => 'ok');
    const { world, env } = await findWorld(`openenv+${server.url}`, quick);
    expect(env).toMatchObject({ id: 'counter', rewardRange: [0, 1], maxObservationChars: 99, replay: 'exact' });
    expect(env.tasks).toMatchObject({ count: 5, labels: ['small', 'large'], evalSeed: 4 });
    expect([0, 1, 4].map((index) => env.tasks.label(index))).toEqual(['small', 'large', 'small']);
    expect(world.prompt).toEqual({ role: 'Count.', forms: [], hints: [], format: 'action', foreign: /[^a-z]+/g });
    await expect(Promise.resolve().then(() => env.open(task(env, 5)))).rejects.toThrow(RangeError);
  });

  const isStep = ({ type }: Message) => type === 'step';
  const faults = [
    'closed',
    'cut',
    'not-json',
    'binary',
    'not-websocket',
    'other-type',
    'twice',
    'no-observation',
    'text-reward',
    'silence',
    'slow',
    'full',
  ] as const;
  it.each(faults)('that does this, %s, takes every action once an episode, and the episode goes on', async (fault) => {
    let count = 0;
    const { server, sessions } = await ours((_, one) => (isStep(one) && ++count === 2 ? fault : 'ok'));
    const { env } = await findWorld(`openenv+${server.url}`, quick);
    const session = (await env.open(task(env))) as Session;
    const observed: string[] = [];
    for (const action of ['a', 'p', 'b', 'c']) observed.push((await session.step(action)).observation);
    expect(observed).toEqual(['a', 'a,p', 'a,p,b', 'a,p,b,c']);
    for (const actions of sessions.slice(0, -1)) expect(['a', 'a,p']).toContain(actions.join());
    expect(sessions.at(-1)).toEqual(['a', 'p', 'b', 'c']);
    expect(session.actions()).toEqual(['a', 'p']);
    await session.close();
    await vi.waitFor(() => expect(server.connections).toBe(0));
  });

  it('lists actions and marks stages', async () => {
    const { server } = await ours(() => 'ok');
    const { env } = await findWorld(`openenv+${server.url}`, quick);
    const session = await env.open(task(env));
    expect(await session.step('p')).toEqual({ kind: 'mid', observation: 'p', reward: 0, partial: true });
    expect(await session.step('a')).toEqual({ kind: 'mid', observation: 'p,a', reward: 0.25 });
    await session.close();
  });

  it('whose world must not be replayed is sent no action twice', async () => {
    let count = 0;
    const { server } = await ours((_, one) => (isStep(one) && ++count === 2 ? 'cut' : 'ok'), 'never');
    const { env } = await findWorld(`openenv+${server.url}`, quick);
    const session = await env.open(task(env));
    await session.step('a');
    await expect(Promise.resolve(session.step('b'))).rejects.toThrow(/the connection was closed/);
    await session.close();
  });

  it('that reports a broken environment is not asked again', async () => {
    const { server } = await ours((n) => (n === 1 ? 'error' : 'ok'));
    const { env } = await findWorld(`openenv+${server.url}`, quick);
    const session = await env.open(task(env));
    await expect(Promise.resolve(session.step('a'))).rejects.toThrow(/EXECUTION_ERROR/);
    expect(server.log.filter(isStep)).toHaveLength(1);
    await session.close();
  });
});

describe('facts of a world', () => {
  it.each(['textcraft', 'babyai', 'sciworld', 'searchqa', 'webarena'])('of %s come back from JSON', async (id) => {
    let found: { readonly world: World; readonly env: Env };
    try {
      found = await findWorld(id);
    } catch {
      return; // has no rules here
    }
    const { env } = found;
    const read = readFacts(
      JSON.parse(JSON.stringify(factsOf(env, { role: 'x', forms: [], hints: [], format: 'react' }))),
    );
    const { tasks } = read;
    expect(read).toMatchObject({ rewardRange: env.rewardRange, maxObservationChars: env.maxObservationChars });
    expect(tasks).toMatchObject({ count: env.tasks.count, labels: env.tasks.labels, evalSeed: env.tasks.evalSeed });
    for (const split of ['train', 'test'] as const) expect(tasks.split(split)).toEqual(env.tasks.split(split));
    expect(tasks.sets).toEqual(env.tasks.sets);
    for (let index = 0; index < tasks.count; index += 1 + (tasks.count >> 10)) {
      expect(tasks.label(index)).toBe(env.tasks.label(index));
    }
  });

  it.each([
    ['tasks.train', { train: [[3, 9]] }],
    [
      'tasks.train',
      {
        train: [
          [2, 2],
          [1, 1],
        ],
      },
    ],
    ['tasks.labelRuns', { labelRuns: [[0, 4]] }],
    ['tasks.count', { count: 1e9 }],
  ])('are refused where %s is wrong: %o', (name, wrong) => {
    const tasks = {
      count: 5,
      labels: ['x'],
      labelRuns: [[0, 5]],
      train: [],
      test: [],
      sets: {},
      evalSeed: 0,
      ...wrong,
    };
    const prompt = { role: '', forms: [], hints: [], format: 'action' };
    const facts = { rewardRange: [0, 1], maxObservationChars: 9, replay: 'exact', tasks, prompt };
    expect(() => readFacts(facts)).toThrow(name);
    expect(() => readFacts({ ...facts, prompt: { ...prompt, foreign: '(a+)+$' } })).toThrow();
  });
});

it('our server’s worlds are those that are here, whichever way they are opened', async () => {
  const server = await startEnvServer(['textcraft']);
  closing.push(() => server.close());
  const { env: here } = await findWorld('textcraft');
  const { env: there, world } = await findWorld(`openenv+${server.url}/openenv/textcraft`);
  expect(world.prompt).toMatchObject({ role: expect.stringContaining('Minecraft') });
  expect(there.tasks.split('test')).toEqual(here.tasks.split('test'));
  for (const index of [0, 40, 500]) {
    const one = { env: 'textcraft', index, seed: 7 };
    const [local, remote] = [await here.open(one), await there.open(one)];
    expect(remote.first).toEqual(local.first);
    for (const action of ['get 1 acacia logs', 'inventory', 'nonsense']) {
      expect(await remote.step(action)).toEqual(await local.step(action));
      expect(remote.actions()).toEqual(local.actions());
    }
    await remote.close();
  }
  await vi.waitFor(() => expect(server.sessions).toBe(0));
});
