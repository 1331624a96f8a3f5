/** Frozen base of a pretrained model: its weights as fixed tensors, left in its files. */
import type { BaseWeights, ModelConfig } from '../../compute/model/config.ts';
import { weightSpecs } from '../../compute/model/parameters.ts';
import type { PretrainedModel } from './folder.ts';

/** Freezes a model: every weight stays in its file. */
export function freeze({ config, shards }: PretrainedModel): ModelConfig & { readonly base: BaseWeights } {
  const weights = Object.fromEntries(
    weightSpecs({ ...config, valueHead: false }).map(({ name }) => [name, shards.weights.get(name)!.source]),
  );
  return { ...config, base: { hash: shards.hash, weights } };
}
