/**
 * Architecture of a GGUF file as Hugging Face has it: a `config.json`, and for each tensor its name and what llama.cpp
 * did to its numbers. Everything in the metadata of an architecture that is not known here is refused: it may change
 * what the model computes.
 */
import { readBytes, widen } from '../../../compute/tensor/fixed.ts';
import { describeValue } from '../../../core/describe-value.ts';
import { UserError } from '../../../core/errors.ts';
import type { Json } from '../../../text/templates/model-text.ts';
import { FAMILIES, familyOfGguf } from '../families.ts';
import type { GgufFile, GgufTensor, GgufValue } from './file.ts';

/** Tensor as Hugging Face names it. */
export interface NamedTensor {
  readonly name: string;
  readonly tensor: GgufTensor;
  /**
   * Heads whose rows llama.cpp has put into another order, for its rotary form: of each head's rows, (half, 2) where
   * Hugging Face has (2, half). 0: rows are in their order.
   */
  readonly interleavedHeads: number;
}

export interface Architecture {
  /** Fields of `config.json`. */
  readonly config: Json;
  readonly tensors: readonly NamedTensor[];
}

/** Names of an architecture's entries that are read, without the architecture's own before them. */
const READ: ReadonlySet<string> = new Set([
  'block_count',
  'context_length',
  'embedding_length',
  'feed_forward_length',
  'attention.head_count',
  'attention.head_count_kv',
  'attention.key_length',
  'attention.value_length',
  'attention.layer_norm_rms_epsilon',
  'attention.sliding_window',
  'rope.freq_base',
  'rope.dimension_count',
  'rope.scaling.type',
  'vocab_size',
]);

/** Entries that change nothing: of the file's history, or of a scaling whose kind is refused or read by itself. */
const HARMLESS: ReadonlySet<string> = new Set([
  'tensor_data_layout',
  'rope.scaling.finetuned',
  'rope.scaling.original_context_length',
]);

const LAYER_PARTS: Readonly<Record<string, string>> = {
  attn_norm: 'input_layernorm',
  attn_q: 'self_attn.q_proj',
  attn_k: 'self_attn.k_proj',
  attn_v: 'self_attn.v_proj',
  attn_q_norm: 'self_attn.q_norm',
  attn_k_norm: 'self_attn.k_norm',
  attn_output: 'self_attn.o_proj',
  ffn_norm: 'post_attention_layernorm',
  ffn_gate: 'mlp.gate_proj',
  ffn_up: 'mlp.up_proj',
  ffn_down: 'mlp.down_proj',
};

const PARTS: Readonly<Record<string, string>> = {
  token_embd: 'model.embed_tokens',
  output: 'lm_head',
  output_norm: 'model.norm',
};

/**
 * Reads the architecture of a file.
 * @throws {UserError} BAD_CHECKPOINT naming the entry or the tensor
 */
export function readArchitecture(gguf: GgufFile): Architecture {
  const { file, metadata, tensors } = gguf;
  const refuse = (what: string): never => {
    throw new UserError('BAD_CHECKPOINT', `${file}: ${what}`);
  };
  if (Number(metadata.get('split.count') ?? 1) > 1) {
    refuse(`one of ${describeValue(metadata.get('split.count'))} parts; join them first (llama-gguf-split --merge)`);
  }
  const kind = metadata.get('general.architecture');
  // Mistral's files are of Llama's architecture.
  const family = familyOfGguf(kind);
  if (!family) {
    const known = [...new Set(FAMILIES.flatMap(({ gguf }) => gguf ?? []))].join(', ');
    return refuse(`general.architecture is ${describeValue(kind)}, expected ${known}`);
  }
  const prefix = `${kind}.`;
  const entry = (name: string): GgufValue | undefined => metadata.get(prefix + name);
  for (const [key, value] of metadata) {
    if (!key.startsWith(prefix)) continue;
    const name = key.slice(prefix.length);
    if (READ.has(name) || HARMLESS.has(name) || value === 0 || value === false) continue;
    refuse(
      `${describeValue(key)} is ${describeValue(value)}: it is not known here and may change what the model computes`,
    );
  }
  const number = (name: string): number => {
    const value = entry(name);
    return typeof value === 'number' ? value : refuse(`${prefix}${name} is ${describeValue(value)}, expected a number`);
  };
  const optional = (name: string): number | undefined => (entry(name) === undefined ? undefined : number(name));
  const heads = number('attention.head_count');
  const kvHeads = optional('attention.head_count_kv') ?? heads;
  const hidden = number('embedding_length');
  const headDim = optional('attention.key_length') ?? hidden / heads;
  for (const [name, expected] of [
    ['attention.value_length', headDim],
    ['rope.dimension_count', headDim],
  ] as const) {
    const found = optional(name) ?? expected;
    if (found !== expected) refuse(`${prefix}${name} is ${found}, expected ${expected}: the width of a head`);
  }
  const scaling = entry('rope.scaling.type') ?? 'none';
  if (scaling !== 'none') refuse(`${prefix}rope.scaling.type is ${describeValue(scaling)}, expected "none"`);
  const table = tensors.get('token_embd.weight');
  if (!table) return refuse('it has no tensor "token_embd.weight"');
  const window = optional('attention.sliding_window');
  const layers = number('block_count');
  const factors = readRopeFactors(gguf);
  return {
    config: {
      // Llama's files have no window; those of Mistral, which are of its architecture, may have one.
      model_type: family.modelType === 'llama' && window ? 'mistral' : family.modelType,
      hidden_size: hidden,
      num_hidden_layers: layers,
      num_attention_heads: heads,
      num_key_value_heads: kvHeads,
      ...(headDim * heads === hidden ? {} : { head_dim: headDim }),
      intermediate_size: number('feed_forward_length'),
      vocab_size: table.shape[0] ?? 0,
      max_position_embeddings: number('context_length'),
      rms_norm_eps: shortest(number('attention.layer_norm_rms_epsilon')),
      rope_theta: optional('rope.freq_base') ?? 10_000,
      tie_word_embeddings: !tensors.has('output.weight'),
      hidden_act: 'silu',
      ...(window ? { sliding_window: window } : {}),
      ...(factors ? { rope_scaling: factors } : {}),
      ...(family.noRopeInterval ? { no_rope_layers: everyOther(layers, family.noRopeInterval) } : {}),
    },
    tensors: [...tensors.values()]
      .filter(({ name }) => name !== ROPE_FACTORS)
      .map((tensor) => ({
        name: nameOf(tensor.name) ?? refuse(`tensor ${describeValue(tensor.name)} is not known here`),
        tensor,
        interleavedHeads: family.interleaves ? interleavedHeads(tensor.name, heads, kvHeads) : 0,
      })),
  };
}

/** Tensor of the divisors of the rotary frequencies. */
const ROPE_FACTORS = 'rope_freqs.weight';

/** Divisors of the rotary frequencies, as `config.json` would list them; undefined where the file has none. */
function readRopeFactors({ file, tensors }: GgufFile): Json | undefined {
  const tensor = tensors.get(ROPE_FACTORS);
  if (!tensor) return undefined;
  if (tensor.type !== 'F32' || tensor.shape.length !== 1 || tensor.bytes > MAX_FACTOR_BYTES) {
    throw new UserError('BAD_CHECKPOINT', `${file}: tensor ${ROPE_FACTORS} is no short list of F32`);
  }
  const factors = [...widen(readBytes({ ...tensor, file }), 'f32')];
  return { rope_type: 'longrope', short_factor: factors, long_factor: factors, attention_factor: 1 };
}

/** Bytes of the divisors: 4,096 numbers. */
const MAX_FACTOR_BYTES = 2 ** 14;

/** 1 for each layer, 0 for every n-th: llama.cpp knows the layers without positions by their family alone. */
function everyOther(layers: number, interval: number): readonly number[] {
  const count = Math.min(Math.max(0, layers), 1024) || 0;
  return Array.from({ length: count }, (_, layer) => ((layer + 1) % interval === 0 ? 0 : 1));
}

function nameOf(tensor: string): string | undefined {
  const [, layer, part, kind] = /^(?:blk\.(\d{1,5})\.)?([a-z_]{1,40})\.(weight|bias)$/.exec(tensor) ?? [];
  if (part === undefined) return undefined;
  const parts = layer === undefined ? PARTS : LAYER_PARTS;
  if (!Object.hasOwn(parts, part)) return undefined;
  return layer === undefined ? `${parts[part]}.${kind}` : `model.layers.${layer}.${parts[part]}.${kind}`;
}

function interleavedHeads(tensor: string, heads: number, kvHeads: number): number {
  if (/\.attn_q\.(weight|bias)$/.test(tensor)) return heads;
  return /\.attn_k\.(weight|bias)$/.test(tensor) ? kvHeads : 0;
}

/** Shortest decimal that is this float32: the metadata holds 1e-5 as 0.0000099999997…. */
function shortest(value: number): number {
  for (let digits = 1; digits <= 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === Math.fround(value)) return short;
  }
  return value;
}
