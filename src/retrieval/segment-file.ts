/**
 * Segment files, between the reading of a corpus and the merge. They are written beside and renamed, with a digest, so
 * that a segment file is whole or absent.
 */
import { createHash } from 'node:crypto';
import { closeSync, fsyncSync, openSync, readSync, renameSync, writeSync } from 'node:fs';
import { MAX_BINARY_BYTES, openFile, readBounded } from '../core/bounded-file.ts';
import { UserError } from '../core/errors.ts';
import { parseJson } from '../core/json-text.ts';
import type { PairSource, Segment } from './segment.ts';

/** Rows of a segment, beside its lists. */
export interface SegmentRows {
  /** Bytes of each passage's line. */
  readonly rowBytes: Uint32Array;
  /** Hashes of the passages' ids: two words each, 64 bits. */
  readonly idHashes: Uint32Array;
  /** Bytes of the unpacked corpus up to the segment's end, and their SHA-256. */
  readonly corpusBytes: number;
  readonly corpusSha256: string;
}

interface SegmentHeader {
  readonly first: number;
  readonly passages: number;
  readonly terms: number;
  readonly pairs: number;
  readonly termBytes: number;
  readonly corpusBytes: number;
  readonly corpusSha256: string;
  /** Digest (SHA-256) of everything behind the header. */
  readonly sha256: string;
}

const HEADER_BYTES = 512;

/** Writes a segment and syncs it to the disk. */
export function writeSegment(file: string, segment: Segment, rows: SegmentRows): void {
  const terms = Buffer.from(segment.terms.join('\n'));
  const parts = [
    segment.lengths,
    rows.rowBytes,
    rows.idHashes,
    segment.starts,
    segment.passages,
    segment.counts,
    terms,
  ].map((part) => Buffer.from(part.buffer, part.byteOffset, part.byteLength));
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  const header: SegmentHeader = {
    first: segment.first,
    passages: segment.lengths.length,
    terms: segment.terms.length,
    pairs: segment.passages.length,
    termBytes: terms.length,
    corpusBytes: rows.corpusBytes,
    corpusSha256: rows.corpusSha256,
    sha256: hash.digest('hex'),
  };
  const fd = openSync(`${file}.draft`, 'w');
  try {
    for (const part of [Buffer.from(JSON.stringify(header).padEnd(HEADER_BYTES)), ...parts]) {
      for (let at = 0; at < part.length; ) at += writeSync(fd, part, at, part.length - at);
    }
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  renameSync(`${file}.draft`, file);
}

/** Segment file, open for merging: rows in memory, lists read as they are needed. */
export class SegmentFile implements PairSource, SegmentRows {
  readonly first: number;
  readonly lengths: Uint32Array;
  readonly rowBytes: Uint32Array;
  readonly idHashes: Uint32Array;
  readonly corpusBytes: number;
  readonly corpusSha256: string;
  readonly pairs: number;
  term: string | undefined;
  passages: Uint32Array = new Uint32Array(0);
  counts: Uint32Array = new Uint32Array(0);
  readonly #fd: number;
  readonly #terms: number;
  readonly #starts: RegionReader;
  readonly #passages: RegionReader;
  readonly #counts: RegionReader;
  readonly #words: RegionReader;
  #at = -1;
  #start = 0;

  /** @throws {UserError} for a file that is not whole */
  constructor(file: string) {
    const header = readHeader(file);
    this.first = header.first;
    this.corpusBytes = header.corpusBytes;
    this.corpusSha256 = header.corpusSha256;
    this.pairs = header.pairs;
    this.#terms = header.terms;
    this.#fd = openFile(file);
    let at = HEADER_BYTES;
    const region = (bytes: number) => {
      const reader = new RegionReader(this.#fd, at, at + bytes);
      at += bytes;
      return reader;
    };
    this.lengths = region(4 * header.passages).words(header.passages);
    this.rowBytes = region(4 * header.passages).words(header.passages);
    this.idHashes = region(8 * header.passages).words(2 * header.passages);
    this.#starts = region(4 * (header.terms + 1));
    this.#passages = region(4 * header.pairs);
    this.#counts = region(4 * header.pairs);
    this.#words = region(header.termBytes);
    this.#start = this.#starts.words(1)[0]!;
    this.next();
  }

  next(): void {
    this.#at++;
    if (this.#at >= this.#terms) {
      this.term = undefined;
      return;
    }
    const end = this.#starts.words(1)[0]!;
    this.passages = this.#passages.words(end - this.#start);
    this.counts = this.#counts.words(end - this.#start);
    this.#start = end;
    this.term = this.#words.line();
  }

  close(): void {
    closeSync(this.#fd);
  }
}

function readHeader(file: string): SegmentHeader {
  const bytes = readBounded(file, MAX_BINARY_BYTES);
  try {
    const header = parseJson(bytes.toString('utf8', 0, HEADER_BYTES)) as SegmentHeader;
    const digest = createHash('sha256').update(bytes.subarray(HEADER_BYTES)).digest('hex');
    if (digest === header.sha256) return header;
  } catch {
    // reported below
  }
  throw new UserError('BAD_ARGUMENT', `${file} is damaged; remove its folder and index the corpus again`);
}

/** Reads a region of a file from front to end, in blocks. */
class RegionReader {
  readonly #fd: number;
  readonly #end: number;
  #position: number;
  #block: Buffer = Buffer.alloc(0);
  #used = 0;

  constructor(fd: number, start: number, end: number) {
    this.#fd = fd;
    this.#position = start;
    this.#end = end;
  }

  /** Words, the next `count` of them. */
  words(count: number): Uint32Array {
    const words = new Uint32Array(count);
    const into = Buffer.from(words.buffer);
    for (let at = 0; at < into.length; ) {
      if (this.#used === this.#block.length) this.#fill();
      const taken = this.#block.copy(into, at, this.#used);
      at += taken;
      this.#used += taken;
    }
    return words;
  }

  /** Line: the text up to the next newline or the end. */
  line(): string {
    let text: Buffer = Buffer.alloc(0);
    for (;;) {
      const end = this.#block.indexOf(10, this.#used);
      const piece = this.#block.subarray(this.#used, end < 0 ? undefined : end);
      text = text.length === 0 ? piece : Buffer.concat([text, piece]);
      this.#used = end < 0 ? this.#block.length : end + 1;
      if (end >= 0 || this.#position >= this.#end) return text.toString('utf8');
      text = Buffer.from(text);
      this.#fill();
    }
  }

  #fill(): void {
    const bytes = Math.min(1 << 18, this.#end - this.#position);
    if (bytes <= 0) throw new RangeError('read behind the end of a segment');
    this.#block = Buffer.alloc(bytes);
    const read = readSync(this.#fd, this.#block, 0, bytes, this.#position);
    if (read <= 0) throw new RangeError('a segment file shrank while it was read');
    this.#block = this.#block.subarray(0, read);
    this.#position += read;
    this.#used = 0;
  }
}
