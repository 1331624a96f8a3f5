/** WebArena's routes: our server as AgentGym's, our remote env as its client, and whole episodes over HTTP. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { agentgym, createOracle } from '../../envs/webarena/index.ts';
import { drawTask, tasks } from '../../envs/webarena/tasks.ts';
import type { TimeStep } from '../../src/core/env.ts';
import { startEnvServer } from '../../src/run/serve-worlds.ts';
import type { EnvServer } from '../../src/serve/env-server.ts';
import { createEnv } from '../../src/world/remote/agentgym-client.ts';

let server: EnvServer;
beforeAll(async () => {
  server = await startEnvServer(['webarena']);
}, 120_000);
afterAll(() => server?.close());

async function send(path: string, body?: unknown): Promise<{ status: number; answer: unknown }> {
  const response = await fetch(server.url + path, {
    ...(body === undefined
      ? {}
      : { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.includes('json');
  return { status: response.status, answer: isJson ? JSON.parse(text) : text };
}

/** Tasks that need no select: under the original's rules a select is a closed box. */
const PLAYABLE = tasks.split('train').filter((index) => {
  const { template, instance } = drawTask({ index, seed: 0 });
  return template.sites.length === 1 && instance.plan.every((step) => step.do !== 'choose') && instance.plan.length < 6;
});

it('the remote env plays what the server serves, to the same rewards', { timeout: 300_000 }, async () => {
  const env = createEnv({ url: server.url, world: 'webarena' }, agentgym.client);
  let won = 0;
  for (const index of PLAYABLE.slice(0, 6)) {
    const task = { env: 'webarena', index, seed: 0 };
    const next = createOracle()(task);
    const session = await env.open(task);
    let step: TimeStep = session.first;
    for (let turn = 0; turn < 20 && step.kind !== 'terminated'; turn++) {
      const action: string | undefined = next(step);
      if (action === undefined) break;
      step = await session.step(action);
    }
    expect(step, `task ${index}`).toMatchObject({ kind: 'terminated', reward: 1, success: true });
    won++;
    await session.close();
  }
  expect(won).toBe(6);
});

it('the routes answer as the original’s do', { timeout: 120_000 }, async () => {
  expect(await send('/')).toEqual({ status: 200, answer: 'ok' });
  expect((await send('/list_envs')).status).toBe(500);
  const { answer: created } = await send('/create', {});
  const { env_idx } = created as { env_idx: number };
  const lost = { status: 200, answer: { observation: 'TimeoutError', sites: 'Error', object: 'Error' } };
  expect(await send('/reset', { env_idx, seed: 0, idx: 99_999 })).toEqual(lost);
  expect(await send('/reset', { env_idx: 4711, seed: 0, idx: 0 })).toEqual(lost);
  const { answer: reset } = await send('/reset', { env_idx, seed: 0, idx: 0 });
  const { intent } = drawTask({ index: 0, seed: 0 }).instance;
  expect(reset).toMatchObject({ sites: ['shopping'], object: intent });
  const invalid = await send('/step', { env_idx, action: '```dance [1]```' });
  expect(invalid.answer).toMatchObject({
    observation: 'Invalid action dance [1]',
    reward: 0,
    terminated: false,
    info: null,
  });
  const stepped = await send('/step', { env_idx, action: 'I scroll. ```scroll [down]```' });
  expect(stepped.answer).toMatchObject({ reward: 1, terminated: false, truncated: false });
  const { answer: seen } = await send(`/observation?env_idx=${env_idx}`);
  expect(seen).toBe((stepped.answer as { observation: string }).observation);
  expect(await send('/step', { env_idx, action: '```stop [nonsense]```' })).toMatchObject({
    answer: { reward: 0, terminated: true },
  });
  expect(await send('/close', { env_idx })).toEqual({ status: 200, answer: { closed: 'closed' } });
});
