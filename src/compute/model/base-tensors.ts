/**
 * Weights of a frozen base as tensors to be fed. Dense ones are read once and held; quantised ones are held as they are and made
 * floats again for each use, in memory that all layers share: at most one layer's weights are there twice.
 */
import type { HostTensor } from '../engine/engine.ts';
import { type BlockSource, dequantize, type HeldBlocks, holdBlocks, readFixed } from '../tensor/fixed.ts';
import type { BaseWeights, ModelConfig } from './config.ts';
import { weightSpecs } from './parameters.ts';

/** Weights of a base that were read, shared by the programs of a thread. */
interface ReadWeights {
  readonly dense: Map<string, HostTensor>;
  readonly blocks: Map<string, HeldBlocks>;
}

const read = new WeakMap<BaseWeights, ReadWeights>();

/** Weights of a base, for one program that makes one run at a time. */
export class BaseTensors {
  readonly #base: BaseWeights | undefined;
  readonly #shapes: ReadonlyMap<string, readonly number[]>;
  readonly #read: ReadWeights;
  /** Room for a quantised weight of any layer, by its name in the first layer, and whose values are in it. */
  readonly #rooms = new Map<string, { readonly tensor: HostTensor; holds: string }>();

  constructor(config: ModelConfig) {
    this.#base = config.base;
    this.#shapes = new Map(weightSpecs(config).map(({ name, shape }) => [name, shape]));
    this.#read = (config.base && read.get(config.base)) ?? { dense: new Map(), blocks: new Map() };
    if (config.base) read.set(config.base, this.#read);
  }

  /**
   * Reads the weights from their files, so that a file that is not what it should be is found at the start.
   * @throws {LongplayError} BAD_CHECKPOINT where a file ends too early
   */
  load(): void {
    for (const [name, shape] of this.#shapes) {
      const source = this.#base?.weights[name];
      if (source?.kind === 'blocks') this.#blocksOf(name, source);
      else if (source) this.#denseOf(name, shape);
    }
  }

  /** Tensor of a weight; undefined where the base has none of this name. A quantised one holds until the next layer's is asked for. */
  feedOf(name: string): HostTensor | undefined {
    const source = this.#base?.weights[name];
    const shape = this.#shapes.get(name);
    if (!source || !shape) return undefined;
    return source.kind === 'blocks' ? this.#dequantized(name, shape, source) : this.#denseOf(name, shape);
  }

  #denseOf(name: string, shape: readonly number[]): HostTensor {
    const { dense } = this.#read;
    const made = dense.get(name) ?? { dtype: 'f32', shape, data: readFixed(shape, this.#base!.weights[name]!) };
    dense.set(name, made);
    return made;
  }

  #blocksOf(name: string, source: BlockSource): HeldBlocks {
    const held = this.#read.blocks.get(name) ?? holdBlocks(source);
    this.#read.blocks.set(name, held);
    return held;
  }

  #dequantized(name: string, shape: readonly number[], source: BlockSource): HostTensor {
    const first = name.replace(/^model\.layers\.\d+\./, 'model.layers.0.');
    let room = this.#rooms.get(first);
    if (!room) {
      const size = shape.reduce((a, b) => a * b, 1);
      room = { tensor: { dtype: 'f32', shape, data: new Float32Array(size) }, holds: '' };
      this.#rooms.set(first, room);
    }
    if (room.holds !== name) {
      dequantize(this.#blocksOf(name, source), room.tensor.data as Float32Array);
      room.holds = name;
    }
    return room.tensor;
  }
}
