/** Processes that hosts live in: the variables they inherit, and the processes that they start themselves. */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { createEnvPool } from '../../../actors/env/env-pool.ts';
import { hostEnvironment } from '../../../actors/env/host-environment.ts';
import { HostThreads } from '../../../actors/env/host-threads.ts';
import type { EnvCommand, EnvEvent, Observed } from '../../../actors/env/protocol.ts';
import { workerUrl } from '../../../src/runtime/module-url.ts';

const folder = mkdtempSync(join(tmpdir(), 'longplay-hosts-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const curious = { id: 'curious', url: new URL('../../support/curious-env.ts', import.meta.url) };

/** Opens one episode in a host of its own and takes `actions`. @returns the observations */
async function played(isolation: 'thread' | 'process', actions: readonly string[], options: object = {}) {
  const pool = await createEnvPool({
    envs: [curious],
    threads: 1,
    isolation,
    stepDeadlineMs: 10_000,
    openDeadlineMs: 10_000,
    ...options,
  });
  try {
    const observations: string[] = [];
    for (const [turn, action] of [undefined, ...actions].entries()) {
      const next = new Promise<EnvEvent>((resolve) => {
        const subscription = pool.observations$.subscribe((event) => {
          subscription.unsubscribe();
          resolve(event);
        });
      });
      if (action === undefined)
        pool.send({ type: 'open', episode: 0, attempt: 1, task: { env: 'curious', index: 0, seed: 0 } });
      else pool.send({ type: 'step', episode: 0, turn, action });
      observations.push(((await next) as Observed).step.observation);
    }
    return observations.slice(1);
  } finally {
    await pool.close();
  }
}

describe('the variables of a host', () => {
  const all = {
    PATH: '/bin',
    OPENAI_API_KEY: 's',
    HF_TOKEN: 's',
    AWS_SECRET_ACCESS_KEY: 's',
    AWS_ACCESS_KEY_ID: 's',
    DB_PASSWORD: 's',
    npm_config__authToken: 's',
    KEY: 's',
    DATABASE_URL: 'postgres://me:s@db/x',
    OUR_GATE: 's',
    TOKENIZERS_PARALLELISM: 'true',
    KEYBOARD: 'us',
    MONKEY: 'yes',
    SITE: 'http://127.0.0.1:80/a@b',
    CHROMIUM: '/usr/bin/chromium',
  };

  it('are ours without those that look like secrets, or that the configuration names as one', () => {
    const kept = hostEnvironment(all, { secret: ['OUR_GATE'] });
    expect(Object.keys(kept)).toEqual(['PATH', 'TOKENIZERS_PARALLELISM', 'KEYBOARD', 'MONKEY', 'SITE', 'CHROMIUM']);
  });

  it('include a secret that the world is meant to have', () => {
    expect(hostEnvironment(all, { passed: ['HF_TOKEN'] })).toMatchObject({ HF_TOKEN: 's' });
  });

  it.each(['thread', 'process'] as const)('are all that a world sees: %s', { timeout: 60_000 }, async (isolation) => {
    process.env.LONGPLAY_TEST_TOKEN = 'top secret';
    process.env.LONGPLAY_TEST_PASSED_TOKEN = 'for the world';
    process.env.LONGPLAY_TEST_PLAIN = 'plain';
    try {
      const [seen] = await played(isolation, ['variables'], { variables: { passed: ['LONGPLAY_TEST_PASSED_TOKEN'] } });
      const names = JSON.parse(seen!) as string[];
      expect(names).toContain('LONGPLAY_TEST_PLAIN');
      expect(names).toContain('LONGPLAY_TEST_PASSED_TOKEN');
      expect(names).not.toContain('LONGPLAY_TEST_TOKEN');
    } finally {
      for (const name of ['TOKEN', 'PASSED_TOKEN', 'PLAIN']) delete process.env[`LONGPLAY_TEST_${name}`];
    }
  });
});

function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** Waits until none of them lives. @returns those that still do */
async function survivors(pids: readonly number[]): Promise<readonly number[]> {
  for (let i = 0; i < 200 && pids.some(lives); i++) await sleep(50);
  return pids.filter(lives);
}

// Where there is no /proc, one that has left its host's group is out of reach.
describe.skipIf(!existsSync('/proc/self/environ'))('the processes that a world starts', { timeout: 60_000 }, () => {
  it.each(['thread', 'process'] as const)(
    'end with their host, whether they stay in its group or leave it: %s',
    async (isolation) => {
      const pids = (await played(isolation, ['sleep', 'sleep-detached', 'sleep-inherits'])).map(Number);
      expect(pids.every((pid) => pid > 0)).toBe(true);
      expect(await survivors(pids)).toEqual([]);
    },
  );

  it('end with a host that was killed', async () => {
    const pids = (await played('process', ['sleep-inherits', 'pid'])).map(Number);
    expect(await survivors(pids)).toEqual([]);
  });

  it('end with a thread that was ended while the run goes on', async () => {
    const hosts = new HostThreads(1, {}, hostEnvironment(process.env));
    try {
      let receive: (event: EnvEvent) => void = () => {};
      const listener = { events: ([event]: readonly EnvEvent[]) => receive(event!), onDied() {} };
      const host = await hosts.start({ envs: [curious], listActions: false, where: '/host' }, listener, 30_000);
      const ask = (command: EnvCommand) =>
        new Promise<EnvEvent>((resolve) => {
          receive = resolve;
          host.send([command]);
        });
      await ask({ type: 'open', episode: 0, attempt: 1, task: { env: 'curious', index: 0, seed: 0 } });
      const answer = (await ask({ type: 'step', episode: 0, turn: 1, action: 'sleep-detached' })) as Observed;
      const pid = Number(answer.step.observation);
      expect(lives(pid)).toBe(true);
      host.kill();
      expect(await survivors([pid])).toEqual([]);
    } finally {
      await hosts.close();
    }
  });

  it('do not keep the end of their host waiting where they got away with its pipes', async () => {
    const [pid] = (await played('process', ['sleep-escapes'])).map(Number);
    try {
      expect(lives(pid!)).toBe(true); // or the test shows nothing
    } finally {
      process.kill(pid!, 'SIGKILL');
    }
  });

  it('end with a run that exits abruptly, of threads too', () => {
    const script = join(folder, 'exits.mjs');
    const pool = workerUrl(new URL('../../../actors/env/env-pool.ts', import.meta.url)).href;
    const url = workerUrl(curious.url).href;
    writeFileSync(
      script,
      `import { createEnvPool } from ${JSON.stringify(pool)};
       const pool = await createEnvPool({ envs: [{ id: 'curious', url: new URL(${JSON.stringify(url)}) }], threads: 1,
         isolation: 'thread', stepDeadlineMs: 60000, openDeadlineMs: 60000 });
       pool.observations$.subscribe(({ step, turn }) => {
         if (turn > 0) console.log(step.observation);
         if (turn > 0) process.exit(3);
         pool.send({ type: 'step', episode: 0, turn: 1, action: 'sleep-detached' });
       });
       pool.send({ type: 'open', episode: 0, attempt: 1, task: { env: 'curious', index: 0, seed: 0 } });`,
    );
    const { status, stdout } = spawnSync(process.execPath, [script], { encoding: 'utf8' });
    expect(status).toBe(3);
    expect(Number(stdout)).toBeGreaterThan(0);
    expect(lives(Number(stdout))).toBe(false);
  });

  it('end, host and all, when the whole run is killed while a world spins', async () => {
    const pidFile = join(folder, 'pids');
    const script = join(folder, 'run.mjs');
    const pool = workerUrl(new URL('../../../actors/env/env-pool.ts', import.meta.url)).href;
    const url = workerUrl(curious.url).href;
    writeFileSync(
      script,
      `import { createEnvPool } from ${JSON.stringify(pool)};
       import { writeFileSync } from 'node:fs';
       const pool = await createEnvPool({ envs: [{ id: 'curious', url: new URL(${JSON.stringify(url)}) }], threads: 1,
         isolation: 'process', stepDeadlineMs: 60000, openDeadlineMs: 60000 });
       const pids = [];
       const actions = ['sleep', 'sleep-detached', 'pid', 'spin'];
       let turn = 0;
       pool.observations$.subscribe(({ step }) => {
         if (turn > 0) pids.push(Number(step.observation));
         if (turn === 3) writeFileSync(${JSON.stringify(pidFile)}, JSON.stringify(pids));
         pool.send({ type: 'step', episode: 0, turn: turn + 1, action: actions[turn++] });
       });
       pool.send({ type: 'open', episode: 0, attempt: 1, task: { env: 'curious', index: 0, seed: 0 } });`,
    );
    const child = spawn(process.execPath, [script], { stdio: 'inherit' });
    for (let i = 0; i < 400 && !existsSync(pidFile); i++) await sleep(50);
    await sleep(200); // the spin has begun
    const pids = JSON.parse(readFileSync(pidFile, 'utf8')) as number[];
    expect(pids).toHaveLength(3);
    expect(pids.every(lives)).toBe(true);
    child.kill('SIGKILL');
    expect(await survivors(pids)).toEqual([]);
  });
});

it('nothing of these tests is left', () => {
  if (spawnSync('pgrep', ['--version']).error) return;
  expect(spawnSync('pgrep', ['-f', '^sleep 86398$'], { encoding: 'utf8' }).stdout).toBe('');
});
