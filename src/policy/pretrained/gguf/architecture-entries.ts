/**
 * Architecture of a model folder as a GGUF file has it: entries of the metadata, and a name for each weight. The reverse
 * of architecture.ts; what is made is read back by that, and a model that would come back as another one is refused.
 */
import { headSize, type ModelConfig } from '../../../compute/model/config.ts';
import { weightSpecs } from '../../../compute/model/parameters.ts';
import { describeValue } from '../../../core/describe-value.ts';
import { UserError } from '../../../core/errors.ts';
import { readJson } from '../../../text/templates/model-text.ts';
import { FAMILIES, familyOf } from '../families.ts';
import type { PretrainedModel } from '../folder.ts';
import { readModelConfig } from '../model-config.ts';
import { countInterleavedHeads, LAYER_PARTS, PARTS, readArchitecture } from './architecture.ts';
import { type GgufEntries, type GgufEntry, valuesOf } from './header.ts';

/** Architectures whose tensors llama.cpp has one by one under the names of architecture.ts. */
const WRITTEN: ReadonlySet<string> = new Set(['llama', 'qwen2', 'qwen3', 'smollm3']);

/** True for an architecture that is written. */
export function isWritten(architecture: unknown): boolean {
  return typeof architecture === 'string' && WRITTEN.has(architecture);
}

/** Weight of a model as llama.cpp has it. */
export interface ExportedWeight {
  /** Name as Hugging Face has it. */
  readonly weight: string;
  /** llama.cpp's name. */
  readonly name: string;
  readonly shape: readonly number[];
  /** Heads whose rows are interleaved; 0: none. */
  readonly interleavedHeads: number;
}

/**
 * Describes a model's architecture.
 * @returns the entries of its metadata, its weights, and divisors of the rotary frequencies where it has them
 * @throws {UserError} BAD_ARGUMENT for a family that is not written, or a property that a GGUF file cannot hold
 */
export function describeArchitecture({ folder, config }: Pick<PretrainedModel, 'folder' | 'config'>): {
  readonly entries: GgufEntries;
  readonly weights: readonly ExportedWeight[];
  readonly ropeFactors: readonly number[] | undefined;
} {
  const modelType = readJson(folder, 'config.json').model_type;
  const family = familyOf(modelType);
  const architecture = family?.gguf;
  if (!family || architecture === undefined || !isWritten(architecture)) {
    const written = FAMILIES.filter(({ gguf }) => gguf !== undefined && WRITTEN.has(gguf));
    throw new UserError(
      'BAD_ARGUMENT',
      `${folder}: family ${describeValue(modelType)} is not written as GGUF, expected ${written.map((one) => one.modelType).join(', ')}; use --to hf`,
    );
  }
  const entries = new Map<string, GgufEntry>([
    ['general.architecture', { type: 'string', value: architecture }],
    ...numbersOf(config).map(([name, entry]) => [`${architecture}.${name}`, entry] as const),
  ]);
  const weights = weightSpecs(config).map(({ name: weight, shape }): ExportedWeight => {
    const name = nameOf(weight);
    if (name === undefined) throw new UserError('BAD_ARGUMENT', `${folder}: weight ${weight} has no name in GGUF`);
    const heads = family.interleaves ? countInterleavedHeads(name, config.heads, config.kvHeads) : 0;
    return { weight, name, shape, interleavedHeads: heads };
  });
  checkReadBack(folder, config, entries, weights);
  return { entries, weights, ropeFactors: config.ropeFactors };
}

function numbersOf(config: ModelConfig): readonly (readonly [string, GgufEntry])[] {
  const u32 = (value: number): GgufEntry => ({ type: 'u32', value });
  const f32 = (value: number): GgufEntry => ({ type: 'f32', value });
  const width = headSize(config);
  return [
    ['block_count', u32(config.layers)],
    ['context_length', u32(config.maxPositions)],
    ['embedding_length', u32(config.hiddenSize)],
    ['feed_forward_length', u32(config.intermediateSize)],
    ['attention.head_count', u32(config.heads)],
    ['attention.head_count_kv', u32(config.kvHeads)],
    ['attention.key_length', u32(width)],
    ['attention.value_length', u32(width)],
    ['attention.layer_norm_rms_epsilon', f32(config.rmsNormEps)],
    ['rope.dimension_count', u32(width)],
    ['rope.freq_base', f32(config.ropeTheta)],
    ['vocab_size', u32(config.vocabSize)],
  ];
}

const LAYER_NAMES = reverse(LAYER_PARTS);
const NAMES = reverse(PARTS);

function reverse(names: Readonly<Record<string, string>>): ReadonlyMap<string, string> {
  return new Map(Object.entries(names).map(([ours, theirs]) => [theirs, ours]));
}

function nameOf(weight: string): string | undefined {
  const [, layer, inner, outer, kind] = /^(?:model\.layers\.(\d+)\.(.+)|(.+))\.(weight|bias)$/.exec(weight) ?? [];
  const part = inner === undefined ? NAMES.get(outer ?? '') : LAYER_NAMES.get(inner);
  if (part === undefined) return undefined;
  return layer === undefined ? `${part}.${kind}` : `blk.${layer}.${part}.${kind}`;
}

/** Reads the description back. @throws {UserError} BAD_ARGUMENT where another model would come of it */
function checkReadBack(
  folder: string,
  config: ModelConfig,
  entries: GgufEntries,
  weights: readonly ExportedWeight[],
): void {
  const tensors = new Map(
    weights.map(({ name, shape }) => [name, { name, shape, type: 'F32' as const, offset: 0, bytes: 0 }]),
  );
  const { config: json } = readArchitecture({ file: folder, metadata: valuesOf(entries), tensors });
  // llama.cpp reads divisors of the frequencies in this architecture alone.
  const scales = entries.get('general.architecture')?.value === 'llama';
  const read: Readonly<Record<string, unknown>> = {
    ...readModelConfig(json, folder),
    ropeFactors: scales ? config.ropeFactors : undefined,
  };
  for (const [property, value] of Object.entries(config)) {
    if (asStored(value) === asStored(read[property])) continue;
    throw new UserError(
      'BAD_ARGUMENT',
      `${folder}: its ${property}, ${cut(asStored(value))}, cannot be said in a GGUF file of this family; use --to hf`,
    );
  }
}

/** A property as text, with numbers as float32. */
function asStored(value: unknown): string {
  return JSON.stringify(value, (_, one) => (typeof one === 'number' ? Math.fround(one) : one)) ?? 'none';
}

function cut(text: string): string {
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}
