import fc from 'fast-check';
import { expect, it } from 'vitest';
import { findDuplicateKey, parseJson } from '../../src/core/json-text.ts';

/** Texts of any UTF-16 units, halves of pairs among them. */
const units = fc
  .array(fc.oneof(fc.integer({ min: 0xd700, max: 0xe010 }), fc.constantFrom(0x5c, 0x75, 0x22), fc.nat(0x7f)))
  .map((codes) => String.fromCharCode(...codes));

/** Value with every text, keys included, made well-formed. */
function wellFormed(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (_, one) => (typeof one === 'string' ? one.toWellFormed() : one));
}

it('parses as JSON.parse does, lone surrogates apart, however they are written', () => {
  fc.assert(
    fc.property(fc.array(units), (texts) => {
      const expected = wellFormed(texts);
      const escaped = `[${texts.map((text) => `"${escapeAll(text)}"`).join()}]`;
      expect(parseJson(JSON.stringify(texts))).toEqual(expected); // halves as escapes
      expect(parseJson(escaped)).toEqual(expected); // everything as escapes
    }),
  );
});

it('leaves a backslash before a u alone', () => {
  expect(parseJson(String.raw`"\\ud800 \\\ud800"`)).toBe('\\ud800 \\\ufffd');
});

it('passes over a byte-order mark, once', () => {
  expect(parseJson('\ufeff1')).toBe(1);
  expect(() => parseJson('\ufeff\ufeff1')).toThrow(SyntaxError);
});

it('refuses what is nested deeper than whatever walks it has stack for, however it is hidden', () => {
  const nest = (open: string, close: string, levels: number) => open.repeat(levels) + '1' + close.repeat(levels);
  for (const [open, close] of [
    ['[', ']'],
    ['{"a":', '}'],
    ['["[]]]]", ', ']'],
  ] as const) {
    expect(() => JSON.stringify(parseJson(nest(open, close, 500)))).not.toThrow();
    for (const levels of [501, 100_000]) {
      expect(() => parseJson(nest(open, close, levels))).toThrow('values nested more than 500 levels deep');
    }
  }
  expect(parseJson(JSON.stringify('['.repeat(10_000)))).toHaveLength(10_000);
  expect(parseJson(`[${'[],'.repeat(10_000)}1]`)).toHaveLength(10_001);
});

it('finds a name that an object has twice, and no other', () => {
  for (const text of ['{"a":1,"a":2}', '[{"b":{"x":[{"a":1,"\\u0061":1}]}}]', '{"\\\\":{"a":"}","a":1}}']) {
    expect(findDuplicateKey(text), text).toBe('a');
  }
  expect(findDuplicateKey('{"":1,"b":{"":2}} ')).toBeUndefined();
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(findDuplicateKey(JSON.stringify(value, null, 1))).toBeUndefined();
      expect(findDuplicateKey(JSON.stringify(JSON.stringify({ a: value, b: 1 })))).toBeUndefined();
    }),
  );
});

function escapeAll(text: string): string {
  return Array.from({ length: text.length }, (_, i) => `\\u${text.charCodeAt(i).toString(16).padStart(4, '0')}`).join(
    '',
  );
}
