/** Agents and studies that `longplay new-agent` and `new-study` wrote work as they are: their tests pass, and notice what is broken. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { temporaryFolder } from '../support/small-run.ts';

const root = fileURLToPath(packageRoot);
const folder = temporaryFolder('new-files');

function run(command: string, ...args: string[]) {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: folder, encoding: 'utf8', timeout: 100_000 });
  return { status, output: stdout + stderr };
}
const longplay = (...args: string[]) => run(process.execPath, join(root, 'bin/longplay.js'), ...args);

beforeAll(() => {
  // As in a project that has this package installed.
  mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true });
  symlinkSync(root, join(folder, 'node_modules/longplay'));
  symlinkSync('../longplay/bin/longplay.js', join(folder, 'node_modules/.bin/longplay'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('longplay new-agent', { timeout: 120_000 }, () => {
  it('writes an agent whose tests pass, and notice a program that throws', () => {
    const written = { status: 0, output: expect.stringMatching(/npx longplay train key.train\.yaml/) };
    expect(longplay('new-agent', 'key')).toMatchObject(written);
    const test = () => run(process.execPath, '--test', 'key/agent.test.mjs');
    expect(test()).toMatchObject({ status: 0, output: expect.stringMatching(/pass 2/) });
    const path = join(folder, 'key/agent.mjs');
    const text = readFileSync(path, 'utf8');
    writeFileSync(path, text.replace('JSON.parse(', 'JSON.purse('));
    expect(test().status).not.toBe(0);
    writeFileSync(path, text);
  });

  it('… and which trains', () => {
    const { status, output } = longplay('train', 'key/train.yaml', '--set', 'stop={updates: 2}');
    expect(status, output).toBe(0);
  });
});

describe('longplay new-study', { timeout: 120_000 }, () => {
  it('writes a study whose test trains and compares both arms', () => {
    expect(longplay('new-study', 'horizons')).toMatchObject({ status: 0 });
    const tested = run(process.execPath, '--test', 'horizons/study.test.mjs');
    expect(tested).toMatchObject({ status: 0, output: expect.stringMatching(/pass 1/) });
  });
});
