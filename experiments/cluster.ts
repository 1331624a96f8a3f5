/**
 * Question    Does a run whose groups are played by other processes learn as one process does?
 * Command     npm run experiment -- cluster             (--seeds 3, --updates 600, --workers 2 by default)
 * Does        Trains experiments/quickstart.yaml to the same number of updates twice for each seed: in one process, and by a learner that
 *             plays nothing itself with two workers and a NATS server (nats-server on the PATH), all on this machine. Both play the
 *             test tasks afterwards. A pair that is done is kept in experiments/results/cluster-learning.json.
 * Prints      Success over all test tasks at horizon 24 of both, and the paired difference with its range over seeds.
 * Expected    A difference within ± 5 points.
 * Wall-clock  Some five minutes a run on two cores, ten a seed.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { connectNats } from '../src/cluster/nats/connect.ts';
import { columns } from '../src/learning/evaluation/table.ts';
import type { TrainOutcome } from '../src/run/train.ts';
import { packageRoot } from '../src/runtime/module-url.ts';
import { startNatsServer } from './nats-server.ts';
import { resultFiles } from './results.ts';

export interface ClusterStudy {
  readonly seeds: number;
  readonly updates: number;
  readonly workers: number;
}

/** Success over all test tasks, in [0, 1], of one seed. */
export interface Pair {
  readonly seed: number;
  readonly updates: number;
  readonly workers: number;
  readonly one: number;
  readonly cluster: number;
}

const main = fileURLToPath(new URL('dist/src/cli/main.js', packageRoot));
const quickstart = fileURLToPath(new URL('experiments/quickstart.yaml', packageRoot));
/** Evaluation that is compared. */
const COMPARED = /h24 sampled$/;

/** Runs the pairs that are missing, and prints all. */
export async function cluster({ seeds, updates, workers }: ClusterStudy): Promise<void> {
  const { json } = resultFiles('cluster-learning');
  const kept = existsSync(json) ? (JSON.parse(readFileSync(json, 'utf8')) as Pair[]) : [];
  const isOf = (one: Pair) => one.updates === updates && one.workers === workers;
  for (let seed = 1; seed <= seeds; seed++) {
    if (kept.some((one) => one.seed === seed && isOf(one))) continue;
    kept.push(await trainPair({ seed, updates, workers }));
    writeFileSync(json, `${JSON.stringify(kept, null, 2)}\n`);
  }
  const pairs = kept.filter((one) => isOf(one) && one.seed <= seeds);
  const percent = (share: number) => (100 * share).toFixed(1);
  const differences = pairs.map((one) => one.cluster - one.one);
  const mean = differences.reduce((sum, one) => sum + one, 0) / differences.length;
  const rows = pairs.map((one) => [
    String(one.seed),
    percent(one.one),
    percent(one.cluster),
    percent(one.cluster - one.one),
  ]);
  const table = columns([['seed', 'one process %', `learner + ${workers} workers %`, 'difference'], ...rows]);
  const range = `${percent(Math.min(...differences))} to ${percent(Math.max(...differences))}`;
  process.stdout.write(
    `${table.join('\n')}\nafter ${updates} updates: difference ${percent(mean)} points, ${range} over ${pairs.length} seeds\n`,
  );
}

/** Trains one seed both ways, in a folder of its own. */
export async function trainPair(of: Pick<Pair, 'seed' | 'updates' | 'workers'>): Promise<Pair> {
  const { seed, updates, workers } = of;
  const folder = mkdtempSync(join(tmpdir(), 'longplay-cluster-'));
  const server = await startNatsServer(join(folder, 'store'));
  try {
    const flags = ['--runs', folder, '--set', `seed=${seed}`, '--set', `stop={updates: ${updates}}`];
    const one = await measureSuccess(folder, 'one', flags, undefined, 0);
    return { ...of, one, cluster: await measureSuccess(folder, 'many', flags, server.url, workers) };
  } finally {
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measureSuccess(
  folder: string,
  name: string,
  flags: readonly string[],
  url: string | undefined,
  workers: number,
) {
  const cluster = url === undefined ? [] : ['--cluster', url];
  const learner = start('train', quickstart, '--name', name, ...flags, ...cluster);
  const played: Promise<void>[] = [];
  if (url !== undefined) {
    while (!(await isAnnounced(url, name))) await Promise.race([sleep(200), learner]);
    for (let n = 0; n < workers; n++) played.push(start('worker', url, '--run', name));
  }
  await Promise.all([learner, ...played]);
  const { evaluations } = JSON.parse(readFileSync(join(folder, name, 'results.json'), 'utf8')) as TrainOutcome;
  const found = evaluations.find((one) => COMPARED.test(one.name));
  if (!found) throw new Error(`no evaluation ${COMPARED} among ${evaluations.map((one) => one.name).join(', ')}`);
  return found.all.success.value;
}

async function isAnnounced(url: string, run: string): Promise<boolean> {
  const broker = await connectNats({ url, run });
  try {
    return (await broker.weights.readAnnouncement().catch(() => undefined)) !== undefined;
  } finally {
    await broker.close();
  }
}

/** Command of longplay; resolves at its orderly end. */
function start(...args: readonly string[]): Promise<void> {
  const child: ChildProcess = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
  let stderr = '';
  child.stderr!.on('data', (text) => {
    stderr = `${stderr}${text}`.slice(-4000);
  });
  const ended = new Promise<void>((resolve, reject) => {
    child.once('exit', (code) => (code === 0 ? resolve() : reject(new Error(`longplay ${args[0]}: ${stderr}`))));
  });
  ended.catch(() => {}); // reported where it is awaited
  return ended;
}
