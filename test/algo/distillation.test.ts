/**
 * Losses of distillation and of the world's tokens against twins written from the papers, and by hand. Twins are plain float64
 * functions of the logits; their slopes are central differences.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { computeTeacherGain } from '../../src/algo/distillation.ts';
import { interpret } from '../../src/compute/engine/reference.ts';
import { entropyOf, policyLoss, reverseKl } from '../../src/compute/model/loss.ts';
import { gradients } from '../../src/compute/tensor/gradients.ts';
import { defineGraph } from '../../src/compute/tensor/graph.ts';
import type { NdArray } from '../../src/compute/tensor/ndarray.ts';
import { logSoftmax, pick, reshape } from '../../src/compute/tensor/ops.ts';
import { input } from '../../src/compute/tensor/tensor.ts';
import { slopesOf } from '../support/policy-loss.ts';

const ACTIONS = 4;

/** Decision among listed actions: logits (−Infinity: not listed), the teacher's log-probabilities, and its weight. */
interface Choice {
  readonly logits: readonly number[];
  readonly teacher: readonly number[];
  readonly weight: number;
}

const logSoftmaxOf = (logits: readonly number[]) => {
  const total = Math.log(logits.reduce((sum, z) => sum + Math.exp(z), 0));
  return logits.map((z) => z - total);
};
const array = (shape: readonly number[], values: readonly number[]): NdArray => ({
  shape: [...shape],
  data: Float64Array.from(values),
});

/** Σ w·Σ p·(log p − log q), GKD's divergence, the reverse KL. */
function twin(choices: readonly Choice[], logits: readonly number[]): number {
  return choices.reduce((sum, { teacher, weight }, i) => {
    const own = logits.slice(i * ACTIONS, (i + 1) * ACTIONS);
    const kl = logSoftmaxOf(own).reduce(
      (total, log, a) => (log === Number.NEGATIVE_INFINITY ? total : total + Math.exp(log) * (log - teacher[a]!)),
      0,
    );
    return sum + weight * kl;
  }, 0);
}

/** Loss of the graph for decisions without a reward, and its slopes by the logits. */
function compute(choices: readonly Choice[], coef: number) {
  const N = choices.length;
  const logits = input('logits', ['N', ACTIONS]);
  const logprobs = logSoftmax(logits);
  const terms = {
    logprob: reshape(pick(logprobs, input('chosen', ['N', 1], 'i32')), ['N']),
    entropy: entropyOf(logprobs),
    value: undefined,
    logprobs,
  };
  const { loss, stats } = policyLoss(terms, ['N'], 'ppo_clip', { distils: true });
  const graph = defineGraph({ loss, ...stats, slope: gradients(loss, [logits])[0]! });
  const row = (value: number) => array([N], new Array<number>(N).fill(value));
  const scalars = ['clipLow', 'clipHigh', 'entropyCoef', 'klCoef1', 'klCoef2', 'klCoef3'];
  const out = interpret(
    graph,
    new Map<string, NdArray>([
      [
        'logits',
        array(
          [N, ACTIONS],
          choices.flatMap((one) => one.logits.map((z) => Math.max(z, -1e9))),
        ),
      ],
      [
        'chosen',
        array(
          [N, 1],
          choices.map(() => 0),
        ),
      ],
      ['decisions.oldLogprob', row(-1)],
      ['decisions.referenceLogprob', row(-1)],
      ['decisions.advantage', row(0)],
      [
        'decisions.weight',
        array(
          [N],
          choices.map(({ weight }) => weight),
        ),
      ],
      // Entries that are not listed are fed as 0.
      [
        'decisions.teacher',
        array(
          [N, ACTIONS],
          choices.flatMap(({ teacher }) => teacher.map((q) => (Number.isFinite(q) ? q : 0))),
        ),
      ],
      ...scalars.map((name) => [`loss.${name}`, array([], [0])] as [string, NdArray]),
      ['loss.distillationCoef', array([], [coef])],
    ]),
    new Map([['N', N]]),
  );
  return {
    loss: out.get('loss')!.data[0]!,
    kl: out.get('distillationKl')!.data[0]!,
    slopes: [...out.get('slope')!.data],
  };
}

const logit = fc.integer({ min: -400, max: 400 }).map((n) => n / 100);
const choice = fc
  .record({
    logits: fc.array(logit, { minLength: ACTIONS, maxLength: ACTIONS }),
    teacher: fc.array(logit, { minLength: ACTIONS, maxLength: ACTIONS }),
    weight: fc.integer({ min: 1, max: 10 }).map((n) => n / 10),
    listed: fc.integer({ min: 1, max: ACTIONS }),
  })
  .map(({ logits, teacher, weight, listed }): Choice => {
    const mask = (values: readonly number[]) => values.map((z, a) => (a < listed ? z : Number.NEGATIVE_INFINITY));
    return { logits: mask(logits), teacher: logSoftmaxOf(mask(teacher)), weight };
  });

describe('reverse KL to a teacher, of choices', () => {
  it('equals its twin: values to 1e-9, slopes to 1e-6', () => {
    let apart = 0;
    fc.assert(
      fc.property(
        fc.array(choice, { minLength: 1, maxLength: 5 }),
        fc.integer({ min: 1, max: 30 }),
        (choices, tenths) => {
          const coef = tenths / 10;
          const logits = choices.flatMap((one) => one.logits);
          const got = compute(choices, coef);
          const want = twin(choices, logits);
          expect(Math.abs(got.kl - want)).toBeLessThanOrEqual(1e-9 * (1 + want));
          expect(Math.abs(got.loss - coef * want)).toBeLessThanOrEqual(1e-9 * (1 + coef * want));
          for (const [i, slope] of slopesOf((x) => coef * twin(choices, x), logits).entries()) {
            if (logits[i] === Number.NEGATIVE_INFINITY) expect(got.slopes[i]).toBe(0);
            else
              expect(Math.abs(got.slopes[i]! - slope), `slope ${i}`).toBeLessThanOrEqual(1e-6 * (1 + Math.abs(slope)));
          }
          if (want > 0.01) apart++;
        },
      ),
      { numRuns: 300 },
    );
    expect(apart).toBeGreaterThan(150);
  });

  it('by hand: (½, ½) to (0.9, 0.1) is ½·log(0.5/0.9) + ½·log(0.5/0.1) = 0.5108 nats, and only one direction', () => {
    const never = Number.NEGATIVE_INFINITY;
    const teacher = [Math.log(0.9), Math.log(0.1), never, never];
    const { kl, loss, slopes } = compute([{ logits: [0, 0, never, never], teacher, weight: 1 }], 2);
    expect(kl).toBeCloseTo(0.5 * Math.log(0.5 / 0.9) + 0.5 * Math.log(0.5 / 0.1), 12);
    expect(kl).toBeCloseTo(0.5108256, 6);
    expect(loss).toBeCloseTo(2 * kl, 12);
    // coef·p·((log p − log q) − KL) = 2·½·(log(0.5/0.9) − 0.5108) = −1.0986 = −log 3
    expect(slopes[0]).toBeCloseTo(-Math.log(3), 9);
    expect(slopes[1]).toBeCloseTo(Math.log(3), 9);
  });

  it('is 0 without a slope at the teacher itself', () => {
    const logits = [0.3, -1, 2, 0];
    const { kl, slopes } = compute([{ logits, teacher: logSoftmaxOf(logits), weight: 1 }], 1);
    expect(kl).toBeCloseTo(0, 12);
    for (const slope of slopes) expect(slope).toBeCloseTo(0, 12);
  });

  it('stays finite where the student is certain, and the teacher is certain of another action', () => {
    const { kl, slopes } = compute([{ logits: [200, 0, 0, 0], teacher: [-150, 0, -150, -150], weight: 1 }], 1);
    expect(kl).toBeCloseTo(150, 9);
    expect(slopes.every(Number.isFinite)).toBe(true);
  });

  it('sums over the last axis alone', () => {
    const graph = defineGraph({ kl: reverseKl(input('p', ['A', 'B', 2]), input('q', ['A', 'B', 2])) });
    const log = (...ps: number[]) => ps.map(Math.log);
    const out = interpret(
      graph,
      new Map([
        ['p', array([1, 2, 2], log(0.5, 0.5, 0.2, 0.8))],
        ['q', array([1, 2, 2], log(0.5, 0.5, 0.4, 0.6))],
      ]),
      new Map([
        ['A', 1],
        ['B', 2],
      ]),
    );
    expect([...out.get('kl')!.data][0]).toBeCloseTo(0, 12);
    expect([...out.get('kl')!.data][1]).toBeCloseTo(0.2 * Math.log(0.5) + 0.8 * Math.log(0.8 / 0.6), 12);
  });
});

describe('gain of a sampled token', () => {
  it('by hand: coef·(log π_T − log π), within ±20 nats', () => {
    expect(computeTeacherGain(1, -1, -3)).toBe(2);
    expect(computeTeacherGain(0.5, -4, -1)).toBe(-1.5);
    expect(computeTeacherGain(2, -9999, -1)).toBe(-40);
    expect(computeTeacherGain(2, 0, -9999)).toBe(40);
  });

  it('its policy gradient has the slope of the reverse KL as its expectation', () => {
    fc.assert(
      fc.property(choice, ({ logits, teacher }) => {
        const listed = logits.flatMap((z, a) => (z === Number.NEGATIVE_INFINITY ? [] : [a]));
        const own = logSoftmaxOf(logits);
        const wants = slopesOf((x) => twin([{ logits, teacher, weight: 1 }], x), logits);
        for (const b of listed) {
          // E over the sampled action a of −gain(a)·∂log π(a)/∂logit(b)
          const slope = listed.reduce(
            (sum, a) =>
              sum -
              Math.exp(own[a]!) * computeTeacherGain(1, teacher[a]!, own[a]!) * (Number(a === b) - Math.exp(own[b]!)),
            0,
          );
          expect(Math.abs(slope - wants[b]!)).toBeLessThanOrEqual(1e-6 * (1 + Math.abs(slope)));
        }
      }),
      { numRuns: 200 },
    );
  });
});

it("the world's tokens: λ·mean(−log π), beside the policy's loss and apart from its weights (ECHO)", () => {
  const logprob = input('logprob', ['N']);
  const terms = { logprob, entropy: input('entropy', ['N']), value: undefined };
  const { loss, stats } = policyLoss(terms, ['N'], 'unclipped', { predictsWorld: true });
  const graph = defineGraph({ loss, ...stats, slope: gradients(loss, [logprob])[0]! });
  const row = (...values: number[]) => array([3], values);
  const zero = ['entropyCoef', 'klCoef1', 'klCoef2', 'klCoef3'].map(
    (name) => [`loss.${name}`, array([], [0])] as const,
  );
  const out = interpret(
    graph,
    new Map<string, NdArray>([
      ['logprob', row(-1, -2, -4)],
      ['entropy', row(0, 0, 0)],
      ['decisions.oldLogprob', row(-1, 0, 0)],
      ['decisions.referenceLogprob', row(-1, 0, 0)],
      ['decisions.advantage', row(3, 0, 0)],
      ['decisions.weight', row(1, 0, 0)],
      ['decisions.observationWeight', row(0, 0.5, 0.5)],
      ...zero,
      ['loss.observationCoef', array([], [0.1])],
    ]),
    new Map([['N', 3]]),
  );
  expect(out.get('observationNll')!.data[0]).toBeCloseTo(3, 12);
  expect(out.get('loss')!.data[0]).toBeCloseTo(-3 + 0.1 * 3, 12);
  expect([...out.get('slope')!.data].map((slope) => slope.toFixed(9))).toEqual([
    '-3.000000000',
    '-0.050000000',
    '-0.050000000',
  ]);
});
