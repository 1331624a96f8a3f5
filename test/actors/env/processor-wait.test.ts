/** Wait for a processor: what the system has counted, and what lasts at this moment. */
import { expect, it } from 'vitest';
import { ownThreadId, ProcessorWait, readThread, type ThreadReading } from '../../../actors/env/processor-wait.ts';

/** Waits for a processor by given readings: [ran, waited (both ms), ready], each a look 100 ms after the last. */
function looks(readings: readonly (readonly [number, number, boolean] | undefined)[]): number[] {
  let reading: ThreadReading | undefined;
  const wait = new ProcessorWait(() => reading);
  return readings.map((next, i) => {
    reading = next && { ran: next[0] * 1e6, waited: next[1] * 1e6, isReady: next[2] };
    return wait.ms(100 * i);
  });
}

it('a wait that is over is what the system counted', () => {
  expect(
    looks([
      [10, 5, false],
      [10, 5, false],
      [20, 80, false],
    ]),
  ).toEqual([5, 5, 80]);
});

it('a wait that lasts counts from the first look that saw it, and once', () => {
  expect(
    looks([
      [10, 5, false],
      [10, 5, true],
      [10, 5, true],
      [10, 5, true],
      [11, 300, true],
      [12, 300, false],
    ]),
  ).toEqual([5, 5, 105, 205, 300, 300]);
});

it('a thread that runs all the time waits for nothing', () => {
  expect(
    looks([
      [0, 0, true],
      [100, 0, true],
      [200, 0, true],
    ]),
  ).toEqual([0, 0, 0]);
});

it('a thread of which nothing is known has waited as long as it had', () => {
  expect(looks([undefined, [10, 7, false], undefined])).toEqual([0, 7, 7]);
});

it.skipIf(process.platform !== 'linux')('a thread knows itself: what it ran grows', () => {
  const before = readThread('self', ownThreadId())!;
  for (const until = performance.now() + 20; performance.now() < until; );
  const after = readThread(process.pid, ownThreadId())!;
  expect(after.isReady).toBe(true);
  expect(after.ran + after.waited).toBeGreaterThan(before.ran + before.waited);
});
