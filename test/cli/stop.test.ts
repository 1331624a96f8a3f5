/** SIGTERM while a model's answer is under way: the command ends, though the answer never comes. */
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeEach, expect, it } from 'vitest';
import { writeTinyChatModel } from '../../experiments/tiny-chat-model.ts';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { type MisbehavingServer, misbehavingServer } from '../support/misbehaving-server.ts';
import { temporaryFolder } from '../support/small-run.ts';

const main = fileURLToPath(new URL('dist/src/cli/main.js', packageRoot));
const dir = temporaryFolder('stop');
afterAll(() => rmSync(dir, { recursive: true, force: true }));

let server: MisbehavingServer;
let asked: Promise<void>;
let ask = () => {};

/** Watches for the next request for an answer. */
function watch(): void {
  asked = new Promise((resolve) => {
    ask = resolve;
  });
}

beforeEach(async () => {
  watch();
  server = await misbehavingServer(
    async () => ({ status: 200, json: { data: [{ id: 'm' }] } }),
    (_, { path }) => {
      if (path.endsWith('/models')) return 'ok';
      ask();
      return 'silence';
    },
  );
});
afterEach(() => server.close());

/** Runs a command until the server is asked for an answer, then sends SIGTERM. @returns how it ended, and the requests */
async function stopped(...args: string[]) {
  const child = spawn(process.execPath, [main, ...args], { cwd: dir, stdio: ['ignore', 'ignore', 'pipe'] });
  let err = '';
  child.stderr.on('data', (text) => {
    err += text;
  });
  const ended = new Promise<number | null>((resolve) => child.on('exit', resolve));
  const first = await Promise.race([asked, ended]);
  expect(first, err).toBe(undefined);
  child.kill('SIGTERM');
  const status = await ended;
  return { status, err, requests: server.log.filter(({ path }) => !path.endsWith('/models')) };
}

const TIMEOUT = { timeout: 40_000 }; // a request has 120 s, and is then made again

it('rollout', TIMEOUT, async () => {
  const { status, err, requests } = await stopped(
    ...['rollout', '--env', 'textcraft', '--base-url', `${server.url}/v1`, '--episodes', '4'],
  );
  expect(err).toBe(
    'SIGTERM: finished episodes are kept\n' +
      '4 episodes are missing; go on with: longplay rollout --resume runs/rollout-textcraft\n',
  );
  expect(status).toBe(1);
  expect(requests).toHaveLength(4); // none was asked for again
});

it('train, beside a server that generates, and a rollout of what it trained', TIMEOUT, async () => {
  const model = join(dir, 'model');
  mkdirSync(model);
  writeTinyChatModel(model);
  const config = join(dir, 'served.yaml');
  writeFileSync(
    config,
    `env: { id: textcraft }
horizon: { type: fixed, rounds: 2 }
policy:
  kind: server
  path: ${model}
  adapter: { rank: 4, alpha: 8, targets: [q_proj, v_proj] }
  maxTokens: 8
  server: { api: vllm, url: "${server.url}" }
  chat: { contextTokens: 4096 }
rollout: { groupSize: 2, concurrentGroups: 2, maxBatch: 8 }
stop: { updates: 1 }
`,
  );
  const { status, err } = await stopped('train', config, '--name', 'served');
  expect(err).toMatch(/SIGTERM: ending the run/);
  expect(err).not.toMatch(/did not stop|internal error/);
  expect(status, err).toBe(0);
  expect(existsSync(join(dir, 'runs', 'served', 'results.json'))).toBe(true);
  expect(readdirSync(join(dir, 'runs', 'served', 'checkpoints'))).toHaveLength(1);
  watch();
  const rolled = await stopped('rollout', '--policy', 'runs/served', '--env', 'textcraft', '--episodes', '4');
  expect(rolled.err).toMatch(/SIGTERM: finished episodes are kept\n4 episodes are missing; .*\n$/);
  expect(rolled.status, rolled.err).toBe(1);
});
