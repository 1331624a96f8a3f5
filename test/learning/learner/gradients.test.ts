/**
 * The gradient of every loss that is trained on, each KL estimator and the preference loss included, against central
 * differences of its value, both through the float64 reference engine. All of a model's parameters are moved at once
 * along random directions.
 */
import { describe, expect, it } from 'vitest';
import type { HostTensor } from '../../../src/compute/engine/engine.ts';
import { bindFeeds } from '../../../src/compute/engine/feeds.ts';
import { interpret } from '../../../src/compute/engine/reference.ts';
import { smallModel } from '../../../src/compute/model/config.ts';
import { logSigmoid } from '../../../src/compute/model/loss.ts';
import { initialParams, parameterSpecs } from '../../../src/compute/model/parameters.ts';
import { type DecoderKind, gradientGraph } from '../../../src/compute/model/programs.ts';
import { gradients } from '../../../src/compute/tensor/gradients.ts';
import { defineGraph } from '../../../src/compute/tensor/graph.ts';
import { reduceSum } from '../../../src/compute/tensor/ops.ts';
import { input } from '../../../src/compute/tensor/tensor.ts';
import { Rng } from '../../../src/core/rng.ts';
import {
  type DecisionFeed,
  decisionsOf,
  trainingFeeds,
  trainUnits,
} from '../../../src/learning/learner/training-batch.ts';
import { scalars, weightFeeds } from '../../../src/learning/learner/weights.ts';
import { ViewCodec } from '../../../src/text/reading/view-codec.ts';
import { toyGroups } from '../../support/toy-groups.ts';
import { view } from '../../support/toy-worlds.ts';

const codec = new ViewCodec(view);
const none = { clipLow: 0.2, clipHigh: 0.28, entropyCoef: 0, valueCoef: 0, valueClip: 0.3, klCoef1: 0, klCoef2: 0 };

/** Loss coefficients by name; `clipped` has ratios on both sides of its clips, the others are far inside. */
const policies = {
  'clipped surrogate': { coefficients: { ...none, klCoef3: 0 }, away: 0.6 },
  'unclipped surrogate': { coefficients: { ...none, clipLow: 50, clipHigh: 50, klCoef3: 0 }, away: 0.3 },
  entropy: { coefficients: { ...none, entropyCoef: 0.7, klCoef3: 0 }, away: 0.3 },
  'value with its clip': { coefficients: { ...none, valueCoef: 0.5, klCoef3: 0 }, away: 0.3 },
  k1: { coefficients: { ...none, klCoef1: 0.4, klCoef3: 0 }, away: 0.3 },
  k2: { coefficients: { ...none, klCoef2: 0.4, klCoef3: 0 }, away: 0.3 },
  k3: { coefficients: { ...none, klCoef3: 0.4 }, away: 0.3 },
} as const;

function setUp(decoder: DecoderKind, seed: number) {
  const size = { hiddenSize: 8, layers: 1, maxPositions: 64, valueHead: true };
  const model = smallModel(codec.vocabSize, { ...size, choiceHead: decoder === 'choice' });
  const made = { world: 'chain', codec, decoder, groups: 2, size: 2, horizon: 4, seed } as const;
  const units = toyGroups(made).flatMap(({ trajectories }, g) => trainUnits(codec, trajectories, 2 * g));
  const rng = Rng.fromSeed(seed);
  const { values } = initialParams(model, seed);
  const moved = Object.entries(values).map(([name, v]) => [name, v.map((w) => w + 0.2 * rng.normal())] as const);
  const params = { version: 0, values: Object.fromEntries(moved) };
  return { model, groups: units.flat(), params, rng };
}

function expectSlopes(
  graph: ReturnType<typeof gradientGraph>,
  feeds: Record<string, HostTensor>,
  weights: readonly string[],
  rng: Rng,
): void {
  const values = new Map(
    Object.entries(feeds).map(([name, { shape, data }]) => [name, { shape, data: Float64Array.from(data) }]),
  );
  const all = [...graph.inputs, ...graph.parameters];
  const used = Object.fromEntries(all.map(({ name }) => [name, feeds[name]!]));
  const run = (at: typeof values) => interpret(graph, at, bindFeeds(all, used));
  const results = run(values);
  for (let direction = 0; direction < 3; direction++) {
    const along = new Map(weights.map((name) => [name, values.get(name)!.data.map(() => rng.normal())]));
    const lossAt = (h: number) => {
      const moved = new Map(values);
      for (const [name, d] of along) {
        const { shape, data } = values.get(name)!;
        moved.set(name, { shape, data: data.map((v, i) => v + h * d[i]!) });
      }
      return run(moved).get('loss')!.data[0]!;
    };
    const slope = (lossAt(1e-6) - lossAt(-1e-6)) / 2e-6;
    let gradient = 0;
    for (const [name, d] of along) {
      const g = results.get(`d/${name}`)!.data;
      for (let i = 0; i < d.length; i++) gradient += g[i]! * d[i]!;
    }
    expect(Math.abs(slope)).toBeGreaterThan(1e-5); // something to compare
    expect(Math.abs(gradient - slope)).toBeLessThanOrEqual(1e-6 * (1 + Math.abs(slope)));
  }
}

it('log sigmoid has its slope everywhere, also at 0, where preference training begins', () => {
  const xs = [-90, -3, -1e-9, 0, 1e-9, 0.7, 90];
  const x = input('x', [xs.length]);
  const y = logSigmoid(x);
  const graph = defineGraph({ y, slope: gradients(reduceSum(y, [0]), [x])[0]! });
  const feeds = new Map([['x', { shape: [xs.length], data: Float64Array.from(xs) }]]);
  const results = interpret(graph, feeds, new Map());
  for (const [i, at] of xs.entries()) {
    expect(results.get('y')!.data[i]).toBeCloseTo(at < -30 ? at : -Math.log1p(Math.exp(-at)), 12);
    expect(results.get('slope')!.data[i]).toBeCloseTo(1 / (1 + Math.exp(at)), 12);
  }
});

describe.each(['choice', 'tokens'] as const)('gradients, %s decoder', (decoder) => {
  for (const [name, { coefficients, away }] of Object.entries(policies)) {
    it(`policy loss: ${name}`, () => {
      const { model, groups, params, rng } = setUp(decoder, 5);
      const count = decisionsOf(groups).length;
      const feed = (logprob: number, value: number): DecisionFeed => ({
        oldLogprob: logprob + away * rng.normal(),
        referenceLogprob: logprob + 0.5 * rng.normal(),
        advantage: rng.normal(),
        weight: 1 / count,
        return: rng.normal(),
        oldValue: value,
        valueWeight: 1 / count,
      });
      const feeds = {
        ...trainingFeeds(model, codec, { decoder }, groups, ({ logprob, value }) => feed(logprob, value)).feeds,
        ...scalars('loss', coefficients),
        ...weightFeeds(model, params),
      };
      const weights = parameterSpecs(model).map((spec) => spec.name);
      expectSlopes(gradientGraph(model, { decoder, objective: 'policy' }), feeds, weights, rng);
    });
  }

  it('likelihood', () => {
    const { model, groups, params, rng } = setUp(decoder, 6);
    const count = decisionsOf(groups).length;
    const zero = { oldLogprob: 0, referenceLogprob: 0, advantage: 0, return: 0, oldValue: 0, valueWeight: 0 };
    const feeds = {
      ...trainingFeeds(model, codec, { decoder }, groups, (_, at) => ({ ...zero, weight: (at % 3) / count })).feeds,
      ...weightFeeds(model, params),
    };
    const weights = parameterSpecs(model).map((spec) => spec.name);
    expectSlopes(gradientGraph(model, { decoder, objective: 'likelihood' }), feeds, weights, rng);
  });

  it('preference', () => {
    const { model, groups, params, rng } = setUp(decoder, 7);
    const { feeds, rows } = trainingFeeds(model, codec, { decoder }, groups);
    const width = feeds['decisions.chosen']!.data.length;
    const pairs = groups.length; // each group of two is a pair
    const sign = new Float32Array(pairs * width);
    decisionsOf(groups).forEach(({ trajectory }, at) => {
      sign[Math.floor(trajectory / 2) * width + rows[at]!] = trajectory % 2 === 0 ? 1 : -1;
    });
    const all = {
      ...feeds,
      'pairs.sign': { dtype: 'f32', shape: [pairs, width], data: sign } as const,
      'pairs.reference': { dtype: 'f32', shape: [pairs], data: Float32Array.of(0.4, -0.7) } as const,
      ...scalars('loss', { beta: 0.5, pairs: 5 }),
      ...weightFeeds(model, params),
    };
    const weights = parameterSpecs(model).map((spec) => spec.name);
    expectSlopes(gradientGraph(model, { decoder, objective: 'preference' }), all, weights, rng);
  });
});
