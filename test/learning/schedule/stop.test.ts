import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { progressOf, type StopCondition, stopReached } from '../../../src/learning/schedule/stop.ts';

const limit = fc.option(fc.integer({ min: 1, max: 5 }), { nil: undefined });
const condition = fc.record({ updates: limit, minutes: limit, envSteps: limit }) as fc.Arbitrary<StopCondition>;
const soFar = fc.record({
  updates: fc.nat(6),
  envSteps: fc.nat(6),
  elapsedMs: fc.nat(6).map((minutes) => minutes * 60_000),
});

describe('the end of training', () => {
  it('comes exactly when the progress is whole', () => {
    fc.assert(
      fc.property(condition, soFar, (stop, so) => {
        expect(stopReached(stop, so) !== undefined).toBe(progressOf(stop, so) === 1);
      }),
    );
  });
  it('names a condition that is met', () => {
    fc.assert(
      fc.property(condition, soFar, (stop, so) => {
        const why = stopReached(stop, so);
        if (why) expect(progressOf({ [why]: stop[why] }, so)).toBe(1);
      }),
    );
  });
  it('never comes without a condition', () => {
    fc.assert(
      fc.property(soFar, (so) => {
        expect([stopReached({}, so), progressOf({}, so)]).toEqual([undefined, 0]);
      }),
    );
  });
});
