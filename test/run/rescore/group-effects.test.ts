import { expect, it } from 'vitest';
import { countGroupEffects, type GroupReturns } from '../../../src/run/rescore/group-effects.ts';

/** Counts of one group. */
function effectsOf(before: GroupReturns['before'], after: GroupReturns['after']) {
  const { groups, ...counts } = countGroupEffects([{ before, after }]);
  expect(groups).toBe(1);
  return counts;
}

const none = { changed: 0, reversed: 0, gained: 0, lost: 0 };

it.each([
  ['the same rewards', [0, 1], [0, 1], none],
  ['another scale and shift', [0, 1, 1], [5, 9, 9], none],
  ['sums that differ by rounding', [0.3, 1], [0.1 + 0.2, 1], none],
  ['a mean that rounds', [0.1, 0.1, 0.1], [0.7, 0.7, 0.7], none],
  ['members turned round', [0, 1], [1, 0], { ...none, changed: 1, reversed: 1 }],
  ['a signal where there was none', [0, 0], [0, 0.5], { ...none, changed: 1, gained: 1 }],
  ['no signal any more', [0, 1], [1, 1], { ...none, changed: 1, lost: 1 }],
  ['another order on one side of the mean', [0, 5, 6], [0, 6, 5], { ...none, changed: 1 }],
  ['another sign in the same order', [0, 1, 9], [0, 8, 9], { ...none, changed: 1, reversed: 1 }],
])('%s', (_, before, after, counts) => {
  expect(effectsOf(before, after)).toEqual(counts);
});

it('leaves out groups of one, in which nothing is compared', () => {
  const groups = [
    { before: [0], after: [1] },
    { before: [0, 1], after: [1, 0] },
  ];
  expect(countGroupEffects(groups)).toEqual({ groups: 1, changed: 1, reversed: 1, gained: 0, lost: 0 });
});
