/**
 * Model configuration: `config.json` as Hugging Face writes it, in both dialects: transformers 4 (`rope_theta`,
 * `rope_scaling`, `torch_dtype`) and 5 (`rope_parameters`, `dtype`, `layer_types`). What would change the numbers and
 * is not computed here is refused by name, and so is what is not known.
 */

import { checkModelConfig, type ModelConfig } from '../../compute/model/config.ts';
import { describeValue } from '../../core/describe-value.ts';
import { UserError } from '../../core/errors.ts';
import { isRecord } from '../../core/record.ts';
import type { Json } from '../../text/templates/model-text.ts';
import { FAMILIES, familyOf } from './families.ts';

/**
 * Largest values of the sizes: far beyond any model of these families, and small enough that nothing made of one alone
 * takes long. Without them a number in a file would be memory here.
 */
const MAX_SIZES: Readonly<Record<string, number>> = {
  vocab_size: 2 ** 24,
  hidden_size: 2 ** 17,
  num_hidden_layers: 1024,
  num_attention_heads: 4096,
  num_key_value_heads: 4096,
  intermediate_size: 2 ** 20,
  head_dim: 4096,
  max_position_embeddings: 2 ** 26,
  sliding_window: 2 ** 26,
};

/** Fields that change no number of a forward pass; `null`, `false` and absent fields need no mention. */
const HARMLESS: ReadonlySet<string> = new Set([
  '_name_or_path',
  'architectures',
  'attention_dropout', // of training; ours has none
  'auto_map',
  'bos_token_id',
  'dtype',
  'eos_token_id',
  'hidden_dropout',
  'initializer_range',
  'is_llama_config',
  'mlp_bias', // refused where it is set
  'no_rope_layer_interval', // no_rope_layers says it layer by layer
  'max_window_layers', // only where use_sliding_window is set
  'pad_token_id',
  'pretraining_tp',
  'torch_dtype',
  'transformers_version',
  'transformers.js_config',
  'unsloth_fixed',
  'unsloth_version',
  'use_cache',
]);

/** Fields that are read, each with the check of its values. */
const READ: ReadonlySet<string> = new Set([
  'model_type',
  'hidden_size',
  'num_hidden_layers',
  'num_attention_heads',
  'num_key_value_heads',
  'intermediate_size',
  'vocab_size',
  'max_position_embeddings',
  'rms_norm_eps',
  'rope_theta',
  'rope_parameters',
  'rope_scaling',
  'tie_word_embeddings',
  'hidden_act',
  'head_dim',
  'layer_types',
  'sliding_window',
  'use_sliding_window',
  'attention_bias',
  'no_rope_layers',
]);

/**
 * Reads the model that a `config.json` describes.
 * @param source       named in errors: the file's path
 * @param maxPositions longest sequence wanted; the model's own limit by default, and at most that
 * @throws {UserError} BAD_CHECKPOINT naming the field, what was expected and what came
 */
export function readModelConfig(json: Json, source: string, maxPositions = Number.POSITIVE_INFINITY): ModelConfig {
  const refuse = (field: string, expected: string): never => {
    throw new UserError('BAD_CHECKPOINT', `${source}: ${field} is ${describeValue(json[field])}, expected ${expected}`);
  };
  const known = FAMILIES.map(({ modelType }) => modelType).join(', ');
  const { modelType: family, qkvBias, qkNorm = false } = familyOf(json.model_type) ?? refuse('model_type', known);
  for (const [field, value] of Object.entries(json)) {
    if (value === null || value === false || READ.has(field) || HARMLESS.has(field)) continue;
    refuse(field, 'no such field: it is not known here and may change what the model computes');
  }
  if (json.hidden_act !== undefined && json.hidden_act !== 'silu') refuse('hidden_act', '"silu"');
  if (json.use_sliding_window) refuse('use_sliding_window', 'false: attention is over everything');
  if (json.mlp_bias) refuse('mlp_bias', 'false');
  if (json.attention_bias && !qkvBias) refuse('attention_bias', 'false');
  const { layer_types: types } = json;
  if (types != null && !(Array.isArray(types) && types.every((type) => type === 'full_attention'))) {
    refuse('layer_types', '"full_attention" in every place');
  }
  const size = (field: string, fallback?: number): number => {
    const value = json[field] ?? fallback;
    const max = MAX_SIZES[field]!;
    if (Number.isInteger(value) && (value as number) > 0 && (value as number) <= max) return value as number;
    return refuse(field, `a whole number in [1, ${max}]`);
  };
  const positive = (field: string, fallback: number): number => {
    const value = json[field] ?? fallback;
    return typeof value === 'number' && value > 0 && Number.isFinite(value)
      ? value
      : refuse(field, 'a positive number');
  };
  const heads = size('num_attention_heads');
  const hiddenSize = size('hidden_size');
  if (json.head_dim == null && hiddenSize % heads !== 0) refuse('num_attention_heads', `a divisor of ${hiddenSize}`);
  const headDim = size('head_dim', hiddenSize / heads);
  const { theta, factors } = readRope(json, source, headDim, () => positive('rope_theta', 10_000));
  const unrotated = readUnrotated(json, refuse);
  const layers = size('num_hidden_layers');
  // Within one window, a sliding one is attention over everything.
  const window =
    family === 'mistral' && json.sliding_window != null ? size('sliding_window') : Number.POSITIVE_INFINITY;
  const config: ModelConfig = {
    vocabSize: size('vocab_size'),
    hiddenSize,
    layers,
    heads,
    kvHeads: size('num_key_value_heads', heads),
    ...(headDim * heads === hiddenSize ? {} : { headDim }),
    intermediateSize: size('intermediate_size'),
    ropeTheta: theta,
    ...(factors ? { ropeFactors: factors } : {}),
    ...(unrotated.length > 0 ? { unrotatedLayers: unrotated } : {}),
    ...(qkNorm ? { qkNorm } : {}),
    rmsNormEps: positive('rms_norm_eps', 1e-6),
    qkvBias,
    tieEmbeddings: json.tie_word_embeddings === true,
    maxPositions: Math.min(size('max_position_embeddings', 32_768), window, maxPositions),
    prefixBidirectional: false,
    tokenShift: 0,
    focusBit: false,
    embeddingScale: 1,
    choiceHead: false,
    valueHead: false,
  };
  try {
    checkModelConfig(config);
  } catch (thrown) {
    throw new UserError('BAD_CHECKPOINT', `${source}: ${(thrown as Error).message}`, { cause: thrown });
  }
  return config;
}

/** Layers without positions: those that `no_rope_layers` has a 0 for. */
function readUnrotated(json: Json, refuse: (field: string, expected: string) => never): readonly number[] {
  const list = json.no_rope_layers ?? [];
  const count = json.num_hidden_layers;
  if (
    !Array.isArray(list) ||
    (list.length > 0 && list.length !== count) ||
    list.some((one) => one !== 0 && one !== 1)
  ) {
    return refuse('no_rope_layers', `a list of ${describeValue(count)} numbers, 1 for positions and 0 for none`);
  }
  return list.flatMap((one, layer) => (one === 0 ? [layer] : []));
}

interface Rope {
  /** Rotary base θ. */
  readonly theta: number;
  /** Divisors of the frequencies; undefined: none. */
  readonly factors?: readonly number[];
}

/** Reads the rotary positions in either dialect; a scaling that is not computed here is refused. */
function readRope(json: Json, source: string, headDim: number, plain: () => number): Rope {
  const field = json.rope_parameters ? 'rope_parameters' : 'rope_scaling';
  const scaling = json[field];
  if (scaling == null) return { theta: plain() };
  if (!isRecord(scaling)) return refuseRope(source, field, scaling, 'an object or null');
  const { rope_type: type, type: old, rope_theta: own, ...rest } = scaling;
  if (own !== undefined && (typeof own !== 'number' || !(own > 0) || !Number.isFinite(own))) {
    return refuseRope(source, `${field}.rope_theta`, own, 'a positive number');
  }
  const theta = own === undefined ? plain() : (own as number);
  const kind = type ?? old ?? 'default';
  if (kind === 'llama3') return { theta, factors: llama3Factors(rest, theta, headDim, source, field) };
  if (kind === 'longrope') return { theta, factors: givenFactors(rest, headDim, source, field) };
  if (kind !== 'default') refuseRope(source, `${field}.rope_type`, kind, '"default", "llama3"');
  const more = Object.entries(rest).find(
    ([name, value]) => value !== null && !(name === 'partial_rotary_factor' && value === 1),
  );
  if (more) refuseRope(source, `${field}.${more[0]}`, more[1], 'nothing');
  return { theta };
}

function refuseRope(source: string, field: string, value: unknown, expected: string): never {
  throw new UserError('BAD_CHECKPOINT', `${source}: ${field} is ${describeValue(value)}, expected ${expected}`);
}

/**
 * Scaling of Llama 3.1: long waves are stretched by `factor`, short ones stay, and those between are blended.
 * @see transformers' `modeling_rope_utils.py`
 */
function llama3Factors(rest: Json, theta: number, headDim: number, source: string, field: string): readonly number[] {
  const number = (name: string): number => {
    const value = rest[name];
    if (typeof value === 'number' && value > 0 && Number.isFinite(value)) return value;
    return refuseRope(source, `${field}.${name}`, value, 'a positive number');
  };
  const factor = number('factor');
  const low = number('low_freq_factor');
  const high = number('high_freq_factor');
  const context = number('original_max_position_embeddings');
  if (high <= low) refuseRope(source, `${field}.high_freq_factor`, high, `more than low_freq_factor, ${low}`);
  return Array.from({ length: headDim / 2 }, (_, i) => {
    const wave = 2 * Math.PI * theta ** ((2 * i) / headDim);
    if (wave < context / high) return 1;
    if (wave > context / low) return factor;
    const blend = (context / wave - low) / (high - low);
    return 1 / ((1 - blend) / factor + blend);
  });
}

/** Divisors as a file lists them, where one list holds for every length and nothing else is scaled. */
function givenFactors(rest: Json, headDim: number, source: string, field: string): readonly number[] {
  const { short_factor: short, long_factor: long, attention_factor: attention } = rest;
  if (attention !== 1) refuseRope(source, `${field}.attention_factor`, attention, '1: queries and keys are not scaled');
  const isList =
    Array.isArray(short) && short.every((one) => typeof one === 'number' && one > 0 && Number.isFinite(one));
  if (!isList || short.length * 2 !== headDim) {
    return refuseRope(source, `${field}.short_factor`, short, `${headDim / 2} positive numbers`);
  }
  if (!Array.isArray(long) || long.join() !== short.join()) {
    refuseRope(source, `${field}.long_factor`, long, 'the numbers of short_factor');
  }
  return short as readonly number[];
}
