import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  isMissingFile,
  openFile,
  readBounded,
  readJsonFile,
  readText,
  streamFile,
} from '../../src/core/bounded-file.ts';
import { UserError } from '../../src/core/errors.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'longplay-files-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(content: string | Uint8Array): string {
  const path = join(folder, 'file');
  writeFileSync(path, content);
  return path;
}

describe('the reader of files', () => {
  const readers = {
    openFile: (path: string) => openFile(path),
    readBounded: (path: string) => readBounded(path, 1e6),
    readText: (path: string) => readText(path),
    readJsonFile: (path: string) => readJsonFile(path),
    streamFile: (path: string) => streamFile(path, 1024),
    append: (path: string) => openFile(path, 'a'),
    update: (path: string) => openFile(path, 'r+'),
  };
  for (const [name, read] of Object.entries(readers)) {
    it(`${name} refuses a pipe, a device and a folder in one line that names it, and waits for none`, () => {
      const pipe = join(folder, 'pipe');
      execFileSync('mkfifo', [pipe]);
      mkdirSync(join(folder, 'folder'));
      for (const path of [pipe, '/dev/zero', join(folder, 'folder')]) {
        let thrown: unknown;
        try {
          read(path);
        } catch (error) {
          thrown = error;
        }
        expect(thrown, path).toBeInstanceOf(UserError);
        expect((thrown as Error).message).toMatch(new RegExp(`^${path}: [^\n]+$`));
      }
    });
  }
  it('names a file that is not there, and says so to a program', () => {
    const path = join(folder, 'nothing');
    let thrown: unknown;
    try {
      readText(path);
    } catch (error) {
      thrown = error;
    }
    expect((thrown as Error).message).toBe(`${path}: ENOENT: no such file or directory`);
    expect(isMissingFile(thrown)).toBe(true);
    expect(isMissingFile(new Error('x'))).toBe(false);
  });
  it('reads up to the bound and not one byte more, also where the system gives no size', () => {
    const path = write('x'.repeat(3_000_000));
    expect(readBounded(path, 3_000_000)).toHaveLength(3_000_000);
    expect(() => readBounded(path, 2_999_999)).toThrow(/file: it is longer than 2999999 bytes/);
    expect(readText('/proc/self/status')).toContain('Pid:');
    expect(() => readBounded('/proc/self/status', 10)).toThrow(/longer than 10 bytes/);
    expect(readBounded(write(''), 10)).toHaveLength(0);
  });
  it('passes over a byte-order mark', () => {
    expect(readText(write('\ufeffseed: 1'))).toBe('seed: 1');
    expect(readJsonFile(write('\ufeff{"a": 1}'))).toEqual({ a: 1 });
  });
  it('names the file of what is no JSON', () => {
    expect(() => readJsonFile(write('{"a": '))).toThrow(/\/file: it is no JSON: /);
  });
  it('makes lone halves of a surrogate pair well-formed', () => {
    expect(readJsonFile(write(String.raw`["\ud83d", "\ud83d\ude00", "\\ud83d", "\ude00x"]`))).toEqual([
      '\ufffd',
      '😀',
      String.raw`\ud83d`,
      '\ufffdx',
    ]);
  });
});
