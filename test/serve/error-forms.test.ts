/** Errors of `serve-policy` before a model is asked, in the form of the API that was asked, as its own clients read them. */
import { existsSync } from 'node:fs';
import OpenAI from 'openai';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { HttpServer } from '../../src/http/server.ts';
import type { Decisions } from '../../src/serve/decisions.ts';
import { servePolicy } from '../../src/serve/policy-server.ts';
import { send } from '../gateway/lab.ts';
import { servedModel } from '../support/served-model.ts';

const TOKEN = 'served-token-1234';
const MAX_BODY = 2000;
const decisions = { healthy: true, waiting: 0, waitingBytes: 0 } as unknown as Decisions;
let server: HttpServer;
beforeAll(async () => {
  server = await servePolicy({ port: 0, model: servedModel, decisions, token: TOKEN, maxBodyBytes: MAX_BODY });
});
afterAll(() => server.close());

const OPENAI = ['/v1/completions', '/v1/chat/completions', '/v1/responses', '/v1/responses/compact'];
const ANTHROPIC = ['/v1/messages', '/v1/messages/count_tokens'];
const PATHS = [...OPENAI, ...ANTHROPIC];
const key = { authorization: `Bearer ${TOKEN}` };
const large = { messages: [{ role: 'user', content: 'x'.repeat(MAX_BODY) }] };

/** Form in which the clients of a path read an error. */
function formOf(path: string, openAi: string, anthropic: string) {
  const message = expect.any(String);
  if (ANTHROPIC.includes(path)) return { type: 'error', error: { type: anthropic, message } };
  return { error: { message, type: openAi, param: null, code: null } };
}

async function ask(
  path: string,
  options: { readonly method?: string; readonly headers?: Record<string, string>; readonly body?: object },
) {
  const { method = 'POST', headers = key, body = {} } = options;
  const sent = method === 'POST' ? { body: JSON.stringify(body) } : {};
  const response = await fetch(server.url + path, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    ...sent,
  });
  expect(response.headers.get('content-type')).toBe('application/json');
  return { status: response.status, body: await response.json() };
}

describe.each(PATHS)('%s', (path) => {
  it('refuses a wrong key by 401', async () => {
    const answer = await ask(path, { headers: { authorization: 'Bearer other' } });
    expect(answer).toEqual({ status: 401, body: formOf(path, 'invalid_request_error', 'authentication_error') });
  });

  it('refuses a long body by 413', async () => {
    const answer = await ask(path, { body: large });
    expect(answer).toEqual({ status: 413, body: formOf(path, 'invalid_request_error', 'request_too_large') });
  });

  it('refuses another method by 405, and a path below it by 404', async () => {
    const method = await ask(path, { method: 'GET' });
    expect(method).toEqual({ status: 405, body: formOf(path, 'invalid_request_error', 'invalid_request_error') });
    const below = await ask(`${path}/nothing`, {});
    expect(below.status).toBe(404);
    expect(below.body).toHaveProperty(
      'error.type',
      ANTHROPIC.includes(path) ? 'not_found_error' : 'invalid_request_error',
    );
  });

  it('refuses a body sent in pieces, whose length is not known, by the same 413', async () => {
    const { status, text } = await send(server.url + path, large, {
      headers: { ...key, 'transfer-encoding': 'chunked' },
    }).received;
    expect([status, JSON.parse(text)]).toEqual([413, formOf(path, 'invalid_request_error', 'request_too_large')]);
  });
});

it('other paths answer in OpenAI’s form', async () => {
  expect(await ask('/v2/anything', {})).toEqual({
    status: 404,
    body: { error: { message: 'nothing at /v2/anything', type: 'invalid_request_error', param: null, code: null } },
  });
  expect((await ask('/v1/models', { body: {} })).status).toBe(405);
});

it('OpenAI’s client makes its own errors of them', async () => {
  const options = { baseURL: `${server.url}/v1`, maxRetries: 0 };
  const call = (client: OpenAI, content: string) =>
    client.chat.completions.create({ model: 'policy', messages: [{ role: 'user', content }] });
  await expect(call(new OpenAI({ ...options, apiKey: 'other' }), 'x')).rejects.toSatisfy(
    (thrown) => thrown instanceof OpenAI.AuthenticationError && thrown.type === 'invalid_request_error',
  );
  const client = new OpenAI({ ...options, apiKey: TOKEN });
  await expect(call(client, 'x'.repeat(MAX_BODY))).rejects.toMatchObject({
    status: 413,
    message: expect.stringContaining(`a body may have ${MAX_BODY} bytes`),
  });
  await expect(client.files.list()).rejects.toSatisfy((thrown) => thrown instanceof OpenAI.NotFoundError);
});

const sdk = new URL('../gateway/clients/node_modules/@anthropic-ai/sdk/index.mjs', import.meta.url);
if (!existsSync(sdk)) console.log('skipped: @anthropic-ai/sdk is not installed in test/gateway/clients');

it.skipIf(!existsSync(sdk))('Anthropic’s client makes its own errors of them', async () => {
  const { default: Anthropic } = await import(sdk.href);
  const call = (apiKey: string, content: string) =>
    new Anthropic({ baseURL: server.url, apiKey, maxRetries: 0 }).messages.create({
      model: 'policy',
      max_tokens: 9,
      messages: [{ role: 'user', content }],
    });
  await expect(call('other', 'x')).rejects.toSatisfy(
    (thrown) => thrown instanceof Anthropic.AuthenticationError && thrown.error.error.type === 'authentication_error',
  );
  await expect(call(TOKEN, 'x'.repeat(MAX_BODY))).rejects.toMatchObject({
    status: 413,
    error: { type: 'error', error: { type: 'request_too_large' } },
  });
});
