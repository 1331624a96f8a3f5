/** Writer of GGUF files for tests: of any metadata and tensors, and of a tiny chat model's folder. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ModelConfig } from '../../src/compute/model/config.ts';
import { headSize, rotaryWidth } from '../../src/compute/model/config.ts';
import { openModel } from '../../src/policy/pretrained/folder.ts';
import { BLOCK_TYPES } from '../../src/policy/pretrained/gguf/blocks.ts';
import { findShards, readWeight } from '../../src/policy/pretrained/shards.ts';

/** Value with its type of the format; a bare one is a string, a uint32 or a boolean. */
export type GgufEntry =
  | string
  | number
  | boolean
  | { readonly f32: number }
  | { readonly strings: readonly string[] }
  | { readonly i32s: readonly number[] }
  | { readonly f32s: readonly number[] };

export interface GgufTensorBytes {
  readonly type: keyof typeof BLOCK_TYPES;
  /** Row-major, as Hugging Face has it. */
  readonly shape: readonly number[];
  readonly bytes: Uint8Array;
}

const ALIGNMENT = 32;

/** Encodes a file. */
export function encodeGguf(
  metadata: Readonly<Record<string, GgufEntry>>,
  tensors: Readonly<Record<string, GgufTensorBytes>>,
  version = 3,
): Buffer {
  const parts: Buffer[] = [Buffer.from('GGUF'), u32(version)];
  parts.push(u64(Object.keys(tensors).length), u64(Object.keys(metadata).length));
  for (const [key, value] of Object.entries(metadata)) parts.push(text(key), encodeEntry(value));
  let offset = 0;
  for (const [name, { type, shape, bytes }] of Object.entries(tensors)) {
    parts.push(text(name), u32(shape.length), ...[...shape].reverse().map(u64), u32(BLOCK_TYPES[type].id), u64(offset));
    offset += padded(bytes.length);
  }
  const header = Buffer.concat(parts);
  const data = Object.values(tensors).map(({ bytes }) => fill(Buffer.from(bytes)));
  return Buffer.concat([fill(header), ...data]);
}

function encodeEntry(value: GgufEntry): Buffer {
  if (typeof value === 'string') return Buffer.concat([u32(8), text(value)]);
  if (typeof value === 'number') return Buffer.concat([u32(4), u32(value)]);
  if (typeof value === 'boolean') return Buffer.concat([u32(7), Buffer.from([value ? 1 : 0])]);
  if ('f32' in value) return Buffer.concat([u32(6), numbers(Float32Array.of(value.f32))]);
  if ('strings' in value) {
    return Buffer.concat([u32(9), u32(8), u64(value.strings.length), ...value.strings.map(text)]);
  }
  if ('i32s' in value)
    return Buffer.concat([u32(9), u32(5), u64(value.i32s.length), numbers(Int32Array.from(value.i32s))]);
  return Buffer.concat([u32(9), u32(6), u64(value.f32s.length), numbers(Float32Array.from(value.f32s))]);
}

function u32(value: number): Buffer {
  return numbers(Uint32Array.of(value));
}

function u64(value: number): Buffer {
  return numbers(BigUint64Array.of(BigInt(value)));
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([u64(bytes.length), bytes]);
}

function numbers({ buffer }: { readonly buffer: ArrayBufferLike }): Buffer {
  return Buffer.from(buffer);
}

function padded(bytes: number): number {
  return Math.ceil(bytes / ALIGNMENT) * ALIGNMENT;
}

function fill(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.alloc(padded(bytes.length) - bytes.length)]);
}

const NAMES: Readonly<Record<string, string>> = {
  'model.embed_tokens': 'token_embd',
  'model.norm': 'output_norm',
  lm_head: 'output',
  input_layernorm: 'attn_norm',
  post_attention_layernorm: 'ffn_norm',
  'self_attn.q_proj': 'attn_q',
  'self_attn.k_proj': 'attn_k',
  'self_attn.v_proj': 'attn_v',
  'self_attn.o_proj': 'attn_output',
  'self_attn.q_norm': 'attn_q_norm',
  'self_attn.k_norm': 'attn_k_norm',
  'mlp.gate_proj': 'ffn_gate',
  'mlp.up_proj': 'ffn_up',
  'mlp.down_proj': 'ffn_down',
  'self_attn.qkv_proj': 'attn_qkv',
  'mlp.gate_up_proj': 'ffn_up',
  pre_feedforward_layernorm: 'ffn_norm',
  post_feedforward_layernorm: 'post_ffw_norm',
};

function ggufName(name: string, { outputNorms }: ModelConfig): string {
  const [, layer, part, kind] = /^(?:model\.layers\.(\d+)\.)?(.*)\.(weight|bias)$/.exec(name)!;
  const named = outputNorms && part === 'post_attention_layernorm' ? 'post_attention_norm' : NAMES[part!];
  return layer === undefined ? `${named}.${kind}` : `blk.${layer}.${named}.${kind}`;
}

/** Parts of the file that holds the model of a folder, in float32. */
export interface GgufParts {
  readonly metadata: Record<string, GgufEntry>;
  readonly tensors: Record<string, GgufTensorBytes>;
}

/** Model of a folder (float32, byte-level pairs) as a GGUF file holds it. @param architecture llama.cpp's name of its family */
export function ggufOf(folder: string, architecture: string): GgufParts {
  const { config } = openModel(folder);
  const tokenizer = JSON.parse(readFileSync(join(folder, 'tokenizer.json'), 'utf8'));
  const added = new Map<string, number>(
    tokenizer.added_tokens.map((one: { content: string; id: number }) => [one.content, one.id]),
  );
  const ids = new Map<number, string>(
    [...Object.entries<number>(tokenizer.model.vocab), ...added].map(([token, id]) => [id, token]),
  );
  const tokens = Array.from({ length: config.vocabSize }, (_, id) => ids.get(id) ?? `[PAD${id}]`);
  const special = new Set(added.keys());
  const metadata: Record<string, GgufEntry> = {
    'general.architecture': architecture,
    ...Object.fromEntries(entriesOf(config).map(([key, value]) => [`${architecture}.${key}`, value])),
    'tokenizer.ggml.model': 'gpt2',
    'tokenizer.ggml.pre': 'qwen2',
    'tokenizer.ggml.tokens': { strings: tokens },
    'tokenizer.ggml.token_type': { i32s: tokens.map((token, id) => (!ids.has(id) ? 5 : special.has(token) ? 3 : 1)) },
    'tokenizer.ggml.merges': { strings: tokenizer.model.merges.map((pair: readonly string[]) => pair.join(' ')) },
    'tokenizer.ggml.eos_token_id': added.get('<|im_end|>')!,
    'tokenizer.chat_template': readFileSync(join(folder, 'chat_template.jinja'), 'utf8'),
  };
  const tensors: Record<string, GgufTensorBytes> = {};
  const factors = (name: string, values: readonly number[]) => {
    const bytes = new Uint8Array(Float32Array.from(values).buffer);
    tensors[`rope_factors_${name}.weight`] = { type: 'F32', shape: [values.length], bytes };
  };
  const { rope_scaling: scaling } = JSON.parse(readFileSync(join(folder, 'config.json'), 'utf8'));
  if (scaling?.short_factor) factors('short', scaling.short_factor);
  if (scaling?.long_factor) factors('long', scaling.long_factor);
  // As the files have them: what is fused lies there as one.
  for (const [name, stored] of findShards(folder).weights) {
    const read = readWeight(stored);
    const values = config.centredGains && /norm\.weight$/.test(name) ? read.map((x) => x + 1) : read;
    const turned =
      ['llama', 'smollm3'].includes(architecture) && /[qk]_proj/.test(name)
        ? interleave(values, stored.shape, config)
        : values;
    const bytes = new Uint8Array(turned.buffer, turned.byteOffset, turned.byteLength);
    tensors[ggufName(name, config)] = { type: 'F32', shape: stored.shape, bytes };
  }
  return { metadata, tensors };
}

function entriesOf(config: ModelConfig): [string, GgufEntry][] {
  return [
    ['block_count', config.layers],
    ['context_length', config.maxPositions],
    ['embedding_length', config.hiddenSize],
    ['feed_forward_length', config.intermediateSize],
    ['attention.head_count', config.heads],
    ['attention.head_count_kv', config.kvHeads],
    ['attention.layer_norm_rms_epsilon', { f32: config.rmsNormEps }],
    ['rope.freq_base', { f32: config.ropeTheta }],
    ['attention.key_length', headSize(config)],
    ['attention.value_length', headSize(config)],
    ['rope.dimension_count', rotaryWidth(config)],
    ['vocab_size', config.vocabSize],
    ...optional('attention.sliding_window', config.slidingWindow),
    ...optional('attn_logit_softcapping', config.attentionCap && { f32: config.attentionCap }),
    ...optional('final_logit_softcapping', config.logitCap && { f32: config.logitCap }),
    ...optional('rope.scaling.attn_factor', config.ropeScale && { f32: config.ropeScale }),
    ...optional('rope.scaling.original_context_length', config.fusedProjections && config.maxPositions),
  ];
}

function optional(key: string, value: GgufEntry | false | undefined): [string, GgufEntry][] {
  return value ? [[key, value]] : [];
}

/** Rows of each head from Hugging Face's order (2, half) to llama.cpp's (half, 2), as its converter turns them. */
function interleave(values: Float32Array, shape: readonly number[], config: ModelConfig): Float32Array {
  const columns = shape[1] ?? 1;
  const width = headSize(config);
  const out = new Float32Array(values.length);
  for (let row = 0; row < shape[0]!; row++) {
    const head = Math.floor(row / width);
    const within = row % width;
    const to = head * width + (within % (width / 2)) * 2 + Math.floor(within / (width / 2));
    out.set(values.subarray(row * columns, (row + 1) * columns), to * columns);
  }
  return out;
}

/** Writes the model of a folder as a GGUF file. */
export function writeGguf(file: string, { metadata, tensors }: GgufParts): void {
  writeFileSync(file, encodeGguf(metadata, tensors));
}
