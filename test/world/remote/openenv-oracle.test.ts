/** OpenEnv's own server played by our client, and our server played by OpenEnv's own client (`pip install openenv-core`). */
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { checkRunConfig } from '../../../src/config/load.ts';
import { findWorld } from '../../../src/run/find-world.ts';
import { playRollout } from '../../../src/run/rollout.ts';
import { createRunFolder } from '../../../src/run/run-folder.ts';
import { startEnvServer } from '../../../src/run/serve-worlds.ts';
import { readTrace } from '../../../src/storage/trace.ts';
import { tracePaths } from '../../../src/storage/trace-files.ts';
import { misbehavingServer } from '../../support/misbehaving-server.ts';

const python = [process.env.LONGPLAY_OPENENV_PYTHON ?? 'python3', '/usr/bin/python3'].find(
  (bin) => spawnSync(bin, ['-c', 'import openenv.core.generic_client, uvicorn']).status === 0,
);
if (!python) console.log('skipped: no Python here has openenv-core (LONGPLAY_OPENENV_PYTHON names another one)');
const oracle = fileURLToPath(new URL('../../support/openenv_oracle.py', import.meta.url));

describe.skipIf(!python)('OpenEnv’s own', () => {
  let servers: ChildProcess;
  let ports: readonly [number, number];
  beforeAll(async () => {
    servers = spawn(python!, [oracle, 'serve'], { stdio: ['pipe', 'pipe', 'ignore'] });
    const line = await new Promise<string>((resolve) => servers.stdout!.once('data', (data) => resolve(String(data))));
    ports = JSON.parse(line);
  }, 60_000);
  afterAll(() => servers?.kill());
  const world = (port: number, options = {}) => findWorld(`openenv+http://127.0.0.1:${port}`, options);

  it('server of a text action is a world', async () => {
    const { env } = await world(ports[0]);
    const session = await env.open({ env: env.id, index: 5, seed: 0 });
    expect(session.first.observation).toBe('say 5');
    expect(await session.step('4')).toEqual({ kind: 'mid', observation: 'you said 4', reward: 0 });
    const end = { kind: 'terminated', observation: 'you said 5', reward: 1, success: true };
    expect(await session.step('5')).toEqual(end);
    await session.close();
  });

  it('server that breaks fails the episode with its reason', async () => {
    const { env } = await world(ports[0]);
    const session = await env.open({ env: env.id, index: 5, seed: 0 });
    await expect(Promise.resolve(session.step('break'))).rejects.toThrow('EXECUTION_ERROR: the echo is broken');
    await session.close();
  });

  it('server of a JSON action validates it; a full one gets a retry', async () => {
    const { env } = await world(ports[1]);
    const task = { env: env.id, index: 0, seed: 0 };
    const session = await env.open(task);
    expect(session.first.observation).toBe('{"cells":[],"left":3}');
    const waiting = Promise.resolve(env.open(task)); // the server holds one session
    expect(await session.step('go')).toEqual({
      kind: 'mid',
      observation: 'The action is not one JSON object.',
      reward: 0,
    });
    const refused = await session.step('{"row": "one"}');
    expect(refused).toMatchObject({ kind: 'mid', reward: 0 });
    expect(refused.observation).toMatch(
      /The server refuses the action: Invalid message: row: .*; column: Field required/,
    );
    const marked = await session.step('{"row": 1, "column": 2}');
    expect(marked).toEqual({ kind: 'mid', observation: '{"cells":["1,2,x"],"left":2}', reward: -0.1 });
    await session.close();
    const next = await waiting;
    expect(next.first.observation).toBe('{"cells":[],"left":3}');
    await next.close();
  });

  it('server is played by a rollout', { timeout: 60_000 }, async () => {
    const model = await misbehavingServer(
      async ({ path }) => {
        if (path === '/v1/models') return { status: 200, json: { data: [{ id: 'tiny' }] } };
        return { status: 200, json: { choices: [{ message: { content: 'Action: 18' } }] } };
      },
      () => 'ok',
    );
    const dir = mkdtempSync(join(tmpdir(), 'longplay-openenv-'));
    try {
      const config = checkRunConfig(
        {
          env: { id: `openenv+http://127.0.0.1:${ports[0]}`, options: { tasks: 20 } },
          policy: { kind: 'openai', openai: { baseUrl: `${model.url}/v1` } },
          horizon: { type: 'fixed', rounds: 2 },
          stop: { updates: 1 },
          rollout: { concurrentGroups: 1 },
        },
        'test',
      );
      createRunFolder(join(dir, 'run'), config);
      const plan = { format: 1, episodes: 2, split: 'test', horizon: 2, temperature: 1, seed: 3 } as const;
      const { finished } = await playRollout({ dir: join(dir, 'run'), config, plan }, { onNotice: () => {} });
      expect(finished).toBe(2);
      const { episodes } = readTrace(tracePaths(join(dir, 'run', 'traces'))[0]!);
      expect(episodes.map(({ task, end, turns }) => [task.index, turns[0]!.observation, end]).sort()).toEqual([
        [18, 'say 18', 'terminated'],
        [19, 'say 19', 'truncated'],
      ]);
    } finally {
      await model.close();
      rmSync(dir, { recursive: true, force: true });
    }
  });

  it('client plays our server', async () => {
    const server = await startEnvServer(['textcraft']);
    try {
      const { stdout } = await promisify(execFile)(python!, [oracle, 'play', `${server.url}/openenv/textcraft`]);
      const [first, got, end, state, refusal] = JSON.parse(stdout);
      expect(first).toMatchObject({ reward: null, done: false, observation: { turn: 0, success: null } });
      expect(got).toMatchObject({ reward: 0, observation: { text: 'Got 1 acacia logs' } });
      expect(end).toMatchObject({ reward: 1, done: true, observation: { success: true } });
      expect(state).toMatchObject({ step_count: 2, index: 0 });
      expect(refusal).toContain('EXECUTION_ERROR');
    } finally {
      await server.close();
    }
  });

  it('client of tools plays our world of tools', async () => {
    const server = await startEnvServer(['tau2'], { options: { domain: 'mock' } });
    try {
      const { stdout } = await promisify(execFile)(python!, [oracle, 'tools', `${server.url}/openenv/tau2`]);
      const [tools, messages, created, ...rest] = JSON.parse(stdout);
      expect(tools.map(({ name }: { name: string }) => name)).toContain('create_task');
      expect(messages.at(-1).content).toContain('Important Meeting');
      expect(created).toContain('"task_id": "task_2"');
      expect(rest).toEqual([
        ['CallToolObservation', { error_type: 'tool_not_found', message: expect.any(String) }],
        ['CallToolObservation', { error_type: 'invalid_args', message: expect.any(String) }],
        ['CallToolObservation', { error_type: 'execution_error', message: expect.any(String) }],
        { reward: 1, done: true },
        expect.stringContaining('EXECUTION_ERROR'),
      ]);
    } finally {
      await server.close();
    }
  });
});
