/**
 * Distillation in whole updates: what a teacher scores, where its scores land, and that a student comes to play as its
 * teacher does, without a reward.
 */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openEngine } from '../../../src/compute/engine/open.ts';
import { type ModelConfig, smallModel } from '../../../src/compute/model/config.ts';
import { initialParams, type ParamSet } from '../../../src/compute/model/parameters.ts';
import { type DecoderKind, logprobsGraph } from '../../../src/compute/model/programs.ts';
import type { Group } from '../../../src/core/trajectory.ts';
import { measure } from '../../../src/learning/learner/measure.ts';
import { feedOf, prepare } from '../../../src/learning/learner/prepare.ts';
import { averageParams, checkTeacher, type Teacher, type TeacherSpec } from '../../../src/learning/learner/teacher.ts';
import { Trainer, type TrainerOptions } from '../../../src/learning/learner/trainer.ts';
import { decisionsOf, trainUnits } from '../../../src/learning/learner/training-batch.ts';
import { createRunFolder } from '../../../src/run/run-folder.ts';
import { ViewCodec } from '../../../src/text/reading/view-codec.ts';
import { gradientDistance } from '../../support/gradient-distance.ts';
import { toyGroups } from '../../support/toy-groups.ts';
import { inFolder, type ToyConfig, toyConfig, withToyRun } from '../../support/toy-run.ts';
import { type ToyWorld, view } from '../../support/toy-worlds.ts';
import { trainerOptions } from '../../support/trainer-options.ts';

const codec = new ViewCodec(view);
const decoders = ['choice', 'tokens'] as const;

function modelOf(decoder: DecoderKind, size: Partial<ModelConfig> = {}): ModelConfig {
  const small = { hiddenSize: 8, layers: 1, maxPositions: 64, valueHead: false };
  return smallModel(codec.vocabSize, { ...small, choiceHead: decoder === 'choice', ...size });
}

/** Teacher of another width and depth than the students here, with a value head that they lack. */
function runTeacher(decoder: DecoderKind, model = modelOf(decoder, { hiddenSize: 12, layers: 2, valueHead: true })) {
  // Random weights choose nearly at random: a teacher has an opinion.
  const { version, values } = initialParams(model, 9);
  const sharp = Object.entries(values).map(([name, w]) => [name, /^choice_head/.test(name) ? w.map((x) => 6 * x) : w]);
  const params = { version, values: Object.fromEntries(sharp) as typeof values };
  return { type: 'run', model, params, identity: { type: 'run', digest: 'a'.repeat(64), update: 1 } } as const;
}

function optionsOf(decoder: DecoderKind, change: Partial<TrainerOptions> = {}): TrainerOptions {
  const learningRate = { peak: 0.05, warmupSteps: 0, decay: 'none', final: 1 } as const;
  return trainerOptions({ codec, decoder, learningRate, distillation: { coef: 1, useRewards: false }, ...change });
}

const groupsOf = (decoder: DecoderKind, world: ToyWorld = 'chain') =>
  toyGroups({ world, codec, decoder, groups: 3, size: 4, horizon: 6, seed: 7, version: 0 });

async function update(
  decoder: DecoderKind,
  change: Partial<TrainerOptions> = {},
  teacher: TeacherSpec = runTeacher(decoder),
  groups: readonly Group[] = groupsOf(decoder),
  engineName: 'reference' | 'onnxruntime-node' = 'reference',
) {
  const engine = await openEngine({ name: engineName, threads: 1 });
  const options = optionsOf(decoder, change);
  const params = initialParams(options.model, 1);
  const trainer = await Trainer.create(engine, options, { params, teacher });
  const result = await trainer.update(groups, 0);
  await trainer.dispose();
  await engine.dispose();
  expect(result.broken).toBeUndefined();
  return { result, gradient: trainer.moments.m, trainer, before: params };
}

/** Log-probabilities of all decisions under weights, computed apart from the trainer. */
async function scored(decoder: DecoderKind, model: ModelConfig, params: ParamSet, groups: readonly Group[]) {
  const engine = await openEngine({ name: 'reference' });
  const program = await engine.compile(logprobsGraph(model, { decoder, masked: true, listsAll: true }));
  let first = 0;
  const units = groups.flatMap(({ trajectories }) => {
    const own = trainUnits(codec, trajectories, first);
    first += trajectories.length;
    return own;
  });
  const measured = await measure({ model, codec, decoder, program }, params, units);
  await engine.dispose();
  return { ...measured, decisions: decisionsOf(units.flat()) };
}

describe.each(decoders)('%s decoder', (decoder) => {
  it('one pass or many, native or reference, against a teacher of another size', { timeout: 60_000 }, async () => {
    const want = await update(decoder);
    expect(Math.max(...Object.values(want.gradient).map((m) => Math.max(...m.map(Math.abs))))).toBeGreaterThan(1e-4);
    for (const passes of [{}, { maxTokens: 40 }, { maxTokens: 40, replicas: 2 }]) {
      const got = await update(decoder, passes, undefined, undefined, 'onnxruntime-node');
      expect(gradientDistance(got.gradient, want.gradient)).toBeLessThan(1e-3);
      expect(got.result.stats.distillationKl).toBeCloseTo(want.result.stats.distillationKl!, 4);
    }
  });

  // In `memory` the second turn lists other actions than the first: the third and fourth of the group.
  it.each(['chain', 'memory'] as const)('reports the reverse KL of the student to its teacher: %s', async (world) => {
    const groups = groupsOf(decoder, world);
    const teacher = runTeacher(decoder);
    const { result, before } = await update(decoder, {}, teacher, groups);
    const its = await scored(decoder, teacher.model, teacher.params, groups);
    const own = await scored(decoder, optionsOf(decoder).model, before, groups);
    const byHand = its.decisions.map((decision, i) => {
      // Choices: exact over the list, under present weights. Tokens: log π − log π_T of the sample, as it was drawn.
      if (!its.listed?.[i]) return decision.logprob - its.logprobs[i]!;
      // The list is that of the decision: its chosen action has the log-probability that was measured alone.
      const chosen = decision.allowed!.indexOf(decision.chosen);
      expect(its.listed[i]![chosen]).toBeCloseTo(its.logprobs[i]!, 6);
      const listed = its.listed[i]!.reduce((sum, q) => sum + Math.exp(q), 0);
      expect(listed).toBeCloseTo(1, 5);
      return own.listed![i]!.reduce((sum, p, a) => sum + Math.exp(p) * (p - its.listed![i]![a]!), 0);
    });
    const mean = byHand.reduce((x, y) => x + y, 0) / byHand.length;
    expect(result.stats.distillationKl).toBeCloseTo(mean, 5);
    expect(Math.abs(mean)).toBeGreaterThan(0.003);
  });

  it('asks for nothing of the rewards, and keeps groups that all scored the same', async () => {
    const groups = groupsOf(decoder);
    const paid = groups.map((one) => ({
      ...one,
      trajectories: one.trajectories.map((trajectory) => ({
        ...trajectory,
        turns: trajectory.turns.map((turn) => ({ ...turn, reward: 1 })),
      })),
    }));
    const a = await update(decoder);
    const b = await update(decoder, {}, undefined, paid);
    expect(gradientDistance(a.gradient, b.gradient)).toBe(0);
    const unpaid = groups.map((one) => ({
      ...one,
      trajectories: one.trajectories.map((trajectory) => ({
        ...trajectory,
        turns: trajectory.turns.map((turn) => ({ ...turn, reward: 0 })),
      })),
    }));
    const c = await update(decoder, {}, undefined, unpaid);
    expect(c.result.filtered).toEqual([]);
    expect(gradientDistance(a.gradient, c.gradient)).toBe(0);
  });

  it('beside rewards: the gradients of both, the KL weighed by its coefficient', async () => {
    const wide = { coefficients: { clipLow: 1e6, clipHigh: 1e6, entropyCoef: 0, valueCoef: 0, valueClip: 1 } };
    const keep = { filterGroups: false };
    const rewards = await update(decoder, { ...wide, ...keep, distillation: undefined });
    const teacher = await update(decoder, wide);
    const both = await update(decoder, { ...wide, distillation: { coef: 3, useRewards: true } });
    for (const [name, values] of Object.entries(both.gradient)) {
      const want = values.map((_, i) => rewards.gradient[name]![i]! + 3 * teacher.gradient[name]![i]!);
      for (const [i, value] of values.entries()) expect(value).toBeCloseTo(want[i]!, 5);
    }
  });

  it('has nothing to learn from a teacher that it equals', async () => {
    const model = modelOf(decoder);
    const teacher = { ...runTeacher(decoder, model), params: initialParams(model, 1) };
    const groups = groupsOf(decoder);
    const own = await scored(decoder, model, teacher.params, groups);
    let at = 0;
    const asPlayed = groups.map((one) => ({
      ...one,
      trajectories: one.trajectories.map((trajectory) => ({
        ...trajectory,
        turns: trajectory.turns.map((turn) => {
          const decision = turn.decision!;
          if (decision.kind === 'choice') return { ...turn, decision: { ...decision, logprob: own.logprobs[at++]! } };
          const logprobs = decision.logprobs.map(() => own.logprobs[at++]!);
          return { ...turn, decision: { ...decision, logprobs } };
        }),
      })),
    }));
    const { result, gradient } = await update(decoder, {}, teacher, asPlayed);
    expect(result.stats.distillationKl).toBeCloseTo(0, 5);
    expect(Math.max(...Object.values(gradient).map((m) => Math.max(...m.map(Math.abs))))).toBeLessThan(1e-6);
  });
});

it('many-layered models, which are computed layer by layer: a teacher and a student of nine', {
  timeout: 60_000,
}, async () => {
  const groups = groupsOf('choice');
  const teacher = runTeacher('choice', modelOf('choice', { layers: 9 }));
  const model = modelOf('choice', { layers: 9 });
  const { result, gradient, before } = await update('choice', { model }, teacher, groups, 'onnxruntime-node');
  const its = await scored('choice', teacher.model, teacher.params, groups);
  const own = await scored('choice', model, before, groups);
  const kl = own.listed!.map((row, i) => row.reduce((sum, p, a) => sum + Math.exp(p) * (p - its.listed![i]![a]!), 0));
  expect(result.stats.distillationKl).toBeCloseTo(kl.reduce((a, b) => a + b, 0) / kl.length, 4);
  expect(Math.max(...Object.values(gradient).map((m) => Math.max(...m.map(Math.abs))))).toBeGreaterThan(1e-4);
});

describe('tokens', () => {
  it('their gain is taken against the policy of the ratio, joins the advantage, and importance weighs both', async () => {
    // Decisions that older weights made: the ratio is taken to the weights at the start of the update.
    const stale = toyGroups({
      world: 'chain',
      codec,
      decoder: 'tokens',
      groups: 3,
      size: 4,
      horizon: 6,
      seed: 7,
      version: -1,
    });
    const options = optionsOf('tokens', {
      offPolicy: { type: 'truncated', cap: 2, per: 'token' },
      distillation: { coef: 0.5, useRewards: true },
    });
    const engine = await openEngine({ name: 'reference' });
    const program = await engine.compile(logprobsGraph(options.model, { decoder: 'tokens', masked: true }));
    const params = initialParams(options.model, 1);
    const scoreOf = (i: number) => -1 - (i % 7) / 3;
    const teacher: Teacher = {
      identity: { type: 'ema' },
      average: undefined,
      follow() {},
      async dispose() {},
      async score(units) {
        return { logprobs: Float64Array.from(decisionsOf(units.flat()), (_, i) => scoreOf(i)), listed: undefined };
      },
    };
    const measuring = { model: options.model, codec, decoder: 'tokens' as const, program };
    const learning = { options, params, reference: undefined, klCoefficient: 0, teacher, measuring };
    const prepared = await prepare(learning, stale, () => undefined);
    if ('broken' in prepared) throw new Error(prepared.broken.message);
    const groups = prepared.units.flat();
    const feed = feedOf(options, groups, prepared)!;
    const own = await scored('tokens', options.model, params, stale);
    await engine.dispose();
    let apart = 0;
    for (const [i, decision] of decisionsOf(groups).entries()) {
      const present = own.logprobs[i]!;
      const importance = Math.min(2, Math.exp(present - decision.logprob));
      const reward = prepared.estimates[decision.trajectory]!.advantages[decision.turn]!;
      const fed = feed(decision);
      expect(fed.oldLogprob).toBeCloseTo(present, 6);
      expect(fed.advantage).toBeCloseTo((reward + 0.5 * (scoreOf(i) - present)) * importance, 6);
      if (Math.abs(present - decision.logprob) > 0.01) apart++;
    }
    expect(apart).toBeGreaterThan(20);
    const mean = own.logprobs.reduce((sum, one, i) => sum + one - scoreOf(i), 0) / own.logprobs.length;
    expect(prepared.stats.distillationKl).toBeCloseTo(mean, 6);
  });
});

describe('self-distillation', () => {
  const ema = (decay: number): TeacherSpec => ({ type: 'ema', decay, identity: { type: 'ema' } });

  it('averages weights by hand: 0.75·4 + 0.25·8 = 5', () => {
    const params = (version: number, ...w: number[]): ParamSet => ({ version, values: { w: Float32Array.from(w) } });
    expect(averageParams(params(3, 4, -2), params(4, 8, 2), 0.75)).toEqual(params(4, 5, -1));
  });

  it('follows the student after each update, and begins at its weights', async () => {
    const { trainer, before } = await update('choice', { distillation: { coef: 1, useRewards: true } }, ema(0.75));
    expect(trainer.average!.version).toBe(1);
    for (const [name, values] of Object.entries(trainer.average!.values)) {
      for (const [i, value] of values.entries()) {
        expect(value).toBeCloseTo(0.75 * before.values[name]![i]! + 0.25 * trainer.params.values[name]![i]!, 6);
      }
    }
    expect(trainer.state.teacher).toEqual({ type: 'ema' });
  });

  it('does not follow an update that was taken back', async () => {
    const engine = await openEngine({ name: 'reference' });
    const options = optionsOf('choice', { distillation: { coef: 1, useRewards: true } });
    const params = initialParams(options.model, 1);
    const trainer = await Trainer.create(engine, options, { params, teacher: ema(0.5) });
    const [first, ...rest] = groupsOf('choice');
    const [one, ...others] = first!.trajectories;
    const turns = one!.turns.map((turn) => ({ ...turn, reward: Number.NaN }));
    const result = await trainer.update([{ ...first!, trajectories: [{ ...one!, turns }, ...others] }, ...rest], 0);
    expect(result.broken).toBeDefined();
    expect(trainer.average!.values).toBe(params.values);
  });
});

describe('refusals', () => {
  const create = async (change: Partial<TrainerOptions>, teacher?: TeacherSpec) => {
    const engine = await openEngine({ name: 'reference' });
    const options = optionsOf('choice', change);
    return Trainer.create(engine, options, { params: initialParams(options.model, 1), teacher });
  };

  it('distillation without a teacher, or with an estimator that imitates', async () => {
    await expect(create({})).rejects.toThrow('learner.distillation: expected a teacher to start with');
    const estimator = { ...optionsOf('choice').estimator, algorithm: 'agent_evol', threshold: 0 } as never;
    await expect(create({ estimator }, runTeacher('choice'))).rejects.toThrow('agent_evol imitates already');
  });

  it('weights that do not fit their model', async () => {
    const teacher = { ...runTeacher('choice'), model: modelOf('choice') };
    await expect(create({}, teacher)).rejects.toMatchObject({ code: 'BAD_WEIGHTS' });
  });

  it('another teacher than a run began with', () => {
    const run = { type: 'run', digest: 'a'.repeat(64), update: 3 } as const;
    expect(() => checkTeacher(undefined, run)).not.toThrow();
    expect(() => checkTeacher(run, { ...run })).not.toThrow();
    for (const other of [{ ...run, digest: 'b'.repeat(64) }, { ...run, update: 4 }, { type: 'ema' } as const]) {
      expect(() => checkTeacher(run, other)).toThrow(/this run began with update 3 of a run.*give it its teacher back/);
    }
    const served = { type: 'server', model: 'big' } as const;
    expect(() => checkTeacher(served, { ...served, model: 'small' })).toThrow('model big behind a server');
  });
});

/** Trains a teacher in a folder of its own, as `longplay train` lays it out. */
async function trainTeacher(dir: string, config: ToyConfig = {}): Promise<number> {
  const made = toyConfig('chain', { stop: { updates: 25 }, ...config });
  createRunFolder(dir, made);
  return withToyRun(made, dir, async ({ run }) => {
    await run.train();
    expect((await run.save()).ok).toBe(true);
    return play(run);
  });
}

async function play(run: Parameters<Parameters<typeof withToyRun>[2]>[0]['run']): Promise<number> {
  const tasks = Array.from({ length: 40 }, (_, seed) => ({ env: 'toy', index: seed % 4, seed: 1000 + seed }));
  const record = await run.evaluate({ name: 'toy', tasks, episodes: 1, horizon: 8, temperature: 1, seed: 3 });
  const returns = record.results.flatMap((result) => result.returns);
  return returns.reduce((a, b) => a + b, 0) / returns.length;
}

describe.each(decoders)('a student of %s', (decoder) => {
  it('comes to play as its teacher does, which has another size, without a reward', async () => {
    await inFolder(async (root) => {
      const path = join(root, 'teacher');
      const policy = { decoder, model: { hiddenSize: 24, layers: 2 } };
      const taught = await trainTeacher(path, { policy });
      expect(taught).toBeGreaterThan(0.9);
      const student = (updates: number) =>
        toyConfig('chain', {
          seed: 5,
          policy: { decoder },
          stop: { updates },
          rollout: { groupSize: 1, concurrentGroups: 8 },
          learner: {
            groupsPerUpdate: 8,
            entropyCoef: 0,
            distillation: { teacher: { type: 'run', path } },
          },
        });
      const dir = join(root, 'student');
      mkdirSync(dir);
      await withToyRun(student(20), dir, async ({ run, rows, notices }) => {
        const before = await play(run);
        await run.train();
        const after = await play(run);
        expect(before).toBeLessThan(0.5);
        expect(after).toBeGreaterThan(taught - 0.1);
        const kl = rows.map(({ distillationKl }) => distillationKl!);
        expect(kl.every(Number.isFinite)).toBe(true);
        expect(kl.at(-1)!).toBeLessThan(kl[0]! / 3);
        expect(notices).toContain(`the teacher is ${path}, update 25`);
      });
    });
  }, 120_000);
});
