import { describe, expect, it } from 'vitest';
import { Pcg64, seedWords } from '../../../envs/babyai/pcg64.ts';

/**
 * Drawn from numpy: per seed, twelve rounds of integers(0, 7), in every fourth uniform(0, 1), then
 * integers(3, 3 + 40·(round + 1)⁴); a shuffle of 0 … 12; integers(0, 2³²); integers(0, 3·2³⁰), which rejects often.
 */
const NUMPY: Record<string, (number | number[])[]> = {
  0: [
    5,
    28,
    3,
    175,
    2,
    135,
    0,
    0.8132702392002724,
    172,
    4,
    22821,
    3,
    31450,
    6,
    70063,
    4,
    0.9350724237877682,
    89070,
    1,
    214115,
    4,
    1098,
    2,
    502133,
    3,
    0.7296554464299441,
    27860,
    [2, 12, 3, 5, 7, 4, 1, 0, 8, 11, 10, 9, 6],
    2257511099,
    2084743339,
  ],
  1: [
    3,
    23,
    5,
    611,
    0,
    470,
    5,
    0.31183145201048545,
    9717,
    6,
    10586,
    1,
    42911,
    1,
    39302,
    4,
    0.027559113243068367,
    90048,
    6,
    197754,
    5,
    215260,
    5,
    193107,
    3,
    0.303194829291645,
    653957,
    [0, 8, 6, 10, 3, 2, 7, 4, 9, 5, 1, 11, 12],
    2139946102,
    1562909525,
  ],
  45: [
    6,
    25,
    5,
    341,
    3,
    2477,
    4,
    0.5102288552007237,
    8314,
    2,
    19486,
    3,
    41273,
    5,
    57123,
    1,
    0.6712764398047977,
    66944,
    3,
    164675,
    5,
    336035,
    0,
    424102,
    6,
    0.9640659218589634,
    438792,
    [2, 9, 12, 6, 8, 4, 11, 0, 3, 10, 1, 5, 7],
    3016396188,
    141977389,
  ],
  2147483648: [
    0,
    39,
    1,
    38,
    4,
    3135,
    1,
    0.41438107955777415,
    945,
    6,
    20683,
    5,
    44207,
    2,
    15674,
    0,
    0.09425393122124337,
    17713,
    0,
    229330,
    5,
    32198,
    3,
    164778,
    6,
    0.5075715458015223,
    345016,
    [7, 10, 1, 5, 2, 6, 0, 12, 9, 3, 4, 11, 8],
    3339864433,
    185605372,
  ],
  1099511627783: [
    1,
    36,
    4,
    166,
    0,
    501,
    3,
    0.7388407191925654,
    6909,
    0,
    12252,
    4,
    801,
    4,
    3582,
    4,
    0.9012215328971839,
    21906,
    2,
    88803,
    5,
    13960,
    3,
    139356,
    3,
    0.08324295943132609,
    117618,
    [9, 12, 5, 11, 0, 3, 1, 10, 8, 4, 2, 7, 6],
    1367012874,
    2468526082,
  ],
};

describe('Pcg64', () => {
  it.each(Object.entries(NUMPY))('draws what numpy draws under seed %s', (seed, expected) => {
    const rng = new Pcg64(Number(seed));
    const drawn: (number | number[])[] = [];
    for (let k = 0; k < 12; k++) {
      drawn.push(rng.integers(0, 7));
      if (k % 4 === 3) drawn.push(rng.uniform(0, 1));
      drawn.push(rng.integers(3, 3 + 40 * (k + 1) ** 4));
    }
    drawn.push(rng.shuffle(Array.from({ length: 13 }, (_, n) => n)));
    drawn.push(rng.integers(0, 2 ** 32), rng.integers(0, 3 * 2 ** 30));
    expect(drawn).toEqual(expected);
  });

  it('draws nothing for a range of one value', () => {
    const [a, b] = [new Pcg64(9), new Pcg64(9)];
    expect(a.integers(4, 5)).toBe(4);
    expect(a.next32()).toBe(b.next32());
  });

  it('refuses seeds and ranges it cannot honour', () => {
    for (const seed of [-1, 0.5, 2 ** 53, Number.NaN]) expect(() => seedWords(seed, 1)).toThrow(RangeError);
    const rng = new Pcg64(0);
    expect(() => rng.integers(3, 3)).toThrow(RangeError);
    expect(() => rng.integers(0, 2 ** 32 + 1)).toThrow(RangeError);
  });
});
