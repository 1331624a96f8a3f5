import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Rng, seedFrom } from '../../src/core/rng.ts';

describe('Rng', () => {
  it('is xoshiro128**: the first outputs from the state 1, 2, 3, 4', () => {
    const rng = Rng.fromState([1, 2, 3, 4]);
    const first = Array.from({ length: 10 }, () => rng.next());
    expect(first).toEqual([
      11520, 0, 5927040, 70819200, 2031721883, 1637235492, 1287239034, 3734860849, 3729100597, 4258142804,
    ]);
  });
  it('goes on from a saved state', () => {
    fc.assert(
      fc.property(fc.nat(), fc.nat(50), (seed, n) => {
        const rng = Rng.fromSeed(seed);
        for (let i = 0; i < n; i++) rng.next();
        const again = Rng.fromState(rng.state);
        expect(Array.from({ length: 5 }, () => again.next())).toEqual(Array.from({ length: 5 }, () => rng.next()));
      }),
    );
  });
  it('draws integers in range, all of them', () => {
    const rng = Rng.fromSeed(7);
    const seen = new Set(Array.from({ length: 2000 }, () => rng.int(7)));
    expect([...seen].sort()).toEqual([0, 1, 2, 3, 4, 5, 6]);
  });
  it('splits into streams that differ by label and leave the parent alone', () => {
    const rng = Rng.fromSeed(3);
    const before = rng.state;
    expect(rng.split('a').next()).not.toBe(rng.split('b').next());
    expect(rng.state).toEqual(before);
  });
  it('draws normals of mean 0 and variance 1', () => {
    const rng = Rng.fromSeed(11);
    const draws = Array.from({ length: 20000 }, () => rng.normal());
    const mean = draws.reduce((a, b) => a + b) / draws.length;
    const variance = draws.reduce((a, b) => a + (b - mean) ** 2, 0) / draws.length;
    expect(Math.abs(mean)).toBeLessThan(0.03);
    expect(Math.abs(variance - 1)).toBeLessThan(0.05);
  });
  it('derives the same seeds for ever: recorded runs depend on them', () => {
    expect([
      seedFrom(),
      seedFrom('a'),
      seedFrom('episode', 7),
      seedFrom(1, 2, 3),
      seedFrom('ab'),
      seedFrom('a', 'b'),
    ]).toEqual([3900923005, 1188735539, 3561426533, 2306399985, 583405319, 2624120540]);
    expect(Rng.fromSeed(1).split('tasks').next()).toBe(2416598898);
  });
  it('mixes labels so that neighbours differ', () => {
    const seeds = Array.from({ length: 1000 }, (_, i) => seedFrom('episode', i));
    expect(new Set(seeds).size).toBe(1000);
    expect(seedFrom('a', 'b')).not.toBe(seedFrom('ab'));
  });
});
