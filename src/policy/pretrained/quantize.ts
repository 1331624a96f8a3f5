/**
 * Quantised bases: every matrix in blocks of 32 along its input, symmetric, rounded to the nearest code (ties to even):
 *
 *   scale = max|w| / 127 (8 bits) or / 7 (4 bits),  code = round(w / scale) + 128 or + 8
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
  const bits = quantize === 'int8' ? 8 : 4;
  const matrices = [...model.shards.weights].filter(
    ([name, { shape }]) => name in config.base.weights && shape.length === 2 && shape[1]! % BLOCK === 0,
  );
  const hashOf = (base: string) => createHash('sha256').update(`${base}:${quantize}:1`).digest('hex');
  // The file is of these very files: weights that were repaired in place are quantised again. A checkpoint's base is known by
  // its content alone, wherever it lies.
  const stamp = hashOf(model.shards.stamp);
  const layout = layoutOf(matrices, bits, stamp);
  const file = resolve(join(cache, `${stamp.slice(0, 16)}.${quantize}.safetensors`));
  if (!isWhole(file, layout)) {
    makeFolder(cache);
    write(file, layout, matrices, bits);
  }
  const weights: Record<string, FixedSource> = { ...config.base.weights };
  for (const [name] of matrices) weights[name] = sourceOf(file, layout, name, bits);
  return { ...config, base: { hash: hashOf(model.shards.hash), weights } satisfies BaseWeights };
}

/**
 * Quantises one matrix: codes and scales. @param values [rows·columns] @returns one byte a weight for 8 bits, half for
 * 4
 */
export function quantizeMatrix(
  values: Float32Array,
  bits: 4 | 8,
): { readonly codes: Uint8Array; readonly scales: Float32Array } {
  const most = bits === 8 ? 127 : 7;
  const codes = new Uint8Array((values.length * bits) / 8);
  const scales = new Float32Array(values.length / BLOCK);
  for (let block = 0; block < scales.length; block++) {
    const start = block * BLOCK;
    let peak = 0;
    for (let i = start; i < start + BLOCK; i++) peak = Math.max(peak, Math.abs(values[i]!));
    scales[block] = peak / most;
    const scale = scales[block]!;
    for (let i = start; i < start + BLOCK; i++) {
      const code = (scale === 0 ? 0 : toEven(values[i]! / scale)) + most + 1;
      if (bits === 8) codes[i] = code;
      else codes[i >> 1]! |= code << (4 * (i & 1));
    }
  }
  return { codes, scales };
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

/** Zero codes that any matrix's blocks can share. */
const ZEROS = 'zeros';

function layoutOf(matrices: readonly (readonly [string, StoredWeight])[], bits: 4 | 8, hash: string): Layout {
  const tensors: [name: string, dtype: 'U8' | 'F32', shape: number[]][] = [];
  let blocks = 0;
  for (const [name, { shape }] of matrices) {
    const [rows, columns] = shape as [number, number];
    tensors.push(
      [`${name}.codes`, 'U8', [rows, (columns * bits) / 8]],
      [`${name}.scales`, 'F32', [rows, columns / BLOCK]],
    );
    blocks = Math.max(blocks, (rows * columns) / BLOCK);
  }
  tensors.push([ZEROS, 'U8', [Math.ceil((blocks * bits) / 8)]]);
  const json: Record<string, unknown> = { __metadata__: { format: 'longplay-quantised', version: '1', base: hash } };
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
function write(
  file: string,
  { header, at }: Layout,
  matrices: readonly (readonly [string, StoredWeight])[],
  bits: 4 | 8,
): void {
  const unfinished = `${file}.${process.pid}.tmp`;
  const fd = openSync(unfinished, 'w');
  try {
    let end = 0;
    const append = (data: Uint8Array) => {
      for (let done = 0; done < data.length; ) done += writeSync(fd, data, done, data.length - done, end + done);
      end += data.length;
    };
    append(header);
    for (const [, stored] of matrices) {
      const { codes, scales } = quantizeMatrix(readWeight(stored), bits);
      append(codes);
      append(new Uint8Array(scales.buffer));
    }
    append(new Uint8Array(at.get(ZEROS)!.bytes).fill(bits === 8 ? 128 : 0x88));
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
  return { kind: 'blocks', bits, codes: part(`${name}.codes`), scales: part(`${name}.scales`), zeros: part(ZEROS) };
}
