/**
 * Quantised bases: every matrix in blocks of 32 along its input, rounded to the nearest code (ties to even).
 *
 *   8 bits:  scale = max|w| / 127,  code = round(w / scale) + 128                         as GGUF's Q8_0
 *   4 bits:  scale = (max w − min w) / 15,  code = round((w − min w) / scale)             as GGUF's Q4_1
 *            or scale = (the w farthest from 0) / −8,  code = round(w / scale) + 8        as GGUF's Q4_0
 *
 * of which 4 bits take, block by block, what is nearer to the weights; a model that came out of Q4_0, Q4_1 or Q8_0 keeps its
 * weights. Token tables keep 8 bits beside matrices of 4, as llama.cpp's files do: every token's first and last layer is there.
 *
 * Made once and kept in a file beside the run; a kept file that is not this base's, whole, is made again. Vectors, and
 * matrices whose rows do not divide into blocks, stay as they lie in the model's own files.
 */
import { createHash } from 'node:crypto';
import { closeSync, existsSync, fsyncSync, openSync, readSync, renameSync, rmSync, statSync, writeSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { BaseWeights, ModelConfig } from '../../compute/model/config.ts';
import { BLOCK, type BlockSource, type FileBytes, type FixedSource } from '../../compute/tensor/fixed.ts';
import { openFile } from '../../core/bounded-file.ts';
import { makeFolder } from '../../storage/atomic-file.ts';
import { freeze } from './base.ts';
import type { PretrainedModel } from './folder.ts';
import { readWeight, type StoredWeight } from './shards.ts';

export type Quantize = 'none' | 'int8' | 'int4';

/**
 * Freezes a model, with every weight quantised as asked.
 * @param cache folder for the quantised file; made where it is missing
 */
export function freezeAs(model: PretrainedModel, quantize: Quantize, cache: string): ModelConfig {
  const config = freeze(model);
  if (quantize === 'none') return config;
  const matrices = [...model.shards.weights]
    .filter(([name, { shape }]) => name in config.base.weights && isQuantized(shape))
    .map(([name, stored]): Matrix => ({ name, stored, bits: bitsOf(name, quantize) }));
  const hashOf = (base: string) => createHash('sha256').update(`${base}:${quantize}:2`).digest('hex');
  // The file is of these very files: weights that were repaired in place are quantised again. A checkpoint's base is known by
  // its content alone, wherever it lies.
  const stamp = hashOf(model.shards.stamp);
  const layout = layoutOf(
    matrices.map(({ name, stored, bits }) => ({ name, shape: stored.shape, bits })),
    stamp,
  );
  const file = resolve(join(cache, `${stamp.slice(0, 16)}.${quantize}.safetensors`));
  if (!isWhole(file, layout)) {
    makeFolder(cache);
    write(file, layout, matrices);
  }
  const weights: Record<string, FixedSource> = { ...config.base.weights };
  for (const { name, bits } of matrices) weights[name] = sourceOf(file, layout, name, bits);
  return { ...config, base: { hash: hashOf(model.shards.hash), weights } satisfies BaseWeights };
}

/** Matrices that keep 8 bits. */
const TABLES: ReadonlySet<string> = new Set(['model.embed_tokens.weight', 'lm_head.weight']);

interface Matrix {
  readonly name: string;
  readonly stored: StoredWeight;
  readonly bits: 4 | 8;
}

/** True for a weight that is quantised: a matrix whose rows divide into blocks. */
function isQuantized(shape: readonly number[]): boolean {
  return shape.length === 2 && shape[1]! % BLOCK === 0;
}

function bitsOf(name: string, quantize: 'int8' | 'int4'): 4 | 8 {
  return quantize === 'int4' && !TABLES.has(name) ? 4 : 8;
}

/**
 * Bytes of a base in memory: quantised matrices as in their file, everything else in float32.
 * @param weights names and shapes of all its weights
 */
export function countBaseBytes(
  weights: readonly { readonly name: string; readonly shape: readonly number[] }[],
  quantize: Quantize,
): number {
  const inBlocks = quantize === 'none' ? [] : weights.filter(({ shape }) => isQuantized(shape));
  const rest = weights.filter((one) => !inBlocks.includes(one));
  const dense = rest.reduce((sum, { shape }) => sum + 4 * shape.reduce((a, b) => a * b, 1), 0);
  if (quantize === 'none') return dense;
  return (
    dense +
    layoutOf(
      inBlocks.map(({ name, shape }) => ({ name, shape, bits: bitsOf(name, quantize) })),
      '',
    ).size
  );
}

/** Quantised matrix. */
export interface QuantizedMatrix {
  /** One byte a weight for 8 bits, half for 4. */
  readonly codes: Uint8Array;
  readonly scales: Float32Array;
  /** Present for 4 bits. */
  readonly offsets: Float32Array | undefined;
}

/** Quantises one matrix. @param values [rows·columns], rows of whole blocks */
export function quantizeMatrix(values: Float32Array, bits: 4 | 8): QuantizedMatrix {
  const blocks = values.length / BLOCK;
  const codes = new Uint8Array((values.length * bits) / 8);
  const scales = new Float32Array(blocks);
  if (bits === 8) {
    for (let block = 0; block < blocks; block++) quantizeByte(values, block, codes, scales);
    return { codes, scales, offsets: undefined };
  }
  const offsets = new Float32Array(blocks);
  for (let block = 0; block < blocks; block++) quantizeNibble(values, block, codes, scales, offsets);
  return { codes, scales, offsets };
}

function quantizeByte(values: Float32Array, block: number, codes: Uint8Array, scales: Float32Array): void {
  const start = block * BLOCK;
  let peak = 0;
  for (let i = start; i < start + BLOCK; i++) peak = Math.max(peak, Math.abs(values[i]!));
  scales[block] = peak / 127;
  const scale = scales[block]!;
  for (let i = start; i < start + BLOCK; i++) codes[i] = (scale === 0 ? 0 : toEven(values[i]! / scale)) + 128;
}

function quantizeNibble(
  values: Float32Array,
  block: number,
  codes: Uint8Array,
  scales: Float32Array,
  offsets: Float32Array,
): void {
  const start = block * BLOCK;
  let [min, max] = [values[start]!, values[start]!];
  for (let i = start + 1; i < start + BLOCK; i++) {
    min = Math.min(min, values[i]!);
    max = Math.max(max, values[i]!);
  }
  const wide = Math.fround((max - min) / 15);
  const even = Math.fround((Math.abs(min) > max ? min : max) / -8);
  const offset = Math.fround(min + 8 * wide);
  const asymmetric = errorOf(values, start, wide, offset) <= errorOf(values, start, even, 0);
  const [scale, zero] = asymmetric ? [wide, offset] : [even, 0];
  scales[block] = scale;
  offsets[block] = zero;
  for (let i = start; i < start + BLOCK; i++) codes[i >> 1]! |= nibble(values[i]!, scale, zero) << (4 * (i & 1));
}

/** Sum of squared errors of a block under a scale and an offset. */
function errorOf(values: Float32Array, start: number, scale: number, offset: number): number {
  let sum = 0;
  for (let i = start; i < start + BLOCK; i++) {
    sum += ((nibble(values[i]!, scale, offset) - 8) * scale + offset - values[i]!) ** 2;
  }
  return sum;
}

function nibble(value: number, scale: number, offset: number): number {
  return scale === 0 ? 8 : Math.min(15, Math.max(0, toEven((value - offset) / scale) + 8));
}

function toEven(x: number): number {
  const rounded = Math.round(x);
  return Math.abs(x - Math.trunc(x)) === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
}

interface Layout {
  readonly header: Uint8Array;
  /** Bytes of the file. */
  readonly size: number;
  /** Offset in the file and length of each tensor, by name. */
  readonly at: ReadonlyMap<string, { readonly offset: number; readonly bytes: number }>;
}

/** Zero codes that the blocks of any matrix of so many bits can share. */
const zerosOf = (bits: 4 | 8) => `zeros.${bits}`;

/** Layout of the file of quantised matrices. */
function layoutOf(
  matrices: readonly { readonly name: string; readonly shape: readonly number[]; readonly bits: 4 | 8 }[],
  hash: string,
): Layout {
  const tensors: [name: string, dtype: 'U8' | 'F32', shape: number[]][] = [];
  const blocks = { 4: 0, 8: 0 };
  for (const { name, shape, bits } of matrices) {
    const [rows, columns] = shape as [number, number];
    const perRow = columns / BLOCK;
    tensors.push([`${name}.codes`, 'U8', [rows, (columns * bits) / 8]], [`${name}.scales`, 'F32', [rows, perRow]]);
    if (bits === 4) tensors.push([`${name}.offsets`, 'F32', [rows, perRow]]);
    blocks[bits] = Math.max(blocks[bits], rows * perRow);
  }
  for (const bits of [4, 8] as const)
    tensors.push([zerosOf(bits), 'U8', [Math.ceil((blocks[bits] * bits) / 8 / 4) * 4]]);
  const json: Record<string, unknown> = { __metadata__: { format: 'longplay-quantised', version: '2', base: hash } };
  const at = new Map<string, { offset: number; bytes: number }>();
  let end = 0;
  // Scales are read as floats where they lie, so everything begins on a multiple of four.
  for (const [name, dtype, shape] of tensors) {
    const bytes = shape.reduce((a, b) => a * b, 1) * (dtype === 'F32' ? 4 : 1);
    json[name] = { dtype, shape, data_offsets: [end, end + bytes] };
    at.set(name, { offset: end, bytes });
    end += bytes;
  }
  const text = new TextEncoder().encode(JSON.stringify(json));
  const header = new Uint8Array(8 + Math.ceil(text.length / 8) * 8).fill(0x20);
  header.set(text, 8);
  new DataView(header.buffer).setBigUint64(0, BigInt(header.length - 8), true);
  for (const place of at.values()) place.offset += header.length;
  return { header, size: header.length + end, at };
}

function isWhole(file: string, { header, size }: Layout): boolean {
  if (!existsSync(file) || statSync(file).size !== size) return false;
  const fd = openFile(file);
  const kept = new Uint8Array(header.length);
  readSync(fd, kept, 0, kept.length, 0);
  closeSync(fd);
  return Buffer.compare(kept, header) === 0;
}

/** Writes the file under another name first, so that a file of this name is whole. */
function write(file: string, { header, at }: Layout, matrices: readonly Matrix[]): void {
  const unfinished = `${file}.${process.pid}.tmp`;
  const fd = openSync(unfinished, 'w');
  try {
    let end = 0;
    const append = (data: Uint8Array) => {
      for (let done = 0; done < data.length; ) done += writeSync(fd, data, done, data.length - done, end + done);
      end += data.length;
    };
    append(header);
    for (const { stored, bits } of matrices) {
      const { codes, scales, offsets } = quantizeMatrix(readWeight(stored), bits);
      append(codes);
      append(new Uint8Array(scales.buffer));
      if (offsets) append(new Uint8Array(offsets.buffer));
    }
    for (const [bits, zero] of [
      [4, 0x88],
      [8, 128],
    ] as const) {
      append(new Uint8Array(at.get(zerosOf(bits))!.bytes).fill(zero));
    }
    fsyncSync(fd);
  } catch (thrown) {
    closeSync(fd);
    rmSync(unfinished, { force: true });
    throw thrown;
  }
  closeSync(fd);
  renameSync(unfinished, file);
}

function sourceOf(file: string, { at }: Layout, name: string, bits: 4 | 8): BlockSource {
  const part = (tensor: string): FileBytes => ({ file, ...at.get(tensor)! });
  return {
    ...{ kind: 'blocks', bits, codes: part(`${name}.codes`), scales: part(`${name}.scales`) },
    ...{ offsets: bits === 4 ? part(`${name}.offsets`) : undefined, zeros: part(zerosOf(bits)) },
  };
}
