/** Ops that move elements about: reshape, transpose, concat, slice, pad, broadcastTo. */
import { broadcastData, elements, stridesOf, walk } from '../ndarray.ts';
import { broadcastShapes, canonical, type Dim, equalShapes, minus, plus, type Shape, sizeOf } from '../shape.ts';
import {
  apply,
  axisOf,
  constant,
  formatShape,
  misfit,
  type OpDefinition,
  requireDType,
  type Tensor,
} from '../tensor.ts';
import { sumTo } from './reduce.ts';

interface ShapeAttrs {
  readonly shape: Shape;
}

const reshapeOp: OpDefinition<ShapeAttrs> = {
  name: 'reshape',
  infer([x], { shape }) {
    if (sizeOf(x!.shape) !== sizeOf(shape)) {
      throw misfit('reshape', `${sizeOf(x!.shape)} elements do not fill ${formatShape(shape)} (${sizeOf(shape)})`, [
        x!,
      ]);
    }
    return { shape, dtype: x!.dtype };
  },
  gradient: (_y, dy, [x]) => [reshape(dy, x!.shape)],
  onnx(emit, [x], y, { shape }) {
    // ONNX writes 'as in the input' 0 and 'the rest' -1, which spares computing sizes in the graph. The two are not
    // mixed: with an axis of size 0 'the rest' would be undefined.
    const from = y.inputs[0]!.shape;
    const symbolic = shape.filter((dim) => typeof dim === 'string');
    if (symbolic.length <= 1)
      return emit.node('Reshape', [x!, emit.i64(shape.map((dim) => (typeof dim === 'string' ? -1 : dim)))]);
    if (shape.every((dim, i) => typeof dim === 'number' || dim === from[i])) {
      return emit.node('Reshape', [x!, emit.i64(shape.map((dim) => (typeof dim === 'string' ? 0 : dim)))]);
    }
    return emit.node('Reshape', [x!, emit.dims(shape)], { allowzero: 1 });
  },
  reference: ([x]) => x!.data,
};

/**
 * Reshapes: the same elements in another shape of the same size; symbolic sizes must agree as products. @throws
 * {ShapeError}
 */
export function reshape(x: Tensor, shape: Shape): Tensor {
  const to = shape.map(canonical);
  const source = x.op === 'reshape' ? x.inputs[0]! : x;
  const moved = apply(reshapeOp, [source], { shape: to });
  if (equalShapes(source.shape, to)) return source;
  // One repeated number needs no writing out to change its shape: the gradient of a sum over what was reduced before.
  const [repeated] = source.op === 'broadcastTo' ? source.inputs : [];
  if (repeated?.shape.every((dim) => dim === 1)) return broadcastTo(reshape(repeated, []), to);
  return moved;
}

interface TransposeAttrs {
  readonly perm: readonly number[];
}

const transposeOp: OpDefinition<TransposeAttrs> = {
  name: 'transpose',
  infer([x], { perm }) {
    if (perm.length !== x!.shape.length || new Set(perm).size !== perm.length) {
      throw misfit('transpose', `${formatShape(perm)} is no order of the axes`, [x!]);
    }
    return { shape: perm.map((axis) => x!.shape[axisOf('transpose', x!, axis)]!), dtype: x!.dtype };
  },
  gradient: (_y, dy, _x, { perm }) => [
    transpose(
      dy,
      perm.map((_, axis) => perm.indexOf(axis)),
    ),
  ],
  onnx: (emit, x, _y, { perm }) => emit.node('Transpose', x, { perm }),
  reference([x], shape, { perm }) {
    const strides = stridesOf(x!.shape);
    const out = new Float64Array(x!.data.length);
    walk(
      shape,
      perm.map((axis) => strides[axis]!),
      (i, offset) => {
        out[i] = x!.data[offset]!;
      },
    );
    return out;
  },
};

/** Transposes: axis i of the result is axis perm[i] of x. @throws {ShapeError} if `perm` is no order of the axes */
export function transpose(x: Tensor, perm: readonly number[]): Tensor {
  if (x.op === 'transpose' && perm.length === x.shape.length) {
    const { perm: before } = x.attrs as TransposeAttrs;
    return transpose(
      x.inputs[0]!,
      perm.map((axis) => before[axis]!),
    );
  }
  const moved = apply(transposeOp, [x], { perm });
  return perm.every((axis, i) => axis === i) ? x : moved;
}

interface AxisAttrs {
  readonly axis: number;
}

const concatOp: OpDefinition<AxisAttrs> = {
  name: 'concat',
  infer(inputs, { axis }) {
    const [first] = inputs as [Tensor];
    const rest = (x: Tensor) => x.shape.map((dim, i) => (i === axis ? 0 : dim));
    if (inputs.some((x) => x.dtype !== first.dtype || !equalShapes(rest(x), rest(first)))) {
      throw misfit('concat', `operands may differ on axis ${axis} only`, inputs);
    }
    const joined = plus(...inputs.map((x) => x.shape[axis]!));
    return { shape: first.shape.map((dim, i) => (i === axis ? joined : dim)), dtype: first.dtype };
  },
  gradient(_y, dy, inputs, { axis }) {
    let start: Dim = 0;
    return inputs.map((x) => {
      const from = start;
      start = plus(start, x.shape[axis]!);
      return slice(dy, axis, from, start);
    });
  },
  onnx: (emit, x, _y, { axis }) => emit.node('Concat', x, { axis }),
  reference(x, shape, { axis }) {
    const out = new Float64Array(elements(shape));
    const row = elements(shape.slice(axis));
    let start = 0;
    for (const { data, shape: part } of x) {
      const width = elements(part.slice(axis));
      for (let r = 0; r * width < data.length; r++) out.set(data.subarray(r * width, (r + 1) * width), r * row + start);
      start += width;
    }
    return out;
  },
};

/** Concatenates tensors along an axis; all other sizes are equal. @throws {ShapeError} */
export function concat(xs: readonly Tensor[], axis: number): Tensor {
  const [first] = xs;
  if (first === undefined) throw misfit('concat', 'there must be an operand', xs);
  return xs.length === 1 ? first : apply(concatOp, xs, { axis: axisOf('concat', first, axis) });
}

interface SliceAttrs extends AxisAttrs {
  readonly start: Dim;
  readonly end: Dim;
}

const sliceOp: OpDefinition<SliceAttrs> = {
  name: 'slice',
  infer([x], { axis, start, end }) {
    const size = x!.shape[axis]!;
    if (typeof size === 'number' && typeof end === 'number' && end > size) {
      throw misfit('slice', `[${start}, ${end}) is not within axis ${axis}`, [x!]);
    }
    if (typeof start === 'number' && typeof end === 'number' && start > end) {
      throw misfit('slice', `[${start}, ${end}) is no range`, [x!]);
    }
    return { shape: x!.shape.map((dim, i) => (i === axis ? minus(end, start) : dim)), dtype: x!.dtype };
  },
  gradient: (_y, dy, [x], { axis, start, end }) => [pad(dy, axis, start, minus(x!.shape[axis]!, end))],
  onnx: (emit, [x], _y, { axis, start, end }) =>
    emit.node('Slice', [x!, emit.dims([start]), emit.dims([end]), emit.i64([axis])]),
  reference([x], shape, { axis, start }, size) {
    const strides = stridesOf(x!.shape);
    const first = size(start) * strides[axis]!;
    const out = new Float64Array(elements(shape));
    walk(shape, strides, (i, offset) => {
      out[i] = x!.data[first + offset]!;
    });
    return out;
  },
};

/** Slices elements [start, end) of an axis; both may be symbolic, and lie within the axis. @throws {ShapeError} */
export function slice(x: Tensor, axis: number, start: Dim, end: Dim): Tensor {
  const along = axisOf('slice', x, axis);
  const [from, to] = [canonical(start), canonical(end)];
  return from === 0 && to === x.shape[along] ? x : apply(sliceOp, [x], { axis: along, start: from, end: to });
}

interface PadAttrs extends AxisAttrs {
  readonly before: Dim;
  readonly after: Dim;
}

const padOp: OpDefinition<PadAttrs> = {
  name: 'pad',
  infer(inputs, { axis, before, after }) {
    requireDType('pad', inputs, 'f32', 'i32');
    const [x] = inputs as [Tensor];
    return { shape: x.shape.map((dim, i) => (i === axis ? plus(before, dim, after) : dim)), dtype: x.dtype };
  },
  gradient: (_y, dy, [x], { axis, before }) => [slice(dy, axis, before, plus(before, x!.shape[axis]!))],
  onnx: (emit, [x], y, { axis, before, after }) =>
    emit.node('Pad', [x!, emit.dims([before, after]), emit.scalar(0, y.dtype), emit.i64([axis])]),
  reference([x], shape, { axis, before }, size) {
    const strides = stridesOf(shape);
    const first = size(before) * strides[axis]!;
    const out = new Float64Array(elements(shape));
    walk(x!.shape, strides, (i, offset) => {
      out[first + offset] = x!.data[i]!;
    });
    return out;
  },
};

/** Pads with zeros before and after the elements of an axis; both numbers may be symbolic. */
export function pad(x: Tensor, axis: number, before: Dim, after: Dim): Tensor {
  const [head, tail] = [canonical(before), canonical(after)];
  if (head === 0 && tail === 0) return x;
  return apply(padOp, [x], { axis: axisOf('pad', x, axis), before: head, after: tail });
}

const broadcastToOp: OpDefinition<ShapeAttrs> = {
  name: 'broadcastTo',
  infer([x], { shape }) {
    const joined = broadcastShapes(x!.shape, shape);
    if (joined === undefined || !equalShapes(joined, shape)) {
      throw misfit('broadcastTo', `the operand does not broadcast to ${formatShape(shape)}`, [x!]);
    }
    return { shape, dtype: x!.dtype };
  },
  gradient: (_y, dy, [x]) => [sumTo(dy, x!.shape)],
  onnx(emit, [x], y, { shape }) {
    // Expand broadcasts both ways, so an axis that x already has is asked for as 1 and needs no size at run time.
    const from = y.inputs[0]!.shape;
    const to = shape.map((dim, i) => (dim === from[i - (shape.length - from.length)] ? 1 : dim));
    return emit.node('Expand', [x!, emit.dims(to)]);
  },
  reference: ([x], shape) => broadcastData(x!, shape),
};

/** Broadcasts x to a shape. Ops of several operands broadcast by themselves. @throws {ShapeError} */
export function broadcastTo(x: Tensor, shape: Shape): Tensor {
  const to = shape.map(canonical);
  const source = x.op === 'broadcastTo' ? x.inputs[0]! : x;
  return equalShapes(source.shape, to) ? source : apply(broadcastToOp, [source], { shape: to });
}

interface DimensionAttrs {
  readonly dim: Dim;
}

const dimensionOp: OpDefinition<DimensionAttrs> = {
  name: 'dimension',
  infer: () => ({ shape: [], dtype: 'f32' }),
  onnx: (emit, _x, _y, { dim }) => emit.node('Cast', [emit.node('Squeeze', [emit.dims([dim])])], { to: 1 }),
  reference: (_x, _shape, { dim }, size) => Float64Array.of(size(dim)),
};

/** Value of a size as an f32 scalar, for instance to divide by a number of rows. */
export function dimension(dim: Dim): Tensor {
  const size = canonical(dim);
  return typeof size === 'number' ? constant(size) : apply(dimensionOp, [], { dim: size });
}
