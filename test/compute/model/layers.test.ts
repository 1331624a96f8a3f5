import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { writeTinyChatModel } from '../../../experiments/tiny-chat-model.ts';
import type { Engine, HostTensor, Program } from '../../../src/compute/engine/engine.ts';
import { openEngine } from '../../../src/compute/engine/open.ts';
import { compileGradients, runsByLayers } from '../../../src/compute/model/compile.ts';
import { ALL_PROJECTIONS, type ModelConfig } from '../../../src/compute/model/config.ts';
import { compileFlatAdamW } from '../../../src/compute/model/flat-adamw.ts';
import { compileLayeredGradients, compileLayeredLogprobs } from '../../../src/compute/model/layered-program.ts';
import { defaultAdamW } from '../../../src/compute/model/optimizer.ts';
import { parameterSpecs } from '../../../src/compute/model/parameters.ts';
import { adamWGraph, gradientGraph, logprobsGraph, type TrainOptions } from '../../../src/compute/model/programs.ts';
import { openModel } from '../../../src/policy/pretrained/folder.ts';
import { freezeAs, type Quantize } from '../../../src/policy/pretrained/quantize.ts';
import {
  episodeFeeds,
  optionsConfig,
  plainConfig,
  randomGroups,
  randomParams,
  scalarFeeds,
  slidingConfig,
  weightFeeds,
} from './episodes.ts';

const folder = mkdtempSync(join(tmpdir(), 'longplay-layers-'));
let engine: Engine;
beforeAll(async () => {
  writeTinyChatModel(folder, { config: { num_hidden_layers: 3 } });
  engine = await openEngine({ name: 'onnxruntime-node', threads: 1 });
});
afterAll(async () => {
  await engine.dispose();
  rmSync(folder, { recursive: true });
});

type Feeds = Record<string, HostTensor>;

/** Prompts of several lengths, groups of several members, some of them empty of decisions; and whatever an objective reads. */
function feedsOf(config: ModelConfig, { decoder, objective, masked }: Omit<TrainOptions, 'adamW'>): Feeds {
  const groups = randomGroups(decoder, { groups: 4, members: 3, prompt: 7, tokens: 6 }, 5);
  const feeds = episodeFeeds(config, decoder, groups);
  const rows = feeds['decisions.chosen']!.data.length;
  if (masked) {
    const chosen = feeds['decisions.chosen']!.data;
    feeds['decisions.allowed'] = {
      dtype: 'i32',
      shape: [rows, 2],
      data: Int32Array.from({ length: 2 * rows }, (_, i) => (i % 2 ? 30 : chosen[i >> 1]!)),
    };
    feeds['decisions.lift'] = {
      dtype: 'f32',
      shape: [rows, 2],
      data: Float32Array.from({ length: 2 * rows }, (_, i) => ((i >> 1) % 2) * 1e9),
    };
    feeds['decisions.listed'] = {
      dtype: 'f32',
      shape: [rows, 1],
      data: Float32Array.from({ length: rows }, (_, r) => r % 2),
    };
    feeds['decisions.sampled'] = {
      dtype: 'f32',
      shape: [1, config.vocabSize],
      data: new Float32Array(config.vocabSize),
    };
  }
  if (objective !== 'preference') return feeds;
  const sign = Float32Array.from({ length: 2 * rows }, (_, i) => (i % 3) - 1);
  return {
    ...feeds,
    'pairs.sign': { dtype: 'f32', shape: [2, rows], data: sign },
    'pairs.reference': { dtype: 'f32', shape: [2], data: Float32Array.of(0.3, -0.7) },
    ...scalarFeeds('loss', { beta: 0.2, pairs: 2 }),
  };
}

/** Largest difference of any output from what it should be, relative to the output's norm. */
async function expectSame(plain: Program, layered: Program, feeds: Feeds, bound = 1e-5): Promise<void> {
  const right = await plain.run(feeds);
  const ours = await layered.run(feeds);
  expect(Object.keys(ours).sort()).toEqual(Object.keys(right).sort());
  for (const [name, { data, shape }] of Object.entries(right)) {
    expect(ours[name]!.shape, name).toEqual(shape);
    let [square, worst] = [0, 0];
    for (let i = 0; i < data.length; i++) {
      square += data[i]! ** 2;
      worst = Math.max(worst, Math.abs(data[i]! - ours[name]!.data[i]!));
    }
    expect(worst / (Math.sqrt(square) + 1e-7), name).toBeLessThan(bound);
  }
  expect(layered.outputs.map(({ name }) => name).sort()).toEqual(Object.keys(right).sort());
  // A replica is sent what its program names. A last layer reads more of the prompts than the whole graph does.
  const names = layered.inputs.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  expect(names).toEqual(expect.arrayContaining(plain.inputs.map(({ name }) => name)));
}

const objectives = ['policy', 'likelihood', 'preference'] as const;

describe.each([
  ['plain, tokens', plainConfig, 'tokens'],
  ['options, tokens', optionsConfig, 'tokens'],
  ['options, choice', optionsConfig, 'choice'],
  ['tied', { ...plainConfig, tieEmbeddings: true, valueHead: false }, 'tokens'],
  ['unlike layers', { ...plainConfig, layers: 4, unrotatedLayers: [1, 3], qkNorm: true }, 'tokens'],
  ['windows, two rotary bases', slidingConfig, 'tokens'],
  ['one layer', { ...plainConfig, layers: 1 }, 'tokens'],
] as const)('every weight trained, %s', (_, config, decoder) => {
  const weights = weightFeeds(config, randomParams(config, 2));
  it.each(objectives.flatMap((objective) => [true, false].map((recompute) => [objective, recompute] as const)))(
    '%s, recompute %s: loss and gradients are those of the whole graph',
    async (objective, recompute) => {
      const options = { decoder, objective, recompute, masked: decoder === 'choice' } as const;
      const plain = await engine.compile(gradientGraph(config, options));
      const layered = await compileLayeredGradients(engine, config, options);
      const feeds = { ...weights, ...feedsOf(config, { ...options, masked: false }) };
      await expectSame(plain, layered, feeds);
      await expectSame(plain, layered, feeds); // nothing is left over from the first time
    },
  );

  it('measures as the whole graph does', async () => {
    const decoding = { decoder, masked: decoder === 'choice' };
    const plain = await engine.compile(logprobsGraph(config, decoding));
    const layered = await compileLayeredLogprobs(engine, config, decoding);
    await expectSame(plain, layered, {
      ...weights,
      ...feedsOf(config, { ...decoding, objective: 'policy', masked: false }),
    });
  });
});

describe.each(['none', 'int8', 'int4'] as const)('adapters over a frozen base, %s', (quantize: Quantize) => {
  it.each([
    ['policy', { masked: false }],
    ['policy', { masked: true, chunks: 3, recompute: true }],
    ['likelihood', { masked: false, chunks: 2 }],
    ['preference', { masked: false, recompute: true }],
  ] as const)('%s, %j', async (objective, decoding) => {
    const adapter = { rank: 4, alpha: 8, targets: ALL_PROJECTIONS };
    const config = { ...freezeAs(openModel(folder), quantize, join(folder, 'cache')), adapter };
    const options = { decoder: 'tokens', objective, ...decoding } as const;
    const reference = await openEngine({ name: 'reference' });
    const plain = await reference.compile(gradientGraph(config, options));
    const layered = await compileLayeredGradients(engine, config, options);
    const weights = weightFeeds(config, randomParams(config, 3));
    // The reference computes in float64.
    await expectSame(plain, layered, { ...weights, ...feedsOf(config, options) }, 2e-5);
    const measured = await reference.compile(logprobsGraph(config, options));
    await expectSame(measured, await compileLayeredLogprobs(engine, config, options), {
      ...weights,
      ...feedsOf(config, options),
    });
  });
});

describe.each([1, 2])('adapters in the top layers only, %d of 3', (topLayers) => {
  it.each(['policy', 'likelihood', 'preference'] as const)(
    '%s: as the whole graph, and nothing below',
    async (objective) => {
      const adapter = { rank: 4, alpha: 8, targets: ALL_PROJECTIONS, topLayers };
      const config = { ...freezeAs(openModel(folder), 'none', join(folder, 'cache')), adapter };
      const names = parameterSpecs(config).map(({ name }) => Number(/layers\.(\d)/.exec(name)![1]));
      expect([...new Set(names)]).toEqual([0, 1, 2].slice(3 - topLayers));
      const options = { decoder: 'tokens', objective, masked: false } as const;
      const feeds = { ...weightFeeds(config, randomParams(config, 3)), ...feedsOf(config, options) };
      await expectSame(
        await engine.compile(gradientGraph(config, options)),
        await compileLayeredGradients(engine, config, options),
        feeds,
      );
      await expectSame(
        await engine.compile(logprobsGraph(config, options)),
        await compileLayeredLogprobs(engine, config, options),
        feeds,
      );
    },
  );
});

it('more layers with adapters than there are is a mistake', () => {
  const adapter = { rank: 4, alpha: 8, targets: ALL_PROJECTIONS, topLayers: 4 };
  expect(() => parameterSpecs({ ...openModel(folder).config, adapter })).toThrow(
    "lora.topLayers: expected a whole number from 1 to 3, the model's layers; got 4",
  );
});

it('AdamW parameter by parameter is AdamW of all', async () => {
  const config = plainConfig;
  const params = randomParams(config, 2);
  const feeds: Feeds = {
    ...weightFeeds(config, params),
    ...scalarFeeds('adam', { lr: 1e-2, maxGradNorm: 0.5, correction1: 0.3, correction2: 0.1 }),
  };
  for (const [kind, seed] of [
    ['d/', 4],
    ['m/', 5],
    ['v/', 6],
  ] as const) {
    const { values } = randomParams(config, seed);
    for (const { name, shape } of parameterSpecs(config)) {
      feeds[kind + name] = { dtype: 'f32', shape, data: kind === 'v/' ? values[name]!.map(Math.abs) : values[name]! };
    }
  }
  for (const weightDecay of [0, 0.1]) {
    const options = { ...defaultAdamW, weightDecay };
    await expectSame(
      await engine.compile(adamWGraph(config, options)),
      await compileFlatAdamW(engine, config, options),
      feeds,
    );
  }
});

it('models of many layers run layer by layer, small ones in one graph', async () => {
  expect([3, 30].map((layers) => runsByLayers(engine, { ...plainConfig, layers }))).toEqual([false, true]);
  const config = { ...plainConfig, layers: 12 };
  const options = { decoder: 'tokens', objective: 'policy', masked: false } as const;
  const feeds = { ...weightFeeds(config, randomParams(config, 2)), ...feedsOf(config, options) };
  await expectSame(
    await engine.compile(gradientGraph(config, options)),
    await compileGradients(engine, config, options),
    feeds,
  );
});
