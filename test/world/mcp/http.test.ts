/** MCP worlds by HTTP: sessions of earlier generations, requests of the one without, and servers that are bad or gone. */
import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { createMcpHandler, McpServer, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server';
import { afterEach, expect, it } from 'vitest';
import { z } from 'zod';
import { isUnanswered } from '../../../src/http/retry.ts';
import { act, callTool, openMcp } from './lab.ts';

const open: Server[] = [];
afterEach(() => {
  for (const server of open.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

/** Listens. @returns the URL */
function listen(handler: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server = createServer(handler);
  open.push(server);
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`));
  });
}

const serve = (fetch: (request: Request) => Response | Promise<Response>) =>
  listen((request, response) => void getRequestListener(fetch)(request, response));

/** Counter that belongs to whoever holds this server. */
function createCounter(): McpServer {
  let count = 0;
  const server = new McpServer({ name: 'counter', version: '1' });
  const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] });
  server.registerTool('add', { inputSchema: z.object({ n: z.number() }) }, ({ n }) => text(String((count += n))));
  server.registerTool('count', {}, () => text(String(count)));
  server.registerTool('huge', {}, () => text('x'.repeat(70 * 2 ** 20)));
  server.registerTool('slow', {}, () => new Promise<never>(() => {}));
  return server;
}

/** Server with sessions, one counter each. */
async function serveSessions() {
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();
  const url = await serve(async (request) => {
    const known = sessions.get(request.headers.get('mcp-session-id') ?? '');
    if (known) return known.handleRequest(request);
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void sessions.set(id, transport),
      onsessionclosed: (id) => void sessions.delete(id),
    });
    await createCounter().connect(transport);
    return transport.handleRequest(request);
  });
  return { url, sessions };
}

const tasks = [{ prompt: 'Count to 3.', expect: '3' }];
const verify = { tool: 'count' };
const task = { env: 'mcp', index: 0, seed: 0 };

it('gives each episode a session of its own, and ends it', async () => {
  const { url, sessions } = await serveSessions();
  const { env, dispose } = await openMcp({ url, tasks, verify });
  expect(sessions.size).toBe(0); // that of the start is over
  const [one, other] = [await env.open(task), await env.open(task)];
  expect(sessions.size).toBe(2);
  expect(await callTool(one, 'add', { n: 3 })).toBe('3');
  expect(await callTool(other, 'add', { n: 1 })).toBe('1');
  expect(await one.step(act([]))).toMatchObject({ reward: 1 });
  expect(await other.step(act([]))).toMatchObject({ reward: 0 });
  await Promise.all([one.close(), other.close()]);
  expect(sessions.size).toBe(0);
  await dispose();
});

it('plays a server of the revision without sessions, pinned or found out', async () => {
  const shared = createMcpHandler(() => createCounter(), { legacy: 'reject' });
  const url = await serve((request) => shared.fetch(request));
  for (const spec of [undefined, 'auto', '2026-07-28']) {
    const { env, dispose } = await openMcp({ url, tasks, verify, reset: 'none', spec });
    const session = await env.open(task);
    expect(await callTool(session, 'add', { n: 2 })).toBe('2'); // a counter a request
    expect(await callTool(session, 'add', {})).toMatch(/^error: /);
    await session.close();
    await dispose();
  }
});

it('gives up a call that is late, and one whose answer is too long', async () => {
  const { url } = await serveSessions();
  const { env, dispose } = await openMcp({ url, tasks, verify, callTimeoutMs: 3000 });
  const session = await env.open(task);
  expect(await callTool(session, 'huge')).toBe('error: Error: no result within 3000 ms'); // 70 MiB are not read to their end
  await session.close();
  const late = await env.open(task);
  expect(await callTool(late, 'slow')).toBe('error: Error: no result within 3000 ms');
  await late.close();
  await dispose();
});

it('fails as unreachable where the server goes', async () => {
  const { url } = await serveSessions();
  const { env, dispose } = await openMcp({ url, tasks, verify });
  const session = await env.open(task);
  for (const server of open) {
    server.closeAllConnections();
    server.close();
  }
  const failure = await Promise.resolve(session.step(act([['count', {}]]))).catch((thrown: unknown) => thrown);
  expect(isUnanswered(failure)).toBe(true);
  await session.close();
  await expect(env.open(task)).rejects.toThrow('the MCP server does not answer');
  await dispose();
});

it.each([
  ['a page', 200, 'text/html', '<html></html>'],
  ['an error', 500, 'text/plain', 'boom'],
  ['no JSON', 200, 'application/json', '{"a'],
  ['another JSON', 200, 'application/json', '[1]'],
])('refuses what is no MCP server in one line: %s', async (_name, status, type, body) => {
  const url = await listen((_request, response) => response.writeHead(status, { 'content-type': type }).end(body));
  const thrown = await openMcp({ url, tasks, verify, startTimeoutMs: 1000 }).catch((error: unknown) => error);
  expect(thrown).toMatchObject({ code: 'BAD_CONFIG' });
  expect((thrown as Error).message).toMatch(/^mcp: http:\/\/127[^\n]+$/);
});

it('refuses an address where nobody listens', async () => {
  const options = { url: 'http://127.0.0.1:1/mcp', tasks, verify };
  await expect(openMcp(options)).rejects.toThrow(/^mcp: http:\/\/127.0.0.1:1\/mcp: .*(ECONNREFUSED|bad port)/);
});

it('sends the token of the variable that is named, and says so where there is none', async () => {
  const seen: (string | undefined)[] = [];
  const url = await listen((request, response) => {
    seen.push(request.headers.authorization);
    response.writeHead(401).end();
  });
  process.env.MCP_TEST_KEY = 'secret-of-this-test';
  await expect(openMcp({ url, tasks, verify, tokenEnv: 'MCP_TEST_KEY' })).rejects.toThrow();
  delete process.env.MCP_TEST_KEY;
  expect(seen[0]).toBe('Bearer secret-of-this-test');
  const unset = openMcp({ url, tasks, verify, tokenEnv: 'MCP_TEST_KEY' });
  await expect(unset).rejects.toThrow('mcp: tokenEnv: the environment variable MCP_TEST_KEY is not set');
});
