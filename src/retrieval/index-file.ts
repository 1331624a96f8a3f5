/** Index files, read whole, checked by digest, into shared memory, so that threads stand over one copy. */
import { createHash } from 'node:crypto';
import { closeSync, fstatSync, readSync } from 'node:fs';
import { openFile } from '../core/bounded-file.ts';
import { messageOf, UserError } from '../core/errors.ts';
import { parseJson } from '../core/json-text.ts';
import { Bm25Index } from './bm25-index.ts';
import { readLines } from './corpus.ts';
import { ARRAY_NAMES, arraysIn, INDEX_VERSION, type IndexHeader, MAGIC } from './index-layout.ts';

/** Shared index in memory, as it can be handed to another thread. */
export interface SharedIndex {
  readonly header: IndexHeader;
  /** Bytes of the file. */
  readonly bytes: SharedArrayBuffer;
}

const TRAILER_BYTES = 8 + 32 + MAGIC.length;
const BLOCK = 1 << 24;

/**
 * Reads an index file.
 * @throws {UserError} for what is no index, of another version, cut off or changed: one line
 */
export function readIndex(file: string): SharedIndex {
  let fd: number;
  try {
    fd = openFile(file);
  } catch (thrown) {
    throw new UserError('BAD_ARGUMENT', `cannot read the index ${messageOf(thrown)}`, { cause: thrown });
  }
  try {
    const { size } = fstatSync(fd);
    const header = readHeader(fd, size, file);
    const bytes = new SharedArrayBuffer(size);
    const into = new Uint8Array(bytes);
    const block = Buffer.alloc(Math.min(BLOCK, size));
    for (const name of ARRAY_NAMES) {
      const section = header.arrays[name];
      const hash = createHash('sha256');
      for (let at = section.offset; at < section.offset + section.bytes; ) {
        const read = readSync(fd, block, 0, Math.min(block.length, section.offset + section.bytes - at), at);
        if (read <= 0) refuse(file, 'ends too early');
        hash.update(block.subarray(0, read));
        into.set(block.subarray(0, read), at);
        at += read;
      }
      if (hash.digest('hex') !== section.sha256) refuse(file, `is damaged (its ${name})`);
    }
    return { header, bytes };
  } finally {
    closeSync(fd);
  }
}

/** Opens an index over shared memory, for one thread. */
export function indexOver({ header, bytes }: SharedIndex): Bm25Index {
  return new Bm25Index(header, arraysIn(bytes, header));
}

/** Reads the description alone. @throws {UserError} as `readIndex` */
export function readIndexHeader(file: string): IndexHeader {
  let fd: number;
  try {
    fd = openFile(file);
  } catch (thrown) {
    throw new UserError('BAD_ARGUMENT', `cannot read the index ${messageOf(thrown)}`, { cause: thrown });
  }
  try {
    return readHeader(fd, fstatSync(fd).size, file);
  } finally {
    closeSync(fd);
  }
}

/**
 * Compares an index with a corpus, by what its lines hold.
 * @throws {UserError} when the index is of another corpus
 */
export async function checkCorpus(header: IndexHeader, file: string, corpus: string): Promise<void> {
  const hash = createHash('sha256');
  for await (const { bytes } of readLines(corpus)) hash.update(bytes);
  if (hash.digest('hex') === header.corpus.sha256) return;
  const built = `${file} was built from another corpus than ${corpus} (${header.passages} passages)`;
  throw new UserError('BAD_ARGUMENT', `${built}; build it again with longplay index ${corpus}`);
}

function readHeader(fd: number, size: number, file: string): IndexHeader {
  const magic = readAt(fd, 0, MAGIC.length);
  if (!magic.equals(MAGIC)) refuse(file, 'is no index');
  const trailer = readAt(fd, Math.max(0, size - TRAILER_BYTES), TRAILER_BYTES);
  if (trailer.length < TRAILER_BYTES || !trailer.subarray(40).equals(MAGIC)) refuse(file, 'is cut off');
  const length = trailer.readUInt32LE(0);
  if (length > size) refuse(file, 'is damaged');
  const text = readAt(fd, Math.max(0, size - TRAILER_BYTES - length), length);
  if (!createHash('sha256').update(text).digest().equals(trailer.subarray(8, 40))) refuse(file, 'is damaged');
  const header = parseJson(text.toString('utf8')) as IndexHeader;
  if (header.version !== INDEX_VERSION)
    refuse(file, `has version ${header.version}, this longplay reads ${INDEX_VERSION}`);
  return header;
}

function readAt(fd: number, position: number, bytes: number): Buffer {
  const into = Buffer.alloc(bytes);
  return into.subarray(0, readSync(fd, into, 0, bytes, position));
}

function refuse(file: string, why: string): never {
  throw new UserError('BAD_ARGUMENT', `the index ${file} ${why}; build it again with longplay index`);
}
