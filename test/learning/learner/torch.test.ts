/**
 * One whole update of every algorithm against an independent computation in PyTorch (test/support/torch-update.py):
 * loss, gradients, moments and new weights. Where there is no PyTorch, its recorded results stand in for it
 * (test/fixtures/torch-updates.json; recorded anew by LONGPLAY_RECORD=1).
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Engine, HostTensor, RunTensor } from '../../../src/compute/engine/engine.ts';
import { bindFeeds, feedsOf } from '../../../src/compute/engine/feeds.ts';
import { openEngine } from '../../../src/compute/engine/open.ts';
import { interpret } from '../../../src/compute/engine/reference.ts';
import { type ModelConfig, smallModel } from '../../../src/compute/model/config.ts';
import { initialParams, type ParamSet, parameterSpecs } from '../../../src/compute/model/parameters.ts';
import { Rng } from '../../../src/core/rng.ts';
import type { Group } from '../../../src/core/trajectory.ts';
import { Trainer, type TrainerOptions } from '../../../src/learning/learner/trainer.ts';
import { finalGroup, trainUnits } from '../../../src/learning/learner/training-batch.ts';
import { trainOnPairs } from '../../../src/run/offline/preference.ts';
import { ViewCodec } from '../../../src/text/reading/view-codec.ts';
import { toyGroups } from '../../support/toy-groups.ts';
import { view } from '../../support/toy-worlds.ts';

const long = process.env.LONGPLAY_LONG === '1';
const record = process.env.LONGPLAY_RECORD === '1';
const fixtures = new URL('../../fixtures/torch-updates.json', import.meta.url);
const script = new URL('../../support/torch-update.py', import.meta.url).pathname;
const python = ['python3', '/usr/bin/python3'].find((bin) => spawnSync(bin, ['-c', 'import torch']).status === 0);
if (!python) console.warn('no PyTorch here: updates are compared with its recorded results only');

const codec = new ViewCodec(view);
const common = { gamma: 0.9, truncation: 'terminal', aggregation: { type: 'token-mean' } } as const;
const base: TrainerOptions = {
  model: modelOf('choice', true),
  codec,
  decoder: 'choice',
  estimator: { ...common, algorithm: 'grpo', std: true, credit: 'trajectory' },
  epochs: 2,
  minibatches: 1,
  coefficients: { clipLow: 0.2, clipHigh: 0.2, entropyCoef: 0.01, valueCoef: 0.5, valueClip: 0.2 },
  offPolicy: { type: 'ratio' },
  learningRate: { peak: 0.05, warmupSteps: 0, decay: 'none', final: 1 },
  maxGradNorm: 0.5,
  adamW: { beta1: 0.9, beta2: 0.98, epsilon: 1e-8, weightDecay: 0.1 },
  filterGroups: false,
  seed: 1,
};
const ppo = { algorithm: 'ppo', lambda: 0.8, whiten: true } as const;
const kl = (where: 'loss' | 'reward', estimator: 'k1' | 'k2' | 'k3') =>
  ({ in: where, estimator, control: { type: 'fixed', coefficient: 0.3 } }) as const;
const sequence = { type: 'sequence-mean' } as const;

const cases: Readonly<Record<string, Partial<TrainerOptions>>> = {
  grpo: {},
  'grpo by turn, dapo clip': {
    estimator: { ...common, algorithm: 'grpo', std: false, credit: 'turn' },
    coefficients: { ...base.coefficients, clipHigh: 0.28 },
  },
  dr_grpo: {
    estimator: { ...common, algorithm: 'dr_grpo', credit: 'trajectory', aggregation: { type: 'constant', tokens: 6 } },
  },
  rloo: {
    estimator: { ...common, algorithm: 'rloo', credit: 'trajectory', truncation: 'mask', aggregation: sequence },
  },
  reinforce_pp: { estimator: { ...common, algorithm: 'reinforce_pp', baseline: 'group' } },
  ppo: { estimator: { ...common, ...ppo, truncation: 'bootstrap' } },
  gigpo: { estimator: { ...common, algorithm: 'gigpo', std: true, stepWeight: 0.7 } },
  agent_evol: { estimator: { ...common, algorithm: 'agent_evol', threshold: 0.05 } },
  'k1 in the reward': { kl: kl('reward', 'k1') },
  'k2 in the loss': { kl: kl('loss', 'k2') },
  'k3 in the loss, critic, tokens': {
    decoder: 'tokens',
    kl: kl('loss', 'k3'),
    estimator: { ...common, ...ppo, aggregation: sequence },
  },
  'older decisions, truncated importance': { offPolicy: { type: 'truncated', cap: 1.02, per: 'decision' } },
  'older tokens, truncated importance': {
    decoder: 'tokens',
    offPolicy: { type: 'truncated', cap: 1.02, per: 'decision' },
  },
  'preference pairs': {},
};

function modelOf(decoder: 'choice' | 'tokens', valueHead: boolean): ModelConfig {
  const size = { hiddenSize: 8, layers: 2, heads: 2, kvHeads: 1, maxPositions: 64 };
  return smallModel(codec.vocabSize, { ...size, choiceHead: decoder === 'choice', valueHead });
}

/** The reference interpreter with float64 all the way: what a program gives out is not rounded to single precision. */
function float64Engine(): Engine {
  return {
    name: 'reference',
    device: 'cpu',
    threads: 1,
    reason: 'test',
    dispose: async () => {},
    async compile(graph) {
      const inputs = feedsOf(graph);
      return {
        inputs,
        outputs: graph.outputs,
        dispose: async () => {},
        async run(feeds) {
          const values = new Map(
            inputs.map(({ name }) => {
              const { shape, data } = feeds[name] as HostTensor;
              return [name, { shape, data: Float64Array.from(data) }];
            }),
          );
          const results = interpret(graph, values, bindFeeds(inputs, feeds));
          return Object.fromEntries(
            graph.outputs.map(({ name, dtype }) => {
              const { shape, data } = results.get(name)!;
              return [name, { dtype, shape, data } as unknown as RunTensor];
            }),
          );
        },
      };
    },
  };
}

interface Updated {
  readonly steps: readonly { readonly loss: number; readonly gradNorm: number }[];
  readonly weights: Columns;
  readonly m: Columns;
  readonly v: Columns;
}
type Columns = Readonly<Record<string, ArrayLike<number>>>;

function optionsOf(name: string): TrainerOptions {
  const options = { ...base, ...cases[name]! };
  const critic = options.estimator.algorithm === 'ppo';
  return { ...options, model: modelOf(options.decoder, critic) };
}

function groupsOf({ decoder }: TrainerOptions, name: string): Group[] {
  const pairs = name === 'preference pairs';
  const made = { world: 'chain', codec, groups: 3, size: pairs ? 2 : 4, horizon: 5, seed: 11 } as const;
  return toyGroups({ ...made, decoder });
}

/** Weights drawn larger than at the start of a run, so that no part of the model is near 0. */
function params(model: ModelConfig, seed: number, version: number): ParamSet {
  const { values } = initialParams(model, seed);
  const rng = Rng.fromSeed(seed);
  const moved = Object.entries(values).map(([key, v]) => [key, v.map((w) => w + 0.2 * rng.normal())]);
  return { version, values: Object.fromEntries(moved) };
}

async function ours(name: string, engine: Engine): Promise<Updated> {
  const options = optionsOf(name);
  const groups = groupsOf(options, name);
  const version = name.startsWith('older') ? 1 : 0;
  const start = params(options.model, 1, version);
  if (name === 'preference pairs') {
    const pairs = groups.map(({ trajectories: [chosen, rejected] }) => ({ chosen: chosen!, rejected: rejected! }));
    let loss = Number.NaN;
    const result = await trainOnPairs(
      engine,
      { ...options, masked: true, beta: 0.5, epochs: 1, pairsPerStep: 3 },
      start,
      pairs,
      (epoch) => {
        loss = epoch.loss;
      },
    );
    if ('broken' in result) throw new Error(result.broken.message);
    const { m, v } = result.moments;
    return { steps: [{ loss, gradNorm: Number.NaN }], weights: result.params.values, m, v };
  }
  const reference = options.kl ? { reference: params(options.model, 2, 0) } : {};
  const trainer = await Trainer.create(engine, options, { params: start, ...reference });
  const { stats, broken } = await trainer.update(groups, 0);
  expect(broken).toBeUndefined();
  const { m, v } = trainer.moments;
  // A trainer reports means over its steps.
  return { steps: [{ loss: stats.loss!, gradNorm: stats.gradNorm! }], weights: trainer.params.values, m, v };
}

/** The same update, described for the script: episodes as token ids, nothing estimated. */
function jobOf(name: string): unknown {
  const options = optionsOf(name);
  const { model, estimator, coefficients, kl, offPolicy, adamW, maxGradNorm } = options;
  const groups = groupsOf(options, name);
  const older = name.startsWith('older');
  const tensors = ({ values }: ParamSet) =>
    Object.fromEntries(parameterSpecs(model).map(({ name: key, shape }) => [key, { shape, data: [...values[key]!] }]));
  return {
    model,
    params: tensors(params(model, 1, 0)),
    ...(kl ? { reference: tensors(params(model, 2, 0)) } : {}),
    decays: Object.fromEntries(parameterSpecs(model).map((spec) => [spec.name, spec.decay])),
    optimizer: { ...adamW, maxGradNorm, lr: options.learningRate.peak },
    options: {
      ...coefficients,
      estimator,
      epochs: options.epochs,
      objective:
        name === 'preference pairs' ? 'preference' : estimator.algorithm === 'agent_evol' ? 'likelihood' : 'policy',
      beta: 0.5,
      truncated: older && offPolicy.type === 'truncated',
      cap: offPolicy.type === 'truncated' ? offPolicy.cap : 0,
      ...(kl ? { kl: { ...kl, coefficient: kl.control.coefficient } } : {}),
    },
    groups: groups.map(({ trajectories }) => {
      const [unit] = trainUnits(codec, trajectories, 0)[0]!;
      const { prompt, candidates, members } = unit!;
      return {
        prompt: [...prompt.tokens],
        focus: [...prompt.focus],
        actions: candidates.map(({ read }) => [...codec.spell(read)]),
        mentions: candidates.map(({ action }) => prompt.mentions(action)),
        members: members.map(({ tokens, decisions }, m) => {
          const { turns, end } = trajectories[m]!;
          const cut = finalGroup(codec, trajectories[m]!, m);
          return {
            tokens,
            decisions: decisions.map((one) => ({
              ...one,
              allowed: one.allowed ?? Array.from({ length: codec.vocabSize }, (_, id) => id),
            })),
            rewards: turns.map(({ reward }) => reward),
            values: turns.map(({ decision }) => decision!.value),
            lengths: turns.map(({ decision }) => (decision!.kind === 'tokens' ? decision!.tokens.length : 1)),
            observations: turns.map(({ observation }) => observation),
            end,
            ...(model.valueHead ? { final: { prompt: [...cut.prompt.tokens], tokens: cut.members[0]!.tokens } } : {}),
          };
        }),
      };
    }),
  };
}

function theirs(name: string): Updated {
  const { status, stdout, stderr } = spawnSync(python!, [script], {
    input: JSON.stringify(jobOf(name)),
    maxBuffer: 1 << 28,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`torch-update.py: ${stderr}`);
  const { steps, ...rest } = JSON.parse(stdout) as Updated;
  const mean = (of: 'loss' | 'gradNorm') => steps.reduce((sum, step) => sum + step[of], 0) / steps.length;
  return { ...rest, steps: [{ loss: mean('loss'), gradNorm: mean('gradNorm') }] };
}

/** A few numbers that depend on every element: per column of each parameter, its product with a fixed random vector. */
function digest({ steps, weights, m, v }: Updated): Record<string, number> {
  const out: Record<string, number> = { loss: steps[0]!.loss };
  for (const [kind, columns] of Object.entries({ weights, m, v })) {
    for (const key of Object.keys(columns).sort()) {
      const rng = Rng.fromSeed(key.length);
      let sum = 0;
      for (const value of Array.from(columns[key]!)) sum += value * (rng.float() - 0.5);
      out[`${kind} ${key}`] = sum;
    }
  }
  return out;
}

function expectClose(got: Columns, want: Columns, tolerance: number, what: string): void {
  expect(Object.keys(got).sort()).toEqual(Object.keys(want).sort());
  for (const key of Object.keys(want)) {
    let worst = 0;
    for (let i = 0; i < want[key]!.length; i++) worst = Math.max(worst, Math.abs(got[key]![i]! - want[key]![i]!));
    expect(worst, `${what} ${key}`).toBeLessThan(tolerance);
  }
}

describe('a whole update', () => {
  const recorded: Record<string, Record<string, number>> = existsSync(fixtures)
    ? JSON.parse(readFileSync(fixtures, 'utf8'))
    : {};

  for (const [i, name] of Object.keys(cases).entries()) {
    it(`equals PyTorch's in float64: ${name}`, async () => {
      const got = await ours(name, float64Engine());
      if (python && (long || record || i % 5 === 0)) {
        const want = theirs(name);
        expect(got.steps[0]!.loss).toBeCloseTo(want.steps[0]!.loss, 9);
        if (name !== 'preference pairs') expect(got.steps[0]!.gradNorm).toBeCloseTo(want.steps[0]!.gradNorm, 9);
        for (const part of ['m', 'v', 'weights'] as const) expectClose(got[part], want[part], 1e-9, part);
        if (record) recorded[name] = digest(want);
      }
      const mine = digest(got);
      expect(Object.keys(mine)).toEqual(Object.keys(recorded[name]!));
      for (const [key, value] of Object.entries(recorded[name]!)) expect(mine[key], key).toBeCloseTo(value, 8);
      if (record) writeFileSync(fixtures, `${JSON.stringify(recorded, null, 1)}\n`);
    }, 120_000);
  }

  it('has gradients within 1e-5 of their norm in single precision', async () => {
    for (const name of long ? Object.keys(cases) : ['ppo', 'k3 in the loss, critic, tokens', 'preference pairs']) {
      const one = { ...cases[name], epochs: 1 };
      const [wide, narrow] = [
        await step(name, one, float64Engine()),
        await step(name, one, await openEngine({ name: 'auto', threads: 1 })),
      ];
      let [difference, norm] = [0, 0];
      for (const [key, values] of Object.entries(wide)) {
        for (let i = 0; i < values.length; i++) {
          difference += (values[i]! - narrow[key]![i]!) ** 2;
          norm += values[i]! ** 2;
        }
      }
      expect(Math.sqrt(difference / norm), name).toBeLessThan(1e-5);
    }
  }, 120_000);
});

/** First moments after a single step from zero: the gradient, scaled. */
async function step(name: string, change: Partial<TrainerOptions>, engine: Engine): Promise<Columns> {
  if (name === 'preference pairs') return (await ours(name, engine)).m;
  const options = { ...optionsOf(name), ...change };
  const trainer = await Trainer.create(
    engine,
    { ...options, model: optionsOf(name).model },
    {
      params: params(options.model, 1, 0),
      ...(options.kl ? { reference: params(options.model, 2, 0) } : {}),
    },
  );
  await trainer.update(groupsOf(options, name), 0);
  return trainer.moments.m;
}
