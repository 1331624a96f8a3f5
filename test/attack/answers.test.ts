/**
 * Mutated answers of model servers, and invalid texts of models: a completion, or a failure that is reported as one.
 */
import { expect, it } from 'vitest';
import { prompt as textcraft } from '../../envs/textcraft/prompt.ts';
import { LongplayError, messageOf } from '../../src/core/errors.ts';
import type { WorldPrompt } from '../../src/core/prompt.ts';
import { parseAnswer } from '../../src/http/http-client.ts';
import { RemoteError } from '../../src/http/retry.ts';
import { parseBody, readSglang, readVllm } from '../../src/policy/generation/generation-client.ts';
import { readCompletion } from '../../src/policy/remote/openai-client.ts';
import { FORMATS } from '../../src/text/prompts/formats.ts';
import { amount, campaign, printFigure } from './campaign.ts';
import { type Json, mutatedJson, mutatedText } from './mutations.ts';

const COUNT = amount(100_000, 2000);

const CHAT: Json = {
  id: 'c',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: 'Thought: go\nAction: get 1 oak log', reasoning_content: null },
      logprobs: {
        content: [
          { token: 'a', logprob: -0.1 },
          { token: 'b', logprob: -0.2 },
        ],
      },
      token_ids: [5, 6],
      finish_reason: 'stop',
    },
  ],
  prompt_token_ids: [1, 2, 3],
  usage: { prompt_tokens: 3, completion_tokens: 2 },
};
const COMPLETION: Json = {
  id: 'c',
  model: 'm',
  choices: [
    {
      text: 'get 1 oak log',
      token_ids: [5, 6],
      prompt_token_ids: [1, 2],
      logprobs: { token_logprobs: [-0.1, -0.2] },
      finish_reason: 'stop',
      longplay: { version: 3, value: 0.5 },
    },
  ],
  usage: { prompt_tokens: 2, completion_tokens: 2 },
};
const GENERATE: Json = {
  output_ids: [5, 6],
  meta_info: {
    finish_reason: { type: 'stop' },
    output_token_logprobs: [
      [-0.1, 5],
      [-0.2, 6],
    ],
  },
};

it(`${COUNT} mutated answers of servers are completions or failures`, { timeout: 3_600_000 }, async () => {
  let accepted = 0;
  await campaign('model answers', COUNT, (rng) => {
    const way = rng.int(4);
    try {
      if (way < 2) {
        const api = way === 0 ? 'chat' : 'completions';
        const completion = readCompletion(api, parseAnswer(mutatedJson(way === 0 ? CHAT : COMPLETION, rng)));
        expect(typeof completion.text).toBe('string');
        expect(Number.isFinite(completion.promptTokens + completion.completionTokens)).toBe(true);
        expect(completion.logprobs?.every(Number.isFinite) ?? true).toBe(true);
        expect(completion.tokens?.every((id) => id >= 0) ?? true).toBe(true);
        expect(Number.isFinite(completion.longplay?.value ?? 0)).toBe(true);
        expect(Number.isSafeInteger(completion.longplay?.version ?? 0)).toBe(true);
      } else {
        const body = parseBody(mutatedJson(way === 2 ? COMPLETION : GENERATE, rng));
        const reply = { status: rng.int(10) === 0 ? rng.pick([404, 400, 500]) : 200, body };
        const answer = way === 2 ? readVllm('m', reply) : readSglang(rng.pick([undefined, 'a']), reply);
        if (answer.kind === 'done') {
          expect(answer.logprobs.length).toBe(answer.tokens.length);
          expect(answer.logprobs.every(Number.isFinite)).toBe(true);
          expect(answer.tokens.every((id) => Number.isSafeInteger(id) && id >= 0 && id < 2 ** 31)).toBe(true);
        }
      }
      accepted++;
    } catch (thrown) {
      const isReported =
        thrown instanceof RemoteError || (thrown instanceof LongplayError && thrown.code === 'REMOTE_FAILED');
      if (!isReported) throw thrown;
      expect(messageOf(thrown)).not.toMatch(/^\s+at /m);
    }
  });
  printFigure(`model answers: ${accepted} of ${COUNT} accepted`);
  expect(accepted).toBeGreaterThan(COUNT / 10);
});

const TEXTS = [
  'Thought:\nI need logs.\n\nAction:\nget 1 oak log',
  '<think>\nlogs\n</think>\nget 1 oak log',
  '{"thought": "logs", "function_name": "get", "arguments": {"item": "1 oak log"}}',
  '```python\n# logs\nget(item="1 oak log", count=1)\n```',
  'The next action is ```get 1 oak log```',
];
const PIECES = [
  'Action:',
  '</think>',
  '```',
  '"',
  "'",
  '\\',
  '(',
  ')',
  ',',
  '#',
  '\n',
  '{',
  '}',
  '\u0000',
  '"""',
  '[[',
  '$&',
  '$1',
];

it(`${COUNT} mutated texts of models name an action, or an error why they name none`, {
  timeout: 3_600_000,
}, async () => {
  const world = textcraft as WorldPrompt;
  let actions = 0;
  await campaign('model texts', COUNT, (rng) => {
    const text = mutatedText(rng.pick(TEXTS), rng, PIECES);
    for (const format of Object.values(FORMATS)) {
      const parsed = format.parse(text, world);
      if ('action' in parsed) {
        actions++;
        expect(typeof parsed.action).toBe('string');
      } else expect(typeof parsed.error).toBe('string');
    }
  });
  printFigure(`model texts: ${actions} actions in ${COUNT} texts`);
});
