/**
 * Export of a trained model as a GGUF file, which llama.cpp reads. Where the base came out of such a file, its metadata is
 * copied byte for byte; else it is made from the folder. Written a few rows at a time, so a file may be larger than memory.
 */
import { closeSync, fsyncSync, openSync, readSync, writeSync } from 'node:fs';
import { openFile } from '../../../core/bounded-file.ts';
import { describeValue } from '../../../core/describe-value.ts';
import { UserError } from '../../../core/errors.ts';
import { writeWhole } from '../../../storage/atomic-file.ts';
import type { PretrainedModel } from '../folder.ts';
import type { TrainedRows } from '../merge.ts';
import { rowsOf } from '../shards.ts';
import { ROPE_FACTORS, readArchitecture } from './architecture.ts';
import { describeArchitecture, isWritten } from './architecture-entries.ts';
import { encodeBlocks, largestOf, type WrittenType } from './encode-blocks.ts';
import { DEFAULT_ALIGNMENT, type GgufFile, readGguf } from './file.ts';
import { align, encodeEntry, encodeHeader } from './header.ts';
import { describeTokenizer } from './tokenizer-entries.ts';

/** Types of a file's matrices, as the command line names them. */
export const EXPORT_TYPES = ['f32', 'f16', 'bf16', 'q8_0'] as const;

export type ExportType = (typeof EXPORT_TYPES)[number];

export interface GgufExport {
  /** Type of matrices; vectors are float32. */
  readonly type: ExportType;
  /** Trained rows of the weights. */
  readonly rows: TrainedRows;
  /** GGUF file that the model came from, absolute; undefined for a folder. */
  readonly source?: string | undefined;
  /** Name of the model, for its readers; of no meaning beside a source, which has its own. */
  readonly name: string;
  /** Called as the file grows. */
  readonly onProgress?: ((bytes: number, of: number) => void) | undefined;
}

/** Types of llama.cpp with the numbers of `general.file_type`. */
const TYPES: Readonly<Record<ExportType, readonly [type: WrittenType, fileType: number]>> = {
  f32: ['F32', 0],
  f16: ['F16', 1],
  bf16: ['BF16', 32],
  q8_0: ['Q8_0', 7],
};

/** Version of the blocks' arithmetic, which llama.cpp wants to know of a quantised file. */
const QUANTIZATION_VERSION = 2;

/** Tensor of the file and where its numbers come from. */
interface Plan {
  readonly name: string;
  readonly type: WrittenType;
  readonly shape: readonly number[];
  /** Heads whose rows are interleaved; 0: none. */
  readonly interleavedHeads: number;
  read(from: number, count: number): Float32Array;
}

/** Parts of a file before it is written. */
interface Parts {
  readonly entries: readonly Uint8Array[];
  readonly plans: readonly Plan[];
  readonly alignment: number;
  readonly notes: readonly string[];
}

/**
 * Writes a model as a GGUF file. A file that stands at the path is whole.
 * @param path absolute, or from the working folder
 * @returns remarks for its user
 * @throws {UserError} BAD_ARGUMENT for a model that has no such form, or weights that the type cannot hold
 * @throws what the disk throws
 */
export function exportGguf(path: string, model: PretrainedModel, options: GgufExport): readonly string[] {
  const { entries, plans, alignment, notes } = options.source
    ? copyParts(readGguf(options.source), options)
    : makeParts(model, options);
  const { header, placed, size } = encodeHeader(entries, plans, alignment);
  writeWhole(path, (draft) => {
    const fd = openSync(draft, 'w');
    try {
      let end = 0;
      const append = (data: Uint8Array) => {
        for (let done = 0; done < data.length; ) done += writeSync(fd, data, done, data.length - done);
        end += data.length;
        options.onProgress?.(end, size);
      };
      append(header);
      for (const [i, plan] of plans.entries()) {
        for (const rows of encodeRows(plan)) append(rows);
        append(new Uint8Array(align(placed[i]!.bytes, alignment) - placed[i]!.bytes));
      }
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
  });
  return notes;
}

/** Type of a tensor: vectors stay float32, and rows that are no whole blocks become halves, as in llama.cpp's converter. */
function typeOf(type: ExportType, shape: readonly number[]): WrittenType {
  if (shape.length < 2) return 'F32';
  return type === 'q8_0' && shape.at(-1)! % 32 !== 0 ? 'F16' : TYPES[type][0];
}

function noteFallbacks(type: ExportType, plans: readonly Plan[]): readonly string[] {
  const halves = plans.filter((plan) => type === 'q8_0' && plan.type === 'F16');
  return halves.length === 0 ? [] : [`${halves.length} matrices are f16: their rows are no whole blocks of 32`];
}

/** Entries about how a file was made: those of the source are not true of another one. */
const OF_THE_SOURCE = /^(?:split|quantize)\.|^general\.(?:file_type|quantization_version)$/;

function copyParts(gguf: GgufFile, { type, rows }: GgufExport): Parts {
  const architecture = gguf.metadata.get('general.architecture');
  // Others hold some weights in another form (fused, or less a constant), which copying does not undo.
  if (!isWritten(architecture)) {
    throw new UserError(
      'BAD_ARGUMENT',
      `${gguf.file}: architecture ${describeValue(architecture)} is not written as GGUF; use --to hf`,
    );
  }
  const known = new Map(readArchitecture(gguf).tensors.map((one) => [one.tensor.name, one]));
  const plans = [...gguf.tensors.values()].map(({ name, shape, offset }): Plan => {
    const one = known.get(name);
    if (one) {
      const { interleavedHeads, name: weight } = one;
      return { name, shape, type: typeOf(type, shape), interleavedHeads, read: (at, count) => rows(weight, at, count) };
    }
    // The divisors of the frequencies: a vector of float32, which nobody trains.
    const read = (at: number, count: number) => floatsOf(gguf.file, offset + at * 4, count);
    return { name, shape, type: 'F32', interleavedHeads: 0, read };
  });
  const fd = openFile(gguf.file);
  try {
    const copied = [...gguf.entries]
      .filter(([name]) => !OF_THE_SOURCE.test(name))
      .map(([, { offset, bytes }]) => readExactly(fd, gguf.file, offset, bytes));
    return {
      entries: [...copied, ...typeEntries(type)],
      plans,
      alignment: gguf.alignment,
      notes: noteFallbacks(type, plans),
    };
  } finally {
    closeSync(fd);
  }
}

function makeParts(model: PretrainedModel, { type, rows, name }: GgufExport): Parts {
  const { entries, weights, ropeFactors } = describeArchitecture(model);
  const text = describeTokenizer(model.folder, model.config.vocabSize, model.endTokens);
  const plans = weights.map(({ name: tensor, weight, shape, interleavedHeads }): Plan => {
    return {
      name: tensor,
      shape,
      type: typeOf(type, shape),
      interleavedHeads,
      read: (at, count) => rows(weight, at, count),
    };
  });
  if (ropeFactors) {
    const read = (at: number, count: number) => Float32Array.from(ropeFactors.slice(at, at + count));
    plans.push({ name: ROPE_FACTORS, shape: [ropeFactors.length], type: 'F32', interleavedHeads: 0, read });
  }
  const general = [
    encodeEntry('general.type', { type: 'string', value: 'model' }),
    encodeEntry('general.name', { type: 'string', value: name }),
  ];
  const described = [...entries, ...text.entries].map(([name, entry]) => encodeEntry(name, entry));
  const ends = text.lostEnds;
  return {
    // The architecture comes first, as readers of a stream want it.
    entries: [described[0]!, ...general, ...described.slice(1), ...typeEntries(type)],
    plans,
    alignment: DEFAULT_ALIGNMENT,
    notes: [
      ...noteFallbacks(type, plans),
      ...(ends.length === 0 ? [] : [`a GGUF file names three tokens that end a turn; left out: ${ends.join(', ')}`]),
    ],
  };
}

function typeEntries(type: ExportType): readonly Uint8Array[] {
  return [
    encodeEntry('general.file_type', { type: 'u32', value: TYPES[type][1] }),
    encodeEntry('general.quantization_version', { type: 'u32', value: QUANTIZATION_VERSION }),
  ];
}

/** Weights of a tensor that are in memory at a time. */
const CHUNK_WEIGHTS = 2 ** 21;

/** Encodes a tensor some rows at a time. */
function* encodeRows({ name, type, shape, interleavedHeads, read }: Plan): Generator<Uint8Array> {
  const [rows, columns] = rowsOf(shape);
  const perHead = interleavedHeads > 0 ? rows / interleavedHeads : 0;
  const step = perHead || Math.max(1, Math.floor(CHUNK_WEIGHTS / columns));
  for (let row = 0; row < rows; row += step) {
    const values = read(row, Math.min(step, rows - row));
    checkRange(name, type, values);
    yield encodeBlocks(type, perHead ? interleaveHalves(values, perHead) : values);
  }
}

/** Rows of one head from Hugging Face's order (2, half) to llama.cpp's (half, 2). */
function interleaveHalves(values: Float32Array, rows: number): Float32Array {
  const columns = values.length / rows;
  const half = rows / 2;
  const out = new Float32Array(values.length);
  for (let row = 0; row < rows; row++) {
    const from = (row % 2) * half + (row >> 1);
    out.set(values.subarray(from * columns, (from + 1) * columns), row * columns);
  }
  return out;
}

/** Checks that a type can hold weights. @throws {UserError} BAD_ARGUMENT naming the tensor */
function checkRange(name: string, type: WrittenType, values: Float32Array): void {
  const largest = largestOf(type);
  const found = values.find((value) => !(Math.abs(value) <= largest));
  if (found === undefined) return;
  const wide = Number.isFinite(found) ? `${type} ends at ${largest}; use --type f32` : 'the training has gone wrong';
  throw new UserError('BAD_ARGUMENT', `tensor ${name} has a weight of ${found}: ${wide}`);
}

function floatsOf(file: string, offset: number, count: number): Float32Array {
  const fd = openFile(file);
  try {
    return new Float32Array(readExactly(fd, file, offset, count * 4).buffer);
  } finally {
    closeSync(fd);
  }
}

function readExactly(fd: number, file: string, offset: number, bytes: number): Uint8Array {
  const out = new Uint8Array(bytes);
  for (let at = 0; at < bytes; ) {
    const got = readSync(fd, out, at, bytes - at, offset + at);
    if (got === 0) throw new UserError('BAD_CHECKPOINT', `${file}: cut short at byte ${offset + at}`);
    at += got;
  }
  return out;
}
