import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Engine, HostTensor } from '../../../src/compute/engine/engine.ts';
import { openEngine } from '../../../src/compute/engine/open.ts';
import { interpret } from '../../../src/compute/engine/reference.ts';
import { gradients } from '../../../src/compute/tensor/gradients.ts';
import { defineGraph, type Graph } from '../../../src/compute/tensor/graph.ts';
import { elements, type NdArray } from '../../../src/compute/tensor/ndarray.ts';
import { input, mul, reduceSum, type Tensor } from '../../../src/compute/tensor/ops.ts';
import { type Bindings, evaluate } from '../../../src/compute/tensor/shape.ts';
import { Rng } from '../../../src/core/rng.ts';
import { type NumericSizes, type OpCase, opCases, type Sizes } from './op-cases.ts';

const SYMBOLS: Sizes = { A: 'A', B: 'B', C: 'C', D: 'D' };
const sample = fc.record({
  sizes: fc.record({
    A: fc.integer({ min: 1, max: 4 }),
    B: fc.integer({ min: 1, max: 4 }),
    C: fc.integer({ min: 1, max: 4 }),
    D: fc.integer({ min: 1, max: 3 }),
  }),
  seed: fc.nat(),
});
const runs = process.env.LONGPLAY_LONG === '1' ? 60 : 6;

/** The op as y, loss = Σ y·w for a fed w, and d loss / d x for every f32 input x. */
function graphOf(op: OpCase, sizes: Sizes): Graph {
  const x = Object.fromEntries(
    Object.entries(op.inputs).map(([name, { shape, dtype }]) => [name, input(name, shape(sizes), dtype)]),
  );
  const y = op.apply(x, sizes);
  const loss = reduceSum(mul(y, input('w', y.shape)));
  const wrt = Object.values(x).filter((tensor) => tensor.dtype === 'f32');
  const outputs: Record<string, Tensor> = { y, loss };
  for (const [i, gradient] of gradients(loss, wrt).entries())
    outputs[`d ${(wrt[i]!.attrs as { name: string }).name}`] = gradient;
  return defineGraph(outputs);
}

/** Distinct f32 values at least 0.02 apart, so that no kink or tie lies within a finite difference. */
function feedsFor(op: OpCase, graph: Graph, sizes: NumericSizes, seed: number): Map<string, NdArray> {
  const rng = Rng.fromSeed(seed);
  const bindings = bindingsOf(sizes);
  const feeds = new Map<string, NdArray>();
  const shapes = graph.inputs.map(({ shape }) => shape.map((dim) => evaluate(dim, bindings)));
  const total = graph.inputs.reduce((sum, { dtype }, i) => sum + (dtype === 'f32' ? elements(shapes[i]!) : 0), 0);
  const grid = rng.shuffle(
    Array.from({ length: total }, (_, i) => Math.fround(((i + 0.5) / total - (op.positive ? -0.2 : 0.5)) * 4)),
  );
  let next = 0;
  for (const [i, { name, dtype }] of graph.inputs.entries()) {
    const length = elements(shapes[i]!);
    const values = dtype === 'f32' ? grid.slice(next, (next += length)) : op.inputs[name]!.fill!(rng, sizes, length);
    feeds.set(name, { shape: shapes[i]!, data: Float64Array.from(values) });
  }
  return feeds;
}

function bindingsOf(sizes: NumericSizes): Bindings {
  return new Map(Object.entries(sizes));
}

function hostFeeds(graph: Graph, feeds: Map<string, NdArray>): Record<string, HostTensor> {
  return Object.fromEntries(
    graph.inputs.map(({ name, dtype }) => {
      const { shape, data } = feeds.get(name)!;
      const Data = dtype === 'f32' ? Float32Array : dtype === 'i32' ? Int32Array : Uint8Array;
      return [name, { dtype, shape, data: Data.from(data) }];
    }),
  );
}

/** Largest absolute values that enter each output's sums, as the scale of its float32 error. */
function scaleOf(
  op: OpCase,
  graph: Graph,
  feeds: Map<string, NdArray>,
  bindings: Bindings,
): Map<string, NdArray> | undefined {
  if (!op.sums) return undefined;
  const absolute = new Map<string, NdArray>(
    [...feeds].map(([name, { shape, data }]) => [name, { shape, data: data.map(Math.abs) }]),
  );
  for (const { name, dtype } of graph.inputs) if (dtype !== 'f32') absolute.set(name, feeds.get(name)!);
  return interpret(graph, absolute, bindings);
}

function expectClose(
  name: string,
  got: ArrayLike<number>,
  want: ArrayLike<number>,
  tolerance: number,
  scale?: Float64Array,
) {
  expect(got.length, name).toBe(want.length);
  for (let i = 0; i < want.length; i++) {
    const limit = tolerance * (Math.abs(want[i]!) + Math.max(1, Math.abs(scale?.[i] ?? 1)));
    if (!(Math.abs(got[i]! - want[i]!) <= limit))
      expect.fail(`${name}[${i}] is ${got[i]}, expected ${want[i]} ± ${limit}`);
  }
}

describe('reference', () => {
  it.each(opCases.map((op) => [op.name, op] as const))('%s: the gradient is that of finite differences', (_, op) => {
    fc.assert(
      fc.property(sample, ({ sizes, seed }) => {
        const graph = graphOf(op, sizes);
        const feeds = feedsFor(op, graph, sizes, seed);
        const lossAt = (at: Map<string, NdArray>) => interpret(graph, at, bindingsOf(sizes)).get('loss')!.data[0]!;
        const results = interpret(graph, feeds, bindingsOf(sizes));
        for (const [name, { dtype }] of Object.entries(op.inputs)) {
          // A stopped input has no slope in the gradient but one in the differences.
          if (dtype !== undefined || op.name === 'stopGradient') continue;
          const { shape, data } = feeds.get(name)!;
          const slopes = Float64Array.from(data, (v, i) => {
            const moved = (h: number) => lossAt(new Map(feeds).set(name, { shape, data: data.with(i, v + h) }));
            return (moved(1e-5) - moved(-1e-5)) / 2e-5;
          });
          expectClose(`d ${name}`, results.get(`d ${name}`)!.data, slopes, 1e-6);
        }
      }),
      { numRuns: runs },
    );
  });
});

describe.each(['onnxruntime-node', 'onnxruntime-web', 'tfjs'] as const)('%s', (name) => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await openEngine({ name, threads: 1 });
  });
  afterAll(() => engine.dispose());

  it.each(opCases.map((op) => [op.name, op] as const))(
    '%s: forward and gradient agree with the reference',
    async (_, op) => {
      await fc.assert(
        fc.asyncProperty(sample, fc.boolean(), async ({ sizes, seed }, symbolic) => {
          const graph = graphOf(op, symbolic ? SYMBOLS : sizes);
          const feeds = feedsFor(op, graph, sizes, seed);
          const want = interpret(graph, feeds, bindingsOf(sizes));
          const scale = scaleOf(op, graph, feeds, bindingsOf(sizes));
          const program = await engine.compile(graph);
          const got = await program.run(hostFeeds(graph, feeds));
          for (const [name, { shape, data }] of want) {
            expect(got[name]!.shape, name).toEqual(shape);
            expectClose(name, got[name]!.data, data, 1e-5, scale?.get(name)?.data);
          }
          await program.dispose();
        }),
        { numRuns: runs },
      );
    },
  );
});
