import { describe, expect, it } from 'vitest';
import { UserError } from '../../../src/core/errors.ts';
import { callWithin } from '../../../src/text/templates/deadline.ts';
import type { Json } from '../../../src/text/templates/model-text.ts';
import { BpeTokenizer } from '../../../src/text/templates/tokenizer.ts';

function tokenizerOf(preTokenizer: Json, decoder: Json | null = null): BpeTokenizer {
  const json = {
    version: '1.0',
    added_tokens: [],
    normalizer: null,
    pre_tokenizer: preTokenizer,
    post_processor: null,
    decoder,
    model: { type: 'BPE', vocab: { a: 0, b: 1 }, merges: [], unk_token: null, byte_fallback: false },
  };
  return new BpeTokenizer(json, {}, 'somewhere');
}

const split = (pattern: string) => ({
  type: 'Split',
  pattern: { Regex: pattern },
  behavior: 'Isolated',
  invert: false,
});

describe('a tokenizer of somebody', () => {
  it('whose pattern does not end is refused in one line, and the next text is read', { timeout: 60_000 }, () => {
    const tokenizer = tokenizerOf({ type: 'Sequence', pretokenizers: [split('(a+)+$|b')] });
    const read = () => tokenizer.encodePlain(`${'a'.repeat(60)}b`);
    expect(read).toThrow(UserError);
    expect(tokenizer.encodePlain('ab')).toEqual([0, 1]);
    let message = '';
    try {
      read();
    } catch (thrown) {
      message = (thrown as Error).message;
    }
    expect(message).toBe('somewhere: tokenizer.json cannot be used on a text: it did not end within 1 s');
  });
  it('has patterns of a bounded length and depth', () => {
    expect(() => tokenizerOf(split('a|'.repeat(10_000)))).toThrow(/a pattern of 20000 characters; expected at most/);
    let deep: Json = split('a');
    for (let i = 0; i < 5000; i++) deep = { type: 'Sequence', pretokenizers: [deep] };
    expect(() => tokenizerOf(deep)).toThrow(/somewhere: tokenizer.json cannot be used: parts within parts/);
  });
});

describe('a call with a deadline', () => {
  it('gives back what the function returns or throws, also within another such call', () => {
    expect(callWithin(1000, () => callWithin(1000, () => 1) + 1)).toBe(2);
    const error = new RangeError('own');
    expect(() =>
      callWithin(1000, () => {
        throw error;
      }),
    ).toThrow(error);
  });
  it('tries once more: the machine may have slept in the first call', () => {
    let calls = 0;
    const answer = callWithin(100, () => {
      if (++calls === 1) for (;;);
      return calls;
    });
    expect(answer).toBe(2);
  });
});
