/**
 * Model configuration: `config.json` as Hugging Face writes it, in both dialects: transformers 4 (`rope_theta`,
 * `rope_scaling`, `torch_dtype`) and 5 (`rope_parameters`, `dtype`, `layer_types`). What would change the numbers and
 * is not computed here is refused by name, and so is what is not known.
 */

import { checkModelConfig, type ModelConfig } from '../../compute/model/config.ts';
import { describeValue } from '../../core/describe-value.ts';
import { UserError } from '../../core/errors.ts';
import type { Json } from '../../text/templates/model-text.ts';
import { FAMILIES, familyOf, type ModelFamily } from './families.ts';
import { readRope } from './rope.ts';

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
  '_sliding_window_pattern', // layer_types says it layer by layer
  'architectures',
  'attention_dropout', // of training; ours has none
  'auto_map',
  'bos_token_id',
  'cache_implementation',
  'dtype',
  'embd_pdrop',
  'eos_token_id',
  'hidden_dropout',
  'initializer_range',
  'is_llama_config',
  'mlp_bias', // refused where it is set
  'no_rope_layer_interval', // no_rope_layers says it layer by layer
  'max_window_layers', // only where use_sliding_window is set
  'pad_token_id',
  'pretraining_tp',
  'resid_pdrop',
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
  'hidden_activation',
  'head_dim',
  'layer_types',
  'sliding_window',
  'use_sliding_window',
  'attention_bias',
  'no_rope_layers',
  'partial_rotary_factor',
  'original_max_position_embeddings',
  'rope_local_base_freq',
  'sliding_window_pattern',
  'query_pre_attn_scalar',
  'attn_logit_softcapping',
  'final_logit_softcapping',
]);

/** Fields that only some families have. In others they are refused: they may change what the model computes. */
const OWN: readonly (readonly [fields: readonly string[], own: (family: ModelFamily) => boolean])[] = [
  [
    ['hidden_activation', 'query_pre_attn_scalar', 'attn_logit_softcapping', 'final_logit_softcapping'],
    ({ gemma }) => gemma === true,
  ],
  [['rope_local_base_freq', 'sliding_window_pattern'], ({ localRopeTheta }) => localRopeTheta !== undefined],
  [['partial_rotary_factor', 'original_max_position_embeddings'], ({ fusedProjections }) => fusedProjections === true],
];

/** Fields that say how a model was made, where they have these values. */
const NEUTRAL: Json = { full_attn_mod: 1, interpolate_factor: 1 };

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
  const family = familyOf(json.model_type) ?? refuse('model_type', known);
  const { qkvBias, qkNorm = false, gemma = false, fusedProjections = false } = family;
  for (const [field, value] of Object.entries(json)) {
    if (value === null || value === false || HARMLESS.has(field)) continue;
    const [, isOwn] = OWN.find(([fields]) => fields.includes(field)) ?? [];
    if (READ.has(field) ? (isOwn?.(family) ?? true) : NEUTRAL[field] === value) continue;
    refuse(field, 'no such field: it is not known here and may change what the model computes');
  }
  const activation = gemma ? 'gelu_pytorch_tanh' : 'silu';
  for (const field of ['hidden_act', 'hidden_activation']) {
    if (json[field] != null && json[field] !== activation) refuse(field, `"${activation}"`);
  }
  if (json.use_sliding_window) refuse('use_sliding_window', 'false: attention is over everything');
  if (json.mlp_bias) refuse('mlp_bias', 'false');
  if (json.attention_bias && !qkvBias) refuse('attention_bias', 'false');
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
  if (json.head_dim == null && family.headDim === undefined && hiddenSize % heads !== 0)
    refuse('num_attention_heads', `a divisor of ${hiddenSize}`);
  const headDim = size('head_dim', family.headDim ?? hiddenSize / heads);
  const limit = size('max_position_embeddings', family.maxPositions ?? 32_768);
  const rope = readRope(json, {
    ...{ source, headDim, maxPositions: limit },
    ...{ theta: family.ropeTheta ?? 10_000, localTheta: family.localRopeTheta, isPartial: fusedProjections },
  });
  const unrotated = readUnrotated(json, refuse);
  const layers = size('num_hidden_layers');
  const positions = Math.min(limit, rope.positions ?? limit, maxPositions);
  const sliding = readSliding(json, family, layers, refuse);
  // A context that one window holds is attention over everything.
  const window = sliding.length > 0 ? size('sliding_window', family.slidingWindow) : positions;
  const optional = (field: string, fallback: number | undefined): number | undefined =>
    json[field] === null || (json[field] === undefined && fallback === undefined)
      ? undefined
      : positive(field, fallback ?? 0);
  const attentionCap = optional('attn_logit_softcapping', family.attentionCap);
  const logitCap = optional('final_logit_softcapping', family.logitCap);
  const config: ModelConfig = {
    vocabSize: size('vocab_size'),
    hiddenSize,
    layers,
    heads,
    kvHeads: size('num_key_value_heads', heads),
    ...(headDim * heads === hiddenSize ? {} : { headDim }),
    intermediateSize: size('intermediate_size'),
    ropeTheta: rope.theta,
    ...(rope.factors ? { ropeFactors: rope.factors } : {}),
    ...(rope.scale === undefined ? {} : { ropeScale: rope.scale }),
    ...(rope.width === undefined ? {} : { rotaryWidth: rope.width }),
    ...(unrotated.length > 0 ? { unrotatedLayers: unrotated } : {}),
    ...(sliding.length > 0 && (window < positions || rope.localTheta !== undefined) ? { slidingLayers: sliding } : {}),
    ...(window < positions ? { slidingWindow: window } : {}),
    ...(rope.localTheta === undefined ? {} : { localRopeTheta: rope.localTheta }),
    ...(qkNorm ? { qkNorm } : {}),
    ...(gemma ? { queryScale: 1 / Math.sqrt(positive('query_pre_attn_scalar', 256)) } : {}),
    ...(attentionCap === undefined ? {} : { attentionCap }),
    ...(logitCap === undefined ? {} : { logitCap }),
    ...(gemma ? { centredGains: true, outputNorms: true, activation: 'gelu' as const } : {}),
    ...(fusedProjections ? { fusedProjections } : {}),
    rmsNormEps: positive('rms_norm_eps', 1e-6),
    qkvBias,
    tieEmbeddings: gemma ? json.tie_word_embeddings !== false : json.tie_word_embeddings === true,
    maxPositions: positions,
    prefixBidirectional: false,
    tokenShift: 0,
    focusBit: false,
    embeddingScale: gemma ? Math.sqrt(hiddenSize) : 1,
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

/**
 * Layers that see no more than a window: those that `layer_types` names so, or all but every n-th, as the family or
 * `sliding_window_pattern` has it.
 */
function readSliding(
  json: Json,
  { fullInterval, slidingWindow }: ModelFamily,
  layers: number,
  refuse: (field: string, expected: string) => never,
): readonly number[] {
  const { layer_types: types, sliding_window_pattern: pattern, sliding_window: window = slidingWindow } = json;
  const slides = fullInterval !== undefined && window != null;
  const numbers = Array.from({ length: layers }, (_, layer) => layer);
  if (types != null) {
    const known = slides ? ['full_attention', 'sliding_attention'] : ['full_attention'];
    const expected = known.map((one) => `"${one}"`).join(' or ');
    if (!Array.isArray(types) || types.length !== layers || types.some((type) => !known.includes(type as string))) {
      return refuse('layer_types', `a list of ${layers}, ${expected} in every place`);
    }
    return numbers.filter((layer) => types[layer] === 'sliding_attention');
  }
  if (!slides) return [];
  const interval = pattern ?? fullInterval;
  if (!Number.isInteger(interval) || (interval as number) < 0) {
    return refuse('sliding_window_pattern', 'a whole number of at least 0');
  }
  return numbers.filter((layer) => interval === 0 || (layer + 1) % (interval as number) !== 0);
}
