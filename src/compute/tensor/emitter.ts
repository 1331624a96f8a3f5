import { ShapeError } from '../../core/errors.ts';
import type { BlockSource, DenseSource, FileBytes } from './fixed.ts';
import { canonical, type Dim, multipleOf, terms } from './shape.ts';
import type { DType, HostData } from './tensor.ts';

/** ONNX attribute: an int, ints, a string, or a float, which is marked as one. */
export type OnnxAttr = number | readonly number[] | string | { readonly float: number };

export interface OnnxNode {
  readonly opType: string;
  readonly domain: string;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attrs: Readonly<Record<string, OnnxAttr>>;
}

export interface OnnxConstant {
  readonly name: string;
  readonly dtype: DType | 'i64';
  readonly shape: readonly number[];
  readonly data: HostData | BigInt64Array;
}

/** External tensor, whose bytes stay in a file. */
export interface OnnxExternal {
  readonly name: string;
  readonly dtype: DenseSource['dtype'] | 'u8' | 'u4';
  readonly shape: readonly number[];
  readonly at: FileBytes;
}

/** Blocks of a quantised matrix [rows, columns], for ops that compute with it as it is. */
export interface OnnxBlocks {
  readonly rows: number;
  readonly columns: number;
  readonly source: BlockSource;
}

/** Source of a symbol's value: axis `axis` of input `input` is `multiple` times it. */
export interface SymbolSource {
  readonly input: string;
  readonly axis: number;
  readonly multiple: number;
}

/** Features of the receiving runtime beyond standard ONNX. */
export interface EmitterOptions {
  /** Contributed ops of onnxruntime: com.microsoft's FusedMatMul and RotaryEmbedding, SimplifiedLayerNormalization. */
  readonly contrib: boolean;
  /** True where SimplifiedLayerNormalization gives its second output, 1/√(mean(x²) + ε); on webgpu it is wrong. */
  readonly normInverse: boolean;
  /** True when it runs on one thread, so that additions into one row cannot race. */
  readonly oneThread: boolean;
  /** True when it maps the files that fixed tensors lie in; else their numbers become constants. */
  readonly files: boolean;
  /** True where matrices meet few rows at a time, as in decoding on a cpu. */
  readonly fewRows?: boolean | undefined;
}

const MICROSOFT = 'com.microsoft';

/**
 * Collects ONNX nodes. Equal nodes and equal small constants are made once, so ops need not take care to share.
 * Value names start with '%' and so never meet the name of an input.
 */
export class Emitter {
  readonly emitted: OnnxNode[] = [];
  readonly constants: OnnxConstant[] = [];
  readonly externals: OnnxExternal[] = [];
  readonly options: EmitterOptions;
  readonly #sources: ReadonlyMap<string, SymbolSource>;
  readonly #made = new Map<string, readonly string[]>();
  readonly #constants = new Map<string, string>();
  readonly #externals = new Map<string, string>();
  /** Quantised matrices by the name of their dequantised value. */
  readonly #blocks = new Map<string, OnnxBlocks>();

  constructor(sources: ReadonlyMap<string, SymbolSource>, options: EmitterOptions) {
    this.#sources = sources;
    this.options = options;
  }

  /** Adds a node with one output, or finds the equal one; returns its output's name. */
  node(opType: string, inputs: readonly string[], attrs: Readonly<Record<string, OnnxAttr>> = {}): string {
    return this.#node('', opType, inputs, attrs, 1)[0]!;
  }

  /** Adds a node with several outputs, as `node` does; returns their names. */
  nodes(
    opType: string,
    inputs: readonly string[],
    attrs: Readonly<Record<string, OnnxAttr>>,
    outputs: number,
  ): readonly string[] {
    return this.#node('', opType, inputs, attrs, outputs);
  }

  /** Adds a node as `node` does, for an op of the com.microsoft domain. */
  microsoft(opType: string, inputs: readonly string[], attrs: Readonly<Record<string, OnnxAttr>> = {}): string {
    return this.#node(MICROSOFT, opType, inputs, attrs, 1)[0]!;
  }

  #node(
    domain: string,
    opType: string,
    inputs: readonly string[],
    attrs: Readonly<Record<string, OnnxAttr>>,
    count: number,
  ): readonly string[] {
    const key = JSON.stringify([domain, opType, inputs, attrs, count]);
    let outputs = this.#made.get(key);
    if (outputs === undefined) {
      outputs = Array.from({ length: count }, (_, i) => `%${this.emitted.length}${i === 0 ? '' : `.${i}`}`);
      this.emitted.push({ opType, domain, inputs, outputs, attrs });
      this.#made.set(key, outputs);
    }
    return outputs;
  }

  constant(data: HostData | BigInt64Array, shape: readonly number[], dtype: DType | 'i64'): string {
    const key = data.length <= 16 ? `${dtype}${shape.join()}:${bitsOf(data)}` : undefined;
    const made = key === undefined ? undefined : this.#constants.get(key);
    if (made !== undefined) return made;
    const name = `%c${this.constants.length}`;
    this.constants.push({ name, dtype, shape, data });
    if (key !== undefined) this.#constants.set(key, name);
    return name;
  }

  /** Adds a tensor that stays in its file; one stretch under one shape is one tensor. */
  external(dtype: OnnxExternal['dtype'], shape: readonly number[], { file, offset, bytes }: FileBytes): string {
    const key = `${dtype}${shape}:${file}:${offset}`;
    const made = this.#externals.get(key) ?? `%f${this.externals.length}`;
    if (!this.#externals.has(key)) {
      this.#externals.set(key, made);
      this.externals.push({ name: made, dtype, shape, at: { file, offset, bytes } });
    }
    return made;
  }

  /**
   * Adds a quantised matrix and returns its dequantised value, computed at every run for the ops that need it. Ops that
   * compute with the blocks find them by that name, and then it is not computed.
   */
  blocks([rows, columns]: readonly [number, number], source: BlockSource): string {
    const type = source.bits === 8 ? 'u8' : 'u4';
    const perRow = columns / 32;
    const zeros = { ...source.zeros, bytes: (rows * perRow * source.bits) / 8 };
    const scaled = this.node(
      'DequantizeLinear',
      [
        this.external(type, [rows, columns], source.codes),
        this.external('f32', [rows, perRow], source.scales),
        this.external(type, [rows, perRow], zeros),
      ],
      { axis: 1, block_size: 32 },
    );
    const value = source.offsets ? this.#addOffsets(scaled, [rows, columns], source.offsets) : scaled;
    this.#blocks.set(value, { rows, columns, source });
    return value;
  }

  #addOffsets(scaled: string, [rows, columns]: readonly [number, number], offsets: FileBytes): string {
    const inBlocks = this.node('Reshape', [scaled, this.i64([rows, columns / 32, 32])]);
    const moved = this.node('Add', [inBlocks, this.external('f32', [rows, columns / 32, 1], offsets)]);
    return this.node('Reshape', [moved, this.i64([rows, columns])]);
  }

  /** Blocks behind a value made by `blocks`, where the runtime computes with them. */
  blocksOf(value: string): OnnxBlocks | undefined {
    return this.options.contrib ? this.#blocks.get(value) : undefined;
  }

  scalar(value: number, dtype: DType = 'f32'): string {
    const Data = dtype === 'f32' ? Float32Array : dtype === 'i32' ? Int32Array : Uint8Array;
    return this.constant(Data.of(value), [], dtype);
  }

  /** Adds an int64 vector, as ONNX wants axes and shapes. */
  i64(values: readonly number[]): string {
    return this.constant(BigInt64Array.from(values, BigInt), [values.length], 'i64');
  }

  /** Adds an int64 vector of sizes; the symbolic ones are computed in the graph, each symbol once. */
  dims(dims: readonly Dim[]): string {
    if (dims.every((dim) => typeof dim === 'number')) return this.i64(dims as number[]);
    const parts = dims.map((dim) => this.#dim(dim));
    return parts.length === 1 ? parts[0]! : this.node('Concat', parts, { axis: 0 });
  }

  /** Value of one dimension as int64 [1]. */
  #dim(dim: Dim): string {
    if (typeof dim === 'number') return this.i64([dim]);
    const known = multipleOf(canonical(dim));
    if (known?.multiple === 1) return this.#symbol(known.symbol);
    const summands = [...terms(dim)].map(([monomial, coefficient]) => {
      const factors = monomial === '' ? [] : monomial.split('*').map((symbol) => this.#symbol(symbol));
      if (coefficient !== 1 || factors.length === 0) factors.unshift(this.i64([coefficient]));
      return factors.reduce((a, b) => this.node('Mul', [a, b]));
    });
    return summands.reduce((a, b) => this.node('Add', [a, b]));
  }

  #symbol(symbol: string): string {
    const source = this.#sources.get(symbol);
    if (source === undefined) throw new ShapeError(`no input of the graph gives the size of '${symbol}'`);
    const { input, axis, multiple } = source;
    const size = this.node('Shape', [input], { start: axis, end: axis + 1 });
    return multiple === 1 ? size : this.node('Div', [size, this.i64([multiple])]);
  }
}

/** Bits of a number as text, so that -0 and 0 differ and NaN equals itself. */
function bitsOf(data: HostData | BigInt64Array): string {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('hex');
}
