/** Live streams against a model: what a subscriber gets is what it can keep up with, in order, the newest kept. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LiveStream } from '../../src/run/live-stream.ts';

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('a live stream', () => {
  it('gives each subscriber the newest values that its backlog holds, in order, and counts the rest', async () => {
    let droppedInAll = 0;
    const bursts = fc.array(fc.nat({ max: 9 }), { maxLength: 12 });

    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 6 }), bursts, async (capacity, sizes) => {
        const stream = new LiveStream<number>(capacity);
        const got: number[] = [];
        let completed = false;
        stream.subscribe({ next: (value) => got.push(value), complete: () => (completed = true) });
        const expected: number[] = [];
        let next = 0;
        let dropped = 0;
        for (const size of sizes) {
          const burst = Array.from({ length: size }, () => next++);
          for (const value of burst) stream.push(value);
          expected.push(...burst.slice(-capacity)); // a burst lies within one turn of the event loop
          dropped += Math.max(0, size - capacity);
          await turn();
        }
        await stream.end();
        expect(got).toEqual(expected);
        expect(stream.dropped).toBe(dropped);
        expect(completed).toBe(true);
        droppedInAll += dropped;
      }),
      { numRuns: 200 },
    );

    expect(droppedInAll).toBeGreaterThan(100);
  });

  it('never calls a subscriber in the middle of a push, and keeps nothing without subscribers', async () => {
    const stream = new LiveStream<number>(2);
    for (let n = 0; n < 10; n++) stream.push(n);
    const got: number[] = [];
    stream.subscribe((value) => got.push(value));
    stream.push(10);
    expect(got).toEqual([]);
    await stream.end();
    expect(got).toEqual([10]);
    expect(stream.dropped).toBe(0);
  });

  it('ends with its backlog handed over, and at once for a subscriber that left or comes late', async () => {
    const stream = new LiveStream<number>(1000);
    const got: number[] = [];
    stream.subscribe((value) => got.push(value));
    const gone = stream.subscribe(() => {});
    for (let n = 0; n < 1000; n++) stream.push(n); // more than one turn's slice
    gone.unsubscribe();
    await stream.end();
    expect(got).toHaveLength(1000);
    let late = false;
    stream.subscribe({ complete: () => (late = true) });
    expect(late).toBe(true);
  });
});
