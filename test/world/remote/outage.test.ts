/** Outages of an environment's server: a short one is survived; a server that is gone ends the run, and is named. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, expect, it } from 'vitest';
import { loadRunConfig } from '../../../src/config/load.ts';
import { playRollout } from '../../../src/run/rollout.ts';
import { createRunFolder } from '../../../src/run/run-folder.ts';
import { runStreams } from '../../../src/run/run-streams.ts';
import { startEnvServer } from '../../../src/run/serve-worlds.ts';
import { misbehavingServer } from '../../support/misbehaving-server.ts';
import { temporaryFolder } from '../../support/small-run.ts';

const TIMEOUT = { timeout: 60_000 };
const dir = temporaryFolder('outage');
const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

let runs = 0;

/** Plays a rollout whose world is at a server. @param onFinished called with the number of finished episodes */
function play(
  env: object,
  settings: readonly string[],
  episodes: number,
  onFinished: (count: number) => void = () => {},
) {
  const raw = { env, horizon: { type: 'fixed', rounds: 8 }, stop: { updates: 1 } };
  const set = ['policy.kind=random', 'rollout.concurrentGroups=4', 'rollout.envThreads=1', ...settings];
  const config = loadRunConfig(JSON.stringify(raw), 'test', set);
  const out = join(dir, String(runs++));
  createRunFolder(out, config);
  const plan = { format: 1, episodes, split: 'test', horizon: 8, temperature: 1, seed: 3 } as const;
  const streams = runStreams();
  let finished = 0;
  streams.episodes$.subscribe(() => onFinished(++finished));
  const limits = { retry: { maxOutageMs: 1000 } };
  return playRollout({ dir: out, config, plan }, { onNotice: () => {}, streams, limits });
}

const agentgym = (url: string) => ({ id: 'agentgym', options: { url, world: 'textcraft' } });

it.each(['rollout.envServer', 'env.options.url'])(
  'a server that is not there is refused by its name: %s',
  TIMEOUT,
  async (key) => {
    const url = 'http://127.0.0.1:9';
    const own = key === 'rollout.envServer';
    const work = play(own ? { id: 'textcraft' } : agentgym(url), own ? [`${key}=${url}`] : [], 4);
    await expect(work).rejects.toMatchObject({
      name: 'UserError',
      message: expect.stringMatching(
        new RegExp(`^${url}.*: the environment's server does not answer: .*ECONNREFUSED.*; start it, or set ${key}`),
      ),
    });
  },
);

it('a server that never answers is refused by its name', TIMEOUT, async () => {
  const ok = async () => ({ status: 200, json: {} });
  const { url, close } = await misbehavingServer(ok, () => 'silence');
  closing.push(close);
  await expect(play({ id: 'textcraft' }, [`rollout.envServer=${url}`], 4)).rejects.toThrow(
    `${url}: the environment's server does not answer: GET ${url}/: no whole answer within`,
  );
});

it('a server that is gone for good ends the run', TIMEOUT, async () => {
  const server = await startEnvServer(['textcraft']);
  const work = play({ id: 'textcraft' }, [`rollout.envServer=${server.url}`], 100_000, (count) => {
    if (count === 8) void server.close();
  });
  const { port } = new URL(server.url);
  await expect(work).rejects.toThrow(
    new RegExp(
      `^the environment's server has not answered for \\d+ s: \\d+ episodes failed \\(the last: unreachable on .*:${port}.*\\); start the environment's server again, then resume$`,
    ),
  );
});

it('a server that restarts is waited for', TIMEOUT, async () => {
  const first = await startEnvServer(['textcraft']);
  const port = Number(new URL(first.url).port);
  let restarted: Promise<{ close(): Promise<void> }> | undefined;
  closing.push(async () => (await restarted)?.close());
  const { finished } = await play({ id: 'textcraft' }, [`rollout.envServer=${first.url}`], 64, (count) => {
    if (count < 8 || restarted) return;
    restarted = first.close().then(() => startEnvServer(['textcraft'], { port }));
  });
  expect(restarted).toBeDefined();
  expect(finished).toBe(64);
});
