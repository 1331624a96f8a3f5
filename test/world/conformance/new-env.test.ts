/** A world that `longplay new-env` wrote works as it is: its tests pass, it keeps the laws, and its types are right. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packageRoot } from '../../../src/runtime/module-url.ts';
import { temporaryFolder } from '../../support/small-run.ts';

const root = fileURLToPath(packageRoot);
const main = join(root, 'dist/src/cli/main.js');
const folder = temporaryFolder('new-env');
const env = join(folder, 'my-world', 'env.mjs');

function run(command: string, ...args: string[]) {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd: folder, encoding: 'utf8', timeout: 100_000 });
  return { status, output: stdout + stderr };
}
const longplay = (...args: string[]) => run(process.execPath, main, ...args);

beforeAll(() => {
  // As in a project that has this package installed.
  mkdirSync(join(folder, 'node_modules'), { recursive: true });
  symlinkSync(root, join(folder, 'node_modules/longplay'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('longplay new-env', { timeout: 120_000 }, () => {
  it('writes a world whose tests pass', () => {
    expect(longplay('new-env', 'my-world')).toMatchObject({
      status: 0,
      output: expect.stringMatching(/check-env my-world/),
    });
    expect(run(process.execPath, '--test', 'my-world/env.test.mjs')).toMatchObject({
      status: 0,
      output: expect.stringMatching(/pass 3/),
    });
  });

  it('… that keeps the laws, with an oracle that solves it', () => {
    const { status, output } = longplay('check-env', env, '--cases', '100', '--episodes', '1000', '--json');
    expect(status).toBe(0);
    const { ok, agents } = JSON.parse(output);
    expect(ok).toBe(true);
    expect(agents[1]).toMatchObject({ agent: 'oracle', success: 1 });
    expect(agents[0].meanReturn).toBeGreaterThan(0);
  });

  it('… and whose tests notice when it is broken', () => {
    const text = readFileSync(env, 'utf8');
    const bug = text.replace(
      'high = Math.min(high, n - 1)',
      'high = Math.min(high, n - 1 - (Math.random() < 0.5 ? 1 : 0))',
    );
    expect(bug).not.toBe(text);
    writeFileSync(env, bug);
    const { status, output } = run(process.execPath, '--test', 'my-world/env.test.mjs');
    writeFileSync(env, text);
    expect(output).toMatch(/replays a task and its actions to the same trace/);
    expect(status).not.toBe(0);
  });

  it('is right in the eyes of the type checker', () => {
    const config = {
      compilerOptions: {
        allowJs: true,
        checkJs: true,
        strict: true,
        noEmit: true,
        module: 'nodenext',
        target: 'es2023',
        skipLibCheck: true,
        types: [],
      },
      files: ['my-world/env.mjs'],
    };
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config));
    expect(run(process.execPath, join(root, 'node_modules/typescript/bin/tsc'), '-p', '.')).toMatchObject({
      status: 0,
      output: '',
    });
  });

  it('overwrites nothing, and takes no name that is no id', () => {
    expect(longplay('new-env', 'my-world')).toMatchObject({
      status: 2,
      output: expect.stringMatching(/exists already/),
    });
    expect(longplay('new-env', '../up')).toMatchObject({ status: 2, output: expect.stringMatching(/is no id/) });
    expect(longplay('new-env', 'Mine').status).toBe(2);
    expect(existsSync(join(folder, '../up'))).toBe(false);
  });
});
