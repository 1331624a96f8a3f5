/**
 * Calls per second of the agents' gateway with a policy that answers at once, beside a bare Hono app that reads the same
 * bodies and answers as many bytes, in turn in the same run by the same generator. Each client is an agent of its own: its
 * conversation grows by a call and a result each turn, for ten turns.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Figure } from './contract.ts';
import { rolloutFigures } from './gateway-rollout.ts';
import { type Client, load } from './http-load.ts';
import { median } from './median.ts';

const TURNS = 10;
const CLIENTS = [1, 4, 32] as const;
const WARM_SECONDS = 1.5;
/** Calls a second that are asked of two cores. */
const BAR = 3000;

const RESULT = 'A passage of a document, as a search returns it. '.repeat(10);
const TOOLS = ['search', 'read', 'answer'].map((name) => ({
  type: 'function',
  function: {
    name,
    description: `Tool that ${name}s, in a sentence or two that say what it takes and what it gives back.`,
    parameters: { type: 'object', properties: { query: { type: 'string' } }, required: ['query'] },
  },
}));

interface Server {
  readonly episodes: readonly { readonly url: URL; readonly key: string }[];
  readonly process: ChildProcess;
}

/** Measures the gateway beside the bare app. */
export async function bench({ seconds = 0.5, rounds = 9 } = {}): Promise<readonly Figure[]> {
  const [empty, gateway] = [await start(['echo']), await start([])];
  const run = (server: Server, clients: number) =>
    load(server.episodes[0]!.url.origin, server.episodes.slice(0, clients).map(agent), { seconds });
  try {
    for (const server of [empty, gateway]) {
      await load(server.episodes[0]!.url.origin, server.episodes.map(agent), { seconds: WARM_SECONDS });
    }
    const figures: Figure[] = [];
    for (const clients of CLIENTS) {
      const pairs: { readonly ours: number; readonly limit: number; readonly p50: number; readonly p99: number }[] = [];
      for (let round = 0; round < rounds; round++) {
        const limit = (await run(empty, clients)).requestsPerSecond;
        const { requestsPerSecond: ours, p50, p99 } = await run(gateway, clients);
        pairs.push({ ours, limit, p50, p99 });
      }
      const of = (pick: (pair: (typeof pairs)[number]) => number) => median(pairs.map(pick));
      figures.push({
        name: `gateway, ${clients} agent${clients === 1 ? '' : 's'}`,
        value: of(({ ours }) => ours),
        unit: 'calls/s',
        reference: {
          name: 'a bare Hono app',
          value: of(({ limit }) => limit),
          ratio: of(({ ours, limit }) => ours / limit),
        },
        note: `bar ${BAR}/s; p50 ${of(({ p50 }) => p50).toFixed(2)} ms, p99 ${of(({ p99 }) => p99).toFixed(2)} ms; ${TURNS} turns of a growing conversation`,
      });
    }
    figures.push(...(await rolloutFigures()));
    return figures;
  } finally {
    empty.process.kill('SIGKILL');
    gateway.process.kill('SIGKILL');
  }
}

/** Agent that plays conversation after conversation. */
function agent({ url, key }: Server['episodes'][number]): Client {
  const path = `${url.pathname}/chat/completions`;
  const headers = `authorization: Bearer ${key}\r\n`;
  let question = 0;
  let messages: object[] = [];
  return (lastBody) => {
    const id = /"id":"(call_\d+_0)"/.exec(lastBody)?.[1];
    if (id && messages.length < 2 * TURNS) {
      const call = { id, type: 'function', function: { name: 'search', arguments: '{"query":"gold"}' } };
      messages.push({ role: 'assistant', content: null, tool_calls: [call] });
      messages.push({ role: 'tool', tool_call_id: id, content: RESULT });
    } else
      messages = [
        { role: 'system', content: 'Answer by the tools.' },
        { role: 'user', content: `Question ${question++}` },
      ];
    return { path, headers, body: JSON.stringify({ model: 'policy', messages, tools: TOOLS }) };
  };
}

async function start(args: readonly string[]): Promise<Server> {
  const path = fileURLToPath(new URL('gateway-at-once.js', import.meta.url));
  const child = spawn(process.execPath, [path, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const episodes: { url: URL; key: string }[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    const [url, key] = line.split(' ');
    episodes.push({ url: new URL(url!), key: key! });
    if (episodes.length === Math.max(...CLIENTS)) return { episodes, process: child };
  }
  throw new Error('the server of the bench ended before it listened');
}
