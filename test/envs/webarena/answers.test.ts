/**
 * Typed answers of the tasks on our own sites: the notations each type is accepted in, and texts that are no answer.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Answer, accepts, acceptsOriginal, answerText } from '../../../envs/webarena/answers.ts';

const ANSWERS: readonly (readonly [answer: Answer, text: string])[] = [
  [{ type: 'number', value: 12 }, '12'],
  [{ type: 'money', value: 123450 }, '$1234.50'],
  [{ type: 'date', value: '2023-05-30' }, '2023-05-30'],
  [{ type: 'distance', value: 2240 }, '2.2 km'],
  [{ type: 'minutes', value: 75 }, '75 minutes'],
  [{ type: 'yesno', value: true }, 'Yes'],
  [{ type: 'yesno', value: false }, 'No'],
  [{ type: 'text', value: 'Ada Dahl' }, 'Ada Dahl'],
  [{ type: 'none' }, 'N/A'],
];

describe('an answer', () => {
  it.each(ANSWERS)('%j is written as %s', (answer, text) => {
    expect(answerText(answer)).toBe(text);
    expect(accepts(answer, text)).toBe(true);
    expect(acceptsOriginal(answer, text)).toBe(true);
  });

  it('of another type or value is not accepted', () => {
    for (const [answer] of ANSWERS)
      for (const [other, text] of ANSWERS) {
        if (other === answer) continue;
        // "12" is in no other text, nor is any other answer.
        expect([answer, text, accepts(answer, text)]).toEqual([answer, text, false]);
      }
  });

  it('that is an essay is none', () => {
    expect(accepts({ type: 'number', value: 12 }, `12 ${'because it is so '.repeat(5)}`)).toBe(false);
    expect(accepts({ type: 'text', value: 'Ada Dahl' }, `${'Bea Dahl, '.repeat(9)}Ada Dahl`)).toBe(false);
  });
});

describe('notations', () => {
  it.each<[Answer, string, boolean]>([
    [{ type: 'number', value: 12 }, 'There are 12.', true],
    [{ type: 'number', value: 1200 }, '1,200', true],
    [{ type: 'number', value: 12 }, '12 of 12', true],
    [{ type: 'number', value: 12 }, '12 or 13', false],
    [{ type: 'number', value: 12 }, '112', false],
    [{ type: 'number', value: 12 }, 'v12', false],
    [{ type: 'number', value: 12 }, '12.5', false],
    [{ type: 'number', value: 0 }, 'none', false],
    [{ type: 'money', value: 1250 }, '12.5', true],
    [{ type: 'money', value: 1250 }, '$12.50', true],
    [{ type: 'money', value: 1250 }, 'It costs $12.50.', true],
    [{ type: 'money', value: 1250 }, '$12.51', false],
    [{ type: 'money', value: 125000 }, '$1,250.00', true],
    [{ type: 'date', value: '2023-05-30' }, '2023-5-30', true],
    [{ type: 'date', value: '2023-05-30' }, 'May 30, 2023', true],
    [{ type: 'date', value: '2023-05-30' }, '30th May 2023', true],
    [{ type: 'date', value: '2023-05-30' }, '5/30/2023', true],
    [{ type: 'date', value: '2023-05-30' }, 'May 2023', false],
    [{ type: 'date', value: '2023-05-30' }, '2023-05-30 or 2023-05-31', false],
    [{ type: 'distance', value: 2240 }, '2.2km', true],
    [{ type: 'distance', value: 2240 }, '2200 metres', true],
    [{ type: 'distance', value: 2240 }, '2.3 km', false],
    [{ type: 'distance', value: 2240 }, '2.2', false],
    [{ type: 'minutes', value: 75 }, '75', true],
    [{ type: 'minutes', value: 75 }, '1h 15min', true],
    [{ type: 'minutes', value: 60 }, '1 hour', true],
    [{ type: 'minutes', value: 75 }, '1 hour', false],
    [{ type: 'yesno', value: true }, 'yes, it can', true],
    [{ type: 'yesno', value: true }, 'It can', false],
    [{ type: 'yesno', value: false }, 'Not yes', false],
    [{ type: 'yesno', value: false }, 'no.', true],
    [{ type: 'yesno', value: false }, 'nothing', false],
    [{ type: 'yesno', value: false }, 'No idea', false],
    [{ type: 'yesno', value: false }, 'no information found', false],
    [{ type: 'yesno', value: false }, 'No, it is not', true],
    [{ type: 'yesno', value: false }, 'no it is not', true],
    [{ type: 'yesno', value: false }, 'No - sold out', true],
    [{ type: 'text', value: 'Ada Dahl' }, '"ada dahl"', true],
    [{ type: 'text', value: 'Ada' }, 'Adaline', false],
    [{ type: 'text', value: 'KI100' }, 'SKU KI100.', true],
    [{ type: 'none' }, 'Not achievable.', true],
    [{ type: 'none' }, 'impossible', true],
    [{ type: 'none' }, 'I do not know', false],
  ])('%j in %j: %s', (answer, given, accepted) => {
    expect(accepts(answer, given)).toBe(accepted);
  });
});

describe('laws', () => {
  it('every number is accepted as itself and as no other', () => {
    fc.assert(
      fc.property(fc.nat(99_999), fc.nat(99_999), (one, other) => {
        expect(accepts({ type: 'number', value: one }, String(one))).toBe(true);
        expect(accepts({ type: 'number', value: one }, String(other))).toBe(one === other);
      }),
    );
  });

  it('every amount is accepted as pages show it', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 10_000_000 }), (value) => {
        expect(accepts({ type: 'money', value }, answerText({ type: 'money', value }))).toBe(true);
        expect(accepts({ type: 'money', value }, answerText({ type: 'money', value: value + 1 }))).toBe(false);
      }),
    );
  });

  it('every way is accepted in hours and minutes', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 600 }), (value) => {
        const text = `${Math.floor(value / 60)} hours ${value % 60} minutes`;
        expect(accepts({ type: 'minutes', value }, text)).toBe(true);
      }),
    );
  });
});
