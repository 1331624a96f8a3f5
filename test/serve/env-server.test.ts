/** The uniform protocol, the limits, and what happens when a world breaks behind the server. */
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

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function textcraft(options: EnvOptions = {}): Promise<EnvServer> {
  const server = await startEnvServer(['textcraft'], { options });
  closing.push(() => server.close());
  return server;
}

/** A server of the faulty world, its hosts in this thread unless told otherwise. */
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

describe('the uniform protocol', () => {
  it('plays an episode to its end, by listed actions', async () => {
    const { url } = await textcraft();
    const opened = await call(url, 'POST', '/v1/sessions', { env: 'textcraft', index: 0, seed: 7 });
    expect(opened.status).toBe(201);
    expect(opened.body).toMatchObject({ env: 'textcraft', turn: 0, step: { kind: 'first' } });
    const at = `/v1/sessions/${opened.body.session}`;
    expect((await call(url, 'GET', `${at}/available_actions`)).body.actions).toEqual(opened.body.actions);
    const get = await call(url, 'POST', `${at}/step`, { turn: 1, action: 'get 1 acacia logs' });
    expect(get.body.step).toEqual({ kind: 'mid', observation: 'Got 1 acacia logs', reward: 0 });
    const craft = await call(url, 'POST', `${at}/step`, { turn: 2, action: get.body.actions.at(-1) });
    expect(craft.body).toMatchObject({ turn: 2, step: { kind: 'terminated', reward: 1, success: true }, actions: [] });
    expect((await call(url, 'POST', `${at}/step`, { turn: 3, action: 'inventory' })).status).toBe(409);
    expect((await call(url, 'DELETE', at)).status).toBe(204);
    expect((await call(url, 'GET', at)).status).toBe(404);
  });

  it('answers a step sent again without taking it again', async () => {
    const { url } = await faulty();
    const { body } = await call(url, 'POST', '/v1/sessions', { env: 'faulty', index: 0 });
    const step = (turn: number, action: string) =>
      call(url, 'POST', `/v1/sessions/${body.session}/step`, { turn, action });
    const first = await step(1, '+5');
    expect((await step(1, '+5')).body).toEqual(first.body);
    const [a, b] = await Promise.all([step(2, '+2'), step(2, '+2')]);
    expect(a.body).toEqual(b.body);
    expect(a.body.step.observation).toContain('7');
    expect((await step(1, '+5')).status).toBe(409);
    expect((await step(4, '+5')).body.error.code).toBe('WRONG_TURN');
  });

  it('says what is wrong with a request, in status and words', async () => {
    const { url } = await faulty();
    const status = async (...args: [string, string, unknown?]) => (await call(url, ...args)).status;
    expect(await status('POST', '/v1/sessions', '{bad')).toBe(400);
    expect(await status('POST', '/v1/sessions', { env: 'faulty' })).toBe(400);
    expect(await status('POST', '/v1/sessions', { env: 'faulty', index: 10 ** 9 })).toBe(400);
    expect(await status('POST', '/v1/sessions', { env: 'nope', index: 0 })).toBe(404);
    expect(await status('GET', '/v1/sessions')).toBe(405);
    expect(await status('GET', '/v1/sessions/none')).toBe(404);
    expect(await status('GET', '/v1/other')).toBe(404);
    expect((await call(url, 'GET', '/v1/envs/faulty')).body.id).toBe('faulty');
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
    const open = async () => (await call(url, 'POST', '/v1/sessions', { env: 'faulty', index: 0 })).body.session;
    const [broken, sibling] = [await open(), await open()];
    await call(url, 'POST', `/v1/sessions/${sibling}/step`, { turn: 1, action: '+3' });
    const failed = await call(url, 'POST', `/v1/sessions/${broken}/step`, { turn: 1, action: how });
    expect(failed.status).toBe(500);
    expect(failed.body.error).toMatchObject({
      code: 'ENV_FAILED',
      cause: { throw: 'threw', exit: 'exited' }[how] ?? 'timeout',
    });
    expect((await call(url, 'GET', `/v1/sessions/${broken}`)).status).toBe(404);
    const next = await call(url, 'POST', `/v1/sessions/${sibling}/step`, { turn: 2, action: '+4' });
    expect(next.body.step.observation).toContain('7');
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
  it('hold under our protocol and under AgentGym’s', async () => {
    const opened = async (options: EnvOptions) => {
      const { url } = await textcraft(options);
      const own = await call(url, 'POST', '/v1/sessions', { env: 'textcraft', index: 31 });
      const { body } = await call(url, 'POST', '/textcraft/create', {});
      const original = await call(url, 'POST', '/textcraft/reset', { id: body.id, data_idx: 31 });
      return [own.body.step.observation, original.body.observation].map((text) => /Goal: .*/.exec(text)?.[0]);
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
  it('bounds sessions, and lets idle ones go', async () => {
    const clock = new SimulatedClock();
    const { url } = await faulty({ clock, maxSessions: 2, idleMs: 60_000 });
    const open = () => call(url, 'POST', '/v1/sessions', { env: 'faulty', index: 0 });
    const first = await open();
    expect((await open()).status).toBe(201);
    expect((await open()).status).toBe(503);
    clock.advance(50_000);
    await call(url, 'GET', `/v1/sessions/${first.body.session}`);
    clock.advance(30_000);
    expect((await call(url, 'GET', '/health')).body.sessions).toBe(1);
    expect((await call(url, 'GET', `/v1/sessions/${first.body.session}`)).status).toBe(200);
    expect((await open()).status).toBe(201);
  });

  it('bounds bodies and rate', async () => {
    const clock = new SimulatedClock();
    const { url } = await faulty({ maxBodyBytes: 100, requestsPerSecond: 5, clock });
    expect((await call(url, 'POST', '/v1/sessions', 'x'.repeat(101))).status).toBe(413);
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
