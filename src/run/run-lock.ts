/**
 * Lock file in a run's folder for as long as a process writes there (train, rollout, sft, dpo; new or resumed): a second one
 * is refused. A native library that aborts, or a kill, takes the process along before it can report anything: the file
 * that it leaves shows it to the next start.
 */
import { linkSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { isMissingFile, readText } from '../core/bounded-file.ts';
import { messageOf, UserError } from '../core/errors.ts';
import { quietly } from '../storage/atomic-file.ts';

interface Mark {
  readonly format: 2;
  readonly pid: number;
  readonly host: string;
  /** Start of the process in clock ticks since boot, where the system reports it: a pid is given out again. */
  readonly started: string | undefined;
}

const NAME = 'lock.json';

/** Lock files of this process. */
const held = new Set<string>();

/**
 * Locks a run for this process, which writes its files.
 * @returns a sentence about a process that ended here without removing its lock; undefined after an orderly end
 * @throws {UserError} RUN_EXISTS while another process writes this run; NO_PERMISSION where the folder cannot be written
 */
export function acquireRunLock(dir: string): string | undefined {
  const path = join(resolve(dir), NAME);
  const mine: Mark = { format: 2, pid: process.pid, host: hostname(), started: readProcess(process.pid).start };
  if (held.has(path)) throw createLockedError(`${path}: this process is writing this run already`);
  if (create(path, mine)) {
    held.add(path);
    return undefined;
  }
  const text = readMark(path);
  const before = markIn(text);
  if (before && before.host !== mine.host) {
    throw createLockedError(
      `${path}: process ${before.pid} on ${before.host} writes this run, or ended there without a word`,
    );
  }
  // Ours would be among those held: a lock under our number is of a process that had it before.
  if (before && before.pid !== process.pid && lives(before))
    throw createLockedError(`${path}: process ${before.pid} is writing this run`);
  replaceStale(path, text, mine);
  held.add(path);
  const left = before ? `process ${before.pid}` : 'the process that wrote here last';
  return `${left} ended without a word: it was killed, or a native library (the engine) aborted it`;
}

/** Removes this process's lock, where the disk lets it: what ended the run is the error to report. */
export function releaseRunLock(dir: string): void {
  const path = join(resolve(dir), NAME);
  held.delete(path);
  const mark = markIn(readIfThere(path));
  if (!mark || (mark.pid === process.pid && mark.host === hostname())) quietly(() => rmSync(path, { force: true }));
}

function createLockedError(message: string): UserError {
  return new UserError('RUN_EXISTS', `${message}; one process writes a run at a time (if it is gone, delete the file)`);
}

/**
 * Creates the file with its content in one step, so that no other process finds it empty.
 * @returns false where the file is there already
 */
function create(path: string, mark: Mark): boolean {
  const whole = `${path}.new.${process.pid}`;
  try {
    return refusable(() => {
      writeFileSync(whole, JSON.stringify(mark));
      try {
        linkSync(whole, path);
        return true;
      } catch (thrown) {
        if ((thrown as NodeJS.ErrnoException).code === 'EEXIST') return false;
        throw thrown;
      }
    });
  } finally {
    quietly(() => rmSync(whole, { force: true }));
  }
}

/** Content of a mark that is there. @throws {UserError} NO_PERMISSION where it cannot be read, or is no file */
function readMark(path: string): string | undefined {
  try {
    return readText(path);
  } catch (thrown) {
    if (isMissingFile(thrown)) return undefined; // just ended
    const message = `expected the lock of a process that writes this run: ${messageOf(thrown)}; move it away`;
    throw new UserError('NO_PERMISSION', message);
  }
}

/** @throws {UserError} NO_PERMISSION with what the disk threw */
function refusable<T>(write: () => T): T {
  try {
    return write();
  } catch (thrown) {
    throw new UserError('NO_PERMISSION', `the run cannot be locked for writing: ${messageOf(thrown)}`);
  }
}

/**
 * Replaces a stale mark by ours. Two processes may find the same one stale, so the file is first renamed to a name of
 * our own. A process that took another's fresh mark puts it back and is refused.
 */
function replaceStale(path: string, stale: string | undefined, mine: Mark): void {
  const aside = `${path}.${process.pid}`;
  try {
    renameSync(path, aside);
  } catch {
    throw createLockedError(`${path}: another process has just started to write this run`);
  }
  if (readIfThere(aside) !== stale) {
    renameSync(aside, path);
    throw createLockedError(`${path}: another process has just started to write this run`);
  }
  rmSync(aside, { force: true });
  if (!create(path, mine)) throw createLockedError(`${path}: another process has just started to write this run`);
}

/** True while the marked process runs: it is no zombie that waits to be reaped, and no later one under the same number. */
function lives({ pid, started }: Mark): boolean {
  try {
    process.kill(pid, 0); // signal 0 is none: it only asks
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false;
  }
  const { state, start } = readProcess(pid);
  if (state === 'Z' || state === 'X') return false;
  return started === undefined || start === undefined || started === start;
}

/** State and start time of a process: fields 3 and 22 of /proc/<pid>/stat (Linux); undefined elsewhere. */
function readProcess(pid: number): { readonly state: string | undefined; readonly start: string | undefined } {
  const stat = readIfThere(`/proc/${pid}/stat`);
  // The command's name, in brackets, may hold blanks; `state` is the first field behind it.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
  return { state: fields?.[0], start: fields?.[19] };
}

function readIfThere(path: string): string | undefined {
  try {
    return readText(path);
  } catch {
    return undefined;
  }
}

/** Mark in a file; undefined where the file was cut off while it was written. */
function markIn(text: string | undefined): Mark | undefined {
  try {
    const { format, pid, host, started } = JSON.parse(text ?? '');
    if (!Number.isSafeInteger(pid) || pid < 1) return undefined;
    return format === 2 && typeof host === 'string' ? { format, pid, host, started } : undefined;
  } catch {
    return undefined;
  }
}
