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
  /** Added to the numbers that the file holds: −1 for gains that Hugging Face keeps less 1. */
  readonly shift: number;
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
  'attention.sliding_window_pattern',
  'attn_logit_softcapping',
  'final_logit_softcapping',
  'rope.freq_base',
  'rope.freq_base_swa',
  'rope.dimension_count',
  'rope.scaling.type',
  'rope.scaling.factor',
  'rope.scaling.attn_factor',
  'vocab_size',
]);

/** Entries that change nothing: of the file's history, or of a scaling whose kind is refused or read by itself. */
const HARMLESS: ReadonlySet<string> = new Set([
  'tensor_data_layout',
  'rope.scaling.finetuned',
  'rope.scaling.original_context_length',
]);

/** Parts of a layer by llama.cpp's names. */
export const LAYER_PARTS: Readonly<Record<string, string>> = {
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

const GEMMA_PARTS: Readonly<Record<string, string>> = {
  ...LAYER_PARTS,
  post_attention_norm: 'post_attention_layernorm',
  ffn_norm: 'pre_feedforward_layernorm',
  post_ffw_norm: 'post_feedforward_layernorm',
};

const { attn_q: _q, attn_k: _k, attn_v: _v, ffn_gate: _gate, ...WHOLE_PARTS } = LAYER_PARTS;
const FUSED_PARTS: Readonly<Record<string, string>> = {
  ...WHOLE_PARTS,
  attn_qkv: 'self_attn.qkv_proj',
  ffn_up: 'mlp.gate_up_proj',
};

/** Parts beside the layers by llama.cpp's names. */
export const PARTS: Readonly<Record<string, string>> = {
  token_embd: 'model.embed_tokens',
  output: 'lm_head',
  output_norm: 'model.norm',
};

/**
 * Reads the architecture of a file.
 * @throws {UserError} BAD_CHECKPOINT naming the entry or the tensor
 */
export function readArchitecture(gguf: Pick<GgufFile, 'file' | 'metadata' | 'tensors'>): Architecture {
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
  const turned = optional('rope.dimension_count') ?? headDim;
  for (const [name, found] of [
    ['attention.value_length', optional('attention.value_length') ?? headDim],
    ['rope.dimension_count', family.fusedProjections ? headDim : turned],
  ] as const) {
    if (found !== headDim) refuse(`${prefix}${name} is ${found}, expected ${headDim}: the width of a head`);
  }
  // llama.cpp scales by a factor where no type is named.
  const scaling = entry('rope.scaling.type') ?? (entry('rope.scaling.factor') === undefined ? 'none' : 'linear');
  const scalings = family.fusedProjections ? ['none', 'longrope'] : ['none', 'linear'];
  if (!scalings.includes(scaling as string)) {
    const expected = scalings.map((one) => `"${one}"`).join(' or ');
    refuse(`${prefix}rope.scaling.type is ${describeValue(scaling)}, expected ${expected}`);
  }
  const localBase = optional('rope.freq_base_swa');
  if (localBase !== undefined && family.localRopeTheta === undefined) {
    refuse(`${prefix}rope.freq_base_swa is ${localBase}, expected none: all layers turn alike`);
  }
  const table = tensors.get('token_embd.weight');
  if (!table) return refuse('it has no tensor "token_embd.weight"');
  const window = optional('attention.sliding_window');
  const layers = number('block_count');
  const attention = shortest(optional('rope.scaling.attn_factor') ?? 1);
  const listed = readRopeFactors(gguf, attention, optional('rope.scaling.original_context_length'));
  const linear = scaling === 'linear' ? { rope_type: 'linear', factor: number('rope.scaling.factor') } : undefined;
  if (attention !== 1 && !tensors.has(SHORT_FACTORS)) {
    refuse(`${prefix}rope.scaling.attn_factor is ${attention}, expected 1 without a tensor ${SHORT_FACTORS}`);
  }
  if (listed && linear) refuse(`${prefix}rope.scaling.factor stands beside a tensor of factors, expected one of them`);
  const factors = listed ?? linear;
  const sliding = readSliding(entry('attention.sliding_window_pattern'), layers);
  if (sliding === null) refuse(`${prefix}attention.sliding_window_pattern is no number and no list of ${layers}`);
  const capped = (name: string, field: string) => {
    const cap = optional(name);
    return cap === undefined ? {} : { [field]: cap };
  };
  const parts = family.gemma ? GEMMA_PARTS : family.fusedProjections ? FUSED_PARTS : LAYER_PARTS;
  return {
    config: {
      // Llama's files have no window; those of Mistral, which are of its architecture, may have one.
      model_type: family.modelType === 'llama' && window ? 'mistral' : family.modelType,
      hidden_size: hidden,
      num_hidden_layers: layers,
      num_attention_heads: heads,
      num_key_value_heads: kvHeads,
      ...(headDim * heads === hidden && family.headDim === undefined ? {} : { head_dim: headDim }),
      intermediate_size: number('feed_forward_length'),
      vocab_size: table.shape[0] ?? 0,
      max_position_embeddings: number('context_length'),
      rms_norm_eps: shortest(number('attention.layer_norm_rms_epsilon')),
      rope_theta: optional('rope.freq_base') ?? family.ropeTheta ?? 10_000,
      ...(localBase === undefined ? {} : { rope_local_base_freq: localBase }),
      ...(turned === headDim ? {} : { partial_rotary_factor: turned / headDim }),
      tie_word_embeddings: !tensors.has('output.weight'),
      [family.gemma ? 'hidden_activation' : 'hidden_act']: family.gemma ? 'gelu_pytorch_tanh' : 'silu',
      ...(family.gemma ? { query_pre_attn_scalar: queryScalar(hidden, heads, headDim, layers) } : {}),
      ...capped('attn_logit_softcapping', 'attn_logit_softcapping'),
      ...capped('final_logit_softcapping', 'final_logit_softcapping'),
      // Where the file names no window, Gemma 2 has the one that it was trained with, and others have none.
      ...(window ? { sliding_window: window } : kind === 'gemma2' ? {} : { sliding_window: null }),
      ...(sliding ? { layer_types: sliding } : {}),
      ...(factors ? { rope_scaling: factors } : {}),
      ...(family.noRopeInterval ? { no_rope_layers: everyOther(layers, family.noRopeInterval) } : {}),
    },
    tensors: [...tensors.values()]
      .filter(({ name }) => !ROPE_TENSORS.has(name))
      .map((tensor) => ({
        name: nameOf(tensor.name, parts) ?? refuse(`tensor ${describeValue(tensor.name)} is not known here`),
        tensor,
        interleavedHeads: family.interleaves ? countInterleavedHeads(tensor.name, heads, kvHeads) : 0,
        shift: family.gemma && /norm\.weight$/.test(tensor.name) ? -1 : 0,
      })),
  };
}

/** Tensors of the divisors of the rotary frequencies: one list, or two of LongRoPE. */
export const ROPE_FACTORS = 'rope_freqs.weight';
const SHORT_FACTORS = 'rope_factors_short.weight';
const LONG_FACTORS = 'rope_factors_long.weight';
const ROPE_TENSORS: ReadonlySet<string> = new Set([ROPE_FACTORS, SHORT_FACTORS, LONG_FACTORS]);

/**
 * Divisors of the rotary frequencies, as `config.json` would list them; undefined where the file has none.
 * @param attention factor on cosines and sines
 * @param original  context up to which the first of two lists holds
 */
function readRopeFactors(
  { file, tensors }: Pick<GgufFile, 'file' | 'tensors'>,
  attention: number,
  original: number | undefined,
): Json | undefined {
  const list = (name: string): readonly number[] | undefined => {
    const tensor = tensors.get(name);
    if (!tensor) return undefined;
    if (tensor.type !== 'F32' || tensor.shape.length !== 1 || tensor.bytes > MAX_FACTOR_BYTES) {
      throw new UserError('BAD_CHECKPOINT', `${file}: tensor ${name} is no short list of F32`);
    }
    return [...widen(readBytes({ ...tensor, file }), 'f32')].map(shortest);
  };
  const one = list(ROPE_FACTORS);
  if (one) return { rope_type: 'longrope', short_factor: one, long_factor: one, attention_factor: 1 };
  const [short, long] = [list(SHORT_FACTORS), list(LONG_FACTORS)];
  if (!short && !long) return undefined;
  return {
    ...{ rope_type: 'longrope', short_factor: short, long_factor: long },
    ...{ attention_factor: attention, original_max_position_embeddings: original },
  };
}

/** Bytes of the divisors: 4,096 numbers. */
const MAX_FACTOR_BYTES = 2 ** 14;

/** 1 for each layer, 0 for every n-th: llama.cpp knows the layers without positions by their family alone. */
function everyOther(layers: number, interval: number): readonly number[] {
  const count = Math.min(Math.max(0, layers), 1024) || 0;
  return Array.from({ length: count }, (_, layer) => ((layer + 1) % interval === 0 ? 0 : 1));
}

/** Number that Gemma's queries are divided by the root of, which a file does not say: a head's width but for the largest. */
function queryScalar(hidden: number, heads: number, headDim: number, layers: number): number {
  return LARGEST_LAYERS.has(layers) ? hidden / heads : headDim;
}

/** Layers of Gemma 2 27B and Gemma 3 27B, by which llama.cpp knows them. */
const LARGEST_LAYERS: ReadonlySet<number> = new Set([46, 62]);

/**
 * Kinds of the layers, as `config.json` lists them.
 * @param pattern interval of the layers that see everything, 0 for none, or for each layer whether it slides
 * @returns undefined where the file has none; null for anything else
 */
function readSliding(pattern: GgufValue | undefined, layers: number): readonly string[] | undefined | null {
  if (pattern === undefined) return undefined;
  const isInterval = typeof pattern === 'number' && Number.isInteger(pattern) && pattern >= 0;
  if (!isInterval && !(Array.isArray(pattern) && pattern.length === layers)) return null;
  if (!Number.isInteger(layers) || layers < 1 || layers > 1024) return undefined; // refused by its own name
  return Array.from({ length: layers }, (_, layer) => {
    const slides = isInterval ? pattern === 0 || (layer + 1) % pattern !== 0 : Boolean((pattern as unknown[])[layer]);
    return slides ? 'sliding_attention' : 'full_attention';
  });
}

function nameOf(tensor: string, layerParts: Readonly<Record<string, string>>): string | undefined {
  const [, layer, part, kind] = /^(?:blk\.(\d{1,5})\.)?([a-z_]{1,40})\.(weight|bias)$/.exec(tensor) ?? [];
  if (part === undefined) return undefined;
  const parts = layer === undefined ? PARTS : layerParts;
  if (!Object.hasOwn(parts, part)) return undefined;
  return layer === undefined ? `${parts[part]}.${kind}` : `model.layers.${layer}.${parts[part]}.${kind}`;
}

/** Heads whose rows llama.cpp interleaves in a tensor, in a family where it does. */
export function countInterleavedHeads(tensor: string, heads: number, kvHeads: number): number {
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
