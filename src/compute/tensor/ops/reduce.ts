/** Sums, means and maxima over axes, and what is built of them: softmax and its logarithm. */
import { elements, stridesOf, walk } from '../ndarray.ts';
import { equalShapes, type Shape, sizeOf } from '../shape.ts';
import { apply, axisOf, misfit, type OpDefinition, requireDType, type Tensor } from '../tensor.ts';
import { cast, equal } from './compare.ts';
import { add, div, exp, log, mul, stopGradient, sub } from './elementwise.ts';
import { broadcastTo, dimension, reshape } from './layout.ts';

interface ReduceAttrs {
  readonly axes: readonly number[]; // ascending
  readonly keepDims: boolean;
}

function reduction(
  name: string,
  onnx: string,
  start: number,
  combine: (a: number, b: number) => number,
  gradient: (x: Tensor, y: Tensor, dy: Tensor, axes: readonly number[]) => Tensor,
): OpDefinition<ReduceAttrs> {
  return {
    name,
    infer(inputs, { axes, keepDims }) {
      requireDType(name, inputs, 'f32', 'i32');
      const [x] = inputs as [Tensor];
      if (new Set(axes).size !== axes.length) throw misfit(name, `axes [${axes}] repeat`, inputs);
      return {
        shape: keepDims ? computeKeptShape(x.shape, axes) : x.shape.filter((_, i) => !axes.includes(i)),
        dtype: x.dtype,
      };
    },
    gradient: (y, dy, [x], { axes }) => [gradient(x!, withAxes(y, x!, axes), withAxes(dy, x!, axes), axes)],
    onnx: (emit, [x], _y, { axes, keepDims }) => emit.node(onnx, [x!, emit.i64(axes)], { keepdims: Number(keepDims) }),
    reference([x], shape, { axes }) {
      const kept = x!.shape.map((dim, i) => (axes.includes(i) ? 1 : dim));
      const strides = stridesOf(kept).map((stride, i) => (axes.includes(i) ? 0 : stride));
      const out = new Float64Array(elements(shape)).fill(start);
      walk(x!.shape, strides, (i, offset) => {
        out[offset] = combine(out[offset]!, x!.data[i]!);
      });
      return out;
    },
  };
}

const sumOp = reduction(
  'reduceSum',
  'ReduceSum',
  0,
  (a, b) => a + b,
  (x, _y, dy) => broadcastTo(dy, x.shape),
);

const meanOp: OpDefinition<ReduceAttrs> = {
  ...reduction(
    'reduceMean',
    'ReduceMean',
    0,
    (a, b) => a + b,
    (x, _y, dy, axes) => {
      const count = sizeOf(axes.map((axis) => x.shape[axis]!));
      return broadcastTo(typeof count === 'number' ? mul(dy, 1 / count) : div(dy, dimension(count)), x.shape);
    },
  ),
  infer(inputs, attrs) {
    requireDType('reduceMean', inputs, 'f32');
    return sumOp.infer(inputs, attrs);
  },
  reference([x], shape, attrs, size) {
    const count = elements(attrs.axes.map((axis) => x!.shape[axis]!));
    return sumOp.reference([x!], shape, attrs, size).map((sum) => sum / count);
  },
};

// Elements that tie for the maximum share its gradient evenly, as in PyTorch's amax.
const maxOp = reduction('reduceMax', 'ReduceMax', -Infinity, Math.max, (x, y, dy, axes) => {
  const ties = cast(equal(x, y), 'f32');
  return mul(ties, div(dy, reduceSum(ties, axes, true)));
});

function reduce(
  definition: OpDefinition<ReduceAttrs>,
  x: Tensor,
  axes: readonly number[] | number | undefined,
  keepDims: boolean,
) {
  const given = axes === undefined ? x.shape.map((_, i) => i) : typeof axes === 'number' ? [axes] : axes;
  const over = given.map((axis) => axisOf(definition.name, x, axis)).sort((a, b) => a - b);
  const reduced = apply(definition, [x], { axes: over, keepDims });
  return over.length === 0 ? x : reduced;
}

/** Sum over axes (all by default). @param keepDims leave the axes in place with size 1 */
export function reduceSum(x: Tensor, axes?: readonly number[] | number, keepDims = false): Tensor {
  return reduce(sumOp, x, axes, keepDims);
}

/** Mean over axes (all by default). @param keepDims leave the axes in place with size 1 */
export function reduceMean(x: Tensor, axes?: readonly number[] | number, keepDims = false): Tensor {
  return reduce(meanOp, x, axes, keepDims);
}

/** Maximum over axes (all by default). @param keepDims leave the axes in place with size 1 */
export function reduceMax(x: Tensor, axes?: readonly number[] | number, keepDims = false): Tensor {
  return reduce(maxOp, x, axes, keepDims);
}

/** Sum of x over the axes along which a tensor of `shape` was broadcast to x's: the gradient of broadcasting. */
export function sumTo(x: Tensor, shape: Shape): Tensor {
  if (equalShapes(x.shape, shape)) return x;
  const lead = x.shape.length - shape.length;
  const axes = x.shape.map((_, i) => i).filter((i) => i < lead || (shape[i - lead] === 1 && x.shape[i] !== 1));
  return reshape(
    reduceSum(
      x,
      axes,
      axes.some((axis) => axis >= lead),
    ),
    shape,
  );
}

interface SoftmaxKind {
  readonly onnx: string;
  readonly finish: (shifted: number, logSum: number) => number;
  readonly gradient: (y: Tensor, dy: Tensor) => Tensor;
}

function softmaxLike(name: string, { onnx, finish, gradient }: SoftmaxKind): OpDefinition<Record<string, never>> {
  return {
    name,
    infer(inputs) {
      requireDType(name, inputs, 'f32');
      axisOf(name, inputs[0]!, -1);
      return inputs[0]!;
    },
    gradient: (y, dy) => [gradient(y, dy)],
    onnx: (emit, x) => emit.node(onnx, x, { axis: -1 }),
    reference([x], shape) {
      const width = shape.at(-1)!;
      const out = new Float64Array(x!.data.length);
      for (let r = 0; r < out.length; r += width) {
        const row = x!.data.subarray(r, r + width);
        const max = row.reduce((a, b) => Math.max(a, b), -Infinity);
        const logSum = Math.log(row.reduce((sum, v) => sum + Math.exp(v - max), 0));
        for (const [i, v] of row.entries()) out[r + i] = finish(v - max, logSum);
      }
      return out;
    },
  };
}

const softmaxOp = softmaxLike('softmax', {
  onnx: 'Softmax',
  finish: (shifted, logSum) => Math.exp(shifted - logSum),
  gradient: (y, dy) => {
    const weighted = mul(dy, y);
    return sub(weighted, mul(y, reduceSum(weighted, -1, true)));
  },
});

const logSoftmaxOp = softmaxLike('logSoftmax', {
  onnx: 'LogSoftmax',
  finish: (shifted, logSum) => shifted - logSum,
  gradient: (y, dy) => sub(dy, mul(exp(y), reduceSum(dy, -1, true))),
});

/** Softmax over the last axis. */
export function softmax(x: Tensor): Tensor {
  return apply(softmaxOp, [x], {});
}

/** Log-softmax over the last axis. */
export function logSoftmax(x: Tensor): Tensor {
  return apply(logSoftmaxOp, [x], {});
}

/** Log-sum-exp log Σ eˣ over one axis, which is dropped; shifted by the maximum, so that it does not overflow. */
export function logSumExp(x: Tensor, axis = -1): Tensor {
  const max = stopGradient(reduceMax(x, axis, true));
  const kept = add(log(reduceSum(exp(sub(x, max)), axis, true)), max);
  const along = axisOf('logSumExp', x, axis);
  return reshape(
    kept,
    kept.shape.filter((_, i) => i !== along),
  );
}

function computeKeptShape(shape: Shape, axes: readonly number[]): Shape {
  return shape.map((dim, i) => (axes.includes(i) ? 1 : dim));
}

/** Restores the axes of a reduced tensor as 1. Leading axes need not be: broadcasting supplies them. */
function withAxes(reduced: Tensor, x: Tensor, axes: readonly number[]): Tensor {
  const leading = reduced.shape.length === x.shape.length - axes.length && axes.every((axis, i) => axis === i);
  return leading ? reduced : reshape(reduced, computeKeptShape(x.shape, axes));
}
