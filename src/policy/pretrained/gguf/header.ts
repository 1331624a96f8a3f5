/** Headers of GGUF files, written: entries of the metadata with their types, and the table of tensors. Version 3. */
import { BLOCK_TYPES, type BlockTypeName } from './blocks.ts';
import type { GgufTensor, GgufValue } from './file.ts';

/** Value of the metadata with its type of the format. */
export type GgufEntry =
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'u32'; readonly value: number }
  | { readonly type: 'f32'; readonly value: number }
  | { readonly type: 'bool'; readonly value: boolean }
  | { readonly type: 'strings'; readonly value: readonly string[] }
  | { readonly type: 'i32s'; readonly value: readonly number[] }
  | { readonly type: 'f32s'; readonly value: readonly number[] };

/** Metadata in the order in which it is written. */
export type GgufEntries = ReadonlyMap<string, GgufEntry>;

/** Version of the format. */
const VERSION = 3;

/** Numbers of the types in the file. */
const TYPES = { u32: 4, i32: 5, f32: 6, bool: 7, string: 8, array: 9 } as const;

/** Encodes an entry: name, type, value. */
export function encodeEntry(name: string, entry: GgufEntry): Uint8Array {
  return Buffer.concat([text(name), ...encodeValue(entry)]);
}

function encodeValue(entry: GgufEntry): readonly Uint8Array[] {
  switch (entry.type) {
    case 'string':
      return [u32(TYPES.string), text(entry.value)];
    case 'u32':
      return [u32(TYPES.u32), u32(entry.value)];
    case 'f32':
      return [u32(TYPES.f32), bytesOf(Float32Array.of(entry.value))];
    case 'bool':
      return [u32(TYPES.bool), Uint8Array.of(entry.value ? 1 : 0)];
    case 'strings':
      return [...array(TYPES.string, entry.value.length), ...entry.value.map(text)];
    case 'i32s':
      return [...array(TYPES.i32, entry.value.length), bytesOf(Int32Array.from(entry.value))];
    case 'f32s':
      return [...array(TYPES.f32, entry.value.length), bytesOf(Float32Array.from(entry.value))];
  }
}

/** Values of entries as a reader of the file finds them. */
export function valuesOf(entries: GgufEntries): ReadonlyMap<string, GgufValue> {
  return new Map([...entries].map(([name, { type, value }]) => [name, type === 'f32' ? Math.fround(value) : value]));
}

/** Tensor to be written. */
export interface PlannedTensor {
  readonly name: string;
  readonly type: BlockTypeName;
  /** Row-major, as Hugging Face has it. */
  readonly shape: readonly number[];
}

/**
 * Encodes a header, filled up to where the first tensor begins.
 * @param entries   encoded, one by one
 * @param alignment multiple on which each tensor begins, bytes
 * @returns the header, and the tensors with their places in the file, in the order given
 */
export function encodeHeader(
  entries: readonly Uint8Array[],
  tensors: readonly PlannedTensor[],
  alignment: number,
): { readonly header: Uint8Array; readonly placed: readonly GgufTensor[]; readonly size: number } {
  const table: Uint8Array[] = [];
  const placed: GgufTensor[] = [];
  let end = 0;
  for (const { name, type, shape } of tensors) {
    const { id, block, bytes: each } = BLOCK_TYPES[type];
    const bytes = (shape.reduce((product, size) => product * size, 1) / block) * each;
    const sizes = [...shape].reverse().map(u64);
    table.push(Buffer.concat([text(name), u32(shape.length), ...sizes, u32(id), u64(end)]));
    placed.push({ name, type, shape, offset: end, bytes });
    end += align(bytes, alignment);
  }
  const counts = [u64(tensors.length), u64(entries.length)];
  const whole = Buffer.concat([Buffer.from('GGUF'), u32(VERSION), ...counts, ...entries, ...table]);
  const start = align(whole.length, alignment);
  const header = Buffer.concat([whole, new Uint8Array(start - whole.length)]);
  return {
    header,
    placed: placed.map((tensor) => ({ ...tensor, offset: start + tensor.offset })),
    size: start + end,
  };
}

/** Next multiple of the alignment. */
export function align(bytes: number, alignment: number): number {
  return Math.ceil(bytes / alignment) * alignment;
}

function array(type: number, length: number): readonly Uint8Array[] {
  return [u32(TYPES.array), u32(type), u64(length)];
}

function text(value: string): Uint8Array {
  const bytes = Buffer.from(value);
  return Buffer.concat([u64(bytes.length), bytes]);
}

function u32(value: number): Uint8Array {
  return bytesOf(Uint32Array.of(value));
}

function u64(value: number): Uint8Array {
  return bytesOf(BigUint64Array.of(BigInt(value)));
}

function bytesOf({ buffer }: { readonly buffer: ArrayBufferLike }): Uint8Array {
  return new Uint8Array(buffer);
}
