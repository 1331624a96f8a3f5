/** OpenEnv's protocol as this server speaks it, the limits, and what happens when a world breaks behind the server. */
import { request } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { openEnvSessions } from '../../actors/env/sessions.ts';
import { agentgym } from '../../envs/textcraft/agentgym.ts';
import { SimulatedClock, systemClock } from '../../src/core/clock.ts';
import type { EnvOptions } from '../../src/core/env.ts';
import { WebSocketClient } from '../../src/http/websocket-client.ts';
import { startEnvServer } from '../../src/run/serve-worlds.ts';
import { type EnvServer, type EnvServerOptions, originalId, serveEnvs } from '../../src/serve/env-server.ts';
import { readExposition } from '../support/exposition.ts';
import { createEnv as createFaulty } from '../support/faulty-env.ts';

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function textcraft(options: EnvOptions = {}): Promise<EnvServer> {
  const server = await startEnvServer(['textcraft'], { options });
  closing.push(() => server.close());
  return server;
}

/** A server of the faulty world, its hosts in this thread by default. */
async function faulty(options: Partial<EnvServerOptions> = {}, isolation: 'thread' | 'inline' = 'inline') {
  const url = new URL('../support/faulty-env.ts', import.meta.url);
  const episodes = await openEnvSessions({
    envs: [
      { id: 'faulty', url },
      { id: originalId('textcraft'), url },
    ],
    threads: 1,
    isolation,
    listActions: false,
    stepDeadlineMs: 300,
    openDeadlineMs: 600,
  });
  closing.push(() => episodes.stop());
  const textcraftTasks = createFaulty();
  const worlds = [
    { env: createFaulty(), world: {} },
    { env: { ...textcraftTasks, id: 'textcraft' }, world: { agentgym } },
  ];
  const server = await serveEnvs({ worlds, episodes, clock: systemClock, port: 0, ...options });
  closing.push(() => server.close());
  return server;
}

async function call(url: string, method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const sent = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) };
  const response = await fetch(url + path, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    ...sent,
  });
  const text = await response.text();
  return {
    status: response.status,
    body: text.startsWith('{') ? JSON.parse(text) : text,
    headers: response.headers,
  };
}

type Data = Record<string, never>;
interface Message {
  readonly type: string;
  readonly data: Data & { observation: Data; metadata: { longplay: Data } };
}

/** Opens a session of a world. @returns a function that sends a message and resolves with its answer */
async function connect({ url }: EnvServer, world = 'faulty') {
  const client = await WebSocketClient.connect(`${url.replace('http', 'ws')}/openenv/${world}/ws`, {
    deadlineMs: 5000,
  });
  closing.push(() => client.close({ type: 'close' }));
  return async (type: string, data: object = {}) => (await client.request({ type, data }, 5000)) as Message;
}

describe('OpenEnv’s protocol', () => {
  it('plays an episode to its end, by listed actions', async () => {
    const ask = await connect(await textcraft(), 'textcraft');
    expect((await ask('step', { action: 'inventory' })).data).toMatchObject({ code: 'EXECUTION_ERROR' });
    const opened = await ask('reset', { index: 0, seed: 7, episode_id: 'mine' });
    expect(opened).toMatchObject({
      type: 'observation',
      data: {
        observation: { turn: 0, success: null, metadata: { longplay: { partial: false } } },
        reward: null,
        done: false,
      },
    });
    const got = await ask('step', { action: 'get 1 acacia logs' });
    expect(got.data).toMatchObject({ observation: { text: 'Got 1 acacia logs' }, reward: 0, done: false });
    const end = await ask('step', { action: (got.data.observation.actions as unknown as string[]).at(-1) });
    expect(end.data).toMatchObject({ observation: { turn: 2, success: true, actions: [] }, reward: 1, done: true });
    expect((await ask('state')).data).toMatchObject({ episode_id: 'mine', step_count: 2, index: 0, env: 'textcraft' });
    expect((await ask('step', { action: 'inventory' })).data).toMatchObject({ code: 'EXECUTION_ERROR' });
    expect((await ask('reset', { seed: 5 })).type).toBe('observation');
  });

  it('describes its world: name, schemas, task table, prompt', async () => {
    const { url } = await textcraft();
    const { body } = await call(url, 'GET', '/openenv/textcraft/metadata');
    expect(body).toMatchObject({ name: 'textcraft', version: null });
    expect(body.readme_content).toContain('Answer with one action');
    expect(body.metadata.longplay).toMatchObject({ version: 1, replay: 'exact', rewardRange: [0, 1] });
    expect(body.metadata.longplay.tasks.count).toBeGreaterThan(100);
    const schema = (await call(url, 'GET', '/openenv/textcraft/schema')).body;
    expect(Object.keys(schema)).toEqual(['action', 'observation', 'state']);
    expect(schema.action.required).toEqual(['action']);
  });

  it('reports what is wrong with a request, in status and words', async () => {
    const server = await faulty();
    const { url } = server;
    const status = async (...args: [string, string, unknown?]) => (await call(url, ...args)).status;
    expect(await status('POST', '/openenv/faulty/schema', {})).toBe(405);
    expect(await status('GET', '/openenv/faulty/ws')).toBe(426);
    expect(await status('GET', '/openenv/faulty/nothing')).toBe(404);
    expect(await status('GET', '/openenv/nope/schema')).toBe(404);
    expect(await status('GET', '/v1/envs')).toBe(404);
    const ask = await connect(server);
    const code = async (type: string, data: object) => (await ask(type, data)).data.code;
    expect(await code('jump', {})).toBe('UNKNOWN_TYPE');
    expect(await code('reset', { seed: -1 })).toBe('VALIDATION_ERROR');
    expect(await code('reset', { index: 10 ** 9 })).toBe('VALIDATION_ERROR');
    expect(await code('step', { action: 1 })).toBe('VALIDATION_ERROR');
    expect((await call(url, 'GET', '/health')).body.status).toBe('ok');
    const families = readExposition((await call(url, 'GET', '/metrics')).body);
    const requests = families.get('longplay_server_requests_total')!.samples;
    expect(requests.find(({ labels }) => labels.status === '404')!.value).toBe(3);
    const answered = requests.reduce((sum, { value }) => sum + value, 0);
    const refused = families.get('longplay_server_refused_requests_total')!.samples[0]!.value;
    const times = families.get('longplay_server_request_duration_seconds')!.samples;
    expect(times.at(-1)).toMatchObject({ value: answered - refused });
    expect(families.get('longplay_server_expired_sessions_total')).toMatchObject({ type: 'counter' });
    expect(families.get('longplay_server_sessions')).toMatchObject({ type: 'gauge' });
  });

  it.each(['throw', 'hang', 'spin', 'exit'])('reports a world that breaks (%s); others go on', async (how) => {
    const server = await faulty({}, 'thread');
    const [broken, sibling] = [await connect(server), await connect(server)];
    for (const ask of [broken, sibling]) await ask('reset', { index: 0 });
    await sibling('step', { action: '+3' });
    const failed = await broken('step', { action: how });
    const cause = { throw: 'threw', exit: 'exited' }[how] ?? 'timeout';
    expect(failed).toMatchObject({
      type: 'error',
      data: { code: 'EXECUTION_ERROR', metadata: { longplay: { cause } } },
    });
    expect((await broken('step', { action: '+1' })).data).toMatchObject({ code: 'EXECUTION_ERROR' });
    expect((await sibling('step', { action: '+4' })).data.observation.text).toContain('7');
  });

  it('gives AgentGym’s client a 500, never a score, for a world that breaks', async () => {
    const { url } = await faulty();
    const { body } = await call(url, 'POST', '/textcraft/create', {});
    const failed = await call(url, 'POST', '/textcraft/step', { id: body.id, action: 'throw' });
    expect(failed.status).toBe(500);
    expect(failed.body).toMatchObject({ cause: 'threw' });
  });
});

describe('options of the world', () => {
  it('hold under OpenEnv’s protocol and under AgentGym’s', async () => {
    const opened = async (options: EnvOptions) => {
      const server = await textcraft(options);
      const { url } = server;
      const own = await (await connect(server, 'textcraft'))('reset', { index: 31 });
      const { body } = await call(url, 'POST', '/textcraft/create', {});
      const original = await call(url, 'POST', '/textcraft/reset', { id: body.id, data_idx: 31 });
      return [own.data.observation.text, original.body.observation].map((text) => /Goal: .*/.exec(text)?.[0]);
    };
    const [sorted, published] = [await opened({}), await opened({ order: 'agenttraj' })];
    expect(published[0]).toBeDefined();
    expect(published[0]).not.toBe(sorted[0]);
    expect(published[1]).not.toBe(sorted[1]);
  });

  it('are for one world', async () => {
    await expect(startEnvServer(['textcraft', 'babyai'], { options: { order: 'sorted' } })).rejects.toThrow(
      /one world/,
    );
    await expect(startEnvServer(['textcraft'], { options: { order: 'x' } })).rejects.toThrow(/order must be/);
  });
});

describe('limits', () => {
  it('bounds sessions, and ends idle ones', async () => {
    const clock = new SimulatedClock();
    const server = await faulty({ clock, maxSessions: 2, idleMs: 60_000 });
    const [first, second] = [await connect(server), await connect(server)];
    await first('reset', { index: 0 });
    await second('reset', { index: 0 });
    const full = await WebSocketClient.connect(`${server.url.replace('http', 'ws')}/openenv/faulty/ws`, {
      deadlineMs: 5000,
    });
    let refusal: unknown;
    while ((refusal = full.takeEarly()) === undefined) await new Promise((resolve) => setImmediate(resolve));
    expect(refusal).toMatchObject({ type: 'error', data: { code: 'CAPACITY_REACHED' } });
    clock.advance(50_000);
    await first('step', { action: '+1' });
    clock.advance(30_000);
    expect((await call(server.url, 'GET', '/health')).body.sessions).toBe(1);
    const families = readExposition((await call(server.url, 'GET', '/metrics')).body);
    expect(families.get('longplay_server_expired_sessions_total')!.samples[0]!.value).toBe(1);
    expect(families.get('longplay_server_episodes')!.samples[0]!.value).toBe(1);
    await expect(second('step', { action: '+1' })).rejects.toThrow(/closed \(1001: idle\)/);
    expect((await first('step', { action: '+1' })).data.observation.text).toContain('2');
    expect((await (await connect(server))('reset', { index: 0 })).type).toBe('observation');
  });

  it('bounds bodies and rate', async () => {
    const clock = new SimulatedClock();
    const { url } = await faulty({ maxBodyBytes: 100, requestsPerSecond: 5, clock });
    expect((await call(url, 'POST', '/textcraft/create', 'x'.repeat(101))).status).toBe(413);
    const health = async () => (await call(url, 'GET', '/health')).status;
    const tenAsk = () => Promise.all(Array.from({ length: 10 }, health));
    expect((await tenAsk()).filter((status) => status === 200)).toHaveLength(4); // one was the body's
    clock.advance(400);
    expect((await tenAsk()).filter((status) => status === 200)).toHaveLength(2);
    clock.advance(60_000);
    expect((await tenAsk()).filter((status) => status === 200)).toHaveLength(5); // a burst is a second's worth
    expect(await health()).toBe(429);
  });

  it('asks for a token off loopback, and checks it', async () => {
    await expect(faulty({ host: '0.0.0.0' })).rejects.toThrow('LONGPLAY_SERVER_TOKEN');
    const { url } = await faulty({ token: 'secret' });
    expect((await call(url, 'GET', '/health')).status).toBe(401);
    expect((await call(url, 'GET', '/health', undefined, { authorization: 'Bearer secreT' })).status).toBe(401);
    expect((await call(url, 'GET', '/health', undefined, { authorization: 'Bearer secret' })).status).toBe(200);
  });

  it('does not serve web pages from elsewhere', async () => {
    const { url } = await faulty();
    const status = await new Promise((resolve) => {
      request(`${url}/health`, { headers: { origin: 'https://elsewhere.example' } }, (response) => {
        response.resume();
        resolve(response.statusCode);
      }).end();
    });
    expect(status).toBe(403);
  });
});
