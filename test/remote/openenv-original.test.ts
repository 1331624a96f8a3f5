/**
 * Our OpenEnv client against servers of the original's library, and its client against our server. Needs a Python with
 * `openenv-core`, named by LONGPLAY_OPENENV_PYTHON (by default `python3`).
 */
import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process';
import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { findWorld } from '../../src/run/find-world.ts';
import { startEnvServer } from '../../src/run/serve-worlds.ts';

vi.setConfig({ testTimeout: 120_000 });
const python = process.env.LONGPLAY_OPENENV_PYTHON ?? 'python3';
const hasOpenEnv = spawnSync(python, ['-c', 'import importlib.metadata as m; m.version("openenv-core")']).status === 0;
if (!hasOpenEnv) console.log(`skipped: ${python} has no openenv-core (pip install openenv-core)`);
const script = fileURLToPath(new URL('../support/openenv_server.py', import.meta.url));
const running: ChildProcess[] = [];
afterAll(() => {
  for (const child of running) child.kill('SIGKILL');
});

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

async function start(kind: 'text' | 'board'): Promise<string> {
  const port = await freePort();
  running.push(spawn(python, [script, kind, String(port)], { stdio: 'ignore' }));
  const url = `http://127.0.0.1:${port}`;
  const isUp = () =>
    fetch(`${url}/health`).then(
      ({ ok }) => ok,
      () => false,
    );
  while (!(await isUp())) await new Promise((resolve) => setTimeout(resolve, 200));
  return url;
}

describe.skipIf(!hasOpenEnv)('the original', () => {
  it('with actions of text is a world, up to its sessions and its mistakes', async () => {
    const id = `openenv+${await start('text')}`;
    const { env } = await findWorld(id, { attempts: 2, deadlineMs: 500 });
    expect(env).toMatchObject({ id: 'openenv', description: 'Echo environment' });
    const open = async (index: number) => env.open({ env: env.id, index, seed: 0 });
    const session = await open(5);
    expect(session.first).toEqual({ kind: 'first', observation: 'seed 5' });
    expect(await session.step('hi')).toEqual({ kind: 'mid', observation: 'HI', reward: 0 });
    await session.step('there');
    const end = { kind: 'terminated', observation: 'YOU', reward: 1, success: true };
    expect(await session.step('you')).toEqual(end);
    await session.close();
    const broken = await open(1);
    await expect(Promise.resolve(broken.step('break'))).rejects.toThrow(/EXECUTION_ERROR: broken on purpose/);
    await broken.close();
    const held = [await open(0), await open(1), await open(2), await open(3)];
    await expect(open(4)).rejects.toThrow(/gives no session: Server at capacity: 4\/4/);
    for (const one of held) await one.close();
  });

  it('with actions of two fields is sent JSON, and explains what is wrong with it', async () => {
    const { env } = await findWorld(`openenv+${await start('board')}`);
    const session = await env.open({ env: env.id, index: 0, seed: 0 });
    expect(session.first.observation).toBe('{"cells":[0,0,0,0,0,0,0,0,0],"moves":0}');
    for (const wrong of ['{"row":"x","col":1}', '{"row":0,"col":1,"z":1}']) {
      const { kind, reward, observation } = await session.step(wrong);
      expect([kind, reward]).toEqual(['mid', 0]);
      expect(observation).toMatch(/^Invalid action: .*VALIDATION_ERROR.*(valid integer|Extra inputs)/);
    }
    const first = { kind: 'mid', observation: '{"cells":[0,1,0,0,0,0,0,0,0],"moves":1}', reward: 1 };
    expect(await session.step('{"row":0,"col":1}')).toEqual(first); // `true` for a reward is 1
    expect(await session.step('{"row":2,"col":2}')).toMatchObject({ kind: 'terminated', reward: 1 });
    await session.close();
  });

  it('as a client plays one of our worlds', async () => {
    const ours = await startEnvServer(['textcraft']);
    try {
      const { stdout } = await promisify(execFile)(python, [script, 'client', `${ours.url}/openenv/textcraft`]);
      const { results, state } = JSON.parse(stdout);
      expect(results[0].slice(1)).toEqual([null, false]);
      expect(results[1]).toMatchObject([{ text: 'Got 1 acacia logs', turn: 1, success: null }, 0, false]);
      expect(results[2]).toMatchObject([{ success: true }, 1, true]);
      expect(state).toMatchObject({ episode_id: 'mine', step_count: 2, index: 0 });
      await vi.waitFor(() => expect(ours.sessions).toBe(0));
    } finally {
      await ours.close();
    }
  });
});
