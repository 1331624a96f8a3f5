/** Requests of the three dialects: their canonical form, what is refused, and by which name. */
import { describe, expect, it } from 'vitest';
import { parseJson } from '../../../src/core/json-text.ts';
import type { ConversationMessage } from '../../../src/core/model-call.ts';
import {
  type DialectId,
  type ParsedRequest,
  RefusedCall,
  type StoredItems,
} from '../../../src/gateway/dialects/dialect.ts';
import { DIALECTS } from '../../../src/gateway/dialects/dialects.ts';
import { FIELDS } from '../../../src/gateway/dialects/fields.ts';
import { parseCount } from '../../../src/gateway/dialects/messages.ts';

const nothing: StoredItems = { response: () => undefined, item: () => undefined };
const ids: DialectId[] = ['chat', 'responses', 'messages'];

/** Smallest request of each dialect. */
const SMALL: Readonly<Record<DialectId, object>> = {
  chat: { model: 'm', messages: [{ role: 'user', content: 'hi' }] },
  responses: { model: 'm', input: 'hi' },
  messages: { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'hi' }] },
};

function parse(dialect: DialectId, fields: object, items: StoredItems = nothing): ParsedRequest {
  return DIALECTS[dialect].parse({ ...SMALL[dialect], ...fields }, items);
}

function refusal(read: () => unknown): RefusedCall {
  try {
    read();
  } catch (thrown) {
    if (thrown instanceof RefusedCall) return thrown;
    throw thrown;
  }
  throw new Error('nothing was refused');
}

const chatMessages = (...messages: object[]) => parse('chat', { messages }).call.messages;
const blocks = (...messages: object[]) => parse('messages', { messages }).call.messages;
const items = (...input: object[]) => parse('responses', { input }).call.messages;

const user = { role: 'user', content: 'Q' };
const call = { id: 'call_0_0', name: 'search', arguments: '{"query":"a"}' };
const chatCall = { id: 'call_0_0', type: 'function', function: { name: 'search', arguments: '{"query":"a"}' } };
const block = { type: 'tool_use', id: 'call_0_0', name: 'search', input: { query: 'a' } };
const item = { type: 'function_call', call_id: 'call_0_0', name: 'search', arguments: '{"query":"a"}' };

describe('one conversation', () => {
  const expected: ConversationMessage[] = [
    { role: 'system', content: 'S' },
    { role: 'user', content: 'Q' },
    { role: 'assistant', content: 'I will.', reasoning: 'Hm.', calls: [call] },
    { role: 'tool', callId: 'call_0_0', content: 'found' },
    { role: 'user', content: 'more' },
    { role: 'system', content: 'late' },
    { role: 'user', content: 'go' },
  ];

  it('is the same in all dialects', () => {
    const [late, go] = [
      { role: 'system', content: 'late' },
      { role: 'user', content: 'go' },
    ];
    const chat = chatMessages(
      { role: 'system', content: 'S' },
      user,
      { role: 'assistant', content: 'I will.', reasoning_content: 'Hm.', tool_calls: [chatCall] },
      { role: 'tool', tool_call_id: 'call_0_0', content: 'found' },
      { role: 'user', content: 'more' },
      late,
      go,
    );
    expect(chat).toEqual(expected);
    const results = [
      { type: 'tool_result', tool_use_id: 'call_0_0', content: [{ type: 'text', text: 'found' }] },
      { type: 'text', text: 'mo' },
      { type: 'text', text: 're' },
    ];
    const thinking = { type: 'thinking', thinking: 'Hm.', signature: 'x' };
    const redacted = { type: 'redacted_thinking', data: 'x' };
    const more = { ...thinking, thinking: 'm.' };
    const turn = [{ ...thinking, thinking: 'H' }, redacted, more, { type: 'text', text: 'I will.' }, block];
    const read = parse('messages', {
      system: [{ type: 'text', text: 'S', cache_control: { type: 'ephemeral' } }],
      messages: [user, { role: 'assistant', content: turn }, { role: 'user', content: results }, late, go],
    });
    expect(read.call.messages).toEqual(expected);
    const input = [
      user,
      { type: 'reasoning', id: 'rs_0', summary: [{ type: 'summary_text', text: 'Hm.' }] },
      { type: 'message', role: 'assistant', id: 'msg_0', content: [{ type: 'output_text', text: 'I will.' }] },
      item,
      { type: 'function_call_output', call_id: 'call_0_0', output: [{ type: 'input_text', text: 'found' }] },
      { role: 'user', content: 'more' },
      { role: 'developer', content: 'late' },
      { role: 'user', content: [{ type: 'input_text', text: 'go' }] },
    ];
    expect(parse('responses', { instructions: 'S', input })).toMatchObject({
      call: { messages: expected },
      instructions: 1,
    });
  });

  it.each([
    ['a developer', { role: 'developer', content: 'S' }, { role: 'system', content: 'S' }],
    [
      'content as parts',
      {
        role: 'user',
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      },
      { role: 'user', content: 'ab' },
    ],
    ['no content', { role: 'assistant', content: null }, { role: 'assistant', content: '' }],
    ['absent content', { role: 'assistant' }, { role: 'assistant', content: '' }],
    [
      'an empty list of calls',
      { role: 'assistant', content: 'a', tool_calls: [] },
      { role: 'assistant', content: 'a' },
    ],
    [
      'calls that are null',
      { role: 'assistant', content: 'a', tool_calls: null, refusal: null, parsed: null },
      { role: 'assistant', content: 'a' },
    ],
    [
      'empty reasoning',
      { role: 'assistant', content: 'a', reasoning_content: '' },
      { role: 'assistant', content: 'a' },
    ],
    [
      'reasoning of vLLM',
      { role: 'assistant', content: 'a', reasoning: 'r' },
      { role: 'assistant', content: 'a', reasoning: 'r' },
    ],
    [
      'a refusal',
      { role: 'assistant', content: [{ type: 'refusal', refusal: 'no' }] },
      { role: 'assistant', content: 'no' },
    ],
    ['a name', { role: 'assistant', content: 'a', name: 'model' }, { role: 'assistant', content: 'a' }],
  ])('%s in chat', (_, given, message) => {
    expect(chatMessages(given)).toEqual([message]);
  });

  it('is the same, whatever clients change in the history (chat)', () => {
    const result = { role: 'tool', tool_call_id: 'call_0_0', content: 'found' };
    const base = chatMessages(user, { role: 'assistant', content: '', tool_calls: [chatCall] }, result);
    const nested = { type: 'text', text: '', role: 'assistant', refusal: null, tool_calls: [chatCall] };
    const turns = [
      { role: 'assistant', content: null, refusal: null, tool_calls: [chatCall] },
      {
        tool_calls: [{ function: { arguments: call.arguments, name: 'search' }, type: 'function', id: 'call_0_0' }],
        role: 'assistant',
      },
      { role: 'assistant', name: 'model', parsed: null, tool_calls: [{ ...chatCall, index: 0 }] },
      { role: 'assistant', content: [nested], tool_calls: [chatCall] },
      {
        role: 'assistant',
        content: '',
        tool_calls: [{ ...chatCall, function: { ...chatCall.function, parsed_arguments: {} } }],
      },
    ];
    for (const turn of turns) {
      const parts = { ...result, name: 'search', content: [{ type: 'text', text: 'found' }] };
      for (const one of [result, parts]) expect(chatMessages(user, turn, one)).toEqual(base);
    }
  });

  it('is the same, whatever clients change in the history (responses)', () => {
    const output = { type: 'function_call_output', call_id: 'call_0_0', output: 'found' };
    const message = { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'T' }] };
    const base = items(user, message, item, output);
    const kept: StoredItems = {
      response: (id) =>
        id === 'resp_0'
          ? [
              { role: 'user', content: 'Q' },
              { role: 'assistant', content: 'T', calls: [call] },
            ]
          : undefined,
      item: (id) =>
        id === 'msg_0'
          ? { type: 'message', content: 'T' }
          : id === 'fc_0_0'
            ? { type: 'call', callId: call.id, name: call.name, arguments: call.arguments }
            : id === 'rs_0'
              ? { type: 'reasoning', text: 'R' }
              : undefined,
    };
    const read = (input: unknown, fields: object = {}) => parse('responses', { input, ...fields }, kept).call.messages;
    const echoed = { ...item, id: 'fc_0_0', status: 'completed', parsed_arguments: { query: 'a' } };
    const easy = { role: 'assistant', content: 'T' };
    expect(read([user, easy, echoed, { ...output, status: 'completed' }])).toEqual(base);
    expect(read([user, { type: 'item_reference', id: 'msg_0' }, item, output])).toEqual(base);
    expect(
      read([user, { type: 'item_reference', id: 'msg_0' }, { type: 'item_reference', id: 'fc_0_0' }, output]),
    ).toEqual(base);
    expect(read([output], { previous_response_id: 'resp_0' })).toEqual(base);
    expect(read([user, { type: 'compaction', id: 'cmp_1', encrypted_content: 'resp_0' }, output])).toEqual(base);
    expect(read([user, easy, { type: 'compaction', encrypted_content: 'resp_0' }, output])).toEqual(base);
    const system = { role: 'system', content: 'S' };
    const compacted = read([user, { type: 'compaction', encrypted_content: 'resp_0' }, output], { instructions: 'S' });
    expect(compacted).toEqual([system, ...base]);
    expect(read([output], { previous_response_id: 'resp_0', instructions: 'S' })).toEqual([system, ...base]);
    const thought = [base[0], { ...base[1], reasoning: 'R' }, base[2]];
    expect(read([user, { type: 'item_reference', id: 'rs_0' }, easy, item, output])).toEqual(thought);
    const sealed = { type: 'reasoning', id: 'rs_0', encrypted_content: 'x', summary: [] };
    expect(read([user, sealed, easy, item, output])).toEqual(thought);
    expect(read([user, { ...sealed, id: 'rs_9' }, easy, item, output])).toEqual(base);
    expect(read(undefined, { previous_response_id: 'resp_0' })).toEqual(base.slice(0, 2));
    expect(read([], { previous_response_id: 'resp_0' })).toEqual(base.slice(0, 2));
    const content = [{ type: 'reasoning_text', text: 'R' }];
    expect(read([user, { type: 'reasoning', content, summary: [] }, easy, item, output])).toEqual(thought);
  });

  it('of a response keeps turns of the model apart where an item comes later than its place', () => {
    const message = (text: string) => ({ role: 'assistant', content: text });
    const thought = { type: 'reasoning', summary: [{ type: 'summary_text', text: 'R' }] };
    expect(items(user, message('a'), message('b'))).toHaveLength(3);
    expect(items(user, item, message('b'))).toHaveLength(3);
    expect(items(user, message('a'), thought, message('b'))[2]).toEqual({
      role: 'assistant',
      content: 'b',
      reasoning: 'R',
    });
    expect(items(user, item, thought, { ...item, call_id: 'call_1_0' })).toHaveLength(3);
    for (const role of ['user', 'system']) {
      expect(items(user, message('a'), { role, content: 'b' }).map((one) => one.role)).toEqual([
        'user',
        'assistant',
        role,
      ]);
    }
    expect(items(user, thought)[1]).toEqual({ role: 'assistant', content: '', reasoning: 'R' });
    const both = items(user, item, { ...item, call_id: 'call_0_1' });
    expect(both[1]).toMatchObject({ calls: [{ id: 'call_0_0' }, { id: 'call_0_1' }] });
  });

  it('of messages has each result of one turn as a message of its own, in its order', () => {
    const second = { ...block, id: 'call_0_1' };
    const results = [
      { type: 'text', text: 'before' },
      { type: 'tool_result', tool_use_id: 'call_0_1', content: 'b', is_error: true },
      { type: 'tool_result', tool_use_id: 'call_0_0' },
    ];
    expect(
      blocks(user, { role: 'assistant', content: [block, second] }, { role: 'user', content: results }).slice(2),
    ).toEqual([
      { role: 'user', content: 'before' },
      { role: 'tool', callId: 'call_0_1', content: 'b', isError: true },
      { role: 'tool', callId: 'call_0_0', content: '' },
    ]);
    expect(blocks({ role: 'user', content: [] })).toEqual([{ role: 'user', content: '' }]);
    const broken = { ...block, input: '{"query": "a' };
    expect(blocks(user, { role: 'assistant', content: [broken] }, user)[1]).toMatchObject({
      calls: [{ arguments: '{"query": "a' }],
    });
  });

  it('keeps its text as it is', () => {
    const text = ' \u0000 \u2028 🦘 é \n';
    for (const messages of [chatMessages({ role: 'user', content: text }), items({ role: 'user', content: text })]) {
      expect(messages).toEqual([{ role: 'user', content: text }]);
    }
    expect(blocks({ role: 'user', content: text })).toEqual([{ role: 'user', content: text }]);
  });
});

describe('tools', () => {
  const parameters = { type: 'object', properties: { query: { type: 'string' } } };
  const declared = { name: 'search', description: 'Searches.' };
  const shapes = {
    chat: { type: 'function', function: { ...declared, parameters, strict: true } },
    responses: { type: 'function', ...declared, parameters, strict: false },
    messages: { ...declared, input_schema: parameters, cache_control: { type: 'ephemeral' }, strict: true },
  };
  const bare = {
    chat: { type: 'function', function: { name: 'end', description: null } },
    responses: { type: 'function', name: 'end', parameters: null },
    messages: { type: 'custom', name: 'end' },
  };

  it.each(ids)('are functions in the shape of %s', (id) => {
    const { call: read } = parse(id, { tools: [shapes[id], bare[id]] });
    const end = { name: 'end', parameters: { type: 'object', properties: {} } };
    expect(read.tools).toEqual([{ ...declared, parameters, ...(id === 'responses' ? {} : { strict: true }) }, end]);
    expect([read.toolChoice, read.parallelCalls]).toEqual(['auto', true]);
    expect(parse(id, {}).call).toMatchObject({ tools: [], toolChoice: 'auto', parallelCalls: true });
    expect(parse(id, { tools: null, tool_choice: null }).call.tools).toEqual([]);
  });

  it.each([
    ['chat', 'none', 'none'],
    ['chat', 'auto', 'auto'],
    ['chat', 'required', 'required'],
    ['chat', { type: 'function', function: { name: 'end' } }, { name: 'end' }],
    ['responses', 'none', 'none'],
    ['responses', 'required', 'required'],
    ['responses', { type: 'function', name: 'end' }, { name: 'end' }],
    ['messages', { type: 'auto' }, 'auto'],
    ['messages', { type: 'any' }, 'required'],
    ['messages', { type: 'none' }, 'none'],
    ['messages', { type: 'tool', name: 'end' }, { name: 'end' }],
  ] as const)('of %s are chosen by %j', (id, choice, read) => {
    expect(parse(id, { tools: [shapes[id], bare[id]], tool_choice: choice }).call.toolChoice).toEqual(read);
  });

  it('are those that are allowed', () => {
    const pick = { type: 'function', function: { name: 'end' } };
    const allowed = { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [pick] } };
    const chat = parse('chat', { tools: [shapes.chat, bare.chat], tool_choice: allowed }).call;
    const choice = { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'end' }] };
    const responses = parse('responses', { tools: [shapes.responses, bare.responses], tool_choice: choice }).call;
    expect([chat.toolChoice, responses.toolChoice]).toEqual(['required', 'auto']);
    for (const { tools } of [chat, responses]) expect(tools.map(({ name }) => name)).toEqual(['end']);
  });

  it('are called one at a time where that is asked', () => {
    for (const id of ['chat', 'responses'] as const) {
      expect(parse(id, { parallel_tool_calls: false }).call.parallelCalls).toBe(false);
      expect(parse(id, { parallel_tool_calls: null }).call.parallelCalls).toBe(true);
    }
    const choice = { type: 'auto', disable_parallel_tool_use: true };
    expect(parse('messages', { tool_choice: choice }).call.parallelCalls).toBe(false);
    expect(parse('messages', { tool_choice: { type: 'auto' } }).call.parallelCalls).toBe(true);
  });

  it.each([
    ['chat', { tools: [{ type: 'custom', custom: { name: 'x' } }] }, 'tools[0].type'],
    ['chat', { tools: [shapes.chat, shapes.chat] }, 'tools[1]'],
    ['chat', { tools: [{ type: 'function' }] }, 'tools[0].function'],
    ['chat', { tools: [{ type: 'function', function: { name: '' } }] }, 'tools[0].function.name'],
    [
      'chat',
      { tools: [{ type: 'function', function: { name: 'a', parameters: [] } }] },
      'tools[0].function.parameters',
    ],
    ['chat', { tools: {} }, 'tools'],
    ['chat', { tool_choice: 'required' }, 'tools'],
    ['chat', { tool_choice: 'any' }, 'tool_choice'],
    ['chat', { tool_choice: 1 }, 'tool_choice'],
    ['chat', { tool_choice: { type: 'function', function: { name: 'x' } } }, 'tool_choice'],
    ['chat', { tool_choice: { type: 'custom' } }, 'tool_choice.type'],
    [
      'chat',
      { tool_choice: { type: 'allowed_tools', allowed_tools: { mode: 'x', tools: [] } } },
      'tool_choice.allowed_tools.mode',
    ],
    ['responses', { tools: [{ type: 'web_search' }] }, 'tools[0].type'],
    ['responses', { tools: [{ type: 'function', name: 5 }] }, 'tools[0].name'],
    ['responses', { tool_choice: { type: 'web_search' } }, 'tool_choice.type'],
    ['responses', { tool_choice: 'all' }, 'tool_choice'],
    ['responses', { tool_choice: { type: 'allowed_tools', mode: 'x' } }, 'tool_choice.mode'],
    ['responses', { tool_choice: { type: 'allowed_tools', mode: 'required', tools: [] } }, 'tools'],
    ['messages', { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }, 'tools[0].type'],
    ['messages', { tools: [{ type: 'bash_20250124', name: 'bash' }] }, 'tools[0].type'],
    ['messages', { tool_choice: { type: 'tool', name: 'x' } }, 'tool_choice'],
    ['messages', { tool_choice: { type: 'tool' } }, 'tool_choice.name'],
    ['messages', { tool_choice: { type: 'all' } }, 'tool_choice.type'],
    ['messages', { tool_choice: 'auto' }, 'tool_choice'],
  ] as const)('of %s: %j is refused for %s', (id, fields, param) => {
    const refused = refusal(() => parse(id, fields));
    expect([refused.status, refused.param]).toEqual([400, param]);
    expect(refused.message.startsWith(`${param}`)).toBe(true);
  });
});

it.each(['chat', 'responses'] as const)('%s names the words of a choice', (id) => {
  expect(refusal(() => parse(id, { tool_choice: 'any' })).message).toBe(
    'tool_choice: expected auto, none, required or a function, got "any"',
  );
});

describe('the form of an answer', () => {
  const schema = { type: 'object' };
  const named = { type: 'json-schema', name: 'city', schema };
  it.each([
    ['chat', { response_format: { type: 'text' } }, undefined],
    ['chat', { response_format: null }, undefined],
    ['chat', { response_format: { type: 'json_object' } }, { type: 'json' }],
    ['chat', { response_format: { type: 'json_schema', json_schema: { name: 'city', schema, strict: true } } }, named],
    ['chat', { response_format: { type: 'json_schema', json_schema: { name: 'city' } } }, { type: 'json' }],
    ['responses', { text: {} }, undefined],
    ['responses', { text: { format: { type: 'text' }, verbosity: 'low' } }, undefined],
    ['responses', { text: { format: { type: 'json_object' } } }, { type: 'json' }],
    ['responses', { text: { format: { type: 'json_schema', name: 'city', schema } } }, named],
    ['messages', { output_config: { effort: 'high' } }, undefined],
    ['messages', { output_config: { format: { type: 'json_schema', schema } } }, { ...named, name: 'answer' }],
    ['messages', { output_format: { type: 'json_schema', schema } }, { ...named, name: 'answer' }],
  ] as const)('of %s: %j', (id, fields, format) => {
    expect(parse(id, fields).call.format).toEqual(format);
  });
  it.each([
    ['chat', { response_format: { type: 'grammar' } }, 'response_format.type'],
    ['chat', { response_format: { type: 'json_schema' } }, 'response_format.json_schema'],
    [
      'chat',
      { response_format: { type: 'json_schema', json_schema: { schema: [] } } },
      'response_format.json_schema.schema',
    ],
    ['chat', { response_format: 'json' }, 'response_format'],
    ['responses', { text: 'json' }, 'text'],
    ['responses', { text: { format: { type: 'grammar' } } }, 'text.format.type'],
    ['messages', { output_config: { format: { type: 'json' } } }, 'output_config.format.type'],
    ['messages', { output_format: { type: 'json' } }, 'output_format.type'],
    ['messages', { output_config: [] }, 'output_config'],
  ] as const)('of %s: %j is refused for %s', (id, fields, param) => {
    expect(refusal(() => parse(id, fields))).toMatchObject({ status: 400, param });
  });
});

describe('settings', () => {
  it('of chat are read', () => {
    const read = parse('chat', {
      max_tokens: 5,
      max_completion_tokens: 7,
      stop: 'END',
      temperature: 0,
      top_p: 0.9,
      top_k: 20,
      min_p: 0.1,
      repetition_penalty: 1.2,
      presence_penalty: -1,
      frequency_penalty: 1,
      seed: -3,
      stream: true,
      stream_options: { include_usage: true },
    });
    const cut = { temperature: 0, topP: 0.9, topK: 20, minP: 0.1 };
    const sampling = { ...cut, repetitionPenalty: 1.2, presencePenalty: -1, frequencyPenalty: 1, seed: -3 };
    expect(read.call).toMatchObject({ maxTokens: 7, stop: ['END'], sampling });
    expect(read).toMatchObject({ stream: true, includeUsage: true, store: false, instructions: 0 });
    expect(parse('chat', { max_tokens: 5 }).call.maxTokens).toBe(5);
    const bare = parse('chat', { temperature: null, stop: null, max_tokens: null, stream: null, top_k: -1 });
    expect(bare.call).toMatchObject({ maxTokens: undefined, stop: [], sampling: {} });
    expect(bare).toMatchObject({ stream: false, includeUsage: false });
  });
  it('of responses and messages are read', () => {
    expect(parse('responses', { max_output_tokens: 5, stop: ['a', 'b'] }).call).toMatchObject({
      maxTokens: 5,
      stop: ['a', 'b'],
    });
    expect(parse('responses', {})).toMatchObject({ store: true, stream: false, instructions: 0 });
    expect(parse('responses', { store: false, stream: true })).toMatchObject({ store: false, stream: true });
    const read = parse('messages', { max_tokens: 5, stop_sequences: ['a'], temperature: 1, top_k: 2, stream: true });
    expect(read.call).toMatchObject({ maxTokens: 5, stop: ['a'], sampling: { temperature: 1, topK: 2 } });
    expect(read).toMatchObject({ stream: true, store: false, instructions: 0 });
  });
  it.each([
    ['chat', { max_tokens: 0 }, 'max_tokens'],
    ['chat', { max_completion_tokens: 1.5 }, 'max_completion_tokens'],
    ['chat', { temperature: -1 }, 'temperature'],
    ['chat', { temperature: '0' }, 'temperature'],
    ['chat', { top_p: 2 }, 'top_p'],
    ['chat', { top_k: 1.5 }, 'top_k'],
    ['chat', { presence_penalty: 2.5 }, 'presence_penalty'],
    ['chat', { frequency_penalty: -2.5 }, 'frequency_penalty'],
    ['chat', { frequency_penalty: 2.5 }, 'frequency_penalty'],
    ['chat', { seed: 0.5 }, 'seed'],
    ['chat', { stop: '' }, 'stop'],
    ['chat', { stop: ['a', 5] }, 'stop[1]'],
    ['chat', { stop: Array(65).fill('a') }, 'stop'],
    ['chat', { stream: 'yes' }, 'stream'],
    ['chat', { stream_options: 1 }, 'stream_options'],
    ['chat', { stream_options: { include_usage: 1 } }, 'stream_options.include_usage'],
    ['chat', { parallel_tool_calls: 1 }, 'parallel_tool_calls'],
    ['chat', { model: undefined }, 'model'],
    ['responses', { max_output_tokens: 0 }, 'max_output_tokens'],
    ['responses', { store: 'no' }, 'store'],
    ['responses', { instructions: 5 }, 'instructions'],
    ['messages', { max_tokens: -1 }, 'max_tokens'],
    ['messages', { stop_sequences: [''] }, 'stop_sequences[0]'],
    [
      'messages',
      { tool_choice: { type: 'auto', disable_parallel_tool_use: 1 } },
      'tool_choice.disable_parallel_tool_use',
    ],
  ] as const)('of %s: %j is refused for %s', (id, fields, param) => {
    const refused = refusal(() => parse(id, fields));
    expect([refused.status, refused.param]).toEqual([400, param]);
    expect(refused.message).toMatch(/: expected .*, got /);
  });
});

describe('fields that change the meaning', () => {
  it.each([
    ['chat', 'n', 2],
    ['chat', 'audio', { voice: 'a' }],
    ['chat', 'modalities', ['text', 'audio']],
    ['chat', 'functions', [{}]],
    ['chat', 'function_call', 'auto'],
    ['chat', 'logit_bias', { 5: 1 }],
    ['chat', 'web_search_options', {}],
    ['responses', 'background', true],
    ['responses', 'conversation', 'conv_1'],
    ['responses', 'prompt', { id: 'p' }],
    ['messages', 'compaction', {}],
    ['messages', 'container', 'c'],
    ['messages', 'mcp_servers', [{}]],
  ] as const)('of %s: %s is refused by its name', (id, key, value) => {
    const refused = refusal(() => parse(id, { [key]: value }));
    expect([refused.status, refused.param, refused.code]).toEqual([400, key, 'unsupported_parameter']);
    expect(refused.message.startsWith(`${key}: `)).toBe(true);
  });
  it.each([
    ['chat', { n: 1, logit_bias: {}, functions: [], function_call: 'none', modalities: ['text'], audio: null }],
    ['chat', { min_p: 0, repetition_penalty: 1 }],
    ['responses', { background: false, conversation: null, prompt: null, previous_response_id: null }],
    ['messages', { mcp_servers: [], thread: null, container: null, context_management: null }],
  ] as const)('of %s are taken where they change nothing: %j', (id, fields) => {
    expect(parse(id, fields).model).toBe('m');
  });
  it('threads are refused as the runner of tools asks for it', () => {
    const refused = refusal(() => parse('messages', { thread: { type: 'create' } }));
    const { status, message, param, code } = refused;
    expect([status, param]).toEqual([400, 'thread']);
    const body = DIALECTS.messages.error(status, message, param, code);
    expect(body).toMatchObject({ type: 'error', error: { type: 'invalid_request_error' } });
    expect(body).toMatchObject({ error: { details: { error_code: 'thread_unsupported_request' } } });
  });
  it.each(ids)('of %s: each field of the table that is refused is refused, each that is ignored is taken', (id) => {
    for (const [key, field] of FIELDS[id].request) {
      if (field.use === 'refused') expect(refusal(() => parse(id, { [key]: { a: 1 } })).param).toBe(key);
      if (field.use === 'ignored') expect(parse(id, { [key]: { a: 1 } }).model, key).toBe('m');
    }
    for (const [path, field] of FIELDS[id].nested) {
      if (field.use !== 'refused') continue;
      const key = /^messages\[\]\.(\w+)$/.exec(path)![1]!;
      const messages = [user, { role: 'assistant', content: '', [key]: {} }];
      expect(refusal(() => parse(id, { messages })).param).toBe(`messages[1].${key}`);
    }
  });
  it.each(ids)('of %s: a field that nobody knows is refused by its name', (id) => {
    for (const key of ['new_key', '__proto__', 'constructor', 'toString', 'messages[].role']) {
      const body: unknown = parseJson(JSON.stringify({ ...SMALL[id], x: 1 }).replace('"x"', JSON.stringify(key)));
      const refused = refusal(() => DIALECTS[id].parse(body, nothing));
      expect([refused.status, refused.param, refused.code]).toEqual([400, key, 'unknown_parameter']);
    }
    expect(parse(id, { new_key: null }).model).toBe('m');
    const long = refusal(() => parse(id, { ['x'.repeat(1e6)]: 1 }));
    expect(long.message.length + long.param!.length).toBeLessThan(500);
  });

  const image = { type: 'image_url', image_url: { url: 'data:,' } };
  it.each([
    ['chat', { messages: [{ role: 'user', content: [image] }] }, 'messages[0].content[0].type'],
    ['chat', { messages: [{ role: 'user', content: [{ type: 'input_audio' }] }] }, 'messages[0].content[0].type'],
    ['chat', { messages: [{ role: 'user', content: [{ type: 'file' }] }] }, 'messages[0].content[0].type'],
    ['responses', { input: [{ role: 'user', content: [{ type: 'input_image' }] }] }, 'input[0].content[0].type'],
    ['responses', { input: [{ role: 'user', content: [{ type: 'input_file' }] }] }, 'input[0].content[0].type'],
    ['responses', { input: [{ type: 'web_search_call', id: 'ws' }] }, 'input[0].type'],
    [
      'responses',
      { input: [item, { type: 'function_call_output', call_id: call.id, output: [{ type: 'input_image' }] }] },
      'input[1].output[0].type',
    ],
    ['messages', { messages: [{ role: 'user', content: [{ type: 'image' }] }] }, 'messages[0].content[0].type'],
    ['messages', { messages: [{ role: 'user', content: [{ type: 'document' }] }] }, 'messages[0].content[0].type'],
    [
      'messages',
      { messages: [user, { role: 'assistant', content: [{ type: 'compaction' }] }] },
      'messages[1].content[0].type',
    ],
    [
      'messages',
      { messages: [user, { role: 'assistant', content: [{ type: 'server_tool_use' }] }] },
      'messages[1].content[0].type',
    ],
    [
      'messages',
      { messages: [{ role: 'system', content: [{ type: 'tool_addition' }] }] },
      'messages[0].content[0].type',
    ],
    [
      'messages',
      {
        messages: [
          { role: 'assistant', content: [block] },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, content: [{ type: 'image' }] }] },
        ],
      },
      'messages[1].content[0].content[0].type',
    ],
    ['messages', { system: [{ type: 'image' }] }, 'system[0].type'],
  ] as const)('of %s: a part that is no text is refused: %j', (id, fields, param) => {
    const refused = refusal(() => parse(id, fields));
    expect([refused.status, refused.param, refused.code]).toEqual([400, param, 'unsupported_content']);
  });
});

describe('hostile bodies', () => {
  it.each(ids)('of %s that are no object are refused', (id) => {
    for (const body of [undefined, null, 1, 'x', true, [], [1]]) {
      const refused = refusal(() => DIALECTS[id].parse(body, nothing));
      expect([refused.status, refused.param]).toEqual([400, 'body']);
    }
  });
  const result = { role: 'tool', tool_call_id: 'call_9', content: '' };
  it.each([
    ['chat', { messages: undefined }, 'messages'],
    ['chat', { messages: [] }, 'messages'],
    ['chat', { messages: 'hi' }, 'messages'],
    ['chat', { messages: { length: 1 } }, 'messages'],
    ['chat', { messages: [1] }, 'messages[0]'],
    ['chat', { messages: [user, { role: 'wizard', content: '' }] }, 'messages[1].role'],
    ['chat', { messages: [{ role: 'function', name: 'a', content: '' }] }, 'messages[0].role'],
    ['chat', { messages: [{ content: '' }] }, 'messages[0].role'],
    ['chat', { messages: [{ role: 'user', content: 5 }] }, 'messages[0].content'],
    ['chat', { messages: [{ role: 'user', content: [5] }] }, 'messages[0].content[0]'],
    ['chat', { messages: [{ role: 'user', content: [{ type: 'text' }] }] }, 'messages[0].content[0].text'],
    ['chat', { messages: [{ role: 'assistant', tool_calls: 1 }] }, 'messages[0].tool_calls'],
    [
      'chat',
      { messages: [{ role: 'assistant', tool_calls: [{ ...chatCall, id: '' }] }] },
      'messages[0].tool_calls[0].id',
    ],
    [
      'chat',
      { messages: [{ role: 'assistant', tool_calls: [{ id: 'a', type: 'custom' }] }] },
      'messages[0].tool_calls[0].type',
    ],
    [
      'chat',
      { messages: [{ role: 'assistant', tool_calls: [{ id: 'a', function: { name: 'a', arguments: {} } }] }] },
      'messages[0].tool_calls[0].function.arguments',
    ],
    ['chat', { messages: [{ role: 'assistant', reasoning_content: 5 }] }, 'messages[0].reasoning_content'],
    ['chat', { messages: [result] }, 'messages[0].tool_call_id'],
    ['chat', { messages: [{ role: 'assistant', tool_calls: [chatCall] }, result] }, 'messages[1].tool_call_id'],
    ['chat', { messages: [{ ...result, tool_call_id: undefined }] }, 'messages[0].tool_call_id'],
    ['responses', { input: undefined }, 'input'],
    ['responses', { input: null }, 'input'],
    ['responses', { input: [] }, 'input'],
    ['responses', { input: 5 }, 'input'],
    ['responses', { input: [{ role: 'tool', content: '' }] }, 'input[0].role'],
    ['responses', { input: [{ ...item, arguments: {} }] }, 'input[0].arguments'],
    ['responses', { input: [{ ...item, call_id: 5 }] }, 'input[0].call_id'],
    ['responses', { input: [{ type: 'function_call_output', call_id: 'x', output: '' }] }, 'input[0].call_id'],
    ['responses', { input: [{ type: 'reasoning', summary: 5 }] }, 'input[0].summary'],
    ['responses', { previous_response_id: 5 }, 'previous_response_id'],
    ['messages', { messages: [] }, 'messages'],
    ['messages', { messages: [{ role: 'tool', content: '' }] }, 'messages[0].role'],
    ['messages', { messages: [{ role: 'user' }] }, 'messages[0].content'],
    [
      'messages',
      { messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 'x' }] }] },
      'messages[0].content[0].tool_use_id',
    ],
    [
      'messages',
      { messages: [{ role: 'assistant', content: [{ ...block, input: [] }] }] },
      'messages[0].content[0].input',
    ],
    [
      'messages',
      { messages: [{ role: 'assistant', content: [{ type: 'thinking' }] }] },
      'messages[0].content[0].thinking',
    ],
    ['messages', { messages: [user, { role: 'assistant', content: 'The answer is' }] }, 'messages'],
    ['messages', { system: 5 }, 'system'],
  ] as const)('of %s: %j is refused for %s', (id, fields, param) => {
    const refused = refusal(() => parse(id, fields));
    expect([refused.status, refused.param]).toEqual([400, param]);
    expect(refused.message.startsWith(`${param}: expected `), refused.message).toBe(true);
  });
  it('are refused as not found where they name an id that nothing is behind', () => {
    const reference = { input: [{ type: 'item_reference', id: 'msg_9' }] };
    expect(refusal(() => parse('responses', reference))).toMatchObject({ status: 404, param: 'input[0].id' });
    const previous = { previous_response_id: 'resp_9' };
    expect(refusal(() => parse('responses', previous))).toMatchObject({ status: 404, param: 'previous_response_id' });
    const compacted = { input: [{ type: 'compaction', encrypted_content: 'resp_9' }] };
    expect(refusal(() => parse('responses', compacted))).toMatchObject({
      status: 404,
      param: 'input[0].encrypted_content',
    });
  });
});

describe('a count of tokens', () => {
  it('needs no limit, and may end with a turn of the model', () => {
    const body = { model: 'm', messages: [user, { role: 'assistant', content: 'A' }] };
    expect(parseCount(body).call).toMatchObject({
      maxTokens: undefined,
      messages: [user, { role: 'assistant', content: 'A' }],
    });
    expect(refusal(() => parseCount({ ...body, thread: {} })).param).toBe('thread');
  });
});
