/**
 * Atomic files: a reader sees the old content or the new one and never something between, whenever the process or the
 * machine stops: write beside, sync, rename, sync the folder.
 *
 * Synchronous on purpose: what is written is a snapshot, and nothing may change it half way.
 */
import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { MAX_BINARY_BYTES, readBounded } from '../core/bounded-file.ts';
import { messageOf, UserError } from '../core/errors.ts';

/** Disk operations that durable files need; replaced by tests and by planned faults. */
export interface Disk {
  /** Makes a folder and those above it; existing ones are fine. */
  makeFolder(path: string): void;
  /** Names in a folder; none when it does not exist. */
  list(path: string): readonly string[];
  read(path: string): Uint8Array;
  /** Creates or overwrites a file and returns once its content is on the disk. Not atomic by itself. */
  write(path: string, content: Uint8Array): void;
  rename(from: string, to: string): void;
  /** Removes a file or a whole folder; an absent one is fine. */
  remove(path: string): void;
  /** Syncs a folder: returns once its entries (creations, renames, removals) are on the disk. */
  syncFolder(path: string): void;
}

/**
 * Makes a folder and those above it; an existing one is fine. Node's own `recursive` tries for ever where the system refuses
 * a folder with ENOENT although the one above it exists (Linux under /proc).
 * @throws what the system refuses
 */
export function makeFolder(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  const above = dirname(path);
  if (!existsSync(above)) makeFolder(above);
  try {
    mkdirSync(path);
  } catch (thrown) {
    // Another process may have been faster.
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw thrown;
  }
}

/** Disk of the machine. */
export const nodeDisk: Disk = {
  makeFolder,
  list(path) {
    try {
      return readdirSync(path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
      throw error;
    }
  },
  read: (path) => readBounded(path, MAX_BINARY_BYTES),
  write(path, content) {
    const file = openSync(path, 'w');
    try {
      // A short write is no error to the system: it goes on, or fails with the reason, on the next one.
      for (let at = 0; at < content.length; ) at += writeSync(file, content, at, content.length - at);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
  },
  rename: renameSync,
  remove: (path) => rmSync(path, { recursive: true, force: true }),
  syncFolder(path) {
    if (process.platform === 'win32') return; // folders cannot be opened there; NTFS journals its entries
    const folder = openSync(path, 'r');
    try {
      fsyncSync(folder);
    } finally {
      closeSync(folder);
    }
  },
};

/**
 * Writes a whole file atomically and durably. The folder must exist, and only one process may write this file.
 * @throws what the disk throws (`code` ENOSPC, EACCES, …); the old content is then still there
 */
export function writeFileAtomic(path: string, content: Uint8Array | string, disk: Disk = nodeDisk): void {
  const beside = join(dirname(path), `.${basename(path)}.tmp`);
  try {
    disk.write(beside, typeof content === 'string' ? new TextEncoder().encode(content) : content);
    disk.rename(beside, path);
  } catch (error) {
    quietly(() => disk.remove(beside));
    throw error;
  }
  disk.syncFolder(dirname(path));
}

/** Writes, and explains what the system refuses. @throws {UserError} NO_PERMISSION naming the path; what else is thrown, as it is */
export function explainWrite<T>(path: string, write: () => T): T {
  try {
    return write();
  } catch (thrown) {
    if (thrown instanceof UserError || (thrown as NodeJS.ErrnoException).code === undefined) throw thrown;
    throw new UserError('NO_PERMISSION', `cannot write ${path}: ${messageOf(thrown)}`, { cause: thrown });
  }
}

/**
 * Writes a file in pieces, and puts it in its place once it is whole: what breaks before that leaves nothing behind, and a
 * file that was there as it was. What is no file (a pipe, a device) is written to as it is.
 * @param write is given the path to write to
 */
export function writeWhole<T>(path: string, write: (path: string) => T): T {
  const there = statSync(path, { throwIfNoEntry: false });
  if (there && !there.isFile()) return write(path);
  const place = there ? realpathSync(path) : path;
  const beside = join(dirname(place), `.${basename(place)}.${process.pid}.tmp`);
  try {
    const written = write(beside);
    renameSync(beside, place);
    return written;
  } catch (thrown) {
    quietly(() => rmSync(beside, { force: true }));
    throw thrown;
  }
}

/** Writes all of a text. A short write is no error to the system: the next one continues it, or fails with the reason. */
export function writeAll(file: number, text: string): void {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at, bytes.length - at);
}

/**
 * Appends a text to a file, all of it or nothing: a disk that refuses leaves no half line for the next one to stand behind.
 * @throws what the disk throws
 */
export function appendWhole(path: string, text: string): void {
  const file = openSync(path, 'a');
  try {
    const { size } = fstatSync(file);
    try {
      writeAll(file, text);
    } catch (thrown) {
      quietly(() => ftruncateSync(file, size));
      throw thrown;
    }
  } finally {
    closeSync(file);
  }
}

/** Runs a clean-up after an error; its own failure must not hide the first one. */
export function quietly(tidy: () => void): void {
  try {
    tidy();
  } catch {
    // the error that led here is the one to report
  }
}
