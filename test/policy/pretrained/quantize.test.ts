import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { promptsOf, sequencesOf } from '../../../experiments/parity/llm-feeds.ts';
import { writeTinyChatModel } from '../../../experiments/tiny-chat-model.ts';
import { openEngine } from '../../../src/compute/engine/open.ts';
import { forwardGraph, logprobsGraph } from '../../../src/compute/model/programs.ts';
import { type BlockSource, createFixed, dequantize, readFixed } from '../../../src/compute/tensor/fixed.ts';
import { gradients } from '../../../src/compute/tensor/gradients.ts';
import { defineGraph } from '../../../src/compute/tensor/graph.ts';
import * as t from '../../../src/compute/tensor/ops.ts';
import { openModel } from '../../../src/policy/pretrained/folder.ts';
import { freezeAs, quantizeMatrix } from '../../../src/policy/pretrained/quantize.ts';
import { readWeight } from '../../../src/policy/pretrained/shards.ts';
import { checkModel } from '../../../src/run/check-model.ts';

const folder = mkdtempSync(join(tmpdir(), 'longplay-quantise-'));
const cache = join(folder, 'cache');
beforeAll(() => void writeTinyChatModel(join(folder, 'model')));
afterAll(() => rmSync(folder, { recursive: true }));

const ids = Array.from({ length: 40 }, (_, i) => (i * 37) % 250);

const someBlocks = fc.array(fc.float({ noNaN: true, min: -9, max: 9 }), { minLength: 64, maxLength: 64 });

/** Weights as they are after quantising. */
function quantized(values: Float32Array, bits: 4 | 8): Float32Array {
  const out = new Float32Array(values.length);
  dequantize({ bits, ...quantizeMatrix(values, bits) }, out);
  return out;
}

it('a weight in 8 bits is off by half a step of its block at most', () => {
  fc.assert(
    fc.property(someBlocks, (values) => {
      const { codes, scales } = quantizeMatrix(Float32Array.from(values), 8);
      const own = quantized(Float32Array.from(values), 8);
      return values.every((x, i) => {
        const scale = scales[Math.floor(i / 32)]!;
        return Math.abs(codes[i]! - 128) <= 127 && Math.abs(own[i]! - x) <= scale * 0.500001;
      });
    }),
  );
});

it('a block in 4 bits is no farther from its weights than fifteen steps from its least to its largest would be', () => {
  fc.assert(
    fc.property(someBlocks, (list) => {
      const values = Float32Array.from(list);
      const own = quantized(values, 4);
      for (const start of [0, 32]) {
        const block = values.subarray(start, start + 32);
        const step = (Math.max(...block) - Math.min(...block)) / 15;
        const square = block.reduce((sum, x, i) => sum + (x - own[start + i]!) ** 2, 0);
        if (square > 32 * (step / 2) ** 2 * 1.0001 + 1e-10) return false;
      }
      return true;
    }),
  );
});

it.each([
  ['Q8_0', 8, (code: number, scale: number) => (code - 128) * scale, 1, 255],
  ['Q4_1', 4, (code: number, scale: number) => code * scale - 3 * Math.abs(scale), 0, 15],
  ['Q4_0', 4, (code: number, scale: number) => (code - 8) * scale, 0, 15],
] as const)('weights that come out of GGUF’s %s stay what they are', (_, bits, weightOf, lowest, highest) => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: lowest, max: highest }), { minLength: 30, maxLength: 30 }),
      fc.constantFrom(0.013, 1.7, -0.4),
      (codes, signed) => {
        const scale = bits === 8 ? Math.abs(signed) : signed;
        // Its ends are taken in every block: that is how the scale of a block is found.
        const values = Float32Array.from([lowest, highest, ...codes], (code) => weightOf(code, scale));
        return quantized(values, bits).every((x, i) => Math.abs(x - values[i]!) <= 1e-6 * Math.abs(scale) * 128);
      },
    ),
  );
});

it('ties go to the even code', () => {
  const values = new Float32Array(32);
  values.set([127, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5]);
  expect([...quantizeMatrix(values, 8).codes.subarray(0, 7)].map((code) => code - 128)).toEqual([
    127, 0, 2, 2, 0, -2, -2,
  ]);
});

it.each(['int8', 'int4'] as const)('%s: the file is made once, and made again when it is not whole', (quantize) => {
  const model = openModel(join(folder, 'model'));
  const { base } = freezeAs(model, quantize, cache);
  const file = join(cache, readdirSync(cache).find((name) => name.includes(quantize))!);
  const bytes = readFileSync(file);
  const { ino } = statSync(file);
  expect(freezeAs(model, quantize, cache).base).toEqual(base);
  expect(statSync(file).ino).toBe(ino);
  const other = Buffer.from(bytes);
  other[100]! ^= 1; // in its header
  for (const harmed of [bytes.subarray(0, 1000), bytes.subarray(0, -1), other]) {
    writeFileSync(file, harmed);
    freezeAs(model, quantize, cache);
    expect(readFileSync(file).equals(bytes)).toBe(true);
  }
  const name = 'model.layers.0.mlp.up_proj.weight';
  const stored = model.shards.weights.get(name)!;
  const own = readFixed(stored.shape, base!.weights[name]!);
  const worst = Math.max(...readWeight(stored).map((x, i) => Math.abs(x - own[i]!)));
  expect(worst).toBeGreaterThan(0);
  expect(worst).toBeLessThan(quantize === 'int8' ? 1e-3 : 0.02);
});

it('a base is known by its weights, not by their names and shapes, and its file by the files it was made of', () => {
  const twin = join(folder, 'twin');
  writeTinyChatModel(twin, { seed: 2 }); // of the same shape, as a model and its fine-tuned version are
  const made = (path: string) => {
    const { base } = freezeAs(openModel(path), 'int8', cache);
    const { codes } = base!.weights['model.layers.0.mlp.up_proj.weight'] as BlockSource;
    return { hash: base!.hash, file: codes.file };
  };
  const before = made(twin);
  const other = made(join(folder, 'model'));
  expect(other.hash).not.toBe(before.hash);
  expect(other.file).not.toBe(before.file);
  // Changed in place, where the hash does not look.
  const { source } = openModel(twin).shards.weights.get('model.layers.0.mlp.up_proj.weight')!;
  const bytes = readFileSync(source.file);
  bytes.writeFloatLE(3, source.offset + 8000);
  writeFileSync(source.file, bytes);
  const after = made(twin);
  expect(after.hash).toBe(before.hash);
  expect(after.file).not.toBe(before.file);
});

it.each(['int8', 'int4'] as const)('%s: onnxruntime’s kernels compute what the blocks mean', async (quantize) => {
  const config = freezeAs(openModel(join(folder, 'model')), quantize, cache);
  const logits: Float32Array[] = [];
  for (const name of ['onnxruntime-node', 'reference', 'onnxruntime-web'] as const) {
    const engine = await openEngine({ name, threads: 1 });
    const out = await (await engine.compile(forwardGraph(config))).run(promptsOf([ids]));
    logits.push(out.logits!.data as Float32Array);
    await engine.dispose();
  }
  const [kernels, meaning, dense] = logits;
  const size = Math.sqrt(meaning!.reduce((sum, x) => sum + x * x, 0) / meaning!.length);
  const differs = (a: ArrayLike<number>) => Math.max(...meaning!.map((x, i) => Math.abs(x - a[i]!))) / size;
  expect(differs(dense!)).toBeLessThan(1e-4);
  expect(differs(kernels!)).toBeLessThan(1e-4);
});

it('a product of few rows takes other kernels and gives the same', async () => {
  const { base } = freezeAs(openModel(join(folder, 'model')), 'int8', cache);
  const name = 'model.layers.0.mlp.up_proj.weight';
  const weight = createFixed(name, [160, 64], base!.weights[name]!);
  const x = t.input('x', ['N', 64]);
  const engine = await openEngine({ name: 'onnxruntime-node', threads: 1 });
  // Two channels that are far larger than the others, as real models have, and a row of zeros.
  const data = Float32Array.from({ length: 192 }, (_, i) => (i < 64 ? 0 : Math.sin(i) * (i % 64 < 2 ? 300 : 1)));
  const [many, few] = await Promise.all(
    [false, true].map(async (fewRows) => {
      const program = await engine.compile(defineGraph({ y: t.matmul(x, weight, { transposeB: true }) }, { fewRows }));
      return (await program.run({ x: { dtype: 'f32', shape: [3, 64], data } })).y!.data;
    }),
  );
  const size = Math.max(...Array.from(many!, Math.abs));
  many!.forEach((v, i) => expect(Math.abs(v - few![i]!) / size).toBeLessThan(1e-6));
  await engine.dispose();
});

it('gradients go back through the dequantised weight, the embedding table is read by its blocks', async () => {
  const { base } = freezeAs(openModel(join(folder, 'model')), 'int8', cache);
  const name = 'model.embed_tokens.weight';
  const source = base!.weights[name] as BlockSource;
  const V = source.codes.bytes / 64;
  const table = createFixed(name, [V, 64], source);
  const x = t.input('x', ['N', 64]);
  const rows = t.gather(table, t.constant([5, 0, 200], [3], 'i32'));
  const y = t.matmul(x, table, { transposeB: true });
  const [dx] = gradients(
    t.reduceSum(
      t.mul(
        y,
        t.constant(
          Float32Array.from({ length: V }, (_, i) => i % 3),
          [V],
        ),
      ),
    ),
    [x],
  );
  const outs: Record<string, { readonly data: ArrayLike<number> }>[] = [];
  for (const engineName of ['onnxruntime-node', 'reference'] as const) {
    const engine = await openEngine({ name: engineName, threads: 1 });
    const program = await engine.compile(defineGraph({ rows, dx: dx!, same: t.neg(x) }));
    outs.push(await program.run({ x: { dtype: 'f32', shape: [2, 64], data: new Float32Array(128).fill(0.3) } }));
  }
  expect(outs[0]!.rows!.data).toEqual(outs[1]!.rows!.data);
  Array.from(outs[0]!.dx!.data, (v, i) => expect(v).toBeCloseTo(outs[1]!.dx!.data[i]!, 3));
});

it.each(['none', 'int8', 'int4'] as const)(
  '%s: what generates and what learns give the same log-probabilities',
  async (quantize) => {
    const config = freezeAs(openModel(join(folder, 'model')), quantize, cache);
    const engine = await openEngine({ name: 'onnxruntime-node', threads: 1 });
    const scoring = await engine.compile(logprobsGraph(config, { decoder: 'tokens', masked: false }));
    const chunked = await engine.compile(logprobsGraph(config, { decoder: 'tokens', masked: false, chunks: 3 }));
    const { feeds } = sequencesOf([ids]);
    const whole = await scoring.run(feeds);
    const parts = await chunked.run(feeds);
    for (const out of ['logprob', 'entropy']) {
      whole[out]!.data.forEach((v, i) => expect(parts[out]!.data[i]!).toBeCloseTo(v, 4));
    }
    const forward = await (await engine.compile(forwardGraph(config))).run(promptsOf([ids]));
    const V = config.vocabSize;
    whole.logprob!.data.forEach((v, i) => {
      const logits = (forward.logits!.data as Float32Array).subarray((i + 1) * V, (i + 2) * V);
      const norm = Math.log(logits.reduce((sum, z) => sum + Math.exp(z), 0));
      expect(logits[ids[i + 2]!]! - norm).toBeCloseTo(v, 4);
    });
    await engine.dispose();
  },
);

it.each(['none', 'int8', 'int4'] as const)(
  '%s: a deep model with outlier channels is generated from and learned by the same function',
  async (quantize) => {
    const path = join(folder, 'outliers');
    writeTinyChatModel(path, { config: { num_hidden_layers: 12, hidden_size: 96, head_dim: 24 } });
    for (const [name, { source }] of openModel(path).shards.weights) {
      if (!name.endsWith('layernorm.weight')) continue;
      const bytes = readFileSync(source.file);
      for (const channel of [3, 50]) bytes.writeFloatLE(40, source.offset + 4 * channel);
      writeFileSync(source.file, bytes);
    }
    const checks = await checkModel(path, quantize, { name: 'onnxruntime-node', threads: 1 });
    expect(checks.filter(({ ok }) => !ok)).toEqual([]);
    expect(checks.length).toBe(4);
  },
);
