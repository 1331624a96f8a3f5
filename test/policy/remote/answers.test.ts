/** Answers in the shapes that servers give them: texts, parts, calls of tools, reasoning, streams; and keys they refuse. */

import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import { loadRunConfig } from '../../../src/config/load.ts';
import { RemoteError } from '../../../src/http/retry.ts';
import { isStream, joinStream } from '../../../src/policy/remote/answer-stream.ts';
import { readCompletion } from '../../../src/policy/remote/openai-client.ts';
import { answerRoom, findRefusedKey, isContextOverflow, omitKey } from '../../../src/policy/remote/refused-keys.ts';
import { misreadNotice } from '../../../src/policy/remote/usage.ts';
import { playRollout } from '../../../src/run/rollout.ts';
import { createRunFolder } from '../../../src/run/run-folder.ts';
import { readTrace } from '../../../src/storage/trace.ts';
import { tracePaths } from '../../../src/storage/trace-files.ts';

const answer = (message: object) => ({ choices: [{ message, finish_reason: 'stop' }] });
const call = (name: string, args: string) => ({ type: 'function', function: { name, arguments: args } });

describe('a chat answer', () => {
  it.each([
    ['a text', { content: 'go' }, { text: 'go' }],
    [
      'parts',
      { content: [{ type: 'text', text: 'go ' }, { type: 'image' }, { type: 'text', text: 'on' }] },
      { text: 'go on' },
    ],
    [
      'a call of a tool',
      { content: null, tool_calls: [call('look', '{}')] },
      { text: '', calls: [{ name: 'look', args: '{}' }] },
    ],
    [
      'a call without content',
      { tool_calls: [call('look', '{}')] },
      { text: '', calls: [{ name: 'look', args: '{}' }] },
    ],
    [
      'the older call',
      { content: null, function_call: { name: 'look', arguments: '{}' } },
      { calls: [{ name: 'look', args: '{}' }] },
    ],
    [
      'reasoning beside it',
      { content: 'go', reasoning_content: 'hm' },
      { text: '<think>hm</think>\ngo', reasoning: 'hm' },
    ],
    [
      'reasoning alone',
      { content: null, reasoning: 'Action: go' },
      { text: '<think>Action: go</think>\n', reasoning: 'Action: go' },
    ],
    ['a refusal', { content: null, refusal: 'I cannot.' }, { text: 'I cannot.' }],
  ])('is read from %s', (_, message, read) => {
    expect(readCompletion('chat', answer(message))).toMatchObject(read);
  });
  it('without any of them is malformed', () => {
    expect(() => readCompletion('chat', answer({ content: 7 }))).toThrow(/without "content"/);
  });
});

describe('a stream', () => {
  const chunk = (delta: object) => `data: ${JSON.stringify({ choices: [{ delta }] })}\n\n`;
  it('makes the answer that its chunks amount to, wherever it was cut', () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: 'grapheme', maxLength: 8 }), { maxLength: 6 }),
        fc.boolean(),
        (parts, isCall) => {
          const text = parts.join('');
          const deltas = parts.map((part, i) =>
            chunk(
              isCall
                ? { tool_calls: [{ index: 0, function: { ...(i === 0 ? { name: 'say' } : {}), arguments: part } }] }
                : { content: part },
            ),
          );
          const usage = `data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 5, completion_tokens: 2 } })}\n\n`;
          const body = `: a comment\n\n${chunk({ role: 'assistant', content: '' })}${deltas.join('')}${usage}data: [DONE]\n\n`;
          expect(isStream(body)).toBe(true);
          const read = readCompletion('chat', joinStream('chat', body));
          expect(read.promptTokens).toBe(5);
          if (!isCall) expect(read.text).toBe(text);
          else if (parts.length > 0) expect(read.calls).toEqual([{ name: 'say', args: text }]);
        },
      ),
      { examples: [[['a\u2028b', '\u2029'], false]] }, // Ends of a line for some, for JSON and events none.
    );
    expect(isStream('{"choices": []}')).toBe(false);
  });
  it('of plain completions too; one without a choice is malformed', () => {
    const body = ['go ', 'on'].map((text) => `data: ${JSON.stringify({ choices: [{ text }] })}\r\n\r\n`).join('');
    expect(readCompletion('completions', joinStream('completions', `${body}data: [DONE]\n`)).text).toBe('go on');
    const stopped = `${body}data: ${JSON.stringify({ choices: [{ text: '', finish_reason: 'stop' }] })}\n`;
    expect(readCompletion('completions', joinStream('completions', stopped)).text).toBe('go on');
    // The connection ended early, and HTTP did not notice: it is asked for again.
    expect(() => joinStream('completions', body)).toThrow(expect.objectContaining({ fault: 'malformed' }));
    expect(() => readCompletion('chat', joinStream('chat', 'data: [DONE]\n'))).toThrow(/without "choices"/);
  });
});

describe('a refused key', () => {
  const refusal = (message: string, status = 400) =>
    new RemoteError('status', `POST: HTTP ${status} ${message}`, { status });
  const body = { model: 'm', messages: [], max_tokens: 10, seed: 3, top_p: 1, temperature: 1 };
  it.each([
    [
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
      { key: 'max_tokens', instead: 'max_completion_tokens' },
    ],
    ['{"type":"extra_forbidden","loc":["body","seed"],"msg":"Extra inputs are not permitted"}', { key: 'seed' }],
    ['Unknown name "seed": Cannot find field.', { key: 'seed' }],
    ['top_p is not supported', { key: 'top_p' }],
    ["'temperature' does not support 0.5 with this model", { key: 'temperature' }],
    ['{"error": {"type": "invalid_request_error", "message": "bad messages; max_tokens was 10"}}', undefined],
    ['This model’s maximum context length is 4096 tokens', undefined],
  ])('%s', (message, key) => {
    expect(findRefusedKey(refusal(message), body)).toEqual(key);
  });
  const fields = (error: object, wrapped = true) =>
    new RemoteError('status', 'POST: HTTP 400 …', { status: 400, body: JSON.stringify(wrapped ? { error } : error) });
  it.each<[string, RemoteError, unknown]>([
    [
      "OpenAI's, too large",
      fields({
        message:
          'max_tokens is too large: 10. This model supports at most 8 completion tokens, whereas you provided 10.',
        type: 'invalid_request_error',
        param: 'max_tokens',
        code: null,
      }),
      { key: 'max_tokens', max: 8 },
    ],
    [
      "vLLM's, too large",
      fields(
        {
          object: 'error',
          message: 'max_tokens must be at most 4, got 10',
          type: 'BadRequestError',
          param: null,
          code: 400,
        },
        false,
      ),
      { key: 'max_tokens', max: 4 },
    ],
    [
      'renamed',
      fields({
        message:
          "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        type: 'invalid_request_error',
        param: 'max_tokens',
        code: 'unsupported_parameter',
      }),
      { key: 'max_tokens', instead: 'max_completion_tokens' },
    ],
    [
      'a value that is not supported',
      fields({ message: 'Only the default (1) value is supported.', param: 'temperature', code: 'unsupported_value' }),
      { key: 'temperature' },
    ],
    [
      "FastAPI's",
      fields(
        { detail: [{ type: 'extra_forbidden', loc: ['body', 'seed'], msg: 'Extra inputs are not permitted' }] },
        false,
      ),
      { key: 'seed' },
    ],
    [
      'of another key, whatever its words name',
      fields({ message: 'max_tokens and seed are unsupported with it', param: 'messages', code: 'invalid_value' }),
      undefined,
    ],
    [
      'too large, without a bound',
      fields({ message: 'max_tokens is too large', param: 'max_tokens', code: 'invalid_value' }),
      undefined,
    ],
  ])('is read from the fields of an error: %s', (_, error, expected) => {
    expect(findRefusedKey(error, body)).toEqual(expected);
  });
  it('is lowered to the bound that the server names, and never raised', () => {
    expect(omitKey(body, [{ key: 'max_tokens', max: 4 }]).max_tokens).toBe(4);
    expect(omitKey(body, [{ key: 'max_tokens', max: 40 }]).max_tokens).toBe(10);
  });
  it('is none where the conversation is too long; what room it leaves is found', () => {
    const tooLong = (text: string, code?: string) => fields({ message: text, code, param: 'messages' });
    const vllm = (messages: number) =>
      tooLong(
        `This model's maximum context length is 4096 tokens. However, you requested ${messages + 300} tokens (${messages} in the messages, 300 in the completion). Please reduce the length of the messages or completion.`,
      );
    for (const error of [
      vllm(4000),
      vllm(4096),
      tooLong('Too long', 'context_length_exceeded'),
      tooLong('prompt is too long: 9 > 8'),
    ]) {
      expect(isContextOverflow(error)).toBe(true);
      expect(findRefusedKey(error, body)).toBeUndefined();
    }
    expect(answerRoom(vllm(4000))).toBe(96);
    expect(answerRoom(vllm(4090))).toBeUndefined();
    expect(
      answerRoom(
        tooLong("This model's maximum context length is 128 tokens. However, your messages resulted in 100 tokens."),
      ),
    ).toBe(28);
    expect(isContextOverflow(refusal('seed is not supported'))).toBe(false);
  });
  it('is one that was sent, in an answer that refuses the request', () => {
    expect(findRefusedKey(refusal('seed is not supported', 500), body)).toBeUndefined();
    expect(findRefusedKey(refusal('seed is not supported'), { model: 'm' })).toBeUndefined();
    expect(omitKey(body, [{ key: 'max_tokens', instead: 'max_completion_tokens' }, { key: 'seed' }])).toEqual({
      model: 'm',
      messages: [],
      max_completion_tokens: 10,
      top_p: 1,
      temperature: 1,
    });
  });
});

describe('a rollout', { timeout: 60_000 }, () => {
  const folders: string[] = [];
  let server: Server | undefined;
  afterEach(() => {
    server?.close();
    server?.closeAllConnections();
    for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
  });

  /** @param reply status and body of an answer to a request's JSON */
  async function played(
    reply: (body: Record<string, unknown>) => { status?: number; text: string },
    settings: readonly string[] = [],
  ) {
    server = createServer(async (request, response) => {
      let text = '';
      for await (const part of request) text += part;
      if (request.url === '/v1/models') return void response.end('{"data": [{"id": "tiny"}]}');
      const { status = 200, text: body } = reply(JSON.parse(text) as Record<string, unknown>);
      response.writeHead(status).end(body);
    });
    await new Promise<void>((resolve) => server!.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const folder = mkdtempSync(join(tmpdir(), 'longplay-answers-'));
    folders.push(folder);
    const raw = { env: { id: 'textcraft' }, horizon: { type: 'fixed', rounds: 2 }, stop: { updates: 1 } };
    const url = `policy.openai.baseUrl=http://127.0.0.1:${port}/v1`;
    const config = loadRunConfig(JSON.stringify(raw), 'test', ['policy.kind=openai', url, ...settings]);
    const dir = join(folder, 'run');
    createRunFolder(dir, config);
    const plan = { format: 1, episodes: 2, split: 'test', horizon: 2, temperature: 1, seed: 1 } as const;
    const notices: string[] = [];
    const outcome = await playRollout({ dir, config, plan }, { onNotice: (line) => void notices.push(line) });
    const episodes = tracePaths(join(dir, 'traces')).flatMap((path) => readTrace(path).episodes);
    const actions = episodes.flatMap(({ turns }) => turns.map(({ action }) => action));
    return { ...outcome, outcome, notices, episodes, actions };
  }

  it.each([
    ['calls of tools', answer({ content: 'Let me see.', tool_calls: [call('inventory', '{}')] }), []],
    [
      'reasoning that holds the answer',
      answer({ content: null, reasoning_content: 'Thought: x\nAction: inventory' }),
      [],
    ],
    ['plain words', answer({ content: 'inventory' }), ['policy.chat.format=action']],
  ])('is played by %s', async (_, json, settings) => {
    const { actions, usage } = await played(() => ({ text: JSON.stringify(json) }), settings);
    expect(actions).toEqual(['inventory', 'inventory', 'inventory', 'inventory']);
    expect(usage!.formatErrors).toBe(0);
  });
  it('ends an episode whose conversation is too long as truncated, and counts it as played', async () => {
    const { episodes, outcome } = await played((body) => {
      const turns = (body.messages as unknown[]).length;
      if (turns > 3) {
        const message =
          "This model's maximum context length is 64 tokens. However, your messages resulted in 70 tokens.";
        return {
          status: 400,
          text: JSON.stringify({ error: { message, code: 'context_length_exceeded', param: 'messages' } }),
        };
      }
      return { text: JSON.stringify(answer({ content: 'Thought: x\n\nAction: inventory' })) };
    });
    expect(episodes.map(({ end, success, turns }) => [end, success, turns.length])).toEqual([
      ['truncated', false, 1],
      ['truncated', false, 1],
    ]);
    expect(outcome.summary).toMatchObject({ failed: 0, all: { asked: 2, episodes: 2, successOfAsked: 0 } });
  });

  it.each([401, 403])('ends at once where the key is refused (%i), with one line', async (status) => {
    let asked = 0;
    const ended = played(() => {
      asked++;
      return { status, text: JSON.stringify({ error: { message: 'Incorrect API key', code: 'invalid_api_key' } }) };
    });
    await expect(ended).rejects.toThrow(/the server refuses the key: .*Incorrect API key.*set another one and resume/);
    expect(asked).toBeLessThanOrEqual(2); // those that were under way: two episodes play at once
  });

  it('retries without the keys that a server refuses, and reports it once', async () => {
    const seen: string[][] = [];
    const { actions, notices } = await played((body) => {
      seen.push(Object.keys(body));
      if ('seed' in body) return { status: 400, text: 'Unrecognized request argument supplied: seed' };
      if ('max_tokens' in body)
        return { status: 400, text: "'max_tokens' is not supported, use 'max_completion_tokens'" };
      return { text: JSON.stringify(answer({ content: 'Thought: x\n\nAction: inventory' })) };
    });
    expect(actions).toHaveLength(4);
    expect(notices.filter((line) => /refuses 'seed': requests are sent without it/.test(line))).toHaveLength(1);
    expect(
      notices.filter((line) => /refuses 'max_tokens': .*with max_completion_tokens in its place/.test(line)),
    ).toHaveLength(1);
    expect(seen.at(-1)).toContain('max_completion_tokens');
    expect(seen.at(-1)).not.toContain('seed');
  });
  it('leaves out keys that are configured as unsupported', async () => {
    const seen: string[][] = [];
    await played(
      (body) => {
        seen.push(Object.keys(body));
        return { text: JSON.stringify(answer({ content: 'Action: inventory' })) };
      },
      ['policy.openai.omit=[seed, top_p]'],
    );
    for (const keys of seen) expect(keys).not.toContain('seed');
    expect(seen.flat()).not.toContain('top_p');
  });
  it('of which nothing could be read is reported, with the reason and an example', async () => {
    const { usage } = await played(() => ({ text: JSON.stringify(answer({ content: 'I would rather\nnot.' })) }));
    expect(misreadNotice(usage!)).toMatch(
      /^4 of 4 answers not understood: The answer has no 'Action:'.* E\.g\. 'I would rather not\.'/,
    );
    expect(misreadNotice({ ...usage!, formatErrors: 1 })).toBeUndefined();
  });
});
