/** Requests of OpenAI's API, as the policy server reads, refuses and answers them; a stand-in decides. */
import { afterEach, describe, expect, it } from 'vitest';
import { view } from '../../envs/textcraft/view.ts';
import type { HttpServer } from '../../src/http/server.ts';
import { servePolicy } from '../../src/serve/policy-server.ts';
import type { Codec } from '../../src/text/reading/codec.ts';
import { ViewCodec } from '../../src/text/reading/view-codec.ts';
import { WordTokenizer } from '../../src/text/reading/word-tokenizer.ts';
import { readExposition } from '../support/exposition.ts';

let server: HttpServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

/** A codec that counts how much text it reads. */
class CountingCodec extends ViewCodec {
  read = 0;
  override spell(action: string): Int32Array {
    this.read += action.length;
    return super.spell(action);
  }
  override open(first: Parameters<Codec['open']>[0]): ReturnType<Codec['open']> {
    this.read += first.observation.length;
    return super.open(first);
  }
}

/** A server whose policy takes the first action, or writes `written`. */
async function started(written?: string) {
  const codec = new CountingCodec(view);
  const model = {
    name: 'm',
    codec,
    decoder: written === undefined ? ('choice' as const) : ('tokens' as const),
    maxTokens: 8,
    maxPositions: 512,
    version: 3,
    created: 1_600_000_000,
    world: { instruction: 'play', acknowledgement: 'OK', format: 'react' } as never,
  };
  // Stand-in for the inference actor: takes the first action.
  const decisions = {
    healthy: true,
    waiting: 0,
    decide: async ({ actions }: { actions: readonly string[] }) => {
      const action = actions[0] ?? written!;
      const choice = { kind: 'choice', choice: 0, logprob: -0.5, value: 0, version: 3 };
      const tokens = codec.spell(action);
      const run = { ...choice, kind: 'tokens', tokens, logprobs: tokens.map(() => -1), masked: true };
      return { episode: 0, turn: 0, action, decision: written === undefined ? choice : run };
    },
  } as never;
  server = await servePolicy({ port: 0, model, decisions, unixMs: () => 1_700_000_000_900 });
  const { url } = server;
  return {
    codec,
    ask: (path: string, body: unknown) => fetch(`${url}${path}`, { method: 'POST', body: JSON.stringify(body) }),
    get: async (path: string) => (await fetch(`${url}${path}`)).json(),
    complete: async (body: object) =>
      (await fetch(`${url}/v1/completions`, { method: 'POST', body: JSON.stringify(body) })).json() as Promise<Answer>,
  };
}

interface Answer {
  readonly choices: readonly { readonly text: string }[];
  readonly usage: object;
  readonly error?: object;
}

const LISTED = ['get 1 oak logs', 'inventory'];

describe('answers', () => {
  it('state when they were made, and a model when its weights were written, in Unix seconds', async () => {
    const { get, complete, ask } = await started();
    expect(await get('/v1/models')).toMatchObject({ data: [{ id: 'm', created: 1_600_000_000 }] });
    expect(await complete({ prompt: 'x', guided_choice: LISTED })).toMatchObject({ created: 1_700_000_000 });
    const streamed = await ask('/v1/completions', { prompt: 'x', guided_choice: LISTED, stream: true });
    const chunks = (await streamed.text()).match(/^data: \{.*$/gm)!.map((line) => JSON.parse(line.slice(6)));
    expect(chunks.length).toBeGreaterThan(0);
    expect(new Set(chunks.map(({ created }) => created))).toEqual(new Set([1_700_000_000]));
  });

  it('repeat the prompt where `echo` asks for it, streamed too', async () => {
    const { codec, complete, ask } = await started();
    const body = { guided_choice: LISTED, echo: true };
    expect((await complete({ ...body, prompt: 'goal stick. ' })).choices[0]!.text).toBe('goal stick. get 1 oak logs');
    const ids = [...codec.spell('goal stick')];
    expect((await complete({ ...body, prompt: ids })).choices[0]!.text).toBe('goal stickget 1 oak logs');
    const streamed = await (await ask('/v1/completions', { ...body, prompt: 'goal ', stream: true })).text();
    const texts = streamed.match(/"text":"[^"]*"/g)!;
    expect(texts[0]).toBe('"text":"goal "');
    expect(texts.map((text) => JSON.parse(`{${text}}`).text).join('')).toBe('goal get 1 oak logs');
    expect(await complete({ ...body, prompt: 'x', logprobs: 0 })).toMatchObject({ error: { param: 'echo' } });
  });

  it('to a list of prompts come in its order, `n` to each, and count every prompt once', async () => {
    const { codec, complete } = await started();
    const texts = ['goal stick', 'goal oak planks please'];
    const alone = await Promise.all(texts.map((prompt) => complete({ prompt, guided_choice: LISTED })));
    const tokens = alone.map(({ usage }) => (usage as { prompt_tokens: number }).prompt_tokens);
    expect(tokens[0]).not.toBe(tokens[1]);
    const both = await complete({ prompt: texts, n: 2, echo: true, guided_choice: LISTED });
    expect(both).toMatchObject({
      choices: [0, 0, 1, 1].map((which, index) => ({ index, text: `${texts[which]}get 1 oak logs` })),
      usage: { prompt_tokens: tokens[0]! + tokens[1]!, completion_tokens: 4 },
    });
    const lists = texts.map((text) => [...codec.spell(text)]);
    const ofIds = await complete({ prompt: lists, echo: true, guided_choice: LISTED });
    expect(ofIds.choices.map(({ text }) => text)).toEqual(texts.map((text) => `${text}get 1 oak logs`));
  });

  const answerTo = async (schema: object, written?: string) => {
    const { complete } = await started(written);
    const format = { type: 'json_schema', json_schema: { name: 'step', strict: true, schema } };
    return complete({ prompt: 'x', response_format: format });
  };

  it.each([
    ['an enum', { type: 'string', enum: LISTED }, '"get 1 oak logs"'],
    ['a constant', { const: 'inventory' }, '"inventory"'],
    ['an object of one', { type: 'object', properties: { action: { enum: LISTED } } }, '{"action":"get 1 oak logs"}'],
    [
      "pydantic's reference",
      { properties: { a: { $ref: '#/$defs/Action' } }, required: ['a'], $defs: { Action: { enum: LISTED } } },
      '{"a":"get 1 oak logs"}',
    ],
  ])('keep to a JSON schema that is a list: %s', async (_, schema, text) => {
    expect((await answerTo(schema)).choices[0]!.text).toBe(text);
    expect((await answerTo(schema, 'free text')).choices[0]!.text).toBe(text); // a policy that writes
  });

  it.each([
    ['free text', { type: 'string' }],
    ['two properties', { properties: { a: { enum: LISTED }, b: { enum: LISTED } } }],
    ['numbers', { enum: [1, 2] }],
    ['nothing', { enum: [] }],
    ['a circle', { $ref: '#/$defs/A', $defs: { A: { $ref: '#/$defs/A' } } }],
    ['a reference to nowhere', { $ref: '#/$defs/toString', $defs: {} }],
  ])('are refused where a JSON schema is no list: %s', async (_, schema) => {
    const { error } = await answerTo(schema);
    expect(error).toMatchObject({
      param: 'response_format',
      message: expect.stringContaining('expected an enum of texts'),
    });
  });

  it.each([
    ['the type json_object', { response_format: { type: 'json_object' } }, /expected type text or json_schema/],
    [
      'a list beside the schema',
      { response_format: { type: 'json_schema', json_schema: { schema: { enum: LISTED } } }, guided_choice: LISTED },
      /send one of them/,
    ],
    ['too many answers', { prompt: Array(100).fill('x'), n: 64, guided_choice: LISTED }, /more than 1024 in all/],
    ['too many prompts', { prompt: Array(2000).fill('x'), guided_choice: LISTED }, /2000 prompts are too many/],
    ['a mixed list', { prompt: ['x', [3]], guided_choice: LISTED }, /^prompt: expected a text, token ids, or a list/],
    ['an empty list', { prompt: [], guided_choice: LISTED }, /prompt: at least one token id/],
    [
      'marks of one prompt for two',
      { prompt: [[5], [6]], longplay: { focus: [] }, guided_choice: LISTED },
      /it describes one prompt, got 2/,
    ],
  ])('are refused in words: %s', async (_, body, message) => {
    const { ask } = await started();
    const answer = await ask('/v1/completions', { prompt: 'x', ...body });
    expect(answer.status).toBe(400);
    expect(((await answer.json()) as { error: { message: string } }).error.message).toMatch(message);
  });

  it('name a model that is not served as OpenAI does: 404, model_not_found', async () => {
    const { ask, get } = await started();
    const unknown = { error: { type: 'invalid_request_error', param: 'model', code: 'model_not_found' } };
    expect(await get('/v1/models/other')).toMatchObject(unknown);
    const asked = {
      '/v1/completions': { prompt: 'x' },
      '/v1/chat/completions': { messages: [{ role: 'user', content: 'x' }] },
    };
    for (const [path, given] of Object.entries(asked)) {
      const body = { model: 'other', ...given };
      const answer = await ask(path, body);
      expect(answer.status).toBe(404);
      expect(await answer.json()).toMatchObject(unknown);
    }
  });
});

describe('metrics', () => {
  it('are a page by the rules of Prometheus', async () => {
    const { complete, codec } = await started();
    await complete({ prompt: 'x', guided_choice: LISTED });
    expect(codec.read).toBeGreaterThan(0);
    const answer = await fetch(`${server!.url}/metrics`);
    expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    const families = readExposition(await answer.text());
    expect(families.get('longplay_server_waiting_decisions')).toMatchObject({ type: 'gauge', samples: [{ value: 0 }] });
    expect(families.get('longplay_server_request_duration_seconds')!.type).toBe('histogram');
  });
});

describe('a prompt that cannot fit', () => {
  const long = 'x '.repeat(1_000_000);
  it.each([
    ['text', '/v1/completions', { prompt: long, guided_choice: ['a'] }, /cannot fit; the model reads 512 tokens/],
    ['text in a list', '/v1/completions', { prompt: [long], guided_choice: ['a'] }, /cannot fit/],
    ['text in a longer list', '/v1/completions', { prompt: ['x', long], guided_choice: ['a'] }, /cannot fit/],
    ['ids', '/v1/completions', { prompt: Array(1_000_000).fill(5), guided_choice: ['a'] }, /list of 1000000 ids/],
    ['a conversation', '/v1/chat/completions', { messages: [{ role: 'user', content: long }] }, /messages: more than/],
    [
      'a nested conversation',
      '/v1/chat/completions',
      { messages: JSON.parse(`${'['.repeat(3000)}${']'.repeat(3000)}`) },
      /values nested more than 500 levels deep/,
    ],
  ])('is refused before it is read: %s', async (_, path, body, message) => {
    const { ask, codec } = await started();
    const answer = await ask(path, body);
    expect(answer.status).toBe(400);
    expect(((await answer.json()) as { error: { message: string } }).error.message).toMatch(message);
    expect(codec.read).toBe(0);
  });

  it('keeps no other request waiting, even where there are many: /health is answered in between', async () => {
    const { ask, get, codec } = await started();
    const prompts = Array<string>(1000).fill('goal stick');
    const answer = ask('/v1/completions', { prompt: prompts, guided_choice: ['get 1 oak logs'] });
    while (codec.read === 0) await new Promise((resolve) => setImmediate(resolve));
    expect(await get('/health')).toEqual({ status: 'ok' });
    const read = codec.read;
    expect((await answer).status).toBe(200);
    expect(read).toBeLessThan(codec.read / 2);
  });

  it('is no reason to refuse one that fits', async () => {
    const { ask, codec } = await started();
    const answer = await ask('/v1/completions', { prompt: 'goal stick', guided_choice: ['get 1 oak logs'] });
    expect(await answer.json()).toMatchObject({ choices: [{ text: 'get 1 oak logs' }] });
    expect(codec.read).toBeGreaterThan(0);
  });
});

describe('the encode cache', () => {
  it('keeps no long text, and little in all', () => {
    const tokenizer = new WordTokenizer(view);
    const long = 'oak '.repeat(1000);
    expect(tokenizer.encode(long)).not.toBe(tokenizer.encode(long));
    expect(tokenizer.encode('get 1 oak logs')).toBe(tokenizer.encode('get 1 oak logs'));

    const first = tokenizer.encode('first');
    const filler = 'q'.repeat(1000);
    for (let i = 0; i < 2500; i++) tokenizer.encode(`${filler} ${i}`);
    expect(tokenizer.encode('first')).not.toBe(first); // 2.5 million characters later it has been let go
  });
});
