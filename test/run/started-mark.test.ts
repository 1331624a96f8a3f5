import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { markEnded, markStarted } from '../../src/run/started-mark.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'started-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const leave = (content: string) => writeFileSync(join(dir, 'training.json'), content);

it('says nothing of a process that ended by itself', () => {
  expect(markStarted(dir)).toBeUndefined();
  expect(existsSync(join(dir, 'training.json'))).toBe(true);
  markEnded(dir);
  expect(markStarted(dir)).toBeUndefined();
});

it('names the process that ended without a word', () => {
  const { pid } = spawnSync(process.execPath, ['--version']);
  leave(JSON.stringify({ format: 1, pid }));
  expect(markStarted(dir)).toContain(`process ${pid} ended without a word`);
  leave('{"form'); // cut off while it was written
  expect(markStarted(dir)).toContain('the process that trained here last ended without a word');
});

it('does not call a living process dead', () => {
  leave(JSON.stringify({ format: 1, pid: process.ppid }));
  expect(markStarted(dir)).toContain(`process ${process.ppid} may still be training this run`);
});
