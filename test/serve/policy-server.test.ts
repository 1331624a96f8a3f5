/** The policy server refuses what cannot fit before it works on it, and keeps nothing of it. */
import { afterEach, describe, expect, it } from 'vitest';
import { view } from '../../envs/textcraft/view.ts';
import type { Codec } from '../../src/reading/codec.ts';
import { ViewCodec } from '../../src/reading/view-codec.ts';
import { WordTokenizer } from '../../src/reading/word-tokenizer.ts';
import type { HttpServer } from '../../src/serve/http-server.ts';
import { servePolicy } from '../../src/serve/policy-server.ts';

let server: HttpServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

/** A codec that counts how much text it was asked to read. */
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

async function started(): Promise<{ ask: (path: string, body: unknown) => Promise<Response>; codec: CountingCodec }> {
  const codec = new CountingCodec(view);
  const model = {
    name: 'm',
    codec,
    decoder: 'choice' as const,
    maxTokens: 8,
    maxPositions: 512,
    version: 3,
    world: { instruction: 'play', acknowledgement: 'OK', format: 'react' } as never,
  };
  // Stand-in for the inference actor: takes the first action.
  const decisions = {
    healthy: true,
    waiting: 0,
    decide: async ({ actions }: { actions: readonly string[] }) => ({ episode: 0, turn: 0, action: actions[0]! }),
  } as never;
  server = await servePolicy({ port: 0, model, decisions });
  const { url } = server;
  return {
    codec,
    ask: (path, body) => fetch(`${url}${path}`, { method: 'POST', body: JSON.stringify(body) }),
  };
}

describe('a prompt that cannot fit', () => {
  const long = 'x '.repeat(1_000_000);
  it.each([
    ['text', '/v1/completions', { prompt: long, guided_choice: ['a'] }, /cannot fit; the model reads 512 tokens/],
    ['text in a list', '/v1/completions', { prompt: [long], guided_choice: ['a'] }, /cannot fit/],
    ['ids', '/v1/completions', { prompt: Array(1_000_000).fill(5), guided_choice: ['a'] }, /list of 1000000 ids/],
    ['a conversation', '/v1/chat/completions', { messages: [{ role: 'user', content: long }] }, /messages: more than/],
    [
      'a nested conversation',
      '/v1/chat/completions',
      { messages: JSON.parse(`${'['.repeat(3000)}${']'.repeat(3000)}`) },
      /messages: more than/,
    ],
  ])('is refused before it is read: %s', async (_, path, body, message) => {
    const { ask, codec } = await started();
    const answer = await ask(path, body);
    expect(answer.status).toBe(400);
    expect(((await answer.json()) as { error: { message: string } }).error.message).toMatch(message);
    expect(codec.read).toBe(0);
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
