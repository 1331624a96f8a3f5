/**
 * Fixed tensors: weights that lie in a file and never change. They are neither inputs (an engine may pack or quantise
 * them once, and a device keeps them) nor constants of the graph (which end at 2 GB). No gradient flows into them.
 *
 * Quantised ones are blocks of 32 along the last axis: w ≈ scale·(code − zero) + offset, zero being 128 (8 bits) or 8 (4 bits,
 * two codes to a byte, the first in the low half). With offsets, 4 bits hold a scale and a minimum, as GGUF's Q4_1 does.
 */
import { closeSync, readSync } from 'node:fs';
import { openFile } from '../../core/bounded-file.ts';
import { LongplayError, ShapeError } from '../../core/errors.ts';
import { apply, type OpDefinition, type Tensor } from './tensor.ts';

/** Bytes of a file, a stretch of them. */
export interface FileBytes {
  /** Absolute path. */
  readonly file: string;
  readonly offset: number;
  readonly bytes: number;
}

/** Dense numbers in a file, row-major. */
export interface DenseSource extends FileBytes {
  readonly kind: 'dense';
  readonly dtype: 'f32' | 'f16' | 'bf16';
}

/** Block matrix [rows, columns], in blocks of {@link BLOCK} along its columns. */
export interface BlockSource {
  readonly kind: 'blocks';
  readonly bits: 4 | 8;
  /** uint8 [rows, columns·bits/8]. */
  readonly codes: FileBytes;
  /** f32 [rows, columns/32]. */
  readonly scales: FileBytes;
  /** f32 [rows, columns/32]; absent: all 0. */
  readonly offsets?: FileBytes | undefined;
  /** The zero code for each block, packed as the codes are; at least as many as there are blocks. */
  readonly zeros: FileBytes;
}

export type FixedSource = DenseSource | BlockSource;

/** Columns that share a scale. */
export const BLOCK = 32;

export interface FixedAttrs {
  readonly name: string;
  readonly shape: readonly number[];
  readonly source: FixedSource;
}

const fixedOp: OpDefinition<FixedAttrs> = {
  name: 'fixed',
  infer: (_, { shape }) => ({ shape, dtype: 'f32' }),
  onnx(emit, _x, _y, { shape, source }) {
    if (!emit.options.files) return emit.constant(readFixed(shape, source), shape, 'f32');
    if (source.kind === 'blocks') return emit.blocks(shape as readonly [number, number], source);
    const stored = emit.external(source.dtype, shape, source);
    return source.dtype === 'f32' ? stored : emit.node('Cast', [stored], { to: 1 });
  },
  reference: (_x, _shape, { shape, source }) => Float64Array.from(readFixed(shape, source)),
};

/**
 * Makes a fixed tensor, a weight that lies in a file. @throws {ShapeError} if the file's stretch does not fill the
 * shape
 */
export function createFixed(name: string, shape: readonly number[], source: FixedSource): Tensor {
  const size = shape.reduce((product, dim) => product * dim, 1);
  const { bytes, expected } =
    source.kind === 'dense'
      ? { bytes: source.bytes, expected: size * (source.dtype === 'f32' ? 4 : 2) }
      : { bytes: source.codes.bytes, expected: (size * source.bits) / 8 };
  if (bytes !== expected) {
    throw new ShapeError(`fixed '${name}' [${shape.join(', ')}]: expected ${expected} bytes, got ${bytes}`);
  }
  return apply(fixedOp, [], { name, shape, source });
}

/** Name, shape and source of a tensor made by `fixed`; undefined for any other. */
export function readFixedAttrs(x: Tensor): FixedAttrs | undefined {
  return x.definition === fixedOp ? (x.attrs as FixedAttrs) : undefined;
}

/** Reads the numbers of a fixed tensor; quantised ones as they are after quantising. */
export function readFixed(shape: readonly number[], source: FixedSource): Float32Array {
  if (source.kind === 'dense') return widen(readBytes(source), source.dtype);
  const out = new Float32Array(shape.reduce((product, dim) => product * dim, 1));
  dequantize(holdBlocks(source), out);
  return out;
}

/** Blocks of a matrix, read from their file. */
export interface HeldBlocks {
  readonly bits: 4 | 8;
  readonly codes: Uint8Array;
  readonly scales: Float32Array;
  readonly offsets: Float32Array | undefined;
}

/** Reads the blocks of a matrix. */
export function holdBlocks({ bits, codes, scales, offsets }: BlockSource): HeldBlocks {
  const floats = (at: FileBytes) => widen(readBytes(at), 'f32');
  return { bits, codes: readBytes(codes), scales: floats(scales), offsets: offsets && floats(offsets) };
}

/** Writes the numbers that blocks stand for. @param out [rows·columns], rows of whole blocks */
export function dequantize({ bits, codes, scales, offsets }: HeldBlocks, out: Float32Array): void {
  for (let block = 0, i = 0; block < scales.length; block++) {
    const scale = scales[block]!;
    const offset = offsets ? offsets[block]! : 0;
    const end = i + BLOCK;
    if (bits === 8) for (; i < end; i++) out[i] = (codes[i]! - 128) * scale + offset;
    else {
      for (; i < end; i += 2) {
        const both = codes[i >> 1]!;
        out[i] = ((both & 15) - 8) * scale + offset;
        out[i + 1] = ((both >> 4) - 8) * scale + offset;
      }
    }
  }
}

/**
 * Reads a stretch of a file.
 * @throws {LongplayError} BAD_CHECKPOINT where the file ends before the stretch does
 */
export function readBytes({ file, offset, bytes }: FileBytes): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(bytes);
  const fd = openFile(file);
  try {
    // A read moves 2 GiB at most.
    for (let at = 0; at < bytes; ) {
      const got = readSync(fd, out, at, Math.min(bytes - at, 2 ** 30), offset + at);
      if (got === 0) throw new LongplayError('BAD_CHECKPOINT', `${file}: cut short at byte ${offset + at}`);
      at += got;
    }
  } finally {
    closeSync(fd);
  }
  return out;
}

/** Widens stored numbers to float32, exactly. @param bytes little endian, at the start of its buffer */
export function widen(bytes: Uint8Array<ArrayBuffer>, dtype: DenseSource['dtype']): Float32Array {
  if (dtype === 'f32') return new Float32Array(bytes.buffer, 0, bytes.length / 4);
  const halves = new Uint16Array(bytes.buffer, 0, bytes.length / 2);
  const out = new Float32Array(halves.length);
  if (dtype === 'bf16') {
    const bits = new Uint32Array(out.buffer);
    for (let i = 0; i < halves.length; i++) bits[i] = halves[i]! << 16;
    return out;
  }
  for (let i = 0; i < halves.length; i++) out[i] = fromHalf(halves[i]!);
  return out;
}

/** Converts an IEEE half to a number: sign, five bits of exponent, ten of fraction. */
export function fromHalf(half: number): number {
  const sign = half & 0x8000 ? -1 : 1;
  const exponent = (half >> 10) & 31;
  const fraction = half & 1023;
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** Rounds float32 to bfloat16, to the nearest and ties to even; NaN stays NaN. */
export function toBfloat16(values: Float32Array): Uint16Array<ArrayBuffer> {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const out = new Uint16Array(values.length);
  for (let i = 0; i < out.length; i++) {
    const x = bits[i]!;
    out[i] = Number.isNaN(values[i]!) ? (x >>> 16) | 0x40 : (x + 0x7fff + ((x >>> 16) & 1)) >>> 16;
  }
  return out;
}

/** Rounds float32 to IEEE half, to the nearest and ties to even; NaN stays NaN. */
export function toFloat16(values: Float32Array): Uint16Array<ArrayBuffer> {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const out = new Uint16Array(values.length);
  for (let i = 0; i < out.length; i++) out[i] = toHalf(bits[i]!);
  return out;
}

/** Half of a float32, both by their bits. */
function toHalf(bits: number): number {
  const sign = (bits >>> 16) & 0x8000;
  const size = bits & 0x7fffffff;
  if (size > 0x7f800000) return 0x7e00;
  if (size >= 0x477ff000) return sign | 0x7c00; // 65,520 and more
  // A carry out of the fraction runs into the exponent, which is what it should do.
  if (size >= 0x38800000) return sign | ((size - 0x38000000 + 0xfff + ((size >>> 13) & 1)) >>> 13);
  const exponent = size >>> 23;
  if (exponent < 102) return sign; // below 2^-25
  // Below 2^-14 halves are whole multiples of 2^-24.
  const fraction = (size & 0x7fffff) | 0x800000;
  const shift = 126 - exponent;
  return sign | ((fraction + 2 ** (shift - 1) - 1 + ((fraction >>> shift) & 1)) >>> shift);
}
