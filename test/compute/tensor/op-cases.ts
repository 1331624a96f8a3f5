/**
 * One case per op: inputs over the sizes A, B, C, D and how the op is applied. A case is run with sizes known when the
 * graph is built and again with symbolic ones; gradients flow into every f32 input.
 */

import * as t from '../../../src/compute/tensor/ops.ts';
import { type Dim, plus, type Shape, times } from '../../../src/compute/tensor/shape.ts';
import type { DType, Tensor } from '../../../src/compute/tensor/tensor.ts';
import type { Rng } from '../../../src/core/rng.ts';

/** Each size as a number, or as its own symbol. */
export interface Sizes {
  readonly A: Dim;
  readonly B: Dim;
  readonly C: Dim;
  readonly D: Dim;
}

export type NumericSizes = { readonly [K in keyof Sizes]: number };

export interface CaseInput {
  readonly shape: (s: Sizes) => Shape;
  readonly dtype?: DType;
  /** Elements of an i32 or bool input; f32 inputs are filled by the test. */
  readonly fill?: (rng: Rng, s: NumericSizes, length: number) => number[];
}

export interface OpCase {
  readonly name: string;
  readonly inputs: Readonly<Record<string, CaseInput>>;
  readonly apply: (x: Readonly<Record<string, Tensor>>, s: Sizes) => Tensor;
  /** Shift to keep f32 inputs positive: for log, sqrt and the like. */
  readonly positive?: boolean;
  /** Sums of many terms: the tolerance scales with the op on absolute values. */
  readonly sums?: boolean;
}

const f32 = (shape: (s: Sizes) => Shape): CaseInput => ({ shape });
const AB = f32((s) => [s.A, s.B]);
const ABC = f32((s) => [s.A, s.B, s.C]);
const below = (size: (s: NumericSizes) => number) => (rng: Rng, s: NumericSizes, length: number) =>
  Array.from({ length }, () => rng.int(size(s)));

const unary = (name: string, apply: (x: Tensor) => Tensor, positive = false): OpCase => ({
  name,
  inputs: { x: AB },
  apply: ({ x }) => apply(x!),
  positive,
});

const binary = (name: string, apply: (a: Tensor, b: Tensor) => Tensor, positive = false): OpCase[] => [
  { name, inputs: { a: AB, b: AB }, apply: ({ a, b }) => apply(a!, b!), positive },
  {
    name: `${name}, rows`,
    inputs: { a: ABC, b: f32((s) => [s.C]) },
    apply: ({ a, b }) => apply(a!, b!),
    positive,
  },
  {
    name: `${name}, both broadcast`,
    inputs: { a: f32((s) => [s.A, 1, s.C]), b: f32((s) => [s.B, 1]) },
    apply: ({ a, b }) => apply(a!, b!),
    positive,
  },
];

const product = (name: string, a: (s: Sizes) => Shape, b: (s: Sizes) => Shape, how: t.MatmulOptions = {}): OpCase => ({
  name: `matmul ${name}`,
  inputs: { a: f32(a), b: f32(b) },
  apply: (x) => t.matmul(x.a!, x.b!, how),
  sums: true,
});

const reduced = (name: string, apply: (x: Tensor) => Tensor): OpCase => ({
  name,
  inputs: { x: ABC },
  apply: ({ x }) => apply(x!),
  sums: true,
});

/** A partial injection index [M] -> [0, N) and its inverse, drawn from one seed so that both inputs agree. */
function injection(m: number, n: number): { index: number[]; inverse: number[] } {
  const index = Array.from({ length: m }, (_, i) => (i % 2 === 0 && i / 2 < n ? n - 1 - i / 2 : -1));
  return { index, inverse: Array.from({ length: n }, (_, row) => index.indexOf(row)) };
}

/** cos or sin of position · 0.7^i, for four positions and heads of six. */
const angles = (f: (x: number) => number) =>
  t.constant(
    Array.from({ length: 12 }, (_, i) => f(Math.floor(i / 3) * 0.7 ** (i % 3))),
    [4, 3],
  );

export const opCases: readonly OpCase[] = [
  unary('neg', t.neg),
  unary('exp', t.exp),
  unary('log', t.log, true),
  unary('sqrt', t.sqrt, true),
  unary('reciprocal', t.reciprocal, true),
  unary('rsqrt', t.rsqrt, true),
  unary('sigmoid', t.sigmoid),
  unary('tanh', t.tanh),
  unary('silu', t.silu),
  unary('gelu', t.gelu),
  unary('clamp', (x) => t.clamp(x, -0.5123, 0.7456)),
  unary('stopGradient', (x) => t.mul(x, t.stopGradient(t.exp(t.mul(t.stopGradient(x), 0.5))))),
  ...binary('add', t.add),
  ...binary('sub', t.sub),
  ...binary('mul', t.mul),
  ...binary('div', t.div, true),
  ...binary('minimum', t.minimum),
  ...binary('maximum', t.maximum),
  { name: 'mul by itself', inputs: { x: AB }, apply: ({ x }) => t.mul(x!, x!) },
  { name: 'with numbers', inputs: { x: AB }, apply: ({ x }) => t.sub(3, t.mul(0.5, t.add(x!, 1))) },
  product(
    '2-D',
    (s) => [s.A, s.B],
    (s) => [s.B, s.C],
  ),
  product(
    '2-D aᵀ',
    (s) => [s.B, s.A],
    (s) => [s.B, s.C],
    { transposeA: true },
  ),
  product(
    '2-D bᵀ',
    (s) => [s.A, s.B],
    (s) => [s.C, s.B],
    { transposeB: true },
  ),
  product(
    '2-D aᵀbᵀ',
    (s) => [s.B, s.A],
    (s) => [s.C, s.B],
    { transposeA: true, transposeB: true },
  ),
  product(
    'batched',
    (s) => [s.D, s.A, s.B],
    (s) => [s.D, s.B, s.C],
  ),
  product(
    'batched aᵀ',
    (s) => [s.D, s.B, s.A],
    (s) => [s.D, s.B, s.C],
    { transposeA: true },
  ),
  product(
    'batched bᵀ',
    (s) => [2, s.D, s.A, s.B],
    (s) => [2, s.D, s.C, s.B],
    { transposeB: true },
  ),
  product(
    'batched aᵀbᵀ',
    (s) => [s.D, s.B, s.A],
    (s) => [s.D, s.C, s.B],
    { transposeA: true, transposeB: true },
  ),
  product(
    'one b for many a',
    (s) => [s.D, s.A, s.B],
    (s) => [s.B, s.C],
  ),
  product(
    'one bᵀ for many a',
    (s) => [s.D, s.A, s.B],
    (s) => [s.C, s.B],
    { transposeB: true },
  ),
  product(
    'one b for many aᵀ',
    (s) => [s.D, s.B, s.A],
    (s) => [s.B, s.C],
    { transposeA: true },
  ),
  product(
    'one a for many b',
    (s) => [s.A, s.B],
    (s) => [s.D, s.B, s.C],
  ),
  product(
    'groups of heads',
    (s) => [s.D, 2, 3, s.A, s.B],
    (s) => [s.D, 2, 1, s.C, s.B],
    { transposeB: true },
  ),
  {
    name: 'matmul of a transposed operand',
    inputs: { a: AB, b: f32((s) => [s.C, s.B]) },
    apply: ({ a, b }) => t.matmul(a!, t.transpose(b!, [1, 0])),
    sums: true,
  },
  {
    name: 'reshape to a product',
    inputs: { x: ABC },
    apply: ({ x }, s) => t.exp(t.reshape(x!, [times(s.A, s.B), s.C])),
  },
  {
    name: 'reshape to several sizes',
    inputs: { x: f32((s) => [times(s.A, s.B), 6]), like: ABC },
    apply: ({ x, like }, s) =>
      t.mul(t.reshape(x!, [s.A, s.B, 2, 3]), t.reduceSum(t.reshape(like!, [s.A, s.B, s.C, 1]), 2, true)),
    sums: true,
  },
  {
    name: 'reshape within rows',
    inputs: { x: f32((s) => [s.A, s.B, 6]) },
    apply: ({ x }, s) => t.exp(t.reshape(x!, [s.A, s.B, 3, 2])),
  },
  { name: 'transpose', inputs: { x: ABC }, apply: ({ x }) => t.transpose(x!, [2, 0, 1]) },
  { name: 'transpose twice', inputs: { x: ABC }, apply: ({ x }) => t.transpose(t.transpose(x!, [2, 0, 1]), [2, 1, 0]) },
  {
    name: 'concat',
    inputs: { a: ABC, b: f32((s) => [s.A, s.D, s.C]) },
    apply: ({ a, b }) => t.concat([a!, b!, t.neg(a!)], 1),
  },
  { name: 'slice', inputs: { x: f32((s) => [s.A, 5, s.B]) }, apply: ({ x }) => t.slice(x!, 1, 1, 4) },
  {
    name: 'slice at symbolic places',
    inputs: { x: f32((s) => [s.A, plus(s.B, s.C)]), b: f32((s) => [s.B]), c: f32((s) => [s.C]) },
    apply: ({ x, b, c }, s) => t.mul(t.slice(x!, -1, s.B, plus(s.B, s.C)), t.add(c!, t.reduceSum(b!))),
    sums: true,
  },
  {
    name: 'pad',
    inputs: { x: AB, c: f32((s) => [s.C]) },
    apply: ({ x, c }, s) => t.add(t.pad(x!, 1, s.C, 2), t.reduceSum(c!)),
    sums: true,
  },
  {
    name: 'broadcastTo',
    inputs: { x: f32((s) => [s.B, 1]), like: ABC },
    apply: ({ x, like }, s) => t.concat([t.broadcastTo(x!, [s.A, s.B, s.C]), like!], 0),
  },
  {
    name: 'dimension',
    inputs: { x: AB },
    apply: ({ x }, s) => t.div(t.reduceSum(x!), t.dimension(plus(times(2, s.A, s.B), 1))),
    sums: true,
  },
  reduced('reduceSum, all', (x) => t.reduceSum(x)),
  reduced('reduceSum, last', (x) => t.reduceSum(x, -1)),
  reduced('reduceSum, first, kept', (x) => t.reduceSum(x, [0], true)),
  reduced('reduceSum, outer', (x) => t.reduceSum(x, [0, 2])),
  reduced('reduceMean, all', (x) => t.reduceMean(x)),
  reduced('reduceMean, last, kept', (x) => t.reduceMean(x, [-1], true)),
  reduced('reduceMean, first two', (x) => t.reduceMean(x, [0, 1])),
  reduced('reduceMax, last', (x) => t.reduceMax(x, -1)),
  reduced('reduceMax, all, kept', (x) => t.reduceMax(x, undefined, true)),
  reduced('softmax', t.softmax),
  reduced('logSoftmax', t.logSoftmax),
  reduced('logSumExp', (x) => t.logSumExp(x)),
  reduced('logSumExp, axis', (x) => t.logSumExp(x, 1)),
  {
    name: 'rms norm',
    inputs: { x: ABC, g: f32((s) => [s.C]) },
    apply: ({ x, g }) => t.mul(t.mul(x!, t.rsqrt(t.add(t.reduceMean(t.mul(x!, x!), -1, true), 0.01))), g!),
    sums: true,
  },
  {
    name: 'rmsNorm',
    inputs: { x: f32((s) => [s.A, s.B, 5]), gain: f32(() => [5]) },
    apply: ({ x, gain }) => t.rmsNorm(x!, gain!, 0.01),
    sums: true,
  },
  { name: 'swiglu', inputs: { gate: AB, up: AB }, apply: ({ gate, up }) => t.swiglu(gate!, up!) },
  {
    name: 'rotary',
    inputs: { x: f32((s) => [s.A, 12]), positions: { shape: (s) => [s.A], dtype: 'i32', fill: below(() => 4) } },
    apply: ({ x, positions }) => t.rotary(x!, positions!, angles(Math.cos), angles(Math.sin), 2),
  },
  {
    name: 'gather rows',
    inputs: { x: AB, ids: { shape: (s) => [s.C, s.D], dtype: 'i32', fill: below((s) => s.A) } },
    apply: ({ x, ids }) => t.gather(x!, ids!),
    sums: true,
  },
  {
    name: 'gather along axis 1',
    inputs: { x: ABC, ids: { shape: (s) => [s.D], dtype: 'i32', fill: below((s) => s.B) } },
    apply: ({ x, ids }) => t.gather(x!, ids!, 1),
    sums: true,
  },
  {
    name: 'pick',
    inputs: { x: ABC, ids: { shape: (s) => [s.A, s.B, 3], dtype: 'i32', fill: below((s) => s.C) } },
    apply: ({ x, ids }) => t.pick(x!, ids!),
    sums: true,
  },
  {
    name: 'scatterAdd',
    inputs: {
      updates: f32((s) => [s.C, s.B]),
      like: AB,
      ids: { shape: (s) => [s.C, s.B], dtype: 'i32', fill: below((s) => s.A) },
    },
    apply: ({ updates, like, ids }, s) => t.add(t.scatterAdd(ids!, updates!, 0, [s.A, s.B]), like!),
    sums: true,
  },
  {
    name: 'scatterAdd of whole rows',
    inputs: {
      updates: f32((s) => [s.C, s.B]),
      like: AB,
      ids: { shape: (s) => [s.C, 1], dtype: 'i32', fill: below((s) => s.A) },
    },
    apply: ({ updates, like, ids }, s) => t.add(t.scatterAdd(ids!, updates!, 0, [s.A, s.B]), like!),
    sums: true,
  },
  {
    name: 'take',
    inputs: {
      x: f32((s) => [s.A, s.C]),
      index: { shape: (s) => [s.B], dtype: 'i32', fill: (_, s) => injection(s.B, s.A).index },
      inverse: { shape: (s) => [s.A], dtype: 'i32', fill: (_, s) => injection(s.B, s.A).inverse },
    },
    apply: ({ x, index, inverse }) => t.take(x!, index!, inverse!),
  },
  {
    name: 'take all rows and back',
    inputs: {
      x: f32((s) => [s.A, s.C]),
      index: { shape: (s) => [times(2, s.A)], dtype: 'i32', fill: (_, s) => injection(2 * s.A, s.A).index },
      inverse: { shape: (s) => [s.A], dtype: 'i32', fill: (_, s) => injection(2 * s.A, s.A).inverse },
    },
    apply: ({ x, index, inverse }) => {
      const spread = t.take(t.mul(x!, 2), index!, inverse!, { zeros: false, total: true });
      return t.take(t.exp(spread), inverse!, index!, { zeros: false });
    },
  },
  product(
    'scaled',
    (s) => [s.D, s.A, s.B],
    (s) => [s.D, s.C, s.B],
    { transposeB: true, scale: 0.37 },
  ),
  {
    name: 'where',
    inputs: { a: ABC, b: f32((s) => [s.C]), c: { shape: (s) => [s.B, 1], dtype: 'bool', fill: below(() => 2) } },
    apply: ({ a, b, c }) => t.where(c!, a!, b!),
  },
  {
    name: 'where with a number',
    inputs: { x: AB, ids: { shape: (s) => [s.B], dtype: 'i32', fill: below((s) => s.B) } },
    apply: ({ x, ids }) => t.where(t.or(t.lessEqual(ids!, 1), t.not(t.greaterEqual(x!, 0.0123))), t.neg(x!), -9),
  },
  {
    name: 'comparisons and casts',
    inputs: { a: AB, b: f32((s) => [s.B]), ids: { shape: (s) => [s.A, 1], dtype: 'i32', fill: below(() => 3) } },
    apply: ({ a, b, ids }) => {
      const both = t.and(t.greaterEqual(a!, b!), t.equal(ids!, t.sub(t.cast(t.cast(ids!, 'f32'), 'i32'), 0)));
      return t.mul(t.add(t.cast(both, 'f32'), t.cast(t.mul(ids!, 2), 'f32')), a!);
    },
  },
];
