import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Engine, HostTensor } from '../../../src/compute/engine/engine.ts';
import { openEngine } from '../../../src/compute/engine/open.ts';
import { gradients } from '../../../src/compute/tensor/gradients.ts';
import { defineGraph } from '../../../src/compute/tensor/graph.ts';
import * as t from '../../../src/compute/tensor/ops.ts';
import { plus } from '../../../src/compute/tensor/shape.ts';
import { Rng } from '../../../src/core/rng.ts';

const f32 = (shape: readonly number[], data: ArrayLike<number>): HostTensor => ({
  dtype: 'f32',
  shape,
  data: Float32Array.from(data),
});
const i32 = (shape: readonly number[], data: ArrayLike<number>): HostTensor => ({
  dtype: 'i32',
  shape,
  data: Int32Array.from(data),
});

describe.each(['reference', 'onnxruntime-node', 'onnxruntime-web', 'tfjs'] as const)('%s', (name) => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await openEngine({ name, threads: 1 });
  });
  afterAll(() => engine.dispose());

  it('serves every size with one program, size 0 included', async () => {
    const past = t.input('past', ['B', 'P', 2]);
    const fresh = t.input('fresh', ['B', 'T', 2]);
    const all = t.concat([past, fresh], 1);
    const keys = t.reshape(t.mul(all, 2), ['B', plus('P', 'T'), 2, 1]);
    const scores = t.matmul(fresh, all, { transposeB: true });
    const program = await engine.compile(
      defineGraph({ keys, scores, rows: t.reshape(past, ['B*P', 2]), other: t.reshape(past, ['P', 'B', 2]) }),
    );
    for (const [B, P, T] of [
      [1, 3, 1],
      [2, 0, 2],
      [3, 1, 2],
    ] as const) {
      const out = await program.run({
        past: f32([B, P, 2], new Float32Array(B * P * 2).fill(1)),
        fresh: f32([B, T, 2], new Float32Array(B * T * 2).fill(3)),
      });
      expect(out.keys!.shape).toEqual([B, P + T, 2, 1]);
      expect(out.rows!.shape).toEqual([B * P, 2]);
      expect(out.other!.shape).toEqual([P, B, 2]);
      expect(out.scores!.shape).toEqual([B, T, P + T]);
      expect([...out.scores!.data.slice(0, P + T)]).toEqual([...Array(P).fill(6), ...Array(T).fill(18)]);
    }
  });

  it('reads a size from a multiple of it', async () => {
    const x = t.input('x', ['8*G', 2]);
    const program = await engine.compile(defineGraph({ y: t.mul(t.reshape(x, ['G', 8, 2]), t.dimension('G')) }));
    const out = await program.run({ x: f32([16, 2], new Float32Array(32).fill(1)) });
    expect(out.y!.shape).toEqual([2, 8, 2]);
    expect(out.y!.data[0]).toBe(2);
    await expect(program.run({ x: f32([12, 2], new Float32Array(24)) })).rejects.toThrow(
      "input 'x': expected f32[8*G, 2], got f32[12, 2] (12 is no multiple of 8)",
    );
  });

  it('names the input, what it expected and what came', async () => {
    const x = t.input('x', ['N', 3]);
    const ids = t.input('ids', ['N'], 'i32');
    const program = await engine.compile(defineGraph({ y: t.mul(t.reduceSum(x, 1), t.cast(ids, 'f32')) }));
    const good = { x: f32([2, 3], [1, 2, 3, 4, 5, 6]), ids: i32([2], [1, 2]) };
    const refused = (feeds: Record<string, HostTensor>, message: string) =>
      expect(program.run(feeds)).rejects.toMatchObject({ code: 'BAD_SHAPE', message });
    await refused({ x: good.x }, "input 'ids': expected i32[N], got nothing");
    await refused({ ...good, x: f32([2, 4], new Float32Array(8)) }, "input 'x': expected f32[N, 3], got f32[2, 4]");
    await refused({ ...good, x: f32([6], [1, 2, 3, 4, 5, 6]) }, "input 'x': expected f32[N, 3], got f32[6]");
    await refused(
      { ...good, ids: i32([3], [0, 0, 0]) },
      "input 'ids': expected i32[N], got i32[3] ('N' is 2 in another input)",
    );
    await refused({ ...good, ids: f32([2], [1, 2]) }, "input 'ids': expected i32[N], got f32[2]");
    await refused({ ...good, x: f32([2, 3], [1, 2]) }, "input 'x': [2, 3] holds 6 elements, got 2");
    await refused(
      { ...good, ids: { dtype: 'i32', shape: [2], data: new Float32Array(2) } },
      "input 'ids': i32 wants Int32Array, got Float32Array",
    );
    const out = await program.run({ ...good, unused: f32([1], [1]) });
    expect([...out.y!.data]).toEqual([6, 30]);
  });

  it('lets an output bear an input’s name, be fed again, be an input itself or come twice', async () => {
    const w = t.parameter('w', [2]);
    const next = t.add(w, 1);
    const program = await engine.compile(defineGraph({ w: next, again: next, before: w, fixed: t.constant([7, 8]) }));
    let weights: HostTensor = f32([2], [1, 2]);
    for (let step = 0; step < 3; step++) {
      const out = await program.run({ w: weights });
      expect([...out.before!.data]).toEqual([...weights.data]);
      expect([...out.again!.data]).toEqual([...out.w!.data]);
      expect([...out.fixed!.data]).toEqual([7, 8]);
      weights = out.w!;
    }
    expect([...weights.data]).toEqual([4, 5]);
  });

  it('sees what is written into the array of a feed between two runs', async () => {
    const program = await engine.compile(defineGraph({ y: t.mul(t.input('x', [1]), 2) }));
    const x = f32([1], [1]);
    await program.run({ x });
    x.data[0] = 5;
    expect((await program.run({ x })).y!.data[0]).toBe(10);
  });

  it('fails as ENGINE_FAILED or BAD_ARGUMENT on an index out of range, and runs on', async () => {
    const program = await engine.compile(defineGraph({ y: t.gather(t.input('x', [2]), t.input('ids', ['N'], 'i32')) }));
    const x = f32([2], [3, 4]);
    await expect(program.run({ x, ids: i32([1], [2]) })).rejects.toMatchObject({ code: /ENGINE_FAILED|BAD_ARGUMENT/ });
    expect((await program.run({ x, ids: i32([1], [1]) })).y!.data[0]).toBe(4);
  });

  it('refuses shared memory and runs after dispose', async () => {
    const program = await engine.compile(defineGraph({ y: t.neg(t.input('x', [1])) }));
    const data = new Float32Array(new SharedArrayBuffer(4));
    await expect(program.run({ x: { dtype: 'f32', shape: [1], data } })).rejects.toMatchObject({
      code: 'BAD_ARGUMENT',
    });
    await program.dispose();
    await expect(program.run({ x: f32([1], [1]) })).rejects.toMatchObject({ code: 'ENGINE_FAILED' });
  });

  it('refuses a graph whose sizes no input gives', async () => {
    const graph = defineGraph({ y: t.broadcastTo(t.constant(1), ['N']) });
    const compiledAndRun = async () => (await engine.compile(graph)).run({});
    await expect(compiledAndRun()).rejects.toThrow(/no input of the graph gives the size of 'N'/);
  });
});

describe('onnxruntime-node with two threads', () => {
  it('gives bit-identical embedding and pick gradients every time', { timeout: 60_000 }, async () => {
    const [tokens, width, vocabulary] = [4096, 128, 8]; // few rows, many additions into each: a race shows soon
    const rng = Rng.fromSeed(1);
    const table = t.parameter('table', [vocabulary, width]);
    const ids = t.input('ids', ['N'], 'i32');
    const x = t.gather(table, ids);
    const loss = t.reduceMean(t.pick(t.logSoftmax(t.mul(x, x)), t.input('targets', ['N', 1], 'i32')));
    const [dTable] = gradients(loss, [table]);
    const engine = await openEngine({ name: 'onnxruntime-node', threads: 2, spinning: true });
    const program = await engine.compile(defineGraph({ dTable: dTable! }));
    const draw = (below: number) => Array.from({ length: tokens }, () => rng.int(below));
    const feeds = {
      table: f32(
        [vocabulary, width],
        Array.from({ length: vocabulary * width }, () => rng.normal()),
      ),
      ids: i32([tokens], draw(vocabulary)),
      targets: i32([tokens, 1], draw(width)),
    };
    const first = (await program.run(feeds)).dTable!.data;
    for (let run = 0; run < 100; run++) expect((await program.run(feeds)).dTable!.data).toEqual(first);
    await engine.dispose();
  });
});

describe('openEngine', () => {
  it('takes the best that is present for auto, and reports why', async () => {
    const engine = await openEngine({ name: 'auto', threads: 1 });
    expect(engine.name).toBe('onnxruntime-node');
    expect(engine.reason).toMatch(/fastest/);
    await engine.dispose();
  });

  it.each([
    [{ name: 'tfjs', device: 'webgpu' }, /engine tfjs has no device 'webgpu', only: cpu/],
    [{ name: 'onnxruntime-node', device: 'cuda' }, /cannot use cuda here: .*CUDA 12 .*onnxruntime-node-install=cuda12/],
    [{ name: 'onnxruntime-node', threads: 0 }, /threads must be an integer of at least 1, got 0/],
  ] as const)('refuses %o', async (options, message) => {
    await expect(openEngine(options)).rejects.toThrow(message);
  });
});
