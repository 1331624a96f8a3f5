/** OpenAI's requests as they are read, and its answers as they are written, without a server. */
import { describe, expect, it } from 'vitest';
import { FIELDS } from '../../src/gateway/dialects/fields.ts';
import {
  type Answered,
  chatBody,
  chatChunks,
  completionBody,
  completionChunks,
} from '../../src/serve/openai-answers.ts';
import {
  chatRequest,
  completionRequest,
  parseRequest,
  promptsOf,
  RefusedRequest,
  readChoices,
  refuseLong,
  refuseUnknown,
} from '../../src/serve/openai-requests.ts';
import type { Codec } from '../../src/text/reading/codec.ts';

const completion = (body: object) => parseRequest(completionRequest, JSON.stringify(body), () => {});
const chat = (body: object) => parseRequest(chatRequest, JSON.stringify(body), () => {});

/** The refusal of a request. */
function refusal(read: () => unknown): RefusedRequest {
  try {
    read();
  } catch (thrown) {
    if (thrown instanceof RefusedRequest) return thrown;
    throw thrown;
  }
  throw new Error('nothing was refused');
}

describe('a request', () => {
  it.each([
    [{ prompt: 'a' }, ['a']],
    [{ prompt: [1, 2] }, [[1, 2]]],
    [{ prompt: ['a', 'b'] }, ['a', 'b']],
    [{ prompt: [[1], [2, 3]] }, [[1], [2, 3]]],
    [{ prompt: [] }, [[]]],
  ])('%j has the prompts %j', (body, prompts) => {
    expect(promptsOf(completion(body))).toEqual(prompts);
  });

  it.each([
    [{}, 'prompt'],
    [{ prompt: 5 }, 'prompt'],
    [{ prompt: ['a', 1] }, 'prompt'],
    [{ prompt: 'a', temperature: -1 }, 'temperature'],
    [{ prompt: 'a', temperature: 101 }, 'temperature'],
    [{ prompt: 'a', n: 0 }, 'n'],
    [{ prompt: 'a', max_tokens: 1.5 }, 'max_tokens'],
    [{ prompt: 'a', guided_choice: [] }, 'guided_choice'],
    [{ prompt: 'a', longplay: { focus: ['x'] } }, 'longplay.focus.0'],
    [{ prompt: 'a', stop: Array(17).fill('x') }, 'stop'],
  ])('%j is refused for its %s', (body, param) => {
    const refused = refusal(() => completion(body));
    expect([refused.param, refused.status]).toEqual([param, 400]);
    expect(refused.message.startsWith(`${param}: `)).toBe(true);
  });

  it.each([
    [{ messages: [] }, 'messages'],
    [{ messages: [{ role: 'robot', content: 'x' }] }, 'messages.0.role'],
    [{ messages: [{ role: 'user', content: 5 }] }, 'messages.0.content'],
  ])('of a chat %j is refused for its %s', (body, param) => {
    expect(refusal(() => chat(body)).param).toBe(param);
  });

  it.each([
    [{ new_key: 1 }, 'new_key', 'unknown_parameter'],
    [{ constructor: 1 }, 'constructor', 'unknown_parameter'],
    [{ longplay: {} }, 'longplay', 'unknown_parameter'],
    [{ web_search_options: {} }, 'web_search_options', 'unsupported_parameter'],
  ])('of a chat %j is refused for its key %s', (body, param, code) => {
    expect(refusal(() => refuseUnknown({ messages: [], ...body }))).toMatchObject({ param, code, status: 400 });
  });

  it('of a chat may have every key that the dialect ignores, its own, and any that is null', () => {
    const ignorable = [...FIELDS.chat.request]
      .filter(([, { use }]) => use === 'ignored')
      .map(([key]) => [key, { a: 1 }]);
    expect(ignorable.length).toBeGreaterThan(10);
    const own = { guided_choice: ['a'], structured_outputs: {}, return_token_ids: true, n: 2, logprobs: true };
    const neutral = { tools: [], tool_choice: 'auto', parallel_tool_calls: true, new_key: null };
    const body = { ...Object.fromEntries(ignorable), ...own, ...neutral, messages: [{ role: 'user', content: 'x' }] };
    expect(parseRequest(chatRequest, JSON.stringify(body), refuseUnknown).guided_choice).toEqual(['a']);
    for (const raw of [null, 5, [1]]) expect(() => refuseUnknown(raw)).not.toThrow();
  });

  it('of a chat is refused for each key that the dialect obeys and this server does not', () => {
    const own = new Set(Object.keys(chatRequest.shape));
    const keys = [...FIELDS.chat.request]
      .filter(([key, { use }]) => use !== 'ignored' && !own.has(key))
      .map(([key]) => key);
    expect(keys).toEqual(expect.arrayContaining(['tools', 'tool_choice', 'logit_bias', 'audio']));
    for (const key of keys) {
      const body = { messages: [{ role: 'user', content: 'x' }], [key]: 'other' };
      expect(refusal(() => parseRequest(chatRequest, JSON.stringify(body), refuseUnknown)).param).toBe(key);
    }
  });

  it('of a chat is refused for calls in its history', () => {
    const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } };
    const message = { role: 'assistant', content: 'x' };
    expect(refusal(() => chat({ messages: [{ ...message, tool_calls: [call] }] })).param).toBe('messages.0.tool_calls');
    for (const none of [null, []])
      expect(chat({ messages: [{ ...message, tool_calls: none }] }).messages).toHaveLength(1);
  });

  it('may have null for what it leaves open', () => {
    expect(completion({ prompt: 'a', temperature: null, stop: null, n: null }).temperature).toBeNull();
  });

  it('that is no JSON gets that error, without a parameter', () => {
    const refused = refusal(() => parseRequest(chatRequest, '{', () => {}));
    expect(refused.param).toBeNull();
    expect(refused.message).toMatch(/^the body is not JSON: /);
  });

  it('is looked at as a whole before its entries are checked', () => {
    const seen: unknown[] = [];
    expect(refusal(() => parseRequest(chatRequest, '{"messages": 5}', (raw) => seen.push(raw))).param).toBe('messages');
    expect(seen).toEqual([{ messages: 5 }]);
  });

  it('describes one prompt, and asks for 1024 answers at most', () => {
    expect(refusal(() => promptsOf(completion({ prompt: ['a', 'b'], longplay: {} }))).param).toBe('longplay');
    expect(refusal(() => promptsOf(completion({ prompt: Array(17).fill('a'), n: 64 }))).message).toBe(
      'n: 64 answers to 17 prompts are more than 1024 in all',
    );
    expect(promptsOf(completion({ prompt: Array(16).fill('a'), n: 64 }))).toHaveLength(16);
  });
});

describe('a request that cannot fit', () => {
  const codec = { longestToken: 4 } as unknown as Codec;
  const refuse = (raw: unknown) => refuseLong(raw, 10, codec);

  it.each([
    [{ prompt: 'x'.repeat(40) }],
    [{ prompt: Array(10).fill(1) }],
    [{ prompt: ['x'.repeat(40), Array(10).fill(1)] }],
    [{ messages: [{ role: 'user', content: 'x'.repeat(999_000) }] }],
    [{ prompt: 5 }],
    [null],
    ['text'],
  ])('is let through where it may (%#)', (raw) => {
    expect(() => refuse(raw)).not.toThrow();
  });

  it.each([
    [{ prompt: 'x'.repeat(41) }, 'prompt: a text of 41 characters cannot fit; the model reads 10 tokens'],
    [{ prompt: Array(11).fill(1) }, 'prompt: a list of 11 ids cannot fit; the model reads 10 tokens'],
    [{ prompt: ['a', Array(11).fill(1)] }, 'prompt: a list of 11 ids cannot fit; the model reads 10 tokens'],
    [{ prompt: Array(1025).fill('a') }, 'prompt: 1025 prompts are too many; at most 1024 in a request'],
    [
      { messages: Array(11).fill({ role: 'user', content: 'x'.repeat(100_000) }) },
      'messages: more than 1000000 characters in all',
    ],
    [{ messages: [[[[[['deep']]]]]] }, 'messages: more than 1000000 characters in all'],
  ])('is refused where it may not (%#)', (raw, message) => {
    expect(refusal(() => refuse(raw)).message).toBe(message);
  });
});

describe('choices', () => {
  const listed = (body: object) => readChoices(completion({ prompt: 'a', ...body }));

  it.each([
    [{ guided_choice: ['a', 'b'] }],
    [{ structured_outputs: { choice: ['a', 'b'] } }],
    [{ guided_choice: ['a', 'b'], response_format: { type: 'text' } }],
  ])('of %j are a and b', (body) => {
    expect(listed(body)).toEqual({ values: ['a', 'b'], texts: ['a', 'b'] });
  });

  it('of a schema are answered as its JSON', () => {
    const schema = { type: 'object', properties: { action: { enum: ['a', 'b'] } } };
    expect(listed({ response_format: { type: 'json_schema', json_schema: { schema } } })).toEqual({
      values: ['a', 'b'],
      texts: ['{"action":"a"}', '{"action":"b"}'],
    });
  });

  it('of none leave the answer open', () => {
    expect(listed({})).toBeUndefined();
    expect(listed({ response_format: { type: 'text' } })).toBeUndefined();
  });

  it.each([
    [{ response_format: { type: 'json_object' } }, 'expected type text or json_schema, got json_object'],
    [{ guided_choice: ['a'], response_format: { type: 'json_schema' } }, 'a list of choices is given too'],
    [
      { response_format: { type: 'json_schema', json_schema: { schema: { type: 'number' } } } },
      'expected an enum of texts',
    ],
  ])('of %j are refused', (body, message) => {
    expect(refusal(() => listed(body)).message).toContain(message);
  });
});

// ---- answers

const HEAD = { id: 'x-1', model: 'm', created: 7 };
const ANSWER: Answered = {
  text: 'héllo',
  finish: 'stop',
  pieces: [
    { text: 'hé', logprob: -0.5 },
    { text: 'llo', logprob: -0.25 },
  ],
  promptTokens: 4,
  tokens: 3,
};
const SECOND: Answered = { ...ANSWER, promptTokens: 0, finish: 'length' };
const USAGE = { prompt_tokens: 4, completion_tokens: 6, total_tokens: 10 };

describe('a completion', () => {
  it('numbers answers, and counts the prompt’s tokens once', () => {
    const body = completionBody(HEAD, [ANSWER, SECOND], false);
    expect(body).toMatchObject({ id: 'x-1', object: 'text_completion', created: 7, model: 'm', usage: USAGE });
    expect(
      body.choices.map(({ index, text, finish_reason: reason, logprobs }) => [index, text, reason, logprobs]),
    ).toEqual([
      [0, 'héllo', 'stop', null],
      [1, 'héllo', 'length', null],
    ]);
  });

  it('lists tokens with their places in the text', () => {
    const [choice] = completionBody(HEAD, [ANSWER], true).choices;
    expect(choice!.logprobs).toEqual({
      tokens: ['hé', 'llo'],
      token_logprobs: [-0.5, -0.25],
      top_logprobs: null,
      text_offset: [0, 2],
    });
  });

  it('repeats the prompt, and reports ids and version, on request', () => {
    const [choice] = completionBody(
      HEAD,
      [{ ...ANSWER, echo: 'say ', tokenIds: [5, 6], longplay: { version: 3, value: 0.5 } }],
      false,
    ).choices;
    expect(choice).toMatchObject({ text: 'say héllo', token_ids: [5, 6], longplay: { version: 3, value: 0.5 } });
    expect(completionBody(HEAD, [ANSWER], false).choices[0]).not.toHaveProperty('token_ids');
  });
});

describe('a chat', () => {
  it('lists messages, and tokens with their bytes', () => {
    const body = chatBody(HEAD, [ANSWER], true);
    expect(body.object).toBe('chat.completion');
    expect(body.choices[0]!.message).toEqual({ role: 'assistant', content: 'héllo', refusal: null });
    expect(body.choices[0]!.logprobs!.content[0]).toEqual({
      token: 'hé',
      logprob: -0.5,
      bytes: [0x68, 0xc3, 0xa9],
      top_logprobs: [],
    });
  });
});

describe('chunks', () => {
  type Chunk = {
    choices: {
      index: number;
      text?: string;
      delta?: { content?: string; role?: string };
      finish_reason: string | null;
    }[];
    usage?: object;
  };

  it('of a completion add up to the whole, and end each answer with its reason', () => {
    const chunks = completionChunks(HEAD, [{ ...ANSWER, echo: 'say ' }, SECOND], true, true) as Chunk[];
    const contentOf = (index: number) =>
      chunks.flatMap(({ choices }) => choices.filter((one) => one.index === index).map(({ text }) => text)).join('');
    expect([contentOf(0), contentOf(1)]).toEqual(['say héllo', 'héllo']);
    expect(chunks.flatMap(({ choices }) => choices.flatMap((one) => one.finish_reason ?? []))).toEqual([
      'stop',
      'length',
    ]);
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: USAGE });
  });

  it('of a chat begin with the role and add up to the whole', () => {
    const chunks = chatChunks(HEAD, [ANSWER], false, false) as Chunk[];
    expect(chunks[0]!.choices[0]!.delta).toEqual({ role: 'assistant', content: '' });
    expect(chunks.map(({ choices }) => choices[0]?.delta?.content ?? '').join('')).toBe('héllo');
    expect(chunks.at(-1)!.choices[0]).toMatchObject({ delta: {}, finish_reason: 'stop' });
    expect(chunks.some(({ usage }) => usage !== undefined)).toBe(false);
  });

  it('of a completion give each token’s place', () => {
    const offsets = (
      completionChunks(HEAD, [ANSWER], true, false) as { choices: { logprobs: { text_offset: number[] } | null }[] }[]
    ).flatMap(({ choices }) => choices[0]!.logprobs?.text_offset ?? []);
    expect(offsets).toEqual([0, 2]);
  });
});
