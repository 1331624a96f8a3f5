import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Feeds, f32, scalarsOf, sequencesOf } from '../../experiments/parity/llm-feeds.ts';
import { writeTinyChatModel } from '../../experiments/tiny-chat-model.ts';
import { openEngine } from '../../src/engine/open.ts';
import { ALL_PROJECTIONS, type ModelConfig } from '../../src/model/config.ts';
import { drawParameters, parameterSpecs } from '../../src/model/parameters.ts';
import { type Decoding, gradientGraph } from '../../src/model/programs.ts';
import { openModel } from '../../src/pretrained/folder.ts';
import { frozenAs } from '../../src/pretrained/quantize.ts';
import { toOnnx } from '../../src/tensor/onnx.ts';

const folder = mkdtempSync(join(tmpdir(), 'longplay-recompute-'));
beforeAll(() => void writeTinyChatModel(folder));
afterAll(() => rmSync(folder, { recursive: true }));

const sequences = [11, 2, 7].map((length, g) => Array.from({ length: length + 2 }, (_, t) => (g * 61 + t * 17) % 250));
const { feeds } = sequencesOf(sequences, {
  weight: (g, t) => (g + t) / 40,
  oldLogprob: (_, t) => -5 - t / 7,
  referenceLogprob: () => -5,
  advantage: (g) => g - 0.7,
});
const coefficients = {
  clipLow: 0.2,
  clipHigh: 0.3,
  entropyCoef: 0.3,
  valueCoef: 0,
  valueClip: 1,
  klCoef1: 0,
  klCoef2: 0.1,
  klCoef3: 0.1,
};

async function gradientsBy(config: ModelConfig, decoding: Partial<Decoding>, name: 'onnxruntime-node' | 'reference') {
  const engine = await openEngine({ name, threads: 1 });
  const graph = gradientGraph(config, { decoder: 'tokens', masked: false, objective: 'policy', ...decoding });
  const specs = parameterSpecs(config);
  const drawn = drawParameters(
    specs.map((spec) => ({ ...spec, init: { kind: 'normal', std: 0.1 } })),
    3,
  );
  const weights: Feeds = Object.fromEntries(specs.map(({ name: key, shape }) => [key, f32(shape, drawn[key]!)]));
  const out = await (await engine.compile(graph)).run({ ...feeds, ...weights, ...scalarsOf('loss', coefficients) });
  await engine.dispose();
  return out;
}

it.each([
  ['none', { recompute: true }],
  ['none', { chunks: 4 }],
  ['none', { chunks: 3, recompute: true }],
  ['int8', { chunks: 30, recompute: true }], // more parts than rows: some are empty
] as const)('%s, %j: the gradients are those of the plain graph', async (quantize, decoding) => {
  const model = frozenAs(openModel(folder), quantize, join(folder, 'cache'));
  const config = { ...model, adapter: { rank: 4, alpha: 8, targets: ALL_PROJECTIONS } };
  for (const engine of ['onnxruntime-node', 'reference'] as const) {
    const plain = await gradientsBy(config, {}, engine);
    const other = await gradientsBy(config, decoding, engine);
    expect(Object.keys(other).sort()).toEqual(Object.keys(plain).sort());
    for (const [name, { data }] of Object.entries(plain)) {
      const norm = Math.sqrt((data as Float32Array).reduce((sum, x) => sum + x * x, 0)) + 1e-9;
      const worst = Math.max(...(data as Float32Array).map((x, i) => Math.abs(x - other[name]!.data[i]!)));
      expect(worst / norm, `${engine} ${name}`).toBeLessThan(1e-5);
    }
  }
});

it('full training recomputes too', async () => {
  const { config } = openModel(folder);
  const plain = await gradientsBy(config, {}, 'onnxruntime-node');
  const again = await gradientsBy(config, { recompute: true }, 'onnxruntime-node');
  for (const [name, { data }] of Object.entries(plain)) {
    const norm = Math.sqrt((data as Float32Array).reduce((sum, x) => sum + x * x, 0)) + 1e-9;
    const worst = Math.max(...(data as Float32Array).map((x, i) => Math.abs(x - again[name]!.data[i]!)));
    expect(worst / norm, name).toBeLessThan(1e-5);
  }
});

/** Nodes of one kind in the program of a frozen model's gradients. */
function nodesOf(opType: string, decoding: Partial<Decoding>): number {
  const config = {
    ...frozenAs(openModel(folder), 'none', folder),
    adapter: { rank: 4, alpha: 8, targets: ALL_PROJECTIONS },
  };
  const options = { contrib: true, normInverse: true, oneThread: true, files: true };
  const graph = gradientGraph(config, { decoder: 'tokens', masked: false, objective: 'policy', ...decoding });
  const bytes = Buffer.from(toOnnx(graph, options)).toString('latin1');
  return bytes.split(opType).length - 1;
}

it('what is recomputed is a second copy of every layer, and without it there is one', () => {
  // Two layers of the prompt and two of the episodes; nothing reads what the prompt's last layer makes.
  expect([false, true].map((recompute) => nodesOf('Sigmoid', { recompute }))).toEqual([3, 6]);
});

it('parts of the vocabulary are computed a second time, and a whole one once', () => {
  expect([1, 3].map((chunks) => nodesOf('LogSoftmax', { chunks }))).toEqual([1, 6]);
});
