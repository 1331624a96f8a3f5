/** Worlds behind OpenEnv servers: what their actions and observations become, and every way a server can fail. */
import { readFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import type { Env, Session } from '../../../src/core/env.ts';
import { taskTable } from '../../../src/core/task.ts';
import { findWorld } from '../../../src/run/find-world.ts';
import { startEnvServer } from '../../../src/run/serve-worlds.ts';
import { envLaws } from '../../../src/world/conformance/check.ts';
import { createEnv } from '../../../src/world/remote/openenv-client.ts';
import { promptOf, taskTableOf, worldFacts, worldFactsSchema } from '../../../src/world/remote/openenv-facts.ts';
import { createEnv as createStaged } from '../../support/staged-env.ts';
import { SOCKET_FAULTS, type SocketFault, type ToyOptions, toyOpenEnv } from '../../support/toy-openenv.ts';

const recorded = JSON.parse(readFileSync(new URL('openenv-recorded.json', import.meta.url), 'utf8')) as Readonly<{
  echo: Recording;
  cells: Recording & { readonly full: object };
}>;
interface Recording {
  readonly schema: object;
  readonly metadata: object;
  readonly exchanges: readonly { readonly sent: { readonly data?: object }; readonly received: object }[];
}

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

const task = { env: 'toy', index: 3, seed: 9 };
const object = (properties: object) => ({
  type: 'object',
  properties: { metadata: { type: 'object' }, ...properties },
});
const text = { type: 'string' };
const SCHEMA = { action: object({ message: text }), observation: object({ text }), state: {} };

/** A toy server, and the world of ours that `rollout.envServer` would play there. */
async function longplayToy(options: ToyOptions, replay: Env['replay'] = 'exact') {
  const toy = await toyOpenEnv(options);
  closing.push(() => toy.close());
  const env = createEnv({
    ...{ url: toy.url, world: 'toy', rewardRange: [0, 1], maxObservationChars: 1000, replay },
    ...{ deadlineMs: 2000, attempts: 3 },
  });
  return { toy, env };
}

/** A toy server that is no longplay, as `--env openenv+http://…` finds it. */
async function foreignToy(options: ToyOptions = {}, envOptions: object = {}) {
  const toy = await toyOpenEnv({ pages: { '/schema': SCHEMA }, ...options });
  closing.push(() => toy.close());
  const found = await findWorld(`openenv+${toy.url}`, { deadlineMs: 2000, ...envOptions });
  return { toy, ...found };
}

/** Faults after which an episode that repeats itself goes on. */
const MENDED: readonly SocketFault[] = [
  ...(['slow', 'reset', 'close', 'not-json', 'binary', 'other', 'no-object', 'wrong', 'twice', 'full'] as const),
];

describe.each(MENDED)('a server that does this to an episode that can be repeated: %s', (fault) => {
  it('gets a retry: each action counts once', async () => {
    let count = 0;
    const { toy, env } = await longplayToy({
      faultOf: (_, { type }) => (type === 'step' && ++count === 2 ? fault : undefined),
    });
    const session = await env.open(task);
    expect(session.first.observation).toBe('begin');
    for (const [n, action] of ['a', 'b', 'c'].entries()) {
      expect(await session.step(action)).toEqual({ kind: 'mid', observation: `step ${n + 1}`, reward: 0.25 });
    }
    expect(toy.taken.at(-1)).toEqual([{ action: 'a' }, { action: 'b' }, { action: 'c' }]);
    expect(toy.taken).toHaveLength(fault === 'slow' ? 1 : 2);
    expect(new Set(toy.resets.map((reset) => JSON.stringify(reset)))).toEqual(new Set(['{"index":3,"seed":9}']));
    expect(session.actions()).toEqual(['a', 'b']);
    await session.close();
    await session.close();
    await expect(Promise.resolve(session.step('d'))).rejects.toThrow('the session is closed');
    expect(toy.taken.at(-1)).toHaveLength(3);
  });
});

describe.each(SOCKET_FAULTS.filter((fault) => fault !== 'slow'))(
  'a server that does this to an episode that cannot be repeated: %s',
  (fault) => {
    it('fails the episode, without a retry', async () => {
      let count = 0;
      const { toy, env } = await longplayToy(
        { faultOf: (_, { type }) => (type === 'step' && ++count === 2 ? fault : undefined) },
        'never',
      );
      const session = await env.open(task);
      await session.step('a');
      const second = Promise.resolve(session.step('b'));
      if (fault === 'twice')
        await second; // the second copy answers no request: the next step fails
      else await expect(second).rejects.toThrow(/^(?!.*is lost)/); // what went wrong, and not what follows from it
      await expect(Promise.resolve(session.step('c'))).rejects.toThrow();
      await expect(Promise.resolve(session.step('d'))).rejects.toThrow();
      expect(toy.taken).toEqual([[{ action: 'a' }, { action: 'b' }]]);
      await session.close();
    });
  },
);

describe('failures', () => {
  it.each([
    ['silence', 'no answer within'],
    ['error', 'the server reports EXECUTION_ERROR: boom'],
    ['long', 'Max payload size exceeded'],
  ] as const)('%s ends an episode that could be repeated too, with its reason', async (fault, reason) => {
    const { env } = await longplayToy({ faultOf: (_, { type }) => (type === 'step' ? fault : undefined) });
    const session = await env.open(task);
    await expect(Promise.resolve(session.step('a'))).rejects.toThrow(reason);
    await session.close();
  });

  it.each(['silence', 'error', 'reset', 'not-json'] as const)('%s at every reset fails the opening', async (fault) => {
    const { env } = await longplayToy({ faultOf: () => fault });
    await expect(Promise.resolve(env.open(task))).rejects.toThrow();
  });

  it.each(['reset', 'full', 'not-json'] as const)('%s at the first reset gets a retry', async (fault) => {
    const { env } = await longplayToy({ faultOf: (n) => (n === 0 ? fault : undefined) });
    const session = await env.open(task);
    expect(session.first.observation).toBe('begin');
    await session.close();
  });

  it('a full server reports it before any request', async () => {
    const { env } = await longplayToy({
      greeting: { type: 'error', data: { message: 'no room', code: 'CAPACITY_REACHED' } },
    });
    await expect(Promise.resolve(env.open(task))).rejects.toThrow('the server is full: no room');
  });

  it('an episode that does not repeat itself fails instead of going on as another', async () => {
    let count = 0;
    const { env } = await longplayToy({
      faultOf: (_, { type }) => (type === 'step' && ++count === 2 ? 'reset' : undefined),
      forgetsAfter: 1,
    });
    const session = await env.open(task);
    await session.step('a');
    await expect(Promise.resolve(session.step('b'))).rejects.toThrow('does not repeat itself');
  });

  it('where nothing answers, the URL and the cure are named', async () => {
    await expect(findWorld('openenv+http://127.0.0.1:9')).rejects.toThrow(
      /openenv\+http:\/\/127\.0\.0\.1:9: no OpenEnv server: .*ECONNREFUSED.*is it running/,
    );
    const toy = await toyOpenEnv({ pages: { '/schema': '<html>' } });
    closing.push(() => toy.close());
    await expect(findWorld(`openenv+${toy.url}`)).rejects.toThrow('no OpenEnv server');
    await expect(findWorld('openenv+http://')).rejects.toThrow('expected e.g. openenv+http://127.0.0.1:8000');
  });
});

describe('a server of others', () => {
  const play = async (env: Env, action: string) => {
    const session = (await env.open(task)) as Session;
    closing.push(async () => session.close());
    return session.step(action);
  };
  const observation = (more: object) => ({ type: 'observation', data: more });

  it('that takes one text field is sent the text', async () => {
    const { toy, env } = await foreignToy();
    expect(env).toMatchObject({ id: 'openenv', replay: 'never' });
    expect(await play(env, 'any text')).toEqual({ kind: 'mid', observation: 'step 1', reward: 0.25 });
    expect(toy.taken).toEqual([[{ message: 'any text' }]]);
    expect(toy.resets).toEqual([{ seed: 3 }]);
  });

  it('that takes several fields is sent the object, and a text that is none costs a turn', async () => {
    const action = object({ row: { type: 'integer' }, mark: text });
    const { toy, env, world } = await foreignToy({ pages: { '/schema': { ...SCHEMA, action } } });
    const session = await env.open(task);
    expect(await session.step('row 2')).toMatchObject({ kind: 'mid', reward: 0 });
    expect(await session.step('[1]')).toMatchObject({ kind: 'mid', reward: 0 });
    expect(toy.taken).toEqual([[]]);
    expect(await session.step(' {"row": 2, "mark": "x"} ')).toMatchObject({ observation: 'step 1', reward: 0.25 });
    expect(toy.taken).toEqual([[{ row: 2, mark: 'x' }]]);
    await session.close();
    const prompt = (world.prompt as (options: object) => { hints: readonly string[] })({});
    expect(prompt.hints[0]).toContain('"mark"');
  });

  it('that refuses an action answers in words; the episode goes on', async () => {
    const refusal = {
      type: 'error',
      data: { message: 'Invalid message', code: 'VALIDATION_ERROR', errors: [{ loc: ['row'], msg: 'too large' }] },
    };
    const good = observation({ observation: { text: 'fine' }, reward: true, done: false });
    const { env } = await foreignToy({ step: ({ message }) => (message === 'bad' ? refusal : good) });
    const session = await env.open(task);
    const words = 'The server refuses the action: Invalid message: row: too large';
    expect(await session.step('bad')).toEqual({ kind: 'mid', observation: words, reward: 0 });
    expect(await session.step('good')).toEqual({ kind: 'mid', observation: 'fine', reward: 1 });
    await session.close();
  });

  it('that shows several fields is read as JSON', async () => {
    const schema = { ...SCHEMA, observation: object({ stdout: text, code: { type: 'integer' } }) };
    const { env } = await foreignToy({
      pages: { '/schema': schema },
      step: () => observation({ observation: { stdout: 'x', code: 0, metadata: {} }, reward: null, done: false }),
    });
    expect(await play(env, 'run')).toEqual({ kind: 'mid', observation: '{"stdout":"x","code":0}', reward: 0 });
  });

  it('that is done ends the episode; a positive reward is a success', async () => {
    const end = (reward: unknown) => observation({ observation: { text: 'end' }, reward, done: true });
    const { env } = await foreignToy({ step: ({ message }) => end(message === 'win' ? 2 : null) });
    expect(await play(env, 'win')).toEqual({ kind: 'terminated', observation: 'end', reward: 2, success: true });
    expect(await play(env, 'lose')).toEqual({ kind: 'terminated', observation: 'end', reward: 0, success: false });
    const { toy, env: again } = await foreignToy({ step: () => end(1) });
    const session = await again.open(task);
    expect(await session.step('a')).toEqual(await session.step('after the end'));
    expect(toy.taken).toEqual([[{ message: 'a' }]]);
    await session.close();
  });

  it('has tasks by their seeds, of which the last tenth is held out, unless options set it', async () => {
    const { toy, env } = await foreignToy();
    expect(env.tasks.count).toBe(1000);
    expect([env.tasks.split('train').length, env.tasks.split('test')[0]]).toEqual([900, 900]);
    for (const index of [-1, 1000, 0.5]) {
      await expect(Promise.resolve(env.open({ ...task, index }))).rejects.toThrow(RangeError);
    }
    const url = `openenv+${toy.url}`;
    const { env: other } = await findWorld(url, { tasks: 3, rewardRange: [0, 1], replay: 'exact' });
    expect(other).toMatchObject({ rewardRange: [0, 1], replay: 'exact' });
    expect(other.tasks.split('test')).toEqual([0, 1, 2]);
    await expect(findWorld(url, { tasks: 0 })).rejects.toThrow('openenv: tasks: ');
    await expect(findWorld(url, { task: 3 })).rejects.toThrow("openenv has no option 'task'");
    await expect(findWorld(url, { url: 'http://x' })).rejects.toThrow('its id is the URL');
  });
});

/** What openenv-core 0.3.0 answered to the environments of `test/support/openenv_oracle.py`. */
describe('recorded answers of OpenEnv’s own server', () => {
  const toyOf = ({ schema, metadata, exchanges }: (typeof recorded)['echo' | 'cells']) => {
    const answers = exchanges.map(({ received }) => received);
    let next = 0;
    return foreignToy({
      pages: { '/schema': schema, '/metadata': metadata },
      reset: answers[0]!,
      step: () => answers[++next]!,
    });
  };

  it('of a text action are read as text', async () => {
    const { toy, env } = await toyOf(recorded.echo);
    expect(env.description).toBe('Echo environment');
    const session = await env.open({ ...task, index: 5 });
    expect(session.first.observation).toBe('say 5');
    expect(await session.step('4')).toEqual({ kind: 'mid', observation: 'you said 4', reward: 0 });
    await expect(Promise.resolve(session.step('break'))).rejects.toThrow('EXECUTION_ERROR: the echo is broken');
    const sent = recorded.echo.exchanges.map(({ sent: { data } }) => data);
    expect([toy.resets, ...toy.taken]).toEqual([[sent[0]], [sent[1], sent[2]]]);
    await session.close();
  });

  it('of an action of several fields are read as JSON', async () => {
    const { toy, env } = await toyOf(recorded.cells);
    const session = await env.open({ ...task, index: 5 });
    expect(session.first.observation).toBe('{"cells":[],"left":3}');
    expect((await session.step('{"row": "one"}')).observation).toBe(
      'The server refuses the action: Invalid message: row: Input should be a valid integer, unable to parse string as an integer; column: Field required',
    );
    const marked = { kind: 'mid', observation: '{"cells":["1,2,x"],"left":2}', reward: -0.1 };
    expect(await session.step('{"row": 1, "column": 2}')).toEqual(marked);
    expect(toy.taken).toEqual([recorded.cells.exchanges.slice(1, 3).map(({ sent }) => sent.data)]);
    await session.close();
  });

  it('of a full server are an error that may pass', async () => {
    const { env } = await longplayToy({ greeting: recorded.cells.full });
    await expect(Promise.resolve(env.open(task))).rejects.toThrow(/the server is full: .*1\/1 sessions active/);
  });
});

describe('a longplay server', () => {
  it('hands its tasks, bounds and prompt on', async () => {
    const server = await startEnvServer(['textcraft']);
    closing.push(() => server.close());
    const here = await findWorld('textcraft');
    const there = await findWorld(`openenv+${server.url}/openenv/textcraft`);
    const { id, description, rewardRange, maxObservationChars, replay = 'exact', tasks } = here.env;
    expect(there.env).toMatchObject({ id: 'openenv', description, rewardRange, maxObservationChars, replay });
    expect(id).toBe('textcraft');
    expect(tablesOf(there.env.tasks)).toEqual(tablesOf(tasks));
    expect(there.world.prompt).toEqual(here.world.prompt);
  });

  it('keeps the laws of environments over the wire', { timeout: 120_000 }, async () => {
    const server = await startEnvServer(['textcraft']);
    closing.push(() => server.close());
    const { world } = await findWorld(`openenv+${server.url}/openenv/textcraft`);
    await envLaws(() => world.createEnv!(), { cases: 8, seed: 5 });
    await expect.poll(() => server.sessions).toBe(0);
  });

  it('distinguishes stages from turns', async () => {
    const server = await startEnvServer([new URL('../../support/staged-env.ts', import.meta.url).pathname]);
    closing.push(() => server.close());
    const { env } = await findWorld(`openenv+${server.url}/openenv/${server.ids[0]}`);
    const here = createStaged();
    const own = { env: here.id, index: 0, seed: 0 };
    const [local, remote] = [await here.open(own), await env.open(own)];
    let partials = 0;
    for (const action of ['paint', 'door', 'nonsense', 'paint wall', 'paint', 'roof']) {
      const step = await local.step(action);
      const { observation } = step;
      expect(await remote.step(action)).toEqual({
        ...step,
        observation: observation.replace('nobody', '/env-hosts/0'), // the world names its host
      });
      expect(remote.actions()).toEqual(step.kind === 'terminated' ? [] : local.actions());
      if (step.kind === 'mid' && step.partial) partials++;
    }
    expect(partials).toBe(2);
    await remote.close();
  });

  it('reports how a world broke, and the session is over', async () => {
    const server = await startEnvServer([new URL('../../support/faulty-env.ts', import.meta.url).pathname]);
    closing.push(() => server.close());
    const { env } = await findWorld(`openenv+${server.url}/openenv/${server.ids[0]}`);
    const session = await env.open({ ...task, index: 0 });
    await expect(Promise.resolve(session.step('throw'))).rejects.toThrow(/EXECUTION_ERROR: threw: .*the world broke/);
    await session.close();
  });
});

function tablesOf(tasks: Env['tasks']) {
  const indices = Array.from({ length: tasks.count }, (_, index) => index);
  return {
    labels: indices.map((index) => tasks.label(index)),
    order: tasks.labels,
    splits: [tasks.split('train'), tasks.split('test'), tasks.sets ?? {}],
    seen: tasks.isSeen && indices.filter((index) => tasks.isSeen!(index)),
    evalSeed: tasks.evalSeed,
  };
}

describe('facts of a world', () => {
  const env = (tasks: Env['tasks']): Env => ({
    ...{ id: 'x', description: 'X.', tasks, rewardRange: [0, 1], maxObservationChars: 10 },
    open: () => Promise.reject(new Error('facts only')),
  });
  const prompt = { role: 'R', forms: [], hints: ['h'], format: 'think', foreign: /[^a-z]+/g } as const;

  it('come back as they were sent', () => {
    const table = {
      ...taskTable(20, [[3, 5]], { labels: ['odd', 'even'], of: (n) => (n % 2 ? 'odd' : 'even') }),
      ...{ sets: { some: [1, 2, 9] }, seen: (index: number) => index === 4, evalSeed: 7 },
    };
    const facts = worldFactsSchema.parse(JSON.parse(JSON.stringify(worldFacts(env(table), prompt))));
    expect(tablesOf(taskTableOf(facts))).toEqual(tablesOf(table));
    expect(() => taskTableOf(facts).label(20)).toThrow(RangeError);
    expect(promptOf(facts)).toEqual(prompt);
    expect(facts.tasks.train).toEqual([
      [0, 2],
      [6, 19],
    ]);
  });

  it.each([
    ['indices beyond the count', { tasks: { train: [[0, 20]] } }],
    ['ranges out of order', { tasks: { test: [[5, 4]] } }],
    ['tasks without a label', { tasks: { count: 21 } }],
    ['a pattern that may not end', { prompt: { foreign: '(a+)+b' } }],
    ['another version', { version: 2 }],
  ])('are refused with %s', (_, change) => {
    const facts = worldFacts(env(taskTable(20, [], 'x')), prompt);
    const { tasks = {}, prompt: prompted = {}, ...rest } = change as Record<string, object>;
    const changed = {
      ...facts,
      ...rest,
      tasks: { ...facts.tasks, ...tasks },
      prompt: { ...facts.prompt, ...prompted },
    };
    expect(worldFactsSchema.safeParse(facts).success).toBe(true);
    expect(worldFactsSchema.safeParse(changed).success).toBe(false);
  });
});
