/**
 * Requests per second and latency of the environment server with 1, 4 and 32 keep-alive clients, each playing its own
 * episodes over AgentGym's protocol, beside an empty `node:http` server with one thread hop, measured in turn in the
 * same run by the same generator; and the CPU time that the remote policy costs its client.
 *
 *     node dist/experiments/bench/servers.js [--json] [--seconds 0.7] [--rounds 7]
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { loadWorld } from '../../src/cli/world.ts';
import { Rng, seedFrom } from '../../src/core/rng.ts';
import type { Task } from '../../src/core/task.ts';
import { type Client, type LoadResult, load } from './http-load.ts';

/**
 * AgentGym's own servers (FastAPI) on the same machine, requests per second. Measured with Python `requests` and
 * keep-alive, which by itself tops out near 1500/s.
 */
export const ORIGINAL_REQUESTS_PER_SECOND = { textcraft: 1538, babyai: 470 } as const;

const CLIENTS = [1, 4, 32] as const;
const WARM_SECONDS = 1.5;
/** Actions of an episode before the next reset. */
const STEPS = 20;

export interface ServerRow {
  readonly env: 'textcraft' | 'babyai';
  readonly clients: number;
  /** Medians over the rounds. */
  readonly requestsPerSecond: number;
  readonly p50: number;
  readonly p99: number;
  /** The empty server beside it. */
  readonly limit: number;
  /** Median over the rounds of server / limit. */
  readonly ratio: number;
  readonly original: number;
  readonly errors: number;
}

export async function servers({ seconds = 0.7, rounds = 7 } = {}): Promise<readonly ServerRow[]> {
  const rows: ServerRow[] = [];
  for (const env of ['textcraft', 'babyai'] as const) {
    const scripts = await scriptsOf(env);
    const limit = await start(['http-hop.js']);
    const server = await start(['../../src/cli/main.js', 'serve-env', env, '--port', '0']);
    try {
      const players = (clients: number) => Array.from({ length: clients }, (_, i) => player(scripts, i));
      // Lets the compiler settle: a server is measured as it runs, not as it starts.
      for (const { url } of [limit, server]) await load(url, players(32), { seconds: WARM_SECONDS });
      for (const clients of CLIENTS) {
        const pairs: { readonly ours: LoadResult; readonly empty: LoadResult }[] = [];
        for (let round = 0; round < rounds; round++) {
          const empty = await load(limit.url, players(clients), { seconds });
          const ours = await load(server.url, players(clients), { seconds });
          pairs.push({ ours, empty });
        }
        rows.push({
          env,
          clients,
          requestsPerSecond: median(pairs.map(({ ours }) => ours.requestsPerSecond)),
          p50: median(pairs.map(({ ours }) => ours.p50)),
          p99: median(pairs.map(({ ours }) => ours.p99)),
          limit: median(pairs.map(({ empty }) => empty.requestsPerSecond)),
          ratio: median(pairs.map(({ ours, empty }) => ours.requestsPerSecond / empty.requestsPerSecond)),
          original: ORIGINAL_REQUESTS_PER_SECOND[env],
          errors: pairs.reduce((sum, { ours }) => sum + ours.errors, 0),
        });
      }
    } finally {
      limit.process.kill('SIGKILL');
      server.process.kill('SIGKILL');
    }
  }
  return rows;
}

interface Script {
  readonly index: number;
  readonly actions: readonly string[];
}

/** Episodes of random listed actions, until the world ends them. */
async function scriptsOf(id: string): Promise<readonly Script[]> {
  const { env } = await loadWorld(id, { fidelity: 'original' });
  return Promise.all(
    env.tasks.split('test').map(async (index) => {
      const task: Task = { env: id, index, seed: 0 };
      const session = await env.open(task);
      const rng = Rng.fromSeed(seedFrom('bench', index));
      const actions: string[] = [];
      while (actions.length < STEPS) {
        const action = rng.pick(session.actions());
        actions.push(action);
        if ((await session.step(action)).kind === 'terminated') break;
      }
      return { index, actions };
    }),
  );
}

/** One client: makes its environment, then plays script after script. */
function player(scripts: readonly Script[], first: number): Client {
  let id: unknown;
  let at = first;
  let turn = -1;
  return (lastBody) => {
    if (lastBody === '') return { path: '/create', body: '{}' };
    id ??= (JSON.parse(lastBody) as { id?: number }).id ?? 0;
    const { index, actions } = scripts[at % scripts.length]!;
    if (turn < 0) {
      turn = 0;
      return { path: '/reset', body: JSON.stringify({ id, data_idx: index }) };
    }
    const action = actions[turn++]!;
    if (turn === actions.length) {
      at++;
      turn = -1;
    }
    return { path: '/step', body: JSON.stringify({ id, action }) };
  };
}

/** Starts a program beside this one and waits for the address it prints. */
export async function start(
  args: readonly string[],
): Promise<{ readonly url: string; readonly process: ChildProcess }> {
  const [script, ...rest] = args;
  const path = fileURLToPath(new URL(script!, import.meta.url));
  const child = spawn(process.execPath, [path, ...rest], { stdio: ['ignore', 'pipe', 'inherit'] });
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /http:\/\/\S+/.exec(line)?.[0];
    if (url) return { url, process: child };
  }
  throw new Error(`${script} ended before it listened`);
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1]!;
}

export function serversTable(rows: readonly ServerRow[]): readonly string[] {
  const head = 'world      clients  requests/s     p50 ms   p99 ms   empty/s   ratio  original/s';
  return [
    head,
    ...rows.map((row) =>
      [
        row.env.padEnd(10),
        String(row.clients).padStart(7),
        String(row.requestsPerSecond).padStart(11),
        row.p50.toFixed(2).padStart(10),
        row.p99.toFixed(2).padStart(8),
        String(row.limit).padStart(9),
        row.ratio.toFixed(2).padStart(7),
        String(row.original).padStart(11),
      ].join(' '),
    ),
  ];
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const flag = (name: string, fallback: number) => {
    const at = process.argv.indexOf(name);
    return at < 0 ? fallback : Number(process.argv[at + 1]);
  };
  const rows = await servers({ seconds: flag('--seconds', 0.7), rounds: flag('--rounds', 7) });
  console.log(process.argv.includes('--json') ? JSON.stringify(rows) : serversTable(rows).join('\n'));
}
