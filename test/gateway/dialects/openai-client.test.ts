/** Printed replies as OpenAI's own client reads them, its stream helpers included. */
import OpenAI from 'openai';
import { describe, expect, it } from 'vitest';
import type { ModelReply } from '../../../src/core/model-call.ts';
import { chat } from '../../../src/gateway/dialects/chat.ts';
import { type Dialect, RefusedCall, type ReplyIds } from '../../../src/gateway/dialects/dialect.ts';
import { responses } from '../../../src/gateway/dialects/responses.ts';

const ids: ReplyIds = {
  reply: 'reply_0',
  message: 'msg_0',
  reasoning: 'rs_0',
  callItem: (i) => `fc_0_${i}`,
  created: 7,
};
const calls = [{ id: 'call_0_0', name: 'search', arguments: '{"query":"🦘"}' }];
const reply: ModelReply = {
  content: 'I will.\nNow.',
  reasoning: 'Hm.',
  calls,
  finish: 'calls',
  usage: { promptTokens: 5, completionTokens: 3 },
};

/** Client whose requests one dialect answers, in pieces of three bytes; an error cuts a stream off. */
function connect({ parse, print, events, error, errorEvent }: Dialect, given: ModelReply, failing = false): OpenAI {
  const nothing = { response: () => undefined, item: () => undefined };
  const answer = (body: string, contentType: string, status = 200) => {
    const bytes = new TextEncoder().encode(body);
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        for (let at = 0; at < bytes.length; at += 3) controller.enqueue(bytes.slice(at, at + 3));
        controller.close();
      },
    });
    return new Response(stream, { status, headers: { 'content-type': contentType } });
  };
  const fetch = async (_: unknown, init?: { body?: unknown }) => {
    try {
      const request = parse(JSON.parse(String(init!.body)), nothing);
      if (!request.stream) return answer(JSON.stringify(print(given, request, ids)), 'application/json');
      const printed = failing
        ? [events(given, request, ids)[0]!, errorEvent(500, 'it broke')]
        : events(given, request, ids);
      return answer(printed.join(''), 'text/event-stream');
    } catch (thrown) {
      const { status, message, param, code } = thrown as RefusedCall;
      if (!(thrown instanceof RefusedCall)) throw thrown;
      return answer(JSON.stringify(error(status, message, param, code)), 'application/json', status);
    }
  };
  return new OpenAI({ apiKey: 'k', baseURL: 'http://127.0.0.1:9/v1', fetch, maxRetries: 0 });
}

const tool = { name: 'search', parameters: { type: 'object', properties: {} }, strict: false };
const chatBody = {
  model: 'm',
  messages: [{ role: 'user' as const, content: 'Q' }],
  tools: [{ type: 'function' as const, function: tool }],
};
const responsesBody = { model: 'm', input: 'Q', tools: [{ type: 'function' as const, ...tool }] };

describe('the client of OpenAI reads', () => {
  it('a chat completion, plain and streamed', async () => {
    const client = connect(chat, reply);
    const plain = await client.chat.completions.create(chatBody);
    const streamed = await client.chat.completions
      .stream({ ...chatBody, stream_options: { include_usage: true } })
      .finalChatCompletion();
    for (const { choices, usage } of [plain, streamed]) {
      const [{ message, finish_reason: finish }] = choices as [OpenAI.ChatCompletion.Choice];
      expect(finish).toBe('tool_calls');
      expect(message).toMatchObject({ role: 'assistant', content: reply.content });
      const { id, name, arguments: given } = calls[0]!;
      expect(message.tool_calls).toMatchObject([{ id, type: 'function', function: { name, arguments: given } }]);
      expect(usage).toMatchObject({ prompt_tokens: 5, completion_tokens: 3, total_tokens: 8 });
    }
  });
  it('a response, plain and streamed', async () => {
    const client = connect(responses, reply);
    const plain = await client.responses.create(responsesBody);
    const streamed = await client.responses.stream(responsesBody).finalResponse();
    for (const { output, output_text: text, status, usage } of [plain, streamed]) {
      expect([text, status]).toEqual([reply.content, 'completed']);
      expect(output.map(({ type, id }) => [type, id])).toEqual([
        ['reasoning', 'rs_0'],
        ['message', 'msg_0'],
        ['function_call', 'fc_0_0'],
      ]);
      const { id, name, arguments: given } = calls[0]!;
      expect(output[2]).toMatchObject({ call_id: id, name, arguments: given });
      expect(usage).toMatchObject({ input_tokens: 5, output_tokens: 3 });
    }
  });
  it('replies that are empty', async () => {
    const empty: ModelReply = { ...reply, content: '', reasoning: undefined, calls: [], finish: 'stop' };
    const streamed = await connect(chat, empty).chat.completions.stream(chatBody).finalChatCompletion();
    expect(streamed.choices[0]).toMatchObject({ finish_reason: 'stop' });
    expect((await connect(responses, empty).responses.stream(responsesBody).finalResponse()).output_text).toBe('');
  });
  it('refusals by their field, and errors in a stream', async () => {
    const refused = { status: 400, param: 'n', code: 'unsupported_parameter', type: 'invalid_request_error' };
    await expect(connect(chat, reply).chat.completions.create({ ...chatBody, n: 2 })).rejects.toMatchObject(refused);
    const missing = connect(responses, reply).responses.create({ ...responsesBody, previous_response_id: 'resp_9' });
    await expect(missing).rejects.toThrow(OpenAI.NotFoundError);
    const broken = connect(chat, reply, true).chat.completions.stream(chatBody).finalChatCompletion();
    await expect(broken).rejects.toThrow(/it broke/);
    const cut = connect(responses, reply, true).responses.stream(responsesBody).finalResponse();
    await expect(cut).rejects.toThrow(/it broke/);
  });
});
