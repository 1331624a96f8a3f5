/** `npm create longplay`: mistakes are one line, and (long) a project of each kind installs and passes its own test. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { temporaryFolder } from '../support/small-run.ts';

const root = fileURLToPath(packageRoot);
const folder = temporaryFolder('create-longplay');
const create = (...args: string[]) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(root, 'create-longplay/index.mjs'), ...args], {
    cwd: folder,
    encoding: 'utf8',
    timeout: 300_000,
  });
  return { status, stdout, stderr };
};

beforeAll(() => mkdirSync(join(folder, 'taken'), { recursive: true }));
afterAll(() => rmSync(folder, { recursive: true, force: true }), 120_000);

describe('npm create longplay', () => {
  it.each([
    ['no folder', [], /expected one folder, got 0\. Usage/],
    ['two folders', ['a', 'b'], /expected one folder, got 2/],
    ['a name that is none', ['My Project'], /'My Project' is no name of a project/],
    ['a folder that is there', ['taken'], /taken exists already; it is left as it is/],
    ['an unknown kind', ['a', '--kind', 'wrld'], /--kind: expected world, agent, study, got 'wrld'/],
    ['an unknown flag', ['a', '--knd', 'world'], /Unknown option '--knd'/],
  ])('%s is refused in one line, and writes nothing', (_, args, message) => {
    const { status, stdout, stderr } = create(...args);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr.trim()).toMatch(message);
    expect(stderr.trim()).not.toContain('\n');
    expect(existsSync(join(folder, 'a'))).toBe(false);
  });

  it('has the version of longplay, which it installs', () => {
    const versionOf = (path: string) =>
      (JSON.parse(readFileSync(join(root, path), 'utf8')) as { version: string }).version;
    expect(versionOf('create-longplay/package.json')).toBe(versionOf('package.json'));
  });

  it.skipIf(process.env.LONGPLAY_LONG !== '1')(
    'makes projects that install, pass their tests and train',
    { timeout: 900_000 },
    () => {
      const npm = (cwd: string, ...args: string[]) => spawnSync('npm', args, { cwd, encoding: 'utf8' });
      expect(npm(root, 'pack', '--pack-destination', folder).status).toBe(0);
      const archive = join(folder, 'longplay-0.1.0.tgz');
      for (const kind of ['world', 'agent', 'study']) {
        const made = create(`my-${kind}`, '--kind', kind, '--package', archive);
        expect(made.status, made.stderr).toBe(0);
        const tested = npm(join(folder, `my-${kind}`), 'test');
        expect(tested.status, tested.stdout + tested.stderr).toBe(0);
      }
      const train = ['longplay', 'train', 'agent/train.yaml', '--set', 'stop={updates: 2}'];
      expect(spawnSync('npx', train, { cwd: join(folder, 'my-agent') }).status).toBe(0);
    },
  );
});
