import * as ortNode from 'onnxruntime-node';
import { describe, expect, it } from 'vitest';
import { type Ort, openOrt } from '../../../src/compute/engine/onnxruntime.ts';
import { openEngine } from '../../../src/compute/engine/open.ts';
import { checkParams, initialParams } from '../../../src/compute/model/parameters.ts';
import { defineGraph } from '../../../src/compute/tensor/graph.ts';
import { toOnnx } from '../../../src/compute/tensor/onnx.ts';
import * as t from '../../../src/compute/tensor/ops.ts';
import { plainConfig } from '../model/episodes.ts';

describe('weights', () => {
  const params = initialParams(plainConfig, 1);
  const name = 'model.layers.1.mlp.up_proj.weight';
  const changed = (values: Float32Array | undefined) => {
    const { [name]: _, ...rest } = params.values;
    return { version: 0, values: values ? { ...rest, [name]: values } : rest };
  };

  it.each([
    [
      'NaN',
      changed(params.values[name]!.with(3, Number.NaN)),
      `parameter '${name}' holds NaN at 3; expected finite values`,
    ],
    ['infinity', changed(params.values[name]!.with(0, Number.NEGATIVE_INFINITY)), `'${name}' holds -Infinity at 0`],
    ['another shape', changed(new Float32Array(7)), `parameter '${name}' expected [24,16] = 384 values, got 7`],
    ['a missing one', changed(undefined), `parameter '${name}' [24,16] is missing`],
    [
      'one too many',
      { version: 0, values: { ...params.values, extra: new Float32Array(1) } },
      "'extra' is no parameter",
    ],
  ])('refuses %s, naming the parameter', (_, bad, message) => {
    expect(() => checkParams(plainConfig, params)).not.toThrow();
    expect(() => checkParams(plainConfig, bad)).toThrow(expect.objectContaining({ code: 'BAD_WEIGHTS' }));
    expect(() => checkParams(plainConfig, bad)).toThrow(message);
  });
});

describe('limits', () => {
  const options = { contrib: true, normInverse: true, oneThread: true, files: true };

  it('refuses constants that no ONNX file holds', () => {
    const graph = defineGraph({ y: t.add(t.input('x', [100]), t.constant(new Float32Array(100).fill(2))) });
    expect(() => toOnnx(graph, options, 399)).toThrow(
      'graph: its constants take 400 bytes, expected at most 399; make the large ones inputs',
    );
    expect(toOnnx(graph, options, 400).length).toBeGreaterThan(400);
  });

  it('refuses feeds that an engine’s memory cannot hold, and runs on', async () => {
    const engine = openOrt(ortNode, {
      name: 'onnxruntime-web',
      device: 'cpu',
      threads: 1,
      reason: 'a test',
      reuses: false,
      keeps: false,
      files: false,
      maxFeedBytes: 400,
      session: {},
    });
    const program = await engine.compile(defineGraph({ y: t.neg(t.input('x', ['N'])) }));
    const x = (n: number) => ({ x: { dtype: 'f32', shape: [n], data: new Float32Array(n) } }) as const;
    await expect(program.run(x(101))).rejects.toMatchObject({
      code: 'ENGINE_FAILED',
      message: 'onnxruntime-web: the inputs hold 404 bytes, expected at most 400; use onnxruntime-node',
    });
    expect((await program.run(x(100))).y!.data.length).toBe(100);
    await engine.dispose();
  });
});

it('names the engine when its run rejects, once, and runs on', async () => {
  let refusals = 1;
  const failing = {
    Tensor: ortNode.Tensor,
    InferenceSession: {
      async create(...args: Parameters<typeof ortNode.InferenceSession.create>) {
        const session = await ortNode.InferenceSession.create(...args);
        const run = session.run.bind(session) as (...args: unknown[]) => Promise<never>;
        session.run = async (...given: unknown[]) => {
          if (refusals-- > 0) throw new Error('bad allocation');
          return run(...given);
        };
        return session;
      },
    },
  };
  const engine = openOrt(failing as unknown as Ort, {
    name: 'onnxruntime-node',
    device: 'cpu',
    threads: 1,
    reason: 'a test',
    reuses: true,
    keeps: false,
    files: true,
    maxFeedBytes: Number.POSITIVE_INFINITY,
    session: {},
  });
  const program = await engine.compile(defineGraph({ y: t.neg(t.input('x', [1])) }));
  const x = { dtype: 'f32', shape: [1], data: Float32Array.of(2) } as const;
  await expect(program.run({ x })).rejects.toMatchObject({
    code: 'ENGINE_FAILED',
    message: 'onnxruntime-node: bad allocation',
  });
  expect((await program.run({ x })).y!.data[0]).toBe(-2);
  await engine.dispose();
});

it('writes into the buffers of outputs that were disposed of, and into no others', async () => {
  const engine = await openEngine({ name: 'onnxruntime-node', threads: 1 });
  const program = await engine.compile(defineGraph({ y: t.add(t.input('x', [3]), 1) }));
  const run = async (value: number) =>
    (await program.run({ x: { dtype: 'f32', shape: [3], data: new Float32Array(3).fill(value) } })).y!;
  const [first, held] = [await run(1), await run(2)];
  const buffer = first.data;
  first.dispose();
  expect(() => first.data).toThrow('disposed of');
  const again = await run(3);
  expect([...buffer]).toEqual([4, 4, 4]); // the same memory
  expect([...again.data]).toEqual([4, 4, 4]);
  expect([...(await run(5)).data]).toEqual([6, 6, 6]);
  expect([...held.data]).toEqual([3, 3, 3]);
  expect([...again.data]).toEqual([4, 4, 4]);
  await engine.dispose();
});
