/**
 * Layout of an index: nine arrays in one buffer, in memory and in the file alike, so that a file is read in one go and
 * threads share it. Numbers are little-endian, arrays begin at multiples of 8 bytes.
 */
import type { AnalyzerName } from './analyzer.ts';
import type { Bm25Options } from './bm25.ts';

export const INDEX_VERSION = 1;
/** Magic: the first and last bytes of a file. */
export const MAGIC = new TextEncoder().encode('LPBM25\r\n');

/** Arrays of an index by name; N passages, T terms, P pairs of term and passage. */
export interface IndexArrays {
  /** Rows: the passages' corpus lines, one behind the other, UTF-8. */
  readonly rows: Uint8Array;
  /** [N + 1] where each line begins in `rows`. */
  readonly rowStart: Float64Array;
  /** [P] passages of each term, ascending within the term. */
  readonly passages: Uint32Array;
  /** [P] share of the term in that passage. */
  readonly impacts: Float32Array;
  /** [T + 1] where each term's pairs begin. */
  readonly pairStart: Uint32Array;
  /** [T] largest impact of each term. */
  readonly upper: Float32Array;
  /** [T + 1] where each term begins in `terms`. */
  readonly termStart: Uint32Array;
  /** Terms, ascending, one behind the other, UTF-8. */
  readonly terms: Uint8Array;
  /** Table with open addressing, its size a power of two: term + 1 under its hash, 0 where free. */
  readonly table: Uint32Array;
}
export type ArrayName = keyof IndexArrays;

const ARRAY_TYPES = {
  rows: Uint8Array,
  rowStart: Float64Array,
  passages: Uint32Array,
  impacts: Float32Array,
  pairStart: Uint32Array,
  upper: Float32Array,
  termStart: Uint32Array,
  terms: Uint8Array,
  table: Uint32Array,
} as const;
export const ARRAY_NAMES = Object.keys(ARRAY_TYPES) as readonly ArrayName[];

/** Description of an index; stands as JSON at the end of its file. */
export interface IndexHeader extends Bm25Options {
  readonly version: number;
  readonly analyzer: AnalyzerName;
  /** Passages, empty ones included. */
  readonly passages: number;
  readonly terms: number;
  readonly pairs: number;
  readonly tokens: number;
  /** Corpus that it was built from, unpacked. */
  readonly corpus: { readonly bytes: number; readonly sha256: string };
  readonly arrays: Readonly<Record<ArrayName, Section>>;
}

/** Place of one array. */
export interface Section {
  readonly offset: number;
  readonly bytes: number;
  readonly sha256: string;
}

/** Aligns to the next multiple of 8. */
export function alignOffset(offset: number): number {
  return Math.ceil(offset / 8) * 8;
}

/** Arrays inside a buffer that holds the whole file. */
export function arraysIn(buffer: ArrayBufferLike, header: IndexHeader): IndexArrays {
  const arrays: Partial<Record<ArrayName, unknown>> = {};
  for (const name of ARRAY_NAMES) {
    const { offset, bytes } = header.arrays[name];
    const Type = ARRAY_TYPES[name];
    arrays[name] = new Type(buffer as ArrayBuffer, offset, bytes / Type.BYTES_PER_ELEMENT);
  }
  return arrays as unknown as IndexArrays;
}

/** Hash (FNV-1a) of the first `length` bytes. */
export function hashBytes(bytes: Uint8Array, length: number): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < length; i++) hash = Math.imul(hash ^ bytes[i]!, 0x01000193);
  return hash >>> 0;
}

/** Table over sorted terms, at most half full. */
export function tableOf(terms: Uint8Array, termStart: Uint32Array): Uint32Array {
  const count = termStart.length - 1;
  const table = new Uint32Array(2 ** Math.ceil(Math.log2(Math.max(2, 2 * count))));
  const mask = table.length - 1;
  for (let term = 0; term < count; term++) {
    const bytes = terms.subarray(termStart[term]!, termStart[term + 1]!);
    let slot = hashBytes(bytes, bytes.length) & mask;
    while (table[slot] !== 0) slot = (slot + 1) & mask;
    table[slot] = term + 1;
  }
  return table;
}
