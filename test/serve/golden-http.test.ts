/** The recorded exchanges with AgentGym's servers, sent again to ours: status, type and body. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, describe, expect, it } from 'vitest';
import { registry } from '../../envs/registry.ts';
import { TREE } from '../../envs/textcraft/recipes.ts';
import { waysTo } from '../../envs/textcraft/start.ts';
import { readOpening } from '../../envs/textcraft/text.ts';
import { startEnvServer } from '../../src/run/serve-worlds.ts';
import type { EnvServer } from '../../src/serve/env-server.ts';

interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
  readonly status: number;
  readonly content_type: string;
  readonly response: unknown;
}

const golden = process.env.LONGPLAY_GOLDEN ?? join(import.meta.dirname, '../../../shared/golden');
const servers: EnvServer[] = [];
afterAll(async () => {
  for (const server of servers) await server.close();
});

async function send(url: string, { method, path, body }: Exchange) {
  const raw = (body as { _raw?: string } | null)?._raw ?? (body === null ? undefined : JSON.stringify(body));
  const response = await fetch(url + path, {
    method,
    ...(raw === undefined ? {} : { body: raw, headers: { 'content-type': 'application/json' } }),
  });
  const text = await response.text();
  const type = response.headers.get('content-type');
  return {
    status: response.status,
    content_type: type,
    response: type?.includes('json') ? JSON.parse(text) : { _text: text },
  };
}

/** Takes out the recipes listed beside the needed ones: there, Python's hash order chooses them. */
function withoutDistractors(value: unknown): unknown {
  if (typeof value === 'string' && value.startsWith('Crafting commands:')) {
    const { goal, commands } = readOpening(value);
    const needed = new Set(waysTo(TREE, goal).map(({ command }) => command));
    return { goal, needed: commands.filter((command) => needed.has(command)).sort(), all: needed.size };
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withoutDistractors(inner)]));
}

describe.each(['textcraft', 'babyai'])('AgentGym’s %s server', (env) => {
  const file = join(golden, env, 'http.jsonl.gz');
  const why = !existsSync(file) ? `no ${file}` : !(env in registry) ? `no world ${env}` : undefined;
  if (why) console.log(`skipped: ${why}`);

  it.skipIf(why !== undefined)('is answered alike', async () => {
    const server = await startEnvServer([env]);
    servers.push(server);
    const lines = gunzipSync(readFileSync(file)).toString().trimEnd().split('\n');
    const exchanges = lines.map((line) => JSON.parse(line) as Exchange);
    expect(exchanges.length).toBeGreaterThan(50);
    for (const [i, exchange] of exchanges.entries()) {
      const { status, content_type, response } = exchange;
      const answer = await send(server.url, exchange);
      const where = `${i + 1}: ${exchange.method} ${exchange.path} ${JSON.stringify(exchange.body)}`;
      expect(withoutDistractors(answer), where).toEqual(withoutDistractors({ status, content_type, response }));
    }
  });
});
