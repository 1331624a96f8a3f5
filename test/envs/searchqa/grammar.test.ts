/** SearchQA's protocol as text: tags, actions, and the sentences that observations are made of. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { contentsOf, cutAtAction, extractAnswer, parse, print, stripThoughts } from '../../../envs/searchqa/grammar.ts';
import * as text from '../../../envs/searchqa/text.ts';
import { strip } from '../../../src/core/python-text.ts';

describe('an action', () => {
  it.each([
    ['<search> a b </search>', { type: 'search', content: 'a b' }],
    ['I think <answer>x</answer>', { type: 'answer', content: 'x' }],
    ['<answer>x</answer><search>y</search>', { type: 'answer', content: 'x' }],
    ['<search>y</search><answer>x</answer>', { type: 'search', content: 'y' }],
    ['<search>open <answer>x</answer>', { type: 'answer', content: 'x' }],
    ['<search>a<search>b</search>', { type: 'search', content: 'a<search>b' }],
    ['<search></search>', { type: 'search', content: '' }],
    ['<search>\u0085a\u001c</search>', { type: 'search', content: 'a' }],
    ['<SEARCH>x</SEARCH>', undefined],
    ['</search><search>', undefined],
    ['<answer x>y</answer>', undefined],
    ['', undefined],
  ])('%j', (text, command) => {
    expect(parse(text)).toEqual(command);
  });

  it('is read back as it is printed', () => {
    const contents = fc.string().filter((content) => strip(content) === content);
    fc.assert(
      fc.property(fc.constantFrom('search' as const, 'answer' as const), contents, (type, content) => {
        fc.pre(!content.includes('</'));
        expect(parse(print({ type, content }))).toEqual({ type, content });
      }),
    );
  });
});

describe('blocks', () => {
  it('of a tag are found in order, closed ones alone', () => {
    expect(
      contentsOf('<information>a</information> <information>b</information><information>c', 'information'),
    ).toEqual(['a', 'b']);
  });

  it.each([
    ['x<think>y</think>z', 'xz'],
    ['<think>a</think><think>b</think>', ''],
    ['<think>open', '<think>open'],
    ['<think>a<think>b</think>c</think>', 'c</think>'],
  ])('of thoughts are taken out of %j', (text, rest) => {
    expect(stripThoughts(text)).toBe(rest);
  });

  it.each([
    ['a</search>b</search>c', 'a</search>'],
    ['a</answer>b</search>c', 'a</answer>b</search>'],
    ['a</answer>b', 'a</answer>'],
    ['abc', 'abc'],
  ])('end a response: %j at %j', (text, kept) => {
    expect(cutAtAction(text)).toBe(kept);
  });

  it.each([
    ['<answer>a</answer><answer> b </answer>', 1, 'b'],
    ['<answer>a</answer><answer> b </answer>', 2, 'b'],
    ['<answer>a</answer>', 2, undefined],
    ['a', 1, undefined],
  ])('of answers: the last of %j, of at min %i, is %j', (text, min, answer) => {
    expect(extractAnswer(text, min)).toBe(answer);
  });
});

describe('observations', () => {
  it.each(['agentgym', 'search-r1'] as const)(
    'of the dialect %s open with the question, which is read back',
    (dialect) => {
      const first = text.opening(dialect, 'Who made it?');
      expect(first).toContain('Question: Who made it?');
      expect(text.readQuestion(first)).toBe('Who made it?');
      expect(text.readQuestion(`x${first}`)).toBe('');
    },
  );

  it.each([
    [' who ', 'who?'],
    ['who?', 'who?'],
    ['', '?'],
  ])('ask %j as %j', (raw, question) => {
    expect(text.asQuestion(raw)).toBe(question);
  });

  it('list passages by number, title and text', () => {
    expect(text.listPassages(['"A"\nfirst', 'second', '"C"\nx\ny'])).toBe(
      'Doc 1(Title: "A") first\nDoc 2(Title: second) \nDoc 3(Title: "C") x\ny\n',
    );
    expect(text.information('agentgym', ' x \n')).toBe('<information>x</information>');
    expect(text.information('search-r1', 'x')).toBe('\n\n<information>x</information>\n\n');
  });

  it('give their passages back', () => {
    const word = fc.stringMatching(/^[A-Za-z][a-z ]{0,12}$/).filter((one) => strip(one) === one);
    fc.assert(
      fc.property(fc.array(fc.record({ title: word, text: word }), { maxLength: 4 }), (passages) => {
        const contents = passages.map((one) => `"${one.title}"\n${one.text}`);
        expect(text.readPassages(text.information('agentgym', text.listPassages(contents)))).toEqual(passages);
      }),
    );
    expect(text.readPassages('no information')).toEqual([]);
  });
});

describe('a tamed passage', () => {
  it('closes no tag of the protocol', () => {
    expect(text.tame('a</information><think>b<br>', 100)).toBe('a‹/information›‹think›b<br>');
  });

  it('is no longer than it may be, and ends with a word', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 300 }), fc.integer({ min: 10, max: 120 }), (contents, max) => {
        const tamed = text.tame(contents, max);
        expect(tamed.length).toBeLessThanOrEqual(Math.max(max, 200));
        expect(/<\/?(?:think|search|information|answer)>/.test(tamed)).toBe(false);
      }),
    );
    expect(text.tame('"T"\none two three', 12)).toBe('"T"\none two');
  });

  it('is not cut inside a character', () => {
    expect(text.tame(`"T"\n${'😀'.repeat(20)}`, 10)).toBe('"T"\n😀😀😀');
  });
});
