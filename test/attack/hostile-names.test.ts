/**
 * Names with escape codes, C1 and bidi controls, line ends and 20,000 characters, wherever a command takes or shows one:
 * nothing that a terminal obeys, bounded lines, no line that passes for one of ours, JSON that parses, no stack.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { listStatusLines } from '../../src/cli/commands/cluster.ts';
import { commandLine } from '../../src/cli/program.ts';
import type { ClusterStatus } from '../../src/run/cluster-status.ts';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { TraceFiles } from '../../src/storage/trace-files.ts';
import { HOSTILE } from '../support/hostile-names-world.ts';
import { temporaryFolder } from '../support/small-run.ts';
import { trajectoryOf } from '../support/traces.ts';
import { typed } from '../support/typed.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 }); // all commands are loaded, which takes long on a busy machine

const before = process.cwd();
const folder = temporaryFolder('hostile-names');
afterAll(() => {
  process.chdir(before);
  rmSync(folder, { recursive: true, force: true });
});

const LONG = `${HOSTILE}${'x'.repeat(20_000)}`;
const quickstart = fileURLToPath(new URL('experiments/quickstart.yaml', packageRoot));
const world = fileURLToPath(new URL('dist/test/support/hostile-names-world.js', packageRoot));
const traces = join(folder, 'traces');

/** Commands that take a name each, those of `cluster` among them. */
const commands: Command[] = [];
beforeAll(async () => {
  process.chdir(folder); // where runs would be made
  commands.push(...(await commandLine()).commands);
  const files = new TraceFiles({ dir: traces, config: { env: { id: world } }, rotateBytes: 1e9, keepBytes: 1e12 });
  const one = { ...trajectoryOf({ env: HOSTILE, actions: [HOSTILE, 'b'], observation: HOSTILE }), view: HOSTILE };
  files.episodes([one, { ...one, episode: 1 }], HOSTILE, HOSTILE);
  files.close();
});

/** Arguments that are right, so that a command goes on to its options. */
const RIGHT: Readonly<Record<string, readonly string[]>> = {
  train: [quickstart],
  sft: [quickstart],
  dpo: [quickstart],
  eval: [quickstart],
  play: ['textcraft'],
  'check-env': ['textcraft'],
  'serve-env': ['textcraft'],
  replay: [traces],
  view: [traces],
  export: [traces],
  'new-env': ['my-world'],
  'new-agent': ['my-agent'],
  'new-study': ['my-study'],
};

/** Every way to type a command with one hostile name in it, or with all of its arguments hostile. */
function ways(command: Command): string[][] {
  const name = command.name();
  const hostile = command.registeredArguments.map(() => LONG);
  const needed = command.options.filter(({ mandatory }) => mandatory).flatMap(({ long }) => [long!, LONG]);
  const json = command.options.some(({ long }) => long === '--json') ? ['--json'] : [];
  const valued = command.options.filter(({ required }) => required).map(({ long }) => long!);
  const all = [hostile, ...(RIGHT[name] ? [RIGHT[name]] : [])].flatMap((args) => [
    ...(args === hostile && hostile.length > 0 ? [[...args, ...needed]] : []),
    ...valued.map((option) => [...args, ...(needed.includes(option) ? [] : needed), option, LONG]),
  ]);
  return [...all, ...(json.length > 0 && hostile.length > 0 ? [[...hostile, ...needed, ...json]] : [])].map((args) => [
    name,
    ...args,
  ]);
}

/** Holds a command's output to what a terminal may get. @param max UTF-16 units of a line on stderr */
function expectHarmless({ stdout, stderr }: Awaited<ReturnType<typeof typed>>, what: string, max = 6000): void {
  const output = stdout + stderr;
  expect(output.replaceAll('\n', ''), what).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
  expect(output, what).not.toMatch(/^\s+at .*:\d+:\d+|internal error/m);
  expect(stderr, what).not.toMatch(/^longplay: forged/m);
  for (const line of stderr.split('\n')) expect(line.length, what).toBeLessThan(max);
}

describe('hostile names', () => {
  it('are harmless in each argument and each option of each command', async () => {
    let refused = 0;
    let all = 0;
    for (const command of commands) {
      for (const args of ways(command)) {
        const what = args.map((arg) => (arg === LONG ? '…' : arg)).join(' ');
        const result = await typed(...args);
        expectHarmless(result, what);
        all++;
        if (result.status === 2) refused++;
      }
    }
    expect(commands.length).toBeGreaterThan(15);
    expect(all).toBeGreaterThan(180);
    expect(refused).toBeGreaterThan(all - 10); // `replay --env` shows the episode all the same
  });

  const broken = ['--set', 'env.options={throws: true}'];
  const rollout = ['rollout', '--env', world, '--policy', 'random', '--episodes', '6', '--horizon', '4', ...broken];
  it.each<readonly [string, readonly string[], json: boolean]>([
    ['a rollout', [...rollout, '--name', 'text'], false],
    ['a rollout as JSON', [...rollout, '--name', 'json', '--json'], true],
    ['a check of the world as JSON', ['check-env', world, '--cases', '2', '--json'], true],
    ['a replay', ['replay', traces], false],
    ['a replay that checks', ['replay', traces, '--check'], false],
    ['an export', ['export', traces, '--purpose', HOSTILE, '--out', join(folder, 'x.jsonl')], false],
    ['an export of another purpose', ['export', traces, '--purpose', LONG, '--out', join(folder, 'x.jsonl')], false],
    ['a report', ['view', traces, '--out', join(folder, 'x.html')], false],
  ])('are harmless where the world has them: %s', async (_, args, json) => {
    const result = await typed(...args);
    expectHarmless(result, args[0]!);
    expect((result.stdout + result.stderr).length).toBeGreaterThan(20); // something was printed
    if (json)
      for (const line of result.stdout.trimEnd().split('\n')) expect(() => JSON.parse(line), line).not.toThrow();
  });

  it('are harmless where other machines have them: the status of a run', async () => {
    const report = { slots: 1, held: 0, groupsPerSecond: 1, tokensPerSecond: 1, version: 1, finished: 1 };
    const worker = { ...report, name: LONG, state: 'here', silentMs: 1, refused: 0, lag: 0 };
    const load = { queued: 0, held: 0, results: 0, resultBytes: 0, roundTripMs: 1 };
    const about = { version: 1, weightBytes: 1, ended: false, life: 1, maxLag: 1 };
    const status = { run: LONG, world: LONG, ...about, load, workers: [worker, worker] } as unknown as ClusterStatus;
    const lines = listStatusLines(status);
    expect(lines).toHaveLength(5);
    for (const line of lines) {
      expect(line).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
      expect(line.length).toBeLessThan(400);
    }
  });
});
