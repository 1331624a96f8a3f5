/**
 * Lines of a file, one at a time: whole ones from a byte on, in memory that the longest of them bounds. What holds more
 * than `LONGEST_LINE` is passed over without being kept, so that a file of one line of many gigabytes costs no more than
 * reading it.
 */
import { closeSync, fstatSync, readSync } from 'node:fs';
import { openFile } from '../core/bounded-file.ts';

/** Bytes of the longest line that is read: 256 MiB. A JavaScript string holds twice as many at most. */
export const LONGEST_LINE = 2 ** 28;

/** Line of a file. */
export interface Line {
  /** First byte in the file. */
  readonly offset: number;
  /** Bytes without the newline. */
  readonly length: number;
  /** Text; undefined where it is longer than `LONGEST_LINE`. */
  readonly text: string | undefined;
}

/** Bytes read at once. */
const CHUNK = 4 * 2 ** 20;

/**
 * Reads whole lines; a last one without a newline is not there yet.
 * @param from first byte, the beginning of a line
 * @param count lines at most
 */
export function* wholeLines(path: string, from = 0, count = Number.POSITIVE_INFINITY): Generator<Line> {
  const fd = openFile(path);
  try {
    const { size } = fstatSync(fd);
    let parts: Buffer[] = []; // of a line that began in an earlier chunk
    let held = 0;
    let offset = from;
    let read = 0;
    let spare: Buffer | undefined; // a chunk of which nothing was kept
    for (let at = from; at < size; ) {
      const room = Math.min(CHUNK, size - at);
      const chunk: Buffer = spare?.length === room ? spare : Buffer.allocUnsafe(room);
      spare = undefined;
      const got = readSync(fd, chunk, 0, chunk.length, at);
      if (got === 0) return;
      at += got;
      const bytes = chunk.subarray(0, got);
      let begin = 0;
      for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, begin)) {
        const length = held + end - begin;
        const text = length > LONGEST_LINE ? undefined : textOf(parts, bytes, begin, end);
        yield { offset, length, text: offset === 0 && text !== undefined ? withoutMark(text) : text };
        if (++read >= count) return;
        parts = [];
        held = 0;
        offset += length + 1;
        begin = end + 1;
      }
      held += got - begin;
      if (held > LONGEST_LINE) {
        parts = [];
        spare = chunk;
      } else parts.push(bytes.subarray(begin));
    }
  } finally {
    closeSync(fd);
  }
}

function textOf(parts: readonly Buffer[], bytes: Buffer, begin: number, end: number): string {
  if (parts.length === 0) return bytes.toString('utf8', begin, end);
  return Buffer.concat([...parts, bytes.subarray(begin, end)]).toString('utf8');
}

/** Text without the byte-order mark that some editors put before the first line. */
function withoutMark(text: string): string {
  return text.charCodeAt(0) === 0xfeff ? text.slice(1) : text;
}

/** Reads the text of one line where its place is known; of a last line without a newline, too. */
export function readLineAt(path: string, offset: number, length: number): string {
  const fd = openFile(path);
  try {
    const bytes = Buffer.allocUnsafe(length);
    let read = 0;
    while (read < length) {
      const got = readSync(fd, bytes, read, length - read, offset + read);
      if (got === 0) break;
      read += got;
    }
    const text = bytes.toString('utf8', 0, read);
    return offset === 0 ? withoutMark(text) : text;
  } finally {
    closeSync(fd);
  }
}

/** Bytes of a file up to the end of its last whole line; 0 where it has none. */
export function wholeBytes(path: string): number {
  const fd = openFile(path);
  try {
    const chunk = Buffer.allocUnsafe(2 ** 16);
    for (let end = fstatSync(fd).size; end > 0; ) {
      const start = Math.max(0, end - chunk.length);
      const got = readSync(fd, chunk, 0, end - start, start);
      const newline = chunk.subarray(0, got).lastIndexOf(10);
      if (newline >= 0) return start + newline + 1;
      end = start;
    }
    return 0;
  } finally {
    closeSync(fd);
  }
}
