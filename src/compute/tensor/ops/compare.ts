/** Comparisons, logic, selection and casts. No gradient flows through a bool or an i32. */
import { broadcastData } from '../ndarray.ts';
import { broadcastShapes, equalShapes } from '../shape.ts';
import { apply, type DType, misfit, type OpDefinition, type Operand, requireDType, type Tensor } from '../tensor.ts';
import { broadcastInputs, lift, stripBroadcasts } from './elementwise.ts';
import { sumTo } from './reduce.ts';

type None = Record<string, never>;
const NONE: None = {};

function predicate(
  name: string,
  onnx: string,
  meaning: (a: number, b: number) => boolean,
  ...dtypes: readonly DType[]
): OpDefinition<None> {
  return {
    name,
    infer: (inputs) => ({ shape: broadcastInputs(name, inputs, dtypes), dtype: 'bool' }),
    onnx: (emit, x) => emit.node(onnx, x),
    reference(x, shape) {
      const b = broadcastData(x[1]!, shape);
      return broadcastData(x[0]!, shape).map((v, i) => Number(meaning(v, b[i]!)));
    },
  };
}

const lessEqualOp = predicate('lessEqual', 'LessOrEqual', (a, b) => a <= b, 'f32', 'i32');
const greaterEqualOp = predicate('greaterEqual', 'GreaterOrEqual', (a, b) => a >= b, 'f32', 'i32');
const equalOp = predicate('equal', 'Equal', (a, b) => a === b, 'f32', 'i32', 'bool');
const andOp = predicate('and', 'And', (a, b) => a === 1 && b === 1, 'bool');
const orOp = predicate('or', 'Or', (a, b) => a === 1 || b === 1, 'bool');

/** Compares: a ≤ b as bool. */
export function lessEqual(a: Operand, b: Operand): Tensor {
  return apply(lessEqualOp, lift('lessEqual', a, b), NONE);
}

/** Compares: a ≥ b as bool. */
export function greaterEqual(a: Operand, b: Operand): Tensor {
  return apply(greaterEqualOp, lift('greaterEqual', a, b), NONE);
}

/** Compares: a = b as bool. */
export function equal(a: Operand, b: Operand): Tensor {
  return apply(equalOp, lift('equal', a, b), NONE);
}

export function and(a: Tensor, b: Tensor): Tensor {
  return apply(andOp, [a, b], NONE);
}

export function or(a: Tensor, b: Tensor): Tensor {
  return apply(orOp, [a, b], NONE);
}

const notOp: OpDefinition<None> = {
  name: 'not',
  infer(inputs) {
    requireDType('not', inputs, 'bool');
    return inputs[0]!;
  },
  onnx: (emit, x) => emit.node('Not', x),
  reference: ([x]) => x!.data.map((v) => 1 - v),
};

export function not(x: Tensor): Tensor {
  return apply(notOp, [x], NONE);
}

const whereOp: OpDefinition<None> = {
  name: 'where',
  infer(inputs) {
    const [condition, a, b] = inputs;
    if (condition!.dtype !== 'bool') throw misfit('where', 'the condition must be bool', inputs);
    const value = broadcastInputs('where', [a!, b!], ['f32', 'i32']);
    const shape = broadcastShapes(condition!.shape, value);
    if (shape === undefined) throw misfit('where', 'shapes do not broadcast', inputs);
    return { shape, dtype: a!.dtype };
  },
  gradient: (_y, dy, [condition, a, b]) => [
    null,
    sumTo(where(condition!, dy, 0), a!.shape),
    sumTo(where(condition!, 0, dy), b!.shape),
  ],
  onnx: (emit, x) => emit.node('Where', x),
  reference(x, shape) {
    const [condition, a, b] = x.map((operand) => broadcastData(operand, shape));
    return condition!.map((holds, i) => (holds === 1 ? a![i]! : b![i]!));
  },
};

/** Selects a where the condition holds, else b; all three broadcast. */
export function where(condition: Tensor, a: Operand, b: Operand): Tensor {
  const inputs = [condition, ...lift('where', a, b)];
  const full = apply(whereOp, inputs, NONE);
  const lean = apply(whereOp, stripBroadcasts(inputs), NONE);
  return equalShapes(lean.shape, full.shape) ? lean : full;
}

interface CastAttrs {
  readonly to: DType;
}

/** TensorProto.DataType of each dtype. @see https://github.com/onnx/onnx/blob/main/onnx/onnx.proto */
export const ONNX_TYPE = { f32: 1, i32: 6, i64: 7, bool: 9 } as const;

const castOp: OpDefinition<CastAttrs> = {
  name: 'cast',
  infer: ([x], { to }) => ({ shape: x!.shape, dtype: to }),
  onnx: (emit, x, _y, { to }) => emit.node('Cast', x, { to: ONNX_TYPE[to] }),
  reference: ([x], _shape, { to }) =>
    to === 'f32' ? x!.data : x!.data.map(to === 'bool' ? (v) => Number(v !== 0) : Math.trunc),
};

/** Casts x to another dtype: f32 → i32 drops the fraction, anything → bool is x ≠ 0. No gradient flows through it. */
export function cast(x: Tensor, dtype: DType): Tensor {
  return x.dtype === dtype ? x : apply(castOp, [x], { to: dtype });
}
