/** Disks that refuse: full, read-only, or with something else where a run's folder should be. One line each; nothing lost. */
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { packageRoot } from '../../src/runtime/module-url.ts';
import { listCheckpoints } from '../../src/storage/checkpoint.ts';
import { longplay } from '../support/longplay-command.ts';
import { smallConfig, temporaryFolder } from '../support/small-run.ts';

const main = fileURLToPath(new URL('dist/src/cli/main.js', packageRoot));
const folder = temporaryFolder('disk');
const trained = join(folder, 'trained');
afterAll(() => rmSync(folder, { recursive: true, force: true }));
beforeAll(() => {
  chmodSync(folder, 0o755);
  writeFileSync(join(folder, 'small.yaml'), stringify(smallConfig()));
  const { status, stderr } = longplay(
    'train',
    join(folder, 'small.yaml'),
    '--runs',
    folder,
    '--name',
    'trained',
    '--json',
  );
  expect(status, stderr).toBe(0);
}, 120_000);

/** A copy of the trained run. */
function copy(name: string): string {
  const run = join(folder, name);
  cpSync(trained, run, { recursive: true });
  return run;
}

/** Files may grow to so many KiB and no further, as on a full disk. */
function withFilesOf(kib: number, ...args: string[]) {
  const script = `trap '' XFSZ; ulimit -f ${kib}; exec "$@"`;
  return spawnSync('bash', ['-c', script, 'bash', process.execPath, main, ...args], {
    encoding: 'utf8',
    timeout: 60_000,
  });
}

const further = ['--set', 'stop={updates: 6}', '--json'];

describe('a run on a disk that refuses', { timeout: 120_000 }, () => {
  it('does not resume where nothing can be written, and reports it in one line', () => {
    const run = copy('full');
    const { status, stderr } = withFilesOf(0, 'train', '--resume', run, ...further);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(stderr).toMatch(/the run cannot be locked for writing: /);
    expect(status).toBe(2);
    expect(readdirSync(run)).toEqual(readdirSync(trained));
  });

  it('goes on without what the disk has no room for, keeps its checkpoints, and has failed', () => {
    const run = copy('crowded');
    const { status, stderr } = withFilesOf(1, 'train', '--resume', run, ...further);
    expect(stderr).toMatch(/checkpoint .*could not be written|checkpoint .*was not saved/);
    expect(stderr).not.toMatch(/^\s+at |internal error/m);
    expect(stderr).toContain('longplay: the checkpoint of update 6 is not on the disk');
    expect(stderr).toContain('longplay: results.json: EFBIG');
    expect(status).toBe(1);
    expect(readFileSync(join(run, 'results.json'))).toEqual(readFileSync(join(trained, 'results.json')));
    expect(listCheckpoints(join(run, 'checkpoints'))).toEqual(listCheckpoints(join(trained, 'checkpoints')));
    expect(readFileSync(join(run, 'metrics.jsonl'), 'utf8')).toMatch(/\n$/);
  });

  it('has failed where no checkpoint of a new run could be written, whatever it learnt', () => {
    const args = [join(folder, 'small.yaml'), '--runs', folder, '--name', 'unsaved'];
    const { status, stdout, stderr } = withFilesOf(2, 'train', ...args, '--json');
    expect(stderr).toContain('longplay: the checkpoint of update 4 is not on the disk');
    expect(status).toBe(1);
    const outcome = JSON.parse(stdout.trimEnd().split('\n').at(-1)!);
    expect(outcome.startedFrom).toBe(0);
    expect(outcome.unwritten[0]).toMatch(/checkpoint of update 4/);
    expect(listCheckpoints(join(folder, 'unsaved', 'checkpoints'))).toEqual([]);
  });

  it('does not resume in a folder that is read-only', () => {
    const run = copy('read-only');
    // Root may write everywhere: it becomes the user `nobody`.
    const root = process.getuid?.() === 0;
    if (!root) chmodSync(run, 0o555);
    const { status, stderr } = spawnSync(process.execPath, [main, 'train', '--resume', run, ...further], {
      encoding: 'utf8',
      timeout: 60_000,
      ...(root ? { uid: 65_534, gid: 65_534 } : {}),
    });
    if (!root) chmodSync(run, 0o755);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(stderr).toMatch(/the run cannot be locked for writing: EACCES/);
    expect(status).toBe(2);
  });

  it('does not resume while another process trains it, and leaves its mark alone', () => {
    const run = copy('taken');
    const mark = JSON.stringify({ format: 2, pid: process.pid, host: hostname() });
    writeFileSync(join(run, 'lock.json'), mark);
    const { status, stderr } = longplay('train', '--resume', run, ...further);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(stderr).toContain(`process ${process.pid} is writing this run`);
    expect(status).toBe(2);
    expect(readFileSync(join(run, 'lock.json'), 'utf8')).toBe(mark);
    expect(readdirSync(run).sort()).toEqual([...readdirSync(trained), 'lock.json'].sort());
  });

  it('does not resume where something else stands in the place of its run lock', () => {
    const run = copy('folder-lock');
    mkdirSync(join(run, 'lock.json'));
    const { status, stderr } = longplay('train', '--resume', run, ...further);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(stderr).toMatch(
      /expected the lock of a process that writes this run: .*lock.json: expected a file, found a folder/,
    );
    expect(status).toBe(2);
  });

  it('goes on after a process that ended unrecorded, and reports it', () => {
    const run = copy('left');
    const gone = spawnSync(process.execPath, ['-e', '']).pid;
    writeFileSync(join(run, 'lock.json'), JSON.stringify({ format: 2, pid: gone, host: hostname() }));
    const { status, stderr } = longplay('train', '--resume', run, ...further);
    expect(stderr).toContain(`process ${gone} ended without a word`);
    expect(status).toBe(0);
  });

  it('does not resume where its checkpoints are a file', () => {
    const run = copy('file');
    rmSync(join(run, 'checkpoints'), { recursive: true });
    writeFileSync(join(run, 'checkpoints'), 'not a folder');
    const { status, stderr } = longplay('train', '--resume', run);
    expect(stderr.trim().split('\n')).toHaveLength(1);
    expect(stderr).toMatch(/checkpoints: expected a folder of checkpoints: ENOTDIR/);
    expect(status).toBe(2);
  });

  it('is not begun where its folder cannot be', () => {
    mkdirSync(join(folder, 'empty'));
    const { status, stderr } = withFilesOf(0, 'train', join(folder, 'small.yaml'), '--runs', join(folder, 'empty'));
    expect(stderr).toMatch(/^longplay: cannot make the run folder [^\n]*\n$/);
    expect(status).toBe(2);
    expect(readdirSync(join(folder, 'empty'))).toEqual([]);
  });
});
