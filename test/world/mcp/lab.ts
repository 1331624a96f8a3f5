/** Means to play MCP worlds in tests. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type AgentReply, NO_USAGE, printAgentReply, readAgentCall } from '../../../src/core/agent-call.ts';
import type { EnvOptions, Session } from '../../../src/core/env.ts';
import { MCP } from '../../../src/core/tool-world.ts';
import { connect } from '../../../src/world/mcp/mcp-world.ts';
import { openWorld } from '../../../src/world/open-world.ts';

export const fixtures = join(import.meta.dirname, '../../fixtures/mcp');

/** Options of the switches, played on a process of the server with these faults. */
export function switches(more: EnvOptions = {}, faults: readonly string[] = []): EnvOptions {
  return {
    command: [process.execPath, join(fixtures, 'server.mjs'), ...faults],
    tasks: ['red', 'green', 'blue'].map((color) => {
      const split = color === 'blue' ? 'test' : 'train';
      return { prompt: `Press the ${color} switch.`, expect: color, split };
    }),
    verify: { tool: 'state' },
    ...more,
  };
}

/** Opens a world. `dispose` ends its servers. */
export async function openMcp(options: EnvOptions) {
  const query = new URLSearchParams({ [MCP]: JSON.stringify(options) });
  return openWorld(await connect(query), MCP, options, '/test');
}

/** Action of a reply with these calls; without any, of the final answer. */
export function act(calls: readonly (readonly [name: string, args: unknown])[], content = ''): string {
  const written = calls.map(([name, args]) => ({
    name,
    arguments: typeof args === 'string' ? args : JSON.stringify(args),
  }));
  const reply: AgentReply = { content, calls: written, finish: calls.length > 0 ? 'calls' : 'stop', usage: NO_USAGE };
  return printAgentReply(reply);
}

/** Takes one call. @returns its result, with `error: ` before one that failed */
export async function callTool(session: Session, name: string, args: unknown = {}): Promise<string> {
  const step = await session.step(act([[name, args]]));
  const [message] = readAgentCall(step.observation).messages;
  return `${message?.role === 'tool' && message.isError ? 'error: ' : ''}${message?.content}`;
}

/** Ids of processes that run with a text in their command line. */
export function findProcesses(text: string): readonly number[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) return [];
    try {
      const isZombie = /^State:\s+Z/m.test(readFileSync(`/proc/${name}/status`, 'utf8'));
      return !isZombie && readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(text) ? [Number(name)] : [];
    } catch {
      return [];
    }
  });
}
