/**
 * Writer of an index file behind its rows: arrays at their places, their digests, and the header at the end. What the
 * arrays hold is up to build-index.ts.
 */
import { createHash } from 'node:crypto';
import { fsyncSync, ftruncateSync, writeSync } from 'node:fs';
import { messageOf } from '../core/errors.ts';
import { ARRAY_NAMES, type ArrayName, alignOffset, type IndexHeader, MAGIC, type Section } from './index-layout.ts';

/** Bytes that are written at once. */
const BLOCK = 1 << 20;

/** Writer of a whole file, whose rows are there already. */
export class IndexWriter {
  readonly #fd: number;
  readonly #sections: Partial<Record<ArrayName, Section>>;
  /** Offset of the next array. */
  #offset: number;

  /**
   * @param fd the file
   * @param rowsEnd offset of the first byte behind the rows
   * @param rowsSha256 digest of the rows
   */
  constructor(fd: number, rowsEnd: number, rowsSha256: string) {
    this.#fd = fd;
    this.#sections = { rows: { offset: MAGIC.length, bytes: rowsEnd - MAGIC.length, sha256: rowsSha256 } };
    this.#offset = alignOffset(rowsEnd);
  }

  /** Opens an array that is written bit by bit; several may be open. @param bytes that it will have */
  open(name: ArrayName, bytes: number): SectionWriter {
    const section = new SectionWriter(this.#fd, name, this.#offset);
    this.#offset = alignOffset(this.#offset + bytes);
    return section;
  }

  /** Closes an array, which is then whole. */
  close(section: SectionWriter): void {
    this.#sections[section.name] = section.finish();
  }

  /** Writes a whole array. */
  write(name: ArrayName, array: ArrayBufferView): void {
    const section = this.open(name, array.byteLength);
    section.write(array);
    this.close(section);
  }

  /** Writes the header behind the arrays, all of which are closed, and flushes the file to the disk. @returns the header */
  finish(facts: Omit<IndexHeader, 'corpus' | 'arrays'>): IndexHeader {
    const { offset: _, ...corpus } = this.#sections.rows!;
    const arrays = Object.fromEntries(
      ARRAY_NAMES.map((name) => [name, this.#sections[name]!]),
    ) as IndexHeader['arrays'];
    const header: IndexHeader = { ...facts, corpus, arrays };
    const text = Buffer.from(JSON.stringify(header));
    const tail = Buffer.alloc(8);
    tail.writeUInt32LE(text.length);
    const digest = createHash('sha256').update(text).digest();
    const trailer = Buffer.concat([text, tail, digest, MAGIC]);
    writeAll(this.#fd, trailer, this.#offset);
    ftruncateSync(this.#fd, this.#offset + trailer.length);
    fsyncSync(this.#fd);
    return header;
  }
}

/** Writer of one array at its place, in blocks; it takes the array's digest. */
class SectionWriter {
  readonly name: ArrayName;
  readonly #fd: number;
  readonly #offset: number;
  readonly #hash = createHash('sha256');
  readonly #block = Buffer.alloc(BLOCK);
  #used = 0;
  #written = 0;

  constructor(fd: number, name: ArrayName, offset: number) {
    this.#fd = fd;
    this.name = name;
    this.#offset = offset;
  }

  /** Writes the next part of the array. */
  write(array: ArrayBufferView): void {
    const bytes = Buffer.from(array.buffer, array.byteOffset, array.byteLength);
    for (let at = 0; at < bytes.length; ) {
      const taken = bytes.copy(this.#block, this.#used, at);
      at += taken;
      this.#used += taken;
      if (this.#used === BLOCK) this.#flush();
    }
  }

  /** Writes what is left. @returns where the array lies, and its digest */
  finish(): Section {
    this.#flush();
    return { offset: this.#offset, bytes: this.#written, sha256: this.#hash.digest('hex') };
  }

  #flush(): void {
    const part = this.#block.subarray(0, this.#used);
    try {
      writeAll(this.#fd, part, this.#offset + this.#written);
    } catch (thrown) {
      throw new Error(`cannot write the ${this.name} of the index: ${messageOf(thrown)}`, { cause: thrown });
    }
    this.#hash.update(part);
    this.#written += this.#used;
    this.#used = 0;
  }
}

/** Writes all bytes at a position. */
export function writeAll(fd: number, bytes: Uint8Array, position: number): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at, bytes.length - at, position + at);
}
