import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  type AgentCall,
  type AgentReply,
  createReplyMessage,
  printAgentCall,
  printAgentReply,
  readAgentCall,
  readAgentReply,
} from '../../src/core/agent-call.ts';

const text = fc.string({ unit: 'binary' }).map((one) => one.toWellFormed());
const object = fc.dictionary(text, fc.oneof(text, fc.integer(), fc.constant(null)));
const calls = fc.array(fc.record({ id: text, name: text, arguments: text }), { maxLength: 3 });
const message = fc.oneof(
  fc.record({ role: fc.constantFrom('system' as const, 'user' as const), content: text }),
  fc.record({ role: fc.constant('tool' as const), callId: text, content: text }),
  fc.record({ role: fc.constant('tool' as const), callId: text, content: text, isError: fc.constant(true as const) }),
  fc.record(
    { role: fc.constant('assistant' as const), content: text, reasoning: text, calls },
    { requiredKeys: ['role', 'content'] },
  ),
);
const tools = fc.array(
  fc.record({ name: text, description: text, parameters: object }, { requiredKeys: ['name', 'parameters'] }),
);
const setting = fc.integer();
const call: fc.Arbitrary<AgentCall> = fc
  .record(
    {
      call: fc.nat(100),
      parent: fc.option(fc.nat(100)),
      messages: fc.array(message, { minLength: 1 }),
      tools,
      toolChoice: fc.oneof(fc.constantFrom('none' as const, 'required' as const), fc.record({ name: text })),
      parallelCalls: fc.constant(false),
      format: fc.oneof(
        fc.constant({ type: 'json' as const }),
        fc.record({ type: fc.constant('json-schema' as const), name: text, schema: object }),
      ),
      maxTokens: fc.integer({ min: 1 }),
      stop: fc.array(text, { minLength: 1 }),
      sampling: fc
        .record({ temperature: setting, topP: setting, topK: setting, seed: setting }, { requiredKeys: [] })
        .filter((asked) => Object.keys(asked).length > 0),
    },
    { requiredKeys: ['call', 'parent', 'messages', 'tools'] },
  )
  .map((one) => ({ ...one, parent: one.parent !== null && one.parent < one.call ? one.parent : null }));
const reply: fc.Arbitrary<AgentReply> = fc.record(
  {
    content: text,
    reasoning: text,
    calls: fc.array(fc.record({ name: text, arguments: text })),
    finish: fc.constantFrom('stop' as const, 'calls' as const, 'length' as const, 'filter' as const),
    usage: fc.record({ promptTokens: fc.nat(), completionTokens: fc.nat() }),
    repairs: fc.array(text, { minLength: 1 }),
  },
  { requiredKeys: ['content', 'calls', 'finish', 'usage'] },
);

it('reads back the calls that it prints', () => {
  fc.assert(
    fc.property(call, (one) => {
      expect(readAgentCall(printAgentCall(one))).toEqual(one);
    }),
  );
});

it('leaves out what is so by itself', () => {
  const messages = [{ role: 'user' as const, content: 'go' }];
  const whole: AgentCall = {
    call: 1,
    parent: 0,
    messages,
    toolChoice: 'auto',
    parallelCalls: true,
    stop: [],
    sampling: {},
  };
  expect(readAgentCall(printAgentCall(whole))).toEqual({ call: 1, parent: 0, messages });
});

it('names the field of a call that is missing or wrong', () => {
  const good = { call: 1, parent: null, messages: [{ role: 'user', content: 'go' }], tools: [] };
  const refused: readonly (readonly [unknown, string])[] = [
    ['no JSON', 'an observation'],
    [[], 'an observation'],
    [{ ...good, call: -1 }, 'call'],
    [{ ...good, parent: 1 }, 'parent'],
    [{ ...good, messages: [] }, 'messages'],
    [{ ...good, sampling: { seed: 'one' } }, 'sampling.seed'],
    [{ ...good, messages: [{ role: 'user' }] }, 'messages[0].content'],
    [{ ...good, messages: [{ role: 'developer', content: '' }] }, 'messages[0].role'],
    [{ ...good, messages: [{ role: 'tool', content: '' }] }, 'messages[0].callId'],
    [{ ...good, messages: [{ role: 'assistant', content: '', calls: [{ id: '' }] }] }, 'messages[0].calls[0].name'],
    [{ ...good, tools: undefined }, 'tools'],
    [{ ...good, tools: [{ name: 'a', parameters: [] }] }, 'tools[0].parameters'],
    [{ ...good, toolChoice: 'maybe' }, 'toolChoice'],
    [{ ...good, parallelCalls: 1 }, 'parallelCalls'],
    [{ ...good, format: { type: 'xml' } }, 'format'],
    [{ ...good, maxTokens: 0 }, 'maxTokens'],
    [{ ...good, stop: [1] }, 'stop[0]'],
  ];
  for (const [value, field] of refused) {
    const written = typeof value === 'string' ? value : JSON.stringify(value);
    expect(() => readAgentCall(written), written).toThrow(`agent call: expected ${field} to be`);
    expect(() => readAgentCall(written)).toThrow(RangeError);
  }
});

it('reads back the replies that it prints', () => {
  fc.assert(
    fc.property(reply, (one) => {
      expect(readAgentReply(printAgentReply(one))).toEqual(one);
    }),
  );
});

it('takes any other text for a plain reply', () => {
  const texts = ['', 'go north', '{', '[]', '{"content": 1}', '{"content": "a", "calls": [{}], "finish": "stop"}'];
  for (const content of texts) {
    const usage = { promptTokens: 0, completionTokens: 0 };
    expect(readAgentReply(content)).toEqual({ content, calls: [], finish: 'stop', usage });
  }
});

it('names the calls of a reply as their results do, in whatever order these are', () => {
  const named = (...ids: string[]) => {
    const calls = ['a', 'b'].map((name) => ({ name, arguments: '{}' }));
    const results = ids.map((callId) => ({ role: 'tool' as const, callId, content: '' }));
    return createReplyMessage({ content: '', calls }, 3, results).calls?.map(({ id }) => id);
  };
  expect(named('call_3_0', 'call_3_1')).toEqual(['call_3_0', 'call_3_1']);
  expect(named('toolu_9_1', 'toolu_9_0')).toEqual(['toolu_9_0', 'toolu_9_1']);
  expect(named('toolu_9_1')).toEqual(['call_3_0', 'toolu_9_1']);
  expect(named('x', 'y')).toEqual(['x', 'y']);
  expect(named()).toEqual(['call_3_0', 'call_3_1']);
});
