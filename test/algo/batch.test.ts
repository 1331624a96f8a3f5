/** Pieces around the estimators: aggregation, dynamic sampling, importance weights, KL. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { aggregationWeights } from '../../src/algo/aggregate.ts';
import { filterBySignal, filtersGroups, hasSignal, isInformative, nextBatch } from '../../src/algo/dynamic-sampling.ts';
import { importance } from '../../src/algo/importance.ts';

import { createKlControl, type KlEstimator, klEstimate, nextKlControl } from '../../src/algo/kl.ts';
import { maskSecondMoment } from '../../src/algo/second-moment.ts';
import { episodeReturn } from '../../src/core/trajectory.ts';
import { group } from '../support/trajectories.ts';

describe('aggregationWeights', () => {
  const tokens = [Int32Array.of(2, 3), Int32Array.of(1), Int32Array.of(4)];
  const trained = [Uint8Array.of(1, 1), Uint8Array.of(1), Uint8Array.of(0)];
  const lists = (rows: Float64Array[]) => rows.map((row) => Array.from(row));

  it('hand-computed: six trained tokens in two trajectories, a third one masked', () => {
    expect(lists(aggregationWeights(tokens, trained, { type: 'token-mean' }))).toEqual([[1 / 6, 1 / 6], [1 / 6], [0]]);
    expect(lists(aggregationWeights(tokens, trained, { type: 'sequence-mean' }))).toEqual([
      [1 / 10, 1 / 10],
      [1 / 2],
      [0],
    ]);
    const constant = aggregationWeights(tokens, trained, { type: 'constant', tokens: 8 });
    // Dr. GRPO's 1/(N·tokens): the masked trajectory is one of the three all the same.
    expect(lists(constant)).toEqual([[1 / 24, 1 / 24], [1 / 24], [0]]);
  });

  it('the means weigh 1 in total, and every trained trajectory the same under sequence-mean', () => {
    const row = fc.array(fc.tuple(fc.integer({ min: 1, max: 9 }), fc.boolean()), { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(fc.array(row, { minLength: 1, maxLength: 6 }), (batch) => {
        fc.pre(batch.flat().some(([, t]) => t));
        const counts = batch.map((r) => Int32Array.from(r, ([n]) => n));
        const mask = batch.map((r) => Uint8Array.from(r, ([, t]) => Number(t)));
        const sums = (type: 'token-mean' | 'sequence-mean') =>
          aggregationWeights(counts, mask, { type }).map((w, i) => w.reduce((s, x, d) => s + x * counts[i]![d]!, 0));
        const sequence = sums('sequence-mean');
        expect(sums('token-mean').reduce((a, b) => a + b)).toBeCloseTo(1, 10);
        expect(sequence.reduce((a, b) => a + b)).toBeCloseTo(1, 10);
        const live = sequence.filter((s) => s > 0);
        for (const share of live) expect(share).toBeCloseTo(1 / live.length, 10);
      }),
    );
  });

  it('with nothing trained every weight is 0, and bad input is named', () => {
    for (const type of ['token-mean', 'sequence-mean'] as const) {
      expect(lists(aggregationWeights([Int32Array.of(3)], [Uint8Array.of(0)], { type }))).toEqual([[0]]);
    }
    expect(() => aggregationWeights(tokens, [], { type: 'token-mean' })).toThrow(/trained\[0\]/);
    expect(() => aggregationWeights(tokens, trained, { type: 'constant', tokens: 0 })).toThrow('aggregation.tokens');
  });
});

describe('dynamic sampling', () => {
  it('keeps groups whose scores differ, in order', () => {
    const groups = [
      [0, 0],
      [0, 1],
      [1, 1],
      [0.2, 0.1],
    ].map((scores, i) =>
      group(
        scores.map((reward) => ({ turns: [{ reward }] })),
        i,
      ),
    );
    const { kept, filtered } = filterBySignal(groups, (one) => one.trajectories.map(episodeReturn));
    expect(kept.map((one) => one.group)).toEqual([1, 3]);
    expect(filtered.map((one) => one.group)).toEqual([0, 2]);
  });

  it('counts rounding as equality, and values that are not finite as a signal', () => {
    expect(hasSignal([0.1 + 0.2, 0.3])).toBe(false);
    expect(hasSignal([0, 1e-6])).toBe(true);
    expect(hasSignal([5])).toBe(false);
    expect(hasSignal([Number.NaN, Number.NaN])).toBe(true);
    expect(hasSignal([Infinity, Infinity])).toBe(true);
  });
});

describe('refilling a batch', () => {
  const scored = (scores: readonly number[], i: number, end: 'terminated' | 'truncated' = 'terminated') =>
    group(
      scores.map((reward) => ({ turns: [{ reward }], end })),
      i,
    );
  const flat = (i: number) => scored([1, 1], i);
  const rich = (i: number) => scored([0, 1], i);
  const filtering = {
    filterGroups: true,
    estimator: {
      algorithm: 'grpo',
      std: true,
      credit: 'trajectory',
      gamma: 1,
      truncation: 'terminal',
      aggregation: { type: 'token-mean' },
    },
  } as const;
  const next = (waiting: ReturnType<typeof group>[], groupsPerUpdate: number, oversampling: number) =>
    nextBatch(waiting, { groupsPerUpdate, oversampling }, (one) => isInformative(one, filtering))?.map(
      (one) => one.group,
    );

  it('takes groups until enough have a signal, those without one included', () => {
    expect(next([rich(0), flat(1), flat(2)], 2, 3)).toBeUndefined();
    expect(next([rich(0), flat(1), flat(2), rich(3)], 2, 3)).toEqual([0, 1, 2, 3]);
    expect(next([rich(0), rich(1), rich(2)], 2, 3)).toEqual([0, 1]);
  });

  it('never takes more than the bound, and at 1 replaces nothing', () => {
    const solved = Array.from({ length: 7 }, (_, i) => flat(i));
    expect(next(solved.slice(0, 5), 2, 3)).toBeUndefined();
    expect(next(solved, 2, 3)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(next(solved, 2, 1)).toEqual([0, 1]);
    expect(next([flat(0)], 2, 1)).toBeUndefined();
  });

  it('is the shortest start of what waits that is full, or as long as the bound', () => {
    fc.assert(
      fc.property(
        fc.array(fc.boolean(), { maxLength: 20 }),
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 1, max: 4 }),
        (signals, size, times) => {
          const waiting = signals.map((signal, i) => (signal ? rich(i) : flat(i)));
          const starts = signals.map((_, i) => signals.slice(0, i + 1));
          const full = starts.find((one) => one.filter(Boolean).length >= size || one.length >= size * times);
          expect(next(waiting, size, times)).toEqual(full?.map((_, i) => i));
        },
      ),
    );
  });

  it('counts as informative groups that are not compared, and those that must be measured first', () => {
    const { estimator } = filtering;
    const bootstrap = { ...filtering, estimator: { ...estimator, truncation: 'bootstrap' } } as const;
    expect(isInformative(flat(0), filtering)).toBe(false);
    expect(isInformative(flat(0), { ...filtering, filterGroups: false })).toBe(true);
    expect(isInformative(flat(0), { ...filtering, estimator: { ...estimator, credit: 'turn' } })).toBe(true);
    expect(isInformative(flat(0), { ...filtering, kl: { in: 'reward' } })).toBe(true);
    expect(isInformative(flat(0), { ...filtering, kl: { in: 'loss' } })).toBe(false);
    expect(isInformative(flat(0), bootstrap)).toBe(false);
    expect(isInformative(scored([1, 1], 0, 'truncated'), bootstrap)).toBe(true);
    const { std: _, credit: __, ...common } = estimator;
    expect(filtersGroups({ ...filtering, estimator: { ...common, algorithm: 'reinforce_pp', baseline: 'none' } })).toBe(
      false,
    );
  });
});

function expectWeights(got: Float64Array, want: readonly number[]): void {
  expect(got).toHaveLength(want.length);
  for (const [k, weight] of want.entries()) expect(got[k], `[${k}]`).toBeCloseTo(weight, 9);
}

describe('maskSecondMoment', () => {
  it('hand-computed: of what moves on outwards the largest go, until the mean square is within the threshold', () => {
    //            away    away   back   inwards away(A<0) not trained
    const moved = [0.2, 0.4, -0.9, 0.9, -0.3, 2];
    const advantages = [1, 2, 1, -1, -1, 0];
    const zeros = moved.map(() => 0);
    // Squares 0.04, 0.09, 0.16: means 0.04, 0.065, 0.0967.
    expectWeights(maskSecondMoment(moved, zeros, advantages, 0.07).weights, [1, 0, 1, 1, 1, 1]);
    expectWeights(maskSecondMoment(moved, zeros, advantages, 0.05).weights, [1, 0, 1, 1, 0, 1]);
    expectWeights(maskSecondMoment(moved, zeros, advantages, 0.01).weights, [0, 0, 1, 1, 0, 1]);
    const { weights, stats } = maskSecondMoment(moved, zeros, advantages, 0.1);
    expectWeights(weights, [1, 1, 1, 1, 1, 1]);
    expect(stats.truncatedShare).toBe(0);
  });

  it('equals a twin that takes the largest away one by one', () => {
    const token = fc.tuple(fc.double({ min: -2, max: 2, noNaN: true }), fc.double({ min: -1, max: 1, noNaN: true }));
    const threshold = fc.double({ min: 1e-3, max: 2, noNaN: true });
    fc.assert(
      fc.property(fc.array(token, { maxLength: 12 }), threshold, (tokens, most) => {
        const moved = tokens.map(([x]) => x);
        fc.pre(new Set(moved.map(Math.abs)).size === moved.length);
        let kept = tokens.flatMap(([x, A], i) => ((A > 0 && x > 0) || (A < 0 && x < 0) ? [i] : []));
        const masked = new Set<number>();
        const tooMuch = () => kept.reduce((sum, i) => sum + moved[i]! ** 2, 0) / kept.length > most;
        while (kept.length > 0 && tooMuch()) {
          const largest = kept.reduce((a, b) => (Math.abs(moved[a]!) > Math.abs(moved[b]!) ? a : b));
          masked.add(largest);
          kept = kept.filter((i) => i !== largest);
        }
        const behaviour = moved.map((_, i) => -i);
        const learner = moved.map((x, i) => x - i);
        fc.pre(learner.every((x, i) => Math.sign(x - behaviour[i]!) === Math.sign(moved[i]!)));
        const got = maskSecondMoment(
          learner,
          behaviour,
          tokens.map(([, A]) => A),
          most,
        );
        expect(Array.from(got.weights)).toEqual(tokens.map((_, i) => (masked.has(i) ? 0 : 1)));
      }),
      { numRuns: 500 },
    );
  });

  it('refuses what does not fit', () => {
    expect(() => maskSecondMoment([0], [0, 0], [1], 1)).toThrow(/must be \[1\], got \[2\] and \[1\]/);
    expect(() => maskSecondMoment([0], [0], [1], 0)).toThrow('offPolicy.threshold');
  });
});

describe('importance', () => {
  const log = (...xs: number[]) => xs.map(Math.log);

  it('hand-computed per token: capped from above only', () => {
    const { weights, stats } = importance(log(0.4, 0.1, 0.5), log(0.1, 0.4, 0.5), 2);
    expect(Array.from(weights).map((w) => Math.round(w * 1e9) / 1e9)).toEqual([2, 0.25, 1]);
    expect(stats).toMatchObject({ tokens: 3 });
    expect(stats.mean).toBeCloseTo((4 + 0.25 + 1) / 3, 9);
    expect([stats.least, stats.largest]).toEqual([expect.closeTo(0.25, 9), expect.closeTo(4, 9)]);
    expect(stats.truncatedShare).toBeCloseTo(1 / 3, 9);
    expect(stats.effectiveShare).toBeCloseTo(3.25 ** 2 / (3 * (4 + 0.0625 + 1)), 9);
    expect(stats.k1).toBeCloseTo(0, 9); // ln 4 and −ln 4 cancel
    expect(stats.k3).toBeCloseTo((3 - Math.log(4) + (-0.75 + Math.log(4))) / 3, 9);
  });

  it('k1 and k3 are of the behaviour against the learner', () => {
    const { stats } = importance(log(0.4), log(0.1), 2);
    expect(stats.k1).toBeCloseTo(-Math.log(4), 9);
    expect(stats.k3).toBeCloseTo(4 - 1 - Math.log(4), 9);
  });

  it('a segment shares the product of its ratios', () => {
    const { weights, stats } = importance(log(0.4, 0.2, 0.3), log(0.2, 0.2, 0.1), 2.5, [2, 1]);
    expect(Array.from(weights).map((w) => Math.round(w * 1e9) / 1e9)).toEqual([2, 2, 2.5]);
    expect(stats.truncatedShare).toBeCloseTo(1 / 3, 9);
    expect(stats.mean).toBeCloseTo((2 + 2 + 3) / 3, 9); // before truncation
    expect([stats.least, stats.largest]).toEqual([expect.closeTo(2, 9), expect.closeTo(3, 9)]);
    expect(stats.effectiveShare).toBeCloseTo((2 + 2 + 2.5) ** 2 / (3 * (4 + 4 + 6.25)), 9);
  });

  it('a ratio at the cap is not truncated, and an empty segment counts nothing', () => {
    const { stats } = importance(log(0.4, 0.2), log(0.2, 0.2), 2, [1, 0, 1]);
    expect(stats).toMatchObject({ truncatedShare: 0, least: expect.closeTo(1, 9), tokens: 2 });
    const doubled = importance(log(0.4, 0.4), log(0.2, 0.2), 3, [1, 0, 1]);
    expect(doubled.stats).toMatchObject({ least: expect.closeTo(2, 9), largest: expect.closeTo(2, 9) });
  });

  it('on-policy everything is 1', () => {
    const rows = fc.array(fc.double({ min: -20, max: 0, noNaN: true }), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(rows, (logprobs) => {
        const { weights, stats } = importance(logprobs, logprobs, 2);
        expect(weights.every((w) => w === 1)).toBe(true);
        expect(stats).toMatchObject({ least: 1, largest: 1, truncatedShare: 0, k1: 0, k3: 0 });
        expect(stats.effectiveShare).toBeCloseTo(1, 12);
      }),
    );
  });

  it('refuses what does not fit', () => {
    expect(() => importance([0], [0, 0], 2)).toThrow(/behaviour must be \[1\]/);
    expect(() => importance([0, 0], [0, 0], 2, [1])).toThrow(/sum to 2, got 1/);
    expect(() => importance([0], [0], 0.5)).toThrow('importance.cap');
    expect(() => importance([0], [0], 2, undefined, { low: 2 })).toThrow('importance.low');
  });

  it('masked: a ratio outside the bounds weighs 0, one on a bound is kept', () => {
    const { weights, stats } = importance(log(0.6, 0.1, 0.4, 0.05), log(0.1, 0.4, 0.2, 0.1), 5, undefined, {
      low: 0.4,
      mask: true,
    });
    // Ratios 6, ¼, 2, ½.
    expectWeights(weights, [0, 0, 2, 0.5]);
    expect(stats.truncatedShare).toBe(0.5);
    expect(stats.effectiveShare).toBeCloseTo(2.5 ** 2 / (4 * 4.25), 9);
    expect(importance([-1], [-1], 1, undefined, { low: 1, mask: true }).weights[0]).toBe(1);
    const all = importance(log(0.6), log(0.1), 5, undefined, { mask: true });
    expect([all.weights[0], all.stats.effectiveShare]).toEqual([0, 0]);
  });

  it('by the geometric mean a segment of ratios 4 and 1 has 2, and equal ones keep theirs', () => {
    const { weights } = importance(log(0.4, 0.2, 0.6, 0.6), log(0.1, 0.2, 0.2, 0.2), 100, [2, 2], {
      geometricMean: true,
    });
    expectWeights(weights, [2, 2, 3, 3]);
  });

  it('equals a twin for any bounds, mask and mean', () => {
    const token = fc.tuple(fc.double({ min: -3, max: 0, noNaN: true }), fc.double({ min: -3, max: 0, noNaN: true }));
    const segment = fc.array(token, { minLength: 1, maxLength: 4 });
    const bounds = fc.record({
      cap: fc.double({ min: 1, max: 5, noNaN: true }),
      low: fc.double({ min: 0, max: 1, noNaN: true }),
      mask: fc.boolean(),
      geometricMean: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(segment, { minLength: 1, maxLength: 5 }), bounds, (segments, { cap, ...options }) => {
        const tokens = segments.flat();
        const got = importance(
          tokens.map(([now]) => now),
          tokens.map(([, before]) => before),
          cap,
          segments.map(({ length }) => length),
          options,
        );
        const want = segments.flatMap((own) => {
          const product = own.reduce((p, [now, before]) => (p * Math.exp(now)) / Math.exp(before), 1);
          const ratio = options.geometricMean ? product ** (1 / own.length) : product;
          fc.pre(Math.abs(ratio - cap) > 1e-9 && Math.abs(ratio - options.low) > 1e-9);
          const isKept = !options.mask || (ratio >= options.low && ratio <= cap);
          return own.map(() => (isKept ? Math.min(ratio, cap) : 0));
        });
        for (const [k, weight] of want.entries())
          expect(Math.abs(got.weights[k]! - weight)).toBeLessThan(1e-9 * (1 + weight));
      }),
    );
  });
});

describe('kl', () => {
  it('hand-computed', () => {
    const [p, q] = [Math.log(0.5), Math.log(0.25)];
    expect(klEstimate('k1', p, q)).toBeCloseTo(Math.LN2, 12);
    expect(klEstimate('k2', p, q)).toBeCloseTo(Math.LN2 ** 2 / 2, 12);
    expect(klEstimate('k3', p, q)).toBeCloseTo(0.5 - 1 + Math.LN2, 12);
  });

  it('k1 and k3 have the KL as expectation, k2 half the second moment; k2 and k3 are never negative', () => {
    const weights = fc.array(fc.double({ min: 0.05, max: 1, noNaN: true }), { minLength: 4, maxLength: 4 });
    const normalised = weights.map((w) => w.map((x) => x / w.reduce((a, b) => a + b)));
    fc.assert(
      fc.property(normalised, normalised, (p, q) => {
        const kl = p.reduce((sum, x, i) => sum + x * Math.log(x / q[i]!), 0);
        const mean = (k: KlEstimator) =>
          p.reduce((sum, x, i) => sum + x * klEstimate(k, Math.log(x), Math.log(q[i]!)), 0);
        expect(mean('k1')).toBeCloseTo(kl, 10);
        expect(mean('k3')).toBeCloseTo(kl, 10);
        expect(mean('k2')).toBeCloseTo(
          p.reduce((s, x, i) => s + (x * Math.log(x / q[i]!) ** 2) / 2, 0),
          10,
        );
        for (const [i, x] of p.entries()) {
          for (const k of ['k2', 'k3'] as const)
            expect(klEstimate(k, Math.log(x), Math.log(q[i]!))).toBeGreaterThanOrEqual(-1e-15);
        }
      }),
    );
  });

  it('a fixed coefficient stays; an adaptive one follows the error, clipped, and stays positive', () => {
    const fixed = createKlControl({ type: 'fixed', coefficient: 0.1 });
    expect(nextKlControl(fixed, 99, 10)).toBe(fixed);
    const adaptive = createKlControl({ type: 'adaptive', coefficient: 0.1, target: 6, window: 100 });
    expect(nextKlControl(adaptive, 6, 50).coefficient).toBe(0.1);
    expect(nextKlControl(adaptive, 6.6, 50).coefficient).toBeCloseTo(0.1 * 1.05, 12);
    expect(nextKlControl(adaptive, 600, 50).coefficient).toBeCloseTo(0.1 * 1.1, 12);
    expect(nextKlControl(adaptive, 0, 50).coefficient).toBeCloseTo(0.1 * 0.9, 12);
    expect(nextKlControl(adaptive, 0, 1e9).coefficient).toBeCloseTo(0.08, 12);
    expect(nextKlControl(adaptive, Number.NaN, 50)).toBe(adaptive);
  });

  it('an adaptive coefficient settles where the KL meets its target', () => {
    let state = createKlControl({ type: 'adaptive', coefficient: 1, target: 2, window: 10 });
    for (let i = 0; i < 200; i++) state = nextKlControl(state, 0.5 / state.coefficient, 10); // KL falls as β rises
    expect(state.coefficient).toBeCloseTo(0.25, 3);
  });

  it('names what is out of range', () => {
    expect(() => createKlControl({ type: 'fixed', coefficient: -1 })).toThrow('kl.coefficient');
    expect(() => createKlControl({ type: 'adaptive', coefficient: 1, target: 0, window: 1 })).toThrow('kl.target');
    expect(() => createKlControl({ type: 'adaptive', coefficient: 1, target: 1, window: 0 })).toThrow('kl.window');
  });
});
