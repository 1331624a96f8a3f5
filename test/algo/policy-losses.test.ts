/**
 * Policy losses against twins written from the papers: plain float64 functions of all log-probabilities. What a paper holds
 * constant (stop-gradient) is a second argument of a twin; its slopes are central differences by the first.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type PolicyLossConfig, type PolicyLossType, policyLossFacts } from '../../src/algo/policy-loss.ts';
import { computePolicyLoss, type LossBatch, slopesOf } from '../support/policy-loss.ts';

/** Loss of a batch by log-probabilities `x`; `held` are those that no slope flows through. */
type Twin = (batch: LossBatch, x: readonly number[], held: readonly number[]) => number;

const clip = (r: number, low: number, high: number) => Math.min(Math.max(r, 1 - low), 1 + high);
const perToken =
  (loss: (x: number, held: number, old: number, A: number) => number): Twin =>
  ({ old, advantage, weight }, x, held) =>
    x.reduce((sum, at, i) => sum + weight[i]! * loss(at, held[i]!, old[i]!, advantage[i]!), 0);

/** Mean log-ratio over the sequence of token i. */
function meanLogRatio({ old, sequence }: LossBatch, x: readonly number[], i: number): number {
  const own = x.flatMap((at, j) => (sequence[j] === sequence[i] ? [at - old[j]!] : []));
  return own.reduce((a, b) => a + b, 0) / own.length;
}

const binaryKl = (p: number, q: number) => p * Math.log(p / q) + (1 - p) * Math.log((1 - p) / (1 - q));

const twins: Readonly<Record<PolicyLossType, { readonly config: PolicyLossConfig; readonly twin: Twin }>> = {
  ppo_clip: {
    config: { type: 'ppo_clip' },
    twin: perToken((x, _, old, A) => -Math.min(Math.exp(x - old) * A, clip(Math.exp(x - old), 0.2, 0.28) * A)),
  },
  // 2507.18071, eq. 13 and 14: the token's ratio has the sequence's value and the token's slope.
  gspo: {
    config: { type: 'gspo', clipLow: 0.1, clipHigh: 0.15 },
    twin: (batch, x, held) =>
      x.reduce((sum, at, i) => {
        const s = (Math.exp(meanLogRatio(batch, held, i)) * Math.exp(at)) / Math.exp(held[i]!);
        const A = batch.advantage[i]!;
        return sum - batch.weight[i]! * Math.min(s * A, clip(s, 0.1, 0.15) * A);
      }, 0),
  },
  cispo: {
    config: { type: 'cispo', clipLow: 0.3, clipHigh: 0.4 },
    twin: perToken((x, held, old, A) => -clip(Math.exp(held - old), 0.3, 0.4) * A * x),
  },
  sapo: {
    config: { type: 'sapo', tauPositive: 1, tauNegative: 1.3 },
    twin: perToken((x, _, old, A) => {
      const tau = A > 0 ? 1 : 1.3;
      return ((-4 / tau) * A) / (1 + Math.exp(-tau * (Math.exp(x - old) - 1)));
    }),
  },
  dppo_tv: {
    config: { type: 'dppo_tv', deltaLow: 0.05, deltaHigh: 0.1 },
    twin: perToken((x, held, old, A) => {
      const moved = Math.exp(held) - Math.exp(old);
      const masked = (A > 0 && moved > 0.1) || (A < 0 && moved < -0.05);
      return masked ? 0 : -Math.exp(x - old) * A;
    }),
  },
  dppo_kl: {
    config: { type: 'dppo_kl', deltaLow: 0.02, deltaHigh: 0.05 },
    twin: perToken((x, held, old, A) => {
      const D = binaryKl(Math.exp(old), Math.exp(held));
      const masked = (A > 0 && held > old && D > 0.05) || (A < 0 && held < old && D > 0.02);
      return masked ? 0 : -Math.exp(x - old) * A;
    }),
  },
  unclipped: { config: { type: 'unclipped' }, twin: perToken((x, _, old, A) => -Math.exp(x - old) * A) },
};

/** Log-probabilities between −3 and −0.1; offsets keep ratios off the kinks of the bounds above. */
const token = fc.record({
  logprob: fc.integer({ min: -300, max: -10 }).map((n) => n / 100 + 0.003537),
  old: fc.integer({ min: -300, max: -10 }).map((n) => n / 100 + 0.0017),
  advantage: fc.integer({ min: -200, max: 200 }).map((n) => n / 100),
  weight: fc.double({ min: 0, max: 1, noNaN: true }),
  sequence: fc.integer({ min: 0, max: 2 }),
});
const anyBatch = fc.array(token, { minLength: 1, maxLength: 8 }).map((tokens): LossBatch => {
  const column = (key: keyof (typeof tokens)[number]) => tokens.map((one) => one[key]);
  return {
    logprob: column('logprob'),
    old: column('old'),
    advantage: column('advantage'),
    weight: column('weight'),
    sequence: column('sequence'),
  };
});

describe('policy losses equal their twins, values to 1e-9 and slopes to 1e-6', () => {
  it('has a twin for each', () => {
    expect(Object.keys(twins).sort()).toEqual(Object.keys(policyLossFacts).sort());
  });
  for (const [type, { config, twin }] of Object.entries(twins)) {
    it(type, () => {
      let binding = 0;
      fc.assert(
        fc.property(anyBatch, (batch) => {
          const got = computePolicyLoss(batch, config);
          const { logprob } = batch;
          const want = twin(batch, logprob, logprob);
          expect(Math.abs(got.loss - want)).toBeLessThanOrEqual(1e-9 * (1 + Math.abs(want)));
          for (const [i, slope] of slopesOf((x) => twin(batch, x, logprob), logprob).entries()) {
            expect(Math.abs(got.slopes[i]! - slope), `slope ${i}`).toBeLessThanOrEqual(1e-6 * (1 + Math.abs(slope)));
          }
          if ((got.clipFraction ?? 0) > 0) binding++;
        }),
        { numRuns: 300 },
      );
      if (type === 'sapo' || type === 'unclipped') expect(binding).toBe(0);
      else expect(binding).toBeGreaterThan(50);
    });
  }

  it('GSPO itself (eq. 5 and 7): the mean over sequences of the clipped sequence ratio, slopes through the mean', () => {
    fc.assert(
      fc.property(
        anyBatch,
        fc.array(fc.integer({ min: -200, max: 200 }), { minLength: 3, maxLength: 3 }),
        (some, As) => {
          const sequences = [...new Set(some.sequence)];
          const lengthOf = (s: number) => some.sequence.filter((other) => other === s).length;
          const batch: LossBatch = {
            ...some,
            advantage: some.sequence.map((s) => As[s]! / 100),
            weight: some.sequence.map((s) => 1 / (sequences.length * lengthOf(s))),
          };
          const eq5 = (x: readonly number[]) =>
            -sequences.reduce((sum, s) => {
              const ratio = Math.exp(meanLogRatio(batch, x, batch.sequence.indexOf(s)));
              const A = As[s]! / 100;
              return sum + Math.min(ratio * A, clip(ratio, 0.1, 0.15) * A);
            }, 0) / sequences.length;
          const got = computePolicyLoss(batch, { type: 'gspo', clipLow: 0.1, clipHigh: 0.15 });
          expect(got.loss).toBeCloseTo(eq5(batch.logprob), 9);
          for (const [i, slope] of slopesOf(eq5, batch.logprob).entries()) {
            expect(Math.abs(got.slopes[i]! - slope)).toBeLessThanOrEqual(1e-6 * (1 + Math.abs(slope)));
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe('policy losses by hand', () => {
  const log = (...ps: number[]) => ps.map(Math.log);
  /** Two tokens of one sequence: ratios 2 and 1/2, advantages 1 and −2. */
  const batch: LossBatch = {
    logprob: log(0.4, 0.2),
    old: log(0.2, 0.4),
    advantage: [1, -2],
    weight: [0.5, 0.5],
    sequence: [0, 0],
  };
  const byHand: readonly (readonly [PolicyLossConfig, number, readonly number[], number | undefined])[] = [
    // −½·min(2, 1.28) − ½·min(½·−2, 0.8·−2): both clipped, no slope
    [{ type: 'ppo_clip' }, -0.64 + 0.8, [0, 0], 1],
    // the geometric mean of 2 and ½ is 1: −½·1 + ½·2; slopes −½·A
    [{ type: 'gspo', clipLow: 3e-4, clipHigh: 4e-4 }, 0.5, [-0.5, 1], 0],
    // weights held in [0.9, 1.1]: −½·1.1·1·log 0.4 + ½·0.9·2·log 0.2
    [{ type: 'cispo', clipLow: 0.1, clipHigh: 0.1 }, -0.55 * Math.log(0.4) + 0.9 * Math.log(0.2), [-0.55, 0.9], 1],
    // both moved by 0.2, more than 0.1 and no more than 0.3
    [{ type: 'dppo_tv', deltaLow: 0.3, deltaHigh: 0.1 }, 0.5, [0, 0.5], 0.5],
    [{ type: 'unclipped' }, -1 + 0.5, [-1, 0.5], undefined],
  ];
  it.each(byHand)('%o', (config, loss, slopes, clipFraction) => {
    const got = computePolicyLoss(batch, config);
    expect(got.loss).toBeCloseTo(loss, 12);
    for (const [i, slope] of slopes.entries()) expect(got.slopes[i]).toBeCloseTo(slope, 12);
    if (clipFraction === undefined) expect(got.clipFraction).toBeUndefined();
    else expect(got.clipFraction).toBeCloseTo(clipFraction, 12);
  });

  it('SAPO at r = 1: −2A/τ, with the slope −A of PPO', () => {
    const still = { ...batch, logprob: batch.old };
    const got = computePolicyLoss(still, { type: 'sapo', tauPositive: 1, tauNegative: 2 });
    expect(got.loss).toBeCloseTo(0.5 * -2 + 0.5 * 2, 12);
    expect(got.slopes[0]).toBeCloseTo(-0.5, 12);
    expect(got.slopes[1]).toBeCloseTo(1, 12);
  });

  it('DPPO by KL: from 0.2 to 0.4 it is 0.2·log ½ + 0.8·log(4/3) = 0.0915 nats', () => {
    const kl = 0.2 * Math.log(0.5) + 0.8 * Math.log(0.8 / 0.6);
    const within = computePolicyLoss(batch, { type: 'dppo_kl', deltaLow: 1, deltaHigh: kl + 1e-6 });
    const beyond = computePolicyLoss(batch, { type: 'dppo_kl', deltaLow: 1, deltaHigh: kl - 1e-6 });
    expect([within.clipFraction, beyond.clipFraction]).toEqual([0, 0.5]);
    expect(within.slopes[0]).toBeCloseTo(-1, 12);
    expect(beyond.slopes[0]).toBeCloseTo(0, 12);
  });

  it('a certain action is no number that breaks: π = 1 before, after, or both', () => {
    for (const [logprob, old] of [
      [0, 0],
      [0, -3],
      [-3, 0],
    ] as const) {
      const one = { logprob: [logprob], old: [old], advantage: [1], weight: [1], sequence: [0] };
      for (const { config } of Object.values(twins)) {
        const { loss, slopes } = computePolicyLoss(one, config);
        expect(Number.isFinite(loss) && slopes.every(Number.isFinite), config.type).toBe(true);
      }
    }
  });
});
