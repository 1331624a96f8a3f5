import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SimulatedClock, systemClock } from '../../src/core/clock.ts';
import { mid, terminated } from '../../src/core/env.ts';
import { withHorizon } from '../../src/core/horizon.ts';

it('a delay that no timer of Node holds does not become 1 ms', async () => {
  let fired = false;
  const cancel = systemClock.setTimer(2 ** 31, () => {
    fired = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 30));
  cancel();
  expect(fired).toBe(false);
});

describe('SimulatedClock', () => {
  it('fires timers in the order of their time, those of one instant in the order they were set', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(20), { maxLength: 30 }), (delays) => {
        const clock = new SimulatedClock();
        const fired: { at: number; order: number }[] = [];
        delays.forEach((delay, order) => {
          clock.setTimer(delay, () => fired.push({ at: clock.now(), order }));
        });
        clock.advance(20);
        const expected = delays.map((at, order) => ({ at, order })).sort((a, b) => a.at - b.at || a.order - b.order);
        expect(fired).toEqual(expected);
      }),
    );
  });
  it('fires timers that timers set, and none that was cancelled', () => {
    const clock = new SimulatedClock();
    const fired: string[] = [];
    clock.setTimer(5, () => clock.setTimer(5, () => fired.push('nested')));
    clock.setTimer(6, () => fired.push('cancelled'))();
    clock.advance(10);
    expect(fired).toEqual(['nested']);
    expect(clock.now()).toBe(10);
    expect(clock.untilNext).toBeUndefined();
  });
});

describe('withHorizon', () => {
  it('truncates a live episode at its last turn and nothing else', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 50 }), fc.integer({ min: 1, max: 50 }), (turn, horizon) => {
        expect(withHorizon(mid('x', 0.5), turn, horizon).kind).toBe(turn >= horizon ? 'truncated' : 'mid');
        expect(withHorizon(terminated('x', 1), turn, horizon)).toEqual(terminated('x', 1));
      }),
    );
  });
});
