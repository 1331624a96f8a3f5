/**
 * Low-rank adapters: a frozen model learns through two thin matrices beside some of its projections.
 *
 *   y = x·Wᵀ + (α/r)·(x·Aᵀ)·Bᵀ,  A [r, in], B [out, r]
 *
 * B starts at zero, so an untrained adapter changes nothing.
 *
 * @see Hu et al. 2021, https://arxiv.org/abs/2106.09685
 */
import { parameter } from '../tensor/tensor.ts';
import type { ModelConfig } from './config.ts';
import { type ParameterSpec, parameterSpecs, parameterTensors } from './parameters.ts';
import type { Parameters } from './transformer.ts';

export interface LoraConfig {
  /** Rank r, at least 1. */
  readonly rank: number;
  /** α; the adapter counts α/r. */
  readonly alpha: number;
  /** Projections that get an adapter, by the last part of their names: `q_proj`, `v_proj`, … */
  readonly targets: readonly string[];
}

/** Parameters of the adapters, named as peft's safetensors files do. @throws {RangeError} if there is nothing to adapt */
export function loraSpecs(config: ModelConfig, lora: LoraConfig): ParameterSpec[] {
  const { rank, targets } = lora;
  if (!Number.isInteger(rank) || rank < 1) throw new RangeError(`lora.rank: expected a positive integer, got ${rank}`);
  const specs = adapted(config, targets).flatMap(({ name, shape }): ParameterSpec[] => {
    const [outputs, inputs] = shape as [number, number];
    const bound = 1 / Math.sqrt(inputs);
    const { down, up } = adapterNames(name);
    return [
      { name: down, shape: [rank, inputs], init: { kind: 'uniform', bound }, decay: true },
      { name: up, shape: [outputs, rank], init: { kind: 'fill', value: 0 }, decay: true },
    ];
  });
  if (specs.length === 0)
    throw new RangeError(`lora.targets: the model has no projection called ${targets.join(', ')}`);
  return specs;
}

/** The model's parameters with adapters beside the targets, as graph inputs. */
export function loraTensors(config: ModelConfig, lora: LoraConfig): Parameters {
  const base = parameterTensors(config);
  const specs = new Map(loraSpecs(config, lora).map(({ name, shape }) => [name, parameter(name, shape)]));
  const all = (name: string) => specs.get(name) ?? base(name);
  return Object.assign(all, {
    adapter(projection: string) {
      const { down, up } = adapterNames(`${projection}.weight`);
      const [a, b] = [specs.get(down), specs.get(up)];
      return a && b && { down: a, up: b, scale: lora.alpha / lora.rank };
    },
  });
}

function adapted(config: ModelConfig, targets: readonly string[]): ParameterSpec[] {
  return parameterSpecs(config).filter(({ name }) => targets.some((target) => name.endsWith(`.${target}.weight`)));
}

function adapterNames(weight: string): { readonly down: string; readonly up: string } {
  const at = `base_model.model.${weight.slice(0, -'.weight'.length)}`;
  return { down: `${at}.lora_A.weight`, up: `${at}.lora_B.weight` };
}
