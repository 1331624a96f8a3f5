/** Mutated calls of agents, replies of models and schemas: read, or refused in a message; never anything else. */
import { expect, it } from 'vitest';
import { type AgentCall, printAgentCall, readAgentCall, readAgentReply } from '../../src/core/agent-call.ts';
import { parseJson } from '../../src/core/json-text.ts';
import type { Tool } from '../../src/core/model-call.ts';
import { isRecord } from '../../src/core/record.ts';
import { Grammar } from '../../src/text/grammar/grammar.ts';
import { checkSchema, schemaNode } from '../../src/text/grammar/json-schema.ts';
import { TOOL_FORMATS } from '../../src/text/tools/formats.ts';
import { amount, campaign } from './campaign.ts';
import { type Json, mutatedJson, mutatedText } from './mutations.ts';

const COUNT = amount(100_000, 1000);

const SCHEMA: Json = {
  type: 'object',
  properties: {
    city: { type: 'string', minLength: 1, maxLength: 3 },
    days: { type: ['integer', 'null'] },
    tags: { type: 'array', items: { enum: ['a', 1, null] }, minItems: 1, maxItems: 3 },
    next: { anyOf: [{ $ref: '#' }, { $ref: '#/$defs/other' }, { type: 'null' }] },
  },
  required: ['city'],
  additionalProperties: false,
  $defs: { other: { allOf: [{ const: { a: 1 } }] } },
};
const tools: readonly Tool[] = [{ name: 'get_weather', parameters: SCHEMA as Record<string, unknown> }];
const CALL: AgentCall = {
  ...{ call: 2, parent: null, tools, toolChoice: { name: 'get_weather' }, maxTokens: 5, stop: ['x'] },
  format: { type: 'json-schema', name: 'a', schema: SCHEMA as Record<string, unknown> },
  messages: [
    { role: 'user', content: 'go' },
    { role: 'assistant', content: '', reasoning: 'hm', calls: [{ id: 'a', name: 'get_weather', arguments: '{}' }] },
    { role: 'tool', callId: 'a', content: '20', isError: true },
  ],
};

/** Runs what may refuse by a RangeError alone. */
function readOrRefused(read: () => void): void {
  try {
    read();
  } catch (thrown) {
    if (!(thrown instanceof RangeError)) throw thrown;
    expect(thrown.message).toMatch(/^agent call: expected |replies cannot be held to$/);
  }
}

it('calls are read, or refused by a field', async () => {
  const call = JSON.parse(printAgentCall(CALL)) as Json;
  await campaign('calls of agents', COUNT, (rng) => {
    readOrRefused(() => readAgentCall(mutatedJson(call, rng)));
    readOrRefused(() => readAgentCall(mutatedText(printAgentCall(CALL), rng)));
  });
});

it('replies are read, as calls or as text, and what was read is JSON', async () => {
  const calls = [{ name: 'get_weather', arguments: '{"city": "Paris", "days": 2, "tags": ["a", 1.0]}' }];
  await campaign('replies with calls', COUNT, (rng, n) => {
    const format = TOOL_FORMATS[n % TOOL_FORMATS.length]!;
    const text = mutatedText(format.print('Well.', n % 3 === 0 ? [...calls, ...calls] : calls), rng);
    for (const isCut of [false, true]) {
      const parsed = format.parse(text, tools, isCut);
      for (const { arguments: args } of parsed.calls) expect(typeof JSON.parse(args)).toBe('object');
      if (parsed.malformed !== undefined) expect(parsed.calls).toEqual([]);
    }
    expect(typeof readAgentReply(text).content).toBe('string');
  });
});

it('schemas are obeyed, or refused by a keyword', async () => {
  await campaign('schemas', COUNT, (rng) => {
    let schema: unknown;
    try {
      schema = parseJson(mutatedJson(SCHEMA, rng));
    } catch {
      return;
    }
    if (!isRecord(schema)) return;
    const why = checkSchema(schema);
    if (why !== undefined) return;
    // Its grammar is walked some way along: whatever it refers to is made.
    const grammar = new Grammar(schemaNode(schema));
    let state = grammar.start;
    for (let i = 0; i < 60; i++) {
      const next = [...Array(128).keys()].filter((byte) => grammar.step(state, byte));
      if (next.length === 0) break;
      state = grammar.step(state, next[rng.int(next.length)]!)!;
    }
  });
});
