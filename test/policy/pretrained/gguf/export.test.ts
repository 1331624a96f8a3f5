/** GGUF files that are written: read back by our own reader, and by Python's `gguf` in a recording. */
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { writeTinyChatModel } from '../../../../experiments/tiny-chat-model.ts';
import { loraSpecs } from '../../../../src/compute/model/lora.ts';
import { weightSpecs } from '../../../../src/compute/model/parameters.ts';
import { toBfloat16, toFloat16, widen } from '../../../../src/compute/tensor/fixed.ts';
import { Rng } from '../../../../src/core/rng.ts';
import { openModel } from '../../../../src/policy/pretrained/folder.ts';
import { type BLOCK_TYPES, decodeBlocks } from '../../../../src/policy/pretrained/gguf/blocks.ts';
import { encodeBlocks, type WrittenType } from '../../../../src/policy/pretrained/gguf/encode-blocks.ts';
import { EXPORT_TYPES, type ExportType, exportGguf } from '../../../../src/policy/pretrained/gguf/export.ts';
import { type GgufFile, readGguf } from '../../../../src/policy/pretrained/gguf/file.ts';
import { readTokenizer, WORD_RULES } from '../../../../src/policy/pretrained/gguf/tokenizer.ts';
import { describeTokenizer } from '../../../../src/policy/pretrained/gguf/tokenizer-entries.ts';
import { locateGguf } from '../../../../src/policy/pretrained/locate.ts';
import { mergeWeight, openMergedRows, openTrainedRows } from '../../../../src/policy/pretrained/merge.ts';
import { readWeight } from '../../../../src/policy/pretrained/shards.ts';
import { type Json, openText } from '../../../../src/text/templates/model-text.ts';
import { BpeTokenizer } from '../../../../src/text/templates/tokenizer.ts';
import { readLines } from '../../../support/json-lines.ts';
import { writeRecordedModel, writeVariedModel } from '../../../support/varied-model.ts';
import { encodeGguf, ggufOf, writeGguf } from '../../../support/write-gguf.ts';

let dir: string;
let folder: string;
let file: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'longplay-gguf-out-'));
  folder = join(dir, 'folder');
  file = join(dir, 'out.gguf');
  vi.stubEnv('LONGPLAY_CACHE', join(dir, 'cache'));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(dir, { recursive: true, force: true });
});

const strings = [
  'the dog sat <|im_start|> on 1234 oak logs\n½',
  ' \n\n  two  spaces, "quotes" and don\'t',
  'café naïve Ωmega 東京 👩‍🚀 \u0000',
  '',
];

const LLAMA3 = {
  rope_type: 'llama3',
  factor: 8,
  low_freq_factor: 1,
  high_freq_factor: 4,
  original_max_position_embeddings: 64,
};

/** Fields of `config.json`, by a name of the model; sizes are no multiples of 32 where a type shall fall back. */
const MODELS: Readonly<Record<string, Json>> = {
  llama: { model_type: 'llama', tie_word_embeddings: false },
  'llama 3.1': { model_type: 'llama', rope_theta: 500_000, rope_scaling: LLAMA3 },
  qwen2: { model_type: 'qwen2' },
  'qwen2 of rows that are no whole blocks': { model_type: 'qwen2', intermediate_size: 100 },
  qwen3: { model_type: 'qwen3', head_dim: 32 },
  smollm3: { model_type: 'smollm3', num_hidden_layers: 4, no_rope_layers: [1, 1, 1, 0] },
  mistral: { model_type: 'mistral', sliding_window: null },
};

function make(config: Json): void {
  writeVariedModel(folder, config);
}

/** Writes a model as it is stored. */
function write(model: string, type: ExportType, values: Readonly<Record<string, Float32Array>> = {}) {
  const base = openModel(model);
  const rows = openTrainedRows(base, values);
  return exportGguf(file, base, { type, rows, source: locateGguf(model), name: 'tiny' });
}

/** Numbers of a matrix as a type keeps them. */
function rounded(type: ExportType, shape: readonly number[], values: Float32Array): Float32Array {
  if (type === 'f32' || shape.length < 2) return values;
  if (type === 'bf16') return widen(new Uint8Array(toBfloat16(values).buffer), 'bf16');
  const isWhole = shape[1]! % 32 === 0;
  if (type === 'f16' || !isWhole) return widen(new Uint8Array(toFloat16(values).buffer), 'f16');
  return decodeBlocks('Q8_0', encodeBlocks('Q8_0', values));
}

describe('blocks that are written', () => {
  const recorded = readLines(new URL('../../../fixtures/gguf/encodings.jsonl', import.meta.url)) as readonly {
    readonly type: WrittenType;
    /** float32, in base64. */
    readonly values: string;
    /** Bytes that Python's `gguf` makes of them, in base64; by test/support/record-gguf-encodings.py. */
    readonly bytes: string;
  }[];

  it.each(recorded)('of type $type are the bytes of Python', ({ type, values, bytes }) => {
    const floats = widen(new Uint8Array(Buffer.from(values, 'base64')), 'f32');
    expect(floats.length).toBeGreaterThan(1900);
    expect(Buffer.from(encodeBlocks(type, floats)).toString('base64')).toBe(bytes);
  });

  it('of type Q8_0 round the middle from zero', () => {
    const values = new Float32Array(32).fill(0.5).fill(-0.5, 8).fill(Math.fround(0.49999997), 16).fill(127, 31);
    const codes = new Int8Array(encodeBlocks('Q8_0', values).buffer, 2);
    expect([codes[0], codes[8], codes[16], codes[31]]).toEqual([1, -1, 0, 127]);
  });
});

describe.each(Object.entries(MODELS))('a GGUF file of %s', (_name, config) => {
  it.each(EXPORT_TYPES)('in %s is the model of the folder', (type) => {
    make(config);
    write(folder, type);
    const [ours, theirs] = [openModel(file), openModel(folder)];
    const factors = (of: typeof ours) => of.config.ropeFactors?.map(Math.fround);
    expect({ ...ours.config, ropeFactors: factors(ours) }).toEqual({ ...theirs.config, ropeFactors: factors(theirs) });
    expect(ours.shards.weights.size).toBeGreaterThan(19);
    expect([...ours.shards.weights.keys()].sort()).toEqual([...theirs.shards.weights.keys()].sort());
    for (const [name, stored] of theirs.shards.weights) {
      const expected = rounded(type, stored.shape, readWeight(stored));
      expect(readWeight(ours.shards.weights.get(name)!), name).toEqual(expected);
    }
    const [a, b] = [openText(ours.folder), openText(folder)];
    const messages = [{ role: 'user', content: 'get 4 oak logs' }] as const;
    expect(a.template!.text).toBe(b.template!.text);
    expect(a.template!.render(messages, { addGenerationPrompt: true })).toBe(
      b.template!.render(messages, { addGenerationPrompt: true }),
    );
    for (const line of strings) {
      expect(a.tokenizer.encode(line)).toEqual(b.tokenizer.encode(line));
      expect(a.tokenizer.encodePlain(line)).toEqual(b.tokenizer.encodePlain(line));
      expect(a.tokenizer.decode(b.tokenizer.encode(line))).toBe(b.tokenizer.decode(b.tokenizer.encode(line)));
    }
    expect(new Set(ours.endTokens)).toEqual(new Set(theirs.endTokens));
    expect(ours.endTokens.length).toBe(2);
  });
});

describe('a GGUF file that is written', () => {
  it('is what Python reads of it', () => {
    const recorded = readLines(new URL('../../../fixtures/gguf/exported.jsonl', import.meta.url)) as readonly {
      readonly type: ExportType;
      readonly file: string;
      readonly fields: Readonly<Record<string, unknown>>;
      readonly tensors: readonly (readonly [name: string, type: string, shape: readonly number[], values: string])[];
    }[];
    expect(recorded.map(({ type }) => type)).toEqual(EXPORT_TYPES);
    for (const { type, file: bytes, fields, tensors } of recorded) {
      writeRecordedModel(folder);
      write(folder, type);
      // Python read these very bytes.
      expect(digest(readFileSync(file)), type).toBe(bytes);
      const { metadata, tensors: ours } = readGguf(file);
      expect(Object.fromEntries(metadata)).toEqual(fields);
      expect(tensors.length).toBeGreaterThan(19);
      expect([...ours.values()].map((one) => [one.name, one.type, one.shape, digest(decoded(one))])).toEqual(tensors);
    }
  });

  it('of matrices that are no whole blocks keeps those as halves, and says so', () => {
    make({ intermediate_size: 100 });
    expect(write(folder, 'q8_0')).toEqual(['2 matrices are f16: their rows are no whole blocks of 32']);
    const types = [...readGguf(file).tensors.values()].map(({ name, type }) => `${name} ${type}`);
    expect(types).toContain('blk.1.ffn_down.weight F16');
    expect(types).toContain('blk.1.ffn_up.weight Q8_0');
    expect(types).toContain('blk.1.ffn_norm.weight F32');
    expect(types).toContain('token_embd.weight Q8_0');
  });

  it.each(EXPORT_TYPES)('of a GGUF file has its metadata byte for byte, its order and its alignment (%s)', (type) => {
    make({ model_type: 'llama' });
    const { metadata, tensors } = ggufOf(folder, 'llama');
    const factors = Float32Array.of(1, 1, 1.5, 8, 8, 8, 8, 8);
    const source = join(dir, 'source.gguf');
    const bytes = encodeGguf(
      {
        'general.name': 'A name of its own — with é',
        'general.file_type': 1,
        ...metadata,
        'tokenizer.ggml.precompiled': { i32s: [1, 2, 3] },
        'quantize.imatrix.file': 'of the source alone',
        'split.count': 1,
      },
      {
        'rope_freqs.weight': { type: 'F32', shape: [8], bytes: new Uint8Array(factors.buffer) },
        ...Object.fromEntries(Object.entries(tensors).reverse()),
      },
    );
    writeFileSync(source, bytes);
    write(source, type);
    const [ours, theirs] = [readGguf(file), readGguf(source)];
    const kept = [...theirs.entries.keys()].filter((key) => !/^(quantize|split|general\.file_type)/.test(key));
    expect(kept.length).toBeGreaterThan(20);
    expect([...ours.entries.keys()]).toEqual([...kept, 'general.file_type', 'general.quantization_version']);
    for (const key of kept) expect(entryBytes(ours, key), key).toEqual(entryBytes(theirs, key));
    expect(ours.metadata.get('general.file_type')).toBe({ f32: 0, f16: 1, bf16: 32, q8_0: 7 }[type]);
    expect([...ours.tensors.keys()]).toEqual([...theirs.tensors.keys()]);
    for (const [name, tensor] of theirs.tensors) {
      const written = ours.tensors.get(name)!;
      expect(written.offset % 32).toBe(0);
      const expected = rounded(type, tensor.shape, floats(tensor, source));
      expect(decoded(written), name).toEqual(expected);
    }
    expect(openModel(file).config).toEqual(openModel(source).config);
  });

  it('takes trained weights', () => {
    make({ model_type: 'llama' });
    const name = 'model.layers.1.self_attn.k_proj.weight';
    const { shape } = openModel(folder).shards.weights.get(name)!;
    const trained = Float32Array.from({ length: shape[0]! * shape[1]! }, (_, i) => Math.fround(Math.sin(i)));
    write(folder, 'f32', { [name]: trained });
    expect(readWeight(openModel(file).shards.weights.get(name)!)).toEqual(trained);
  });

  it('takes an adapter, a head at a time', () => {
    make({ model_type: 'llama' });
    const base = openModel(folder);
    const lora = { rank: 3, alpha: 6, targets: ['k_proj', 'up_proj'] };
    const rng = Rng.fromSeed(8);
    const specs = loraSpecs(weightSpecs(base.config), lora);
    const values = Object.fromEntries(
      specs.map(({ name, shape }) => [name, new Float32Array(shape[0]! * shape[1]!).map(() => rng.normal())]),
    );
    exportGguf(file, base, { type: 'f32', rows: openMergedRows(base, lora, values), name: 'tiny' });
    const written = openModel(file).shards.weights;
    let changed = 0;
    for (const [name, stored] of base.shards.weights) {
      const merged = mergeWeight(base, lora, values, name);
      if (merged.some((value, i) => value !== readWeight(stored)[i])) changed++;
      expect(readWeight(written.get(name)!), name).toEqual(merged);
    }
    expect(changed).toBe(4);
  });

  it('of an adapter as it begins has the weights to the last bit, negative zeros too', () => {
    make({ model_type: 'llama' });
    const name = 'model.layers.0.self_attn.k_proj.weight';
    const { source } = openModel(folder).shards.weights.get(name)!;
    const bytes = readFileSync(source.file);
    bytes.writeFloatLE(-0, source.offset + 4);
    writeFileSync(source.file, bytes);
    const base = openModel(folder);
    const lora = { rank: 2, alpha: 4, targets: ['k_proj'] };
    const specs = loraSpecs(weightSpecs(base.config), lora);
    const zeros = Object.fromEntries(
      specs.map(({ name: one, shape }) => [
        one,
        new Float32Array(shape[0]! * shape[1]!).fill(/lora_A/.test(one) ? 1 : 0),
      ]),
    );
    exportGguf(file, base, { type: 'f32', rows: openMergedRows(base, lora, zeros), name: 'tiny' });
    const found = readWeight(openModel(file).shards.weights.get(name)!);
    expect(Object.is(found[1], -0)).toBe(true);
    expect(found).toEqual(readWeight(base.shards.weights.get(name)!));
  });

  it('reports its growth, and ends whole', () => {
    make({});
    const base = openModel(folder);
    const seen: number[] = [];
    const rows = openTrainedRows(base, {});
    exportGguf(file, base, { type: 'f16', rows, name: 'tiny', onProgress: (bytes, of) => seen.push(bytes / of) });
    expect(seen.at(-1)).toBe(1);
    expect(seen).toEqual([...seen].sort((a, b) => a - b));
    expect(readFileSync(file).length).toBe(readGguf(file).size);
  });

  it('leaves what was there where it cannot be finished', () => {
    make({});
    writeFileSync(file, 'here before');
    const base = openModel(folder);
    let left = 5;
    const rows = openTrainedRows(base, {});
    const failing = (name: string, from: number, count: number) => {
      if (left-- === 0) throw new Error('no more');
      return rows(name, from, count);
    };
    expect(() => exportGguf(file, base, { type: 'f32', rows: failing, name: 'tiny' })).toThrow('no more');
    expect(readFileSync(file, 'utf8')).toBe('here before');
    expect(readdirSync(dir).sort()).toEqual(['folder', 'out.gguf']);
  });
});

describe('a model that has no GGUF form', () => {
  const refused = (type: ExportType = 'f32') => {
    try {
      write(folder, type);
    } catch (thrown) {
      expect(existsSync(file)).toBe(false);
      const { message, code } = thrown as { readonly message: string; readonly code?: string };
      expect(code).toBe('BAD_ARGUMENT');
      expect(message).not.toContain('\n');
      return message;
    }
    throw new Error('it was written');
  };
  const edit = (name: string, change: (json: Json) => unknown) => {
    const path = join(folder, name);
    writeFileSync(path, JSON.stringify(change(JSON.parse(readFileSync(path, 'utf8')))));
  };

  it.each([
    [
      { model_type: 'smollm3', num_hidden_layers: 4, no_rope_layers: [1, 0, 1, 0] },
      /its unrotatedLayers, \[1,3\], cannot/,
    ],
    [
      { model_type: 'qwen2', rope_scaling: LLAMA3 },
      /its ropeFactors, .*, cannot be said in a GGUF file of this family/,
    ],
  ])('because of %j is refused by what it is', (config, message) => {
    make(config);
    expect(refused()).toMatch(message);
    expect(refused()).toMatch(/; use --to hf$/);
  });

  it.each<[string, (json: Json) => unknown, RegExp]>([
    ['its words', (json) => ({ ...json, pre_tokenizer: { type: 'Whitespace' } }), /are those of none of gpt-2, smollm/],
    ['its normalizer', (json) => ({ ...json, normalizer: { type: 'NFKC' } }), /are those of none of/],
    [
      'its model',
      (json) => ({ ...json, model: { ...(json.model as Json), type: 'WordPiece' } }),
      /model\.type is "WordPiece"/,
    ],
    [
      'a token that takes spaces',
      (json) => ({
        ...json,
        added_tokens: (json.added_tokens as readonly Json[]).map((one) => ({ ...one, lstrip: true })),
      }),
      /token "<\|endoftext\|>" takes the spaces beside it/,
    ],
  ])('because of %s is refused', (_name, change, message) => {
    make({});
    edit('tokenizer.json', change);
    expect(refused()).toMatch(message);
    expect(refused()).toContain('tokenizer.json: ');
  });

  it('because of weights that a type cannot hold is refused by the tensor', () => {
    make({});
    const name = 'model.layers.0.mlp.up_proj.weight';
    const of = (value: number) => {
      const { shape } = openModel(folder).shards.weights.get(name)!;
      return { [name]: new Float32Array(shape[0]! * shape[1]!).fill(value) };
    };
    expect(() => write(folder, 'f16', of(70_000))).toThrow(
      /blk\.0\.ffn_up\.weight has a weight of 70000: F16 ends at 65504/,
    );
    expect(() => write(folder, 'q8_0', of(1e7))).toThrow(/Q8_0 ends at/);
    expect(() => write(folder, 'f32', of(Number.NaN))).toThrow(/has a weight of NaN: the training has gone wrong/);
    expect(existsSync(file)).toBe(false);
    write(folder, 'bf16', of(70_000));
    write(folder, 'f16', of(65_504));
  });
});

describe('a tokenizer, written and read again', () => {
  interface Variant {
    readonly strings: readonly (readonly [string, ...unknown[]])[];
  }
  const [first, ...variants] = readLines(
    new URL('../../../fixtures/tokenizers/byte-level.jsonl', import.meta.url),
  ) as readonly [{ readonly base: Json }, ...Variant[]];
  const pieces = readLines(new URL('../../../fixtures/tokenizers/sentence-pieces.jsonl', import.meta.url)) as {
    readonly entries: Readonly<Record<string, string>>;
    readonly strings: readonly (readonly [string, ...unknown[]])[];
  }[];

  /** Tokenizer of a folder, as it comes back from its entries. */
  function again(tokenizer: Json, config: Json) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'tokenizer.json'), JSON.stringify(tokenizer));
    writeFileSync(join(folder, 'tokenizer_config.json'), JSON.stringify(config));
    const { entries } = describeTokenizer(folder, 4096, []);
    const metadata = new Map([...entries].map(([name, { value }]) => [name, value]));
    return { metadata, read: readTokenizer({ file: 'here', metadata }) };
  }

  it.each(Object.keys(WORD_RULES))('by the rule %s gives the same ids', (name) => {
    const { normalizer, preTokenizer, ignoreMerges = false } = WORD_RULES[name]!;
    const model = { ...(first.base.model as Json), ignore_merges: ignoreMerges };
    const tokenizer = { ...first.base, normalizer, pre_tokenizer: preTokenizer, model };
    const { read, metadata } = again(tokenizer, {});
    // Rules of several names are one rule.
    expect(WORD_RULES[metadata.get('tokenizer.ggml.pre') as string]).toEqual(WORD_RULES[name]);
    const [a, b] = [new BpeTokenizer(read.tokenizer, read.config, 'a'), new BpeTokenizer(tokenizer, {}, 'b')];
    for (const [line] of variants[0]!.strings) expect(a.encode(line), JSON.stringify(line)).toEqual(b.encode(line));
  });

  it.each(pieces)('of SentencePiece gives the same ids', ({ entries, strings }) => {
    const { tokenizer, config } = readTokenizer({ file: 'here', metadata: new Map(Object.entries(entries)) });
    const { read, metadata } = again(tokenizer, config);
    expect(metadata.get('tokenizer.ggml.add_bos_token')).toBe(true);
    expect(metadata.get('tokenizer.ggml.add_space_prefix')).toBe(entries['tokenizer.ggml.add_space_prefix']);
    expect(read.tokenizer.model).toMatchObject({ merges: (tokenizer.model as Json).merges });
    const [a, b] = [new BpeTokenizer(read.tokenizer, read.config, 'a'), new BpeTokenizer(tokenizer, config, 'b')];
    expect(strings.length).toBeGreaterThan(100);
    for (const [line] of strings) {
      expect(a.encode(line), JSON.stringify(line)).toEqual(b.encode(line));
      expect(a.decode(b.encode(line))).toBe(b.decode(b.encode(line)));
    }
  });

  it('of SentencePiece that lacks a merge of its tokens is refused', () => {
    const { tokenizer, config } = readTokenizer({
      file: 'here',
      metadata: new Map(Object.entries(pieces[0]!.entries)),
    });
    const model = tokenizer.model as { readonly merges: readonly unknown[] };
    const short = { ...tokenizer, model: { ...model, merges: model.merges.slice(1) } };
    expect(() => again(short, config)).toThrow(/its merges do not follow from an order of its tokens/);
  });
});

function digest(bytes: Uint8Array | Float32Array): string {
  return createHash('sha256')
    .update(new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength))
    .digest('hex');
}

function entryBytes({ file: path, entries }: GgufFile, key: string): Buffer {
  const { offset, bytes } = entries.get(key)!;
  return readFileSync(path).subarray(offset, offset + bytes);
}

interface Placed {
  readonly type: keyof typeof BLOCK_TYPES;
  readonly offset: number;
  readonly bytes: number;
}

/** Numbers of a tensor. */
function floats({ type, offset, bytes }: Placed, path: string): Float32Array {
  return decodeBlocks(type, readFileSync(path).subarray(offset, offset + bytes));
}

function decoded(tensor: Placed): Float32Array {
  return floats(tensor, file);
}

it('a base of an architecture that is not written is refused, a GGUF file too', () => {
  const config = {
    ...{ model_type: 'gemma2', hidden_act: undefined, hidden_activation: 'gelu_pytorch_tanh', head_dim: 32 },
    ...{ query_pre_attn_scalar: 32, sliding_window: 100 },
  };
  writeTinyChatModel(folder, { config });
  const source = join(dir, 'source.gguf');
  writeGguf(source, ggufOf(folder, 'gemma2'));
  const refused = /"gemma2".* is not written as GGUF/;
  expect(() => write(folder, 'f32')).toThrow(refused);
  expect(() => write(source, 'f32')).toThrow(refused);
  expect(existsSync(file)).toBe(false);
});

it('a window that llama.cpp does not read in this architecture is refused by name', () => {
  make({ model_type: 'mistral', sliding_window: 64 });
  expect(() => write(folder, 'f32')).toThrow(/slidingLayers, .*, cannot be said in a GGUF file of this family/);
});
