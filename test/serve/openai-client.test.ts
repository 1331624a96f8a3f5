/** The official client speaks to our policy server. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { startPolicyServer } from '../../src/run/serve-trained-policy.ts';
import { makePolicyRun } from '../support/policy-run.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });
const OPENING =
  'Crafting commands:\ncraft 4 oak planks using 1 oak logs\ncraft 4 stick using 2 planks\n\nGoal: craft stick.';
const ACTIONS = ['get 1 oak logs', 'inventory', 'craft 4 stick using 2 planks', 'get 1 dirt'];

let dir: string;
let chooser: Awaited<ReturnType<typeof startPolicyServer>>;
let writer: Awaited<ReturnType<typeof startPolicyServer>>;
let client: OpenAI;
let writing: OpenAI;

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'longplay-openai-'));
  await makePolicyRun(join(dir, 'chooser'), 'textcraft');
  await makePolicyRun(join(dir, 'writer'), 'textcraft', ['policy.decoder=tokens']);
  chooser = await startPolicyServer(join(dir, 'chooser'));
  writer = await startPolicyServer(join(dir, 'writer'));
  client = new OpenAI({ baseURL: `${chooser.url}/v1`, apiKey: 'none', maxRetries: 0 });
  writing = new OpenAI({ baseURL: `${writer.url}/v1`, apiKey: 'none', maxRetries: 0 });
});
afterAll(async () => {
  await chooser?.close();
  await writer?.close();
  rmSync(dir, { recursive: true, force: true });
});

/** The client's types do not know `guided_choice`; its wire does. */
const choose = (more: object) =>
  ({ model: 'chooser', messages: [{ role: 'user', content: OPENING }], guided_choice: ACTIONS, ...more }) as never;

async function chat(more: object = {}): Promise<OpenAI.ChatCompletion> {
  return client.chat.completions.create(choose(more));
}

describe('a policy that chooses', () => {
  it('is listed', async () => {
    const models = await client.models.list();
    expect(models.data.map(({ id }) => id)).toEqual(['chooser']);
    expect((await client.models.retrieve('chooser')).owned_by).toBe('longplay');
  });

  it('chooses among the list, the same under the same seed, with its log-probability', async () => {
    const first = await chat({ seed: 3, logprobs: true });
    const [choice] = first.choices;
    expect(ACTIONS).toContain(choice!.message.content);
    expect(choice!.finish_reason).toBe('stop');
    expect(choice!.logprobs!.content![0]!.token).toBe(choice!.message.content);
    expect(choice!.logprobs!.content![0]!.logprob).toBeLessThan(0);
    expect((await chat({ seed: 3 })).choices[0]!.message.content).toBe(choice!.message.content);
    expect(first.usage!.total_tokens).toBe(first.usage!.prompt_tokens + first.usage!.completion_tokens);
  });

  it('draws from its distribution: over many seeds each action comes as often as its probability', async () => {
    const n = 60;
    const drawn = (
      await Promise.all(Array.from({ length: 5 }, (_, i) => chat({ seed: 1000 * i, n, logprobs: true })))
    ).flatMap(({ choices }) => choices);
    expect(drawn.length).toBe(5 * n);
    const p = new Map(
      drawn.map(({ message, logprobs }) => [message.content, Math.exp(logprobs!.content![0]!.logprob)]),
    );
    expect([...p.values()].reduce((sum, x) => sum + x, 0)).toBeCloseTo(1, 1);
    for (const [action, share] of p) {
      const seen = drawn.filter(({ message }) => message.content === action).length / drawn.length;
      expect(Math.abs(seen - share)).toBeLessThan(4 * Math.sqrt((share * (1 - share)) / drawn.length) + 0.01);
    }
  });

  it('is greedy at temperature 0', async () => {
    const texts = await Promise.all(
      [1, 2, 3, 4, 5].map(async (seed) => (await chat({ seed, temperature: 0 })).choices[0]!.message.content),
    );
    expect(new Set(texts).size).toBe(1);
  });

  it('streams', async () => {
    const stream = (await client.chat.completions.create(
      choose({ seed: 3, stream: true, stream_options: { include_usage: true } }),
    )) as unknown as AsyncIterable<OpenAI.ChatCompletionChunk>;
    let text = '';
    const reasons: unknown[] = [];
    let usage: OpenAI.CompletionUsage | null | undefined;
    for await (const chunk of stream) {
      text += chunk.choices[0]?.delta.content ?? '';
      if (chunk.choices[0]?.finish_reason) reasons.push(chunk.choices[0].finish_reason);
      usage = chunk.usage ?? usage;
    }
    const whole = await chat({ seed: 3 });
    expect(text).toBe(whole.choices[0]!.message.content);
    expect(reasons).toEqual(['stop']);
    expect(usage).toEqual(whole.usage);
  });

  it('answers in the format of the choices, and ends at a stop string', async () => {
    const printed = ACTIONS.map((action) => `Thought:\nx\n\nAction:\n${action}`);
    const { choices } = await chat({ seed: 3, guided_choice: printed });
    expect(printed).toContain(choices[0]!.message.content);
    expect(choices[0]!.message.content).toContain((await chat({ seed: 3 })).choices[0]!.message.content!);
    const stopped = await chat({ seed: 3, guided_choice: printed, stop: ['\n\nAction'] });
    expect(stopped.choices[0]!.message.content).toBe('Thought:\nx');
  });

  it.each([
    ['no list', { guided_choice: undefined }, /guided_choice/],
    ['a conversation that is no episode', { messages: [{ role: 'user', content: 'hello' }] }, /cannot read this world/],
    ['two users in a row', { messages: [1, 2].map(() => ({ role: 'user', content: OPENING })) }, /in turn/],
    ['top_p', { top_p: 0.5 }, /top_p/],
    ['tools', { tools: [{ type: 'function', function: { name: 'f' } }] }, /tools: this server cannot follow it/],
    ['a key that is not known', { new_key: 1 }, /new_key: this server does not know it/],
    ['tool_choice', { tools: [], tool_choice: 'required' }, /tool_choice: this server cannot follow it/],
    [
      'response_format',
      { response_format: { type: 'json_object' } },
      /response_format: expected type text or json_schema/,
    ],
    ['presence_penalty', { presence_penalty: 0.5 }, /presence_penalty/],
    ['structured_outputs.regex', { structured_outputs: { regex: 'a' } }, /structured_outputs\.regex/],
    [
      'a prompt too long',
      { messages: [{ role: 'user', content: OPENING.replace('stick.', `${'x'.repeat(5000)}.`) }] },
      /reads/,
    ],
  ])('refuses %s in words', async (_, more, words) => {
    await expect(chat(more)).rejects.toThrow(words);
    await expect(chat(more)).rejects.toMatchObject({ status: 400 });
  });

  it("throws the client's own error for a model that is not there", async () => {
    await expect(chat({ model: 'other' })).rejects.toThrow(OpenAI.NotFoundError);
    await expect(client.models.retrieve('other')).rejects.toMatchObject({ code: 'model_not_found', param: 'model' });
  });

  it('answers each prompt of a list as it does alone', async () => {
    const prompts = ['goal stick', 'goal oak planks', 'goal dirt'];
    const body = { model: 'chooser', guided_choice: ACTIONS, seed: 5, logprobs: 0 };
    const complete = (more: object) => client.completions.create({ ...body, ...more } as never) as never;
    const together: OpenAI.Completion = await complete({ prompt: prompts });
    const alone: OpenAI.Completion[] = await Promise.all(prompts.map((prompt) => complete({ prompt })));
    expect(together.choices.map(({ text }) => text)).toEqual(alone.map(({ choices }) => choices[0]!.text));
    const sum = alone.reduce((total, { usage }) => total + usage!.prompt_tokens, 0);
    expect(together.usage!.prompt_tokens).toBe(sum);
    expect(together.created).toBeGreaterThan(1_600_000_000);
  });

  it('chooses among the enum of a JSON schema, as it does from a list', async () => {
    const schema = {
      type: 'object',
      properties: { action: { type: 'string', enum: ACTIONS } },
      required: ['action'],
      additionalProperties: false,
    };
    const answer = await client.chat.completions.create({
      model: 'chooser',
      messages: [{ role: 'user', content: OPENING }],
      seed: 3,
      response_format: { type: 'json_schema', json_schema: { name: 'step', strict: true, schema } },
    });
    const { action } = JSON.parse(answer.choices[0]!.message.content!);
    expect(action).toBe((await chat({ seed: 3 })).choices[0]!.message.content);
  });

  it('refuses token prompts that are none, and lives on', async () => {
    const complete = (more: object) =>
      client.completions.create({ model: 'chooser', guided_choice: ACTIONS, ...more } as never);
    await expect(complete({ prompt: [1e6] })).rejects.toThrow('token id');
    await expect(complete({ prompt: [5, 1], longplay: { mentions: [] } })).rejects.toThrow('mentions');
    await expect(complete({ prompt: [5, 1], longplay: { prompt_length: 9 } })).rejects.toThrow('prompt_length');
    const { choices } = (await complete({ prompt: [5, 1] })) as OpenAI.Completion;
    expect(ACTIONS).toContain(choices[0]!.text);
  });
});

describe('a policy that writes', () => {
  it('writes tokens with their log-probabilities, up to max_tokens', async () => {
    const { choices, usage } = await writing.completions.create({
      model: 'writer',
      prompt: 'goal stick',
      max_tokens: 6,
      seed: 1,
      logprobs: 1,
    });
    const [choice] = choices;
    const { tokens, token_logprobs: logprobs } = choice!.logprobs!;
    expect(logprobs!.length).toBe(usage!.completion_tokens);
    expect(logprobs!.every((logprob) => logprob <= 0)).toBe(true);
    expect(tokens!.join('')).toBe(choice!.text);
    expect(usage!.completion_tokens).toBeLessThanOrEqual(6);
    expect(choice!.finish_reason).toBe(usage!.completion_tokens === 6 ? 'length' : 'stop');
  });

  it('streams the same text', async () => {
    const body = { model: 'writer', prompt: 'goal stick', max_tokens: 8, seed: 4 };
    const whole = await writing.completions.create(body);
    let text = '';
    for await (const chunk of await writing.completions.create({ ...body, stream: true }))
      text += chunk.choices[0]?.text ?? '';
    expect(text).toBe(whole.choices[0]!.text);
  });

  it('keeps to a list where one is given', async () => {
    const answer = await writing.completions.create({
      model: 'writer',
      prompt: 'goal stick',
      guided_choice: ACTIONS,
      seed: 2,
    } as never);
    expect(ACTIONS).toContain((answer as OpenAI.Completion).choices[0]!.text);
  });

  it('answers a choice in the words of the list, whatever the policy writes of it', async () => {
    const printed = ACTIONS.map((action) => `Thought:\nx\n\nAction:\n${action}`);
    const messages = [{ role: 'user', content: OPENING }];
    const answer = (await writing.chat.completions.create({
      model: 'writer',
      messages,
      guided_choice: printed,
      logprobs: true,
    } as never)) as OpenAI.ChatCompletion;
    expect(printed).toContain(answer.choices[0]!.message.content);
    const tokens = answer.choices[0]!.logprobs!.content!.map(({ token }) => token).join('');
    expect(tokens).toBe(answer.choices[0]!.message.content);
  });
});
