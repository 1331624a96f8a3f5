/**
 * Conversion of a GGUF file into a model folder as Hugging Face writes it, kept in the user's cache: engines map weights
 * from safetensors, and every other part of this program reads a folder. What is stored as float32, float16 or bfloat16
 * stays so; blocks become float32, exactly as llama.cpp reads them.
 */
import { createHash } from 'node:crypto';
import { closeSync, fsyncSync, openSync, readSync, writeFileSync, writeSync } from 'node:fs';
import { basename, join } from 'node:path';
import { openFile } from '../../../core/bounded-file.ts';
import { messageOf, UserError } from '../../../core/errors.ts';
import { encodeHeader } from '../../../storage/safetensors.ts';
import { ChatTemplate, templateText, templateTokens } from '../../../text/templates/chat-template.ts';
import type { Json } from '../../../text/templates/model-text.ts';
import { BpeTokenizer } from '../../../text/templates/tokenizer.ts';
import { fileSpecs } from '../fused.ts';
import { cacheFolder, makeOnce } from '../model-cache.ts';
import { readModelConfig } from '../model-config.ts';
import { type NamedTensor, readArchitecture } from './architecture.ts';
import { BLOCK_TYPES, decodeBlocks } from './blocks.ts';
import { type GgufFile, readGguf } from './file.ts';
import { readTokenizer } from './tokenizer.ts';

/** Version of the conversion: folders of an earlier one are not used. */
const VERSION = 1;
/** Bytes of a tensor that are in memory at a time, read or written. */
const CHUNK_BYTES = 2 ** 23;

/**
 * Converts a GGUF file, unless it was converted before.
 * @param path absolute
 * @returns the folder, absolute
 * @throws {UserError} BAD_CHECKPOINT for a file that cannot be used
 */
export function convertGguf(path: string): string {
  const gguf = readGguf(path);
  const folder = join(cacheFolder(), 'gguf', `${nameOf(path)}-${identify(gguf).slice(0, 16)}`);
  makeOnce(folder, (unfinished) => writeFolder(gguf, unfinished));
  return folder;
}

/** Name of the file, in letters that are good in any file system. */
function nameOf(path: string): string {
  return basename(path)
    .replace(/\.gguf$/i, '')
    .replace(/[^\w.-]/g, '_')
    .slice(0, 80);
}

/** Bytes of a tensor that identify it, at its beginning and at its end each. */
const SAMPLE_BYTES = 4096;

/** Digest over the header, samples of every tensor, and the time of the file: not of all its bytes, which may be many. */
function identify({ file, size, writtenMs, headerBytes, tensors }: GgufFile): string {
  const hash = createHash('sha256').update(`${VERSION}:${size}:${writtenMs}:`);
  const fd = openFile(file);
  try {
    const header = new Uint8Array(headerBytes);
    readSync(fd, header, 0, headerBytes, 0);
    hash.update(header);
    for (const { offset, bytes } of tensors.values()) {
      const sample = new Uint8Array(Math.min(bytes, SAMPLE_BYTES));
      for (const at of [offset, offset + bytes - sample.length]) {
        readSync(fd, sample, 0, sample.length, at);
        hash.update(sample);
      }
    }
  } finally {
    closeSync(fd);
  }
  return hash.digest('hex');
}

function writeFolder(gguf: GgufFile, folder: string): void {
  const { file } = gguf;
  const { config, tensors } = readArchitecture(gguf);
  const { tokenizer, config: tokenizerConfig, endTokens } = readTokenizer(gguf);
  checkTensors(file, config, tensors);
  // What cannot be used is refused now, by the file's own name.
  new BpeTokenizer(tokenizer, tokenizerConfig, file);
  const template = templateText(tokenizerConfig.chat_template);
  if (template !== undefined) new ChatTemplate(template, templateTokens(tokenizerConfig), file);
  const write = (name: string, json: Json) => writeFileSync(join(folder, name), `${JSON.stringify(json, null, 1)}\n`);
  const ends = endTokens.length === 0 ? {} : { eos_token_id: endTokens.length === 1 ? endTokens[0] : endTokens };
  write('config.json', { ...config, ...ends });
  write('tokenizer.json', tokenizer);
  write('tokenizer_config.json', tokenizerConfig);
  write('generation_config.json', ends);
  try {
    writeWeights(gguf, tensors, join(folder, 'model.safetensors'));
  } catch (thrown) {
    if (thrown instanceof UserError) throw thrown;
    throw new UserError('BAD_CHECKPOINT', `${file}: it cannot be converted into ${folder}: ${messageOf(thrown)}`, {
      cause: thrown,
    });
  }
}

/** Checks names and shapes before anything is written. */
function checkTensors(file: string, config: Json, tensors: readonly NamedTensor[]): void {
  const found = new Map(tensors.map((one) => [one.name, one]));
  for (const { name, shape } of fileSpecs(readModelConfig(config, file))) {
    const one = found.get(name);
    if (!one) throw new UserError('BAD_CHECKPOINT', `${file}: weight ${name} [${shape.join(', ')}] is missing`);
    const { tensor, shift } = one;
    if (tensor.shape.join() !== shape.join()) {
      throw new UserError(
        'BAD_CHECKPOINT',
        `${file}: tensor ${tensor.name} is [${tensor.shape.join(', ')}], expected [${shape.join(', ')}] by its metadata`,
      );
    }
    if (shift !== 0 && tensor.type !== 'F32') {
      throw new UserError('BAD_CHECKPOINT', `${file}: tensor ${tensor.name} is ${tensor.type}, expected F32: a norm`);
    }
    found.delete(name);
  }
  const [extra] = found.values();
  if (extra) throw new UserError('BAD_CHECKPOINT', `${file}: tensor ${extra.tensor.name} is no part of the model`);
}

/** Type in which a tensor is stored: its own where it has no blocks. */
function storedType({ tensor: { type } }: NamedTensor): 'F32' | 'F16' | 'BF16' {
  return type === 'F16' || type === 'BF16' ? type : 'F32';
}

function writeWeights({ file }: GgufFile, tensors: readonly NamedTensor[], path: string): void {
  const sorted = [...tensors].sort((a, b) => (a.name < b.name ? -1 : 1));
  const header = encodeHeader(
    sorted.map((one) => ({ name: one.name, dtype: storedType(one), shape: one.tensor.shape })),
    { format: 'pt' },
  );
  const from = openFile(file);
  const to = openSync(path, 'w');
  try {
    const append = (data: Uint8Array) => {
      for (let done = 0; done < data.length; ) done += writeSync(to, data, done, data.length - done);
    };
    append(header);
    for (const one of sorted) for (const rows of readRows(from, one, file)) append(rows);
    fsyncSync(to);
  } finally {
    closeSync(from);
    closeSync(to);
  }
}

/** Reads a tensor some rows at a time, as they are stored in safetensors. */
function* readRows(fd: number, one: NamedTensor, file: string): Generator<Uint8Array> {
  const { tensor, interleavedHeads, shift } = one;
  const { block, bytes } = BLOCK_TYPES[tensor.type];
  const columns = tensor.shape.length > 1 ? tensor.shape.at(-1)! : 1;
  const rows = tensor.shape.reduce((product, size) => product * size, 1) / Math.max(1, columns);
  // A vector is rows of one number; only types without blocks can be that.
  const rowBytes = tensor.shape.length > 1 ? (columns / block) * bytes : bytes / block;
  const perHead = interleavedHeads > 0 ? rows / interleavedHeads : 0;
  const step = perHead || Math.max(1, Math.floor(CHUNK_BYTES / (columns * 4)));
  for (let row = 0; row < rows; row += step) {
    const count = Math.min(step, rows - row);
    const data = readExactly(fd, tensor.offset + row * rowBytes, count * rowBytes, file);
    const stored = storedType(one) === tensor.type ? data : new Uint8Array(decodeBlocks(tensor.type, data).buffer);
    if (shift !== 0) yield shiftValues(stored, shift);
    else yield perHead ? separateHalves(stored, count) : stored;
  }
}

/** Numbers and another added to each. @param data float32, at the start of its buffer */
function shiftValues(data: Uint8Array, shift: number): Uint8Array {
  const values = new Float32Array(data.buffer, data.byteOffset, data.length / 4).map((x) => x + shift);
  return new Uint8Array(values.buffer);
}

/** Rows of one head from llama.cpp's order (half, 2) to Hugging Face's (2, half). */
function separateHalves(data: Uint8Array, rows: number): Uint8Array {
  const rowBytes = data.length / rows;
  const half = rows / 2;
  const out = new Uint8Array(data.length);
  for (let row = 0; row < rows; row++) {
    const to = (row % 2) * half + (row >> 1);
    out.set(data.subarray(row * rowBytes, (row + 1) * rowBytes), to * rowBytes);
  }
  return out;
}

function readExactly(fd: number, offset: number, bytes: number, file: string): Uint8Array {
  const out = new Uint8Array(bytes);
  for (let at = 0; at < bytes; ) {
    const got = readSync(fd, out, at, Math.min(bytes - at, 2 ** 30), offset + at);
    if (got === 0) throw new UserError('BAD_CHECKPOINT', `${file}: cut short at byte ${offset + at}`);
    at += got;
  }
  return out;
}
