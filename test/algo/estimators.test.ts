/** Each estimator alone: hand-computed cases and limits. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { gae } from '../../src/algo/gae.ts';
import { stepAdvantage } from '../../src/algo/gigpo.ts';
import { byTurn, groupAdvantage } from '../../src/algo/group-advantage.ts';
import { hierarchicalAdvantage } from '../../src/algo/hgpo.ts';
import { divideByMean } from '../../src/algo/max-rl.ts';
import { passAtKAdvantage } from '../../src/algo/pass-at-k.ts';
import { whiten } from '../../src/algo/reinforce-plus-plus.ts';
import { decisionColumns, returnsToGo } from '../../src/algo/returns.ts';
import { leaveOneOut } from '../../src/algo/rloo.ts';
import { trajectory } from '../support/trajectories.ts';

const f64 = (...values: number[]) => Float64Array.from(values);
const real = fc.double({ min: -5, max: 5, noNaN: true });
const unit = fc.double({ min: 0, max: 1, noNaN: true });

/** Columns of equal length. */
const chain = fc.integer({ min: 1, max: 12 }).chain((D) => {
  const column = (value: fc.Arbitrary<number>) =>
    fc.array(value, { minLength: D, maxLength: D }).map((row) => Float64Array.from(row));
  return fc.record({ rewards: column(real), values: column(real), discounts: column(unit), lambda: unit, final: real });
});

function expectClose(got: ArrayLike<number>, want: ArrayLike<number>, digits = 9): void {
  expect(got.length).toBe(want.length);
  for (let i = 0; i < want.length; i++) expect(got[i], `[${i}]`).toBeCloseTo(want[i]!, digits);
}

describe('returnsToGo', () => {
  it('hand-computed', () => {
    expectClose(returnsToGo(f64(1, 0, 2), f64(0.5, 0.5, 0.5), 0), [1.5, 1, 2]);
    expectClose(returnsToGo(f64(1, 0, 2), f64(0.5, 0.5, 0.5), 8), [2.5, 3, 6]);
  });

  it('equals the forward sum', () => {
    fc.assert(
      fc.property(chain, ({ rewards, discounts, final }) => {
        const naive = rewards.map((_, t) => {
          let [sum, weight] = [0, 1];
          for (let k = t; k < rewards.length; k++) {
            sum += weight * rewards[k]!;
            weight *= discounts[k]!;
          }
          return sum + weight * final;
        });
        expectClose(returnsToGo(rewards, discounts, final), naive);
      }),
    );
  });
});

describe('gae', () => {
  it('hand-computed, terminated and cut', () => {
    const input = { rewards: f64(0, 1), values: f64(0.5, 0.25), discounts: f64(0.5, 0.5), lambda: 0.5 };
    // δ₁ = 1 − 0.25 = 0.75; δ₀ = 0.5·0.25 − 0.5 = −0.375; A₀ = −0.375 + 0.25·0.75
    expectClose(gae({ ...input, final: 0 }), [-0.1875, 0.75]);
    // δ₁ = 1 + 0.5·2 − 0.25 = 1.75; A₀ = −0.375 + 0.25·1.75
    expectClose(gae({ ...input, final: 2 }), [0.0625, 1.75]);
  });

  it('equals the forward sum Σₗ (γλ)ˡ δₜ₊ₗ', () => {
    fc.assert(
      fc.property(chain, ({ rewards, values, discounts, lambda, final }) => {
        const D = rewards.length;
        const delta = rewards.map((r, t) => r + discounts[t]! * (t + 1 < D ? values[t + 1]! : final) - values[t]!);
        const naive = rewards.map((_, t) => {
          let sum = 0;
          for (let l = 0; t + l < D; l++) {
            let weight = lambda ** l;
            for (let j = t; j < t + l; j++) weight *= discounts[j]!;
            sum += weight * delta[t + l]!;
          }
          return sum;
        });
        expectClose(gae({ rewards, values, discounts, lambda, final }), naive);
      }),
    );
  });

  it('λ = 1 is Monte Carlo minus the value, λ = 0 is one-step TD', () => {
    fc.assert(
      fc.property(chain, (input) => {
        const { rewards, values, discounts, final } = input;
        const G = returnsToGo(rewards, discounts, final);
        expectClose(
          gae({ ...input, lambda: 1 }),
          G.map((g, t) => g - values[t]!),
          8,
        );
        const td = rewards.map((r, t) => r + discounts[t]! * (values[t + 1] ?? final) - values[t]!);
        expectClose(gae({ ...input, lambda: 0 }), td);
      }),
    );
  });

  it('is zero where the critic is right', () => {
    fc.assert(
      fc.property(chain, ({ rewards, discounts, lambda, final }) => {
        const values = returnsToGo(rewards, discounts, final);
        expectClose(gae({ rewards, values, discounts, lambda, final }), new Float64Array(rewards.length), 8);
      }),
    );
  });

  it('refuses columns of different lengths', () => {
    const input = { rewards: f64(1, 2), discounts: f64(1, 1), lambda: 1, final: 0 };
    expect(() => gae({ ...input, values: f64(1) })).toThrow(/must be \[2\], got \[1\]/);
    expect(() => returnsToGo(f64(1), f64(), 0)).toThrow(/must be \[1\], got \[0\]/);
  });
});

describe('groupAdvantage', () => {
  it('hand-computed, with and without the std', () => {
    // mean 2, squared deviations 4 + 0 + 4, sample std 2
    expectClose(groupAdvantage([0, 2, 4], { std: true }), [-1, 0, 1], 5);
    expectClose(groupAdvantage([0, 2, 4], { std: false }), [-2, 0, 2]);
  });

  it('a group of two is ±1/√2 with the std, whatever the scores', () => {
    expectClose(groupAdvantage([0, 1], { std: true }), [-Math.SQRT1_2, Math.SQRT1_2], 5);
    expectClose(groupAdvantage([70, -30], { std: true }), [Math.SQRT1_2, -Math.SQRT1_2], 5);
  });

  it('a group of one, or of equal scores, is exactly zero', () => {
    expect(groupAdvantage([3], { std: true })).toEqual(f64(0));
    // Almost equal scores: 1e-6 beside the deviation keeps them from being blown up to ±1/√2.
    expectClose(
      groupAdvantage([0, 1e-5], { std: true }),
      [-5e-6 / (1e-5 * Math.SQRT1_2 + 1e-6), 5e-6 / (1e-5 * Math.SQRT1_2 + 1e-6)],
      6,
    );
    expect(groupAdvantage([Number.NaN], { std: false })[0]).toBeNaN();
    for (const std of [true, false]) expect(groupAdvantage([0.1, 0.1, 0.1], { std })).toEqual(f64(0, 0, 0));
  });

  it('sums to zero, and does not change when every score is shifted', () => {
    fc.assert(
      fc.property(fc.array(real, { minLength: 2, maxLength: 9 }), real, fc.boolean(), (scores, shift, std) => {
        const A = groupAdvantage(scores, { std });
        fc.pre(Math.max(...scores) - Math.min(...scores) > 1e-3);
        expect(A.reduce((a, b) => a + b)).toBeCloseTo(0, 8);
        expectClose(
          groupAdvantage(
            scores.map((s) => s + shift),
            { std },
          ),
          A,
          6,
        );
        if (std) expect(A.reduce((a, b) => a + b * b, 0)).toBeCloseTo(A.length - 1, 1);
      }),
    );
  });

  it('shows a score that is not finite', () => {
    for (const bad of [Number.NaN, Infinity]) {
      expect(groupAdvantage([bad, 1], { std: true }).some(Number.isNaN)).toBe(true);
      expect(groupAdvantage([bad, bad], { std: true }).some(Number.isNaN)).toBe(true);
    }
  });

  it('byTurn compares the same turn, with nothing to come for those that have ended', () => {
    const A = byTurn([f64(1, 1, 1), f64(0)], (scores) => groupAdvantage(scores, { std: false }));
    expect(A).toEqual([f64(0.5, 0.5, 0.5), f64(-0.5)]);
    expect(() => byTurn([f64(1)], () => f64(1, 2))).toThrow(/\[2\] for \[1\]/);
  });
});

describe('rloo', () => {
  it('hand-computed', () => {
    expectClose(leaveOneOut([1, 0, 0, 0]), [1, -1 / 3, -1 / 3, -1 / 3]);
    expectClose(leaveOneOut([3, 1]), [2, -2]);
    expect(leaveOneOut([0.1, 0.1, 0.1])).toEqual(f64(0, 0, 0));
  });

  it('equals score minus mean of the others, and n/(n − 1) times the centred score', () => {
    fc.assert(
      fc.property(fc.array(real, { minLength: 2, maxLength: 9 }), (scores) => {
        const n = scores.length;
        const naive = scores.map((s, i) => s - scores.filter((_, j) => j !== i).reduce((a, b) => a + b) / (n - 1));
        expectClose(leaveOneOut(scores), naive);
        expectClose(
          leaveOneOut(scores),
          groupAdvantage(scores, { std: false }).map((a) => (a * n) / (n - 1)),
        );
      }),
    );
  });

  it('refuses a group of one and propagates values that are not finite', () => {
    expect(() => leaveOneOut([1])).toThrow(/at least 2/);
    expect(leaveOneOut([Number.NaN, 1]).some(Number.isNaN)).toBe(true);
  });
});

describe('max_rl', () => {
  it('hand-computed: two of four solved are worth 1, the others −1; one of four 3 and −1', () => {
    expectClose(divideByMean(f64(1, 0, 1, 0)), [1, -1, 1, -1]);
    expectClose(divideByMean(f64(0, 0, 1, 0)), [-1, -1, 3, -1]);
  });
  it('is exactly zero without a signal, and where the mean has no logarithm', () => {
    expect(divideByMean(f64(0.1, 0.1, 0.1))).toEqual(f64(0, 0, 0));
    expect(divideByMean(f64(-1, 0, 1))).toEqual(f64(0, 0, 0));
    expect(divideByMean(f64(-2, 1))).toEqual(f64(0, 0));
  });
  it('shows a score that is not finite', () => {
    for (const bad of [Number.NaN, Infinity]) expect(divideByMean(f64(bad, 1)).every(Number.isNaN)).toBe(true);
  });
});

describe('pass_at_k', () => {
  const at = (k: number, ...scores: number[]) => passAtKAdvantage(f64(...scores), { k, threshold: 0 });
  it('hand-computed: one of four solved, k = 2', () => {
    // 3 of 6 pairs hold it: ρ = ½, σ = ½. The solved one: ½/½. Another is in 3 pairs, of which 1 is solved: (⅓ − ½)/½.
    expectClose(at(2, 0, 1, 0, 0), [-1 / 3, 1, -1 / 3, -1 / 3], 5);
  });
  it('k = 1 is GRPO on successes, with the population’s std', () => {
    expectClose(at(1, 1, 0, 0, 0), [Math.sqrt(3), -Math.sqrt(1 / 3), -Math.sqrt(1 / 3), -Math.sqrt(1 / 3)], 5);
  });
  it('teaches nothing where every group of k is solved, or none is', () => {
    for (const scores of [
      [0, 0, 0],
      [1, 1, 0],
      [1, 1, 1],
    ]) {
      expect(at(2, ...scores).every((A) => A === 0)).toBe(true);
    }
  });
  it('sums to zero over a group, at any size and k', () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { minLength: 1, maxLength: 200 }), fc.nat(), (solved, pick) => {
        const A = at(1 + (pick % solved.length), ...solved.map(Number));
        expect(A.every(Number.isFinite)).toBe(true);
        expect(A.reduce((a, b) => a + b)).toBeCloseTo(0, 6);
      }),
    );
  });
  it('refuses a group smaller than k, and shows a score that is not finite', () => {
    expect(() => at(3, 1, 0)).toThrow('pass_at_k: k = 3 needs groups of at least 3 trajectories, got 2');
    expect(at(1, Number.NaN, 1).every(Number.isNaN)).toBe(true);
  });
});

describe('hgpo', () => {
  const plain = { std: false, history: 1, alpha: 1 };
  it('hand-computed: two paths to one state', () => {
    const anchors = [
      ['s', 'a', 'x'],
      ['s', 'a', 'x'],
      ['s', 'b', 'x'],
    ];
    const A = hierarchicalAdvantage([f64(3, 3, 3), f64(1, 1, 1), f64(2, 2, 8)], anchors, plain);
    // x: all three, mean 4 → −1, −3, 4; after a: two, mean 2 → 1, −1; weights ⅓ and ⅔. b has no company with a history.
    expectClose(A[0]!, [1, (1 + 2 * 1) / 3, (-1 + 2 * 1) / 3]);
    expectClose(A[1]!, [-1, (-1 - 2 * 1) / 3, (-3 - 2 * 1) / 3]);
    expectClose(A[2]!, [0, 0, 4]);
  });
  it('without history it is the step advantage of GiGPO', () => {
    const anchors = [['a', 'b', 'a'], ['b', 'a'], ['c']];
    const returns = [f64(1, 2, 3), f64(5, 0), f64(9)];
    for (const std of [true, false]) {
      expect(hierarchicalAdvantage(returns, anchors, { std, history: 0, alpha: 2 })).toEqual(
        stepAdvantage(returns, anchors, { std }),
      );
    }
  });
  it('tells names apart that read the same when joined', () => {
    const A = hierarchicalAdvantage(
      [f64(0, 1), f64(0, 5)],
      [
        ['a', 'b","c'],
        ['a","b', 'c'],
      ],
      plain,
    );
    expect(A).toEqual([f64(0, 0), f64(0, 0)]);
  });
  it('refuses names that do not fit', () => {
    expect(() => hierarchicalAdvantage([f64(1, 2)], [['a']], plain)).toThrow(/anchors\[0\] must be \[2\], got \[1\]/);
  });
});

describe('whiten', () => {
  it('hand-computed over two trajectories, leaving out untrained tokens', () => {
    const [a, b] = whiten([f64(1, 99), f64(3)], [Uint8Array.of(1, 0), Uint8Array.of(1)]);
    expectClose(a!, [-1, 0], 6);
    expectClose(b!, [1], 6);
  });

  it('gives mean 0 and variance 1 over what is trained', () => {
    const rows = fc.array(fc.array(fc.tuple(real, fc.boolean()), { minLength: 1, maxLength: 6 }), {
      minLength: 1,
      maxLength: 6,
    });
    fc.assert(
      fc.property(rows, (batch) => {
        const flat = batch
          .flat()
          .filter(([, trained]) => trained)
          .map(([a]) => a);
        fc.pre(flat.length > 1 && Math.max(...flat) - Math.min(...flat) > 1e-2);
        const out = whiten(
          batch.map((row) => Float64Array.from(row, ([a]) => a)),
          batch.map((row) => Uint8Array.from(row, ([, trained]) => Number(trained))),
        );
        const got = batch.flatMap((row, i) => row.flatMap(([, trained], d) => (trained ? [out[i]![d]!] : [])));
        const mean = got.reduce((x, y) => x + y, 0) / got.length;
        expect(mean).toBeCloseTo(0, 8);
        expect(got.reduce((x, y) => x + (y - mean) ** 2, 0) / got.length).toBeCloseTo(1, 4);
        for (const [i, row] of batch.entries())
          for (const [d, [, t]] of row.entries()) if (!t) expect(out[i]![d]).toBe(0);
      }),
    );
  });

  it('is exactly zero when nothing varies, and propagates values that are not finite', () => {
    expect(whiten([f64(0.1, 0.1)], [Uint8Array.of(1, 1)])).toEqual([f64(0, 0)]);
    expect(whiten([f64(2)], [Uint8Array.of(1)])).toEqual([f64(0)]);
    expect(whiten([f64(5, 7)], [Uint8Array.of(0, 0)])).toEqual([f64(0, 0)]);
    for (const bad of [Number.NaN, Infinity]) {
      expect(whiten([f64(bad, bad)], [Uint8Array.of(1, 1)])[0]!.every(Number.isNaN)).toBe(true);
    }
    expect(() => whiten([f64(1)], [])).toThrow(/trained\[0\]/);
  });
});

describe('stepAdvantage (GiGPO)', () => {
  it('compares decisions of one anchor state across trajectories and turns', () => {
    const A = stepAdvantage(
      [f64(4, 1), f64(2, 7, 3)],
      [
        ['s', 'u'],
        ['s', 'v', 's'],
      ],
      { std: false },
    );
    // anchor s: returns 4, 2, 3 with mean 3; u and v were met once
    expect(A).toEqual([f64(1, 0), f64(-1, 0, 0)]);
    const scaled = stepAdvantage(
      [f64(4, 1), f64(2, 7, 3)],
      [
        ['s', 'u'],
        ['s', 'v', 's'],
      ],
      { std: true },
    );
    expectClose(scaled[1]!, [-1, 0, 0], 5);
  });

  it('is zero where no state was met twice and refuses names that do not fit', () => {
    expect(stepAdvantage([f64(1, 2)], [['a', 'b']], { std: true })).toEqual([f64(0, 0)]);
    expect(() => stepAdvantage([f64(1, 2)], [['a']], { std: true })).toThrow(/anchors\[0\]/);
  });
});

describe('decisionColumns', () => {
  it('puts the terminal reward on the last decision, also when scripted turns follow it', () => {
    const one = trajectory({
      turns: [
        { reward: 5, tokens: -1 },
        { reward: 1, value: 0.5, tokens: 3 },
        { reward: 2, tokens: -1 },
        { reward: 4 },
        { reward: 8, tokens: -1 },
      ],
    });
    const columns = decisionColumns(one, 0.5);
    expect(columns.turns).toEqual(Int32Array.of(1, 3));
    expect(columns.rewards).toEqual(f64(1 + 0.5 * 2, 4 + 0.5 * 8)); // the 5 came before any decision
    expect(columns.discounts).toEqual(f64(0.25, 0.25));
    expect(columns.values).toEqual(f64(0.5, 0));
    expect(columns.tokens).toEqual(Int32Array.of(3, 1));
  });

  it('discounts nothing over a stage of an action', () => {
    const one = trajectory({
      turns: [{ partial: true }, { partial: true }, { reward: 1 }, { partial: true }, { reward: 8 }],
    });
    const columns = decisionColumns(one, 0.5);
    expect(columns.discounts).toEqual(f64(1, 1, 0.5, 1, 0.5));
    expect(returnsToGo(columns.rewards, columns.discounts, 0)).toEqual(f64(5, 5, 5, 8, 8)); // 1 + ½·8 from the first on
  });

  it('takes a penalty off each decision', () => {
    const one = trajectory({ turns: [{ reward: 1 }, { reward: 2 }] });
    expect(decisionColumns(one, 1, [0.25, 0.5]).rewards).toEqual(f64(0.75, 1.5));
    expect(() => decisionColumns(one, 1, [1])).toThrow(/penalty must be \[2\]/);
  });
});
