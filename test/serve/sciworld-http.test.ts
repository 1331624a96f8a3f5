/**
 * The recorded exchanges with AgentGym's SciWorld server, sent again to ours: status, type, fields, mistakes, tasks. What
 * the house contains is that of version 1.2.3, which does not repeat itself, and is left out.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterAll, expect, it } from 'vitest';
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
const file = join(golden, 'sciworld', 'http.jsonl.gz');
if (!existsSync(file)) console.log(`skipped: no ${file}`);

let server: EnvServer | undefined;
afterAll(() => server?.close());

/** Fields with their kinds; the values of those that are not the house's. */
function shape(response: unknown): unknown {
  if (typeof response === 'string') return response.startsWith('This is environment') ? response : 'text';
  if (typeof response !== 'object' || response === null) return response;
  const value = response as Record<string, unknown>;
  if ('error' in value || 'detail' in value || '_text' in value || 'id' in value || 'goals' in value) return value;
  const kept = new Set([
    'task_name',
    'var_num',
    'task_description',
    'done',
    'deleted',
    'reward',
    'score',
    'possible_actions',
  ]);
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key,
      kept.has(key) ? inner : Array.isArray(inner) ? 'list' : typeof inner,
    ]),
  );
}

it.skipIf(!existsSync(file))('AgentGym’s sciworld server is answered alike', { timeout: 300_000 }, async () => {
  server = await startEnvServer(['sciworld']);
  const lines = gunzipSync(readFileSync(file)).toString().trim().split('\n');
  const exchanges = lines.map((line) => JSON.parse(line) as Exchange);
  expect(exchanges.length).toBeGreaterThan(0);
  for (const [n, exchange] of exchanges.entries()) {
    const { method, path, body, status, content_type, response } = exchange;
    const raw = (body as { _raw?: string } | null)?._raw ?? (body === null ? undefined : JSON.stringify(body));
    const answer = await fetch(server.url + path, {
      method,
      ...(raw === undefined ? {} : { body: raw, headers: { 'content-type': 'application/json' } }),
    });
    const text = await answer.text();
    const type = answer.headers.get('content-type');
    const got = {
      status: answer.status,
      content_type: type,
      response: shape(type?.includes('json') ? JSON.parse(text) : { _text: text }),
    };
    expect(got, `exchange ${n}: ${method} ${path} ${JSON.stringify(body)}`).toEqual({
      status,
      content_type,
      response: shape(response),
    });
  }
});
