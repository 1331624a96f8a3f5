import fc from 'fast-check';
import { expect, it } from 'vitest';
import { describeValue } from '../../src/core/describe-value.ts';

function nest(levels: number, isList: boolean): unknown {
  let value: unknown = 1;
  for (let i = 0; i < levels; i++) value = isList ? [value] : { a: value };
  return value;
}

it('shows a small value as JSON does', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4, noUnicodeString: false }), (value) => {
      const plain: unknown = JSON.parse(JSON.stringify(value)); // without -0
      const text = JSON.stringify(plain);
      const shown = describeValue(plain, 10_000);
      expect(shown.toWellFormed()).toBe(text.length > 10_000 ? `${text.slice(0, 10_000)}…` : text);
    }),
  );
});

it('never takes more than its bound, nor throws, however deep or large a value is', () => {
  const circular: { self?: unknown } = {};
  circular.self = circular;
  const thrower = Object.defineProperty({}, 'x', {
    enumerable: true,
    get() {
      throw new Error('read');
    },
  });
  const values = [
    nest(1_000_000, true),
    nest(100_000, false),
    'x'.repeat(10_000_000),
    Array.from({ length: 1_000_000 }, (_, i) => i),
    Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`k${i}`, i])),
    circular,
    thrower,
    10n,
    Symbol('x'),
    () => 1,
    Number.NaN,
    null,
    undefined,
  ];
  for (const value of values) {
    for (const chars of [0, 1, 60, 120])
      expect(describeValue(value, chars).length).toBeLessThanOrEqual(Math.max(chars + 1, 7));
  }
});
