/** Chat server for tests: answers each request as its script says, and keeps what it was sent. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Answer of a script: a message of the model, or an error. */
export type ScriptedAnswer =
  | {
      readonly message: object;
      readonly finish?: string;
      readonly usage?: { readonly promptTokens: number; readonly completionTokens: number };
    }
  | { readonly status: number; readonly error?: object | string; readonly headers?: Readonly<Record<string, string>> };

export interface ChatServer {
  /** Base URL, which ends in `/v1`. */
  readonly url: string;
  /** Bodies of the requests for completions, in their order. */
  readonly bodies: Readonly<Record<string, unknown>>[];
  close(): Promise<void>;
}

/**
 * Starts a chat server.
 * @param answer of the n-th request, from 0 on
 * @param models names that it lists
 * @param key that it asks for; absent: none
 */
export async function startChatServer(
  answer: (body: Readonly<Record<string, unknown>>, n: number) => ScriptedAnswer | Promise<ScriptedAnswer>,
  { models = ['hosted'], key }: { readonly models?: readonly string[]; readonly key?: string } = {},
): Promise<ChatServer> {
  const bodies: Record<string, unknown>[] = [];
  const server = createServer(async (request, response) => {
    const send = (status: number, value: unknown, headers: Readonly<Record<string, string>> = {}) => {
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(typeof value === 'string' ? value : JSON.stringify(value));
    };
    if (key !== undefined && request.headers.authorization !== `Bearer ${key}`) {
      return send(401, { error: { message: 'Incorrect API key provided', code: 'invalid_api_key' } });
    }
    if (request.url === '/v1/models') return send(200, { data: models.map((id) => ({ id })) });
    let text = '';
    for await (const chunk of request) text += chunk;
    const body = JSON.parse(text) as Record<string, unknown>;
    const n = bodies.push(body) - 1;
    const made = await answer(body, n);
    if ('status' in made) return send(made.status, made.error ?? {}, made.headers);
    const { promptTokens, completionTokens } = made.usage ?? { promptTokens: 5, completionTokens: 2 };
    const usage = { prompt_tokens: promptTokens, completion_tokens: completionTokens };
    send(200, { choices: [{ message: made.message, finish_reason: made.finish ?? 'stop' }], usage });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    bodies,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
