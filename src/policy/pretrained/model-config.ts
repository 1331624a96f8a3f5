/**
 * Model configuration: `config.json` as Hugging Face writes it, in both dialects: transformers 4 (`rope_theta`,
 * `rope_scaling`, `torch_dtype`) and 5 (`rope_parameters`, `dtype`, `layer_types`). What would change the numbers and
 * is not computed here is refused by name, and so is what is not known.
 */

import { checkModelConfig, type ModelConfig } from '../../compute/model/config.ts';
import { describeValue } from '../../core/describe-value.ts';
import { UserError } from '../../core/errors.ts';
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
  const { modelType: family, qkvBias } = familyOf(json.model_type) ?? refuse('model_type', known);
  for (const [field, value] of Object.entries(json)) {
    if (value === null || value === false || READ.has(field) || HARMLESS.has(field)) continue;
    refuse(field, 'no such field: it is not known here and may change what the model computes');
  }
  if (json.hidden_act !== undefined && json.hidden_act !== 'silu') refuse('hidden_act', '"silu"');
  if (json.use_sliding_window) refuse('use_sliding_window', 'false: attention is over everything');
  if (family === 'mistral' && json.sliding_window) refuse('sliding_window', 'null: attention is over everything');
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
  const config: ModelConfig = {
    vocabSize: size('vocab_size'),
    hiddenSize,
    layers: size('num_hidden_layers'),
    heads,
    kvHeads: size('num_key_value_heads', heads),
    ...(headDim * heads === hiddenSize ? {} : { headDim }),
    intermediateSize: size('intermediate_size'),
    ropeTheta: ropeTheta(json, source, () => positive('rope_theta', 10_000)),
    rmsNormEps: positive('rms_norm_eps', 1e-6),
    qkvBias,
    tieEmbeddings: json.tie_word_embeddings === true,
    maxPositions: Math.min(size('max_position_embeddings', 32_768), maxPositions),
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

/** Rotary base θ in either dialect; any scaling of the positions is refused. */
function ropeTheta(json: Json, source: string, plain: () => number): number {
  const refuse = (field: string, value: unknown): never => {
    throw new UserError(
      'BAD_CHECKPOINT',
      `${source}: ${field} is ${describeValue(value)}, expected "default": no scaling`,
    );
  };
  const scaling = json.rope_scaling as Json | null | undefined;
  const kind = scaling?.rope_type ?? scaling?.type;
  if (scaling && kind !== 'default') refuse('rope_scaling', scaling);
  const nested = json.rope_parameters as Json | null | undefined;
  if (!nested) return plain();
  const { rope_type, rope_theta, ...rest } = nested;
  if (rope_type !== undefined && rope_type !== 'default') refuse('rope_parameters.rope_type', rope_type);
  const more = Object.entries(rest).find(
    ([name, value]) => value !== null && !(name === 'partial_rotary_factor' && value === 1),
  );
  if (more) refuse(`rope_parameters.${more[0]}`, more[1]);
  if (rope_theta === undefined) return plain();
  if (typeof rope_theta !== 'number' || !(rope_theta > 0) || !Number.isFinite(rope_theta)) {
    throw new UserError(
      'BAD_CHECKPOINT',
      `${source}: rope_parameters.rope_theta is ${describeValue(rope_theta)}, expected a positive number`,
    );
  }
  return rope_theta;
}
