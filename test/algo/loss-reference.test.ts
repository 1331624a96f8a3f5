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

const step = 1e-5;

/**
 * Multiples of 0.01, moved by `offset`. The offsets are such that no two arguments meet where a loss has a kink (a
 * clip that starts to bind, two branches of equal size): there a difference quotient means nothing.
 */
const grid = (offset: number) => fc.integer({ min: -300, max: 300 }).map((n) => n / 100 + offset);
const x = grid(0);
const y = grid(0.003537);
const target = grid(0.0017);
const width = fc.integer({ min: 0, max: 300 }).map((n) => n / 100 + 0.0011);

/** (f(x + h) − f(x − h)) / 2h. */
function slopeOf(f: (x: number) => number, x: number): number {
  return (f(x + step) - f(x - step)) / (2 * step);
}

describe('reference losses', () => {
  const clip = { clipLow: 0.2, clipHigh: 0.28 };

  it.each([
    // ratio, advantage, value, slope, clipped
    [1.1, 2, -2.2, -2.2, false],
    [1.25, 2, -2.5, -2.5, false], // clip-higher: still free above 1.2
    [1.5, 2, -2.56, 0, true], // held at 1.28
    [1.5, -2, 3, 3, false], // a bad action grown likelier is always pushed back
    [0.5, -2, 1.6, 0, true], // held at 0.8
    [0.5, 2, -1, -1, false],
    [0.5, 0, 0, 0, false],
  ])('clipped surrogate at ratio %d, advantage %d', (ratio, advantage, value, slope, clipped) => {
    const got = clippedSurrogate(Math.log(ratio), 0, advantage, clip);
    expect(got.value).toBeCloseTo(value, 12);
    expect(got.slope).toBeCloseTo(slope, 12);
    expect(got.clipped).toBe(clipped);
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
      fc.property(x, y, target, width, (at, old, a, b) => {
        const functions: ((z: number) => { readonly value: number; readonly slope: number })[] = [
          (z) => clippedSurrogate(z, old, a, clip),
          (z) => clippedValueLoss(z, old, a, b),
          (z) => klTerm('k1', z, old),
          (z) => klTerm('k2', z, old),
          (z) => klTerm('k3', z, old),
          (z) => dpoLoss(z, old, a, b, 0.5),
        ];
        for (const [i, f] of functions.entries()) {
          const want = slopeOf((z) => f(z).value, at);
          expect(Math.abs(f(at).slope - want), `function ${i}`).toBeLessThan(1e-6 * (1 + Math.abs(want)));
        }
      }),
      { numRuns: 1000 },
    );
  });

  it('categorical: log-probability, entropy and their slopes by every logit', () => {
    expect(categorical([0, 0, 0, 0], 1)).toMatchObject({ logprob: -Math.log(4), entropy: Math.log(4) });
    const logits = fc.array(x, { minLength: 2, maxLength: 5 });
    fc.assert(
      fc.property(logits, fc.nat(), (z, pick) => {
        const choice = pick % z.length;
        const got = categorical(z, choice);
        for (let c = 0; c < z.length; c++) {
          const at = (to: number) => categorical(z.with(c, to), choice);
          expect(got.logprobSlopes[c]).toBeCloseTo(
            slopeOf((to) => at(to).logprob, z[c]!),
            7,
          );
          expect(got.entropySlopes[c]).toBeCloseTo(
            slopeOf((to) => at(to).entropy, z[c]!),
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
    const kl = { klCoef1: 0.03, klCoef2: 0.07, klCoef3: 0.1 };
    const coefficients = { ...clip, entropyCoef: 0.01, valueCoef: 0.5, valueClip: 0.3, ...kl };
    const unit = fc.double({ min: 0, max: 1, noNaN: true });
    const one: fc.Arbitrary<LossDecision> = fc.record({
      logprob: x,
      oldLogprob: y,
      referenceLogprob: target,
      entropy: unit,
      advantage: target,
      weight: unit,
      value: x,
      oldValue: y,
      target,
      valueWeight: unit,
    });
    fc.assert(
      fc.property(fc.array(one, { minLength: 1, maxLength: 4 }), (decisions) => {
        const got = policyLoss(decisions, coefficients);
        for (const [i, decision] of decisions.entries()) {
          for (const key of ['logprob', 'entropy', 'value'] as const) {
            const f = (to: number) => policyLoss(decisions.with(i, { ...decision, [key]: to }), coefficients).loss;
            const want = slopeOf(f, decision[key]);
            expect(Math.abs(got.slopes[i]![key] - want), key).toBeLessThan(1e-5 * (1 + Math.abs(want)));
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
