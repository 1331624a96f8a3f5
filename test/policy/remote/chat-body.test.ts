/** Chat bodies: what is printed of a call is read back as that call by the dialect of chat completions. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { printAgentCall } from '../../../src/core/agent-call.ts';
import type { ConversationMessage, ModelCall } from '../../../src/core/model-call.ts';
import { DIALECTS } from '../../../src/gateway/dialects/dialects.ts';
import { KeptReplies } from '../../../src/gateway/items.ts';
import { AgentPrompting } from '../../../src/policy/remote/agent-prompting.ts';
import { printChatBody, readChatReply } from '../../../src/policy/remote/chat-body.ts';
import { smallConfig } from '../../support/small-run.ts';

const text = fc.string({ unit: 'binary', minLength: 1 }).map((one) => one.toWellFormed());
const names = fc.uniqueArray(text, { minLength: 1, maxLength: 4 });
const calls: fc.Arbitrary<ModelCall> = fc
  .record({
    names,
    asked: fc.array(text),
    said: fc.array(text),
    thought: fc.option(text, { nil: undefined }),
    choice: fc.constantFrom('auto' as const, 'none' as const, 'required' as const, 'named' as const),
    parallelCalls: fc.boolean(),
    format: fc.constantFrom(
      undefined,
      { type: 'json' as const },
      {
        type: 'json-schema' as const,
        name: 'answer',
        schema: { type: 'object' },
      },
    ),
    maxTokens: fc.option(fc.integer({ min: 1, max: 10_000 }), { nil: undefined }),
    stop: fc.array(text, { maxLength: 4 }),
    sampling: fc.record(
      {
        temperature: fc.double({ min: 0, max: 2, noNaN: true }),
        topP: fc.double({ min: 0, max: 1, noNaN: true }),
        topK: fc.integer({ min: 1, max: 100 }),
        presencePenalty: fc.integer({ min: -2, max: 2 }),
        frequencyPenalty: fc.integer({ min: -2, max: 2 }),
        seed: fc.integer(),
      },
      { requiredKeys: [] },
    ),
  })
  .map(({ names, asked, said, thought, choice, ...rest }) => {
    const messages: ConversationMessage[] = [{ role: 'system', content: 'Be brief.' }];
    for (const one of asked) messages.push({ role: 'user', content: one });
    const made = said.map((one, i) => ({ id: `call_${i}`, name: names[0]!, arguments: JSON.stringify({ one }) }));
    messages.push({
      role: 'assistant',
      content: 'Here',
      ...(thought === undefined ? {} : { reasoning: thought }),
      ...(made.length > 0 ? { calls: made } : {}),
    });
    for (const { id } of made) messages.push({ role: 'tool', callId: id, content: 'done' });
    const tools = names.map((name, i) => ({
      name,
      ...(i > 0 ? { description: name } : {}),
      parameters: { type: 'object' },
    }));
    return { messages, tools, toolChoice: choice === 'named' ? { name: names[0]! } : choice, ...rest };
  });

it('is read back as the call that it was printed of', () => {
  fc.assert(
    fc.property(calls, (call) => {
      const body: unknown = JSON.parse(JSON.stringify(printChatBody(call, 'mine')));
      const read = DIALECTS.chat.parse(body, new KeptReplies());
      expect(read.model).toBe('mine');
      expect(JSON.parse(JSON.stringify(read.call))).toEqual(JSON.parse(JSON.stringify(call)));
    }),
    { numRuns: 300 },
  );
});

it('says nothing that the call does not', () => {
  const messages = [{ role: 'user' as const, content: 'go' }];
  const call: ModelCall = { messages, tools: [], toolChoice: 'auto', parallelCalls: true, stop: [], sampling: {} };
  expect(printChatBody(call, 'mine')).toEqual({ model: 'mine', messages });
});

it('keeps the end that the server names: calls of a reply that was cut are not whole', () => {
  const completion = { text: '', calls: [{ name: 'look', args: '{' }], promptTokens: 1, completionTokens: 2 };
  expect(readChatReply({ ...completion, finish: 'length' }).finish).toBe('length');
  expect(readChatReply({ ...completion, finish: 'stop' }).finish).toBe('calls');
  expect(readChatReply({ ...completion, calls: [], finish: 'tool_calls' }).finish).toBe('stop');
});

describe('an agent that is evaluated on a hosted model', () => {
  const config = smallConfig({ policy: { kind: 'openai', openai: { model: 'hosted' } } });
  const messages = [{ role: 'user' as const, content: 'go' }];
  const bodyOf = (sampling: ModelCall['sampling'], more: object = {}) => {
    const prompting = new AgentPrompting({ ...config.policy.openai, ...more }, 'hosted');
    const observation = printAgentCall({ call: 0, parent: null, messages, tools: [], sampling });
    const rest = { actions: new Int32Array(0), newActions: [], group: 0, member: 0, groupSize: 1 };
    return prompting.ask({ episode: 1, turn: 0, observation, temperature: 1, samplingSeed: 7, ...rest }).body;
  };

  it('samples by its own settings, and by those of the evaluation where it has none', () => {
    const plain = bodyOf({});
    expect(plain).toMatchObject({ temperature: 1, seed: expect.any(Number) });
    expect(plain).not.toHaveProperty('top_p');
    expect(bodyOf({ temperature: 0.2, topP: 0.5 })).toEqual({ ...plain, temperature: 0.2, top_p: 0.5 });
    expect(bodyOf({ seed: 3 }).seed).toBe(3);
  });

  it('gets what the configuration adds, and lacks what it omits', () => {
    expect(bodyOf({ temperature: 0.2 }, { body: { temperature: 0.9 } }).temperature).toBe(0.9);
    expect(bodyOf({ temperature: 0.2 }, { omit: ['temperature'] })).not.toHaveProperty('temperature');
  });
});
