/** Scripts of package.json, typed as a person would: help is help, a mistake is one line and exit code 2. */
import { spawnSync } from 'node:child_process';
import { readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { benchProgram } from '../../experiments/bench/main.ts';
import { experimentProgram } from '../../experiments/main.ts';
import { parityProgram } from '../../experiments/parity.ts';
import { quickstartProgram } from '../../experiments/quickstart.ts';
import { runProgram } from '../../src/cli/program.ts';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { mutantsProgram } from '../mutants/main.ts';
import { temporaryFolder } from '../support/small-run.ts';
import { captureProgram } from '../support/typed.ts';

const root = fileURLToPath(packageRoot);
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: Record<string, string> };

/** Programs by the script that runs them. */
const PROGRAMS: Readonly<Record<string, () => Command>> = {
  start: quickstartProgram,
  bench: benchProgram,
  parity: parityProgram,
  experiment: experimentProgram,
  mutants: mutantsProgram,
};
const type = (script: string, args: readonly string[]) => captureProgram(() => runProgram(PROGRAMS[script]!, args));

const MISTAKES: readonly (readonly [string, readonly string[], RegExp])[] = [
  ['start', ['--sed', '2'], /unknown option '--sed'.*--seed/],
  ['start', ['--seed', 'x'], /--seed.*Expected a whole number from 0/],
  ['start', ['2'], /too many arguments/],
  ['start', ['--set', 'sed=2'], /unknown key 'sed'; did you mean 'seed'\?/],
  ['start', ['--runs', '/dev/null/runs', '--set', 'stop={ updates: 1 }'], /cannot make the run folder/],
  ['bench', ['rollouts'], /unknown bench 'rollouts'; known: cluster, /],
  ['bench', ['--jsn'], /unknown option '--jsn'.*--json/],
  ['bench', ['envs', '--passages', '5'], /--passages is a flag of retrieval, not of envs/],
  ['bench', ['servers', '--no-qwen'], /--no-qwen is a flag of tensor, not of servers/],
  ['bench', ['tensor', '--threads', '0'], /--threads.*Expected a whole number from 1/],
  ['bench', ['tensor', '--engine', 'onnx'], /Allowed choices are auto, onnxruntime-node/],
  ['bench', ['rollout', '--against', 'no-such-commit'], /--against: git knows no commit 'no-such-commit'/],
  ['bench', ['llm', '--against', 'HEAD'], /--against compares envs, .*rollout.*, not llm/],
  ['bench', ['llm', '--only', 'prefil:8'], /Expected load, threads\[:unpacked\], prefill:128, .*got 'prefil:8'/],
  ['parity', [], /missing required argument 'what'/],
  ['parity', ['textcraft'], /missing required argument 'recordings'/],
  ['parity', ['textcrat', root], /unknown env 'textcrat'; did you mean 'textcraft'\?/],
  ['parity', ['textcraft', '/nowhere.jsonl'], /\/nowhere\.jsonl: ENOENT/],
  ['parity', ['textcraft', join(root, 'package.json')], /package\.json/],
  ['parity', ['textcraft', join(root, 'test')], /no recordings \(\.json, \.jsonl, also \.gz\) in this folder/],
  ['parity', ['textcraft', root, '--verbose'], /unknown option '--verbose'/],
  ['mutants', [], /missing required argument 'files'/],
  ['mutants', ['src/nowhere.ts'], /mutants: src\/nowhere\.ts: ENOENT/],
  ['mutants', ['src/core/rng.ts', '--max', '0'], /--max.*Expected a whole number of at least 1/],
  ['experiment', ['textcrft'], /unknown command 'textcrft'.*Did you mean textcraft\?/],
  ['experiment', ['--cells', '1', 'horizon'], /unknown option '--cells'/],
  ['experiment', ['horizon', '--cels', '1'], /unknown option '--cels'.*--cells/],
  ['experiment', ['horizon', '--cells', 'few'], /--cells.*Expected a whole number of at least 0/],
  ['experiment', ['babyai', '--minutes', '0'], /--minutes.*Expected a number above 0/],
  ['experiment', ['searchqa', '--cells', '1'], /unknown option '--cells'/],
  ['experiment', ['searchqa', '--seeds', '1.5'], /--seeds.*Expected a whole number from 1/],
  ['experiment', ['llm-tiny', '--seed', '-1'], /--seed.*Expected a whole number from 0/],
];

describe('a script of package.json', { timeout: 60_000 }, () => {
  it('is one of those that are tested here, or a tool that is not ours', () => {
    const ours = Object.entries(scripts).filter(([, line]) => line.includes('node dist/'));
    expect(ours.map(([name]) => name).sort()).toEqual(Object.keys(PROGRAMS).sort());
  });

  it.each(Object.keys(PROGRAMS))('shows what it takes: %s', async (script) => {
    const typed = script === 'start' ? 'npm start --' : `npm run ${script} --`;
    for (const flag of ['--help', '-h']) {
      const { status, stdout, stderr } = await type(script, [flag]);
      expect(stdout).toContain(`Usage: ${typed} [options]`);
      expect([status, stderr]).toEqual([0, '']);
    }
  });

  it.each(MISTAKES)('reports in one line what is wrong: %s %j', async (script, args, message) => {
    const { status, stdout, stderr } = await type(script, args);
    expect(stderr.trimEnd()).toMatch(message);
    expect(stderr.trimEnd().split('\n')).toHaveLength(1);
    expect(stderr).not.toMatch(/internal error|^\s+at /m);
    expect([status, stdout]).toEqual([2, '']);
  });

  it('runs through a symbolic link to the checkout, too', () => {
    const link = join(temporaryFolder('linked'), 'checkout');
    symlinkSync(root, link);
    const script = join(link, 'dist', 'experiments', 'parity.js');
    const { status, stdout } = spawnSync(process.execPath, [script, '--help'], { encoding: 'utf8' });
    expect(stdout).toContain('Usage: npm run parity --');
    expect(status).toBe(0);
  });
});
