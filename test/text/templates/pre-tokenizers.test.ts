/** Strings as Hugging Face's own library and SentencePiece encode them, recorded by test/support/record-tokenizers.py. */
import { describe, expect, it } from 'vitest';
import { readJsonFile } from '../../../src/core/bounded-file.ts';
import { readTokenizer } from '../../../src/policy/pretrained/gguf/tokenizer.ts';
import type { Json } from '../../../src/text/templates/model-text.ts';
import { BpeTokenizer } from '../../../src/text/templates/tokenizer.ts';

type Encoded = readonly [text: string, ids: readonly number[], decoded: string];

interface Variant {
  readonly normalizer: Json | null;
  readonly pre_tokenizer: Json;
  readonly ignore_merges: boolean;
  readonly strings: readonly Encoded[];
}

function recording(name: string): unknown {
  return readJsonFile(new URL(`../../fixtures/tokenizers/${name}`, import.meta.url));
}

const { base, variants } = recording('byte-level.json') as {
  readonly base: Json;
  readonly variants: Readonly<Record<string, Variant>>;
};

function tokenizerOf({ normalizer, pre_tokenizer, ignore_merges }: Omit<Variant, 'strings'>): BpeTokenizer {
  const model = { ...(base.model as Json), ignore_merges };
  return new BpeTokenizer(
    { ...base, normalizer, pre_tokenizer, model },
    { clean_up_tokenization_spaces: false },
    'here',
  );
}

describe('a byte-level tokenizer', () => {
  it.each(Object.entries(variants))('that cuts words as %s gives the ids of the library in Rust', (_name, variant) => {
    const tokenizer = tokenizerOf(variant);
    expect(variant.strings.length).toBeGreaterThan(100);
    for (const [text, ids, decoded] of variant.strings) {
      expect(tokenizer.encode(text), JSON.stringify(text)).toEqual(ids);
      expect(tokenizer.decode(ids), JSON.stringify(ids)).toBe(decoded);
    }
  });

  it('never makes a control token of a text that is not trusted, though it looks words up whole', () => {
    // A word of the pattern that is spelt like a control token, as `[INST]` could be.
    const added = [
      { id: 0, content: '|>', special: true, single_word: false, lstrip: false, rstrip: false, normalized: false },
    ];
    const vocab = { '|>': 0, '|': 1, '>': 2 };
    const model = { ...(base.model as Json), ignore_merges: true, vocab, merges: [] };
    const tokenizer = new BpeTokenizer({ ...base, added_tokens: added, model }, {}, 'here');
    expect(tokenizer.encode('|>')).toEqual([0]);
    expect(tokenizer.encodePlain('|>')).toEqual([1, 2]);
  });

  it.each([
    [
      { type: 'Split', pattern: { Regex: 'a' }, behavior: 'Contiguous', invert: true },
      /behavior "Contiguous" and invert/,
    ],
    [{ type: 'Split', pattern: { Regex: 'a' }, behavior: 'Sideways', invert: false }, /behavior "Sideways"/],
    [
      { type: 'Split', pattern: {}, behavior: 'Isolated', invert: false },
      /a split by \{\}; expected a Regex or a String/,
    ],
  ])('with %j is refused in one line', (part, message) => {
    expect(() => tokenizerOf({ normalizer: null, pre_tokenizer: part, ignore_merges: false })).toThrow(message);
  });
});

const pieces = recording('sentence-pieces.json') as readonly {
  readonly entries: Readonly<Record<string, string | number | boolean | readonly (string | number)[]>>;
  readonly strings: readonly (readonly [text: string, ids: readonly number[]])[];
}[];

describe('a tokenizer of SentencePiece in a GGUF file', () => {
  it.each(pieces)('gives the ids of SentencePiece', ({ entries, strings }) => {
    const { tokenizer: json, config } = readTokenizer({ file: 'here', metadata: new Map(Object.entries(entries)) });
    const tokenizer = new BpeTokenizer(json, config, 'here');
    expect(strings.length).toBeGreaterThan(100);
    for (const [text, ids] of strings) expect(tokenizer.encode(text), JSON.stringify(text)).toEqual(ids);
  });
});
