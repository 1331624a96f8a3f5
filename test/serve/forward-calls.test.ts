/** Forwarded calls: whatever dialect a client speaks, the server behind gets one chat request, and the client its reply. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { RemoteError } from '../../src/http/retry.ts';
import { type ForwardingSettings, type StartedGateway, startGateway } from '../../src/run/serve-gateway.ts';
import { refusalOf } from '../../src/serve/forward-calls.ts';
import { foldReply } from '../gateway/fold.ts';
import { bodyOf, DIALECTS, PATHS, send } from '../gateway/lab.ts';
import { type ChatServer, type ScriptedAnswer, startChatServer } from '../support/chat-server.ts';

const folder = mkdtempSync(join(tmpdir(), 'longplay-forward-'));
afterAll(() => rmSync(folder, { recursive: true }));
const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function open(
  answer: (body: Readonly<Record<string, unknown>>, n: number) => ScriptedAnswer | Promise<ScriptedAnswer>,
  settings: Partial<ForwardingSettings> = {},
  server: { readonly models?: readonly string[]; readonly key?: string } = {},
): Promise<{ readonly gateway: StartedGateway; readonly upstream: ChatServer }> {
  const upstream = await startChatServer(answer, server);
  closers.push(upstream.close);
  const gateway = await startGateway({ upstream: upstream.url, tokenEnv: 'FORWARD_TEST_KEY', ...settings });
  closers.push(gateway.close);
  return { gateway, upstream };
}

function ask({ root, key }: StartedGateway, dialect: (typeof DIALECTS)[number], body: unknown) {
  return send(root + PATHS[dialect], body, { headers: { authorization: `Bearer ${key}` } });
}

const tools = ['search', 'read'].map((name) => ({
  type: 'function',
  function: { name, description: `${name}s`, parameters: { type: 'object' } },
}));
const searching = { message: { content: null, tool_calls: [{ function: { name: 'search', arguments: '{"q":1}' } }] } };

describe.each(DIALECTS)('a client of %s', (dialect) => {
  const limits = { chat: 'max_completion_tokens', responses: 'max_output_tokens', messages: 'max_tokens' };

  it('has its request passed on, with what it asks for, and gets the reply', async () => {
    const { gateway, upstream } = await open(() => ({ ...searching, finish: 'tool_calls' }));
    const choice = { chat: 'required', responses: 'required', messages: { type: 'any' } }[dialect];
    const body = bodyOf(dialect, [{ system: 'Be brief.' }, { user: 'go' }], {
      ...{ temperature: 0.3, top_p: 0.9, [limits[dialect]]: 64, tool_choice: choice },
    });
    const { status, text } = await ask(gateway, dialect, body).received;
    expect(status, text).toBe(200);
    expect(upstream.bodies).toEqual([
      {
        model: 'hosted',
        messages: [
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: 'go' },
        ],
        ...{ max_tokens: 64, temperature: 0.3, top_p: 0.9, tools, tool_choice: 'required' },
      },
    ]);
    expect(text).toContain(dialect === 'messages' ? '"name":"search","input":{"q":1}' : '"name":"search"');
    expect(text).toContain(dialect === 'messages' ? 'toolu_0_0' : 'call_0_0');
  });

  it('gets the reply as a stream', async () => {
    const { gateway } = await open(() => ({ message: { content: 'Hello.', reasoning_content: 'Greet.' } }));
    const { status, text } = await ask(gateway, dialect, bodyOf(dialect, [{ user: 'go' }], { stream: true })).received;
    expect(status).toBe(200);
    expect(foldReply(dialect, text, 'text/event-stream').reply).toMatchObject({
      content: 'Hello.',
      reasoning: 'Greet.',
    });
  });

  it('goes on with calls and results', async () => {
    const { gateway, upstream } = await open((_, n) => (n === 0 ? searching : { message: { content: 'Paris' } }));
    await ask(gateway, dialect, bodyOf(dialect, [{ user: 'go' }])).received;
    const id = dialect === 'messages' ? 'toolu_0_0' : 'call_0_0';
    const calls = [{ id, name: 'search', arguments: '{"q":1}' }];
    const turns = [{ user: 'go' }, { calls }, { result: 'capital: Paris', id }];
    const { text } = await ask(gateway, dialect, bodyOf(dialect, turns)).received;
    expect(text).toContain('Paris');
    expect(upstream.bodies[1]!.messages).toEqual([
      { role: 'user', content: 'go' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id, type: 'function', function: { name: 'search', arguments: '{"q":1}' } }],
      },
      { role: 'tool', tool_call_id: id, content: 'capital: Paris' },
    ]);
  });

  it("gets the server's refusal in its own form", async () => {
    const message = 'This model reads 100 tokens: maximum context length exceeded';
    const { gateway } = await open(() => ({
      status: 400,
      error: { error: { message, code: 'context_length_exceeded' } },
    }));
    const { status, text } = await ask(gateway, dialect, bodyOf(dialect, [{ user: 'go' }])).received;
    expect(status).toBe(400);
    expect(text).toContain('context_length_exceeded');
    expect(text).toContain('reads 100 tokens');
  });
});

it('forwards calls beside each other', async () => {
  let waiting = 0;
  let release!: () => void;
  const all = new Promise<void>((resolve) => {
    release = resolve;
  });
  const { gateway } = await open(async () => {
    if (++waiting === 8) release();
    await all; // no answer before all eight are there
    return { message: { content: 'done' } };
  });
  const asked = Array.from({ length: 8 }, (_, i) => ask(gateway, 'chat', bodyOf('chat', [{ user: `${i}` }])).received);
  const statuses = await Promise.all(asked.map(async (one) => (await one).status));
  expect(statuses).toEqual(Array(8).fill(200));
});

it('names the model as the command says, else as the server has one alone, else as the client asks', async () => {
  const reply = () => ({ message: { content: 'done' } });
  for (const [model, models, named] of [
    ['mine', ['a', 'b'], 'mine'],
    [undefined, ['only'], 'only'],
    [undefined, ['a', 'b'], 'policy'],
  ] as const) {
    const { gateway, upstream } = await open(reply, { model }, { models });
    const { text } = await ask(gateway, 'chat', bodyOf('chat', [{ user: 'go' }])).received;
    expect(upstream.bodies[0]!.model).toBe(named);
    expect(JSON.parse(text).model).toBe('policy'); // the client's own name for it
  }
});

it('sends a request again where the server is busy, and another name of a key where it asks for one', async () => {
  const { gateway, upstream } = await open((body, n) => {
    if (n === 0) return { status: 429, headers: { 'retry-after': '0' } };
    if ('max_tokens' in body) {
      const message = "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
      return { status: 400, error: { error: { message, param: 'max_tokens', code: 'unsupported_parameter' } } };
    }
    return { message: { content: 'done' } };
  });
  const { status } = await ask(gateway, 'chat', bodyOf('chat', [{ user: 'go' }], { max_tokens: 9 })).received;
  expect([status, upstream.bodies.length]).toEqual([200, 3]);
  expect(upstream.bodies[2]).toMatchObject({ max_completion_tokens: 9 });
});

it('drops no setting that a client asked for: the refusal is its', async () => {
  const { gateway, upstream } = await open((body) => {
    if (!('temperature' in body)) return { message: { content: 'done' } };
    const message = "'temperature' does not support 0.3 with this model.";
    return { status: 400, error: { error: { message, param: 'temperature', code: 'unsupported_value' } } };
  });
  const { status, text } = await ask(gateway, 'chat', bodyOf('chat', [{ user: 'go' }], { temperature: 0.3 })).received;
  expect([status, upstream.bodies.length]).toEqual([400, 1]);
  expect(JSON.parse(text).error).toMatchObject({ code: 'unsupported_value' });
});

describe('a refusal of the server', () => {
  const status = (code: number, body: object = {}) =>
    new RemoteError('status', `POST: HTTP ${code} ${JSON.stringify(body)}`, {
      status: code,
      body: JSON.stringify(body),
    });
  it.each([
    ['its key', status(401), 502],
    ['its key, as 403', status(403, { error: { message: 'API key lacks permission' } }), 502],
    ['one conversation', status(403, { error: { message: 'flagged by moderation' } }), 403],
    ['an unknown model', status(404), 404],
    ['a wrong value', status(422), 400],
    ['a conversation that is too long', status(413), 400],
    ['a limit on its rate', status(429), 429],
    ['an error of its own', status(500), 502],
    ['no connection', new RemoteError('network', 'refused'), 502],
    ['no answer in time', new RemoteError('timeout', 'late'), 504],
    ['no JSON', new RemoteError('malformed', 'html'), 502],
    ['our own end', new RemoteError('closed', 'closed'), 503],
    ['a bug', new Error('oops'), 500],
  ])('of %s has a status that fits', (_, thrown, expected) => {
    expect(refusalOf(thrown, 'KEY').status).toBe(expected);
  });

  it('names the variable of a key that is refused', async () => {
    let isGood = true;
    const upstream = await startChatServer(() =>
      isGood ? { message: { content: 'done' } } : { status: 401, error: { error: { message: 'expired' } } },
    );
    closers.push(upstream.close);
    const gateway = await startGateway({ upstream: upstream.url, tokenEnv: 'FORWARD_TEST_KEY' });
    closers.push(gateway.close);
    isGood = false;
    const { status, text } = await ask(gateway, 'messages', bodyOf('messages', [{ user: 'go' }])).received;
    expect(status).toBe(502);
    expect(text).toMatch(/refuses its key: set FORWARD_TEST_KEY/);
  });
});

it('keeps conversations: one for each end of the tree, what reached nobody left out', async () => {
  const record = join(folder, 'calls.jsonl');
  const { gateway } = await open((_, n) => (n === 0 ? searching : { message: { content: `reply ${n}` } }), { record });
  const begin = bodyOf('chat', [{ user: 'go' }]);
  await ask(gateway, 'chat', begin).received;
  const calls = [{ id: 'call_0_0', name: 'search', arguments: '{ "q": 1 }' }];
  const next = (result: string) => bodyOf('chat', [{ user: 'go' }, { calls }, { result, id: 'call_0_0' }]);
  await ask(gateway, 'chat', next('one')).received;
  await ask(gateway, 'chat', next('two')).received;
  expect(readFileSync(record, 'utf8').trim().split('\n').length).toBe(3); // a line a call, while it runs
  await gateway.close();
  closers.pop();
  const lines = readFileSync(record, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const made = (result: string, content: string) => ({
    messages: [
      { role: 'user', content: 'go' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'call_0_0', type: 'function', function: { name: 'search', arguments: '{"q":1}' } }],
      },
      { role: 'tool', tool_call_id: 'call_0_0', content: result },
      { role: 'assistant', content },
    ],
    tools,
  });
  expect(lines).toEqual([made('one', 'reply 1'), made('two', 'reply 2')]);
});

it('ends: calls under way are refused, and nothing is left open', async () => {
  let begun!: () => void;
  const isBegun = new Promise<void>((resolve) => {
    begun = resolve;
  });
  const { gateway } = await open(() => {
    begun();
    return new Promise<never>(() => {});
  });
  const { received } = ask(gateway, 'chat', bodyOf('chat', [{ user: 'go' }]));
  await isBegun;
  await gateway.close();
  expect((await received).status).toBe(503);
  await expect(ask(gateway, 'chat', {}).received).rejects.toThrow(/ECONNREFUSED|ECONNRESET/);
});
