/**
 * Each policy loss in a whole update: native engine against the reference engine, one pass against many, and where its answer
 * is known.
 */
import { describe, expect, it } from 'vitest';
import type { PolicyLossConfig } from '../../../src/algo/policy-loss.ts';
import { policyLossSchema } from '../../../src/algo/policy-loss.ts';
import { openEngine } from '../../../src/compute/engine/open.ts';
import { initialParams } from '../../../src/compute/model/parameters.ts';
import type { DecoderKind } from '../../../src/compute/model/programs.ts';
import { microBatches } from '../../../src/learning/learner/micro-batches.ts';
import { feedOf, type Prepared } from '../../../src/learning/learner/prepare.ts';
import { Trainer, type TrainerOptions } from '../../../src/learning/learner/trainer.ts';
import { decisionsOf, type TrainDecision, type TrainGroup } from '../../../src/learning/learner/training-batch.ts';
import { ViewCodec } from '../../../src/text/reading/view-codec.ts';
import { gradientDistance } from '../../support/gradient-distance.ts';
import { toyGroups } from '../../support/toy-groups.ts';
import { view } from '../../support/toy-worlds.ts';
import { trainerOptions } from '../../support/trainer-options.ts';

const codec = new ViewCodec(view);
const losses: readonly PolicyLossConfig[] = [
  { type: 'ppo_clip' },
  { type: 'gspo', clipLow: 0.01, clipHigh: 0.02 },
  { type: 'cispo', clipLow: 0.02, clipHigh: 0.02 },
  { type: 'sapo', tauPositive: 1, tauNegative: 1.05 },
  { type: 'dppo_tv', deltaLow: 0.03, deltaHigh: 0.03 },
  { type: 'dppo_kl', deltaLow: 2e-3, deltaHigh: 2e-3 },
  { type: 'unclipped' },
];

async function update(
  engineName: 'reference' | 'onnxruntime-node',
  decoder: DecoderKind,
  change: Partial<TrainerOptions>,
) {
  const engine = await openEngine({ name: engineName, threads: 1 });
  const options = trainerOptions({
    codec,
    decoder,
    estimator: {
      algorithm: 'grpo',
      std: true,
      credit: 'turn',
      gamma: 0.9,
      truncation: 'terminal',
      aggregation: { type: 'token-mean' },
    },
    epochs: 2,
    coefficients: { clipLow: 0.02, clipHigh: 0.02, entropyCoef: 0, valueCoef: 0, valueClip: 1 },
    learningRate: { peak: 0.05, warmupSteps: 0, decay: 'none', final: 1 },
    ...change,
  });
  const trainer = await Trainer.create(engine, options, { params: initialParams(options.model, 1) });
  const groups = toyGroups({ world: 'chain', codec, decoder, groups: 3, size: 4, horizon: 6, seed: 7, version: 0 });
  const result = await trainer.update(groups, 0);
  expect(result.broken).toBeUndefined();
  const gradient = trainer.moments.m;
  await trainer.dispose();
  await engine.dispose();
  return { stats: result.stats, gradient };
}

describe.each(['choice', 'tokens'] as const)('%s decoder', (decoder) => {
  it.each(losses)('%o: one pass or many, native or reference', { timeout: 60_000 }, async (policyLoss) => {
    const want = await update('reference', decoder, { policyLoss });
    for (const passes of [{}, { maxTokens: 40 }]) {
      const got = await update('onnxruntime-node', decoder, { policyLoss, ...passes });
      expect(gradientDistance(got.gradient, want.gradient)).toBeLessThan(1e-3);
      expect(got.stats.policyLoss).toBeCloseTo(want.stats.policyLoss!, 4);
    }
    const plain = await update('reference', decoder, {});
    if (policyLoss.type === 'ppo_clip') expect(gradientDistance(want.gradient, plain.gradient)).toBe(0);
    else expect(gradientDistance(want.gradient, plain.gradient)).toBeGreaterThan(1e-3);
  });
});

it('an estimator that imitates has no policy loss', async () => {
  const estimator = {
    algorithm: 'agent_evol',
    threshold: 0,
    gamma: 1,
    truncation: 'terminal',
    aggregation: { type: 'token-mean' },
  } as const;
  await expect(update('reference', 'choice', { estimator, policyLoss: { type: 'unclipped' } })).rejects.toThrow(
    'learner.policyLoss: agent_evol imitates',
  );
});

it('has a case for every type', () => {
  const types = policyLossSchema.options.map(({ shape }) => shape.type.value);
  expect([...new Set(losses.map(({ type }) => type))].sort()).toEqual([...types].sort());
});

it('a sequence counts the decisions that are trained on, and no others', () => {
  const decisions = [
    [0, 0, 0],
    [0, 0, 1],
    [0, 1, 0],
    [0, 2, 0],
    [1, 0, 0],
  ].map(([trajectory, turn, token]) => ({ trajectory, turn, token, at: 0, value: 0 }) as TrainDecision);
  const prompt = { tokens: new Int32Array(1), shared: true, focus: new Set<number>(), mentions: () => [] };
  const groups = [{ prompt, candidates: [], members: [{ tokens: [1], decisions }] }];
  const estimates = [[2, 1, 1], [1]].map((tokens) => ({
    advantages: new Float64Array(3),
    returns: new Float64Array(3),
    tokens: Int32Array.from(tokens),
    trained: Uint8Array.of(1, 0, 1).slice(0, tokens.length), // not turn 1 of the first
  })) as unknown as Prepared['estimates'];
  const facts = new Map(decisions.map((one) => [one, { old: 0, reference: 0, importance: 1 }]));
  const prepared = { estimates, played: 2, facts, units: [], imitated: [], stats: {} };
  const estimator = { aggregation: { type: 'token-mean' } };
  const columns = (policyLoss: PolicyLossConfig) => {
    const feed = feedOf({ estimator, policyLoss } as unknown as TrainerOptions, groups, prepared)!;
    return decisions.map((one) => [feed(one).sequence, feed(one).sequenceShare]);
  };
  const bounds = { clipLow: 0, clipHigh: 0 };
  expect(columns({ type: 'gspo', ...bounds })).toEqual([
    [0, 1 / 3],
    [0, 1 / 3],
    [0, 0],
    [0, 1 / 3],
    [1, 1],
  ]);
  expect(columns({ type: 'sapo', tauPositive: 1, tauNegative: 1 })[0]).toEqual([undefined, undefined]);
});

it('passes of whole trajectories hold each decision once, and no trajectory in two of them', () => {
  const group = (members: readonly (readonly [trajectory: number, tokens: number])[]): TrainGroup => ({
    prompt: { tokens: new Int32Array(5), shared: true, focus: new Set<number>(), mentions: () => [] },
    candidates: [],
    members: members.map(([trajectory, length]) => ({
      tokens: new Array<number>(length).fill(1),
      decisions: [{ trajectory, turn: 0, token: 0, at: 0 } as unknown as TrainDecision],
    })),
  });
  // Trajectories 0 and 3 were rendered anew: they go on under prompts of their own.
  const groups = [
    group([
      [0, 9],
      [1, 4],
      [2, 6],
    ]),
    group([[0, 7]]),
    group([[3, 3]]),
    group([[3, 20]]),
    group([[3, 2]]),
  ];
  for (const maxTokens of [1, 20, 45, 1000]) {
    const passes = microBatches(groups, maxTokens, true);
    expect(passes.flatMap((pass) => decisionsOf(pass))).toHaveLength(7);
    const homes = passes.map((pass) => new Set(decisionsOf(pass).map(({ trajectory }) => trajectory)));
    for (const trajectory of [0, 1, 2, 3]) expect(homes.filter((home) => home.has(trajectory))).toHaveLength(1);
  }
  expect(microBatches(groups, 20).length).toBeGreaterThan(2);
});
