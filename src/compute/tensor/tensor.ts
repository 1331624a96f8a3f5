/**
 * Tensors as immutable nodes of an expression graph: a tensor knows its op, its operands, its shape and its dtype, and
 * holds no numbers. `defineGraph` collects what its outputs need; engines compute it.
 */
import { LongplayError, ShapeError } from '../../core/errors.ts';
import type { Emitter } from './emitter.ts';
import type { NdArray } from './ndarray.ts';
import { canonical, type Dim, type Shape } from './shape.ts';

export type DType = 'f32' | 'i32' | 'bool';

/** Attributes of an op beside its operands; plain data, so that equal nodes can be recognised. */
export type Attrs = object;

export interface Tensor {
  readonly op: string;
  readonly definition: OpDefinition;
  readonly inputs: readonly Tensor[];
  readonly attrs: Attrs;
  readonly shape: Shape;
  readonly dtype: DType;
}

/** Definition of an op, everything about it in one place; adding an op means writing one of these. */
export interface OpDefinition<A extends Attrs = Attrs> {
  readonly name: string;
  /** Shape and dtype of the result. @throws {ShapeError} naming op, operands and shapes when they do not fit */
  infer(inputs: readonly Tensor[], attrs: A): { readonly shape: Shape; readonly dtype: DType };
  /**
   * Gradient d loss / d input per input, given dy = d loss / d y; null where nothing flows. Absent: nothing flows at
   * all.
   */
  gradient?(y: Tensor, dy: Tensor, inputs: readonly Tensor[], attrs: A): readonly (Tensor | null)[];
  /** Adds the ONNX nodes that compute it from the values named `x`; returns the name of the result. */
  onnx(emit: Emitter, x: readonly string[], y: Tensor, attrs: A): string;
  /**
   * Reference meaning, in float64. `shape` is the result's; `size` gives the value of a symbolic dimension in this run.
   */
  reference(x: readonly NdArray[], shape: readonly number[], attrs: A, size: (dim: Dim) => number): Float64Array;
}

/** Operand; a number stands for a scalar constant of the other operand's dtype. */
export type Operand = Tensor | number;

/** Applies an op to operands: a node of the graph. Ops call this; users call ops. */
export function apply<A extends Attrs>(definition: OpDefinition<A>, inputs: readonly Tensor[], attrs: A): Tensor {
  const { shape, dtype } = definition.infer(inputs, attrs);
  return { op: definition.name, definition, inputs, attrs, shape, dtype };
}

export interface InputAttrs {
  readonly name: string;
  readonly parameter: boolean;
  readonly shape: Shape;
  readonly dtype: DType;
}

const inputOp: OpDefinition<InputAttrs> = {
  name: 'input',
  infer: (_, { shape, dtype }) => ({ shape, dtype }),
  onnx: (_emit, _x, _y, { name }) => name,
  reference(_x, _shape, { name }) {
    throw new LongplayError('BAD_ARGUMENT', `input '${name}' was not fed`);
  },
};

/**
 * Input: a value fed at each run; its shape may hold symbols, bound by what is fed. Names are unique within a graph.
 */
export function input(name: string, shape: Shape, dtype: DType = 'f32'): Tensor {
  return apply(inputOp, [], { name, parameter: false, shape: shape.map(canonical), dtype });
}

/** Parameter: a weight, an f32 input of fixed shape that a graph lists apart from its ordinary inputs. */
export function parameter(name: string, shape: readonly number[]): Tensor {
  return apply(inputOp, [], { name, parameter: true, shape: shape.map(canonical), dtype: 'f32' });
}

/** Name, shape, dtype and kind of a tensor made by `input` or `parameter`; undefined for any other. */
export function inputAttrs(x: Tensor): InputAttrs | undefined {
  return x.definition === inputOp ? (x.attrs as InputAttrs) : undefined;
}

export type HostData = Float32Array | Int32Array | Uint8Array;

export interface ConstantAttrs {
  readonly data: HostData;
  readonly shape: readonly number[];
  readonly dtype: DType;
}

const constantOp: OpDefinition<ConstantAttrs> = {
  name: 'constant',
  infer: (_, { shape, dtype }) => ({ shape, dtype }),
  onnx: (emit, _x, _y, { data, shape, dtype }) => emit.constant(data, shape, dtype),
  reference: (_x, _shape, { data }) => Float64Array.from(data),
};

/**
 * Constant of the graph.
 * @param values one number, which fills `shape` (a scalar by default), or the elements in row-major order
 * @param shape  [values.length] by default
 * @throws {ShapeError} if the elements do not fill the shape
 */
export function constant(values: number | ArrayLike<number>, shape?: readonly number[], dtype: DType = 'f32'): Tensor {
  const dims = shape ?? (typeof values === 'number' ? [] : [values.length]);
  const total = dims.reduce((product, dim) => product * dim, 1);
  if (typeof values !== 'number' && values.length !== total) {
    throw new ShapeError(`constant: ${values.length} values do not fill ${formatShape(dims)}`);
  }
  const Data = dtype === 'f32' ? Float32Array : dtype === 'i32' ? Int32Array : Uint8Array;
  const data = typeof values === 'number' ? new Data(total).fill(values) : Data.from(values);
  return apply(constantOp, [], { data, shape: dims, dtype });
}

/** Elements of a constant; undefined for any other tensor. */
export function constantAttrs(x: Tensor): ConstantAttrs | undefined {
  return x.definition === constantOp ? (x.attrs as ConstantAttrs) : undefined;
}

export function formatShape(shape: Shape): string {
  return `[${shape.join(', ')}]`;
}

/** Describes an operand for errors: `'wte' f32[512, 128]`, or `matmul f32[N, 128]` for one without a name. */
export function describe(x: Tensor): string {
  const named = inputAttrs(x);
  return `${named ? `'${named.name}'` : x.op} ${x.dtype}${formatShape(x.shape)}`;
}

/** Error of an op whose operands do not fit: `matmul: inner sizes differ: 'x' f32[N, 4], 'w' f32[5, 6]`. */
export function misfit(op: string, problem: string, operands: readonly Tensor[]): ShapeError {
  return new ShapeError(`${op}: ${problem}: ${operands.map(describe).join(', ')}`);
}

/** Checks the dtypes of the operands. @throws {ShapeError} */
export function requireDType(op: string, inputs: readonly Tensor[], ...allowed: readonly DType[]): void {
  if (!inputs.every((x) => allowed.includes(x.dtype))) {
    throw misfit(op, `operands must be ${allowed.join(' or ')}`, inputs);
  }
}

/** Axis in [0, rank), counting from the end where negative. @throws {ShapeError} */
export function axisOf(op: string, x: Tensor, axis: number): number {
  const positive = axis < 0 ? axis + x.shape.length : axis;
  if (!Number.isInteger(axis) || positive < 0 || positive >= x.shape.length) {
    throw misfit(op, `there is no axis ${axis}`, [x]);
  }
  return positive;
}
