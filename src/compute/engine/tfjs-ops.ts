/**
 * Ops of the tensor program in tfjs. Products are written with explicit transposes: on the wasm backend
 * only un-transposed ones are fast. Sums into rows are products with one-hot rows, since wasm has no segment sum.
 */
import type * as tfjs from '@tensorflow/tfjs-core';
import type { DType, Tensor } from '../tensor/tensor.ts';

export type Tf = typeof tfjs;
type T = tfjs.Tensor;

/** Computes a node from its operands. `shape` is the result's; `size` gives the value of a symbolic dimension. */
type Kernel = (tf: Tf, x: readonly T[], shape: number[], node: Tensor, size: (dim: number | string) => number) => T;

export const TF_TYPE = { f32: 'float32', i32: 'int32', bool: 'bool' } as const satisfies Record<DType, string>;

const attrs = <A>(node: Tensor) => node.attrs as A;

const unary =
  (f: (tf: Tf) => (x: T) => T): Kernel =>
  (tf, [x]) =>
    f(tf)(x!);

const binary =
  (f: (tf: Tf) => (a: T, b: T) => T): Kernel =>
  (tf, [a, b]) =>
    f(tf)(a!, b!);

const reduction =
  (f: (tf: Tf) => (x: T, axes: number[], keepDims: boolean) => T): Kernel =>
  (tf, [x], _shape, node) => {
    const { axes, keepDims } = attrs<{ axes: readonly number[]; keepDims: boolean }>(node);
    return f(tf)(x!, [...axes], keepDims);
  };

/** Swaps an axis with the last. */
function axisLast(tf: Tf, x: T, axis: number): T {
  const perm = x.shape.map((_, i) => i);
  [perm[axis], perm[perm.length - 1]] = [perm.at(-1)!, axis];
  return tf.transpose(x, perm);
}

/** Product over the last two axes of already transposed operands, with any leading axes that broadcast. */
function product(tf: Tf, a: T, b: T, shape: number[]): T {
  if (a.rank === 2 && b.rank === 2) return tf.matMul(a, b);
  const leading = shape.slice(0, -2);
  const batch = leading.reduce((p, dim) => p * dim, 1);
  const flat = (x: T) => {
    const [rows, columns] = x.shape.slice(-2) as [number, number];
    const full = [...leading, rows, columns];
    const wide = x.shape.length === full.length && x.shape.every((dim, i) => dim === full[i]);
    return tf.reshape(wide ? x : tf.broadcastTo(x, full), [batch, rows, columns]);
  };
  return tf.reshape(tf.matMul(flat(a), flat(b)), shape);
}

function swapLastTwo(tf: Tf, x: T): T {
  const perm = x.shape.map((_, i) => i);
  perm.splice(-2, 2, x.rank - 1, x.rank - 2);
  return tf.transpose(x, perm);
}

/** Rows of 0 with a 1 at the index: [...] → [..., count] f32. (tf.oneHot refuses a count of 1.) */
function hotRows(tf: Tf, ids: T, count: number): T {
  return tf.cast(tf.equal(tf.expandDims(ids, -1), tf.range(0, count, 1, 'int32')), 'float32');
}

/** 1/√(mean(x²) + ε) over the last axis. */
function rmsInverse(tf: Tf, x: T, node: Tensor): T {
  return tf.rsqrt(tf.add(tf.mean(tf.mul(x, x), -1, true), attrs<{ eps: number }>(node).eps));
}

export const tfjsOps: Readonly<Record<string, Kernel>> = {
  neg: unary((tf) => tf.neg),
  exp: unary((tf) => tf.exp),
  log: unary((tf) => tf.log),
  sqrt: unary((tf) => tf.sqrt),
  reciprocal: (tf, [x]) => tf.div(1, x!),
  rsqrt: unary((tf) => tf.rsqrt),
  sigmoid: unary((tf) => tf.sigmoid),
  tanh: unary((tf) => tf.tanh),
  silu: (tf, [x]) => tf.mul(x!, tf.sigmoid(x!)),
  clamp: (tf, [x], _shape, node) => {
    const { lo, hi } = attrs<{ lo: number; hi: number }>(node);
    return tf.minimum(tf.maximum(x!, lo), hi);
  },
  stopGradient: unary((tf) => tf.clone),
  add: binary((tf) => tf.add),
  sub: binary((tf) => tf.sub),
  mul: binary((tf) => tf.mul),
  div: binary((tf) => tf.div),
  minimum: binary((tf) => tf.minimum),
  maximum: binary((tf) => tf.maximum),
  lessEqual: binary((tf) => tf.lessEqual),
  greaterEqual: binary((tf) => tf.greaterEqual),
  equal: binary((tf) => tf.equal),
  and: binary((tf) => tf.logicalAnd),
  or: binary((tf) => tf.logicalOr),
  not: unary((tf) => tf.logicalNot),
  where: (tf, [condition, a, b], shape) =>
    tf.where(tf.broadcastTo(condition!, shape), tf.broadcastTo(a!, shape), tf.broadcastTo(b!, shape)),
  cast: (tf, [x], _shape, node) => tf.cast(x!, TF_TYPE[node.dtype]),
  gather: (tf, [x, ids], shape, node) => {
    const rows = tf.gather(x!, tf.reshape(ids!, [-1]), attrs<{ axis: number }>(node).axis);
    return tf.reshape(rows, shape);
  },
  gatherElements: (tf, [x, ids], shape, node) => {
    const { axis } = attrs<{ axis: number }>(node);
    const hot = hotRows(tf, axisLast(tf, ids!, axis), x!.shape[axis]!);
    const picked = tf.sum(tf.mul(hot, tf.expandDims(axisLast(tf, x!, axis), -2)), -1);
    return tf.reshape(axisLast(tf, picked, axis), shape);
  },
  scatterAdd: (tf, [ids, updates], shape, node) => {
    const { axis } = attrs<{ axis: number }>(node);
    const count = shape[axis]!;
    if (axis === 0 && updates!.rank > 1 && ids!.size === updates!.shape[0]) {
      const hot = hotRows(tf, tf.reshape(ids!, [-1]), count);
      const rows = tf.reshape(updates!, [updates!.shape[0]!, -1]);
      return tf.reshape(tf.matMul(tf.transpose(hot), rows), shape);
    }
    const hot = hotRows(tf, axisLast(tf, tf.broadcastTo(ids!, updates!.shape), axis), count);
    const sums = tf.sum(tf.mul(hot, tf.expandDims(axisLast(tf, updates!, axis), -1)), -2);
    return tf.reshape(axisLast(tf, sums, axis), shape);
  },
  take: (tf, [x, index], shape, node) => {
    if (!attrs<{ zeros: boolean }>(node).zeros) {
      return tf.gather(x!, tf.maximum(index!, tf.scalar(0, 'int32')) as tfjs.Tensor1D, 0);
    }
    const padded = tf.concat([tf.zeros([1, ...x!.shape.slice(1)]), x!], 0);
    return tf.reshape(tf.gather(padded, tf.add(index!, tf.scalar(1, 'int32')) as tfjs.Tensor1D, 0), shape);
  },
  matmul: (tf, [a, b], shape, node) => {
    const { transposeA, transposeB, scale } = attrs<{ transposeA: boolean; transposeB: boolean; scale: number }>(node);
    const y = product(tf, transposeA ? swapLastTwo(tf, a!) : a!, transposeB ? swapLastTwo(tf, b!) : b!, shape);
    return scale === 1 ? y : tf.mul(y, scale);
  },
  reshape: (tf, [x], shape) => tf.reshape(x!, shape),
  transpose: (tf, [x], _shape, node) => tf.transpose(x!, [...attrs<{ perm: readonly number[] }>(node).perm]),
  concat: (tf, x, _shape, node) => tf.concat([...x], attrs<{ axis: number }>(node).axis),
  slice: (tf, [x], shape, node, size) => {
    const { axis, start } = attrs<{ axis: number; start: number | string }>(node);
    return tf.slice(
      x!,
      shape.map((_, i) => (i === axis ? size(start) : 0)),
      shape,
    );
  },
  pad: (tf, [x], shape, node, size) => {
    const { axis, before } = attrs<{ axis: number; before: number | string }>(node);
    const head = size(before);
    const zeros = (length: number) =>
      tf.zeros(
        shape.map((dim, i) => (i === axis ? length : dim)),
        x!.dtype,
      );
    return tf.concat([zeros(head), x!, zeros(shape[axis]! - head - x!.shape[axis]!)], axis);
  },
  broadcastTo: (tf, [x], shape) => tf.broadcastTo(x!, shape),
  dimension: (tf, _x, _shape, node, size) => tf.scalar(size(attrs<{ dim: number | string }>(node).dim)),
  reduceSum: reduction((tf) => tf.sum),
  reduceMean: reduction((tf) => tf.mean),
  reduceMax: reduction((tf) => tf.max),
  softmax: (tf, [x]) => tf.softmax(x!),
  logSoftmax: (tf, [x]) => tf.logSoftmax(x!),
  rmsNorm: (tf, [x, gain], _shape, node) => tf.mul(tf.mul(x!, rmsInverse(tf, x!, node)), gain!),
  rmsInverse: (tf, [x], _shape, node) => rmsInverse(tf, x!, node),
  swiglu: (tf, [gate, up]) => tf.mul(tf.mul(gate!, tf.sigmoid(gate!)), up!),
  rotary: (tf, [x, positions, cos, sin], shape, node) => {
    const { heads } = attrs<{ heads: number }>(node);
    const [rows, width] = shape as [number, number];
    const half = width / heads / 2;
    const angle = (table: T) => tf.reshape(tf.gather(table, positions as tfjs.Tensor1D, 0), [rows, 1, half]);
    const [c, s] = [angle(cos!), angle(sin!)];
    const split = tf.reshape(x!, [rows, heads, 2 * half]);
    const [a, b] = [
      tf.slice(split, [0, 0, 0], [rows, heads, half]),
      tf.slice(split, [0, 0, half], [rows, heads, half]),
    ];
    const turned = [tf.sub(tf.mul(a, c), tf.mul(b, s)), tf.add(tf.mul(a, s), tf.mul(b, c))];
    return tf.reshape(tf.concat(turned, 2), shape);
  },
};
