/** Drawing from scores, against softmax by hand. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Rng } from '../../src/core/rng.ts';
import { drawFrom, likeliestOf } from '../../src/policy/sampling.ts';

const scores = [Math.log(1), Math.log(2), Math.log(5)]; // softmax: 1/8, 2/8, 5/8
const shares = [1 / 8, 2 / 8, 5 / 8];

describe('a draw', () => {
  it.each([0, 0.5, 1, 3])('at temperature %d reports the log-probability at temperature 1', (temperature) => {
    for (let seed = 0; seed < 20; seed++) {
      const { at, logprob } = drawFrom(scores, temperature, Rng.fromSeed(seed));
      expect(logprob).toBeCloseTo(Math.log(shares[at]!), 12);
    }
  });

  it.each([
    [1, [1 / 8, 2 / 8, 5 / 8]],
    [0.5, [1 / 30, 4 / 30, 25 / 30]], // the weights squared
    [2, [1, Math.SQRT2, Math.sqrt(5)].map((w) => w / (1 + Math.SQRT2 + Math.sqrt(5)))],
  ])('at temperature %d draws from the softmax of scores over it', (temperature, expected) => {
    const rng = Rng.fromSeed(1);
    const counts = [0, 0, 0];
    const draws = 20_000;
    for (let i = 0; i < draws; i++) counts[drawFrom(scores, temperature, rng).at]!++;
    expected.forEach((p, i) => {
      expect(Math.abs(counts[i]! / draws - p)).toBeLessThan(5 * Math.sqrt((p * (1 - p)) / draws));
    });
  });

  it('at temperature 0 takes the first best', () => {
    expect(drawFrom([1, 3, 3, 2], 0, Rng.fromSeed(1)).at).toBe(1);
  });
});

describe('the likeliest alternatives', () => {
  it('are eight at most, likeliest first, with their shares of the softmax in ten-thousandths', () => {
    const score = fc.double({ min: -40, max: 40, noNaN: true });
    fc.assert(
      fc.property(fc.array(score, { minLength: 1, maxLength: 64 }), (listed) => {
        const peak = Math.max(...listed);
        const total = listed.reduce((sum, one) => sum + Math.exp(one - peak), 0);
        const expected = listed
          .map((one, i) => ({ one, i }))
          .sort((a, b) => b.one - a.one || a.i - b.i)
          .slice(0, 8)
          .flatMap(({ one, i }) => [i, Math.round((10_000 * Math.exp(one - peak)) / total)]);
        expect([...likeliestOf(listed)]).toEqual(expected);
      }),
    );
    expect([...likeliestOf(scores)]).toEqual([2, 6250, 1, 2500, 0, 1250]);
  });
});
