/** Client and scripts of the gateway's tests: requests of each dialect, sent over sockets that the test can close. */
import { type Agent, request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import type { Socket } from 'node:net';
import type { ModelReply } from '../../src/core/model-call.ts';
import type { DialectId } from '../../src/gateway/dialects/dialect.ts';
import type { GatewayEpisode } from '../../src/gateway/gateway.ts';

/** Answer as its client got it. */
export interface Received {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
}

/** Request under way. */
export interface Sent {
  /** Whole answer. Rejects where the connection ended before it. */
  readonly received: Promise<Received>;
  /** Status and headers, as soon as they are there. */
  readonly begun: Promise<{ readonly status: number; readonly headers: IncomingHttpHeaders }>;
  /** Text that has come so far. */
  text(): string;
  /** Resolves once the connection is there and the request was written. */
  readonly written: Promise<Socket>;
  /** Closes the connection. */
  leave(): void;
}

/** What is sent beside the body. */
export interface SendOptions {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly agent?: Agent | false;
  /** Called with the response before its body is read, e.g. to pause it. */
  readonly isPaused?: boolean;
}

/** Paths of the dialects below the root. */
export const PATHS: Readonly<Record<DialectId, string>> = {
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
  messages: '/v1/messages',
};

export const DIALECTS: readonly DialectId[] = ['chat', 'responses', 'messages'];

/** Sends a request. @param body JSON value, or bytes as they stand */
export function send(
  url: string,
  body: unknown,
  { method = 'POST', headers, agent, isPaused }: SendOptions = {},
): Sent {
  const bytes = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  const request = httpRequest(url, {
    method,
    agent: agent ?? false,
    headers: {
      'content-type': 'application/json',
      ...(headers?.['transfer-encoding'] ? {} : { 'content-length': Buffer.byteLength(bytes) }),
      ...headers,
    },
  });
  let text = '';
  const begun = new Promise<{ status: number; headers: IncomingHttpHeaders }>((resolve, reject) => {
    request.on('response', (response) => resolve({ status: response.statusCode!, headers: response.headers }));
    request.on('error', reject);
  });
  const received = new Promise<Received>((resolve, reject) => {
    request.on('error', reject);
    request.on('response', (response) => {
      if (isPaused) return;
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('error', reject);
      response.on('end', () => resolve({ status: response.statusCode!, headers: response.headers, text }));
    });
  });
  const written = new Promise<Socket>((resolve) => {
    request.on('finish', () => resolve(request.socket!));
  });
  for (const promise of [begun, received]) promise.catch(() => {});
  request.end(bytes);
  return { received, begun, written, text: () => text, leave: () => void request.destroy() };
}

/** Sends a call to an episode, with its key. */
export function ask(
  episode: GatewayEpisode,
  dialect: DialectId,
  body: unknown,
  { headers, ...rest }: SendOptions = {},
): Sent {
  const all = { authorization: `Bearer ${episode.key}`, ...headers };
  return send(episode.root + PATHS[dialect], body, { headers: all, ...rest });
}

/** Turn of a conversation, in no dialect's form. */
export type Turn =
  | { readonly user: string }
  | { readonly system: string }
  | {
      readonly text?: string;
      readonly calls?: readonly { readonly id: string; readonly name: string; readonly arguments: string }[];
    }
  | { readonly result: string; readonly id: string };

/** Body of a request in a dialect. */
export function bodyOf(
  dialect: DialectId,
  turns: readonly Turn[],
  more: Readonly<Record<string, unknown>> = {},
): Record<string, unknown> {
  const tools = ['search', 'read'].map((name) => ({ name, description: `${name}s`, parameters: { type: 'object' } }));
  switch (dialect) {
    case 'chat':
      return {
        model: 'policy',
        messages: turns.map(chatMessage),
        tools: tools.map((tool) => ({ type: 'function', function: tool })),
        ...more,
      };
    case 'responses':
      return {
        model: 'policy',
        input: turns.flatMap(responseItems),
        tools: tools.map((tool) => ({ type: 'function', ...tool })),
        ...more,
      };
    case 'messages':
      return {
        model: 'policy',
        max_tokens: 100,
        messages: turns.map(anthropicMessage),
        tools: tools.map(({ parameters, ...tool }) => ({ ...tool, input_schema: parameters })),
        ...more,
      };
  }
}

function chatMessage(turn: Turn): object {
  if ('user' in turn) return { role: 'user', content: turn.user };
  if ('system' in turn) return { role: 'system', content: turn.system };
  if ('result' in turn) return { role: 'tool', tool_call_id: turn.id, content: turn.result };
  const calls = turn.calls?.map(({ id, ...called }) => ({ id, type: 'function', function: called }));
  return { role: 'assistant', content: turn.text ?? null, ...(calls ? { tool_calls: calls } : {}) };
}

function responseItems(turn: Turn): object[] {
  if ('user' in turn) return [{ role: 'user', content: turn.user }];
  if ('system' in turn) return [{ role: 'system', content: turn.system }];
  if ('result' in turn) return [{ type: 'function_call_output', call_id: turn.id, output: turn.result }];
  const text = turn.text === undefined ? [] : [{ role: 'assistant', content: turn.text }];
  const calls = turn.calls ?? [];
  return [...text, ...calls.map(({ id, ...called }) => ({ type: 'function_call', call_id: id, ...called }))];
}

function anthropicMessage(turn: Turn): object {
  if ('user' in turn) return { role: 'user', content: turn.user };
  if ('system' in turn) return { role: 'system', content: turn.system };
  if ('result' in turn) {
    return { role: 'user', content: [{ type: 'tool_result', tool_use_id: turn.id, content: turn.result }] };
  }
  const text = turn.text === undefined ? [] : [{ type: 'text', text: turn.text }];
  const calls = (turn.calls ?? []).map(({ id, name, arguments: given }) => {
    return { type: 'tool_use', id, name, input: JSON.parse(given) };
  });
  return { role: 'assistant', content: [...text, ...calls] };
}

const usage = { promptTokens: 7, completionTokens: 3 };

/** Reply that is a text. */
export function textReply(content: string): ModelReply {
  return { content, calls: [], finish: 'stop', usage };
}

/** Reply that calls `search`, once for each query. */
export function callReply(...queries: readonly string[]): ModelReply {
  const calls = queries.map((query) => ({ id: '', name: 'search', arguments: JSON.stringify({ query }) }));
  return { content: '', calls, finish: 'calls', usage };
}
