/**
 * Run by webgpu.test.ts in a process of its own, since a software device needs its libraries named before the start:
 * every n-th op (the first argument) with its gradient, and a few training steps, on the device; prints what differs
 * most from the reference.
 */

import type { Engine, HostTensor } from '../../../src/compute/engine/engine.ts';
import { openEngine } from '../../../src/compute/engine/open.ts';
import { interpret } from '../../../src/compute/engine/reference.ts';
import { defaultAdamW } from '../../../src/compute/model/optimizer.ts';
import { trainGraph } from '../../../src/compute/model/programs.ts';
import { gradients } from '../../../src/compute/tensor/gradients.ts';
import { defineGraph } from '../../../src/compute/tensor/graph.ts';
import { elements, type NdArray } from '../../../src/compute/tensor/ndarray.ts';
import { input, mul, reduceSum, type Tensor } from '../../../src/compute/tensor/ops.ts';
import { evaluate } from '../../../src/compute/tensor/shape.ts';
import { Rng } from '../../../src/core/rng.ts';
import { optionsConfig } from '../model/episodes.ts';
import { lossCurve } from '../model/loss-curve.ts';
import { type OpCase, opCases } from '../tensor/op-cases.ts';

const sizes = { A: 3, B: 4, C: 5, D: 2 };

/** Largest difference of an op and its gradients, in units of 1e-5·(|b| + 1). */
async function opDifference(engine: Engine, op: OpCase): Promise<number> {
  const x = Object.fromEntries(
    Object.entries(op.inputs).map(([name, { shape, dtype }]) => [name, input(name, shape(sizes), dtype)]),
  );
  const y = op.apply(x, sizes);
  const loss = reduceSum(mul(y, input('w', y.shape)));
  const wrt = Object.values(x).filter((tensor) => tensor.dtype === 'f32');
  const outputs: Record<string, Tensor> = { y, loss };
  for (const [i, gradient] of gradients(loss, wrt).entries()) outputs[`d${i}`] = gradient;
  const graph = defineGraph(outputs);
  const rng = Rng.fromSeed(1);
  const bindings = new Map(Object.entries(sizes));
  const values = new Map<string, NdArray>();
  const feeds: Record<string, HostTensor> = {};
  for (const { name, shape: dims, dtype } of graph.inputs) {
    const shape = dims.map((dim) => evaluate(dim, bindings));
    const drawn = op.inputs[name]?.fill?.(rng, sizes, elements(shape));
    const numbers =
      drawn ?? Array.from({ length: elements(shape) }, () => (op.positive ? 0.2 + rng.float() : rng.normal()));
    const Data = dtype === 'f32' ? Float32Array : dtype === 'i32' ? Int32Array : Uint8Array;
    const data = Data.from(numbers);
    feeds[name] = { dtype, shape, data };
    values.set(name, { shape, data: Float64Array.from(data) });
  }
  const want = interpret(graph, values, bindings);
  const program = await engine.compile(graph);
  const got = await program.run(feeds);
  await program.dispose();
  let worst = 0;
  for (const [name, { data }] of want) {
    data.forEach((b, i) => {
      worst = Math.max(worst, Math.abs(got[name]!.data[i]! - b) / (1e-5 * (Math.abs(b) + 1)));
    });
  }
  return worst;
}

async function curve(engine: Engine, keeping = false): Promise<number[]> {
  const graph = trainGraph(optionsConfig, { decoder: 'choice', objective: 'policy', adamW: defaultAdamW });
  return lossCurve(await engine.compile(graph), optionsConfig, 'choice', 5, keeping, keeping);
}

/** An output stays on the device, is fed to another program, and comes back when it is read; what fails, or 'yes'. */
async function keepsOutputs(): Promise<string> {
  const x = input('x', ['N', 2]);
  const program = await device.compile(defineGraph({ y: mul(x, 2), z: reduceSum(x) }));
  const x0: HostTensor = { dtype: 'f32', shape: [2, 2], data: Float32Array.of(1, 2, 3, 4) };
  const { y, z } = await program.run({ x: x0 }, { keep: ['y'] });
  try {
    return `the kept output lies here: ${y!.data}`;
  } catch {
    // as it should: its memory is the device's
  }
  const again = await program.run({ x: y! }, { keep: ['y'] });
  const read = [...(await again.y!.read()).data, ...(await y!.read()).data, z!.data[0], again.z!.data[0]].join();
  y!.dispose();
  again.y!.dispose();
  return read === '4,8,12,16,2,4,6,8,10,20' ? 'yes' : read;
}

const device = await openEngine({ name: 'onnxruntime-node', device: 'webgpu', threads: 1 });
const cpu = await openEngine({ name: 'onnxruntime-node', threads: 1 });
const failures: string[] = [];
let worst = { name: '', difference: 0 };
const every = Number(process.argv[2] ?? 1);
const chosen = opCases.filter(({ name }, i) => i % every === 0 || ['rmsNorm', 'swiglu', 'rotary'].includes(name));
for (const op of chosen) {
  try {
    const difference = await opDifference(device, op);
    if (!(difference <= worst.difference)) worst = { name: op.name, difference };
  } catch (error) {
    failures.push(`${op.name}: ${(error as Error).message.slice(0, 200)}`);
  }
}
const [a, b] = [await curve(device), await curve(cpu)];
const training = Math.max(...a.map((loss, t) => Math.abs(loss - b[t]!)));
const kept = Math.max(...(await curve(device, true)).map((loss, t) => Math.abs(loss - a[t]!)));
console.log(JSON.stringify({ ops: chosen.length, failures, worst, training, kept, keeping: await keepsOutputs() }));
process.exit(0);
