import { expect, it } from 'vitest';
import { batchStarts } from '../../src/policy/batching.ts';

const state = { waiting: 3, maxBatch: 4, complete: false, oldestMs: 1, maxWaitMs: 2 };

it.each([
  ['waits for others while there is time', {}, false],
  ['starts when it is full', { waiting: 4 }, true],
  ['starts when no other can join', { complete: true }, true],
  ['starts when its oldest turn has waited long enough', { oldestMs: 2 }, true],
  ['never starts without a turn', { waiting: 0, complete: true, oldestMs: 9 }, false],
])('a batch %s', (_, change, starts) => {
  expect(batchStarts({ ...state, ...change })).toBe(starts);
});
