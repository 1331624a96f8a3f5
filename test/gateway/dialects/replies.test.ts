/** Replies and errors of the three dialects, as they are printed. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ModelReply } from '../../../src/core/model-call.ts';
import type { DialectId, ParsedRequest, ReplyIds } from '../../../src/gateway/dialects/dialect.ts';
import { DIALECTS } from '../../../src/gateway/dialects/dialects.ts';
import { type FoldedReply, foldBody, foldReply, readEvents } from '../fold.ts';

const DIALECT_IDS: DialectId[] = ['chat', 'responses', 'messages'];
const request: ParsedRequest = {
  model: 'the-model',
  call: { messages: [], tools: [], toolChoice: 'auto', parallelCalls: true, stop: [], sampling: {} },
  stream: true,
  includeUsage: true,
  store: true,
  instructions: 0,
};
const ids: ReplyIds = {
  reply: 'reply_7',
  message: 'msg_7',
  reasoning: 'rs_7',
  callItem: (i) => `fc_7_${i}`,
  created: 1_790_000_000,
};
const empty: ModelReply = { content: '', calls: [], finish: 'stop', usage: { promptTokens: 5, completionTokens: 3 } };
const calls = [
  { id: 'call_7_0', name: 'search', arguments: '{"query": "a\\u00e9"}' },
  { id: 'call_7_1', name: 'end', arguments: '{}' },
];

function foldPlain(id: DialectId, reply: ModelReply): FoldedReply {
  return foldBody(id, DIALECTS[id].print(reply, request, ids));
}

function foldStream(id: DialectId, reply: ModelReply): FoldedReply {
  return foldReply(id, DIALECTS[id].events(reply, request, ids).join(''), 'text/event-stream');
}

/** Folded reply with the arguments of its calls as values. */
function withValues(folded: FoldedReply): unknown {
  const read = folded.reply.calls.map((call) => ({ ...call, arguments: JSON.parse(call.arguments) as unknown }));
  return { ...folded, reply: { ...folded.reply, calls: read } };
}

describe.each(DIALECT_IDS)('a reply of %s', (id) => {
  it('is the same plain and streamed, whatever is in it', () => {
    const text = fc.string({ unit: 'binary' }).map((value) => value.toWellFormed());
    const call = fc.record({
      name: fc.string({ minLength: 1 }),
      input: fc.dictionary(text, fc.jsonValue(), { maxKeys: 3 }),
    });
    const replies = fc.record({
      content: text,
      reasoning: fc.option(text, { nil: undefined }),
      calls: fc.array(call, { maxLength: 3 }),
      finish: fc.constantFrom('stop' as const, 'calls' as const, 'length' as const, 'filter' as const),
    });
    fc.assert(
      fc.property(replies, ({ calls: given, ...rest }) => {
        const made = given.map(({ name, input }, i) => ({ id: `call_7_${i}`, name, arguments: JSON.stringify(input) }));
        const reply: ModelReply = { ...rest, calls: made, usage: empty.usage };
        const plain = foldPlain(id, reply);
        expect(withValues(foldStream(id, reply))).toEqual(withValues(plain));
        const { content, reasoning, finish, calls: read, usage } = plain.reply;
        expect([content, reasoning ?? '', usage]).toEqual([reply.content, reply.reasoning ?? '', reply.usage]);
        expect(withValues(plain)).toMatchObject({
          reply: { calls: given.map(({ input }, i) => ({ ...read[i], arguments: JSON.parse(JSON.stringify(input)) })) },
        });
        const isWhole = reply.finish === 'stop' || reply.finish === 'calls';
        expect(finish).toBe(isWhole ? (given.length > 0 ? 'calls' : 'stop') : reply.finish);
        expect(plain.model).toBe('the-model');
      }),
    );
  });
  it('that has calls ends with calls, and one without does not, whatever the finish says', () => {
    for (const fold of [foldPlain, foldStream]) {
      expect(fold(id, { ...empty, calls, finish: 'stop' }).reply.finish).toBe('calls');
      expect(fold(id, { ...empty, content: 'a', finish: 'calls' }).reply.finish).toBe('stop');
      expect(fold(id, { ...empty, calls, finish: 'length' }).reply.finish).toBe('length');
      expect(fold(id, { ...empty, finish: 'filter' }).reply.finish).toBe('filter');
    }
  });
  it('has {} for arguments that are empty', () => {
    for (const fold of [foldPlain, foldStream]) {
      const { reply } = fold(id, {
        ...empty,
        calls: [{ id: 'call_7_0', name: 'end', arguments: '' }],
        finish: 'calls',
      });
      expect(reply.calls).toEqual([{ id: 'call_7_0', name: 'end', arguments: '{}' }]);
    }
  });
  it('delivers broken arguments as they are', () => {
    for (const broken of ['{"query": "a', '[1]', '"x"', '5']) {
      for (const fold of [foldPlain, foldStream]) {
        const { reply } = fold(id, { ...empty, calls: [{ id: 'a', name: 'end', arguments: broken }], finish: 'calls' });
        expect(reply.calls[0]!.arguments).toBe(broken);
      }
    }
  });
  it('is a stream of events that each end with an empty line', () => {
    const events = DIALECTS[id].events({ ...empty, content: 'a\n\nb\r\u2028', calls }, request, ids);
    for (const event of events) {
      expect(event.endsWith('\n\n')).toBe(true);
      expect(readEvents(event)).toHaveLength(1);
    }
  });
});

describe('chat', () => {
  const { print, events } = DIALECTS.chat;
  it('prints text, reasoning and calls', () => {
    expect(print({ ...empty, content: 'T', reasoning: 'R', calls, finish: 'calls' }, request, ids)).toEqual({
      id: 'reply_7',
      object: 'chat.completion',
      created: 1_790_000_000,
      model: 'the-model',
      choices: [
        {
          index: 0,
          message: {
            role: 'assistant',
            content: 'T',
            refusal: null,
            reasoning_content: 'R',
            tool_calls: calls.map((call) => ({
              id: call.id,
              type: 'function',
              function: { name: call.name, arguments: call.arguments },
            })),
          },
          logprobs: null,
          finish_reason: 'tool_calls',
        },
      ],
      usage: { prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 },
    });
  });
  it('has null for text that is not there, and no field for reasoning and calls', () => {
    const body = print(empty, request, ids) as { choices: { message: object }[] };
    expect(body.choices[0]!.message).toEqual({ role: 'assistant', content: null, refusal: null });
  });
  it('streams in the order role, reasoning, text, calls, finish, usage, [DONE]', () => {
    const lines = events({ ...empty, content: 'T', reasoning: 'R', calls: calls.slice(1) }, request, ids);
    const bodies = lines
      .slice(0, -1)
      .map((line) => JSON.parse(line.slice('data: '.length)) as { choices: { delta: object }[] });
    expect(bodies.map(({ choices }) => choices[0]?.delta)).toEqual([
      { role: 'assistant', content: '' },
      { reasoning_content: 'R' },
      { content: 'T' },
      { tool_calls: [{ index: 0, id: 'call_7_1', type: 'function', function: { name: 'end', arguments: '' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '{}' } }] },
      {},
      undefined,
    ]);
    expect(bodies.at(-1)).toMatchObject({ usage: { total_tokens: 8 } });
    expect(lines.at(-1)).toBe('data: [DONE]\n\n');
    const without = events(empty, { ...request, includeUsage: false }, ids);
    expect(without.join('')).not.toContain('usage');
    expect(without).toHaveLength(3);
  });
});

describe('responses', () => {
  it('are incomplete for a reason', () => {
    const { print } = DIALECTS.responses;
    const status = (finish: ModelReply['finish']) => print({ ...empty, finish }, request, ids);
    expect(status('stop')).toMatchObject({ status: 'completed', incomplete_details: null, error: null });
    expect(status('length')).toMatchObject({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
    });
    expect(status('filter')).toMatchObject({ incomplete_details: { reason: 'content_filter' } });
  });
  it('have a message where there is nothing else, and none beside calls alone', () => {
    const items = (reply: ModelReply) => {
      const { output } = DIALECTS.responses.print(reply, request, ids) as { output: { type: string; id: string }[] };
      return output.map(({ type, id }) => `${type} ${id}`);
    };
    expect(items(empty)).toEqual(['message msg_7']);
    expect(items({ ...empty, reasoning: 'R' })).toEqual(['reasoning rs_7', 'message msg_7']);
    expect(items({ ...empty, calls })).toEqual(['function_call fc_7_0', 'function_call fc_7_1']);
    expect(items({ ...empty, content: 'T', calls })[0]).toBe('message msg_7');
  });
  it('number items, parts and events from 0', () => {
    const text = DIALECTS.responses.events({ ...empty, content: 'T', reasoning: 'R', calls }, request, ids).join('');
    const bodies = readEvents(text).map(({ data }) => JSON.parse(data) as Record<string, unknown>);
    expect(bodies.map((body) => body.sequence_number)).toEqual(bodies.map((_, i) => i));
    const items = ['rs_7', 'msg_7', 'fc_7_0', 'fc_7_1'];
    const placed = bodies.filter((body) => 'item_id' in body);
    expect(placed.length).toBe(4 + 4 + 2 + 2);
    for (const body of placed) {
      expect(body.output_index).toBe(items.indexOf(body.item_id as string));
      for (const key of ['summary_index', 'content_index']) expect(body[key] ?? 0).toBe(0);
    }
  });
  it('stream an item at a time', () => {
    const events = DIALECTS.responses.events({ ...empty, content: 'T', calls: calls.slice(1) }, request, ids);
    expect(events.map((event) => /^event: (\S+)/.exec(event)![1])).toEqual([
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.output_item.added',
      'response.function_call_arguments.delta',
      'response.function_call_arguments.done',
      'response.output_item.done',
      'response.completed',
    ]);
  });
});

describe('messages', () => {
  it('print thinking, text and calls as blocks', () => {
    expect(DIALECTS.messages.print({ ...empty, content: 'T', reasoning: 'R', calls }, request, ids)).toEqual({
      id: 'reply_7',
      type: 'message',
      role: 'assistant',
      model: 'the-model',
      content: [
        { type: 'thinking', thinking: 'R', signature: 'longplay' },
        { type: 'text', text: 'T' },
        { type: 'tool_use', id: 'call_7_0', name: 'search', input: { query: 'aé' } },
        { type: 'tool_use', id: 'call_7_1', name: 'end', input: {} },
      ],
      stop_reason: 'tool_use',
      stop_sequence: null,
      usage: { input_tokens: 5, output_tokens: 3 },
    });
  });
  it('count their output once, whether a client adds the two counts of a stream or takes the later', () => {
    const bodies = readEvents(DIALECTS.messages.events(empty, request, ids).join('')).map(
      ({ data }) => JSON.parse(data) as { type: string; message?: object; usage?: object },
    );
    expect(bodies[0]).toMatchObject({ message: { usage: { input_tokens: 5, output_tokens: 0 } } });
    expect(bodies.find(({ type }) => type === 'message_delta')).toMatchObject({ usage: { output_tokens: 3 } });
  });
});

describe('errors', () => {
  it.each([
    [400, 'invalid_request_error', 'invalid_request_error'],
    [401, 'invalid_request_error', 'authentication_error'],
    [403, 'invalid_request_error', 'permission_error'],
    [404, 'invalid_request_error', 'not_found_error'],
    [409, 'invalid_request_error', 'api_error'],
    [413, 'invalid_request_error', 'request_too_large'],
    [429, 'rate_limit_error', 'rate_limit_error'],
    [500, 'server_error', 'api_error'],
    [503, 'server_error', 'overloaded_error'],
    [529, 'server_error', 'overloaded_error'],
  ])('of %i are %s of OpenAI, %s of Anthropic', (status, openai, anthropic) => {
    for (const id of ['chat', 'responses'] as const) {
      const code = status === 429 ? 'rate_limit_exceeded' : null;
      expect(DIALECTS[id].error(status, 'no')).toEqual({ error: { message: 'no', type: openai, param: null, code } });
    }
    expect(DIALECTS.messages.error(status, 'no')).toEqual({ type: 'error', error: { type: anthropic, message: 'no' } });
  });
  it('name the field and a code', () => {
    expect(DIALECTS.chat.error(400, 'no', 'n', 'c')).toMatchObject({ error: { param: 'n', code: 'c' } });
    expect(DIALECTS.messages.error(400, 'no', 'n', 'c')).toMatchObject({ error: { details: { error_code: 'c' } } });
  });
  it('in a stream are one event each, which no client takes for an end', () => {
    const event = (id: DialectId) => readEvents(DIALECTS[id].errorEvent(500, 'no'));
    const read = (id: DialectId) => JSON.parse(event(id)[0]!.data) as object;
    for (const id of DIALECT_IDS) expect(event(id)).toHaveLength(1);
    const error = { message: 'no', type: 'server_error', param: null, code: null };
    expect(event('chat')[0]!.event).toBeUndefined();
    expect(read('chat')).toEqual({ error });
    expect(event('responses')[0]!.event).toBe('error');
    expect(read('responses')).toEqual({
      type: 'error',
      sequence_number: 0,
      message: 'no',
      param: null,
      code: null,
      error,
    });
    expect(event('messages')[0]!.event).toBe('error');
    expect(read('messages')).toEqual({ type: 'error', error: { type: 'api_error', message: 'no' } });
  });
});
