/**
 * Requests per second and latency of the environment server with 1, 4 and 32 keep-alive clients, each playing its own
 * episodes over AgentGym's protocol, beside an empty `node:http` server with one thread hop, measured in turn in the
 * same run by the same generator; and the CPU time that the remote policy costs its client.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { loadRunConfig } from '../../src/config/load.ts';
import { Rng, seedFrom } from '../../src/core/rng.ts';
import type { Task } from '../../src/core/task.ts';
import type { RemoteUsage } from '../../src/policy/remote/usage.ts';
import { findWorld } from '../../src/run/find-world.ts';
import { playRollout } from '../../src/run/rollout.ts';
import { createRunFolder } from '../../src/run/run-folder.ts';
import type { Figure } from './contract.ts';
import { type Client, type LoadResult, load } from './http-load.ts';
import { median } from './median.ts';

/**
 * AgentGym's own servers (FastAPI) on the same machine, requests per second. Measured with Python `requests` and
 * keep-alive, which by itself tops out near 1500/s.
 */
const ORIGINAL_REQUESTS_PER_SECOND = { textcraft: 1538, babyai: 470 } as const;

/** Shares of the empty server's rate that are enough: the usual Python client itself tops out at 1,500 requests a second. */
const BARS = { textcraft: 0.5, babyai: 0.4 } as const;

const CLIENTS = [1, 4, 32] as const;
const WARM_SECONDS = 1.5;
/** Actions of an episode before the next reset. */
const STEPS = 20;

/** Row of the table: one world, one number of clients. */
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
}

/** Measures the environment server beside an empty one. */
export async function servers({ seconds = 0.5, rounds = 15 } = {}): Promise<readonly ServerRow[]> {
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
        });
      }
    } finally {
      limit.process.kill('SIGKILL');
      server.process.kill('SIGKILL');
    }
  }
  return rows;
}

/** Cost of the remote policy: processor milliseconds of the client a turn. */
export interface RemotePolicyCost {
  readonly concurrency: number;
  readonly turns: number;
  /** Milliseconds of CPU time of the whole client process (env hosts, traces, everything) per turn; median. */
  readonly cpuMsPerTurn: number;
  readonly turnsPerSecond: number;
}

/**
 * Cost to its client of a turn of a rollout with the remote policy: a server in a process of its own answers every chat
 * completion at once, and the CPU time of this process is divided by the turns. Needs a folder for the runs.
 */
async function remotePolicyCost(
  dir: string,
  { rounds = 3, episodes = 300, concurrency = 64 } = {},
): Promise<RemotePolicyCost> {
  const server = await start(['chat-answers.js']);
  try {
    const costs: { readonly cpu: number; readonly rate: number; readonly turns: number }[] = [];
    for (let round = -1; round < rounds; round++) {
      const raw = { env: { id: 'textcraft' }, horizon: { type: 'fixed', rounds: 20 }, stop: { updates: 1 } };
      const config = loadRunConfig(JSON.stringify(raw), 'bench', [
        'policy.kind=openai',
        `policy.openai.baseUrl=${server.url}/v1`,
        `policy.openai.concurrency=${concurrency}`,
        `rollout.concurrentGroups=${concurrency}`,
      ]);
      const run = join(dir, `round${round}`);
      createRunFolder(run, config);
      const plan = { format: 1, episodes, split: 'test', horizon: 20, temperature: 1, seed: round + 2 } as const;
      const cpu = process.cpuUsage();
      const began = performance.now();
      const { usage } = await playRollout({ dir: run, config, plan }, { onNotice: () => {} });
      const { user, system } = process.cpuUsage(cpu);
      const turns = (usage as RemoteUsage).requests;
      const rate = (1000 * turns) / (performance.now() - began);
      if (round >= 0) costs.push({ cpu: (user + system) / 1000 / turns, rate, turns }); // the first one warms up
    }
    return {
      concurrency,
      turns: costs[0]!.turns,
      cpuMsPerTurn: median(costs.map(({ cpu }) => cpu)),
      turnsPerSecond: Math.round(median(costs.map(({ rate }) => rate))),
    };
  } finally {
    server.process.kill('SIGKILL');
  }
}

interface Script {
  readonly index: number;
  readonly actions: readonly string[];
}

/** Episodes of random listed actions, until the world ends them. */
async function scriptsOf(id: string): Promise<readonly Script[]> {
  const { env } = await findWorld(id, { fidelity: 'original' });
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

/** The bench `servers`: every row and the cost of the remote policy, each beside what limits it. */
export async function bench(): Promise<readonly Figure[]> {
  const dir = mkdtempSync(join(tmpdir(), 'longplay-bench-'));
  const remote = await remotePolicyCost(dir).finally(() => rmSync(dir, { recursive: true, force: true }));
  const rows = await servers();
  return [
    ...rows.map(({ env, clients, requestsPerSecond, limit, ratio, p50, p99, original }) => ({
      name: `${env} server, ${clients} keep-alive client${clients === 1 ? '' : 's'}`,
      value: requestsPerSecond,
      unit: 'requests/s',
      reference: { name: 'an empty server with one thread hop', value: limit, ratio },
      note: `bar ${BARS[env]}x; p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms; original ${original}/s (Python requests, keep-alive)`,
    })),
    {
      name: `remote policy, ${remote.concurrency} turns in flight`,
      value: remote.cpuMsPerTurn,
      unit: 'ms of client CPU per turn',
      note: `${remote.turnsPerSecond} turns/s, server included`,
    },
  ];
}
