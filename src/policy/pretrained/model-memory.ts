/**
 * Memory of a language model, from its shapes alone: by the functions that lay out quantised files and caches, and by the graphs
 * that the learner runs. `longplay models` prints it.
 */
import { ALL_PROJECTIONS, type ModelConfig } from '../../compute/model/config.ts';
import { layerGraphs } from '../../compute/model/layer-graphs.ts';
import { parameterSpecs, weightSpecs } from '../../compute/model/parameters.ts';
import { evaluate, sizeOf } from '../../compute/tensor/shape.ts';
import { KvCache } from '../kv-cache.ts';
import { readModelConfig } from './model-config.ts';
import { countBaseBytes } from './quantize.ts';

/** Rank of the adapters that memory is counted for: the default of `policy.adapter.rank`. */
const RANK = 16;
/** Episode that the learner's activations are counted for: tokens of its prompt, and behind it. */
const EPISODE = { prompt: 256, after: 256 };
/** Tokens of the pass that a learner's activations are counted for. */
export const PASS_TOKENS = EPISODE.prompt + EPISODE.after;

/** Memory of a learner whose top layers have adapters, beside the base. */
export interface LearnerMemory {
  /** Layers with adapters, the top ones. */
  readonly topLayers: number;
  /** Weights that are trained, rank 16, all projections. */
  readonly trained: number;
  /** Bytes of them, their gradients and AdamW's two moments. */
  readonly stateBytes: number;
  /** Bytes that the layers keep of one pass over 512 tokens, half of them a prompt. */
  readonly keptBytes: number;
  /** The same with `learner.recompute`. */
  readonly recomputedBytes: number;
}

/** Memory of a language model. */
export interface ModelMemory {
  readonly parameters: number;
  /** Bytes of the base by `policy.quantize`. */
  readonly baseBytes: { readonly none: number; readonly int8: number; readonly int4: number };
  /** Bytes of keys and values of each token in the cache. */
  readonly cacheBytesPerToken: number;
  /** Learners with adapters in few layers, more, and all. */
  readonly learner: readonly LearnerMemory[];
}

/** Counts the memory of a model, without weights or an engine. */
export function countMemory(config: ModelConfig): ModelMemory {
  const { base: _, adapter: __, ...model } = config;
  const weights = weightSpecs({ ...model, valueHead: false });
  const parameters = countNumbers(weights);
  return {
    parameters,
    baseBytes: {
      none: countBaseBytes(weights, 'none'),
      int8: countBaseBytes(weights, 'int8'),
      int4: countBaseBytes(weights, 'int4'),
    },
    cacheBytesPerToken: KvCache.countMaxBytes({ ...model, maxPositions: 1 }, 1, 1),
    learner: countLearners(model),
  };
}

function countLearners(model: ModelConfig): LearnerMemory[] {
  const { layers } = model;
  const adapt = (topLayers: number) => {
    const adapter = { rank: RANK, alpha: 2 * RANK, targets: ALL_PROJECTIONS, topLayers };
    return { ...model, valueHead: false, adapter };
  };
  // Layers are alike in what they keep.
  const [kept, recomputed] = [countKept(adapt(layers), false), countKept(adapt(layers), true)];
  const tops = [...new Set([4, 8, layers])].filter((top) => top <= layers);
  return tops.map((topLayers) => {
    const trained = countNumbers(parameterSpecs(adapt(topLayers)));
    const state = { trained, stateBytes: 4 * 4 * trained };
    return { topLayers, ...state, keptBytes: topLayers * kept, recomputedBytes: topLayers * recomputed };
  });
}

/** Bytes that a layer keeps between its forward and its backward pass: the outputs of its graph. */
function countKept(config: ModelConfig, recompute: boolean): number {
  const { forward } = layerGraphs(config, { objective: 'likelihood', decoder: 'tokens', masked: false, recompute });
  const { prompt: P, after: T } = EPISODE;
  const sizes = new Map(Object.entries({ P, T, Np: P, N: T, G: 1, K: 1 }));
  return forward.outputs.reduce((sum, { shape }) => sum + 4 * evaluate(sizeOf(shape), sizes), 0);
}

/** Counts the numbers in tensors of some shapes. */
export function countNumbers(specs: readonly { readonly shape: readonly number[] }[]): number {
  return specs.reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b, 1), 0);
}

/** Common models, as their `config.json` has them. */
const COMMON: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  'SmolLM2-135M': {
    ...{ model_type: 'llama', vocab_size: 49_152, hidden_size: 576, intermediate_size: 1536, rms_norm_eps: 1e-5 },
    ...{ num_hidden_layers: 30, num_attention_heads: 9, num_key_value_heads: 3, rope_theta: 100_000 },
  },
  'Qwen2.5-0.5B': {
    ...{ model_type: 'qwen2', vocab_size: 151_936, hidden_size: 896, intermediate_size: 4864, rms_norm_eps: 1e-6 },
    ...{ num_hidden_layers: 24, num_attention_heads: 14, num_key_value_heads: 2, rope_theta: 1e6 },
  },
  'Qwen3-0.6B': {
    ...{ model_type: 'qwen3', vocab_size: 151_936, hidden_size: 1024, intermediate_size: 3072, rms_norm_eps: 1e-6 },
    ...{ num_hidden_layers: 28, num_attention_heads: 16, num_key_value_heads: 8, head_dim: 128, rope_theta: 1e6 },
  },
  'Qwen2.5-1.5B': {
    ...{ model_type: 'qwen2', vocab_size: 151_936, hidden_size: 1536, intermediate_size: 8960, rms_norm_eps: 1e-6 },
    ...{ num_hidden_layers: 28, num_attention_heads: 12, num_key_value_heads: 2, rope_theta: 1e6 },
  },
  'Qwen2.5-3B': {
    ...{ model_type: 'qwen2', vocab_size: 151_936, hidden_size: 2048, intermediate_size: 11_008, rms_norm_eps: 1e-6 },
    ...{ num_hidden_layers: 36, num_attention_heads: 16, num_key_value_heads: 2, rope_theta: 1e6 },
  },
};

/** Memory of common models, by name, small ones first. */
export function commonMemory(): readonly (ModelMemory & { readonly model: string })[] {
  return Object.entries(COMMON).map(([model, json]) => {
    const all = { ...json, hidden_act: 'silu', tie_word_embeddings: true, max_position_embeddings: 8192 };
    return { model, ...countMemory(readModelConfig(all, model)) };
  });
}

const mib = (bytes: number) => Math.round(bytes / 2 ** 20).toLocaleString('en-US');

/** Table of memory: a header and a row for each model, as cells of text. */
export function memoryRows(models: readonly (ModelMemory & { readonly model: string })[]): string[][] {
  const top = ({ learner }: ModelMemory, at: number) => {
    const one = learner.at(at)!;
    return `${mib(one.stateBytes + one.keptBytes)} / ${mib(one.stateBytes + one.recomputedBytes)}`;
  };
  return [
    [
      ...['model', 'parameters', 'none', 'int8', 'int4', 'cache, KiB a token'],
      ...['learner, top 4', 'learner, top 8', 'learner, all'],
    ],
    ...models.map((one) => [
      ...[one.model, `${Math.round(one.parameters / 1e6).toLocaleString('en-US')} M`],
      ...[mib(one.baseBytes.none), mib(one.baseBytes.int8), mib(one.baseBytes.int4)],
      ...[
        `${Math.round(one.cacheBytesPerToken / 1024)}`,
        top(one, 0),
        top(one, Math.min(1, one.learner.length - 1)),
        top(one, -1),
      ],
    ]),
  ];
}
