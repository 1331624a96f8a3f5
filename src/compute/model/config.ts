import type { FixedSource } from '../tensor/fixed.ts';

/**
 * Configuration of the decoder-only transformer. Its block is that of the Qwen2 family (RMSNorm, rotary positions,
 * grouped-query attention, SwiGLU). What other families compute is an optional property each, absent where it is not so.
 * Options that only the local policy needs are off for public checkpoints.
 */
export interface ModelConfig {
  readonly vocabSize: number;
  /** Model width d. */
  readonly hiddenSize: number;
  readonly layers: number;
  /** Query heads; `hiddenSize / heads` is the head width, unless `headDim` gives another. */
  readonly heads: number;
  /** Key/value heads; divides `heads`. */
  readonly kvHeads: number;
  /** SwiGLU width. */
  readonly intermediateSize: number;
  readonly ropeTheta: number;
  readonly rmsNormEps: number;
  readonly qkvBias: boolean;
  /** True when the output head is the embedding matrix. */
  readonly tieEmbeddings: boolean;
  /** Longest sequence, prompt included. */
  readonly maxPositions: number;

  /** Bidirectional attention within the prompt; the tokens after it attend causally. Off for public checkpoints. */
  readonly prefixBidirectional: boolean;
  /** Adds the embeddings of the previous one or two tokens, scaled per channel. 0 for public checkpoints. */
  readonly tokenShift: 0 | 1 | 2;
  /** Focus bit, an extra input bit of each token that also occurs in the view's `focus`. Off for public checkpoints. */
  readonly focusBit: boolean;
  /**
   * Same-token bias, added to the scores of the first head between tokens of one id. That head so begins by looking up where
   * else a word stands: a small model takes long to learn to distinguish hundreds of words. Absent for public
   * checkpoints.
   */
  readonly sameTokenBias?: number;
  /**
   * Same-line bias, added to the scores of the last head between tokens of one line of the prompt; a newline begins one. A
   * line about one thing (a recipe, an object) is so read as a whole from the start. Absent for public checkpoints.
   */
  readonly sameLineBias?: SameLineBias;
  /** Factor on token embeddings. 1 for public checkpoints. */
  readonly embeddingScale: number;
  /** Scores whole actions: a bag of their tokens, and a pointer to where the prompt mentions them. */
  readonly choiceHead: boolean;
  readonly valueHead: boolean;

  /** Width of one head, where it is not `hiddenSize / heads`. */
  readonly headDim?: number;
  /** True where each head of queries and keys goes through an RMSNorm of its own before it is turned (Qwen3). */
  readonly qkNorm?: boolean;
  /** Divisors of the rotary frequencies, [dh/2]: positions that were scaled after the first training (Llama 3.1). */
  readonly ropeFactors?: readonly number[];
  /** Factor on the cosines and sines of all angles: positions that were stretched (Phi-3). */
  readonly ropeScale?: number;
  /** Numbers of each head, from its first, that are turned; absent: the whole head (Phi-4-mini). */
  readonly rotaryWidth?: number;
  /** Layers, from 0, whose queries and keys are not turned: they know no positions (SmolLM3). */
  readonly unrotatedLayers?: readonly number[];
  /** Layers, from 0, that see no more than `slidingWindow`, and turn by `localRopeTheta` (Mistral, Gemma). */
  readonly slidingLayers?: readonly number[];
  /** Tokens, itself and those before it, that a token of a sliding layer sees; absent: all. */
  readonly slidingWindow?: number;
  /** Rotary base of sliding layers, without factors; absent: as in other layers (Gemma 3). */
  readonly localRopeTheta?: number;
  /** Factor on the products of queries and keys; absent: 1/√dh (Gemma). */
  readonly queryScale?: number;
  /** Soft cap c of the scores of attention: c·tanh(score/c) (Gemma 2). */
  readonly attentionCap?: number;
  /** Soft cap of the logits (Gemma 2). */
  readonly logitCap?: number;
  /** True where norms multiply by 1 + their weight (Gemma). */
  readonly centredGains?: boolean;
  /** True where what attention and MLP give goes through a norm before it is added (Gemma). */
  readonly outputNorms?: boolean;
  /** Activation of the gate; absent: SiLU. GELU is in its tanh form (Gemma). */
  readonly activation?: 'gelu';
  /**
   * True where files hold the projections of queries, keys and values in one matrix, and those of gate and inner values in
   * another (Phi-3). They are taken apart when they are read: rows lie one after another.
   */
  readonly fusedProjections?: boolean;
  /** Weights that lie in files and never change; absent: every weight is trained and fed. */
  readonly base?: BaseWeights;
  /** Low-rank matrices beside projections; where present, they (and a value head) are all that is trained. */
  readonly adapter?: LoraConfig;
}

/** Bias between tokens of one line. */
export interface SameLineBias {
  readonly bias: number;
  /** Id of the token that begins a line. */
  readonly newline: number;
}

/** Frozen weights of a pretrained model. Plain data, so that every thread can open them for itself. */
export interface BaseWeights {
  /** Hash of the files, and of how they were quantised. Checkpoints keep it. */
  readonly hash: string;
  /** Place of each weight, by name. */
  readonly weights: Readonly<Record<string, FixedSource>>;
}

/** Low-rank adapters (lora.ts). */
export interface LoraConfig {
  /** Rank r, at least 1. */
  readonly rank: number;
  /** Scale α: the adapter counts α/r, or α/√r with `rslora`. */
  readonly alpha: number;
  /** Projections that get an adapter, by the last part of their names: `q_proj`, `v_proj`, … */
  readonly targets: readonly string[];
  /**
   * Layers that get adapters: as many of the top ones; all where absent. Layers below never change, so no gradient goes through
   * them.
   */
  readonly topLayers?: number;
  /** Rank-stabilised scaling, Kalajdzievski 2023, https://arxiv.org/abs/2312.03732. */
  readonly rslora?: boolean;
}

/** Projections of a layer, all of them: an adapter stands beside each unless configured otherwise. */
export const ALL_PROJECTIONS = ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj'] as const;

/** Small model, the default of the local policy: it learns from random weights on two cores within minutes. */
export function smallModel(vocabSize: number, overrides: Partial<ModelConfig> = {}): ModelConfig {
  const hiddenSize = overrides.hiddenSize ?? 64;
  return {
    vocabSize,
    hiddenSize,
    layers: 3,
    heads: 2,
    kvHeads: overrides.heads ?? 2,
    intermediateSize: Math.round((hiddenSize * 8) / 3 / 16) * 16,
    ropeTheta: 1000,
    rmsNormEps: 1e-6,
    qkvBias: false,
    tieEmbeddings: true,
    maxPositions: 1024,
    prefixBidirectional: true,
    tokenShift: 2,
    focusBit: true,
    embeddingScale: Math.sqrt(hiddenSize) / 2,
    choiceHead: true,
    valueHead: true,
    ...overrides,
  };
}

/**
 * Checks a model's configuration.
 * @throws {RangeError} naming the first field that cannot be
 */
export function checkModelConfig(config: ModelConfig): void {
  const positive = [
    'vocabSize',
    'hiddenSize',
    'layers',
    'heads',
    'kvHeads',
    'intermediateSize',
    'maxPositions',
  ] as const;
  for (const key of positive) {
    if (!Number.isInteger(config[key]) || config[key] < 1) {
      throw new RangeError(`model.${key}: expected a positive integer, got ${config[key]}`);
    }
  }
  if (!Number.isInteger(headSize(config)) || headSize(config) % 2 !== 0) {
    throw new RangeError(
      `model.heads: hiddenSize ${config.hiddenSize} must split into ${config.heads} heads of even width`,
    );
  }
  if (config.heads % config.kvHeads !== 0) {
    throw new RangeError(`model.kvHeads: ${config.kvHeads} must divide heads ${config.heads}`);
  }
  const turned = rotaryWidth(config);
  if (!Number.isInteger(turned) || turned < 2 || turned % 2 !== 0 || turned > headSize(config)) {
    throw new RangeError(`model.rotaryWidth: expected an even number from 2 to ${headSize(config)}, got ${turned}`);
  }
  if (config.ropeFactors && config.ropeFactors.length * 2 !== turned) {
    throw new RangeError(`model.ropeFactors: expected ${turned / 2} numbers, got ${config.ropeFactors.length}`);
  }
  if (config.heads < 2 && config.sameTokenBias !== undefined && config.sameLineBias !== undefined) {
    throw new RangeError('model.heads: sameTokenBias and sameLineBias take a head each; expected at least 2, got 1');
  }
}

/** Width of one head. */
export function headSize(config: ModelConfig): number {
  return config.headDim ?? config.hiddenSize / config.heads;
}

/** Numbers of a head that positions turn. */
export function rotaryWidth(config: ModelConfig): number {
  return config.rotaryWidth ?? headSize(config);
}

/** Factor on the products of queries and keys. */
export function queryScale(config: ModelConfig): number {
  return config.queryScale ?? 1 / Math.sqrt(headSize(config));
}
