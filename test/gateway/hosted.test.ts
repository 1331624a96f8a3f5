/** Agents on a hosted model: a rollout passes their calls on, with tools, and takes the model's replies. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { readAgentReply } from '../../src/core/agent-call.ts';
import { rollout } from '../../src/run/rollout.ts';
import { TraceStore } from '../../src/storage/trace-store.ts';
import { startChatServer } from '../support/chat-server.ts';

const module = fileURLToPath(new URL('../fixtures/agents/textcraft-agent.mjs', import.meta.url));

it('plays an agent on a model behind a server', { timeout: 60_000 }, async () => {
  const server = await startChatServer(({ tools }) => {
    const [tool] = tools as { function: { parameters: { properties: { action: { enum: string[] } } } } }[];
    const [action] = tool!.function.parameters.properties.action.enum;
    const call = { id: 'x', type: 'function', function: { name: 'act', arguments: JSON.stringify({ action }) } };
    return { message: { role: 'assistant', content: null, tool_calls: [call] }, finish: 'tool_calls' };
  });
  const dir = mkdtempSync(join(tmpdir(), 'longplay-hosted-'));
  try {
    const run = rollout({
      config: { agent: module, policy: { kind: 'openai', openai: { baseUrl: server.url } } },
      episodes: 3,
      horizon: 3,
      temperature: 0.5,
      dir: join(dir, 'run'),
    });
    const { finished } = await run.done;
    expect(finished).toBe(3);
    const store = TraceStore.open(join(dir, 'run'));
    const episodes = store.episodes.map(({ at }) => store.read(at));
    expect(episodes.map(({ end, turns }) => [end, turns.length])).toEqual(Array(3).fill(['truncated', 3]));
    for (const { turns } of episodes) {
      for (const { action } of turns) expect(readAgentReply(action).calls.map(({ name }) => name)).toEqual(['act']);
    }
    expect(server.bodies).toHaveLength(9);
    const [first, ...rest] = server.bodies;
    expect(first).toMatchObject({ tool_choice: 'required', temperature: 0.5, messages: [{ role: 'user' }] });
    // The server's own replies come back in the history, with results under their calls' ids.
    const longest = rest.map(({ messages }) => messages as { role: string }[]).sort((a, b) => b.length - a.length)[0]!;
    expect(longest.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant', 'tool']);
  } finally {
    await server.close();
    rmSync(dir, { recursive: true, force: true });
  }
});
