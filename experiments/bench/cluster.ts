/**
 * A cluster on one machine: what the seam costs (learner, one worker and a NATS server as three processes against one process on the
 * same cores, in turn), what the broker carries, how soon new weights decide, and whether more workers do what the
 * simulation predicts.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { stringify } from 'yaml';
import type { Broker } from '../../src/cluster/broker.ts';
import { clusterIdentity, encodeAnnouncement } from '../../src/cluster/identity.ts';
import { connectNats } from '../../src/cluster/nats/connect.ts';
import { encodeTicket } from '../../src/cluster/result.ts';
import { loadRunConfig } from '../../src/config/load.ts';
import type { RunConfig } from '../../src/config/run-config.ts';
import type { GroupTicket } from '../../src/core/ticket.ts';
import { digestOf, encodeWeights } from '../../src/learning/learner/weights-file.ts';
import type { MetricsRow } from '../../src/metrics/metric-table.ts';
import { setUpLocalPolicy } from '../../src/policy/setup.ts';
import { worldUrl } from '../../src/run/find-world.ts';
import { localUrl, packageRoot } from '../../src/runtime/module-url.ts';
import { loadWorld } from '../../src/world/open-world.ts';
import { type StartedServer, startNatsServer } from '../nats-server.ts';
import { simulateCluster } from './cluster-law.ts';
import type { BenchFlags } from './contract.ts';
import { median } from './median.ts';

const main = fileURLToPath(new URL('dist/src/cli/main.js', packageRoot));
/** Seconds of a run after its second update that are left out: processes start, programs are compiled. */
const WARM_SECONDS = 10;

/** Bench `cluster`. `--seconds` measured of each run (30), `--rounds` of pairs (5), `--parts` of it (all), `--horizon` of its episodes (8). */
export async function clusterBench({ seconds = 30, rounds = 5, horizon = 8, json, parts }: BenchFlags): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'longplay-bench-'));
  const print = (line: string) => void process.stdout.write(json ? '' : `  ${line}\n`);
  const lab = await Lab.open(folder, seconds, horizon);
  const found: Record<string, unknown> = {};
  const measures: Record<string, () => Promise<unknown>> = {
    broker: () => measureBroker(lab, rounds, print),
    calls: () => measureCalls(lab, print),
    weights: () => measureWeights(lab, print),
    seam: () => measureSeam(lab, rounds, print),
    scaling: () => measureScaling(lab, print),
    churn: () => measureChurn(lab, print),
  };
  try {
    for (const [name, measure] of Object.entries(measures)) {
      if (!parts || parts.includes(name)) found[name] = await measure();
    }
    if (json) process.stdout.write(`${JSON.stringify(found)}\n`);
  } finally {
    await lab.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measureBroker(lab: Lab, rounds: number, print: (line: string) => void) {
  const broker = await brokerRate(lab, rounds);
  print(`broker: ${broker.toFixed(0)} groups/s of 20 KB (bar 1,000)`);
  return broker;
}

async function measureWeights(lab: Lab, print: (line: string) => void) {
  const weights = await weightsToDecision(lab);
  print(
    `announcement to the result of a one-turn episode under new weights: p50 ${weights.p50.toFixed(0)} ms, p95 ${weights.p95.toFixed(0)} ms (bar for the decision: 100 ms), weights ${(weights.bytes / 1e6).toFixed(2)} MB`,
  );
  return weights;
}

/** Rates of a run, and processor seconds of its processes. */
interface Rates {
  readonly steps: number;
  readonly updates: number;
  /** Processor seconds per update of the learner's process, and per group of all workers. */
  readonly updateSeconds: number;
  readonly groupSeconds: number;
  /** Processor milliseconds per env step of the learner's process, of all workers and of the server. */
  readonly stepMs: { readonly learner: number; readonly workers: number; readonly server: number };
}

class Lab {
  readonly folder: string;
  readonly seconds: number;
  readonly horizon: number;
  readonly url: string;
  readonly #server: StartedServer;
  #runs = 0;

  private constructor(folder: string, seconds: number, horizon: number, server: StartedServer) {
    this.folder = folder;
    this.seconds = seconds;
    this.horizon = horizon;
    this.url = server.url;
    this.#server = server;
  }

  /** @throws {UserError} where there is no server */
  static async open(folder: string, seconds: number, horizon: number): Promise<Lab> {
    return new Lab(folder, seconds, horizon, await startNatsServer(join(folder, 'store')));
  }

  close(): Promise<void> {
    return this.#server.close();
  }

  /** Processor seconds of the server. */
  get serverSeconds(): number {
    return processorSeconds(this.#server.pid);
  }

  /** The quickstart's policy and groups, steady: one horizon, uniform tasks. */
  config(...more: string[]): RunConfig {
    const text = readFileSync(new URL('experiments/quickstart.yaml', packageRoot), 'utf8');
    return loadRunConfig(text, 'quickstart.yaml', [
      ...['trace.everyGroups=0', 'tasks.sampling={type: uniform}', `horizon={type: fixed, rounds: ${this.horizon}}`],
      'stop={minutes: 60}',
      'evaluation={split: train, tasks: [0], episodesPerTask: 1, horizons: [4], greedy: false, randomBaseline: false}',
      ...more,
    ]);
  }

  /** Trains for the lab's time. @param workers none: in one process @param churn true to replace a worker now and then */
  async train(workers: number, slots?: number, churn = false): Promise<Rates> {
    const name = `run${this.#runs++}`;
    const file = join(this.folder, `${name}.yaml`);
    writeFileSync(file, stringify(this.config()));
    const cluster = workers > 0 ? ['--cluster', this.url] : [];
    const learner = start('train', file, '--name', name, '--runs', this.folder, '--json', ...cluster);
    const played: Played[] = [];
    if (workers > 0) {
      while (!(await this.#isAnnounced(name))) await sleep(200);
      const flags = slots === undefined ? [] : ['--slots', String(slots)];
      for (let n = 0; n < workers; n++) played.push(start('worker', this.url, '--run', name, ...flags));
    }
    while (rowsOf(this.folder, name).length < 2 && learner.child.exitCode === null) await sleep(200);
    await sleep(WARM_SECONDS * 1000);
    const first = await this.#nextRow(name, learner);
    const before = this.#processorSeconds(learner, played);
    if (churn) {
      for (let at = 0; at < this.seconds; at += CHURN_SECONDS) {
        await sleep(CHURN_SECONDS * 1000);
        played.push(start('worker', this.url, '--run', name));
        played.shift()!.child.kill('SIGTERM');
      }
    } else await sleep(this.seconds * 1000);
    const last = await this.#nextRow(name, learner);
    const after = this.#processorSeconds(learner, played);
    learner.child.kill('SIGTERM');
    await learner.ended;
    // One that came as the run was ending has found none.
    for (const one of played) await (churn ? one.ended.catch(() => {}) : one.ended);
    const seconds = last.elapsed! - first.elapsed!;
    const updates = last.update! - first.update!;
    const groups = updates * this.config().learner.groupsPerUpdate;
    const steps = last.envSteps! - first.envSteps!;
    const measureUsed = (of: keyof typeof after) => after[of] - before[of];
    return {
      steps: steps / seconds,
      updates: updates / seconds,
      updateSeconds: measureUsed('learner') / updates,
      groupSeconds: measureUsed('workers') / groups,
      stepMs: {
        learner: (1000 * measureUsed('learner')) / steps,
        workers: (1000 * measureUsed('workers')) / steps,
        server: workers === 0 ? 0 : (1000 * measureUsed('server')) / steps,
      },
    };
  }

  /** Row of the update that is made next: what is counted is whole updates. */
  async #nextRow(name: string, learner: Played): Promise<MetricsRow> {
    const before = rowsOf(this.folder, name).length;
    for (;;) {
      const rows = rowsOf(this.folder, name);
      if (rows.length > before) return rows.at(-1)!;
      if (learner.child.exitCode !== null) throw await learner.ended.then(() => new Error('the learner ended early'));
      await sleep(50);
    }
  }

  #processorSeconds(learner: Played, workers: readonly Played[]) {
    const of = ({ child }: Played) => processorSeconds(child.pid!);
    return {
      learner: of(learner),
      workers: workers.reduce((sum, one) => sum + of(one), 0),
      server: this.serverSeconds,
    };
  }

  async #isAnnounced(run: string): Promise<boolean> {
    const broker = await connectNats({ url: this.url, run });
    try {
      return (await broker.weights.readAnnouncement()) !== undefined;
    } catch {
      return false;
    } finally {
      await broker.close();
    }
  }
}

interface Played {
  readonly child: ChildProcess;
  readonly ended: Promise<unknown>;
}

function start(...args: readonly string[]): Played {
  const child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
  let stderr = '';
  child.stderr!.on('data', (text) => {
    stderr += text;
  });
  const ended = new Promise((resolve, reject) => {
    child.once('exit', (code) => (code === 0 ? resolve(code) : reject(new Error(`longplay ${args[0]}: ${stderr}`))));
  });
  ended.catch(() => {}); // reported where it is awaited
  return { child, ended };
}

function rowsOf(folder: string, name: string): MetricsRow[] {
  const path = join(folder, name, 'metrics.jsonl');
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => JSON.parse(line) as MetricsRow);
}

/** Processor seconds that a process has used, with all of its threads; Linux only, 0 elsewhere. */
function processorSeconds(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [utime, stime] = stat.slice(stat.lastIndexOf(')')).split(' ').slice(12, 14).map(Number);
    return (utime! + stime!) / 100;
  } catch {
    return 0;
  }
}

/** Groups of 20 KB through the broker, per second: stored, taken and removed, 64 under way. */
async function brokerRate({ url }: Lab, rounds: number): Promise<number> {
  const groups = 2000;
  const bytes = new Uint8Array(20_000);
  const rates: number[] = [];
  const [worker, learner] = await Promise.all([connectNats({ url, run: 'bench' }), connectNats({ url, run: 'bench' })]);
  await learner.prepare();
  for (let round = -1; round < rounds; round++) {
    const began = performance.now();
    let next = 0;
    const put = async () => {
      while (next < groups) await worker.results.put(`${round + 1}-${next++}`, bytes);
    };
    const take = async () => {
      for (let taken = 0; taken < groups; ) {
        const found = await learner.results.read(1000);
        taken += found.length;
        if (found.length > 0) await learner.results.removeUpTo(found.at(-1)!.position);
      }
    };
    await Promise.all([take(), ...Array.from({ length: 64 }, put)]);
    if (round >= 0) rates.push((1000 * groups) / (performance.now() - began));
  }
  await Promise.all([worker.close(), learner.close()]);
  return median(rates);
}

/**
 * Processor milliseconds of what a group and an update send to the broker: of this process, which is both ends of it, and of the server.
 */
async function measureCalls(lab: Lab, print: (line: string) => void) {
  const at = { url: lab.url, run: 'calls' };
  const [learner, worker] = await Promise.all([connectNats(at), connectNats(at)]);
  await learner.prepare();
  const [ticket, result, weights] = [new Uint8Array(150), new Uint8Array(5300), new Uint8Array(1_000_000)];
  let n = 0;
  const put = () => worker.results.put(String(n++), result);
  const take = async () => (await learner.results.read(1000)).at(-1)!.position;
  const ticketRound = async () => {
    await learner.tickets.put(String(n++), ticket);
    for (const one of await worker.tickets.fetch(1, 1000)) one.ack();
  };
  const weightsRound = async () => {
    const name = `w${n++}`;
    await learner.weights.put(name, weights);
    await worker.weights.get(name, weights.length);
    await learner.weights.remove(name);
  };
  const calls: readonly (readonly [string, number, () => Promise<unknown>])[] = [
    ['ticket put, fetched, done', 200, ticketRound],
    ['result put', 200, put],
    ['result put, taken', 200, () => put().then(take)],
    [
      'result put, taken, removed',
      200,
      () =>
        put()
          .then(take)
          .then((position) => learner.results.removeUpTo(position)),
    ],
    ['1 MB of weights put, read, removed', 40, weightsRound],
  ];
  const costs: Record<string, { readonly here: number; readonly server: number }> = {};
  for (const [name, times, call] of calls) {
    for (let warm = 0; warm < 10; warm++) await call();
    const [before, own] = [lab.serverSeconds, process.cpuUsage()];
    for (let i = 0; i < times; i++) await call();
    const { user, system } = process.cpuUsage(own);
    const cost = { here: (user + system) / 1000 / times, server: (1000 * (lab.serverSeconds - before)) / times };
    costs[name] = cost;
    print(`${name}: ${cost.here.toFixed(2)} ms of a core at its ends, ${cost.server.toFixed(2)} in the server`);
  }
  await Promise.all([learner.close(), worker.close()]);
  return costs;
}

/** Versions announced. */
const VERSIONS = 40;

/** Milliseconds from an announcement to the result of a one-turn episode whose ticket waited for it: more than to its decision. */
async function weightsToDecision(lab: Lab) {
  const run = 'weights';
  const config = lab.config();
  const world = await loadWorld(localUrl(worldUrl('textcraft')));
  const policy = setUpLocalPolicy<never, never>(config, world.view, undefined);
  const broker = await connectNats({ url: lab.url, run });
  await broker.prepare();
  const facts = {
    format: 1,
    identity: clusterIdentity(policy as never, config),
    config,
    life: 1,
    ended: false,
  } as const;
  let revision = 0;
  const announce = async (version: number): Promise<number> => {
    const [name, first] = Object.entries(policy.params.values)[0]!;
    const values = { ...policy.params.values, [name]: first.map((value, i) => (i === 0 ? version : value)) };
    const bytes = encodeWeights(policy.model, { version, values });
    await broker.weights.put(digestOf(bytes), bytes);
    const announcement = { ...facts, version, digest: digestOf(bytes), bytes: bytes.length };
    revision = await broker.weights.announce(encodeAnnouncement(announcement), revision);
    return bytes.length;
  };
  let bytes = await announce(0);
  const worker = start('worker', lab.url, '--run', run, '--slots', '2');
  const took: number[] = [];
  for (let version = 0; version <= VERSIONS; version++) {
    await broker.tickets.put(String(version), encodeTicket(ticketOf(version)));
    await sleep(version === 0 ? 0 : 150); // it is fetched, and waits
    const began = performance.now();
    if (version > 0) bytes = await announce(version);
    await resultOf(broker);
    if (version > 0) took.push(performance.now() - began);
  }
  worker.child.kill('SIGTERM');
  await worker.ended.catch(() => {});
  await broker.close();
  took.sort((a, b) => a - b);
  return { p50: median(took), p95: took[Math.ceil(0.95 * took.length) - 1]!, bytes };
}

function ticketOf(version: number): GroupTicket {
  const purpose = { name: 'train', temperature: 1, seed: version };
  return { group: version, task: { env: 'textcraft', index: 0, seed: 0 }, horizon: 1, size: 1, purpose, version };
}

async function resultOf(broker: Broker): Promise<void> {
  for (;;) {
    const [found] = await broker.results.read(1000);
    if (!found) continue;
    await broker.results.removeUpTo(found.position);
    return;
  }
}

/** One process and three, in turn. @returns medians of the ratios of pairs */
async function measureSeam(lab: Lab, rounds: number, print: (line: string) => void) {
  const steps: number[] = [];
  const updates: number[] = [];
  const cores: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const measure = { one: () => lab.train(0), three: () => lab.train(1) };
    const [first, second] = round % 2 === 0 ? (['one', 'three'] as const) : (['three', 'one'] as const);
    const found = { [first]: await measure[first](), [second]: await measure[second]() } as Record<
      'one' | 'three',
      Rates
    >;
    const { one, three } = found;
    const [oneMs, { learner, workers, server }] = [one.stepMs.learner, three.stepMs];
    const threeMs = learner + workers + server;
    print(
      `pair ${round + 1}: one process ${one.steps.toFixed(0)} steps/s, ${one.updates.toFixed(3)} updates/s, ${oneMs.toFixed(3)} ms of a core a step; three ${three.steps.toFixed(0)}, ${three.updates.toFixed(3)}, ${threeMs.toFixed(3)} ms (learner ${learner.toFixed(3)}, worker ${workers.toFixed(3)}, server ${server.toFixed(3)})`,
    );
    steps.push(three.steps / one.steps);
    updates.push(three.updates / one.updates);
    cores.push(oneMs / threeMs);
  }
  const seam = { steps: median(steps), updates: median(updates), cores: median(cores) };
  print(
    `learner + 1 worker + server against one process, median of ${rounds} pairs: env steps/s ${seam.steps.toFixed(3)}, updates/s ${seam.updates.toFixed(3)} (bar 0.90), processor time of a step, one over three, ${seam.cores.toFixed(3)}`,
  );
  return seam;
}

/** Seconds after which a worker leaves and another joins. */
const CHURN_SECONDS = 5;

/** Workers that come and go against those that stay. @returns ratio of updates per second */
async function measureChurn(lab: Lab, print: (line: string) => void): Promise<number> {
  const stays = await lab.train(2);
  const goes = await lab.train(2, undefined, true);
  const churn = goes.updates / stays.updates;
  print(
    `2 workers, one of which leaves every 5 s as another joins, against 2 that stay: ${churn.toFixed(3)} of the updates/s (bar 0.85)`,
  );
  return churn;
}

/** Spread that groups are simulated with. */
const SIGMA = 0.5;

/** One to four workers of one slot each, measured and simulated from what one costs. */
async function measureScaling(lab: Lab, print: (line: string) => void) {
  const { learner } = lab.config();
  const cores = availableParallelism();
  const rows: { readonly workers: number; readonly measured: number; readonly predicted: number }[] = [];
  let costs: Pick<Rates, 'updateSeconds' | 'groupSeconds'> | undefined;
  for (const workers of [1, 2, 3, 4]) {
    const found = await lab.train(workers, 1);
    costs ??= found;
    const { maxLag, groupsPerUpdate } = learner;
    const fixed = { cores, slots: 1, maxLag, groupsPerUpdate, sigma: SIGMA, updates: 300 };
    const predicted = simulateCluster({ ...fixed, ...costs, workers });
    rows.push({ workers, measured: found.updates, predicted });
    print(
      `${workers} workers of one slot: ${found.updates.toFixed(3)} updates/s, simulated ${predicted.toFixed(3)} (update ${costs.updateSeconds.toFixed(2)} s, group ${costs.groupSeconds.toFixed(3)} s of a core)`,
    );
  }
  return rows;
}
