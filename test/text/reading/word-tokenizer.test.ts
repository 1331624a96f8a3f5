import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { WordTokenizer } from '../../../src/text/reading/word-tokenizer.ts';

const tokenizer = new WordTokenizer({
  lexicon: ['oak log', 'oak planks', 'stick', 'dark oak log'],
  words: ['craft', 'get', 'using', 'goal', 'dark', '|', ';', ','],
});
const worldText = fc
  .array(
    fc.constantFrom(
      'oak log',
      'oak',
      'planks',
      'stick',
      'craft',
      ' ',
      '  ',
      '\n',
      ', ',
      '7',
      '07',
      '123',
      'é',
      '_',
      'Stick',
      '\ud800',
    ),
    {
      maxLength: 12,
    },
  )
  .map((parts) => parts.join(''));

describe('the tokenizer', () => {
  it('gives every phrase, word and small number one token', () => {
    expect([...tokenizer.encode('craft 4 oak planks using 1 dark oak log')]).toEqual([
      tokenizer.idOf('craft'),
      tokenizer.idOf('4'),
      tokenizer.idOf('oak planks'),
      tokenizer.idOf('using'),
      tokenizer.idOf('1'),
      tokenizer.idOf('dark oak log'),
    ]);
  });
  it('loses nothing of any string', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary', maxLength: 30 }), worldText), (text) => {
        expect(tokenizer.decode(tokenizer.encode(text))).toBe(text);
      }),
      { numRuns: 2000 },
    );
  });
  it('loses nothing when a text is encoded in segments', () => {
    fc.assert(
      fc.property(fc.array(worldText, { maxLength: 6 }), (segments) => {
        const ids: number[] = [];
        // A pair of surrogates split over two segments is two lone ones to the encoder; joined bytes decode as such.
        for (const segment of segments) ids.push(...tokenizer.encode(segment, ids.at(-1) ?? 0));
        expect(tokenizer.decode(ids)).toBe(segments.join(''));
      }),
    );
  });
  it('does not cut words: a known word inside a longer one is spelt in bytes', () => {
    expect(tokenizer.encode('sticky').length).toBe(6);
  });
  it('decodes any sequence of ids to some string', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(tokenizer.size - 1)), (ids) => {
        expect(typeof tokenizer.decode(ids)).toBe('string');
      }),
    );
  });
});
