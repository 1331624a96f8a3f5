/**
 * A gateway whose policy answers each call at once with a call of a tool, or a bare Hono app that reads the same bodies and
 * answers as many bytes (`echo`). Run as a program it prints an address, and the key, of each episode.
 */

import type { GatewayEpisode } from '../../src/gateway/gateway.ts';
import { openGateway } from '../../src/gateway/server.ts';
import { createApp } from '../../src/http/app.ts';
import { listen } from '../../src/http/server.ts';

const EPISODES = 32;

if (process.argv[2] === 'echo') {
  const app = createApp();
  let n = 0;
  app.post('*', (c) => {
    const body = JSON.parse(c.env.incoming.rawBody!.toString('utf8')) as { model: string };
    const call = { id: `call_${n++}_0`, type: 'function', function: { name: 'search', arguments: '{"query":"gold"}' } };
    const message = { role: 'assistant', content: null, refusal: null, tool_calls: [call] };
    const choices = [{ index: 0, message, logprobs: null, finish_reason: 'tool_calls' }];
    const usage = { prompt_tokens: 500, completion_tokens: 20, total_tokens: 520 };
    return c.json({ id: `chatcmpl-${n}`, object: 'chat.completion', created: 0, model: body.model, choices, usage });
  });
  const { url } = await listen(app, { port: 0 });
  for (let i = 0; i < EPISODES; i++) console.log(`${url}/${i} none`);
} else {
  const gateway = await openGateway();
  for (let i = 0; i < EPISODES; i++) {
    const episode = gateway.open();
    void answer(episode);
    console.log(`${episode.baseURL} ${episode.key}`);
  }
}

/** Answers every call of an episode. */
async function answer(episode: GatewayEpisode): Promise<void> {
  const calls = [{ id: '', name: 'search', arguments: '{"query":"gold"}' }];
  const usage = { promptTokens: 500, completionTokens: 20 };
  for (;;) {
    const call = await episode.next();
    void call.answer({ content: '', calls, finish: 'calls', usage });
  }
}
