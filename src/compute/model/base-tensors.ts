/**
 * Weights of a frozen base as tensors to be fed. Dense ones are read once and held; quantised ones are held as they are and made
 * floats again for each use, in memory that all layers share: at most one layer's weights are there twice.
 */
import type { HostTensor } from '../engine/engine.ts';
import { type BlockSource, dequantize, type HeldBlocks, holdBlocks, readFixed } from '../tensor/fixed.ts';
import type { ModelConfig } from './config.ts';
import { isLayerParameter } from './layer-graphs.ts';
import { weightSpecs } from './parameters.ts';

/** Weights of a base. */
export class BaseTensors {
  readonly #sources: ModelConfig['base'];
  readonly #shapes: ReadonlyMap<string, readonly number[]>;
  readonly #dense = new Map<string, HostTensor>();
  readonly #blocks = new Map<string, HeldBlocks>();
  /** Room for a quantised weight of any layer, by its name in the first layer, and whose values are in it. */
  readonly #rooms = new Map<string, { readonly tensor: HostTensor; holds: string }>();

  constructor(config: ModelConfig) {
    this.#sources = config.base;
    this.#shapes = new Map(weightSpecs(config).map(({ name, shape }) => [name, shape]));
  }

  /** Tensor of a weight; undefined where the base has none of this name. A quantised one holds until the next layer's is asked for. */
  feedOf(name: string): HostTensor | undefined {
    const source = this.#sources?.weights[name];
    const shape = this.#shapes.get(name);
    if (!source || !shape) return undefined;
    if (source.kind === 'blocks') return this.#dequantized(name, shape, source);
    const made = this.#dense.get(name) ?? { dtype: 'f32', shape, data: readFixed(shape, source) };
    this.#dense.set(name, made);
    return made;
  }

  #dequantized(name: string, shape: readonly number[], source: BlockSource): HostTensor {
    const first = isLayerParameter(name) ? name.replace(/model\.layers\.\d+\./, 'model.layers.0.') : name;
    let room = this.#rooms.get(first);
    if (!room) {
      const size = shape.reduce((a, b) => a * b, 1);
      room = { tensor: { dtype: 'f32', shape, data: new Float32Array(size) }, holds: '' };
      this.#rooms.set(first, room);
    }
    if (room.holds !== name) {
      const held = this.#blocks.get(name) ?? holdBlocks(source);
      this.#blocks.set(name, held);
      dequantize(held, room.tensor.data as Float32Array);
      room.holds = name;
    }
    return room.tensor;
  }
}
