import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { writeTinyChatModel } from '../../../../experiments/tiny-chat-model.ts';
import type { ModelConfig } from '../../../../src/compute/model/config.ts';
import { openModel } from '../../../../src/policy/pretrained/folder.ts';
import { readGguf } from '../../../../src/policy/pretrained/gguf/file.ts';
import { locateModel } from '../../../../src/policy/pretrained/locate.ts';
import { makeOnce } from '../../../../src/policy/pretrained/model-cache.ts';
import { readWeight } from '../../../../src/policy/pretrained/shards.ts';
import { openText } from '../../../../src/text/templates/model-text.ts';
import { encodeGguf, type GgufParts, ggufOf, writeGguf } from '../../../support/write-gguf.ts';

let dir: string;
let folder: string;
let file: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'longplay-gguf-'));
  folder = join(dir, 'folder');
  file = join(dir, 'tiny.gguf');
  vi.stubEnv('LONGPLAY_CACHE', join(dir, 'cache'));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(dir, { recursive: true, force: true });
});

const text = [
  'the cat sat on the mat and the dog sat on the log',
  'get 4 oak logs',
  'craft 1 oak planks using 1 oak logs',
];

const GEMMA = {
  ...{ hidden_act: undefined, hidden_activation: 'gelu_pytorch_tanh', head_dim: 32, query_pre_attn_scalar: 32 },
};

/** Fields of `config.json` by llama.cpp's name of the family. */
const FAMILIES = {
  llama: { model_type: 'llama' },
  qwen2: { model_type: 'qwen2' },
  qwen3: { model_type: 'qwen3', head_dim: 32 },
  smollm3: { model_type: 'smollm3', num_hidden_layers: 4, no_rope_layers: [1, 1, 1, 0] },
  phi3: {
    ...{ model_type: 'phi3', sliding_window: 100, partial_rotary_factor: 0.75, original_max_position_embeddings: 1024 },
    rope_scaling: { type: 'longrope', short_factor: Array(6).fill(1.1), long_factor: Array(6).fill(4) },
  },
  gemma2: { ...GEMMA, model_type: 'gemma2', sliding_window: 100 },
  gemma3: { ...GEMMA, model_type: 'gemma3_text', sliding_window: 100, num_hidden_layers: 7, rope_theta: 1e6 },
};

function tiny(architecture: keyof typeof FAMILIES = 'llama'): GgufParts {
  const config = FAMILIES[architecture];
  writeTinyChatModel(folder, { text, merges: 40, config });
  return ggufOf(folder, architecture);
}

describe('a GGUF file', () => {
  it.each(Object.keys(FAMILIES) as (keyof typeof FAMILIES)[])(
    'of %s is the same model as the folder it was made of',
    (architecture) => {
      writeGguf(file, tiny(architecture));
      const [ours, theirs] = [openModel(file), openModel(folder)];
      const near = (config: ModelConfig) => ({ ...config, ropeScale: Math.fround(config.ropeScale ?? 1) });
      expect(near(ours.config)).toEqual(near(theirs.config));
      expect(ours.shards.weights.size).toBe(theirs.shards.weights.size);
      expect(theirs.shards.weights.size).toBeGreaterThan(19);
      for (const [name, stored] of theirs.shards.weights) {
        expect(readWeight(ours.shards.weights.get(name)!), name).toEqual(readWeight(stored));
      }
      const [a, b] = [openText(ours.folder), openText(folder)];
      expect(a.template!.text).toBe(b.template!.text);
      const line = 'the dog sat <|im_start|> on 1234 oak logs\n½';
      expect(a.tokenizer.encode(line)).toEqual(b.tokenizer.encode(line));
      expect(a.tokenizer.encodePlain(line)).toEqual(b.tokenizer.encodePlain(line));
      expect(a.tokenizer.decode(b.tokenizer.encode(line))).toBe(b.tokenizer.decode(b.tokenizer.encode(line)));
      expect(ours.endTokens).toEqual([a.tokenizer.special.get('<|im_end|>')]);
    },
  );

  it('may list divisors of the rotary frequencies', () => {
    const { metadata, tensors } = tiny();
    const factors = Float32Array.of(1, 1, 1.5, 8, 8, 8, 8, 8);
    const listed = { type: 'F32', shape: [8], bytes: new Uint8Array(factors.buffer) } as const;
    writeGguf(file, { metadata, tensors: { ...tensors, 'rope_freqs.weight': listed } });
    expect(openModel(file).config.ropeFactors).toEqual([...factors]);
    writeGguf(file, { metadata, tensors: { ...tensors, 'rope_freqs.weight': { ...listed, shape: [4, 2] } } });
    expect(() => openModel(file)).toThrow('rope_freqs.weight is no short list of F32');
    writeGguf(file, {
      metadata,
      tensors: { ...tensors, 'rope_freqs.weight': { ...listed, shape: [4], bytes: listed.bytes.subarray(0, 16) } },
    });
    expect(() => openModel(file)).toThrow('rope_scaling.short_factor is [1,1,1.5,8], expected 8 positive numbers');
  });

  it('of Mistral, which is of Llama’s architecture, may name a window', () => {
    const { metadata, tensors } = tiny();
    writeGguf(file, { metadata: { ...metadata, 'llama.attention.sliding_window': 100 }, tensors });
    expect(openModel(file).config).toMatchObject({ slidingWindow: 100, slidingLayers: [0, 1] });
  });

  it('of Gemma may list its sliding layers, and stretch its positions', () => {
    const { metadata, tensors } = tiny('gemma3');
    const more = {
      'gemma3.attention.sliding_window_pattern': 3,
      'gemma3.rope.freq_base_swa': { f32: 5000 },
      'gemma3.rope.scaling.factor': { f32: 8 },
    };
    writeGguf(file, { metadata: { ...metadata, ...more }, tensors });
    const { slidingLayers, localRopeTheta, ropeFactors } = openModel(file).config;
    expect(slidingLayers).toEqual([0, 1, 3, 4, 6]);
    expect(localRopeTheta).toBe(5000);
    expect(ropeFactors).toEqual(Array(16).fill(8));
  });

  it.each([
    ['llama', 'rope.scaling.attn_factor', { f32: 1.5 }, 'expected 1 without a tensor rope_factors_short.weight'],
    ['llama', 'rope.freq_base_swa', { f32: 1e4 }, 'all layers turn alike'],
    ['llama', 'final_logit_softcapping', { f32: 30 }, 'final_logit_softcapping is 30'],
    ['llama', 'attention.sliding_window_pattern', 2, 'layer_types'],
    ['phi3', 'rope.scaling.type', 'yarn', 'expected "none" or "longrope"'],
    ['phi3', 'rope.scaling.factor', { f32: 4 }, 'rope.scaling.type is "linear"'],
    ['gemma2', 'attention.sliding_window_pattern', 'all', 'is no number and no list of 2'],
  ] as const)('of %s with %s %j is refused by that name', (architecture, key, value, message) => {
    const { metadata, tensors } = tiny(architecture);
    writeGguf(file, { metadata: { ...metadata, [`${architecture}.${key}`]: value }, tensors });
    expect(() => openModel(file)).toThrow(message);
  });

  it('of Gemma has its norms in float32', () => {
    const { metadata, tensors } = tiny('gemma2');
    const norm = tensors['output_norm.weight']!;
    const half = { ...norm, type: 'F16', bytes: norm.bytes.subarray(0, norm.bytes.length / 2) } as const;
    writeGguf(file, { metadata, tensors: { ...tensors, 'output_norm.weight': half } });
    expect(() => openModel(file)).toThrow('tensor output_norm.weight is F16, expected F32: a norm');
  });

  it('keeps halves as they are, with their rows in order', () => {
    const { metadata, tensors } = tiny();
    const q = tensors['blk.0.attn_q.weight']!;
    const halves = new Uint16Array(q.shape[0]! * q.shape[1]!).map((_, i) => 0x3c00 + (i % 1024));
    const halved = { ...q, type: 'F16', bytes: new Uint8Array(halves.buffer) } as const;
    writeGguf(file, { metadata, tensors: { ...tensors, 'blk.0.attn_q.weight': halved } });
    const { source, shape } = openModel(file).shards.weights.get('model.layers.0.self_attn.q_proj.weight')!;
    expect(source.dtype).toBe('f16');
    const values = readWeight({ source, shape });
    // Heads of 16 rows: the second row of Hugging Face's order is the third of the file's.
    expect(values[shape[1]!]).toBe(1 + ((2 * shape[1]!) % 1024) / 1024);
  });

  it('is converted once, and again where it is another one', () => {
    writeGguf(file, tiny());
    const first = locateModel(file);
    expect(locateModel(file)).toBe(first);
    const { metadata, tensors } = tiny();
    writeGguf(file, { metadata: { ...metadata, 'llama.context_length': 77 }, tensors });
    expect(openModel(file).config.maxPositions).toBe(77);
    expect(readdirSync(join(dir, 'cache', 'gguf')).length).toBe(2);
  });

  it('may lie in a folder of its own', () => {
    const parts = tiny();
    mkdirSync(join(dir, 'alone'));
    writeGguf(join(dir, 'alone', 'a.gguf'), parts);
    expect(openModel(join(dir, 'alone')).config.layers).toBe(2);
    writeGguf(join(dir, 'alone', 'b.gguf'), parts);
    expect(() => openModel(join(dir, 'alone'))).toThrow(
      "expected one GGUF file or a file's path, found a.gguf, b.gguf",
    );
  });

  it('of version 2 is read too, of others not', () => {
    const { metadata, tensors } = tiny();
    writeFileSync(file, encodeGguf(metadata, tensors, 2));
    expect(readGguf(file).tensors.size).toBe(Object.keys(tensors).length);
    writeFileSync(file, encodeGguf(metadata, tensors, 1));
    expect(() => locateModel(file)).toThrow('GGUF version 1, expected 2 or 3');
    writeFileSync(file, encodeGguf(metadata, tensors, 0x03000000));
    expect(() => locateModel(file)).toThrow('for big-endian machines');
  });
});

/** Place of a text in a file, and a number of 64 bits put at some distance from it. */
function poke(bytes: Buffer, after: string, distance: number, value: bigint): Buffer {
  const at = bytes.indexOf(after) + after.length + distance;
  bytes.writeBigUInt64LE(value, at);
  return bytes;
}

describe('a GGUF file that cannot be used', () => {
  const change = (metadata: GgufParts['metadata'], dropped: readonly string[] = []) => {
    const parts = tiny();
    const kept = Object.entries({ ...parts.metadata, ...metadata }).filter(([key]) => !dropped.includes(key));
    return encodeGguf(Object.fromEntries(kept), parts.tensors);
  };
  const whole = () => {
    const { metadata, tensors } = tiny();
    return encodeGguf(metadata, tensors);
  };
  const withTensors = (edit: (tensors: GgufParts['tensors']) => GgufParts['tensors']) => {
    const { metadata, tensors } = tiny();
    return encodeGguf(metadata, edit(tensors));
  };
  it.each<readonly [what: string, bytes: () => Uint8Array, message: RegExp]>([
    ['nothing in it', () => Buffer.alloc(0), /cut short: 0 bytes/],
    [
      'other bytes',
      () => Buffer.from('this is some text, and none of a model\n'),
      /no GGUF file: it begins with "this"/,
    ],
    ['its end cut off', () => whole().subarray(0, -64), /cut short: tensor ".*" ends at byte \d+, the file at \d+/],
    ['half of its header', () => whole().subarray(0, 3000), /cut short: /],
    [
      'a family that is not known',
      () => change({ 'general.architecture': 'rwkv7' }),
      /general\.architecture is "rwkv7", expected llama, qwen2, qwen3, smollm3/,
    ],
    ['no family', () => change({}, ['general.architecture']), /general\.architecture is nothing/],
    [
      'a field that is not known',
      () => change({ 'llama.logit_scale': { f32: 2 } }),
      /"llama\.logit_scale" is 2: it is not known here/,
    ],
    ['experts', () => change({ 'llama.expert_count': 8 }), /llama\.expert_count/],
    ['scaled positions', () => change({ 'llama.rope.scaling.type': 'yarn' }), /rope\.scaling\.type is "yarn"/],
    ['no layers', () => change({ 'llama.block_count': 0 }), /tiny\.gguf: num_hidden_layers is 0/],
    ['a million layers', () => change({ 'llama.block_count': 1_000_000 }), /num_hidden_layers is 1000000/],
    ['an endless number', () => change({ 'llama.rope.freq_base': { f32: Number.POSITIVE_INFINITY } }), /rope_theta is/],
    [
      'a text for a number',
      () => change({ 'llama.attention.head_count': 'four' }),
      /head_count is "four", expected a number/,
    ],
    ['more layers than tensors', () => change({ 'llama.block_count': 3 }), /weight model\.layers\.2\..* is missing/],
    [
      'fewer layers than tensors',
      () => change({ 'llama.block_count': 1 }),
      /tensor blk\.1\..* is no part of the model/,
    ],
    [
      'another width',
      () => change({ 'llama.feed_forward_length': 96 }),
      /tensor blk\.0\.ffn_gate\.weight is \[160, 64\], expected \[96, 64\]/,
    ],
    [
      'no tokenizer',
      () => change({}, ['tokenizer.ggml.model']),
      /it has no tokenizer: tokenizer\.ggml\.model is missing/,
    ],
    [
      'no tokens',
      () => change({}, ['tokenizer.ggml.tokens']),
      /it has no tokenizer: tokenizer\.ggml\.tokens is missing/,
    ],
    ['a tokenizer that is not known', () => change({ 'tokenizer.ggml.model': 't5' }), /tokenizer\.ggml\.model is "t5"/],
    [
      'words cut in an unknown way',
      () => change({ 'tokenizer.ggml.pre': 'default' }),
      /tokenizer\.ggml\.pre is "default", expected gpt-2, smollm/,
    ],
    [
      'merges of one part',
      () => change({ 'tokenizer.ggml.merges': { strings: ['ab'] } }),
      /tokenizer\.ggml\.merges has "ab"/,
    ],
    [
      'a template that is cut off',
      () => change({ 'tokenizer.chat_template': '{% for m in messages %}{{ m.' }),
      /tiny\.gguf: the chat template cannot be read/,
    ],
    ['one part of several', () => change({ 'split.count': 3 }), /one of 3 parts; join them first/],
    [
      'a tensor that is not known',
      () => withTensors((all) => ({ ...all, 'blk.0.ffn_gate_inp.weight': all['blk.0.ffn_norm.weight']! })),
      /tensor "blk\.0\.ffn_gate_inp\.weight" is not known here/,
    ],
    [
      'no embeddings',
      () => withTensors(({ 'token_embd.weight': _, ...rest }) => rest),
      /it has no tensor "token_embd\.weight"/,
    ],
    [
      '2^60 tensors',
      () => poke(whole(), 'GGUF', 4, 2n ** 60n),
      /it claims 1152921504606846976 tensors, expected at most/,
    ],
    ['60,000 tensors', () => poke(whole(), 'GGUF', 4, 60_000n), /cut short: /],
    ['2^60 entries', () => poke(whole(), 'GGUF', 12, 2n ** 60n), /it claims 1152921504606846976 entries of metadata/],
    [
      'a string past its end',
      () => poke(whole(), 'general.architecture', 4, 2n ** 23n),
      /cut short: it claims 8388608 bytes in general\.architecture/,
    ],
    [
      'a string of 2^63',
      () => poke(whole(), 'general.architecture', 4, 2n ** 63n),
      /it claims 9223372036854775808 bytes/,
    ],
    [
      'a list past its end',
      () => poke(whole(), 'tokenizer.ggml.tokens', 8, 2n ** 21n),
      /cut short: it claims 2097152 values of tokenizer\.ggml\.tokens/,
    ],
    [
      'a tensor of 2^60 rows',
      () => poke(whole(), 'token_embd.weight', 12, 2n ** 60n),
      /a size of tensor token_embd\.weight is 1152921504606846976/,
    ],
    [
      'a tensor of 2^40 rows',
      () => poke(whole(), 'token_embd.weight', 12, 2n ** 40n),
      /cut short: tensor "token_embd\.weight" ends at/,
    ],
    [
      'a tensor far behind its end',
      () => poke(whole(), 'token_embd.weight', 24, 2n ** 50n),
      /cut short: tensor "token_embd\.weight"/,
    ],
  ])('with %s is refused in one line', (_what, bytes, message) => {
    writeFileSync(file, bytes());
    const opening = () => locateModel(file);
    expect(opening).toThrow(message);
    expect(opening).toThrow(
      expect.objectContaining({
        code: 'BAD_CHECKPOINT',
        message: expect.stringMatching(/^[^\n]*tiny\.gguf: [^\n]{1,400}$/),
      }),
    );
    // Nothing half made is left.
    const made = join(dir, 'cache', 'gguf');
    expect(existsSync(made) ? readdirSync(made) : []).toEqual([]);
  });

  it('of a type that is not read is refused by its name', () => {
    const bytes = whole();
    const name = 'token_embd.weight';
    bytes.writeUInt32LE(20, bytes.indexOf(name) + name.length + 20);
    writeFileSync(file, bytes);
    expect(() => locateModel(file)).toThrow('tensor "token_embd.weight" is of type IQ4_NL, expected F32, F16, BF16');
  });

  it('that is not there, or is a folder of nothing, is refused', () => {
    expect(() => locateModel(file)).toThrow('there is no such file or folder');
    mkdirSync(folder);
    expect(() => openModel(folder)).toThrow('config.json is missing');
  });
});

describe('a folder of the cache', () => {
  it('appears whole or not at all', () => {
    const made = join(dir, 'cache', 'one');
    const failing = (unfinished: string) => {
      writeFileSync(join(unfinished, 'half'), 'x');
      throw new Error('no more room');
    };
    expect(() => makeOnce(made, failing)).toThrow('no more room');
    expect(readdirSync(join(dir, 'cache'))).toEqual([]);
    makeOnce(made, (unfinished) => writeFileSync(join(unfinished, 'whole'), 'x'));
    makeOnce(made, failing);
    expect(readdirSync(made)).toEqual(['whole']);
  });

  it('is made where the process that was making it is gone', () => {
    const made = join(dir, 'cache', 'one');
    makeOnce(join(dir, 'cache', 'other'), (unfinished) => {
      // The lock of a process of this machine, under a number that none has.
      const lock = readFileSync(`${join(dir, 'cache', 'other')}.lock`, 'utf8');
      const gone = lock.replace(/\d+$/, '999999999');
      writeFileSync(`${made}.lock`, gone);
      mkdirSync(`${made}.${gone}-0123abcd.tmp`);
      writeFileSync(join(unfinished, 'file'), '');
    });
    makeOnce(made, (unfinished) => writeFileSync(join(unfinished, 'whole'), 'x'));
    expect(readdirSync(join(dir, 'cache')).sort()).toEqual(['one', 'other']);
  });
});
