/** Worlds of tools behind OpenEnv's actions of tools, by the JSON of openenv-core 0.3.0; AgentGym's protocol refuses them. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readAgentCall } from '../../src/core/agent-call.ts';
import { WebSocketClient } from '../../src/http/websocket-client.ts';
import { findWorld } from '../../src/run/find-world.ts';
import { startEnvServer } from '../../src/run/serve-worlds.ts';
import type { EnvServer } from '../../src/serve/env-server.ts';
import { startChatServer } from '../support/chat-server.ts';

let server: EnvServer;
let texts: EnvServer;
const clients: WebSocketClient[] = [];
beforeAll(async () => {
  server = await startEnvServer(['tau2'], { options: { domain: 'mock' } });
  texts = await startEnvServer(['textcraft']);
});
afterAll(async () => {
  for (const client of clients) client.close({ type: 'close' });
  await server.close();
  await texts.close();
});

interface Answer {
  readonly type: string;
  readonly data: Readonly<Record<string, unknown>> & { readonly observation: Readonly<Record<string, unknown>> };
}

async function connect(url = server.url, world = 'tau2') {
  const socket = `${url.replace('http', 'ws')}/openenv/${world}/ws`;
  const client = await WebSocketClient.connect(socket, { deadlineMs: 5000 });
  clients.push(client);
  return async (type: string, data: object = {}) => (await client.request({ type, data }, 5000)) as Answer;
}

const create = (args: object) => ({ type: 'call_tool', tool_name: 'create_task', arguments: args });
const meeting = create({ user_id: 'user_1', title: 'Important Meeting' });

describe('a world of tools behind OpenEnv', () => {
  it('lists its tools before and after a reset, and uses no turn for it', async () => {
    const ask = await connect();
    const before = await ask('step', { type: 'list_tools' });
    expect(before).toMatchObject({ type: 'observation', data: { reward: null, done: false } });
    const tools = before.data.observation.tools as readonly Record<string, unknown>[];
    expect(tools.map(({ name }) => name)).toEqual([
      'create_task',
      'get_users',
      'update_task_status',
      'transfer_to_human_agents',
    ]);
    for (const tool of tools) expect(Object.keys(tool)).toEqual(['name', 'description', 'input_schema']);
    expect((await ask('step', meeting)).data).toMatchObject({ code: 'EXECUTION_ERROR' }); // no episode yet
    const opened = await ask('reset', { index: 0 });
    expect(opened.data.observation).not.toHaveProperty('tools'); // clients would take it for a list of tools
    expect(opened.data.observation.metadata).toMatchObject({
      longplay: { messages: [{ role: 'system' }, { role: 'assistant' }, { role: 'user' }] },
    });
    expect((await ask('step', { type: 'list_tools' })).data.observation.tools).toEqual(tools);
    expect((await ask('state')).data).toMatchObject({ step_count: 0 });
  });

  it('gives a world the variable of its key where it is named, and not otherwise', async () => {
    process.env.LONGPLAY_TEST_USER_KEY = 'k-user';
    const model = await startChatServer(() => ({ message: { role: 'assistant', content: 'Please make a task.' } }), {
      key: 'k-user',
    });
    const name = 'LONGPLAY_TEST_USER_KEY';
    const options = { domain: 'mock', user: { kind: 'openai', url: model.url, model: 'hosted', apiKeyEnv: name } };
    let named: EnvServer | undefined;
    try {
      named = await startEnvServer(['tau2'], { options, hostVariables: [name] });
      const opened = await (await connect(named.url))('reset', { index: 0 });
      expect(JSON.stringify(opened)).toContain('Please make a task.');
      await expect(startEnvServer(['tau2'], { options })).rejects.toThrow(/LONGPLAY_TEST_USER_KEY.*--host-variable/);
    } finally {
      delete process.env.LONGPLAY_TEST_USER_KEY;
      await named?.close();
      await model.close();
    }
  });

  it('answers a call by its result, words by the user, and ends with a reward', async () => {
    const ask = await connect();
    await ask('reset', { index: 0 });
    const made = await ask('step', meeting);
    const text = '{"task_id": "task_2", "title": "Important Meeting", "description": null, "status": "pending"}';
    expect(made.data).toMatchObject({
      observation: {
        tool_name: 'create_task',
        result: { content: [{ type: 'text', text }], structured_content: null, data: text, is_error: false },
        error: null,
        turn: 1,
        metadata: { longplay: { partial: false, messages: [{ role: 'tool', content: text }] } },
      },
      reward: 0,
      done: false,
    });
    expect(readAgentCall(made.data.observation.text as string).call).toBe(1);
    const end = await ask('step', { action: 'All done.' });
    expect(end.data).toMatchObject({ observation: { success: true }, reward: 1, done: true });
    expect((await ask('step', meeting)).data).toMatchObject({ code: 'EXECUTION_ERROR' });
  });

  it.each([
    ['tool_not_found', { type: 'call_tool', tool_name: 'no_tool' }, /not found/],
    ['invalid_args', create({ user_id: 'user_1' }), /missing 1 required/],
    ['execution_error', create({ user_id: 'nobody', title: 'x' }), /User nobody not found/],
  ])('reports %s as an error of the tool, in a turn', async (error_type, action, message) => {
    const ask = await connect();
    await ask('reset', { index: 0 });
    expect((await ask('step', action)).data).toMatchObject({
      observation: { result: null, error: { error_type, message: expect.stringMatching(message) }, turn: 1 },
      done: false,
    });
  });

  it.each([
    [{ type: 'call_tool' }, /^tool_name: /],
    [{ type: 'call_tool', tool_name: 'x', arguments: '{}' }, /^arguments: /],
    [{ type: 'list_prompts' }, /^type: /],
    [{ type: 'list_tools', tool_name: 'x' }, /tool_name/],
  ])('refuses the action %j by its field', async (action, message) => {
    const ask = await connect();
    await ask('reset', { index: 0 });
    expect((await ask('step', action)).data).toMatchObject({
      code: 'VALIDATION_ERROR',
      message: expect.stringMatching(message),
    });
    expect((await ask('state')).data).toMatchObject({ step_count: 0 });
  });

  it('names its actions in the schema', async () => {
    const schema = (await (await fetch(`${server.url}/openenv/tau2/schema`)).json()) as { action: object };
    expect(schema.action).toMatchObject({ properties: { type: { enum: ['list_tools', 'call_tool'] } } });
  });

  it('is a world of tools for a client of ours too', async () => {
    const { world, env } = await findWorld(`openenv+${server.url}/openenv/tau2`);
    expect(world.tools).toBe(true);
    const session = await env.open({ env: env.id, index: 0, seed: 0 });
    expect(readAgentCall(session.first.observation).tools).toHaveLength(4);
    await session.close();
  });
});

describe('a world of texts behind OpenEnv', () => {
  it('refuses actions of tools by name, and stays as it was', async () => {
    const ask = await connect(texts.url, 'textcraft');
    await ask('reset', { index: 0 });
    expect((await ask('step', { type: 'list_tools' })).data).toEqual({
      code: 'VALIDATION_ERROR',
      message: 'type: textcraft has no tools; send {action: a text}',
    });
    const { observation } = (await ask('step', { action: 'inventory' })).data;
    expect(observation.metadata).toEqual({ longplay: { partial: false } });
  });
});

describe('a world of tools behind AgentGym’s protocol', () => {
  it.each(['/create', '/tau2/create'])('is refused by one line at %s', async (path) => {
    const response = await fetch(server.url + path, { method: 'POST' });
    expect(response.status).toBe(404);
    expect(await response.json()).toEqual({
      error: {
        code: 'NOT_FOUND',
        message: `nothing at ${path}: AgentGym's protocol cannot carry tau2, a world of tools; OpenEnv's is at /openenv/tau2`,
      },
    });
  });
});
