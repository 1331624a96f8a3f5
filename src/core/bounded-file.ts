/**
 * Files that somebody names, or that lie in a folder of somebody's: every one is opened and read here. A pipe, a device
 * or a folder in its place is refused before anything waits for it; a longer file than expected costs no memory; each
 * error names the file. `test/architecture.test.ts` finds readers that go round it.
 */
import {
  closeSync,
  constants,
  createReadStream,
  fstatSync,
  openSync,
  type ReadStream,
  readSync,
  type Stats,
  statSync,
} from 'node:fs';
import { fileURLToPath } from 'node:url';
import { messageOf, UserError } from './errors.ts';
import { parseJson } from './json-text.ts';

const CHUNK = 2 ** 20;

/** Bytes of a file of settings, or of a list of names: a person has written it. */
export const MAX_SETTINGS_BYTES = 2 ** 24;
/** Bytes of a file of data that is held whole, as one text: 256 MiB. */
export const MAX_DATA_BYTES = 2 ** 28;
/** Bytes of a file of numbers that is held whole: what one buffer of Node's reads at once. */
export const MAX_BINARY_BYTES = 2 ** 31 - 1;

const FLAGS = {
  r: constants.O_RDONLY,
  'r+': constants.O_RDWR,
  a: constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT,
} as const;

/** Error that names the file; its `cause` is the system's, if it was one. */
function createFileError(path: string | URL, thrown: unknown): UserError {
  const name = pathOf(path);
  // Node's messages end in the call and the path: `ENOENT: no such file or directory, open 'x'`.
  const why = messageOf(thrown).replace(/, \w+( '.*')?$/s, '');
  return new UserError('BAD_ARGUMENT', `${name}: ${why}`, { cause: thrown });
}

function pathOf(path: string | URL): string {
  return typeof path === 'string' ? path : fileURLToPath(path);
}

function createKindError(path: string | URL, stat: Stats): UserError {
  return new UserError('BAD_ARGUMENT', `${pathOf(path)}: expected a file, found ${kindOf(stat)}`);
}

/** Facts of what is there; undefined where there are none to be had. */
function quietStat(path: string | URL): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

function kindOf(stat: Stats): string {
  if (stat.isDirectory()) return 'a folder';
  if (stat.isFIFO()) return 'a pipe';
  return stat.isSocket() ? 'a socket' : 'a device';
}

/**
 * Opens a file, and only a file: never waits for the other end of a pipe.
 * @param flags as Node's: read, read and write, or append (made where it is missing)
 * @returns its descriptor, to be closed by the caller
 * @throws {UserError} BAD_ARGUMENT naming the file, for what is no file or cannot be opened
 */
export function openFile(path: string | URL, flags: keyof typeof FLAGS = 'r'): number {
  let fd: number;
  try {
    fd = openSync(path, FLAGS[flags] | (constants.O_NONBLOCK ?? 0)); // a pipe would make the call wait
  } catch (thrown) {
    const stat = quietStat(path);
    throw stat && !stat.isFile() ? createKindError(path, stat) : createFileError(path, thrown);
  }
  const stat = fstatSync(fd);
  if (stat.isFile()) return fd;
  closeSync(fd);
  throw createKindError(path, stat);
}

/** True where a reader here failed because there is no such file. */
export function isMissingFile(thrown: unknown): boolean {
  const { code, cause } = (thrown ?? {}) as NodeJS.ErrnoException;
  return code === 'ENOENT' || (cause !== undefined && isMissingFile(cause));
}

/**
 * Reads a file whole.
 * @param maxBytes bytes
 * @throws {UserError} BAD_ARGUMENT naming the file, for a longer one, what is no file or cannot be read
 */
export function readBounded(path: string | URL, maxBytes: number): Buffer {
  const fd = openFile(path);
  try {
    const { size } = fstatSync(fd);
    const chunks: Buffer[] = [];
    for (let held = 0; ; ) {
      if (held > maxBytes || size > maxBytes) {
        throw new Error(`it is longer than ${maxBytes} bytes; expected a file of at most that`);
      }
      // What the system makes as it is read (Linux' /proc) has no size.
      const room = held === 0 ? Math.max(size + 1, CHUNK) : CHUNK;
      const chunk = Buffer.allocUnsafe(Math.min(room, maxBytes + 1 - held));
      const got = readSync(fd, chunk);
      if (got === 0) return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, held);
      held += got;
      chunks.push(got < chunk.length / 2 ? Buffer.from(chunk.subarray(0, got)) : chunk.subarray(0, got));
    }
  } catch (thrown) {
    throw createFileError(path, thrown);
  } finally {
    closeSync(fd);
  }
}

/**
 * Reads a text file (UTF-8). A byte-order mark at its beginning is passed over; what is no UTF-8 becomes U+FFFD.
 * @throws {UserError} as `readBounded`
 */
export function readText(path: string | URL, maxBytes: number = MAX_SETTINGS_BYTES): string {
  const bytes = readBounded(path, maxBytes);
  return bytes.toString('utf8', hasByteOrderMark(bytes) ? 3 : 0);
}

/**
 * Reads a JSON file, as `parseJson` does.
 * @throws {UserError} as `readBounded`, and for what is no JSON
 */
export function readJsonFile(path: string | URL, maxBytes: number = MAX_SETTINGS_BYTES): unknown {
  const text = readText(path, maxBytes);
  try {
    return parseJson(text);
  } catch (thrown) {
    throw new UserError('BAD_ARGUMENT', `${pathOf(path)}: it is no JSON: ${messageOf(thrown)}`, { cause: thrown });
  }
}

/** Streams a file's bytes, which may be more than memory holds. @throws {UserError} as `openFile` */
export function streamFile(path: string, highWaterMark: number): ReadStream {
  return createReadStream(path, { fd: openFile(path), highWaterMark });
}

/** True for bytes that begin with UTF-8's byte-order mark. */
export function hasByteOrderMark(bytes: Uint8Array): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
}
