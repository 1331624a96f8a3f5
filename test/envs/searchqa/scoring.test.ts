/** Scores of SearchQA: normalisation, matches, overlap, Search-R1's outcome and format scores, and the form they check. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  checkSequence,
  exactMatch,
  formatScore,
  normalize,
  outcomeScore,
  retrievalHolds,
  subMatch,
  tokenOverlap,
} from '../../../envs/searchqa/scoring.ts';

describe('normalisation', () => {
  it.each([
    ['The Beatles', 'beatles'],
    ['  An  apple, a pear & the end. ', 'apple pear end'],
    ['U.S.A.', 'usa'],
    ["it's", 'its'],
    ['theatre another', 'theatre another'],
    ['A-team', 'ateam'],
    ['thé a', 'thé'],
    ['the_end a_b', 'theend ab'],
    ['«a»', '« »'],
    ['日本の', '日本の'],
    ['…', '…'],
    ['the', ''],
    ['', ''],
  ])('of %j is %j', (text, expected) => {
    expect(normalize(text)).toBe(expected);
  });

  it('once done is done', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('The', 'a', 'an', 'x', '.', ' ', 'Éa', '_', '7', '\u00a0')), (pieces) => {
        const once = normalize(pieces.join(' '));
        expect(normalize(once)).toBe(once);
      }),
    );
  });
});

describe('matches', () => {
  it.each([
    ['Ann Bel', 'ann bel', true, true],
    ['the Ann Bel!', ['Tom', 'Ann Bel'], true, true],
    ['it was Ann Bel', 'Ann Bel', false, true],
    ['Ann', 'Ann Bel', false, false],
    ['banana', 'an', false, true],
    ['anything', [], false, false],
    ['anything', '', false, true],
    ['', '', true, true],
  ] as const)('%j for %j: exactly %s, within %s', (prediction, golden, exact, within) => {
    expect([exactMatch(prediction, golden), subMatch(prediction, golden)]).toEqual([exact, within]);
  });

  it('exactly is also within', () => {
    fc.assert(
      fc.property(fc.string(), fc.array(fc.string(), { maxLength: 3 }), (prediction, golden) => {
        if (exactMatch(prediction, golden)) expect(subMatch(prediction, golden)).toBe(true);
        expect(exactMatch(prediction, [...golden, prediction])).toBe(true);
      }),
    );
  });
});

describe('overlap', () => {
  it.each([
    ['Ann Bel', 'Ann Bel', 1, 1, 1],
    ['Ann Smith', 'Ann Bel', 0.5, 0.5, 0.5],
    ['Ann', 'Ann Bel', 2 / 3, 1, 0.5],
    ['Ann Ann', 'Ann Bel', 0.5, 0.5, 0.5],
    ['the', 'Ann', 0, 0, 0],
    ['yes', 'yes it is', 0, 0, 0],
    ['yes', 'Yes!', 1, 1, 1],
    ['no way', 'no', 0, 0, 0],
    ['', '', 0, 0, 0],
  ])('of %j with %j', (prediction, golden, f1, precision, recall) => {
    const found = tokenOverlap(prediction, golden);
    expect(found.f1).toBeCloseTo(f1, 12);
    expect(found.precision).toBeCloseTo(precision, 12);
    expect(found.recall).toBeCloseTo(recall, 12);
  });

  it('takes the best of each figure over the golden answers', () => {
    expect(tokenOverlap('Ann', ['Ann Bel', 'Ann Bel Cee Dee'])).toEqual({ f1: 2 / 3, precision: 1, recall: 0.5 });
  });

  it('is symmetric in precision and recall, and at most 1', () => {
    const words = fc
      .array(fc.constantFrom('x', 'y', 'z', 'w'), { minLength: 1, maxLength: 5 })
      .map((all) => all.join(' '));
    fc.assert(
      fc.property(words, words, (one, other) => {
        const [there, back] = [tokenOverlap(one, other), tokenOverlap(other, one)];
        expect(there.f1).toBeCloseTo(back.f1, 12);
        expect(there.precision).toBeCloseTo(back.recall, 12);
        expect(Math.max(there.f1, there.precision, there.recall)).toBeLessThanOrEqual(1);
      }),
    );
  });
});

describe('the outcome of a text', () => {
  it.each([
    ['<answer>Ann</answer>', {}, 1],
    ['<answer>Tom</answer> no, <answer> ann </answer>', {}, 1],
    ['<answer>Ann</answer> no, <answer>Tom</answer>', {}, 0],
    ['<answer>Tom</answer>', { formatScore: 0.1 }, 0.1],
    ['Ann', { formatScore: 0.1 }, 0],
    ['<answer>Ann</answer>', { minAnswers: 2 }, 0],
    ['<answer>Beijing</answer> <answer>Ann</answer>', { minAnswers: 2 }, 1],
    ['<answer>it is Ann</answer>', { match: subMatch }, 1],
  ])('%j under %j is worth %d', (text, options, score) => {
    expect(outcomeScore(text, ['Ann'], options)).toBe(score);
  });
});

const assistant = (...parts: string[]) => `<|im_start|>assistant\n${parts.join('')}`;
const SEARCHED = assistant(
  '<think>t</think><search>q</search><information>Ann Bel made it.</information><think>u</think><answer>',
);

describe('the form of a conversation', () => {
  it.each([
    [assistant('<think>t</think><answer>x</answer>'), 'Valid sequence format'],
    [`${SEARCHED}x</answer>`, 'Valid sequence format'],
    [assistant('<think>t</think>\n <answer>x</answer>\n'), 'Valid sequence format'],
    ['<think>t</think><answer>x</answer>', 'Missing assistant marker'],
    [assistant('<think>t<answer>x</answer>'), 'Mismatch in think tags: 1 opening vs 0 closing tags'],
    [assistant('<answer>x</answer>'), 'Unexpected tag <answer> in state start'],
    [assistant('<think>t</think><information>i</information>'), 'Unexpected tag <information> in state after_think'],
    [assistant('<think>a</think><think>b</think>'), 'Unexpected tag <think> in state after_think'],
    [assistant('<think>t</think> so <answer>x</answer>'), "Unexpected content 'so' between tags (state: after_think)"],
    [assistant('<think>t</think><answer>x</answer> done'), 'Unexpected content in state end'],
    [assistant('<think>t</think>'), 'Incomplete sequence, ended in state after_think'],
    [assistant(''), 'Incomplete sequence, ended in state start'],
    [assistant('<think>t</think><search>q</search>'), 'Incomplete sequence, ended in state after_search'],
  ])('%j: %s', (text, reason) => {
    expect(checkSequence(text)).toEqual({ valid: reason === 'Valid sequence format', reason });
  });
});

describe('the score of form and answer', () => {
  const weights = { structure: 0.2, final: 0.1, retrieval: 0.05 };
  const score = (text: string, options = {}) => formatScore(text, ['Ann Bel'], weights, options);

  it.each([
    ['right in form', `${SEARCHED}Ann Bel</answer>`, 1],
    ['right, not in form', assistant('<answer>Ann Bel</answer>'), 0.8],
    ['wrong in form, the passage read holds it', `${SEARCHED}Tom</answer>`, 0.25],
    ['wrong in form', assistant('<think>t</think><answer>Tom</answer>'), 0.2],
    ['wrong, not in form', assistant('<answer>Tom</answer>'), 0.1],
    ['no answer', assistant('<think>t</think>'), 0],
  ])('%s', (_what, text, expected) => {
    expect(score(text)).toBeCloseTo(expected, 12);
  });

  it('takes marks behind the answer for none of the form, which the original does', () => {
    const text = `${SEARCHED}Ann Bel</answer><|im_end|>\n<|endoftext|>`;
    expect(score(text)).toBe(1);
    expect(score(text, { original: true })).toBe(0.8);
  });

  it('looks for a golden answer as a whole, in the original letter by letter', () => {
    const text = assistant('<information>xyz n</information>');
    expect(retrievalHolds(text, 'Ann')).toBe(false);
    expect(retrievalHolds(text, 'Ann', true)).toBe(true);
    expect(retrievalHolds(text, ['Ann'], true)).toBe(false);
    expect(retrievalHolds(assistant('<information> The ann. </information>'), ['Tom', 'Ann'])).toBe(true);
    expect(retrievalHolds('Ann', ['Ann'])).toBe(false);
  });
});
