/** The draw of worlds: shares are met, schedules and progress move them, and what does not answer rests. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type DrawnWorld,
  type Mixture,
  observeProgress,
  progressShares,
  type WorldProgress,
  WorldSampler,
} from '../../../src/learning/schedule/world-sampler.ts';

const worldsOf = (...weights: number[]): DrawnWorld[] =>
  weights.map((weight, i) => ({ name: `w${i}`, schedule: [{ from: 0, weight }] }));

/** Counts draws by world. */
function count(sampler: WorldSampler, draws: number, worlds: number, update = 0): number[] {
  const counts = new Array<number>(worlds).fill(0);
  for (let i = 0; i < draws; i++) counts[sampler.next(update)]!++;
  return counts;
}

const weights = fc.array(fc.double({ min: 0, max: 10, noNaN: true }), { minLength: 2, maxLength: 6 }).filter(
  (all) => all.some((weight) => weight > 1e-3), // a share that is no number of draws says nothing
);

describe('fixed weights', () => {
  it('are met after any number of draws: no world is a group ahead of its share, nor as many behind as there are others', () => {
    fc.assert(
      fc.property(weights, fc.integer({ min: 1, max: 150 }), (all, draws) => {
        const sampler = new WorldSampler(worldsOf(...all), 'fixed');
        const total = all.reduce((sum, weight) => sum + weight, 0);
        const counts = new Array<number>(all.length).fill(0);
        for (let n = 1; n <= draws; n++) {
          counts[sampler.next(0)]!++;
          for (const [i, weight] of all.entries()) {
            const ahead = counts[i]! - (n * weight) / total;
            expect(ahead).toBeLessThan(1);
            expect(ahead).toBeGreaterThan(1e-6 - all.length);
            if (weight === 0) expect(counts[i]).toBe(0);
          }
        }
      }),
    );
  });

  it('are drawn in an order that anybody can count: 5, 1, 1', () => {
    const sampler = new WorldSampler(worldsOf(5, 1, 1), 'fixed');
    expect(Array.from({ length: 14 }, () => sampler.next(0)).join('')).toBe('00102000010200');
  });

  it('a draw is a function of the state: it goes on from a saved one', () => {
    fc.assert(
      fc.property(
        weights,
        fc.integer({ min: 0, max: 50 }),
        fc.constantFrom<Mixture>('fixed', 'progress'),
        (all, cut, mixture) => {
          const play = (sampler: WorldSampler, from: number, to: number) =>
            Array.from({ length: to - from }, (_, n) => {
              const world = sampler.next(n);
              if (n % 7 === 0) sampler.rest(world);
              else sampler.observe(world, (n % 5) / 4);
              return world;
            });
          const whole = new WorldSampler(worldsOf(...all), mixture);
          const drawn = play(whole, 0, cut);
          const resumed = new WorldSampler(worldsOf(...all), mixture);
          resumed.restore(JSON.parse(JSON.stringify(whole.state)));
          expect(play(resumed, cut, cut + 40)).toEqual(play(whole, cut, cut + 40));
          expect(drawn).toHaveLength(cut);
          expect(resumed.state).toEqual(whole.state);
        },
      ),
    );
    const one = new WorldSampler(worldsOf(1, 1), 'fixed');
    expect(() => one.restore(new WorldSampler(worldsOf(1, 1, 1), 'fixed').state)).toThrow(/another number of worlds/);
  });
});

it('a schedule is followed from update to update: world after world, with a share of the old ones kept', () => {
  const sampler = new WorldSampler(
    [
      {
        name: 'a',
        schedule: [
          { from: 0, weight: 1 },
          { from: 10, weight: 0.25 },
        ],
      },
      {
        name: 'b',
        schedule: [
          { from: 0, weight: 0 },
          { from: 10, weight: 1 },
          { from: 20, weight: 0.25 },
        ],
      },
      {
        name: 'c',
        schedule: [
          { from: 0, weight: 0 },
          { from: 20, weight: 1 },
        ],
      },
    ],
    'fixed',
  );
  expect(count(sampler, 40, 3, 0)).toEqual([40, 0, 0]);
  expect(count(sampler, 40, 3, 9)).toEqual([40, 0, 0]);
  expect(count(sampler, 40, 3, 10)).toEqual([8, 32, 0]);
  expect(count(sampler, 60, 3, 25)).toEqual([10, 10, 40]);
  expect(sampler.shares(25)).toEqual([1 / 6, 1 / 6, 4 / 6]);
});

describe('progress', () => {
  const known = (fast: number, slow: number): WorldProgress => ({ groups: 1000, fast, slow });

  it('shares by hand: the best gain has its weight, none has the floor of it', () => {
    // gains 0.2, 0.1, 0: relative 1, 0.5, 0; times weights 1, 1, 1: 1, 0.6, 0.2
    const shares = progressShares([1, 1, 1], [known(0.5, 0.3), known(0.4, 0.5), known(0.9, 0.9)]);
    expect(shares.map((share) => share.toFixed(4))).toEqual(['0.5556', '0.3333', '0.1111']);
    // One that is not drawn now is no measure for the others.
    const undrawn = progressShares([1, 1, 0], [known(0.5, 0.3), known(0.4, 0.5), known(1, 0)]);
    expect(undrawn.map((share) => share.toFixed(4))).toEqual(['0.6250', '0.3750', '0.0000']);
    // The weights come before: 2 · 0.2 beside 1 · 1.
    expect(progressShares([2, 1], [known(1, 1), known(0.5, 0.4)]).map((one) => one.toFixed(4))).toEqual([
      '0.2857',
      '0.7143',
    ]);
  });

  it('every world keeps a floor, none more than its weight allows, and no gain leaves the weights', () => {
    const share = fc.double({ min: 0, max: 1, noNaN: true });
    const progress = fc.record({ groups: fc.integer({ min: 0, max: 200 }), fast: share, slow: share });
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.double({ min: 0.01, max: 5, noNaN: true }), progress), { minLength: 2, maxLength: 6 }),
        (all) => {
          const own = all.map(([weight]) => weight);
          const shares = progressShares(
            own,
            all.map(([, one]) => one),
          );
          const total = own.reduce((sum, weight) => sum + weight, 0);
          expect(shares.reduce((sum, one) => sum + one, 0)).toBeCloseTo(1, 9);
          for (const [i, one] of shares.entries()) expect(one).toBeGreaterThanOrEqual((0.2 * own[i]!) / total - 1e-12);
          const still = progressShares(
            own,
            own.map(() => known(0.4, 0.4)),
          );
          for (const [i, one] of still.entries()) expect(one).toBeCloseTo(own[i]! / total, 9);
        },
      ),
    );
  });

  it('a world that learns is drawn more than one that has learnt and one that cannot, and those keep being drawn', () => {
    const sampler = new WorldSampler(worldsOf(1, 1, 1), 'progress');
    const counts = [0, 0, 0];
    for (let n = 0; n < 1500; n++) {
      const world = sampler.next(n);
      counts[world]!++;
      sampler.observe(world, [Math.min(1, counts[0]! / 900), 0, 1][world]!);
    }
    expect(counts[0]).toBeGreaterThan(2 * counts[1]!);
    expect(counts[0]).toBeGreaterThan(2 * counts[2]!);
    expect(Math.min(...counts)).toBeGreaterThan(100);
  });

  it('a forgotten world gains like one that learns', () => {
    const run = (to: number) => {
      let progress: WorldProgress = { groups: 0, fast: 0, slow: 0 };
      for (let n = 0; n < 200; n++) progress = observeProgress(progress, 0.5);
      const before = Math.abs(progress.fast - progress.slow);
      for (let n = 0; n < 20; n++) progress = observeProgress(progress, to);
      return [before, Math.abs(progress.fast - progress.slow)] as const;
    };
    const [still, up] = run(1);
    const [, down] = run(0);
    expect(still).toBeCloseTo(0, 9);
    expect(up).toBeGreaterThan(0.05);
    expect(down).toBeCloseTo(up, 9);
  });

  it('a first group is no gain', () => {
    const first = observeProgress({ groups: 0, fast: 0, slow: 0 }, 1);
    expect(first).toEqual({ groups: 1, fast: 1, slow: 1 });
  });
});

describe('a world that does not answer', () => {
  it('gives its share to the others, is tried after 16 draws, then after twice as many each time, up to 512', () => {
    const sampler = new WorldSampler(worldsOf(1, 1, 2), 'fixed');
    expect(sampler.rest(2)).toBe(true);
    expect(sampler.rest(2)).toBe(false); // its other groups fail too, which says nothing new
    const gaps: number[] = [];
    let since = 0;
    while (gaps.length < 8) {
      const world = sampler.next(0);
      if (world !== 2) {
        since++;
        continue;
      }
      gaps.push(since);
      since = 0;
      expect(sampler.rest(2)).toBe(false);
    }
    expect(gaps).toEqual([16, 32, 64, 128, 256, 512, 512, 512]);
    expect(sampler.isUp(2)).toBe(false);
  });

  it('comes back with its share once a group of it has finished, and without what it missed', () => {
    const sampler = new WorldSampler(worldsOf(1, 1), 'fixed');
    sampler.rest(1);
    expect(count(sampler, 16, 2)).toEqual([16, 0]);
    expect(sampler.next(0)).toBe(1); // the probe
    sampler.observe(1, 0);
    expect(sampler.isUp(1)).toBe(true);
    expect(count(sampler, 100, 2)).toEqual([50, 50]);
  });

  it('one probe at a time is out, and a group from before the outage makes no rest longer', () => {
    const sampler = new WorldSampler(worldsOf(1, 1), 'fixed');
    sampler.rest(1);
    for (let i = 0; i < 5; i++) sampler.rest(1);
    expect(count(sampler, 17, 2)).toEqual([16, 1]);
    expect(count(sampler, 15, 2)).toEqual([15, 0]);
  });

  it('all of them down: each is drawn by its share, as a probe', () => {
    const sampler = new WorldSampler(worldsOf(1, 3), 'fixed');
    sampler.rest(0);
    sampler.rest(1);
    expect(count(sampler, 40, 2)).toEqual([10, 30]);
  });

  it('a world without weight is no probe', () => {
    const sampler = new WorldSampler(worldsOf(1, 0), 'fixed');
    sampler.rest(1);
    expect(count(sampler, 100, 2)).toEqual([100, 0]);
  });
});
