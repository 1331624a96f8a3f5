/** OpenAI's own client against the gateway: its retries, its streams, its loop of tools. */
import OpenAI, { APIError } from 'openai';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { CLOSING_TEXT, type Episode } from '../../src/gateway/episode.ts';
import { type OpenGateway, openGateway } from '../../src/gateway/server.ts';
import { callReply, textReply } from './lab.ts';

let gateway: OpenGateway;
let episode: Episode;
beforeEach(async () => {
  gateway = await openGateway();
  episode = gateway.open();
});
afterEach(() => gateway.close());

const clientOf = (options: object = {}) => new OpenAI({ baseURL: episode.baseURL, apiKey: episode.key, ...options });
const messages = [{ role: 'user' as const, content: 'q' }];

it('that gives up waiting and asks again gets the reply of its first call', async () => {
  const asked = clientOf({ timeout: 300, maxRetries: 1 }).chat.completions.create({ model: 'any', messages });
  const call = await episode.next();
  await new Promise((resolve) => call.gone.addEventListener('abort', resolve));
  await call.answer(textReply('a'));
  expect((await asked).choices[0]!.message.content).toBe('a');
  expect(episode.arrivals).toBe(2);
  expect(episode.takeUndelivered()).toEqual([]);
});

it('is answered in the second try where the first was refused, and counted once', async () => {
  const asked = clientOf().chat.completions.create({ model: 'any', messages });
  (await episode.next()).refuse(503, 'loading');
  const call = await episode.next();
  await call.answer(textReply('a'));
  expect([(await asked).id, call.number, call.parent]).toEqual(['chatcmpl-1', 1, null]);
});

it('plays a loop of tools to its end, streamed, as one chain', async () => {
  const tools = [
    {
      type: 'function' as const,
      function: {
        name: 'search',
        description: 'Searches.',
        parameters: { type: 'object' as const, properties: { query: { type: 'string' } } },
        parse: JSON.parse,
        function: ({ query }: { query: string }) => `found ${query}`,
      },
    },
  ];
  const runner = clientOf().chat.completions.runTools({ model: 'any', messages, tools, stream: true });
  const final = runner.finalContent();
  const parents: (number | null)[] = [];
  for (const reply of [callReply('a', 'b'), callReply('c'), textReply('done')]) {
    const call = await episode.next();
    parents.push(call.parent);
    if (parents.length === 2) expect(call.fresh.map(({ content }) => content)).toEqual(['found a', 'found b']);
    await call.answer(reply);
  }
  expect(await final).toBe('done');
  expect(parents).toEqual([null, 0, 1]);
});

it('ends at the horizon, and is refused once after the end', async () => {
  episode.finish();
  const closing = await clientOf().responses.create({ model: 'any', input: 'q' });
  expect(closing.output_text).toBe(CLOSING_TEXT);
  episode.close();
  const late = clientOf().chat.completions.create({ model: 'any', messages });
  await expect(late).rejects.toSatisfy((thrown) => thrown instanceof APIError && thrown.status === 403);
});
