/** Word rules of NLTK, as `must_include` needs them, and the answers that they decide. */
import { describe, expect, it } from 'vitest';
import { mustInclude } from '../../../envs/webarena/evaluate.ts';
import { tokenize } from '../../../envs/webarena/tokenize.ts';

describe('words', () => {
  it.each([
    ['There are 0 of them.', ['There', 'are', '0', 'of', 'them', '.']],
    ['$0.00', ['$', '0.00']],
    ['10%', ['10', '%']],
    ['a, b: c; d', ['a', ',', 'b', ':', 'c', ';', 'd']],
    ['1,000 and 12:30', ['1,000', 'and', '12:30']],
    ['wait... what?', ['wait', '...', 'what', '?']],
    ["I can't; don't", ['I', 'ca', "n't", ';', 'do', "n't"]],
    ["it's Ann's", ['it', "'s", 'Ann', "'s"]],
    ["we'll they're I've", ['we', "'ll", 'they', "'re", 'I', "'ve"]],
    ['He said "yes".', ['He', 'said', '``', 'yes', "''", '.']],
    ['(a) [b] {c} <d>', ['(', 'a', ')', '[', 'b', ']', '{', 'c', '}', '<', 'd', '>']],
    ['a--b', ['a', '--', 'b']],
    ['cannot gonna', ['can', 'not', 'gon', 'na']],
    ['“so” ‘it’ goes', ['“', 'so', '”', '‘', 'it', '’', 'goes']],
    ["the '90s", ['the', "'", '90s']],
    ["'0' '5 km'", ["'", '0', "'", "'", '5', 'km', "'"]],
    ["'mission 'm x'0", ["'", 'mission', "'m", "x'0"]],
    ['écannot cannot', ['écannot', 'can', 'not']],
    ['', []],
  ])('of %j', (text, expected) => {
    expect(tokenize(text)).toEqual(expected);
  });
});

describe('inclusion', () => {
  it.each([
    ['0', 'There are 0 of them', true, 1],
    ['0', '10', true, 0],
    ['0', '$0.00', true, 0],
    ['0', '10', false, 1],
    ['No', 'no.', true, 1],
    ['5', "'5'", true, 1],
    ['ten', 'often', true, 1],
    ['Ten', 'TENDER', false, 1],
    ['', 'anything', true, 1],
  ])('%j in %j, as a word %s: %i', (reference, answer, tokenized, score) => {
    expect(mustInclude(reference, answer, tokenized)).toBe(score);
  });
});
