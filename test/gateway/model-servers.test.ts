/** Every server of the three dialects under the laws of model servers: the gateway, the one before a hosted model, a policy's. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { writeTinyChatModel } from '../../experiments/tiny-chat-model.ts';
import { printAgentReply } from '../../src/core/agent-call.ts';
import type { ModelCall, ModelReply } from '../../src/core/model-call.ts';
import { openGateway } from '../../src/gateway/server.ts';
import { openModel } from '../../src/policy/pretrained/folder.ts';
import { printChatMessage } from '../../src/policy/remote/chat-body.ts';
import { OpenAIClient } from '../../src/policy/remote/openai-client.ts';
import type { DecisionRequest } from '../../src/serve/decisions.ts';
import { forwardCalls } from '../../src/serve/forward-calls.ts';
import { servePolicy } from '../../src/serve/policy-server.ts';
import { type AgentCodec, openAgentCodec } from '../../src/text/reading/agent-codec.ts';
import { startChatServer } from '../support/chat-server.ts';
import { type ModelServerSubject, testModelServerLaws } from './laws.ts';

const newest = ({ messages }: Pick<ModelCall, 'messages'>) => messages.at(-1)!.content;

testModelServerLaws('gateway of an episode', {
  tooLarge: 400, // as no context could hold it
  async start(reply, { maxBodyBytes, ...limits }) {
    const gateway = await openGateway({ limits, maxContextBytes: maxBodyBytes });
    const episode = gateway.open();
    let waiting = 0;
    const answer = async () => {
      for (;;) {
        const call = await episode.next();
        waiting++;
        void (async () => {
          await call.answer(await reply(newest(call.call)));
          waiting--;
        })();
      }
    };
    answer().catch(() => {}); // it was closed
    const headers = { authorization: `Bearer ${episode.key}` };
    return { root: episode.root, headers, waiting: () => waiting, close: () => gateway.close() };
  },
});

testModelServerLaws('gateway before a hosted model', {
  tooLarge: 400,
  async start(reply, { maxBodyBytes, ...limits }) {
    let waiting = 0;
    const upstream = await startChatServer(async ({ messages }) => {
      waiting++;
      const made = await reply((messages as { content: string }[]).at(-1)!.content);
      waiting--;
      const { content, reasoning, calls, finish } = made;
      const message = printChatMessage({ role: 'assistant', content, reasoning, calls });
      return {
        message,
        finish: { stop: 'stop', calls: 'tool_calls', length: 'length', filter: 'content_filter' }[finish],
        usage: made.usage,
      };
    });
    const gateway = await openGateway({ limits, maxContextBytes: maxBodyBytes });
    const episode = gateway.open();
    const ending = new AbortController();
    const client = new OpenAIClient({ baseUrl: upstream.url });
    const forwarded = forwardCalls({ episode, client, keyName: 'NONE' }, ending.signal);
    return {
      root: episode.root,
      headers: { authorization: `Bearer ${episode.key}` },
      waiting: () => waiting,
      async close() {
        ending.abort();
        await forwarded;
        await gateway.close();
        await upstream.close();
      },
    };
  },
});

const folder = mkdtempSync(join(tmpdir(), 'longplay-model-servers-'));
let codec: AgentCodec;
beforeAll(() => {
  writeTinyChatModel(folder);
  const { config, endTokens } = openModel(folder);
  codec = openAgentCodec(folder, { endTokens, vocabSize: config.vocabSize, contextTokens: 4096 });
});
afterAll(() => rmSync(folder, { recursive: true }));

const policy: ModelServerSubject = {
  tooLarge: 413,
  givesUp: true,
  longReply: 2 ** 19, // it is spelt out in tokens
  async start(reply, limits) {
    let waiting = 0;
    /** Stand-in for the inference actor: writes what the test says, as a model would. */
    const decide = async ({ given }: DecisionRequest, gone: AbortSignal) => {
      waiting++;
      try {
        const text = codec.decode([...given.prompt, ...given.after]).trim();
        const asked = /\n([^\n]*)\nassistant$/.exec(text)![1]!.replace(/^user\n/, '');
        const left = new Promise<never>((_, reject) => {
          gone.addEventListener('abort', () => reject(new Error('the client left')));
        });
        const made: ModelReply = await Promise.race([reply(asked), left]);
        const spelt = [...codec.spell(printAgentReply(made))];
        const thought = made.reasoning === undefined ? [] : codec.spell(`<think>\n${made.reasoning}\n</think>\n\n`);
        const tokens = Int32Array.from([...thought, ...spelt, ...(made.finish === 'length' ? [] : [codec.end])]);
        const decision = { kind: 'tokens', tokens, logprobs: new Float32Array(tokens.length), masked: false };
        return {
          episode: 0,
          turn: 0,
          action: '',
          decision: { ...decision, version: 0, value: 0, context: given.prompt },
        };
      } finally {
        waiting--;
      }
    };
    const decisions = { healthy: true, waiting: 0, waitingBytes: 0, decide } as never;
    const facts = { decoder: 'tokens' as const, maxTokens: 512, maxPositions: 4096, version: 1, created: 0 };
    const model = { name: 'policy', codec, agents: codec, world: {} as never, ...facts };
    const server = await servePolicy({ port: 0, model, decisions, ...limits });
    return { root: server.url, headers: {}, waiting: () => waiting, close: () => server.close() };
  },
};
testModelServerLaws('policy server', policy);
