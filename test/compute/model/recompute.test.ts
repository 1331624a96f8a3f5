import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Feeds, f32, scalarsOf, sequencesOf } from '../../../experiments/parity/llm-feeds.ts';
import { writeTinyChatModel } from '../../../experiments/tiny-chat-model.ts';
import { openEngine } from '../../../src/compute/engine/open.ts';
import { ALL_PROJECTIONS, type ModelConfig } from '../../../src/compute/model/config.ts';
import { drawParameters, parameterSpecs } from '../../../src/compute/model/parameters.ts';
import { type Decoding, gradientGraph, logprobsGraph } from '../../../src/compute/model/programs.ts';
import { toOnnx } from '../../../src/compute/tensor/onnx.ts';
import { openModel } from '../../../src/policy/pretrained/folder.ts';
import { freezeAs } from '../../../src/policy/pretrained/quantize.ts';

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

/** Lists of every other decision: what was chosen and a few more; the others were free. */
function listFeeds(vocabSize: number): Feeds {
  const { shape, data } = feeds['decisions.chosen']!;
  const rows = shape[0]!;
  const allowed = Array.from(data as Int32Array, (chosen, r) => (r % 2 ? [] : [chosen, 250 + (r % 9), 260 + (r % 11)]));
  const flat = (fill: (list: readonly number[], i: number) => number) =>
    allowed.flatMap((list) => [0, 1, 2].map((i) => fill(list, i)));
  return {
    'decisions.allowed': { dtype: 'i32', shape: [rows, 3], data: Int32Array.from(flat((list, i) => list[i] ?? 0)) },
    'decisions.lift': f32([rows, 3], Float32Array.from(flat((list, i) => (i < list.length ? 1e9 : 0)))),
    'decisions.listed': f32(
      [rows, 1],
      Float32Array.from(allowed, (list) => (list.length > 0 ? 1 : 0)),
    ),
    'decisions.sampled': f32([1, vocabSize], new Float32Array(vocabSize).fill(-1e9, vocabSize - 7)),
  };
}

async function gradientsBy(config: ModelConfig, decoding: Partial<Decoding>, name: 'onnxruntime-node' | 'reference') {
  const engine = await openEngine({ name, threads: 1 });
  const graph = gradientGraph(config, { decoder: 'tokens', masked: false, objective: 'policy', ...decoding });
  const specs = parameterSpecs(config);
  const drawn = drawParameters(
    specs.map((spec) => ({ ...spec, init: { kind: 'normal', std: 0.1 } })),
    3,
  );
  const weights: Feeds = Object.fromEntries(specs.map(({ name: key, shape }) => [key, f32(shape, drawn[key]!)]));
  const lists = decoding.masked ? listFeeds(config.vocabSize) : {};
  const program = await engine.compile(graph);
  const out = await program.run({ ...feeds, ...lists, ...weights, ...scalarsOf('loss', coefficients) });
  await engine.dispose();
  return out;
}

it.each([
  ['none', { recompute: true }],
  ['none', { chunks: 4 }],
  ['none', { chunks: 3, recompute: true }],
  ['int8', { chunks: 30, recompute: true }], // more parts than rows: some are empty
  ['none', { masked: true, chunks: 4 }],
  ['int8', { masked: true, chunks: 30, recompute: true }],
] as const)('%s, %j: the gradients are those of the plain graph', async (quantize, decoding) => {
  const model = freezeAs(openModel(folder), quantize, join(folder, 'cache'));
  const config = { ...model, adapter: { rank: 4, alpha: 8, targets: ALL_PROJECTIONS } };
  for (const engine of ['onnxruntime-node', 'reference'] as const) {
    const plain = await gradientsBy(config, { masked: 'masked' in decoding }, engine);
    const other = await gradientsBy(config, decoding, engine);
    expect(Object.keys(other).sort()).toEqual(Object.keys(plain).sort());
    for (const [name, { data }] of Object.entries(plain)) {
      const norm = Math.sqrt((data as Float32Array).reduce((sum, x) => sum + x * x, 0)) + 1e-9;
      const worst = Math.max(...(data as Float32Array).map((x, i) => Math.abs(x - other[name]!.data[i]!)));
      expect(worst / norm, `${engine} ${name}`).toBeLessThan(1e-5);
    }
  }
});

it.each([{}, { masked: true }])(
  'under a soft cap of the logits, %j: parts give the gradients of the whole',
  async (lists) => {
    const model = freezeAs(openModel(folder), 'none', join(folder, 'cache'));
    const config = { ...model, logitCap: 0.5, adapter: { rank: 4, alpha: 8, targets: ALL_PROJECTIONS } };
    for (const engine of ['onnxruntime-node', 'reference'] as const) {
      const plain = await gradientsBy(config, lists, engine);
      const other = await gradientsBy(config, { ...lists, chunks: 3 }, engine);
      for (const [name, { data }] of Object.entries(plain)) {
        const norm = Math.sqrt((data as Float32Array).reduce((sum, x) => sum + x * x, 0)) + 1e-9;
        const worst = Math.max(...(data as Float32Array).map((x, i) => Math.abs(x - other[name]!.data[i]!)));
        expect(worst / norm, `${engine} ${name}`).toBeLessThan(1e-5);
      }
    }
  },
);

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
    ...freezeAs(openModel(folder), 'none', folder),
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
  // So is what could be drawn: kept, it would be [R, V] again.
  const masks = (chunks: number) =>
    nodesOf('ScatterElements', { masked: true, chunks }) - nodesOf('ScatterElements', { chunks });
  expect([1, 3].map(masks)).toEqual([1, 6]);
});

it('a masked decision is drawn among what it lists, or among all that are sampled', async () => {
  const { config } = openModel(folder);
  const engine = await openEngine({ name: 'onnxruntime-node', threads: 1 });
  const drawn = drawParameters(parameterSpecs(config), 3);
  const weights = Object.fromEntries(parameterSpecs(config).map(({ name, shape }) => [name, f32(shape, drawn[name]!)]));
  const lists = listFeeds(config.vocabSize);
  const programs = await Promise.all(
    [false, true].map((masked) => engine.compile(logprobsGraph(config, { decoder: 'tokens', masked }))),
  );
  const measured = async (masked: boolean, more: Feeds) => {
    const { logprob, entropy } = await programs[Number(masked)]!.run({ ...feeds, ...weights, ...more });
    return { logprob: logprob!.data as Float32Array, entropy: entropy!.data as Float32Array };
  };
  // Scores of every id, up to a constant of the row: the free log-probability of each as if it had been chosen.
  const { shape } = feeds['decisions.chosen']!;
  const rows = shape[0]!;
  const columns: Float32Array[] = [];
  for (let id = 0; id < config.vocabSize; id++) {
    const chosen = { dtype: 'i32' as const, shape, data: new Int32Array(rows).fill(id) };
    columns.push((await measured(false, { 'decisions.chosen': chosen })).logprob);
  }
  const { logprob, entropy } = await measured(true, lists);
  const [allowed, lift] = [lists['decisions.allowed']!.data, lists['decisions.lift']!.data];
  for (let r = 0; r < rows; r++) {
    const own = [0, 1, 2].filter((i) => lift[3 * r + i]! > 0).map((i) => allowed[3 * r + i]!);
    const ids = own.length > 0 ? own : Array.from({ length: config.vocabSize - 7 }, (_, id) => id);
    const p = ids.map((id) => [id, Math.exp(columns[id]![r]!)] as const);
    const total = p.reduce((sum, [, each]) => sum + each, 0);
    const chosen = feeds['decisions.chosen']!.data[r]!;
    expect(logprob[r], `row ${r}`).toBeCloseTo(Math.log(p.find(([id]) => id === chosen)![1] / total), 4);
    const bits = p.reduce((sum, [, each]) => sum - (each / total) * Math.log(each / total), 0);
    expect(entropy[r], `row ${r}`).toBeCloseTo(bits, 4);
  }
  await engine.dispose();
});
