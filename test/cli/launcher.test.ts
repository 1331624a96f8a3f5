/** Launcher of the command line, which is there before the first build. */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, it } from 'vitest';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { temporaryFolder } from '../support/small-run.ts';

const root = fileURLToPath(packageRoot);
const { bin, version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  bin: { longplay: string };
  version: string;
};
const folder = temporaryFolder('launcher');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const start = (at: string) => spawnSync(process.execPath, [join(at, bin.longplay), '--version'], { encoding: 'utf8' });

it('prints what to type in a checkout without a build', () => {
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  mkdirSync(join(folder, 'bin'));
  cpSync(join(root, bin.longplay), join(folder, bin.longplay));
  const { status, stdout, stderr } = start(folder);
  expect([status, stdout]).toEqual([2, '']);
  expect(stderr).toMatch(/^longplay: this checkout has not been built: run npm ci && npm run build.*\n$/);
});

it('starts the command line where there is one', () => {
  const { status, stdout } = start(root);
  expect([status, stdout.trim()]).toEqual([0, version]);
});
