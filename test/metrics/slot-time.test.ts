/** Shares of the slots' time, by hand and as a law. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { NO_TIME, type SlotTime, TIME_PARTS, timeShares } from '../../src/metrics/slot-time.ts';

const after: SlotTime = {
  runningMs: 1000,
  groupMs: 600,
  learnerMs: 400,
  envMs: 100,
  hostMs: 90,
  waitMs: 50,
  prefillMs: 200,
  decodeMs: 300,
  actRestMs: 80,
  stepRestMs: 30,
};

it('are parts of all the time: 2 s here', () => {
  expect(timeShares(undefined, after)).toEqual({
    env: 0.05,
    batchWait: 0.05, // 50 + (80 − 30)
    prefill: 0.1,
    decode: 0.15,
    learner: 0.2,
    group: 0.3,
    messages: expect.closeTo(0.15, 12), // 1000 − 700
  });
});

it('are of the interval between two totals', () => {
  const later = Object.fromEntries(Object.entries(after).map(([name, ms]) => [name, 3 * ms])) as unknown as SlotTime;
  const [whole, part] = [timeShares(undefined, after)!, timeShares(after, later)!];
  for (const name of TIME_PARTS) expect(part[name]).toBeCloseTo(whole[name], 12);
});

it('are scaled down where turns began before the interval', () => {
  const shares = timeShares(undefined, { ...NO_TIME, runningMs: 100, envMs: 300, decodeMs: 100 })!;
  expect([shares.env, shares.decode, shares.messages]).toEqual([0.75, 0.25, 0]);
});

it('take no hop for waiting where the hosts are slower than the policy', () => {
  const shares = timeShares(undefined, { ...NO_TIME, runningMs: 100, actRestMs: 10, stepRestMs: 40 })!;
  expect([shares.batchWait, shares.messages]).toEqual([0, 1]);
});

it('are none where no slot existed', () => {
  expect(timeShares(undefined, NO_TIME)).toBeUndefined();
  expect(timeShares(after, after)).toBeUndefined();
});

it('add up to 1, none below 0', () => {
  const ms = fc.integer({ min: 0, max: 10_000 });
  const time = fc.record(Object.fromEntries(Object.keys(NO_TIME).map((name) => [name, ms]))) as fc.Arbitrary<SlotTime>;
  fc.assert(
    fc.property(time, time, (one, other) => {
      const shares = timeShares(one, other);
      if (!shares) return;
      const parts = Object.values(shares);
      expect(Math.min(...parts)).toBeGreaterThanOrEqual(-1e-12);
      expect(parts.reduce((a, b) => a + b, 0)).toBeCloseTo(1, 9);
    }),
  );
});
