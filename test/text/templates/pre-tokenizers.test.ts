/** Strings as Hugging Face's own library and SentencePiece encode them, recorded by test/support/record-tokenizers.py. */
import { describe, expect, it } from 'vitest';
import { readTokenizer } from '../../../src/policy/pretrained/gguf/tokenizer.ts';
import type { Json } from '../../../src/text/templates/model-text.ts';
import { BpeTokenizer } from '../../../src/text/templates/tokenizer.ts';
import { readLines } from '../../support/json-lines.ts';

type Encoded = readonly [text: string, ids: readonly number[], decoded: string];

interface Variant {
  readonly name: string;
  readonly normalizer: Json | null;
  readonly pre_tokenizer: Json;
  readonly ignore_merges: boolean;
  readonly strings: readonly Encoded[];
}

function recording(name: string): readonly unknown[] {
  return readLines(new URL(`../../fixtures/tokenizers/${name}`, import.meta.url));
}

const [first, ...variants] = recording('byte-level.jsonl') as readonly [{ readonly base: Json }, ...Variant[]];
const { base } = first;

function tokenizerOf({ normalizer, pre_tokenizer, ignore_merges }: Omit<Variant, 'strings' | 'name'>): BpeTokenizer {
  const model = { ...(base.model as Json), ignore_merges };
  return new BpeTokenizer(
    { ...base, normalizer, pre_tokenizer, model },
    { clean_up_tokenization_spaces: false },
    'here',
  );
}

describe('a byte-level tokenizer', () => {
  it.each(variants)('that cuts words as $name gives the ids of the library in Rust', (variant) => {
    const tokenizer = tokenizerOf(variant);
    expect(variant.strings.length).toBeGreaterThan(100);
    for (const [text, ids, decoded] of variant.strings) {
      expect(tokenizer.encode(text), JSON.stringify(text)).toEqual(ids);
      expect(tokenizer.decode(ids), JSON.stringify(ids)).toBe(decoded);
    }
  });

  it('states the bytes of its tokens', () => {
    const [{ strings, ...variant }] = variants as [Variant];
    const tokenizer = tokenizerOf(variant);
    const bytes = tokenizer.bytesOfTokens()!;
    for (const [, ids, decoded] of strings) {
      const text = Buffer.concat(ids.map((id) => bytes[id]!)).toString();
      expect(text.toWellFormed(), JSON.stringify(ids)).toBe(decoded);
    }
    const pieces = { ...base, decoder: { type: 'Sequence', decoders: [{ type: 'ByteFallback' }, { type: 'Fuse' }] } };
    const vocab = { '▁a': 0, '<0x0A>': 1, é: 2 };
    const model = { type: 'BPE', vocab, merges: [], byte_fallback: true };
    const fallback = new BpeTokenizer({ ...pieces, model, added_tokens: [], normalizer: null }, {}, 'here');
    expect(fallback.bytesOfTokens()!.map((one) => Buffer.from(one!).toString())).toEqual([' a', '\n', 'é']);
    const other = new BpeTokenizer({ ...base, decoder: { type: 'WordPiece' } }, {}, 'here');
    expect(other.bytesOfTokens()).toBeUndefined();
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

const pieces = recording('sentence-pieces.jsonl') as readonly {
  readonly entries: Readonly<Record<string, string | number | boolean | readonly (string | number)[]>>;
  readonly strings: readonly (readonly [text: string, ids: readonly number[]])[];
  /** Ids of bytes, and their text by the library in Rust. */
  readonly bytes: readonly (readonly [ids: readonly number[], decoded: string])[];
}[];

describe('a tokenizer of SentencePiece in a GGUF file', () => {
  it.each(pieces)(
    'gives the ids of SentencePiece, and the text of bytes as Rust does',
    ({ entries, strings, bytes }) => {
      const { tokenizer: json, config } = readTokenizer({ file: 'here', metadata: new Map(Object.entries(entries)) });
      const tokenizer = new BpeTokenizer(json, config, 'here');
      expect(strings.length).toBeGreaterThan(100);
      for (const [text, ids] of strings) expect(tokenizer.encode(text), JSON.stringify(text)).toEqual(ids);
      expect(bytes.length).toBeGreaterThan(5);
      for (const [ids, decoded] of bytes) expect(tokenizer.decode(ids), JSON.stringify(ids)).toBe(decoded);
    },
  );
});
