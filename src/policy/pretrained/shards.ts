/**
 * Weights of a model folder, found but not read: `model.safetensors`, or the shards that `model.safetensors.index.json`
 * lists. Headers are read by offset, so a shard may be larger than memory.
 */
import { createHash } from 'node:crypto';
import { closeSync, existsSync, fstatSync, readSync, realpathSync } from 'node:fs';
import { basename, join } from 'node:path';
import { type DenseSource, readFixed } from '../../compute/tensor/fixed.ts';
import { openFile, readJsonFile } from '../../core/bounded-file.ts';
import { describeValue } from '../../core/describe-value.ts';
import { messageOf, UserError } from '../../core/errors.ts';
import { parseHeader } from '../../storage/safetensors.ts';

/** Weight in its file. */
export interface StoredWeight {
  readonly shape: readonly number[];
  readonly source: DenseSource;
}

export interface Shards {
  readonly weights: ReadonlyMap<string, StoredWeight>;
  /** Names in the folder by real path, in the order of the index. */
  readonly names: ReadonlyMap<string, string>;
  /**
   * Hash (SHA-256) over header and size of every shard and over a few kilobytes of every weight: names a base without reading
   * all of it. Models of one shape have equal headers, and training changes every matrix that it trains all over.
   */
  readonly hash: string;
  /** Hash over the hash and the times at which the files were last written: of this machine's files alone. */
  readonly stamp: string;
}

const DTYPE = { F32: 'f32', F16: 'f16', BF16: 'bf16' } as const;
const DTYPES = Object.keys(DTYPE) as (keyof typeof DTYPE)[];
const SINGLE = 'model.safetensors';
const INDEX = 'model.safetensors.index.json';

/**
 * Finds every weight of a folder.
 * @throws {UserError} BAD_CHECKPOINT for a missing or truncated shard, a header that does not add up, an unknown dtype
 */
export function findShards(folder: string): Shards {
  const index = join(folder, INDEX);
  if (!existsSync(index)) {
    const file = join(folder, SINGLE);
    if (!existsSync(file)) {
      throw new UserError('BAD_CHECKPOINT', `${folder}: expected ${SINGLE} or ${INDEX}, found neither`);
    }
    return gather([file]);
  }
  let map: Record<string, string>;
  try {
    map = (readJsonFile(index) as { weight_map: Record<string, string> }).weight_map;
    if (typeof map !== 'object' || map === null) throw new TypeError('it has no weight_map');
  } catch (thrown) {
    throw new UserError('BAD_CHECKPOINT', `${index}: ${messageOf(thrown)}`, { cause: thrown });
  }
  const names = [...new Set(Object.values(map))];
  const invalid = names.find((name) => typeof name !== 'string' || !/^[^/\\]+\.safetensors$/.test(name));
  if (invalid !== undefined) {
    throw new UserError('BAD_CHECKPOINT', `${index}: ${describeValue(invalid)} is no shard's name`);
  }
  const missing = names.find((name) => !existsSync(join(folder, name)));
  if (missing) throw new UserError('BAD_CHECKPOINT', `${index}: shard ${missing} is missing from ${folder}`);
  const found = gather(names.map((name) => join(folder, name)));
  for (const [weight, name] of Object.entries(map)) {
    if (found.weights.has(weight)) continue;
    throw new UserError('BAD_CHECKPOINT', `${index}: ${weight} should be in ${name} and is not`);
  }
  return found;
}

function gather(files: readonly string[]): Shards {
  const weights = new Map<string, StoredWeight>();
  const hash = createHash('sha256');
  const written: number[] = [];
  // By real path: a hub's cache holds links, which a runtime may not follow.
  const names = new Map(files.map((file) => [realpathSync(file), basename(file)]));
  for (const file of names.keys()) {
    const { header, size, writtenMs, entries, samples } = readShard(file);
    hash.update(header).update(`:${size}\n`).update(samples);
    written.push(writtenMs);
    for (const [name, stored] of entries) {
      if (weights.has(name)) throw new UserError('BAD_CHECKPOINT', `${file}: ${name} is in another shard too`);
      weights.set(name, stored);
    }
  }
  const found = hash.digest('hex');
  const stamp = createHash('sha256').update(`${found}:${written.join()}`).digest('hex');
  return { weights, names, hash: found, stamp };
}

/** Bytes of a weight that its base's hash reads at its beginning, its middle and its end each. */
const SAMPLE_BYTES = 4096;

function samplesOf(fd: number, { offset, bytes }: DenseSource): Uint8Array {
  const length = Math.min(bytes, SAMPLE_BYTES);
  const out = new Uint8Array(3 * length);
  for (const [i, at] of [0, Math.floor((bytes - length) / 2), bytes - length].entries()) {
    readSync(fd, out, i * length, length, offset + at);
  }
  return out;
}

/**
 * Reads the header of one safetensors file, the place of each tensor, and samples of their bytes.
 * @throws {UserError} BAD_CHECKPOINT
 */
export function readShard(file: string): {
  readonly header: Uint8Array;
  readonly size: number;
  readonly writtenMs: number;
  readonly entries: readonly (readonly [string, StoredWeight])[];
  readonly samples: Uint8Array;
} {
  const bad = (what: string): never => {
    throw new UserError('BAD_CHECKPOINT', `${file}: ${what}`);
  };
  const fd = openShard(file);
  try {
    const stat = fstatSync(fd);
    const { size } = stat;
    const head = new Uint8Array(8);
    if (size < 8 || readSync(fd, head, 0, 8, 0) < 8) bad(`cut short: ${size} bytes, the header length alone takes 8`);
    const length = Number(new DataView(head.buffer).getBigUint64(0, true));
    const start = 8 + length;
    if (length > 100_000_000) bad(`no safetensors file: its header would take ${length} bytes`);
    if (start > size) bad(`cut short: the header ends at byte ${start}, the file at ${size}`);
    const header = new Uint8Array(length);
    readSync(fd, header, 0, length, 8);
    let end = 0;
    const entries = parseHeader(header, DTYPES, bad)
      .sort(([, a], [, b]) => a.data_offsets[0] - b.data_offsets[0] || a.data_offsets[1] - b.data_offsets[1])
      .map(
        ([
          name,
          {
            dtype,
            shape,
            data_offsets: [from, to],
          },
        ]) => {
          const expected = shape.reduce((a, b) => a * b, 1) * (dtype === 'F32' ? 4 : 2);
          if (from !== end) bad(`${name} starts at byte ${from} of the data, expected ${end}: a hole or an overlap`);
          if (to - from !== expected) {
            bad(`${name} takes ${to - from} bytes, its shape [${shape.join(', ')}] needs ${expected}`);
          }
          if (start + to > size) bad(`cut short: ${name} ends at byte ${start + to}, the file at ${size}`);
          end = to;
          const source = { kind: 'dense', dtype: DTYPE[dtype], file, offset: start + from, bytes: to - from } as const;
          return [name, { shape, source }] as const;
        },
      );
    const samples = Buffer.concat(entries.map(([, { source }]) => samplesOf(fd, source)));
    return { header, size, writtenMs: stat.mtimeMs, entries, samples };
  } finally {
    closeSync(fd);
  }
}

function openShard(file: string): number {
  try {
    return openFile(file);
  } catch (thrown) {
    throw new UserError('BAD_CHECKPOINT', messageOf(thrown), { cause: thrown });
  }
}

/** Rows of a weight and the numbers in each: a vector is one column. */
export function rowsOf(shape: readonly number[]): readonly [rows: number, columns: number] {
  const [rows = 1, ...rest] = shape;
  return [rows, rest.reduce((product, size) => product * size, 1)];
}

/** Reads rows of a weight, as float32. @param from first of them */
export function readRows({ shape, source }: StoredWeight, from: number, count: number): Float32Array {
  const [, columns] = rowsOf(shape);
  const rowBytes = columns * (source.dtype === 'f32' ? 4 : 2);
  const part = { ...source, offset: source.offset + from * rowBytes, bytes: count * rowBytes };
  return readFixed([count, columns], part);
}

/** Reads the numbers of a weight, as float32. */
export function readWeight({ shape, source }: StoredWeight): Float32Array {
  return readFixed(shape, source);
}
