/** Drawing from scores, against softmax by hand. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { TokenSampling } from '../../src/core/model-call.ts';
import { Rng } from '../../src/core/rng.ts';
import { drawFrom, likeliestOf, penalise, truncate } from '../../src/policy/sampling.ts';

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

/** Distribution after each step, as transformers computes it: what a step leaves out has probability 0. */
function truncateNaively(scores: readonly number[], temperature: number, settings: TokenSampling) {
  const { topK = Infinity, topP = 1, minP = 0 } = settings;
  /** Distances of a comparison to its border: rounding may decide those of 0. */
  const margins: number[] = [];
  const normalise = (weights: readonly number[]) => {
    const total = weights.reduce((sum, one) => sum + one, 0);
    return weights.map((one) => one / total);
  };
  let p = normalise(scores.map((one) => Math.exp(one / temperature)));
  p = normalise(p.map((one, i) => (scores.filter((other) => other > scores[i]!).length < topK ? one : 0)));
  if (topP < 1) {
    const isBefore = (j: number, i: number) => p[j]! > p[i]! || (p[j] === p[i] && j < i);
    const before = p.map((_, i) => p.reduce((sum, one, j) => sum + (isBefore(j, i) ? one : 0), 0));
    margins.push(...before.filter((_, i) => p[i]! > 0).map((mass) => Math.abs(mass - topP)));
    p = normalise(p.map((one, i) => (before[i]! < topP ? one : 0)));
  }
  const peak = Math.max(...p);
  if (minP > 0) margins.push(...p.filter((one) => one < peak).map((one) => Math.abs(one / peak - minP)));
  p = p.map((one) => (one >= minP * peak ? one : 0));
  return { left: p.flatMap((one, i) => (one > 0 ? [i] : [])), isClear: Math.min(...margins) > 1e-9 };
}

describe('truncation', () => {
  const settings = fc.record(
    {
      topK: fc.integer({ min: 1, max: 30 }),
      topP: fc.double({ min: 0.01, max: 1, noNaN: true }),
      minP: fc.double({ min: 0, max: 1, noNaN: true }),
    },
    { requiredKeys: [] },
  );
  // Quarters, so that many scores are equal, and others far apart.
  const listed = fc.array(fc.integer({ min: -60, max: 60 }), { minLength: 1, maxLength: 40 });

  it('keeps what a naive implementation keeps, step by step', () => {
    let compared = 0;
    fc.assert(
      fc.property(listed, settings, fc.constantFrom(0.5, 1, 2), (quarters, given, temperature) => {
        const values = quarters.map((one) => one / 4);
        const { left, isClear } = truncateNaively(values, temperature, given);
        if (!isClear) return;
        compared++;
        const kept = truncate(Float32Array.from(values), temperature, given);
        expect([...(kept ?? values.keys())]).toEqual(left);
      }),
      { numRuns: 2000 },
    );
    expect(compared).toBeGreaterThan(500);
  });

  it('keeps at least one, and all where nothing is asked or the best is taken', () => {
    const equal = new Float32Array(5);
    expect(truncate(equal, 1, { topP: 0 })).toEqual(Int32Array.of(0));
    expect(truncate(equal, 1, { topK: 1 })).toEqual(Int32Array.of(0, 1, 2, 3, 4)); // equals of the first
    expect(truncate(equal, 1, { topP: 1, topK: 5, minP: 0 })).toBeUndefined();
    expect(truncate(equal, 0, { topP: 0.1 })).toBeUndefined();
  });

  it('comes after the temperature, and top-p after top-k', () => {
    const weighted = Float32Array.from([0.5, 0.3, 0.2].map(Math.log));
    expect(truncate(weighted, 1, { topP: 0.55 })).toEqual(Int32Array.of(0, 1));
    expect(truncate(weighted, 0.5, { topP: 0.55 })).toEqual(Int32Array.of(0)); // 25 of 38
    expect(truncate(weighted, 1, { topK: 2, topP: 0.6 })).toEqual(Int32Array.of(0)); // 5 of 8
  });

  it('leaves scores that are not finite to the draw, which refuses them', () => {
    expect(truncate(Float32Array.of(0, Number.NaN), 1, { topK: 1 })).toBeUndefined();
  });
});

describe('penalties', () => {
  it('are what a naive implementation takes off', () => {
    const ids = fc.array(fc.nat(7), { maxLength: 12 });
    const penalty = fc.double({ min: -2, max: 2, noNaN: true });
    const repetition = fc.double({ min: 0.1, max: 5, noNaN: true });
    const logits = fc.array(fc.float({ min: -8, max: 8, noNaN: true }), { minLength: 8, maxLength: 8 });
    fc.assert(
      fc.property(logits, ids, ids, penalty, penalty, repetition, (row, prompt, written, presence, frequency, r) => {
        const given = Float32Array.from(row);
        const settings = { presencePenalty: presence, frequencyPenalty: frequency, repetitionPenalty: r };
        const read = [...prompt, ...written];
        const expected = row.map((score, id) => {
          const repeated = !read.includes(id) ? score : score > 0 ? score / r : score * r;
          const count = written.filter((one) => one === id).length;
          return repeated - count * frequency - (count > 0 ? presence : 0);
        });
        const found = penalise(given, settings, { read, written });
        for (const [id, score] of expected.entries()) expect(Math.abs(found[id]! - score)).toBeLessThan(1e-4);
        expect(given).toEqual(Float32Array.from(row));
      }),
    );
  });

  it('that are none copy nothing', () => {
    const given = new Float32Array(3);
    expect(penalise(given, { topP: 0.5, repetitionPenalty: 1 }, { read: [0], written: [0] })).toBe(given);
  });
});
