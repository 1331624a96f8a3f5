/** OpenEnv's protocol, the limits, and what happens when a world breaks behind the server. */
import { request } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import { openEnvSessions } from '../../actors/env/sessions.ts';
import { agentgym } from '../../envs/textcraft/agentgym.ts';
import { SimulatedClock, systemClock } from '../../src/core/clock.ts';
import type { EnvOptions } from '../../src/core/env.ts';
import { startEnvServer } from '../../src/run/serve-worlds.ts';
import { type EnvServer, type EnvServerOptions, originalId, serveEnvs } from '../../src/serve/env-server.ts';
import { readExposition } from '../support/exposition.ts';
import { createEnv as createFaulty } from '../support/faulty-env.ts';
import { OpenEnvClient } from '../support/openenv-client.ts';

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

async function session(url: string, world: string): Promise<OpenEnvClient> {
  const client = await OpenEnvClient.connect(url, world);
  closing.push(() => client.close());
  return client;
}

describe('OpenEnv’s protocol', () => {
  it('plays an episode to its end, by listed actions', async () => {
    const { url } = await textcraft();
    const client = await session(url, 'textcraft');
    const opened = await client.reset({ index: 0, seed: 7, episode_id: 'mine' });
    expect(opened).toMatchObject({
      type: 'observation',
      data: { observation: { turn: 0 }, reward: null, done: false },
    });
    const { data } = await client.step('get 1 acacia logs');
    expect(data).toMatchObject({ observation: { text: 'Got 1 acacia logs', turn: 1, success: null }, reward: 0 });
    const craft = await client.step(data.observation.actions.at(-1));
    expect(craft.data).toEqual({
      observation: { text: expect.any(String), actions: [], turn: 2, success: true },
      reward: 1,
      done: true,
    });
    expect((await client.ask({ type: 'state' })).data).toMatchObject({ episode_id: 'mine', step_count: 2, index: 0 });
    expect((await client.step('inventory')).data).toMatchObject({ code: 'EXECUTION_ERROR' });
    expect((await client.reset({ seed: 5 })).type).toBe('observation');
  });

  it('replays the actions that a reset brings, and answers with what the last one led to', async () => {
    const { url } = await faulty();
    const client = await session(url, 'faulty');
    await client.reset({ index: 0 });
    await client.step('+5');
    const third = [await client.step('+2'), await client.step('+9')].at(-1);
    const other = await session(url, 'faulty');
    expect(await other.reset({ index: 0, replay: ['+5', '+2', '+9'] })).toEqual(third);
    expect((await other.step('+1')).data.observation).toMatchObject({ text: expect.stringContaining('17'), turn: 4 });
  });

  it('draws a task of the split by its seed, and walks through the split without one', async () => {
    const { url } = await textcraft();
    const client = await session(url, 'textcraft');
    const drawn = async (data: object) => {
      await client.reset(data);
      return (await client.ask({ type: 'state' })).data.index as number;
    };
    expect(await drawn({ seed: 5 })).toBe(await drawn({ seed: 5 }));
    expect(await drawn({})).not.toBe(await drawn({}));
    const { longplay } = (await call(url, 'GET', '/openenv/textcraft/metadata')).body;
    const ranges = longplay.tasks.test as [number, number][];
    const held = await drawn({ split: 'test', seed: 9 });
    expect(ranges.some(([first, last]) => held >= first && held <= last)).toBe(true);
  });

  it('refuses what is no message of it, in code and words', async () => {
    const { url } = await faulty();
    const client = await session(url, 'faulty');
    const code = async (message: object | string) => (await client.ask(message)).data.code;
    expect(await code('{bad')).toBe('INVALID_JSON');
    expect(await code('[1]')).toBe('VALIDATION_ERROR');
    expect(await code({ type: 'jump' })).toBe('UNKNOWN_TYPE');
    expect(await code({ type: 'step', data: { action: 'x' } })).toBe('EXECUTION_ERROR');
    expect(await code({ type: 'step', data: { action: 1 } })).toBe('VALIDATION_ERROR');
    expect(await code({ type: 'reset', data: { seed: -1 } })).toBe('VALIDATION_ERROR');
    expect(await code({ type: 'reset', data: { index: 10 ** 9 } })).toBe('VALIDATION_ERROR');
    await expect(OpenEnvClient.connect(url, 'nope')).rejects.toThrow('404');
    await expect(OpenEnvClient.connect(url, 'faulty', { origin: 'http://evil.example' })).rejects.toThrow('403');
    const status = async (method: string, path: string) => (await call(url, method, `/openenv/${path}`)).status;
    expect(await status('GET', 'faulty/ws')).toBe(426);
    expect(await status('POST', 'faulty/schema')).toBe(405);
    expect(await status('GET', 'faulty/none')).toBe(404);
    expect(await status('GET', 'nope/schema')).toBe(404);
    const { body } = await call(url, 'GET', '/openenv/faulty/metadata');
    expect(body).toMatchObject({ name: 'faulty', longplay: { maxObservationChars: expect.any(Number) } });
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

  it.each(['throw', 'hang', 'spin', 'exit'])('tells a world that breaks (%s) from one that answers', async (how) => {
    const { url } = await faulty({}, 'thread');
    const [broken, sibling] = [await session(url, 'faulty'), await session(url, 'faulty')];
    for (const client of [broken, sibling]) await client.reset({ index: 0 });
    await sibling.step('+3');
    expect(await broken.step(how)).toMatchObject({
      type: 'error',
      data: { code: 'EXECUTION_ERROR', cause: { throw: 'threw', exit: 'exited' }[how] ?? 'timeout' },
    });
    expect((await broken.step('+1')).data.message).toContain('send a reset');
    expect((await sibling.step('+4')).data.observation.text).toContain('7');
    expect((await broken.reset({ index: 0 })).type).toBe('observation');
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
      const { url } = await textcraft(options);
      const { data } = await (await session(url, 'textcraft')).reset({ index: 31 });
      const { body } = await call(url, 'POST', '/textcraft/create', {});
      const original = await call(url, 'POST', '/textcraft/reset', { id: body.id, data_idx: 31 });
      return [data.observation.text, original.body.observation].map((text) => /Goal: .*/.exec(text)?.[0]);
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
  it('bounds sessions, and lets idle ones go, whether their clients confirm it or not', async () => {
    const clock = new SimulatedClock();
    const { url } = await faulty({ clock, maxSessions: 2, idleMs: 60_000 });
    const [first, second] = [await session(url, 'faulty'), await session(url, 'faulty')];
    for (const client of [first, second]) await client.reset({ index: 0 });
    const third = await session(url, 'faulty');
    expect(await third.next()).toMatchObject({ type: 'error', data: { code: 'CAPACITY_REACHED' } });
    clock.advance(50_000);
    await first.step('+1');
    second.socket.pause(); // never closes, nor answers that it was closed
    clock.advance(30_000);
    expect((await call(url, 'GET', '/health')).body.sessions).toBe(1);
    const { body } = await call(url, 'GET', '/metrics');
    expect(body).toContain('longplay_server_episodes 1\n');
    expect(body).toContain('longplay_server_expired_sessions_total 1\n');
    expect((await first.step('+1')).type).toBe('observation');
    expect((await (await session(url, 'faulty')).reset({ index: 0 })).type).toBe('observation');
    second.socket.terminate();
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
