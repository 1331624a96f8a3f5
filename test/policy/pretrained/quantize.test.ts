import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { promptsOf, sequencesOf } from '../../../experiments/parity/llm-feeds.ts';
import { writeTinyChatModel } from '../../../experiments/tiny-chat-model.ts';
import { openEngine } from '../../../src/compute/engine/open.ts';
import { forwardGraph, logprobsGraph } from '../../../src/compute/model/programs.ts';
import { type BlockSource, createFixed, readFixed } from '../../../src/compute/tensor/fixed.ts';
import { gradients } from '../../../src/compute/tensor/gradients.ts';
import { defineGraph } from '../../../src/compute/tensor/graph.ts';
import * as t from '../../../src/compute/tensor/ops.ts';
import { openModel } from '../../../src/policy/pretrained/folder.ts';
import { freezeAs, quantizeMatrix } from '../../../src/policy/pretrained/quantize.ts';
import { readWeight } from '../../../src/policy/pretrained/shards.ts';

const folder = mkdtempSync(join(tmpdir(), 'longplay-quantise-'));
const cache = join(folder, 'cache');
beforeAll(() => void writeTinyChatModel(join(folder, 'model')));
afterAll(() => rmSync(folder, { recursive: true }));

const ids = Array.from({ length: 40 }, (_, i) => (i * 37) % 250);

it.each([8, 4] as const)('a weight in %i bits is off by half a step of its block at most', (bits) => {
  fc.assert(
    fc.property(fc.array(fc.float({ noNaN: true, min: -9, max: 9 }), { minLength: 64, maxLength: 64 }), (values) => {
      const { codes, scales } = quantizeMatrix(Float32Array.from(values), bits);
      return values.every((x, i) => {
        const code = bits === 8 ? codes[i]! - 128 : ((codes[i >> 1]! >> (4 * (i & 1))) & 15) - 8;
        const scale = scales[Math.floor(i / 32)]!;
        return Math.abs(code) <= (bits === 8 ? 127 : 7) && Math.abs(code * scale - x) <= scale * 0.500001;
      });
    }),
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

it.each([
  ['int8', 0.02],
  ['int4', 0.02],
] as const)('%s: onnxruntime’s kernels agree with the meaning of the blocks', async (quantize, tolerance) => {
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
  expect(differs(kernels!)).toBeLessThan(4 * tolerance); // activations are rounded to 8 bits too
  expect(differs(kernels!)).toBeGreaterThan(0);
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
