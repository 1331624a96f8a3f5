/** The commands as a person types them: a policy served, rolled out and evaluated through OpenAI's API. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { misbehavingServer } from '../support/misbehaving-server.ts';
import { makePolicyRun } from '../support/policy-run.ts';

vi.setConfig({ testTimeout: 90_000, hookTimeout: 60_000 });
const main = fileURLToPath(new URL('dist/src/cli/main.js', packageRoot));
const dir = mkdtempSync(join(tmpdir(), 'longplay-openai-'));
let server: ChildProcess;
let url = '';

beforeAll(async () => {
  await makePolicyRun(join(dir, 'trained'), 'textcraft');
  server = spawn(process.execPath, [main, 'serve-policy', join(dir, 'trained'), '--port', '0'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  for await (const line of createInterface({ input: server.stdout! })) {
    url = /http:\/\/[^\s,]+/.exec(line)?.[0] ?? '';
    if (url) break;
  }
});
afterAll(() => {
  server.kill('SIGKILL');
  rmSync(dir, { recursive: true, force: true });
});

async function longplay(...args: string[]) {
  const child = spawn(process.execPath, [main, ...args], { cwd: dir, stdio: ['ignore', 'pipe', 'pipe'] });
  const [out, err] = [child.stdout, child.stderr].map(async (stream) => {
    let text = '';
    for await (const chunk of stream) text += chunk;
    return text;
  });
  const status = await new Promise((resolve) => child.on('exit', resolve));
  return { status, out: await out!, err: await err! };
}

describe('a served policy', () => {
  const base = () => (url.endsWith('/v1') ? url : `${url}/v1`);
  const options = () => ['--policy', 'openai', '--base-url', base(), '--set', 'policy.openai.guided=guided_choice'];

  it('is rolled out, and resumed with nothing left to do', async () => {
    const args = ['--env', 'textcraft', '--episodes', '6', '--horizon', '4', '--name', 'first'];
    const { status, out, err } = await longplay('rollout', ...args, ...options());
    expect(err).toBe('');
    expect(out).toMatch(/^elapsed=|^horizon=/m);
    expect(out).toMatch(/run runs\/first: longplay view runs\/first\n$/);
    expect(status).toBe(0);
    expect(existsSync(join(dir, 'runs', 'first', 'metrics.jsonl'))).toBe(true);
    const again = await longplay('rollout', '--resume', 'runs/first', '--json');
    expect(again.err).toBe('6 episodes are finished already, 0 are left\n');
    expect(JSON.parse(again.out.trim().split('\n').at(-1)!)).toMatchObject({ finished: 6, run: 'runs/first' });
    expect(again.status).toBe(0);
  });

  it('is evaluated from a configuration', async () => {
    const config = join(dir, 'remote.yaml');
    const text = `env: { id: textcraft }
horizon: { type: fixed, rounds: 4 }
policy:
  kind: openai
  openai: { baseUrl: "${base()}", guided: guided_choice }
evaluation: { horizons: [3], episodesPerTask: 1 }
stop: { updates: 1 }
`;
    writeFileSync(config, text);
    const { status, out, err } = await longplay('eval', config, '--json');
    expect(err.replace(/^evaluating .*\n/gm, '')).toBe(''); // a slow machine prints its progress
    expect(status).toBe(0);
    const { evaluations } = JSON.parse(out);
    expect(evaluations[0].all.episodes).toBe(100);
    expect(readFileSync(config, 'utf8')).toBe(text);
  });

  it('that chooses is not called without a list: one line names what to set', async () => {
    const { status, err } = await longplay('rollout', '--env', 'textcraft', '--base-url', base());
    expect(err).toMatch(/^longplay: .* chooses among listed actions: set policy\.openai\.guided=guided_choice, .*\n$/);
    expect(status).toBe(2);
    expect(existsSync(join(dir, 'runs', 'rollout-textcraft'))).toBe(false);
  });

  it.each([0, 300])(
    'whose server refuses every turn after the first %i ends the rollout with one line',
    async (good) => {
      let requests = 0;
      const content = 'Thought:\nLet me see.\n\nAction:\ninventory';
      const refusing = await misbehavingServer(
        async ({ path }) => {
          if (path.endsWith('/models')) return { status: 200, json: { data: [{ id: 'm' }] } };
          if (requests++ >= good) return { status: 400, json: { error: { message: 'no such field' } } };
          return { status: 200, json: { choices: [{ message: { content }, finish_reason: 'stop' }] } };
        },
        () => 'ok',
      );
      try {
        const args = ['--env', 'textcraft', '--horizon', '2', '--episodes', '1000', '--name', `refused-${good}`];
        const { status, err } = await longplay('rollout', ...args, '--base-url', `${refusing.url}/v1`);
        const lines = err.trimEnd().split('\n');
        expect(lines.at(-1)).toMatch(/^longplay: the policy is broken: 256 episodes in a row failed .*no such field/);
        expect(lines.filter((line) => line.startsWith('longplay: '))).toHaveLength(1);
        const kept = lines.includes(
          `finished episodes are kept; go on with: longplay rollout --resume runs/refused-${good}`,
        );
        expect(kept).toBe(good > 0);
        expect(status).toBe(1);
      } finally {
        await refusing.close();
      }
      if (good === 0) return;
      const again = await longplay('rollout', '--resume', `runs/refused-${good}`);
      expect(again.err).toMatch(
        /^\d+ episodes are finished already, \d+ are left\nlongplay: .*is the server running\?\n$/,
      );
      expect(again.status).toBe(2);
    },
  );

  it('that is not there is one line', async () => {
    const { status, err } = await longplay('rollout', '--env', 'textcraft', '--base-url', 'http://127.0.0.1:9/v1');
    expect(err).toMatch(/^.*is the server running\?\n$/);
    expect(status).toBe(2);
    expect(existsSync(join(dir, 'runs', 'rollout-textcraft'))).toBe(false);
  });
});
