/** Agents behind `serve-policy`: a trained language model answers the three dialects, with tools and forms of answers. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { writeTinyChatModel } from '../../experiments/tiny-chat-model.ts';
import type { DialectId } from '../../src/gateway/dialects/dialect.ts';
import { startPolicyServer } from '../../src/run/serve-trained-policy.ts';
import { foldReply } from '../gateway/fold.ts';
import { bodyOf, DIALECTS, PATHS, send, type Turn } from '../gateway/lab.ts';
import { makePolicyRun } from '../support/policy-run.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });
const dir = mkdtempSync(join(tmpdir(), 'longplay-agent-replies-'));
const folder = join(dir, 'model');
let server: Awaited<ReturnType<typeof startPolicyServer>>;
let client: OpenAI;

beforeAll(async () => {
  writeTinyChatModel(folder, { config: { num_hidden_layers: 1 } });
  await makePolicyRun(join(dir, 'trained'), 'textcraft', [
    'policy.kind=checkpoint',
    `policy.path=${folder}`,
    'policy.maxTokens=256',
    'policy.chat={format: action, contextTokens: 3000}',
    'policy.adapter={rank: 4, alpha: 8, targets: [q_proj, v_proj]}',
  ]);
  process.env.LONGPLAY_SERVER_TOKEN = 'served-token-1234';
  server = await startPolicyServer(join(dir, 'trained'), { name: 'policy' });
  delete process.env.LONGPLAY_SERVER_TOKEN;
  client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'served-token-1234', maxRetries: 0 });
});
afterAll(async () => {
  await server?.close();
  rmSync(dir, { recursive: true, force: true });
});

async function ask(dialect: DialectId, body: unknown, path = PATHS[dialect]) {
  const { status, text, headers } = await send(server.url + path, body, {
    headers: {
      [dialect === 'messages' ? 'x-api-key' : 'authorization']:
        `${dialect === 'messages' ? '' : 'Bearer '}served-token-1234`,
    },
  }).received;
  const read = () => foldReply(dialect, text, headers['content-type']!).reply;
  return { status, text, read };
}

const sides = { type: 'object', properties: { side: { enum: ['left', 'right'] } }, required: ['side'] };
/** Tool and choice of each dialect. */
const FORCED: Readonly<Record<DialectId, object>> = {
  chat: {
    tools: [{ type: 'function', function: { name: 'bet', parameters: sides } }],
    tool_choice: 'required',
    parallel_tool_calls: false,
    temperature: 0,
  },
  responses: {
    tools: [{ type: 'function', name: 'bet', parameters: sides }],
    tool_choice: 'required',
    parallel_tool_calls: false,
    temperature: 0,
  },
  messages: {
    tools: [{ name: 'bet', input_schema: sides }],
    tool_choice: { type: 'any', disable_parallel_tool_use: true },
    max_tokens: 200,
    temperature: 0,
  },
};
const FORMED: Readonly<Record<DialectId, object>> = {
  chat: {
    response_format: {
      type: 'json_schema',
      json_schema: {
        name: 'side',
        schema: {
          ...sides,
          properties: { ...sides.properties, sure: { type: 'boolean' } },
          required: ['side', 'sure'],
        },
      },
    },
  },
  responses: { text: { format: { type: 'json_schema', name: 'side', schema: sides } } },
  messages: { output_config: { format: { type: 'json_schema', schema: sides } }, max_tokens: 200 },
};
const none = { chat: { tools: [] }, responses: { tools: [] }, messages: { tools: [] } };

describe.each(DIALECTS)('in %s', (dialect) => {
  const question: Turn[] = [{ system: 'Bet.' }, { user: 'Where?' }];

  it('a tool that must be called is called, by its schema; and the conversation goes on', async () => {
    const body = { ...bodyOf(dialect, question), ...FORCED[dialect] };
    const { status, text, read } = await ask(dialect, body);
    expect(status, text).toBe(200);
    const { calls, finish, usage } = read();
    expect(finish).toBe('calls');
    expect(calls.length).toBeGreaterThanOrEqual(1);
    for (const { name, arguments: args } of calls) {
      expect(name).toBe('bet');
      expect(['left', 'right']).toContain(JSON.parse(args).side);
    }
    expect(usage!.promptTokens).toBeGreaterThan(20);
    const results = calls.map(({ id }): Turn => ({ result: 'won', id }));
    const next = { ...bodyOf(dialect, [...question, { calls }, ...results]), ...FORCED[dialect] };
    const second = await ask(dialect, next);
    expect([second.status, second.read().finish]).toEqual([200, 'calls']);
    expect(second.read().usage!.promptTokens).toBeGreaterThan(usage!.promptTokens + 10);
  });

  it('an answer that must be of a schema is', async () => {
    const { status, text, read } = await ask(dialect, {
      ...bodyOf(dialect, question),
      ...none[dialect],
      ...FORMED[dialect],
      temperature: 0,
    });
    expect(status, text).toBe(200);
    expect(['left', 'right']).toContain(JSON.parse(read().content).side);
  });

  it('a reply ends at its limit, and its draw follows from the seed', async () => {
    const limit = { chat: 'max_completion_tokens', responses: 'max_output_tokens', messages: 'max_tokens' }[dialect];
    const drawn = async (more: object) => {
      const { status, text, read } = await ask(dialect, bodyOf(dialect, question, { [limit]: 5, ...more }));
      expect(status, text).toBe(200);
      const { content, finish, usage } = read();
      expect([finish, usage!.completionTokens]).toEqual(['length', 5]);
      return content;
    };
    const greedy = await drawn({ temperature: 0 });
    expect(await drawn({ temperature: 0 })).toBe(greedy);
    if (dialect === 'messages') return; // which has no seed
    expect(await drawn({ seed: 1 })).toBe(await drawn({ seed: 1 }));
    expect(
      new Set([await drawn({ seed: 1 }), await drawn({ seed: 2 }), await drawn({ seed: 3 })]).size,
    ).toBeGreaterThan(1);
  });

  it('a reply is drawn from what the settings leave, and ends at a stop text', async () => {
    const limit = { chat: 'max_completion_tokens', responses: 'max_output_tokens', messages: 'max_tokens' }[dialect];
    const written = async (more: object) => {
      const { status, text, read } = await ask(dialect, bodyOf(dialect, question, { [limit]: 12, ...more }));
      expect(status, text).toBe(200);
      return read();
    };
    const { content: greedy } = await written({ temperature: 0 });
    for (const one of [{ top_k: 1 }, { top_p: 1e-6 }, { min_p: 1 }]) {
      expect((await written({ temperature: 1, ...one })).content).toBe(greedy);
    }
    const penalised = { temperature: 0, presence_penalty: 2, frequency_penalty: 2 };
    expect((await written(penalised)).content).not.toBe(greedy);
    expect((await written({ temperature: 0, repetition_penalty: 3 })).content).not.toBe(greedy);
    const stop = greedy.slice(4, 6);
    const key = dialect === 'messages' ? 'stop_sequences' : 'stop';
    const stopped = await written({ temperature: 0, [key]: [stop] });
    expect(stopped.content).toBe(greedy.slice(0, greedy.indexOf(stop)));
    expect(stopped.usage!.completionTokens).toBeLessThan(12);
  });

  it.each([
    ['another model', { model: 'other' }, 404, /there is no 'other' here; this server has 'policy'/],
    ['a setting out of its range', { top_p: 1.5 }, 400, /top_p/],
    ['a conversation that does not fit', { long: true }, 400, /maximum context length is 3000/],
  ] as [string, { readonly long?: boolean; readonly model?: string; readonly top_p?: number }, number, RegExp][])(
    '%s is refused',
    async (_, { long, ...more }, status, message) => {
      const turns: Turn[] = long ? [{ user: 'long '.repeat(20_000) }] : question;
      const received = await ask(dialect, bodyOf(dialect, turns, more));
      expect([received.status, received.text]).toEqual([status, expect.stringMatching(message)]);
      if (long) expect(received.text).toContain('context_length_exceeded');
    },
  );
});

it('responses go on from one that is named by id, which none can guess', async () => {
  const first = await client.responses.create({
    model: 'policy',
    input: 'One.',
    max_output_tokens: 3,
    instructions: 'Be brief.',
  });
  expect(first.id).toMatch(/^resp_\d+_[0-9a-f]{32}$/);
  const second = await client.responses.create({
    model: 'policy',
    previous_response_id: first.id,
    input: 'Two.',
    max_output_tokens: 3,
  });
  const third = await client.responses.create({
    model: 'policy',
    previous_response_id: second.id,
    input: 'Three.',
    max_output_tokens: 3,
  });
  expect(second.usage!.input_tokens).toBeGreaterThan(0);
  expect(third.usage!.input_tokens).toBeGreaterThan(second.usage!.input_tokens);
  const text = (one: OpenAI.Responses.Response) => one.output_text;
  const compacted = await client.responses.compact({ model: 'any', previous_response_id: second.id });
  expect(compacted.output.map(({ type }) => type)).toEqual(['message', 'message', 'compaction']);
  const input = [...(compacted.output as OpenAI.Responses.ResponseInput), { role: 'user' as const, content: 'Three.' }];
  const after = await client.responses.create({ model: 'policy', input, max_output_tokens: 3 });
  expect(after.usage!.input_tokens).toBe(third.usage!.input_tokens);
  const unknown = client.responses.compact({ model: 'policy', previous_response_id: 'resp_0_0' });
  await expect(unknown).rejects.toMatchObject({ status: 404, param: 'previous_response_id' });
  const whole = await client.responses.create({
    model: 'policy',
    input: [
      { role: 'user', content: 'One.' },
      { role: 'assistant', content: text(first) },
      { role: 'user', content: 'Two.' },
      { role: 'assistant', content: text(second) },
      { role: 'user', content: 'Three.' },
    ],
    max_output_tokens: 3,
  });
  expect(whole.usage!.input_tokens).toBe(third.usage!.input_tokens);
  await expect(
    client.responses.create({ model: 'policy', previous_response_id: 'resp_0', input: 'x' }),
  ).rejects.toThrow(/404/);
});

it('messages count their tokens as a reply to them does', async () => {
  const body = bodyOf('messages', [{ user: 'Where?' }]);
  const { read } = await ask('messages', { ...body, max_tokens: 1 });
  const counted = await ask('messages', body, '/v1/messages/count_tokens');
  expect(JSON.parse(counted.text)).toEqual({ input_tokens: read().usage!.promptTokens });
});

it('chats without tools stay conversations, with log-probabilities', async () => {
  const { choices } = await client.chat.completions.create({
    model: 'policy',
    messages: [{ role: 'user', content: 'Hi' }],
    ...{ logprobs: true, max_tokens: 3, tools: [] },
  });
  expect(choices[0]).toHaveProperty('longplay');
  expect(choices[0]!.logprobs!.content!.length).toBeGreaterThan(0);
});

it('a key in either header is asked for', async () => {
  const { status } = await send(`${server.url}/v1/messages`, bodyOf('messages', [{ user: 'x' }]), {
    headers: { 'x-api-key': 'wrong' },
  }).received;
  expect(status).toBe(401);
});

it('a policy that chooses refuses agents by name, in each dialect', async () => {
  await makePolicyRun(join(dir, 'chooser'), 'textcraft');
  const chooser = await startPolicyServer(join(dir, 'chooser'), { name: 'policy' });
  try {
    for (const dialect of DIALECTS) {
      const { status, text } = await send(chooser.url + PATHS[dialect], bodyOf(dialect, [{ user: 'go' }])).received;
      expect([status, text]).toEqual([
        400,
        expect.stringMatching(dialect === 'chat' ? /tools/ : /chooses among listed actions/),
      ]);
    }
  } finally {
    await chooser.close();
  }
});
