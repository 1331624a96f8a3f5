/** Rewards of named parts: sums, failures, order. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type RewardPart, Rubric } from '../../src/core/rubric.ts';

const part = (name: string, score: RewardPart<string>['score'], weight?: number): RewardPart<string> => ({
  name,
  weight,
  score,
});

describe('a rubric', () => {
  it('is the weighted sum of its parts, which are metrics', async () => {
    const rubric = new Rubric<string>([
      part('length', (text) => text.length / 10, 0.5),
      part('polite', async (text) => text.includes('please')),
      part('measured', () => 7, 0),
    ]);
    expect(await rubric.score('please')).toEqual({ reward: 1.3, metrics: { length: 0.6, measured: 7, polite: 1 } });
  });

  it.each<[string, RewardPart<string>[], string]>([
    ['no parts', [], 'expected one part or more, got none'],
    ['a name twice', [part('a', () => 1), part('a', () => 1)], 'got "a" twice'],
    ['no name', [part('', () => 1)], 'expected a name of part 0'],
    ['a weight that is not finite', [part('a', () => 1, Number.NaN)], 'expected a finite weight of "a", got NaN'],
  ])('refuses %s', (_, parts, message) => expect(() => new Rubric(parts)).toThrow(message));

  it.each<[string, RewardPart<string>['score'], string]>([
    ['throws', () => Promise.reject(new Error('no answer')), 'the part "b" of the reward failed: no answer'],
    ['gives no number', () => Number.NaN, 'the part "b" of the reward: expected a finite number or a boolean, got NaN'],
    ['gives nothing', () => undefined as never, 'got nothing'],
  ])('fails where a part %s, and is never 0 or 1 for it', async (_, score, message) => {
    await expect(new Rubric([part('a', () => 1), part('b', score, 0)]).score('')).rejects.toThrow(message);
  });

  it('does not depend on the order of its parts', async () => {
    const scores = fc.uniqueArray(
      fc.record({ name: fc.string({ minLength: 1 }), score: fc.float({ noNaN: true, min: -9, max: 9 }) }),
      {
        minLength: 1,
        selector: ({ name }) => name,
      },
    );
    const shuffled = scores.chain((list) =>
      fc.tuple(fc.constant(list), fc.shuffledSubarray(list, { minLength: list.length })),
    );
    await fc.assert(
      fc.asyncProperty(shuffled, async (orders) => {
        const [one, other] = await Promise.all(
          orders.map((list) => new Rubric(list.map(({ name, score }) => part(name, () => score, 0.1))).score('')),
        );
        expect(other).toEqual(one);
      }),
    );
  });
});
