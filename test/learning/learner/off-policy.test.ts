/** Corrections for decisions of older weights: the two ways against each other, where their answers are known. */
import { describe, expect, it } from 'vitest';
import { importance } from '../../../src/algo/importance.ts';
import { openEngine } from '../../../src/compute/engine/open.ts';
import { initialParams, type ParamSet } from '../../../src/compute/model/parameters.ts';
import type { DecoderKind } from '../../../src/compute/model/programs.ts';
import type { Decision, Group } from '../../../src/core/trajectory.ts';
import { Trainer, type TrainerOptions, type UpdateResult } from '../../../src/learning/learner/trainer.ts';
import { ViewCodec } from '../../../src/text/reading/view-codec.ts';
import { gradientDistance } from '../../support/gradient-distance.ts';
import { toyGroups } from '../../support/toy-groups.ts';
import { view } from '../../support/toy-worlds.ts';
import { trainerOptions } from '../../support/trainer-options.ts';

const codec = new ViewCodec(view);
const VERSION = 3;
const WIDE = 1e6;

/** Gradients keep their length: shrinking to a norm would hide a factor. */
function optionsOf(decoder: DecoderKind, change: Partial<TrainerOptions>): TrainerOptions {
  const coefficients = { clipLow: WIDE, clipHigh: WIDE, entropyCoef: 0.01, valueCoef: 0, valueClip: 1 };
  return trainerOptions({ codec, decoder, coefficients, ...change });
}

interface Updated extends UpdateResult {
  /** First moments after one step from zero: the gradient, scaled. */
  readonly gradient: Readonly<Record<string, Float32Array>>;
  readonly params: ParamSet;
}

async function update(
  groups: readonly Group[],
  decoder: DecoderKind,
  change: Partial<TrainerOptions>,
): Promise<Updated> {
  const engine = await openEngine({ name: 'reference' });
  const options = optionsOf(decoder, change);
  const start = { ...initialParams(options.model, 1), version: VERSION };
  const trainer = await Trainer.create(engine, options, { params: start });
  const result = await trainer.update(groups, 0);
  expect(result.broken).toBeUndefined();
  return { ...result, gradient: trainer.moments.m, params: trainer.params };
}

function batch(decoder: DecoderKind, version: number): Group[] {
  return toyGroups({ world: 'chain', codec, decoder, groups: 3, size: 4, horizon: 6, seed: 7, version });
}

/** The batch with every behaviour log-probability changed. */
function behaved(groups: readonly Group[], change: (logprob: number) => number): Group[] {
  const moved = (decision: Decision): Decision =>
    decision.kind === 'choice'
      ? { ...decision, logprob: change(decision.logprob) }
      : { ...decision, logprobs: decision.logprobs.map(change) };
  return groups.map((group) => ({
    ...group,
    trajectories: group.trajectories.map((one) => ({
      ...one,
      turns: one.turns.map((turn) => ({ ...turn, decision: moved(turn.decision!) })),
    })),
  }));
}

function expectSame(got: Updated['gradient'], want: Updated['gradient'], tolerance: number): void {
  expect(gradientDistance(got, want)).toBeLessThanOrEqual(tolerance);
}

describe('off-policy correction', () => {
  for (const decoder of ['choice', 'tokens'] as const) {
    // d/dθ of r·A at r = π/π_behaviour, and of w·r′·A with w = π_start/π_behaviour at r′ = 1: both w·A·∇log π.
    it(`the first step of both is the same where nothing clips and nothing is truncated: ${decoder}`, async () => {
      const older = batch(decoder, VERSION - 1);
      const ratio = await update(older, decoder, {});
      const truncated = await update(older, decoder, { offPolicy: { type: 'truncated', cap: WIDE, per: 'token' } });
      expectSame(truncated.gradient, ratio.gradient, 1e-5);
      expect(truncated.stats.importanceMax).toBeGreaterThan(1.1); // there was something to correct
      expect(truncated.stats.importanceTruncated).toBe(0);
    }, 30_000);

    it(`decisions of the present weights are not corrected at all: ${decoder}`, async () => {
      const fresh = batch(decoder, VERSION);
      const ratio = await update(fresh, decoder, {});
      const truncated = await update(fresh, decoder, { offPolicy: { type: 'truncated', cap: 1, per: 'decision' } });
      expect(truncated.gradient).toEqual(ratio.gradient);
      expect(truncated.stats).not.toHaveProperty('importanceMean');
    }, 30_000);
  }

  it('weighs the surrogate alone: entropy is what it is, whatever the behaviour was', async () => {
    const truncated = { offPolicy: { type: 'truncated', cap: 2, per: 'decision' } } as const;
    const plain = await update(batch('choice', VERSION), 'choice', {});
    const unlikely = behaved(batch('choice', VERSION - 1), (logprob) => logprob - 3);
    const corrected = await update(unlikely, 'choice', truncated);
    expect(corrected.stats.importanceMean).toBeGreaterThan(10);
    expect(corrected.stats.importanceTruncated).toBe(1);
    expect(corrected.stats.entropy).toBeCloseTo(plain.stats.entropy!, 6);
    // Every weight is the cap: the same loss as with twice the advantages, beside the same entropy bonus.
    const zero = { entropyCoef: 0, clipLow: WIDE, clipHigh: WIDE, valueCoef: 0, valueClip: 1 };
    const capped = await update(unlikely, 'choice', { ...truncated, coefficients: zero });
    const single = await update(unlikely, 'choice', {
      coefficients: zero,
      offPolicy: { type: 'truncated', cap: 1, per: 'decision' },
    });
    for (const [name, values] of Object.entries(single.gradient)) {
      for (const [i, value] of values.entries()) expect(capped.gradient[name]![i]).toBeCloseTo(2 * value, 5);
    }
  }, 30_000);

  it('the clip is around the start of the update, not around the behaviour', async () => {
    const coefficients = { clipLow: 0.2, clipHigh: 0.2, entropyCoef: 0, valueCoef: 0, valueClip: 1 };
    const unlikely = behaved(batch('choice', VERSION - 1), (logprob) => logprob - 1); // every ratio is about e
    const ratio = await update(unlikely, 'choice', { coefficients });
    expect(ratio.stats.clipFraction).toBeGreaterThan(0.2); // all that is to become likelier
    const offPolicy = { type: 'truncated', cap: 4, per: 'decision' } as const;
    const first = await update(unlikely, 'choice', { coefficients, offPolicy });
    expect(first.stats.clipFraction).toBe(0);
    const later = await update(unlikely, 'choice', {
      coefficients: { ...coefficients, clipLow: 0.01, clipHigh: 0.01 },
      offPolicy,
      epochs: 4,
    });
    expect(later.stats.clipFraction).toBeGreaterThan(0.05); // once the learner has moved it is not inert
  }, 30_000);

  it('a token, a decision and a trajectory share a ratio as configured', async () => {
    const groups = behaved(batch('tokens', VERSION - 1), (logprob) => logprob - 0.3);
    const largest = async (per: 'token' | 'decision' | 'trajectory') =>
      (await update(groups, 'tokens', { offPolicy: { type: 'truncated', cap: WIDE, per } })).stats.importanceMax!;
    const [token, decision, trajectory] = [
      await largest('token'),
      await largest('decision'),
      await largest('trajectory'),
    ];
    expect(decision).toBeGreaterThan(token);
    expect(trajectory).toBeGreaterThan(decision);
  }, 30_000);

  it('masked is truncated where nothing is outside, and leaves out what is', async () => {
    const older = batch('tokens', VERSION - 1);
    const truncated = await update(older, 'tokens', { offPolicy: { type: 'truncated', cap: WIDE, per: 'token' } });
    const wide = await update(older, 'tokens', { offPolicy: { type: 'masked', low: 0, cap: WIDE, per: 'token' } });
    expect(wide.gradient).toEqual(truncated.gradient);
    const far = behaved(older, (logprob) => logprob - 3); // every ratio is about 20
    const none = await update(far, 'tokens', { offPolicy: { type: 'masked', low: 0.5, cap: 5, per: 'token' } });
    expect(none.stats).toMatchObject({ importanceTruncated: 1, effectiveShare: 0, policyLoss: 0 });
    expect(none.stats.entropy).toBeGreaterThan(0);
    const likely = behaved(older, (logprob) => logprob + 3); // every ratio is about 1/20
    const low = await update(likely, 'tokens', { offPolicy: { type: 'masked', low: 0.5, cap: 5, per: 'token' } });
    expect(low.stats).toMatchObject({ importanceTruncated: 1, policyLoss: 0 });
  }, 30_000);

  it('the geometric mean of equal ratios is one of them, their product grows with the length', async () => {
    const older = behaved(batch('tokens', VERSION - 1), (logprob) => logprob - 1);
    const largest = async (geometricMean: boolean) => {
      const offPolicy = { type: 'truncated', cap: WIDE, per: 'trajectory', geometricMean } as const;
      return (await update(older, 'tokens', { offPolicy })).stats.importanceMax!;
    };
    expect(await largest(true)).toBeLessThan(5);
    expect(await largest(false)).toBeGreaterThan(20);
  }, 30_000);

  it('second moment: the ratio alone where the threshold is far, less of it where it is near', async () => {
    const older = batch('tokens', VERSION - 1);
    const ratio = await update(older, 'tokens', { policyLoss: { type: 'unclipped' } });
    const far = await update(older, 'tokens', {
      policyLoss: { type: 'unclipped' },
      offPolicy: { type: 'second_moment', threshold: 1e6 },
    });
    expect(far.gradient).toEqual(ratio.gradient);
    expect(far.stats.importanceTruncated).toBe(0);
    const moved = behaved(older, (logprob) => logprob - 0.5);
    const near = await update(moved, 'tokens', { offPolicy: { type: 'second_moment', threshold: 1e-4 } });
    expect(near.stats.importanceTruncated).toBeGreaterThan(0.1);
    expect(near.stats.importanceTruncated).toBeLessThan(1); // what is to become less likely is kept
    // Episodes that the horizon cut, and that are not trained on, are nothing to compare with.
    const made = { world: 'wage', codec, decoder: 'tokens', groups: 3, size: 4, horizon: 4, seed: 7 } as const;
    const cut = behaved(toyGroups({ ...made, version: VERSION - 1 }), (logprob) => logprob - 0.5);
    const estimator = { ...optionsOf('tokens', {}).estimator, truncation: 'mask' } as TrainerOptions['estimator'];
    const tiny = { type: 'second_moment', threshold: 1e-12 } as const;
    expect((await update(cut, 'tokens', { offPolicy: tiny })).stats.importanceTruncated).toBeGreaterThan(0.1);
    expect((await update(cut, 'tokens', { offPolicy: tiny, estimator })).stats.importanceTruncated).toBe(0);
  }, 30_000);

  it('weights are bounded by the cap and unbiased without it', () => {
    // Two actions, behaviour q, learner p: Σ_a q(a)·w(a)·f(a) = Σ_a p(a)·f(a) exactly, for any f.
    const [q, p] = [
      [0.8, 0.2],
      [0.5, 0.5],
    ];
    const f = [3, -7];
    const log = (xs: readonly number[]) => xs.map(Math.log);
    const { weights } = importance(log(p!), log(q!), WIDE);
    const corrected = q!.reduce((sum, x, a) => sum + x * weights[a]! * f[a]!, 0);
    expect(corrected).toBeCloseTo(
      p!.reduce((sum, x, a) => sum + x * f[a]!, 0),
      12,
    );
    expect(Math.max(...importance(log(p!), log(q!), 2).weights)).toBe(2);
  });
});
