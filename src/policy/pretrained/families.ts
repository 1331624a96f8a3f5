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
    interleaves: true,
    limits: 'contexts as long as its sliding window',
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
