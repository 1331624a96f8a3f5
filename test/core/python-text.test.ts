/** Python's text rules, against values that Python prints. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { reprFloat, reprText, split, strip } from '../../src/core/python-text.ts';

/** Any UTF-16 units, halves of characters too. */
const anyText = fc.array(fc.integer({ min: 0, max: 0xffff })).map((codes) => String.fromCharCode(...codes));

describe('white space', () => {
  it.each([
    ['  a b  ', 'a b'],
    ['\u3000a\u001c', 'a'],
    ['\u0085\u00a0a\u2028', 'a'],
    ['\ufeffa\ufeff', '\ufeffa\ufeff'],
    ['\u200ba', '\u200ba'],
    ['', ''],
    [' \n\t', ''],
  ])('around %j is cut as Python cuts it', (text, expected) => {
    expect(strip(text)).toBe(expected);
  });

  it('separates words in runs', () => {
    expect(split(' a\u00a0 b\x1fc ')).toEqual(['a', 'b', 'c']);
    expect(split(' \n ')).toEqual([]);
  });

  it('once cut is cut', () => {
    fc.assert(fc.property(anyText, (text) => strip(strip(text)) === strip(text)));
  });
});

describe('repr', () => {
  it.each([
    ['abc', "'abc'"],
    ["it's", '"it\'s"'],
    ['say "hi"', '\'say "hi"\''],
    [`both ' and "`, `'both \\' and "'`],
    ['a\\b', "'a\\\\b'"],
    ['a\nb\tc\rd', "'a\\nb\\tc\\rd'"],
    ['\x00\x7f', "'\\x00\\x7f'"],
    ['\u00a0\u00ad', "'\\xa0\\xad'"],
    ['\u200b\u2028', "'\\u200b\\u2028'"],
    ['\u{e0001}', "'\\U000e0001'"],
    ['é漢😀', "'é漢😀'"],
    ['', "''"],
  ])('of %j', (text, expected) => {
    expect(reprText(text)).toBe(expected);
  });

  it('is one line without bidirectional marks, whatever the text', () => {
    fc.assert(fc.property(anyText, (text) => !/[\n\r\u202a-\u202e]/.test(reprText(text))));
  });
});

describe('floats', () => {
  it.each([
    [60, '60.0'],
    [0.1, '0.1'],
    [1e16, '1e+16'],
    [-1e16, '-1e+16'],
    [1e15, '1000000000000000.0'],
    [0.0001, '0.0001'],
    [0.00001, '1e-05'],
    [1.5e-7, '1.5e-07'],
    [0, '0.0'],
    [-0, '-0.0'],
    [53.43000000000001, '53.43000000000001'],
    [Number.POSITIVE_INFINITY, 'inf'],
    [Number.NEGATIVE_INFINITY, '-inf'],
    [Number.NaN, 'nan'],
  ])('prints %d as %s', (value, text) => expect(reprFloat(value)).toBe(text));
});
