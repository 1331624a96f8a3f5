/** Families of language models that are read and trained here, as data: `longplay models` prints them. */

export interface ModelFamily {
  /** `model_type` of `config.json`. */
  readonly modelType: string;
  /** Models of the family, for a person. */
  readonly models: string;
  /** `general.architecture` of its GGUF files; undefined where they are not read. */
  readonly gguf: string | undefined;
  /** True where each head of queries and keys has a norm. */
  readonly qkNorm?: boolean;
  /** True for Gemma's way: norms after attention and MLP too, gains of 1 + weight, GELU, scaled embeddings and queries. */
  readonly gemma?: boolean;
  /** True where the projections of queries, keys and values lie in one matrix, and gate and inner values in another. */
  readonly fusedProjections?: boolean;
  /** Interval of the layers that see everything, the others seeing a window; 0: none does; undefined: no windows. */
  readonly fullInterval?: number;
  /** Values of `config.json` where it names none, as transformers has them. */
  readonly headDim?: number;
  readonly maxPositions?: number;
  readonly slidingWindow?: number;
  readonly ropeTheta?: number;
  readonly localRopeTheta?: number;
  readonly attentionCap?: number;
  readonly logitCap?: number;
  /** Biases of the query, key and value projections. */
  readonly qkvBias: boolean;
  /** Rows of q and k that llama.cpp has interleaved in a GGUF file. */
  readonly interleaves: boolean;
  /** Interval of the layers without positions, which a GGUF file does not say; undefined: all have positions. */
  readonly noRopeInterval?: number;
  /** Limits, for a person; empty: none. */
  readonly limits: string;
}

export const FAMILIES: readonly ModelFamily[] = [
  {
    modelType: 'llama',
    models: 'Llama 1 to 3, SmolLM2, TinyLlama',
    gguf: 'llama',
    qkvBias: false,
    interleaves: true,
    limits: 'no attention bias; positions as they are, or scaled as in Llama 3.1',
  },
  {
    modelType: 'qwen2',
    models: 'Qwen2, Qwen2.5',
    gguf: 'qwen2',
    qkvBias: true,
    interleaves: false,
    limits: '',
  },
  {
    modelType: 'qwen3',
    models: 'Qwen3 (not its mixtures of experts)',
    gguf: 'qwen3',
    qkNorm: true,
    qkvBias: false,
    interleaves: false,
    limits: 'no attention bias',
  },
  {
    modelType: 'smollm3',
    models: 'SmolLM3',
    gguf: 'smollm3',
    noRopeInterval: 4,
    qkvBias: false,
    interleaves: true,
    limits: 'no attention bias',
  },
  {
    modelType: 'mistral',
    models: 'Mistral 7B, Mistral NeMo',
    gguf: 'llama',
    qkvBias: false,
    fullInterval: 0,
    slidingWindow: 4096,
    interleaves: true,
    limits: '',
  },
  {
    modelType: 'phi3',
    models: 'Phi-3, Phi-3.5 and Phi-4 mini',
    gguf: 'phi3',
    fusedProjections: true,
    fullInterval: 0,
    maxPositions: 4096,
    qkvBias: false,
    interleaves: false,
    limits: 'contexts of the first training (4,096)',
  },
  {
    modelType: 'gemma2',
    models: 'Gemma 2',
    gguf: 'gemma2',
    gemma: true,
    fullInterval: 2,
    headDim: 256,
    maxPositions: 8192,
    slidingWindow: 4096,
    attentionCap: 50,
    logitCap: 30,
    qkvBias: false,
    interleaves: false,
    limits: 'no attention bias',
  },
  {
    modelType: 'gemma3_text',
    models: 'Gemma 3, text alone (270M, 1B)',
    gguf: 'gemma3',
    gemma: true,
    fullInterval: 6,
    headDim: 256,
    maxPositions: 131_072,
    slidingWindow: 4096,
    ropeTheta: 1_000_000,
    localRopeTheta: 10_000,
    qkNorm: true,
    qkvBias: false,
    interleaves: false,
    limits: 'no attention bias',
  },
];

/** Family by its `model_type`; undefined where it is not known. */
export function familyOf(modelType: unknown): ModelFamily | undefined {
  return FAMILIES.find((family) => family.modelType === modelType);
}

/** Family of a GGUF file; undefined where it is not known. */
export function familyOfGguf(architecture: unknown): ModelFamily | undefined {
  return FAMILIES.find(({ gguf }) => gguf !== undefined && gguf === architecture);
}
