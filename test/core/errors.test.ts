/** Messages of whatever is thrown: bounded, and without secrets. */
import { expect, it } from 'vitest';
import { messageOf } from '../../src/core/errors.ts';

it('a message of any length is kept in its first 4000 characters', () => {
  expect(messageOf(new Error('x'.repeat(4000)))).toBe('x'.repeat(4000));
  for (const thrown of [new Error('x'.repeat(20_000_000)), 'x'.repeat(4001)]) {
    expect(messageOf(thrown)).toBe(`${'x'.repeat(4000)}…`);
  }
});

it('a thrown value that cannot be printed still has a message', () => {
  const unprintable = {
    toString() {
      throw new Error('no text');
    },
  };
  for (const thrown of [unprintable, Object.create(null)])
    expect(messageOf(thrown)).toBe('something without a message (object)');
  expect(messageOf(Symbol('x'))).toBe('Symbol(x)');
  expect(messageOf(undefined)).toBe('undefined');
});
