/**
 * Low-rank adapters: a frozen model learns through two thin matrices beside some of its projections.
 *
 *   y = x·Wᵀ + (α/r)·(x·Aᵀ)·Bᵀ,  A [r, in], B [out, r]
 *
 * B starts at zero, so an untrained adapter changes nothing.
 *
 * @see Hu et al. 2021, https://arxiv.org/abs/2106.09685
 */
import type { LoraConfig } from './config.ts';
import type { ParameterSpec } from './parameters.ts';

/**
 * Parameters of the adapters, named as peft's safetensors files do.
 * @param weights the model's own weights
 * @throws {RangeError} if there is nothing to adapt
 */
export function loraSpecs(
  weights: readonly ParameterSpec[],
  { rank, targets, topLayers }: LoraConfig,
): ParameterSpec[] {
  if (!Number.isInteger(rank) || rank < 1) throw new RangeError(`lora.rank: expected a positive integer, got ${rank}`);
  const lone = targets.find((target) => !weights.some(({ name }) => adapts(name, target)));
  if (lone !== undefined || targets.length === 0) {
    throw new RangeError(`lora.targets: the model has no projection called ${lone ?? 'nothing'}`);
  }
  const layers = weights.reduce((most, { name }) => Math.max(most, 1 + (layerOf(name) ?? -1)), 0);
  if (topLayers !== undefined && !(Number.isInteger(topLayers) && topLayers >= 1 && topLayers <= layers)) {
    throw new RangeError(
      `lora.topLayers: expected a whole number from 1 to ${layers}, the model's layers; got ${topLayers}`,
    );
  }
  const lowest = layers - (topLayers ?? layers);
  return weights
    .filter(({ name }) => (layerOf(name) ?? layers) >= lowest)
    .filter(({ name }) => targets.some((target) => adapts(name, target)))
    .flatMap(({ name, shape }): ParameterSpec[] => {
      const [outputs, inputs] = shape as [number, number];
      const bound = 1 / Math.sqrt(inputs);
      const { down, up } = adapterNames(name.slice(0, -'.weight'.length));
      return [
        { name: down, shape: [rank, inputs], init: { kind: 'uniform', bound }, decay: true },
        { name: up, shape: [outputs, rank], init: { kind: 'fill', value: 0 }, decay: true },
      ];
    });
}

/** Factor on B·A. */
export function loraScale({ rank, alpha, rslora = false }: LoraConfig): number {
  return alpha / (rslora ? Math.sqrt(rank) : rank);
}

/** Names of A and B beside a projection, as peft writes them. @param projection e.g. `model.layers.0.self_attn.q_proj` */
export function adapterNames(projection: string): { readonly down: string; readonly up: string } {
  const at = `base_model.model.${projection}`;
  return { down: `${at}.lora_A.weight`, up: `${at}.lora_B.weight` };
}

/** Number of the layer that a weight belongs to, 0 the lowest; undefined for embeddings and heads. */
function layerOf(weight: string): number | undefined {
  const number = /^model\.layers\.(\d+)\./.exec(weight)?.[1];
  return number === undefined ? undefined : Number(number);
}

function adapts(weight: string, target: string): boolean {
  return weight.endsWith(`.${target}.weight`);
}
