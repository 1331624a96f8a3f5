/** Elementwise ops, with numpy broadcasting for those of two operands. */
import { LongplayError } from '../../../core/errors.ts';
import { broadcastData } from '../ndarray.ts';
import { broadcastShapes, equalShapes, type Shape } from '../shape.ts';
import {
  apply,
  constant,
  constantAttrs,
  type DType,
  misfit,
  type OpDefinition,
  type Operand,
  requireDType,
  type Tensor,
} from '../tensor.ts';
import { equal, greaterEqual, lessEqual, where } from './compare.ts';
import { broadcastTo } from './layout.ts';
import { sumTo } from './reduce.ts';

type None = Record<string, never>;
const NONE: None = {};

// One operand

function unary(
  name: string,
  onnx: string,
  meaning: (x: number) => number,
  gradient: (x: Tensor, y: Tensor, dy: Tensor) => Tensor,
  dtypes: readonly DType[] = ['f32'],
): OpDefinition<None> {
  return {
    name,
    infer(inputs) {
      requireDType(name, inputs, ...dtypes);
      return inputs[0]!;
    },
    gradient: (y, dy, [x]) => [gradient(x!, y, dy)],
    onnx: (emit, x) => emit.node(onnx, x),
    reference: ([x]) => x!.data.map(meaning),
  };
}

/** Broadcasting commutes with ops of one operand, and is cheaper after them. */
function unaryOf(definition: OpDefinition<None>, x: Tensor): Tensor {
  if (x.op === 'broadcastTo') return broadcastTo(apply(definition, x.inputs, NONE), x.shape);
  return apply(definition, [x], NONE);
}

const negOp = unary(
  'neg',
  'Neg',
  (x) => -x,
  (_x, _y, dy) => neg(dy),
  ['f32', 'i32'],
);
const expOp = unary('exp', 'Exp', Math.exp, (_x, y, dy) => mul(dy, y));
const logOp = unary('log', 'Log', Math.log, (x, _y, dy) => div(dy, x));
const sqrtOp = unary('sqrt', 'Sqrt', Math.sqrt, (_x, y, dy) => div(mul(dy, 0.5), y));
const reciprocalOp = unary(
  'reciprocal',
  'Reciprocal',
  (x) => 1 / x,
  (_x, y, dy) => neg(mul(dy, mul(y, y))),
);
const sigmoidOp = unary('sigmoid', 'Sigmoid', logistic, (_x, y, dy) => mul(dy, mul(y, sub(1, y))));
const tanhOp = unary('tanh', 'Tanh', Math.tanh, (_x, y, dy) => mul(dy, sub(1, mul(y, y))));
const rsqrtOp: OpDefinition<None> = {
  ...unary(
    'rsqrt',
    'Sqrt',
    (x) => 1 / Math.sqrt(x),
    (_x, y, dy) => mul(mul(dy, mul(mul(y, y), y)), -0.5),
  ),
  onnx: (emit, x) => emit.node('Reciprocal', [emit.node('Sqrt', x)]),
};
const siluOp: OpDefinition<None> = {
  // d/dx x·σ(x) = σ(x) + y·(1 − σ(x)); the emitter makes σ(x) once for both directions.
  ...unary(
    'silu',
    'Sigmoid',
    (x) => x * logistic(x),
    (x, y, dy) => {
      const s = sigmoid(x);
      return mul(dy, add(s, mul(y, sub(1, s))));
    },
  ),
  onnx: (emit, [x]) => emit.node('Mul', [x!, emit.node('Sigmoid', [x!])]),
};

export function neg(x: Tensor): Tensor {
  return unaryOf(negOp, x);
}

export function exp(x: Tensor): Tensor {
  return unaryOf(expOp, x);
}

/** Natural logarithm. */
export function log(x: Tensor): Tensor {
  return unaryOf(logOp, x);
}

export function sqrt(x: Tensor): Tensor {
  return unaryOf(sqrtOp, x);
}

export function reciprocal(x: Tensor): Tensor {
  return unaryOf(reciprocalOp, x);
}

/** Reciprocal square root 1/√x. */
export function rsqrt(x: Tensor): Tensor {
  return unaryOf(rsqrtOp, x);
}

/** Sigmoid 1/(1 + e⁻ˣ). */
export function sigmoid(x: Tensor): Tensor {
  return unaryOf(sigmoidOp, x);
}

export function tanh(x: Tensor): Tensor {
  return unaryOf(tanhOp, x);
}

/** SiLU x·σ(x), also called swish. */
export function silu(x: Tensor): Tensor {
  return unaryOf(siluOp, x);
}

/**
 * GELU in its tanh form: the Gaussian error linear unit. @see Hendrycks & Gimpel 2016, https://arxiv.org/abs/1606.08415
 */
export function gelu(x: Tensor): Tensor {
  const inner = mul(add(x, mul(mul(mul(x, x), x), 0.044715)), Math.sqrt(2 / Math.PI));
  return mul(mul(x, 0.5), add(tanh(inner), 1));
}

/** Soft cap c·tanh(x/c): x itself near 0, and never beyond ±c. @param cap c, above 0; undefined: none */
export function softCap(x: Tensor, cap: number | undefined): Tensor {
  return cap === undefined ? x : mul(tanh(mul(x, 1 / cap)), cap);
}

interface ClampAttrs {
  readonly lo: number;
  readonly hi: number;
}

const clampOp: OpDefinition<ClampAttrs> = {
  name: 'clamp',
  infer(inputs) {
    requireDType('clamp', inputs, 'f32');
    return inputs[0]!;
  },
  gradient: (y, dy, [x]) => [where(equal(x!, y), dy, 0)],
  onnx: (emit, [x], _y, { lo, hi }) => emit.node('Clip', [x!, emit.scalar(lo), emit.scalar(hi)]),
  reference: ([x], _shape, { lo, hi }) => x!.data.map((v) => Math.min(Math.max(v, Math.fround(lo)), Math.fround(hi))),
};

/** Clamps x to [lo, hi]; the gradient flows where lo ≤ x ≤ hi. */
export function clamp(x: Tensor, lo: number, hi: number): Tensor {
  if (!(lo <= hi)) throw new LongplayError('BAD_ARGUMENT', `clamp: lo must not be above hi, got [${lo}, ${hi}]`);
  return apply(clampOp, [x], { lo, hi });
}

const stopGradientOp: OpDefinition<None> = {
  name: 'stopGradient',
  infer: ([x]) => x!,
  onnx: (_emit, [x]) => x!,
  reference: ([x]) => x!.data,
};

/** Stops the gradient: x itself, through which none flows. */
export function stopGradient(x: Tensor): Tensor {
  return apply(stopGradientOp, [x], NONE);
}

// Two operands

function binary(
  name: string,
  onnx: string,
  meaning: (a: number, b: number) => number,
  gradient: (a: Tensor, b: Tensor, y: Tensor, dy: Tensor) => readonly [Tensor, Tensor],
  dtypes: readonly DType[] = ['f32', 'i32'],
): OpDefinition<None> {
  return {
    name,
    infer: (inputs) => ({ shape: broadcastInputs(name, inputs, dtypes), dtype: inputs[0]!.dtype }),
    gradient(y, dy, [a, b]) {
      const [da, db] = gradient(a!, b!, y, dy);
      return [sumTo(da, a!.shape), sumTo(db, b!.shape)];
    },
    onnx: (emit, x) => emit.node(onnx, x),
    reference(x, shape) {
      const b = broadcastData(x[1]!, shape);
      return broadcastData(x[0]!, shape).map((v, i) => meaning(v, b[i]!));
    },
  };
}

/** Shape of an op on elements of several operands of one dtype. @throws {ShapeError} */
export function broadcastInputs(op: string, inputs: readonly Tensor[], dtypes: readonly DType[]): Shape {
  requireDType(op, inputs, ...dtypes);
  if (inputs.some((x) => x.dtype !== inputs[0]!.dtype)) throw misfit(op, 'operands must have one dtype', inputs);
  let shape: Shape | undefined = [];
  for (const x of inputs) shape = shape && broadcastShapes(shape, x.shape);
  if (shape === undefined) throw misfit(op, 'shapes do not broadcast', inputs);
  return shape;
}

/** Lifts both operands to tensors; a number becomes a scalar of the other's dtype. */
export function lift(op: string, a: Operand, b: Operand): [Tensor, Tensor] {
  if (typeof a !== 'number') return [a, typeof b === 'number' ? constant(b, [], a.dtype) : b];
  if (typeof b !== 'number') return [constant(a, [], b.dtype), b];
  throw new LongplayError('BAD_ARGUMENT', `${op}: one operand must be a tensor, got ${a} and ${b}`);
}

/**
 * Operands without the `broadcastTo` that the op does by itself: most of them come from the gradients of sums, and
 * each would write out an array as large as the result.
 */
export function stripBroadcasts(inputs: readonly Tensor[]): Tensor[] {
  const lean = [...inputs];
  for (const [i, x] of inputs.entries()) {
    if (x.op !== 'broadcastTo') continue;
    const others = lean.filter((_, j) => j !== i).map((y) => y.shape);
    const join = (first: Shape) =>
      others.reduce<Shape>((shape, other) => broadcastShapes(shape, other) ?? shape, first);
    if (equalShapes(join(x.inputs[0]!.shape), join(x.shape))) lean[i] = x.inputs[0]!;
  }
  return lean;
}

function binaryOf(definition: OpDefinition<None>, a: Operand, b: Operand): Tensor {
  const inputs = lift(definition.name, a, b);
  const full = apply(definition, inputs, NONE);
  if (inputs.every((x) => x.op !== 'broadcastTo')) return full;
  const lean = apply(definition, stripBroadcasts(inputs), NONE);
  return equalShapes(lean.shape, full.shape) ? lean : full;
}

const addOp = binary(
  'add',
  'Add',
  (a, b) => a + b,
  (_a, _b, _y, dy) => [dy, dy],
);
const subOp = binary(
  'sub',
  'Sub',
  (a, b) => a - b,
  (_a, _b, _y, dy) => [dy, neg(dy)],
);
const mulOp = binary(
  'mul',
  'Mul',
  (a, b) => a * b,
  (a, b, _y, dy) => [mul(dy, b), mul(dy, a)],
);
const divOp = binary(
  'div',
  'Div',
  (a, b) => a / b,
  (_a, b, y, dy) => {
    const da = div(dy, b);
    return [da, neg(mul(da, y))];
  },
  ['f32'],
);
// At a tie the whole gradient goes to the first operand.
const minimumOp = binary('minimum', 'Min', Math.min, (a, b, _y, dy) => chooseGradient(lessEqual(a, b), dy));
const maximumOp = binary('maximum', 'Max', Math.max, (a, b, _y, dy) => chooseGradient(greaterEqual(a, b), dy));

function chooseGradient(first: Tensor, dy: Tensor): [Tensor, Tensor] {
  return [where(first, dy, 0), where(first, 0, dy)];
}

export function add(a: Operand, b: Operand): Tensor {
  return binaryOf(addOp, a, b);
}

export function sub(a: Operand, b: Operand): Tensor {
  return binaryOf(subOp, a, b);
}

/** Product a·b, element by element. */
export function mul(a: Operand, b: Operand): Tensor {
  if (typeof b !== 'number' && isOne(a)) return b;
  if (typeof a !== 'number' && isOne(b)) return a;
  return binaryOf(mulOp, a, b);
}

/** Quotient a/b; f32 only. */
export function div(a: Operand, b: Operand): Tensor {
  return binaryOf(divOp, a, b);
}

/** Minimum of each pair; at a tie the gradient goes to a (PyTorch halves it). */
export function minimum(a: Operand, b: Operand): Tensor {
  return binaryOf(minimumOp, a, b);
}

/** Maximum of each pair; at a tie the gradient goes to a (PyTorch halves it). */
export function maximum(a: Operand, b: Operand): Tensor {
  return binaryOf(maximumOp, a, b);
}

function isOne(x: Operand): boolean {
  if (typeof x === 'number') return x === 1;
  const fixed = constantAttrs(x);
  return fixed !== undefined && fixed.dtype === 'f32' && fixed.shape.length === 0 && fixed.data[0] === 1;
}

function logistic(x: number): number {
  return x >= 0 ? 1 / (1 + Math.exp(-x)) : Math.exp(x) / (1 + Math.exp(x));
}
