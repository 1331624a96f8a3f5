/**
 * Safetensors format, for float32 and int32: eight bytes of header length (uint64, little endian), a JSON header padded
 * with spaces to a multiple of eight, then the tensors back to back in the order of their offsets.
 *
 * Written deterministically (names ascending), read strictly: what does not add up to the last byte is refused.
 * Values are stored little endian, as on every platform that Node's releases run on.
 *
 * @see https://github.com/huggingface/safetensors#format
 */

import { describeValue } from '../core/describe-value.ts';
import { LongplayError, ShapeError } from '../core/errors.ts';
import { findDuplicateKey, parseJson } from '../core/json-text.ts';

/** Stored tensor, row-major. */
export interface StoredTensor {
  /** Shape, sizes ≥ 0; empty for a scalar. */
  readonly shape: readonly number[];
  /** Data, [product of `shape`]. */
  readonly data: Float32Array | Int32Array;
}

export type StoredTensors = Readonly<Record<string, StoredTensor>>;

/** Entry of a file's header, one tensor; offsets count from the end of the header. */
export interface HeaderEntry<D extends string = 'F32' | 'I32'> {
  readonly dtype: D;
  readonly shape: readonly number[];
  readonly data_offsets: readonly [start: number, end: number];
}

const RESERVED = '__metadata__';
const LONGEST_HEADER = 100_000_000;

/**
 * Encodes tensors.
 * @param metadata written as the header's `__metadata__`; some readers refuse a file without `format`
 * @throws {ShapeError} if a tensor's data does not fill its shape
 * @throws {LongplayError} BAD_ARGUMENT for the reserved name `__metadata__`
 */
export function encodeSafetensors(tensors: StoredTensors, metadata?: Readonly<Record<string, string>>): Uint8Array {
  const names = Object.keys(tensors).sort();
  const header: [string, HeaderEntry][] = [];
  let end = 0;
  for (const name of names) {
    const { shape, data } = tensors[name]!;
    if (name === RESERVED)
      throw new LongplayError('BAD_ARGUMENT', `safetensors: a tensor cannot be called ${RESERVED}`);
    if (!shape.every((size) => Number.isSafeInteger(size) && size >= 0) || product(shape) !== data.length) {
      throw new ShapeError(`safetensors: ${name} has ${data.length} values for shape [${shape.join(', ')}]`);
    }
    const dtype = data instanceof Float32Array ? 'F32' : 'I32';
    header.push([name, { dtype, shape: [...shape], data_offsets: [end, end + data.byteLength] }]);
    end += data.byteLength;
  }
  const head = headerBytes(header, metadata);
  const bytes = new Uint8Array(head.length + end);
  bytes.set(head);
  let at = head.length;
  for (const name of names) {
    const { data } = tensors[name]!;
    bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), at);
    at += data.byteLength;
  }
  return bytes;
}

/** Bytes of each number by its type in a file. */
const NUMBER_BYTES = { F32: 4, I32: 4, F16: 2, BF16: 2 } as const;

/**
 * Encodes what stands before the data of a file: tensors that are written one after another, in this order.
 * @param metadata as in {@link encodeSafetensors}
 */
export function encodeHeader(
  tensors: readonly {
    readonly name: string;
    readonly dtype: keyof typeof NUMBER_BYTES;
    readonly shape: readonly number[];
  }[],
  metadata?: Readonly<Record<string, string>>,
): Uint8Array {
  let end = 0;
  const header = tensors.map(({ name, dtype, shape }): [string, HeaderEntry<string>] => {
    const start = end;
    end += product(shape) * NUMBER_BYTES[dtype];
    return [name, { dtype, shape: [...shape], data_offsets: [start, end] }];
  });
  return headerBytes(header, metadata);
}

/** Header of a file, with its length before it and blanks behind it. */
function headerBytes(
  header: readonly (readonly [string, HeaderEntry<string>])[],
  metadata: Readonly<Record<string, string>> | undefined,
): Uint8Array {
  const json = new TextEncoder().encode(
    JSON.stringify({ ...(metadata ? { [RESERVED]: metadata } : {}), ...Object.fromEntries(header) }),
  );
  const length = Math.ceil(json.length / 8) * 8;
  const bytes = new Uint8Array(8 + length).fill(0x20);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(length), true);
  bytes.set(json, 8);
  return bytes;
}

/**
 * Decodes a file.
 * @param source named in errors, e.g. the file's path
 * @returns tensors in arrays of their own, independent of `bytes`
 * @throws {LongplayError} BAD_CHECKPOINT naming what is wrong: cut short, too long, holes, overlaps, unknown dtype
 */
export function decodeSafetensors(bytes: Uint8Array, source = 'safetensors'): StoredTensors {
  const bad = (what: string): never => {
    throw new LongplayError('BAD_CHECKPOINT', `${source}: ${what}`);
  };
  if (bytes.length < 8) bad(`cut short: ${bytes.length} bytes, the header length alone takes 8`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const headerBytes = Number(view.getBigUint64(0, true));
  if (headerBytes > LONGEST_HEADER) bad(`no safetensors file: its header would take ${headerBytes} bytes`);
  const start = 8 + headerBytes;
  if (start > bytes.length) bad(`cut short: the header ends at byte ${start}, the file at ${bytes.length}`);
  const entries = parseHeader(bytes.subarray(8, start), ['F32', 'I32'], bad);

  const tensors: [string, StoredTensor][] = [];
  let end = 0;
  for (const [name, entry] of entries.sort(
    ([, a], [, b]) => a.data_offsets[0] - b.data_offsets[0] || a.data_offsets[1] - b.data_offsets[1],
  )) {
    const { dtype, shape, data_offsets } = entry;
    const [from, to] = data_offsets;
    if (from !== end) bad(`${name} starts at byte ${from} of the data, expected ${end}: a hole or an overlap`);
    if (to - from !== product(shape) * 4) {
      bad(`${name} takes ${to - from} bytes, its shape [${shape.join(', ')}] needs ${product(shape) * 4}`);
    }
    if (start + to > bytes.length) bad(`cut short: ${name} ends at byte ${start + to}, the file at ${bytes.length}`);
    // Copied: `bytes` need not be aligned. Not by slice(), which a Buffer answers with a view of the same memory.
    const { buffer } = Uint8Array.from(bytes.subarray(start + from, start + to));
    tensors.push([name, { shape, data: dtype === 'F32' ? new Float32Array(buffer) : new Int32Array(buffer) }]);
    end = to;
  }
  if (start + end !== bytes.length) bad(`${bytes.length - start - end} bytes too many at the end`);
  return Object.fromEntries(tensors);
}

/**
 * Parses the entries of a header's JSON.
 * @param dtypes what may be stored
 * @param bad    called with what is wrong; must throw
 */
export function parseHeader<D extends string>(
  bytes: Uint8Array,
  dtypes: readonly D[],
  bad: (what: string) => never,
): [string, HeaderEntry<D>][] {
  let parsed: unknown;
  let twice: string | undefined;
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    parsed = parseJson(text);
    twice = findDuplicateKey(text);
  } catch {
    return bad('the header is not JSON');
  }
  if (twice !== undefined) return bad(`the header has the name ${describeValue(twice)} twice`);
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return bad('the header is not an object');
  const entries: [string, HeaderEntry<D>][] = [];
  for (const [name, value] of Object.entries(parsed)) {
    if (name === RESERVED) continue; // free text of the file's writer
    const entry = value as Partial<HeaderEntry<D>> | null;
    if (!dtypes.includes(entry?.dtype as D)) {
      const expected = dtypes.map((dtype) => `"${dtype}"`).join(' or ');
      return bad(`${name} has dtype ${describeValue(entry?.dtype)}, expected ${expected}`);
    }
    const offsets = entry!.data_offsets;
    if (!isSizes(entry!.shape) || !isSizes(offsets) || offsets.length !== 2 || offsets[1]! < offsets[0]!) {
      return bad(`${name} has no valid shape and data_offsets`);
    }
    entries.push([name, entry as HeaderEntry<D>]);
  }
  return entries;
}

function isSizes(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.every((size) => Number.isSafeInteger(size) && size >= 0);
}

function product(sizes: readonly number[]): number {
  return sizes.reduce((total, size) => total * size, 1);
}
