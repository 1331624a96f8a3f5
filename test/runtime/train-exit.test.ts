/** `longplay train` as a process: how it ends, and with which exit code. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { startRun } from '../../src/run/start-run.ts';
import { smallConfig, textcraftUrl } from '../support/small-run.ts';

const main = fileURLToPath(new URL('../../dist/src/cli/main.js', import.meta.url));
const config = fileURLToPath(new URL('../../experiments/textcraft.yaml', import.meta.url));
const folders: string[] = [];
const children: ChildProcess[] = [];

afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

const QUICK = [
  'evaluation.episodesPerTask=1',
  'evaluation.horizons=[4]',
  'evaluation.greedy=false',
  'evaluation.randomBaseline=false',
];

function train(settings: readonly string[], ...flags: readonly string[]) {
  const runs = mkdtempSync(join(tmpdir(), 'longplay-exit-'));
  folders.push(runs);
  const set = [...QUICK, ...settings].flatMap((one) => ['--set', one]);
  const child = spawn(process.execPath, [main, 'train', config, '--runs', runs, '--name', 'r', ...set, ...flags]);
  children.push(child);
  let stdout = '';
  child.stdout.on('data', (text) => {
    stdout += text;
  });
  let stderr = '';
  child.stderr.on('data', (text) => {
    stderr += text;
  });
  const ended = new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) => {
    child.once('close', (code) => resolve({ code, stdout, stderr }));
  });
  const updates = () => {
    try {
      return readFileSync(join(runs, 'r', 'metrics.jsonl'), 'utf8').split('\n').length - 1;
    } catch {
      return 0;
    }
  };
  const until = async (holds: () => boolean) => {
    while (!holds() && child.exitCode === null) await new Promise((resolve) => setTimeout(resolve, 20));
  };
  return {
    child,
    ended,
    reaches: (n: number) => until(() => updates() >= n),
    prints: (text: string) => until(() => stderr.includes(text)),
    folder: join(runs, 'r'),
  };
}

describe('longplay train', () => {
  it.each(process.env.LONGPLAY_LONG === '1' ? (['SIGINT', 'SIGTERM'] as const) : (['SIGTERM'] as const))(
    'drains, writes a checkpoint and exits 0 on %s',
    async (signal) => {
      const { child, ended, reaches, prints, folder } = train(['stop.updates=100000']);
      await reaches(2);
      child.kill(signal);
      await prints(`${signal}: ending the run`);
      child.kill(signal); // npx passes on what the terminal has sent to it and to us
      const { code, stderr } = await ended;
      expect(stderr).toContain(`${signal}: ending the run with a checkpoint`);
      expect(code).toBe(0);
      const results = JSON.parse(readFileSync(join(folder, 'results.json'), 'utf8'));
      expect(results.ended.why).toBe('halted');
      // The update under way is finished first.
      const newest = Math.max(...readdirSync(join(folder, 'checkpoints')).map(Number));
      expect(newest).toBeGreaterThanOrEqual(results.ended.status.version);
    },
    60_000,
  );

  it('exits at once on the second signal', async () => {
    const { child, ended, reaches, prints } = train(['stop.updates=100000', 'learner.epochs=20']);
    await reaches(1);
    child.kill('SIGINT');
    await prints('SIGINT: ending the run');
    // One that comes right behind the first is the same Ctrl-C, passed on by npx; so the second is sent until it counts.
    const again = setInterval(() => child.kill('SIGINT'), 50);
    const { code } = await ended;
    clearInterval(again);
    // An engine's thread that is ended inside a call may take the process along; it is over either way.
    expect([130, null]).toContain(code);
  }, 60_000);

  it('exits 1 with one line naming the cause where the environment is broken', async () => {
    const { ended } = train(['stop.updates=5'], '--chaos', 'throw=1');
    const { code, stderr } = await ended;
    expect(code).toBe(1);
    const errors = stderr.split('\n').filter((line) => line.startsWith('longplay: '));
    expect(errors).toHaveLength(1);
    expect(errors[0]).toMatch(/^longplay: the environment is broken: 256 episodes in a row failed .*injected fault/);
  }, 60_000);

  it.runIf(process.env.LONGPLAY_LONG === '1')(
    'is ended by a stall, which names actor, message and age',
    async () => {
      const dir = mkdtempSync(join(tmpdir(), 'longplay-stall-'));
      folders.push(dir);
      const long = { groupsPerUpdate: 2, epochs: 10_000 };
      const run = await startRun({
        ...{ config: smallConfig({ learner: long }), dir, mode: 'async', envModule: textcraftUrl, learn: true },
        limits: { watchdog: { stallMs: 3000 } },
      });
      const message = /^\/learner is stalled: it has not got on with group for \d+ ms$/;
      await expect(run.train()).rejects.toMatchObject({ message: expect.stringMatching(message) });
      await run.stop();
    },
    120_000,
  );

  it('reports what chaos did; a recorded order is repeated to the same weights, and not under another seed', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'longplay-order-'));
    folders.push(folder);
    const order = join(folder, 'order.jsonl');
    const settings = ['stop={updates: 2}', 'rollout.concurrentGroups=8'];
    const recorded = await train(settings, '--chaos', 'throw=0.03,nan=0.02', '--record-order', order).ended;
    expect(recorded.code).toBe(0);
    expect(recorded.stdout).toMatch(/^throw +[1-9]\d* /m);
    expect(recorded.stdout).toMatch(/^nan +[1-9]\d* /m);
    const repeated = await train(settings, '--replay-order', order).ended;
    expect(repeated.stderr).toMatch(/the replay ended with the recorded weights \(sha256 [0-9a-f]{16}…\)/);
    expect(repeated.code).toBe(0);
    const other = await train([...settings, 'seed=9'], '--replay-order', order).ended;
    expect(other).toMatchObject({ code: 2, stderr: expect.stringMatching(/recorded under another configuration/) });
  }, 120_000);

  it('exits 2 for unknown faults, and for faults that would end the run itself', async () => {
    const unknown = await train(['stop.updates=5'], '--chaos', 'gremlins=1').ended;
    expect(unknown.code).toBe(2);
    expect(unknown.stderr).toMatch(/^longplay: --chaos: 'gremlins=1': expected one of kill, hang, /);
    const deadly = await train(['stop.updates=5', 'rollout.isolation=inline'], '--chaos', 'kill=0.1').ended;
    expect(deadly.code).toBe(2);
    expect(deadly.stderr).toContain('--chaos: kill would end the run itself');
  }, 60_000);
});
