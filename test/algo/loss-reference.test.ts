/** The reference losses themselves: values by hand, gradients against central differences. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  categorical,
  clippedSurrogate,
  clippedValueLoss,
  dpoLoss,
  klTerm,
  type LossDecision,
  likelihoodLoss,
  policyLoss,
} from '../support/loss-reference.ts';

const real = fc.double({ min: -3, max: 3, noNaN: true });
const step = 1e-5;

/** (f(x + h) − f(x − h)) / 2h. */
function slopeOf(f: (x: number) => number, x: number): number {
  return (f(x + step) - f(x - step)) / (2 * step);
}

/** Whether f bends between x − h and x + h, where no difference quotient means anything. */
function kink(f: (x: number) => number, x: number): boolean {
  const left = (f(x) - f(x - step)) / step;
  const right = (f(x + step) - f(x)) / step;
  return Math.abs(left - right) > 1e-2 * (1 + Math.abs(left) + Math.abs(right));
}

describe('reference losses', () => {
  const clip = { clipLow: 0.2, clipHigh: 0.28 };

  it.each([
    // ratio, advantage, value, slope
    [1.1, 2, -2.2, -2.2],
    [1.5, 2, -2.56, 0], // held at 1.28
    [1.5, -2, 3, 3], // a bad action grown likelier is always pushed back
    [0.5, -2, 1.6, 0], // held at 0.8
    [0.5, 2, -1, -1],
    [1, 0, -0, -0],
  ])('clipped surrogate at ratio %d, advantage %d', (ratio, advantage, value, slope) => {
    const got = clippedSurrogate(Math.log(ratio), 0, advantage, clip);
    expect(got.value).toBeCloseTo(value, 12);
    expect(got.slope).toBeCloseTo(slope, 12);
  });

  it.each([
    // value, old, target, loss, slope
    [1, 1, 3, 2, -2],
    [2, 1, 3, 1.62, 0], // held at 1.2: the worse of the two
    [2, 1, 0, 2, 2], // free is worse: no help from the clip
    [0, 1, 3, 4.5, -3],
  ])('value loss at %d, old %d, target %d', (value, old, target, loss, slope) => {
    const got = clippedValueLoss(value, old, target, 0.2);
    expect(got.value).toBeCloseTo(loss, 12);
    expect(got.slope).toBeCloseTo(slope, 12);
  });

  it('every slope equals the central difference of its value', () => {
    fc.assert(
      fc.property(real, real, real, real, (x, y, a, b) => {
        const functions: ((z: number) => { readonly value: number; readonly slope: number })[] = [
          (z) => clippedSurrogate(z, y, a, clip),
          (z) => clippedValueLoss(z, y, a, Math.abs(b)),
          (z) => klTerm('k1', z, y),
          (z) => klTerm('k2', z, y),
          (z) => klTerm('k3', z, y),
          (z) => dpoLoss(z, y, a, b, 0.5),
        ];
        for (const [i, f] of functions.entries()) {
          const value = (z: number) => f(z).value;
          if (!kink(value, x)) {
            const want = slopeOf(value, x);
            expect(Math.abs(f(x).slope - want), `function ${i}`).toBeLessThan(1e-5 * (1 + Math.abs(want)));
          }
        }
      }),
    );
  });

  it('categorical: log-probability, entropy and their slopes by every logit', () => {
    expect(categorical([0, 0, 0, 0], 1)).toMatchObject({ logprob: -Math.log(4), entropy: Math.log(4) });
    const logits = fc.array(real, { minLength: 2, maxLength: 5 });
    fc.assert(
      fc.property(logits, fc.nat(), (z, pick) => {
        const choice = pick % z.length;
        const got = categorical(z, choice);
        for (let c = 0; c < z.length; c++) {
          const at = (x: number) => categorical(z.with(c, x), choice);
          expect(got.logprobSlopes[c]).toBeCloseTo(
            slopeOf((x) => at(x).logprob, z[c]!),
            7,
          );
          expect(got.entropySlopes[c]).toBeCloseTo(
            slopeOf((x) => at(x).entropy, z[c]!),
            7,
          );
        }
      }),
    );
    const masked = categorical([1, Number.NEGATIVE_INFINITY, 1], 0);
    expect(masked.logprob).toBeCloseTo(-Math.LN2, 12);
    expect(masked.entropy).toBeCloseTo(Math.LN2, 12);
    expect(Math.abs(masked.logprobSlopes[1]!) + Math.abs(masked.entropySlopes[1]!)).toBe(0);
  });

  it('the whole loss and its slopes by every argument', () => {
    const coefficients = { ...clip, entropyCoef: 0.01, valueCoef: 0.5, valueClip: 0.3, klCoef: 0.1 };
    const unit = fc.double({ min: 0, max: 1, noNaN: true });
    const one: fc.Arbitrary<LossDecision> = fc.record({
      logprob: real,
      oldLogprob: real,
      referenceLogprob: real,
      entropy: unit,
      advantage: real,
      weight: unit,
      value: real,
      oldValue: real,
      target: real,
      valueWeight: unit,
    });
    fc.assert(
      fc.property(fc.array(one, { minLength: 1, maxLength: 4 }), (decisions) => {
        const got = policyLoss(decisions, coefficients);
        for (const [i, decision] of decisions.entries()) {
          for (const key of ['logprob', 'entropy', 'value'] as const) {
            const f = (x: number) => policyLoss(decisions.with(i, { ...decision, [key]: x }), coefficients).loss;
            if (kink(f, decision[key])) continue;
            const want = slopeOf(f, decision[key]);
            expect(Math.abs(got.slopes[i]![key] - want), key).toBeLessThan(1e-4 * (1 + Math.abs(want)));
          }
        }
      }),
    );
  });

  it('supervised and preference losses by hand', () => {
    const two = [
      { logprob: -1, weight: 0.5 },
      { logprob: -3, weight: 0.25 },
    ];
    expect(likelihoodLoss(two)).toEqual({ loss: 1.25, slopes: [-0.5, -0.25] });
    expect(dpoLoss(-1, -1, -1, -1, 0.1).value).toBeCloseTo(Math.LN2, 12);
    expect(dpoLoss(-1, -5, -3, -3, 0.5)).toEqual({
      value: expect.closeTo(Math.log(1 + Math.exp(-2)), 12),
      slope: expect.closeTo(-0.5 / (1 + Math.exp(2)), 12),
    });
    expect(dpoLoss(-2000, 0, 0, 0, 1).value).toBe(2000); // no overflow
  });
});
