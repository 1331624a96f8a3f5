/** Counts of calls of tools: kinds, sums, rates. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  addToolCounts,
  type CallKind,
  checkCall,
  countReply,
  NO_TOOL_COUNTS,
  readToolCounts,
  toolRates,
} from '../../src/core/tool-counts.ts';

const PAY = {
  name: 'pay',
  parameters: {
    type: 'object',
    properties: { amount: { type: 'integer' }, how: { enum: ['card', 'cash'] } },
    required: ['amount'],
    additionalProperties: false,
  },
};
const STOP = { name: 'stop', parameters: { type: 'object', properties: {} } };

describe('a call', () => {
  it.each<[string, string, CallKind]>([
    ['pay', '{"amount": 1, "how": "card"}', 'valid'],
    ['stop', ' ', 'valid'],
    ['pya', '{"amount": 1}', 'unknownTools'],
    ['pay', '{}', 'invalidArguments'],
    ['pay', '{"amount": "1"}', 'invalidArguments'],
    ['pay', '{"amount": 1, "how": "coins"}', 'invalidArguments'],
    ['pay', '{"amount": 1, "note": ""}', 'invalidArguments'],
    ['pay', '', 'invalidArguments'],
    ['pay', '{"amount": 1', 'malformedArguments'],
    ['pay', '[1]', 'malformedArguments'],
  ])('%s %s is %s', (name, args, kind) => expect(checkCall({ name, arguments: args }, [PAY, STOP])).toBe(kind));
});

const args = fc.constantFrom('{"amount": 1}', '{}', '{', '');
const calls = fc.array(fc.record({ name: fc.constantFrom('pay', 'stop', 'other'), arguments: args }));

it('each call is of one kind, whatever is called', () => {
  fc.assert(
    fc.property(fc.array(calls), (replies) => {
      const counts = replies.reduce((sum, one) => countReply(sum, { calls: one }, [PAY, STOP], 0), NO_TOOL_COUNTS);
      const { valid, unknownTools, invalidArguments, malformedArguments } = counts;
      expect(valid + unknownTools + invalidArguments + malformedArguments).toBe(counts.calls);
      expect(counts).toMatchObject({ replies: replies.length, calls: replies.flat().length });
      expect(readToolCounts(JSON.parse(JSON.stringify(counts)))).toEqual(counts);
    }),
  );
});

it('rates are shares of all calls of all episodes, and absent without any', () => {
  const one = { ...NO_TOOL_COUNTS, replies: 2, calls: 8, valid: 6, unknownTools: 2, errors: 4 };
  const sum = addToolCounts(one, {
    ...NO_TOOL_COUNTS,
    replies: 2,
    calls: 2,
    invalidArguments: 1,
    malformedArguments: 1,
  });
  expect(toolRates(sum)).toEqual({
    callsPerTurn: 2.5,
    validCalls: 0.6,
    unknownTools: 0.2,
    invalidArguments: 0.1,
    malformedArguments: 0.1,
    toolErrors: 0.4,
  });
  expect(toolRates({ ...NO_TOOL_COUNTS, replies: 3 })).toEqual({ callsPerTurn: 0 });
  expect(toolRates(NO_TOOL_COUNTS)).toBeUndefined();
  for (const other of [undefined, {}, { ...one, calls: -1 }, { ...one, calls: '8' }]) {
    expect(readToolCounts(other)).toBeUndefined();
  }
});
