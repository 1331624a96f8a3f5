import { expect, it } from 'vitest';
import { AnswerCache } from '../../src/viewer/answer-cache.ts';

it('makes an answer once, until the run grows, and keeps nothing of one that failed', async () => {
  const cache = new AnswerCache();
  let made = 0;
  const get = (key: string, stamp: string) => cache.get(key, stamp, () => ({ key, made: ++made }));
  expect(await get('a', '1')).toBe('{"key":"a","made":1}');
  expect(await get('a', '1')).toBe('{"key":"a","made":1}');
  expect(await get('b', '1')).toBe('{"key":"b","made":2}');
  expect(await get('a', '2')).toBe('{"key":"a","made":3}');
  const failing = () => {
    throw new RangeError('gone');
  };
  await expect(cache.get('c', '1', failing)).rejects.toThrow('gone');
  expect(await get('c', '1')).toBe('{"key":"c","made":4}');
});

it('forgets the oldest answers where they take too much room', async () => {
  const cache = new AnswerCache();
  const made: string[] = [];
  const get = (key: string) =>
    cache.get(key, '1', () => {
      made.push(key);
      return 'x'.repeat(2 ** 23);
    });
  for (const key of ['a', 'b', 'c', 'd', 'd', 'a']) await get(key);
  expect(made).toEqual(['a', 'b', 'c', 'd', 'a']);
  await cache.get('large', '1', () => 'x'.repeat(2 ** 25));
  await get('d');
  expect(made).toHaveLength(5);
});
