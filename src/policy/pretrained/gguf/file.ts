/**
 * GGUF files, the format of llama.cpp: metadata and the place of each tensor, versions 2 and 3, little endian. Read by
 * offsets: a file may be larger than memory. Whatever the file holds, reading ends quickly: every count is held against
 * the bytes that are left, and the header has a bound of its own.
 *
 * @see https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
 */
import { closeSync, fstatSync, readSync } from 'node:fs';
import { openFile } from '../../../core/bounded-file.ts';
import { describeValue } from '../../../core/describe-value.ts';
import { messageOf, UserError } from '../../../core/errors.ts';
import { BLOCK_TYPES, type BlockTypeName } from './blocks.ts';

/** Value of the metadata. Whole numbers of 64 bits beyond 2^53 are refused. */
export type GgufValue = number | boolean | string | readonly GgufValue[];

/** Tensor in its file. */
export interface GgufTensor {
  readonly name: string;
  /** Shape as Hugging Face has it, row-major: the reverse of the file's. */
  readonly shape: readonly number[];
  readonly type: BlockTypeName;
  /** Byte of the file at which its blocks begin. */
  readonly offset: number;
  readonly bytes: number;
}

export interface GgufFile {
  /** Absolute path. */
  readonly file: string;
  /** Bytes of the file. */
  readonly size: number;
  /** Time at which it was last written, ms. */
  readonly writtenMs: number;
  readonly metadata: ReadonlyMap<string, GgufValue>;
  /** Bytes of the file that hold each entry of the metadata: its name, its type and its value. */
  readonly entries: ReadonlyMap<string, { readonly offset: number; readonly bytes: number }>;
  readonly tensors: ReadonlyMap<string, GgufTensor>;
  /** Multiple on which tensors begin, bytes. */
  readonly alignment: number;
  /** Bytes of the header: metadata and the table of tensors. */
  readonly headerBytes: number;
}

/** Multiple on which tensors begin where the metadata names none, bytes. */
export const DEFAULT_ALIGNMENT = 32;
/** Bytes of a header: a vocabulary of 300,000 with its merges takes some 20 MB. */
const MAX_HEADER_BYTES = 2 ** 27;
/** Entries of the metadata, and tensors; real files have some 40, and thousands. */
const MAX_ENTRIES = 65_536;
const MAX_STRING_BYTES = 2 ** 24;
const MAX_ARRAY = 2 ** 22;
/** Arrays within arrays. */
const MAX_LEVELS = 4;
const MAX_DIMENSIONS = 4;

/**
 * Reads the header of a GGUF file.
 * @param path absolute
 * @throws {UserError} BAD_CHECKPOINT naming the file and what is wrong with it
 */
export function readGguf(path: string): GgufFile {
  const fd = openGguf(path);
  try {
    const { size, mtimeMs } = fstatSync(fd);
    return new HeaderReader(fd, path, size).read(mtimeMs);
  } finally {
    closeSync(fd);
  }
}

function openGguf(path: string): number {
  try {
    return openFile(path);
  } catch (thrown) {
    throw new UserError('BAD_CHECKPOINT', messageOf(thrown), { cause: thrown });
  }
}

/** Types of metadata by their number in the file; `undefined`: a string, an array. */
const NUMBERS: Readonly<
  Record<number, readonly [bytes: number, read: (view: DataView, at: number) => number | bigint]>
> = {
  0: [1, (view, at) => view.getUint8(at)],
  1: [1, (view, at) => view.getInt8(at)],
  2: [2, (view, at) => view.getUint16(at, true)],
  3: [2, (view, at) => view.getInt16(at, true)],
  4: [4, (view, at) => view.getUint32(at, true)],
  5: [4, (view, at) => view.getInt32(at, true)],
  6: [4, (view, at) => view.getFloat32(at, true)],
  10: [8, (view, at) => view.getBigUint64(at, true)],
  11: [8, (view, at) => view.getBigInt64(at, true)],
  12: [8, (view, at) => view.getFloat64(at, true)],
};
const BOOLEAN = 7;
const STRING = 8;
const ARRAY = 9;

/** Reader of one header, chunk by chunk. */
class HeaderReader {
  readonly #fd: number;
  readonly #path: string;
  readonly #size: number;
  readonly #utf8 = new TextDecoder('utf-8');
  #chunk = Buffer.alloc(0);
  #view = new DataView(new ArrayBuffer(0));
  /** Byte of the file at which the chunk begins, and the next byte of the chunk. */
  #start = 0;
  #next = 0;

  constructor(fd: number, path: string, size: number) {
    this.#fd = fd;
    this.#path = path;
    this.#size = size;
  }

  read(writtenMs: number): GgufFile {
    if (this.#size < 24) this.#fail(`cut short: ${this.#size} bytes, a GGUF file has at least 24`);
    this.#need(24);
    const magic = this.#chunk.toString('latin1', 0, 4);
    if (magic !== 'GGUF') this.#fail(`no GGUF file: it begins with ${describeValue(magic)}`);
    this.#next = 4;
    const version = this.#uint32('version');
    if (version === 2 ** 24 * 2 || version === 2 ** 24 * 3)
      this.#fail('a GGUF file for big-endian machines; expected a little-endian one');
    if (version !== 2 && version !== 3) this.#fail(`GGUF version ${version}, expected 2 or 3`);
    const tensorCount = this.#count('tensors', MAX_ENTRIES, 24);
    const entryCount = this.#count('entries of metadata', MAX_ENTRIES, 13);
    const metadata = new Map<string, GgufValue>();
    const entries = new Map<string, { readonly offset: number; readonly bytes: number }>();
    for (let i = 0; i < entryCount; i++) {
      const offset = this.#start + this.#next;
      const key = this.#string('the name of an entry');
      if (metadata.has(key)) this.#fail(`its metadata has ${describeValue(key)} twice`);
      metadata.set(key, this.#value(key, this.#uint32(key), 0));
      entries.set(key, { offset, bytes: this.#start + this.#next - offset });
    }
    const table: GgufTensor[] = [];
    for (let i = 0; i < tensorCount; i++) table.push(this.#tensor());
    return { ...this.#place(writtenMs, metadata, table), entries };
  }

  /** Places the tensors behind the header, on its alignment. */
  #place(
    writtenMs: number,
    metadata: ReadonlyMap<string, GgufValue>,
    table: readonly GgufTensor[],
  ): Omit<GgufFile, 'entries'> {
    const alignment = metadata.get('general.alignment') ?? DEFAULT_ALIGNMENT;
    if (
      typeof alignment !== 'number' ||
      !(alignment >= 1 && alignment <= 2 ** 20) ||
      !Number.isInteger(Math.log2(alignment))
    ) {
      return this.#fail(`general.alignment is ${describeValue(alignment)}, expected a power of two`);
    }
    const headerBytes = this.#start + this.#next;
    const data = Math.ceil(headerBytes / alignment) * alignment;
    const tensors = new Map<string, GgufTensor>();
    let end = 0;
    for (const tensor of [...table].sort((a, b) => a.offset - b.offset)) {
      const { name, offset, bytes } = tensor;
      if (tensors.has(name)) this.#fail(`it has tensor ${describeValue(name)} twice`);
      if (offset < end) this.#fail(`tensor ${describeValue(name)} lies over the one before it`);
      end = offset + bytes;
      if (data + end > this.#size) {
        this.#fail(`cut short: tensor ${describeValue(name)} ends at byte ${data + end}, the file at ${this.#size}`);
      }
      tensors.set(name, { ...tensor, offset: data + offset });
    }
    return { file: this.#path, size: this.#size, writtenMs, metadata, tensors, alignment, headerBytes };
  }

  #tensor(): GgufTensor {
    const name = this.#string('the name of a tensor');
    const dimensions = this.#uint32(name);
    if (dimensions > MAX_DIMENSIONS)
      this.#fail(`tensor ${describeValue(name)} has ${dimensions} dimensions, expected at most 4`);
    const shape: number[] = [];
    for (let i = 0; i < dimensions; i++) shape.unshift(this.#uint64(`a size of tensor ${name}`));
    const id = this.#uint32(name);
    const found = Object.entries(BLOCK_TYPES).find(([, type]) => type.id === id);
    if (!found) {
      const known = Object.keys(BLOCK_TYPES).join(', ');
      return this.#fail(`tensor ${describeValue(name)} is of type ${typeName(id)}, expected ${known}`);
    }
    const [type, { block, bytes }] = found as [BlockTypeName, { block: number; bytes: number }];
    const elements = shape.reduce((product, size) => product * size, 1);
    if (!Number.isSafeInteger(elements))
      this.#fail(`tensor ${describeValue(name)} has the shape [${shape.join(', ')}]`);
    if ((shape.at(-1) ?? 1) % block !== 0) {
      this.#fail(
        `tensor ${describeValue(name)} [${shape.join(', ')}] of type ${type}: rows are no multiple of ${block}`,
      );
    }
    const offset = this.#uint64(`the place of tensor ${name}`);
    return { name, shape, type, offset, bytes: (elements / block) * bytes };
  }

  #value(key: string, type: number, level: number): GgufValue {
    const number = NUMBERS[type];
    if (number) {
      const [bytes, read] = number;
      const at = this.#take(bytes);
      const value = Number(read(this.#view, at));
      if (bytes === 8 && type !== 12 && !Number.isSafeInteger(value))
        this.#fail(`${describeValue(key)} is beyond 2^53`);
      return value;
    }
    if (type === BOOLEAN) return this.#view.getUint8(this.#take(1)) !== 0;
    if (type === STRING) return this.#string(key);
    if (type !== ARRAY) this.#fail(`${describeValue(key)} has the type ${type}, expected 0 to 12`);
    if (level === MAX_LEVELS) this.#fail(`${describeValue(key)} holds arrays within arrays, ${MAX_LEVELS} deep`);
    const inner = this.#uint32(key);
    const count = this.#count(`values of ${key}`, MAX_ARRAY, NUMBERS[inner]?.[0] ?? (inner === BOOLEAN ? 1 : 8));
    return Array.from({ length: count }, () => this.#value(key, inner, level + 1));
  }

  #string(what: string): string {
    const length = this.#count(`bytes in ${what}`, MAX_STRING_BYTES, 1);
    const at = this.#take(length);
    return this.#utf8.decode(this.#chunk.subarray(at, at + length));
  }

  /** Reads a count of things. @param each bytes that each of them takes at least */
  #count(what: string, max: number, each: number): number {
    const at = this.#take(8);
    const count = this.#view.getBigUint64(at, true);
    const left = this.#size - this.#start - this.#next;
    if (count > BigInt(max)) this.#fail(`it claims ${count} ${cut(what)}, expected at most ${max}`);
    if (count > BigInt(Math.floor(left / each)))
      this.#fail(`cut short: it claims ${count} ${cut(what)}, ${left} bytes are left`);
    return Number(count);
  }

  #uint32(what: string): number {
    const at = this.#take(4, what);
    return this.#view.getUint32(at, true);
  }

  #uint64(what: string): number {
    const at = this.#take(8, what);
    const value = this.#view.getBigUint64(at, true);
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) this.#fail(`${cut(what)} is ${value}`);
    return Number(value);
  }

  /** Takes bytes of the file. @returns the place of the first one in the chunk */
  #take(bytes: number, what = 'its header'): number {
    this.#need(bytes, what);
    const at = this.#next;
    this.#next += bytes;
    return at;
  }

  /** Fills the chunk so that this many bytes are in it. */
  #need(bytes: number, what = 'its header'): void {
    if (this.#next + bytes <= this.#chunk.length) return;
    const start = this.#start + this.#next;
    if (start + bytes > this.#size) this.#fail(`cut short: the file ends in ${cut(what)}`);
    if (start + bytes > MAX_HEADER_BYTES) this.#fail(`its header is longer than ${MAX_HEADER_BYTES} bytes`);
    const chunk = Buffer.alloc(Math.min(Math.max(bytes, 2 ** 20), this.#size - start));
    for (let got = 0; got < chunk.length; ) {
      const read = readSync(this.#fd, chunk, got, chunk.length - got, start + got);
      if (read === 0) this.#fail('cut short while it was read');
      got += read;
    }
    this.#chunk = chunk;
    this.#view = new DataView(chunk.buffer, chunk.byteOffset, chunk.length);
    this.#start = start;
    this.#next = 0;
  }

  #fail(what: string): never {
    throw new UserError('BAD_CHECKPOINT', `${this.#path}: ${what}`);
  }
}

/** A name of the file's, short and on one line. */
function cut(what: string): string {
  return JSON.stringify(what.slice(0, 80)).slice(1, -1);
}

/** Types of llama.cpp that are not read here, for the message. */
const OTHER_TYPES: Readonly<Record<number, string>> = {
  9: 'Q8_1',
  15: 'Q8_K',
  16: 'IQ2_XXS',
  17: 'IQ2_XS',
  18: 'IQ3_XXS',
  19: 'IQ1_S',
  20: 'IQ4_NL',
  21: 'IQ3_S',
  22: 'IQ2_S',
  23: 'IQ4_XS',
  24: 'I8',
  25: 'I16',
  26: 'I32',
  27: 'I64',
  28: 'F64',
  29: 'IQ1_M',
  34: 'TQ1_0',
  35: 'TQ2_0',
  39: 'MXFP4',
};

function typeName(id: number): string {
  return OTHER_TYPES[id] ?? `${id}, which is not known here`;
}
