/** The lock of a process that writes a run: one at a time, stale ones recognised, an orderly end without a trace. */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { UserError } from '../../src/core/errors.ts';
import { acquireRunLock, releaseRunLock } from '../../src/run/run-lock.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'longplay-mark-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const path = () => join(dir, 'lock.json');
const write = (mark: object) => writeFileSync(path(), JSON.stringify({ format: 2, host: hostname(), ...mark }));

it('returns no notice after an orderly end', () => {
  expect(acquireRunLock(dir)).toBeUndefined();
  expect(existsSync(path())).toBe(true);
  releaseRunLock(dir);
  expect(readdirSync(dir)).toEqual([]);
  expect(acquireRunLock(dir)).toBeUndefined();
  releaseRunLock(dir);
});

it('reports a process that ended unrecorded, and takes its place', () => {
  const { pid } = spawnSync(process.execPath, ['-e', '0']);
  write({ pid });
  expect(acquireRunLock(dir)).toContain(`process ${pid} ended without a word`);
  expect(JSON.parse(readFileSync(path(), 'utf8')).pid).toBe(process.pid);
  expect(readdirSync(dir)).toEqual(['lock.json']);
});

it('reports a lock that was cut off', () => {
  writeFileSync(path(), '{"format":2,"pi');
  expect(acquireRunLock(dir)).toContain('the process that wrote here last ended without a word');
});

it('refuses a second process while the first lives, and leaves its lock', () => {
  write({ pid: process.ppid });
  const before = readFileSync(path(), 'utf8');
  expect(() => acquireRunLock(dir)).toThrow(new RegExp(`process ${process.ppid} is writing this run`));
  expect(() => acquireRunLock(dir)).toThrow(UserError);
  releaseRunLock(dir); // not ours
  expect(readFileSync(path(), 'utf8')).toBe(before);
});

it('refuses a second writer in the same process, and knows a lock under its own number that it did not take', () => {
  write({ pid: process.pid });
  expect(acquireRunLock(dir)).toContain(`process ${process.pid} ended without a word`);
  expect(() => acquireRunLock(dir)).toThrow(/this process is writing this run already/);
  releaseRunLock(dir);
  expect(acquireRunLock(dir)).toBeUndefined();
  releaseRunLock(dir);
});

it.skipIf(!existsSync('/proc/self/stat'))('knows a zombie, which nobody has reaped yet, for dead', async () => {
  // Sleeps in the place of a shell whose child ends: nothing waits for the child any more.
  const parent = spawn('bash', ['-c', 'sleep 0 & echo $!; exec sleep 60']);
  try {
    const pid = await new Promise<number>((resolve) => parent.stdout.once('data', (text) => resolve(Number(text))));
    const state = () => /^State:\s*(\w)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    while (state() !== 'Z') await new Promise((resolve) => setTimeout(resolve, 5));
    write({ pid });
    expect(acquireRunLock(dir)).toContain(`process ${pid} ended without a word`);
    releaseRunLock(dir);
  } finally {
    parent.kill('SIGKILL');
  }
});

it('refuses one on another machine, whose processes it cannot see', () => {
  write({ pid: 1, host: 'another' });
  expect(() => acquireRunLock(dir)).toThrow(/process 1 on another writes this run, .* delete the file/);
});

it.skipIf(!existsSync('/proc/self/stat'))('knows a living process under a number that was given out again', () => {
  write({ pid: process.ppid, started: '1' });
  expect(acquireRunLock(dir)).toContain(`process ${process.ppid} ended without a word`);
});

it('lets one of several processes that start together train', { timeout: 60_000 }, async () => {
  const { pid } = spawnSync(process.execPath, ['-e', '0']);
  const module = new URL('../../dist/src/run/run-lock.js', import.meta.url).href;
  const code = `import(${JSON.stringify(module)}).then(({ acquireRunLock }) => {
    try { acquireRunLock(${JSON.stringify(dir)}); console.log('won'); setTimeout(() => {}, 60000); } catch { console.log('lost'); }
  })`;
  for (let round = 0; round < 3; round++) {
    write({ pid });
    const racers = Array.from({ length: 4 }, () => spawn(process.execPath, ['-e', code]));
    const outcomes = await Promise.all(
      racers.map(
        (racer) => new Promise<string>((resolve) => racer.stdout.once('data', (text) => resolve(`${text}`.trim()))),
      ),
    );
    for (const racer of racers) racer.kill('SIGKILL');
    expect(outcomes.filter((word) => word === 'won')).toHaveLength(1);
  }
});
