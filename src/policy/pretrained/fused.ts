/**
 * Matrices that a file holds as one and that are computed with apart: queries, keys and values, or gate and inner values, one
 * after another in rows. A part is a stretch of the file, so nothing is copied, and what is written to it lies where it was.
 */
import type { LoraConfig, ModelConfig } from '../../compute/model/config.ts';
import { type ParameterSpec, weightSpecs } from '../../compute/model/parameters.ts';
import { UserError } from '../../core/errors.ts';
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

/** All weights of a model as its files hold them. */
export function fileSpecs(config: ModelConfig): readonly ParameterSpec[] {
  const specs = weightSpecs(config);
  if (!config.fusedProjections) return specs;
  const stored = new Map<string, ParameterSpec>();
  for (const spec of specs) {
    const name = fusedName(spec.name);
    const [rows = 0, ...rest] = spec.shape;
    stored.set(name, { ...spec, name, shape: [(stored.get(name)?.shape[0] ?? 0) + rows, ...rest] });
  }
  return [...stored.values()];
}

/** Weights of a model by name, each where its numbers lie. @param stored as {@link fileSpecs} has them, in those shapes */
export function splitFused(
  config: ModelConfig,
  stored: ReadonlyMap<string, StoredWeight>,
): ReadonlyMap<string, StoredWeight> {
  if (!config.fusedProjections) return stored;
  const weights = new Map<string, StoredWeight>();
  const ends = new Map<string, number>();
  for (const { name, shape } of weightSpecs(config)) {
    const fused = fusedName(name);
    const { source, shape: whole } = stored.get(fused)!;
    const start = ends.get(fused) ?? source.offset;
    const bytes = (source.bytes / whole[0]!) * shape[0]!;
    ends.set(fused, start + bytes);
    weights.set(name, { shape, source: { ...source, offset: start, bytes } });
  }
  return weights;
}

/**
 * Checks that an adapter has a form outside: peft's stand beside whole matrices of a file, and not beside parts of one.
 * @throws {UserError} BAD_ARGUMENT naming the projection and what to do
 */
export function requireWhole({ fusedProjections = false }: ModelConfig, { targets }: LoraConfig): void {
  const part = fusedProjections ? targets.find((target) => FUSED_OF.has(target)) : undefined;
  if (part === undefined) return;
  throw new UserError(
    'BAD_ARGUMENT',
    `adapter: ${part} is a part of ${FUSED_OF.get(part)} in this model's files, and peft's form has no adapter beside a part; export the merged model (--to hf), or train o_proj and down_proj (policy.adapter.targets)`,
  );
}
