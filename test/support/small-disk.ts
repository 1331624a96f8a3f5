/** A disk of a few megabytes that can be full: a file system in memory, which takes the rights to mount one. */
import { spawnSync } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MEGABYTES = 24;

/** Why tests with a full disk are skipped; undefined where one can be had. */
export const noSmallDisk: string | undefined = (() => {
  if (process.platform !== 'linux') return 'skipped: full disks are tried on Linux only';
  const dir = mkdtempSync(join(tmpdir(), 'longplay-disk-'));
  const found = mount(dir);
  if (found) spawnSync('umount', ['-l', dir]);
  rmSync(dir, { recursive: true, force: true });
  return found ? undefined : 'skipped: a file system in memory cannot be mounted here (it takes root)';
})();
if (noSmallDisk) console.log(noSmallDisk);

function mount(dir: string): boolean {
  return spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${MEGABYTES}m`, 'tmpfs', dir]).status === 0;
}

/** A disk at `dir`, which is made. */
export class SmallDisk {
  readonly #dir: string;

  constructor(dir: string) {
    this.#dir = dir;
    mkdirSync(dir, { recursive: true });
    if (!mount(dir)) throw new Error(`no file system can be mounted at ${dir}`);
  }

  /** Leaves no room at all. */
  fill(): void {
    const file = openSync(join(this.#dir, 'filler'), 'a');
    for (let bytes = 2 ** 20; bytes >= 1; ) {
      try {
        if (writeSync(file, Buffer.alloc(bytes)) < bytes) bytes >>= 1;
      } catch {
        bytes >>= 1;
      }
    }
    closeSync(file);
  }

  empty(): void {
    rmSync(join(this.#dir, 'filler'), { force: true });
  }

  remove(): void {
    spawnSync('umount', ['-l', this.#dir]);
  }
}
