/**
 * Matrices that a file holds as one and that are computed with apart: queries, keys and values, or gate and inner values, one
 * after another in rows. A part is a stretch of the file, so nothing is copied, and what is written to it lies where it was.
 *
 * An adapter beside each part is one beside the whole:
 *
 *   [B₁·A₁; B₂·A₂; B₃·A₃] = diag(B₁, B₂, B₃)·[A₁; A₂; A₃]
 *
 * Its rank is the sum of theirs. All matrices of a peft adapter have one rank, so those of others are filled with zeros.
 */
import type { LoraConfig, ModelConfig } from '../../compute/model/config.ts';
import { adapterNames, loraScale } from '../../compute/model/lora.ts';
import { type ParameterSpec, weightSpecs } from '../../compute/model/parameters.ts';
import { largestOf } from '../../core/extremes.ts';
import type { StoredWeight } from './shards.ts';

/** Parts of each fused projection, in the order of their rows. */
const FUSED: Readonly<Record<string, readonly string[]>> = {
  qkv_proj: ['q_proj', 'k_proj', 'v_proj'],
  gate_up_proj: ['gate_proj', 'up_proj'],
};
const FUSED_OF = new Map(Object.entries(FUSED).flatMap(([fused, parts]) => parts.map((part) => [part, fused])));

/** Name of the matrix in which a file holds a weight. */
function fusedName(name: string): string {
  return name.replace(/\b(\w+_proj)(?=\.\w+$)/, (part) => FUSED_OF.get(part) ?? part);
}

/** Weights of a model by the matrix in which its files hold them, each list in the order of the rows. */
function partsByMatrix(config: ModelConfig): ReadonlyMap<string, readonly ParameterSpec[]> {
  const found = new Map<string, ParameterSpec[]>();
  for (const spec of weightSpecs(config)) {
    const name = config.fusedProjections ? fusedName(spec.name) : spec.name;
    const parts = found.get(name) ?? [];
    found.set(name, parts);
    parts.push(spec);
  }
  return found;
}

/** All weights of a model as its files hold them. */
export function fileSpecs(config: ModelConfig): readonly ParameterSpec[] {
  return [...partsByMatrix(config)].map(([name, parts]): ParameterSpec => {
    const [, ...rest] = parts[0]!.shape;
    return { ...parts[0]!, name, shape: [parts.reduce((sum, { shape }) => sum + shape[0]!, 0), ...rest] };
  });
}

/** Weights of a model by name, each where its numbers lie. @param stored as {@link fileSpecs} has them, in those shapes */
export function splitFused(
  config: ModelConfig,
  stored: ReadonlyMap<string, StoredWeight>,
): ReadonlyMap<string, StoredWeight> {
  if (!config.fusedProjections) return stored;
  const weights = new Map<string, StoredWeight>();
  for (const [fused, parts] of partsByMatrix(config)) {
    const { source, shape: whole } = stored.get(fused)!;
    let { offset } = source;
    for (const { name, shape } of parts) {
      const bytes = (source.bytes / whole[0]!) * shape[0]!;
      weights.set(name, { shape, source: { ...source, offset, bytes } });
      offset += bytes;
    }
  }
  return weights;
}

/** Adapter: what it is, and its matrices by name. */
export interface AdapterValues {
  readonly lora: LoraConfig;
  readonly values: Readonly<Record<string, Float32Array>>;
}

/** Adapter beside the matrices of a model's files, from one beside their parts. */
export function fuseAdapter(config: ModelConfig, { lora, values }: AdapterValues): AdapterValues {
  if (!config.fusedProjections) return { lora, values };
  const matrices = [...partsByMatrix(config)].map(([name, parts]) => ({ name, parts: parts.map(readPart) }));
  function readPart({ name, shape }: ParameterSpec) {
    const { down, up } = namesBeside(name);
    return { rows: shape[0]!, columns: shape[1] ?? 1, a: values[down], b: values[up] };
  }
  const { rank, rslora = false } = lora;
  const width = rank * largestOf(matrices.map(({ parts }) => parts.filter(({ a }) => a).length));
  const fused: Record<string, Float32Array> = {};
  for (const { name, parts } of matrices) {
    if (!parts.some(({ a }) => a)) continue;
    const { down, up } = namesBeside(name);
    const wholeA = new Float32Array(width * parts[0]!.columns);
    const wholeB = new Float32Array(parts.reduce((sum, { rows }) => sum + rows, 0) * width);
    let [from, row] = [0, 0];
    for (const { rows, columns, a, b } of parts) {
      if (a && b) {
        wholeA.set(a, from * columns);
        for (let i = 0; i < rows; i++) wholeB.set(b.subarray(i * rank, (i + 1) * rank), (row + i) * width + from);
        from += rank;
      }
      row += rows;
    }
    fused[down] = wholeA;
    fused[up] = wholeB;
  }
  const targets = [...new Set(lora.targets.map((target) => FUSED_OF.get(target) ?? target))];
  // The factor on B·A stays what it was.
  const alpha = loraScale(lora) * (rslora ? Math.sqrt(width) : width);
  return { lora: { ...lora, rank: width, alpha, targets }, values: fused };
}

/** Adapter beside the parts of matrices, from one beside the matrices of a model's files: each part has the whole A. */
export function splitAdapter(config: ModelConfig, { lora, values }: AdapterValues): AdapterValues {
  if (!config.fusedProjections) return { lora, values };
  const split: Record<string, Float32Array> = {};
  for (const [fused, parts] of partsByMatrix(config)) {
    const whole = namesBeside(fused);
    const [a, b] = [values[whole.down], values[whole.up]];
    if (!a || !b) continue;
    let at = 0;
    for (const { name, shape } of parts) {
      const { down, up } = namesBeside(name);
      const end = at + shape[0]! * lora.rank;
      split[down] = a.slice();
      split[up] = b.slice(at, end);
      at = end;
    }
  }
  const targets = lora.targets.flatMap((target) => FUSED[target] ?? [target]).sort();
  return { lora: { ...lora, targets }, values: split };
}

/** Names of A and B beside a weight. */
function namesBeside(weight: string): ReturnType<typeof adapterNames> {
  return adapterNames(weight.replace(/\.weight$/, ''));
}
