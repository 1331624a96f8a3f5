/** Processes of MCP servers: none is left, however an episode, a host or a run ends. */
import { spawn } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { openEnvSessions } from '../../../actors/env/sessions.ts';
import type { EnvOptions } from '../../../src/core/env.ts';
import { worldUrl } from '../../../src/run/find-world.ts';
import { workerUrl } from '../../../src/runtime/module-url.ts';
import { act, callTool, findProcesses, fixtures, openMcp, switches } from './lab.ts';

const hasProc = process.platform === 'linux';
let runs = 0;
/** Word in the command line of the servers of one test. */
const createMark = () => `leak-test-${process.pid}-${runs++}`;

const WAIT = { timeout: 30_000, interval: 50 };
const waitForNone = (mark: string) => vi.waitFor(() => expect(findProcesses(mark)).toEqual([]), WAIT);

describe.runIf(hasProc)('processes of MCP servers', () => {
  const task = (index: number) => ({ env: 'mcp', index, seed: 0 });

  it.each([
    ['terminated', async (session) => void (await session.step(act([])))],
    ['cut between two calls', async (session) => void (await callTool(session, 'press', { color: 'red' }))],
    [
      'closed during a call',
      async (session) => void Promise.resolve(session.step(act([['fault', { kind: 'slow' }]]))).catch(() => {}),
    ],
    [
      'broken by its server',
      async (session) => void (await Promise.resolve(session.step(act([['fault', { kind: 'die' }]]))).catch(() => {})),
    ],
    [
      'flooded by its server',
      async (session) =>
        void (await Promise.resolve(session.step(act([['fault', { kind: 'flood' }]]))).catch(() => {})),
    ],
    ['with a child of the server', async (session) => void (await callTool(session, 'fault', { kind: 'child' }))],
  ] as readonly (readonly [string, (session: Awaited<ReturnType<Opened['env']['open']>>) => Promise<void>])[])(
    'are gone after an episode that was %s',
    async (_name, play) => {
      for (const faults of [[], ['stubborn']]) {
        const mark = createMark();
        const { env, dispose } = await openMcp(switches({ command: commandOf(mark, faults) }));
        const session = await env.open(task(0));
        expect(findProcesses(mark).length).toBeGreaterThan(0);
        await play(session);
        await session.close();
        await waitForNone(mark); // a signal takes a moment
        await dispose();
      }
    },
  );

  it('are gone after an episode whose verifier throws, and after a start that failed', async () => {
    const mark = createMark();
    const {
      tasks: _,
      verify: _own,
      ...rest
    } = switches({ module: join(fixtures, 'verify.mjs'), command: commandOf(mark) });
    const { env, dispose } = await openMcp(rest);
    const session = await env.open(task(0));
    await expect(session.step(act([]))).rejects.toThrow('no verdict');
    await session.close();
    expect(findProcesses(mark)).toEqual([]);
    await dispose();
    await expect(
      openMcp(switches({ command: commandOf(mark, ['silent', 'stubborn']), startTimeoutMs: 200 })),
    ).rejects.toThrow('the MCP server does not answer');
    expect(findProcesses(mark)).toEqual([]);
  });

  it('are gone with the pool of used servers', async () => {
    const mark = createMark();
    const { env, dispose } = await openMcp(switches({ reset: { tool: 'reset' }, command: commandOf(mark) }));
    const sessions = await Promise.all([0, 1, 2].map((index) => env.open(task(index))));
    await Promise.all(sessions.map((session) => session.close()));
    expect(findProcesses(mark)).toHaveLength(3);
    await dispose();
    expect(findProcesses(mark)).toEqual([]);
  });

  it.each(['thread', 'process', 'inline'] as const)(
    'are gone when a host stops, and when it is ended for spinning: %s',
    async (isolation) => {
      const mark = createMark();
      const {
        tasks: _,
        verify: _own,
        ...rest
      } = switches({ module: join(fixtures, 'verify.mjs'), command: commandOf(mark, ['stubborn']) });
      const episodes = await openEnvSessions({
        envs: [specOf(rest)],
        threads: 1,
        isolation,
        listActions: false,
        stepDeadlineMs: 1000,
        openDeadlineMs: 5000,
      });
      const spinning = await episodes.open(task(5), { listActions: false });
      await episodes.open(task(4), { listActions: false });
      expect(findProcesses(mark)).toHaveLength(2);
      if (isolation !== 'inline') {
        const before = findProcesses(mark);
        await expect(episodes.step(spinning.episode, 1, act([]))).rejects.toThrow('timeout');
        // The other episode had taken no action: it is opened again, with a server of its own.
        await vi.waitFor(() => {
          const now = findProcesses(mark);
          expect([now.length, now.filter((pid) => before.includes(pid))]).toEqual([1, []]);
        }, WAIT);
      }
      await episodes.stop();
      await waitForNone(mark);
    },
  );

  it.each([
    ['SIGINT', 'thread'],
    ['SIGTERM', 'process'],
    ['SIGKILL', 'process'],
  ] as const)('are gone after a run that got %s, hosts of the kind %s', async (signal, isolation) => {
    const mark = createMark();
    const folder = mkdtempSync(join(tmpdir(), 'longplay-mcp-run-'));
    const env = {
      id: 'mcp',
      options: switches({
        command: commandOf(mark, signal === 'SIGKILL' ? ['stubborn'] : []),
        tools: ['press', 'state'],
      }),
    };
    const config = {
      env,
      horizon: { type: 'fixed', rounds: 8 },
      rollout: { isolation, groupSize: 2, concurrentGroups: 2 },
      stop: { minutes: 5 },
    };
    writeFileSync(join(folder, 'run.yaml'), JSON.stringify(config));
    const bin = new URL('../../../bin/longplay.js', import.meta.url).pathname;
    const run = spawn(process.execPath, [bin, 'train', 'run.yaml'], { cwd: folder, stdio: 'ignore' });
    const ended = new Promise((resolve) => run.once('exit', resolve));
    await vi.waitFor(() => expect(findProcesses(mark).length).toBeGreaterThan(1), { timeout: 60_000, interval: 50 });
    run.kill(signal);
    await ended;
    await waitForNone(mark);
  });
});

type Opened = Awaited<ReturnType<typeof openMcp>>;

/** Command of the switches with a mark in it. */
function commandOf(mark: string, faults: readonly string[] = []): readonly string[] {
  return [process.execPath, join(fixtures, 'server.mjs'), mark, ...faults];
}

function specOf(options: EnvOptions) {
  return { id: 'mcp', url: workerUrl(worldUrl('mcp', options)), options };
}
