/**
 * Cache of what is made from models, in the user's own folder: `LONGPLAY_CACHE`, or `longplay` in `XDG_CACHE_HOME`, or
 * `~/.cache/longplay`. Anything in it may be deleted; it is made again.
 */
import { randomUUID } from 'node:crypto';
import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeSync,
} from 'node:fs';
import { homedir, hostname } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { readText } from '../../core/bounded-file.ts';
import { messageOf, UserError } from '../../core/errors.ts';
import { makeFolder, quietly } from '../../storage/atomic-file.ts';

/** Folder of the cache, absolute. */
export function cacheFolder(): string {
  const { LONGPLAY_CACHE, XDG_CACHE_HOME } = process.env;
  if (LONGPLAY_CACHE) return resolve(LONGPLAY_CACHE);
  return join(XDG_CACHE_HOME ? resolve(XDG_CACHE_HOME) : join(homedir(), '.cache'), 'longplay');
}

/** Milliseconds between two looks at what another process makes. */
const WAIT_MS = 200;
/** Age of a lock whose process cannot be seen (another machine's), after which it holds nobody up, ms. */
const STALE_MS = 600_000;

/**
 * Makes a folder of the cache, unless it is there. It appears whole or not at all. Of several processes one makes it, and
 * the others wait; where that one is gone, the next one makes it.
 * @param make writes the files into the folder it is given
 * @throws {UserError} what `make` throws; NO_PERMISSION where the cache cannot be written
 */
export function makeOnce(folder: string, make: (unfinished: string) => void): void {
  const lock = `${folder}.lock`;
  while (!existsSync(folder)) {
    if (!acquireLock(lock)) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, WAIT_MS);
      continue;
    }
    try {
      if (!existsSync(folder)) makeWhole(folder, make);
    } finally {
      releaseLock(lock);
    }
  }
}

/** Name of this process in lock files and unfinished folders. */
const owner = `${hostname().replace(/[^\w-]/g, '_')}-${process.pid}`;

function makeWhole(folder: string, make: (unfinished: string) => void): void {
  removeAbandoned(folder);
  const unfinished = `${folder}.${owner}-${randomUUID().slice(0, 8)}.tmp`;
  try {
    makeFolder(unfinished);
    make(unfinished);
    renameSync(unfinished, folder);
  } catch (thrown) {
    quietly(() => rmSync(unfinished, { recursive: true, force: true }));
    // Somebody who did not see the lock was faster: what is there is whole.
    if (!existsSync(folder)) throw thrown;
  }
}

/** Removes what processes of this machine that are gone left unfinished. */
function removeAbandoned(folder: string): void {
  for (const name of readdirSync(dirname(folder))) {
    if (!name.startsWith(`${basename(folder)}.`) || !name.endsWith('.tmp')) continue;
    const left = name.slice(basename(folder).length + 1, -'-12345678.tmp'.length);
    if (left !== owner && isGone(left))
      quietly(() => rmSync(join(dirname(folder), name), { recursive: true, force: true }));
  }
}

/**
 * Takes a lock file for this process. One whose process is gone is removed first, and taken by the next call.
 * @returns false while another process holds it
 * @throws {UserError} NO_PERMISSION where it cannot be written
 */
export function acquireLock(lock: string): boolean {
  try {
    makeFolder(dirname(lock));
    const fd = openSync(lock, 'wx');
    writeSync(fd, owner);
    closeSync(fd);
    return true;
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== 'EEXIST') {
      const message = `${lock}: the cache cannot be written: ${messageOf(thrown)}; name another one with LONGPLAY_CACHE or HF_HOME`;
      throw new UserError('NO_PERMISSION', message, { cause: thrown });
    }
  }
  try {
    const age = Date.now() - statSync(lock).mtimeMs;
    // An empty one is being written, or its process was ended between two steps.
    const holder = readText(lock);
    if (holder === '' ? age > 5000 : isGone(holder) || age > STALE_MS) rmSync(lock, { force: true });
  } catch {
    // Just released.
  }
  return false;
}

/** Shows other machines that the holder of a lock still works. */
export function keepLock(lock: string): void {
  quietly(() => utimesSync(lock, new Date(), new Date()));
}

/** Gives a lock back. */
export function releaseLock(lock: string): void {
  quietly(() => rmSync(lock, { force: true }));
}

/** True for a process of this machine that does not run any more. */
function isGone(name: string): boolean {
  const [, host, pid] = /^(.*)-(\d+)$/.exec(name) ?? [];
  if (host === undefined || `${host}-${process.pid}` !== owner) return false;
  if (Number(pid) === process.pid) return false;
  try {
    process.kill(Number(pid), 0); // signal 0 is none: it only asks
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'EPERM';
  }
}
