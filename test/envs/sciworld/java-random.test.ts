/** Random numbers of `java.util.Random`, against its documented generator written in big integers. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JavaRandom } from '../../../envs/sciworld/java-random.ts';

const MULTIPLIER = 0x5deece66dn;
const MASK = (1n << 48n) - 1n;

/** The generator as its documentation states it: 48 bits, of which the upper ones are given. */
class Documented {
  #state: bigint;
  steps = 0;

  constructor(seed: number) {
    this.#state = (BigInt(seed) ^ MULTIPLIER) & MASK;
  }

  next(bits: number): number {
    this.#state = (this.#state * MULTIPLIER + 0xbn) & MASK;
    this.steps++;
    return Number(this.#state >> BigInt(48 - bits));
  }

  int(n: number): number {
    if (Number.isInteger(Math.log2(n))) return Number((BigInt(n) * BigInt(this.next(31))) >> 31n);
    for (;;) {
      const bits = this.next(31);
      const value = bits % n;
      // The last, incomplete run of n numbers below 2^31 is thrown away.
      if (Math.floor(bits / n) * n + n <= 2 ** 31) return value;
    }
  }
}

const seeds = fc.integer({ min: 0, max: 2 ** 31 - 1 });
const bounds = fc.oneof(
  fc.integer({ min: 1, max: 40 }),
  fc.integer({ min: 1, max: 2 ** 31 - 1 }),
  fc.nat({ max: 30 }).map((power) => 2 ** power),
);

describe("SciWorld's random numbers", () => {
  it.each([
    [0, [0, 8, 9, 7, 5, 3, 1, 1, 9, 4]],
    [1, [5, 8, 7, 3, 4, 4, 4, 6, 8, 8]],
    [42, [0, 3, 8, 4, 0, 5, 5, 8, 9, 3]],
  ])('of seed %i are those that Java prints for nextInt(10)', (seed, expected) => {
    const random = new JavaRandom(seed);
    expect(expected.map(() => random.int(10))).toEqual(expected);
  });

  it('below any bound are those of the documented generator, and take as many steps', () => {
    fc.assert(
      fc.property(seeds, fc.array(bounds, { minLength: 1, maxLength: 20 }), (seed, drawn) => {
        const random = new JavaRandom(seed);
        const documented = new Documented(seed);
        for (const bound of drawn) expect(random.int(bound)).toBe(documented.int(bound));
        expect(random.draws).toBe(documented.steps);
      }),
    );
  });

  it('as booleans and as numbers below 1 are the upper bits of the documented generator', () => {
    fc.assert(
      fc.property(seeds, fc.array(fc.boolean(), { minLength: 1, maxLength: 20 }), (seed, drawn) => {
        const random = new JavaRandom(seed);
        const documented = new Documented(seed);
        for (const isBoolean of drawn) {
          if (isBoolean) expect(random.boolean()).toBe(documented.next(1) === 1);
          else expect(random.float()).toBe(documented.next(24) / 2 ** 24);
        }
      }),
    );
  });

  it('consume a step even where there is one choice', () => {
    const random = new JavaRandom(7);
    expect(random.int(1)).toBe(0);
    expect(random.draws).toBe(1);
  });

  it('are rejected where the last run below 2^31 is incomplete', () => {
    // Two in three bounds just above 2^30 fall into an incomplete run about half of the time.
    const bound = 2 ** 30 + 1;
    const random = new JavaRandom(3);
    for (let i = 0; i < 100; i++) expect(random.int(bound)).toBeLessThan(bound);
    expect(random.draws).toBeGreaterThan(130);
  });

  it('skipped stand where as many draws would have left them', () => {
    fc.assert(
      fc.property(seeds, fc.integer({ min: 0, max: 200 }), (seed, count) => {
        const [skipped, drawn] = [new JavaRandom(seed), new JavaRandom(seed)];
        skipped.skip(count);
        for (let i = 0; i < count; i++) drawn.boolean();
        expect(skipped.draws).toBe(count);
        expect(skipped.int(1000)).toBe(drawn.int(1000));
      }),
    );
  });

  it('start again from a seed as a new generator does', () => {
    fc.assert(
      fc.property(seeds, seeds, (one, other) => {
        const random = new JavaRandom(one);
        random.skip(5);
        random.seed(other);
        expect(random.float()).toBe(new JavaRandom(other).float());
      }),
    );
  });
});

describe('shuffling', () => {
  it('keeps the things, leaves its argument alone and takes a step less than there are things', () => {
    fc.assert(
      fc.property(seeds, fc.array(fc.integer(), { maxLength: 30 }), (seed, items) => {
        const before = [...items];
        const random = new JavaRandom(seed);
        const shuffled = random.shuffle(items);
        expect(items).toEqual(before);
        expect([...shuffled].sort()).toEqual([...items].sort());
        expect(random.draws).toBe(Math.max(0, items.length - 1));
      }),
    );
  });

  it('swaps the last place of what is left with a drawn one', () => {
    fc.assert(
      fc.property(seeds, fc.integer({ min: 2, max: 12 }), (seed, count) => {
        const documented = new Documented(seed);
        const expected = Array.from({ length: count }, (_, i) => i);
        for (let left = count; left >= 2; left--) {
          const at = documented.int(left);
          [expected[left - 1], expected[at]] = [expected[at]!, expected[left - 1]!];
        }
        expect(new JavaRandom(seed).shuffle(Array.from({ length: count }, (_, i) => i))).toEqual(expected);
      }),
    );
  });
});
