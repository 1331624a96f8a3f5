/** A call of the choice decoder reads as many tokens of a member as are worth their padding. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { tokensWorthReading } from '../../src/policy/decision-feeds.ts';

describe('tokens of one member that a call reads, at most', () => {
  it.each([
    ['all, where all have as many', Array(64).fill(9), 64, 500, 9],
    ['two, where few of many have more and the past is long', [...Array(60).fill(2), 40, 40, 40, 40], 64, 500, 2],
    ['all, where the past is so short that a second call costs more', [...Array(60).fill(2), 8, 8, 8, 8], 4, 8, 8],
    ['no more than 64', [1000], 1, 16, 64],
  ])('are %s', (_, unread, rows, keys, most) => {
    expect(tokensWorthReading(unread, rows, keys)).toBe(most);
  });

  it('are those of some member, or 64, and more than none', () => {
    const unread = fc.array(fc.integer({ min: 1, max: 300 }), { minLength: 1, maxLength: 64 });
    const size = fc.integer({ min: 1, max: 2000 });
    fc.assert(
      fc.property(unread, size, size, (left, rows, keys) => {
        const most = tokensWorthReading(left, rows, keys);
        expect(most === 64 || left.includes(most)).toBe(true);
        expect(most).toBeGreaterThan(0);
      }),
    );
  });
});
