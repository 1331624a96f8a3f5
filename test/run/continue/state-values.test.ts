import { describe, expect, it } from 'vitest';
import type { Trajectory } from '../../../src/core/trajectory.ts';
import { estimateValue, findLargestFall, type StateValue } from '../../../src/run/continue/state-values.ts';
import { trajectoryOf } from '../../support/traces.ts';

/** An episode with these rewards, one a turn. */
function rewarded(rewards: readonly number[], success = false): Trajectory {
  const { turns, ...rest } = trajectoryOf({ actions: rewards.map((_, t) => `act ${t}`) });
  return { ...rest, success, turns: turns.map((turn, t) => ({ ...turn, reward: rewards[t]! })) };
}

describe('the value of a state', () => {
  const { turns } = rewarded([1, 2, 4]);

  it('is the mean return behind the turns that are kept; what was earned before stands beside it', () => {
    const continuations = [rewarded([1, 2, 5], true), rewarded([1, 2, 0, 3])];
    const value = estimateValue(turns, 2, continuations, 3);
    expect(value).toMatchObject({ turn: 2, action: 'act 2', earned: 3, failed: 1, returns: [5, 3] });
    expect(value.value).toMatchObject({ value: 4, n: 2 });
    // x̄ ± t·s/√n by hand: s = √2, n = 2, t(1) = 12.7062.
    expect(value.value.high - 4).toBeCloseTo(12.7062, 3);
    // Wilson of 1 in 2.
    expect(value.success).toMatchObject({ value: 0.5, n: 2 });
    expect([value.success.low, value.success.high].map((x) => Math.round(1e4 * x))).toEqual([945, 9055]);
  });

  it('of one continuation has no interval, and of none no value', () => {
    expect(estimateValue(turns, 0, [rewarded([1, 2, 4])], 1)).toMatchObject({
      earned: 0,
      value: { value: 7, low: Number.NEGATIVE_INFINITY, high: Number.POSITIVE_INFINITY },
    });
    expect(estimateValue(turns, 0, [], 4)).toMatchObject({ failed: 4, returns: [], value: { value: Number.NaN } });
  });
});

describe('the largest fall', () => {
  const levels = (list: readonly (readonly [success: number, earned: number, value: number])[]): StateValue[] =>
    list.map(([success, earned, value], turn) => ({
      ...{ turn, action: `act ${turn}`, earned, failed: 0, returns: [] },
      success: { value: success, low: success - 0.1, high: success + 0.1, n: 8 },
      value: { value, low: value - 1, high: value + 1, n: 8 },
    }));

  it('is of success, by the action between two states', () => {
    const values = levels([
      [0.5, 0, 1],
      [0.6, 0, 9],
      [0.1, 0, 9],
      [0, 0, 0],
    ]);
    expect(findLargestFall(values)).toEqual({
      turn: 2,
      action: 'act 1',
      what: 'success',
      from: 0.6,
      to: 0.1,
      isClear: true,
    });
  });

  it('is of the whole return where success is one and the same', () => {
    const values = levels([
      [0, 0, 5],
      [0, 3, 2],
      [0, 3, 0.5],
    ]);
    expect(findLargestFall(values)).toMatchObject({ turn: 2, what: 'return', from: 5, to: 3.5, isClear: false });
  });

  it('is none where nothing falls', () => {
    const values = levels([
      [0.5, 0, 1],
      [0.6, 0, 1],
    ]);
    expect(findLargestFall(values)).toBeUndefined();
  });
});
