/** Merged models: adapters folded into the weights they stand beside. */
import { closeSync, copyFileSync, fsyncSync, readdirSync, statSync, writeSync } from 'node:fs';
import { basename, join } from 'node:path';
import type { LoraConfig } from '../../compute/model/config.ts';
import { adapterNames, loraScale } from '../../compute/model/lora.ts';
import { type DenseSource, toBfloat16, toFloat16 } from '../../compute/tensor/fixed.ts';
import { openFile } from '../../core/bounded-file.ts';
import { UserError } from '../../core/errors.ts';
import { makeFolder } from '../../storage/atomic-file.ts';
import type { PretrainedModel } from './folder.ts';
import { readRows, rowsOf } from './shards.ts';

/**
 * Merged weight W + scale·B·A as float32, computed in float64; the weight itself where no adapter stands beside it.
 * @param values the adapter's matrices by name
 */
export function mergeWeight(
  { shards }: Pick<PretrainedModel, 'shards'>,
  lora: LoraConfig,
  values: Readonly<Record<string, Float32Array>>,
  name: string,
): Float32Array {
  const [rows] = rowsOf(shards.weights.get(name)!.shape);
  return openMergedRows({ shards }, lora, values)(name, 0, rows);
}

/** Reads rows of a weight as they are after training, float32. */
export type TrainedRows = (name: string, from: number, count: number) => Float32Array;

/** Makes the reader of the rows that {@link mergeWeight} merges: a few of them take little memory. */
export function openMergedRows(
  { shards }: Pick<PretrainedModel, 'shards'>,
  lora: LoraConfig,
  values: Readonly<Record<string, Float32Array>>,
): TrainedRows {
  const { rank } = lora;
  const scale = loraScale(lora);
  return (name, from, count) => {
    const stored = shards.weights.get(name)!;
    const weight = readRows(stored, from, count);
    const { down, up } = adapterNames(name.replace(/\.weight$/, ''));
    const [a, b] = [values[down], values[up]];
    if (!a || !b || !name.endsWith('.weight')) return weight;
    const [, columns] = rowsOf(stored.shape);
    const row = new Float64Array(columns);
    for (let r = 0; r < count; r++) {
      row.fill(0);
      for (let k = 0; k < rank; k++) {
        const factor = scale * b[(from + r) * rank + k]!;
        for (let c = 0; c < columns; c++) row[c]! += factor * a[k * columns + c]!;
      }
      // Adding 0 would change the sign of a -0.
      for (let c = 0; c < columns; c++) if (row[c] !== 0) weight[r * columns + c] = weight[r * columns + c]! + row[c]!;
    }
    return weight;
  };
}

/** Makes the reader of weights that were trained themselves; of those that were not, it reads what is stored. */
export function openTrainedRows(
  { shards }: Pick<PretrainedModel, 'shards'>,
  values: Readonly<Record<string, Float32Array>>,
): TrainedRows {
  return (name, from, count) => {
    const stored = shards.weights.get(name)!;
    const [, columns] = rowsOf(stored.shape);
    return values[name]?.slice(from * columns, (from + count) * columns) ?? readRows(stored, from, count);
  };
}

/**
 * Writes a folder like the model's with the adapter folded in: weights rounded to the type they are stored in, every
 * other file copied.
 * @param folder new or empty
 * @throws {UserError} BAD_ARGUMENT for a folder that holds something
 */
export function writeMerged(
  model: PretrainedModel,
  lora: LoraConfig,
  values: Readonly<Record<string, Float32Array>>,
  folder: string,
): void {
  writeFolder(model, folder, (name) => {
    const { down } = adapterNames(name.replace(/\.weight$/, ''));
    return values[down] && mergeWeight(model, lora, values, name);
  });
}

/** Writes a folder like the model's with other weights, as {@link writeMerged} does. @param values by name */
export function writeTrained(
  model: PretrainedModel,
  values: Readonly<Record<string, Float32Array>>,
  folder: string,
): void {
  writeFolder(model, folder, (name) => values[name]);
}

/**
 * Writes a model's folder with new weights.
 * @param weightOf new numbers of a weight; undefined: as it is
 */
function writeFolder(
  model: PretrainedModel,
  folder: string,
  weightOf: (name: string) => Float32Array | undefined,
): void {
  makeFolder(folder);
  if (readdirSync(folder).length > 0) {
    throw new UserError('BAD_ARGUMENT', `${folder}: expected a new or empty folder, it holds files`);
  }
  for (const name of readdirSync(model.folder)) {
    const from = join(model.folder, name);
    if (statSync(from).isFile()) copyFileSync(from, join(folder, name));
  }
  for (const [name, { source }] of model.shards.weights) {
    const values = weightOf(name);
    if (!values) continue;
    const bytes = narrowValues(values, source.dtype);
    // A link of a hub's cache was copied as the file it names, under the link's own name.
    const fd = openFile(join(folder, nameOf(model, source.file)), 'r+');
    for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at, bytes.length - at, source.offset + at);
    fsyncSync(fd);
    closeSync(fd);
  }
}

/** Name of a shard in its folder; its real path may lie elsewhere. */
function nameOf({ shards }: PretrainedModel, file: string): string {
  return shards.names.get(file) ?? basename(file);
}

function narrowValues(values: Float32Array, dtype: DenseSource['dtype']): Uint8Array {
  const stored = dtype === 'f32' ? values : dtype === 'bf16' ? toBfloat16(values) : toFloat16(values);
  return new Uint8Array(stored.buffer, stored.byteOffset, stored.byteLength);
}
