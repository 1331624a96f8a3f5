/** Files that somebody names: read up to a bound, so that a device without an end or a wrong file costs no memory. */
import { closeSync, openSync, readSync } from 'node:fs';

const CHUNK = 2 ** 20;

/** Bytes of a file of settings, or of a list of names: a person has written it. */
export const MAX_SETTINGS_BYTES = 2 ** 24;
/** Bytes of a file of data that is held whole, as one text: 256 MiB. */
export const MAX_DATA_BYTES = 2 ** 28;

/**
 * Reads a file whole.
 * @param maxBytes bytes
 * @throws {Error} for a longer file; what the system throws for one that cannot be read
 */
export function readBounded(path: string, maxBytes: number): Buffer {
  const fd = openSync(path, 'r');
  try {
    const chunks: Buffer[] = [];
    for (let held = 0; ; ) {
      const chunk = Buffer.allocUnsafe(Math.min(CHUNK, maxBytes + 1 - held));
      const got = readSync(fd, chunk);
      if (got === 0) return Buffer.concat(chunks, held);
      held += got;
      if (held > maxBytes) throw new Error(`it is longer than ${maxBytes} bytes; expected a file of at most that`);
      chunks.push(got < chunk.length ? Buffer.from(chunk.subarray(0, got)) : chunk);
    }
  } finally {
    closeSync(fd);
  }
}
