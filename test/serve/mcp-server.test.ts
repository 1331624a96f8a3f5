/** Worlds as MCP servers, played by the official client: over HTTP and standard input and output, in both generations. */
import { Client, StreamableHTTPClientTransport, type Transport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createOracle } from '../../envs/textcraft/index.ts';
import { startEnvServer } from '../../src/run/serve-worlds.ts';
import { switches } from '../world/mcp/lab.ts';

const bin = new URL('../../bin/longplay.js', import.meta.url).pathname;
const GENERATIONS = ['legacy', '2026-07-28'] as const;
type Generation = (typeof GENERATIONS)[number];

async function connect(transport: Transport, generation: Generation): Promise<Client> {
  const mode = generation === 'legacy' ? generation : { pin: generation };
  const client = new Client({ name: 'test', version: '1' }, { versionNegotiation: { mode } });
  await client.connect(transport);
  return client;
}

async function call(client: Client, name: string, args: Record<string, unknown> = {}) {
  const { content, structuredContent, isError = false } = await client.callTool({ name, arguments: args });
  const [part] = content;
  return { text: part?.type === 'text' ? part.text : '', isError, ...(structuredContent as Structure | undefined) };
}

interface Structure {
  readonly episode?: string;
  readonly reward?: number;
  readonly done?: boolean;
  readonly success?: boolean | null;
  readonly turn?: number;
  readonly actions?: readonly string[];
}

/** Plays textcraft by the first listed action. @param withHandle where calls name their episode */
async function playTextcraft(client: Client, withHandle: boolean): Promise<void> {
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toEqual(['start', 'act', 'actions']);
  expect(client.getInstructions()).toMatch(/craft[\s\S]*Call start, then act/);
  const started = await call(client, 'start', { task: 0 });
  expect(started).toMatchObject({ isError: false, done: false, turn: 0, reward: 0, success: null });
  expect(started.text).toContain('Goal: ');
  const named = withHandle ? { episode: started.episode } : {};
  const { actions, text } = await call(client, 'actions', named);
  expect(text.split('\n')).toEqual(actions);
  expect(actions!.length).toBeGreaterThan(0);
  expect(await call(client, 'act', { action: 'inventory', ...named })).toMatchObject({ turn: 1, done: false });
  expect(await call(client, 'act', { action: actions![0], ...named })).toMatchObject({ turn: 2 });
  expect(await call(client, 'act', named)).toMatchObject({ isError: true, text: expect.stringContaining('action: ') });
  expect(await call(client, 'start', { task: 1e6 })).toMatchObject({
    isError: true,
    text: expect.stringContaining('task: expected 0 to'),
  });
  expect(await call(client, 'act', { action: 'x', episode: 'no such' })).toMatchObject({ isError: true });
  expect(await call(client, 'fly')).toMatchObject({ isError: true, text: "there is no tool 'fly'" });
}

it('an episode that has ended makes room for another, one that goes on does not', async () => {
  const server = await startEnvServer(['textcraft'], { mcp: true, maxSessions: 1 });
  const client = await connect(new StreamableHTTPClientTransport(new URL(`${server.url}/mcp/textcraft`)), 'legacy');
  const { episode, text } = await call(client, 'start', { task: 0 });
  expect(await call(client, 'start', { task: 0 })).toMatchObject({
    isError: true,
    text: expect.stringContaining('as many'),
  });
  const next = createOracle({})({ env: 'textcraft', index: 0, seed: 0 });
  let step = { kind: 'first', observation: text } as Parameters<typeof next>[0];
  let last: Awaited<ReturnType<typeof call>> | undefined;
  for (let action = next(step); action !== undefined && !last?.done; action = next(step)) {
    last = await call(client, 'act', { action, episode });
    step = { kind: 'mid', observation: last.text, reward: 0 };
  }
  expect(last).toMatchObject({ done: true, success: true });
  expect(await call(client, 'start', { task: 0 })).toMatchObject({ isError: false, turn: 0 });
  await client.close();
  await server.close();
});

describe('a world over HTTP', () => {
  let server: Awaited<ReturnType<typeof startEnvServer>>;
  beforeAll(async () => {
    server = await startEnvServer(['textcraft', 'tau2'], { mcp: true });
  });
  afterAll(() => server.close());

  it.each(GENERATIONS)('is played by a client of %s', async (generation) => {
    const client = await connect(new StreamableHTTPClientTransport(new URL(`${server.url}/mcp/textcraft`)), generation);
    await playTextcraft(client, true);
    const unnamed = await call(client, 'act', { action: 'inventory' });
    expect(unnamed).toMatchObject({ isError: true, text: 'episode: expected the text that start gave, got nothing' });
    const { tools } = await client.listTools();
    expect(tools[1]!.inputSchema.required).toEqual(['action', 'episode']);
    await client.close();
  });

  it('gives clients episodes of their own', async () => {
    const clients = await Promise.all(
      GENERATIONS.map((generation) =>
        connect(new StreamableHTTPClientTransport(new URL(`${server.url}/mcp/textcraft`)), generation),
      ),
    );
    const [one, other] = await Promise.all(clients.map((client) => call(client, 'start', { task: 3 })));
    expect(one!.text).toBe(other!.text);
    const [left, right] = clients as [Client, Client];
    await call(left, 'act', { action: 'inventory', episode: one!.episode });
    expect(await call(left, 'act', { action: 'inventory', episode: one!.episode })).toMatchObject({ turn: 2 });
    expect(await call(right, 'act', { action: 'inventory', episode: other!.episode })).toMatchObject({ turn: 1 });
    expect(server.sessions).toBeGreaterThanOrEqual(2);
    await Promise.all(clients.map((client) => client.close()));
  });

  it.each(GENERATIONS)('passes the tools of a world of tools through: %s', async (generation) => {
    const client = await connect(new StreamableHTTPClientTransport(new URL(`${server.url}/mcp/tau2`)), generation);
    const { tools } = await client.listTools();
    const names = tools.map(({ name }) => name);
    expect(names.slice(0, 2)).toEqual(['start', 'reply']);
    expect(names.length).toBeGreaterThan(5);
    const { episode, text } = await call(client, 'start', { task: 0 });
    expect(text.length).toBeGreaterThan(100); // its policy, and what the user says
    const wrong = await call(client, names[3]!, { episode, nothing: 1 });
    expect(wrong).toMatchObject({ isError: true, turn: 1, done: false });
    const said = await call(client, 'reply', { episode, text: 'Hello' });
    expect(said).toMatchObject({ isError: false, turn: 2 });
    expect(said.text.length).toBeGreaterThan(0);
    await client.close();
  });

  it('has no such path where it is not asked for', async () => {
    const plain = await startEnvServer(['textcraft']);
    expect((await fetch(`${plain.url}/mcp/textcraft`, { method: 'POST', body: '{}' })).status).toBe(404);
    await plain.close();
  });

  it('refuses web pages from elsewhere', async () => {
    const headers = {
      origin: 'http://evil.example',
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    };
    const answer = await fetch(`${server.url}/mcp/textcraft`, { method: 'POST', headers, body: '{}' });
    expect(answer.status).toBe(403);
  });
});

describe('a world over standard input and output', () => {
  it.each(GENERATIONS)('is played by a client of %s', async (generation) => {
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [bin, 'serve-env', 'textcraft', '--mcp', 'stdio'],
    });
    const client = await connect(transport, generation);
    await playTextcraft(client, false);
    const first = await call(client, 'start');
    expect(await call(client, 'act', { action: 'inventory' })).toMatchObject({ turn: 1, episode: first.episode });
    await client.close();
    expect(transport.pid).toBeNull();
  });

  it('plays an MCP server through us: a world of tools in a world of tools', async () => {
    const { command, tasks, verify } = switches({ tools: ['press'] });
    const set = Object.entries({ command, tasks, verify, tools: ['press'] }).flatMap(([key, value]) => [
      '--option',
      `${key}=${JSON.stringify(value)}`,
    ]);
    const transport = new StdioClientTransport({
      command: process.execPath,
      args: [bin, 'serve-env', 'mcp', '--mcp', 'stdio', ...set],
    });
    const client = await connect(transport, 'legacy');
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(['start', 'reply', 'press']);
    expect(tools[2]!.inputSchema).toEqual({
      type: 'object',
      properties: { color: { enum: ['red', 'green', 'blue'] } },
      required: ['color'],
    });
    expect((await call(client, 'start', { task: 0 })).text).toBe('Press gently.\n\nPress the red switch.');
    expect(await call(client, 'press', { color: 'red' })).toMatchObject({ text: 'red clicks', done: false });
    expect(await call(client, 'reply', { text: 'done' })).toMatchObject({ done: true, success: true, reward: 1 });
    expect(await call(client, 'press', { color: 'red' })).toMatchObject({
      isError: true,
      text: 'the episode has ended: call start',
    });
    await client.close();
  });
});
