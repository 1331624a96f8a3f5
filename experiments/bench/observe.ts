/**
 * Cost of seeing a run: rollout throughput with everything on (traces, metrics, TensorBoard, Prometheus
 * scraped once a second, the console on a terminal of 120 × 40) against everything off, in interleaved pairs; and how
 * fast, and in how much memory, the viewer opens a run of many episodes.
 *
 * On a machine that does other things the wall clock is noise: the CPU seconds per env step show the same more surely,
 * because observation adds work and no waiting.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { Subject } from 'rxjs';
import { checkRunConfig } from '../../src/config/load.ts';
import type { RunConfigInput } from '../../src/config/run-config.ts';
import { openConsole } from '../../src/console/console.ts';
import { TerminalWriter } from '../../src/console/terminal.ts';
import type { Trajectory } from '../../src/core/trajectory.ts';
import { groupFacts } from '../../src/metrics/group-facts.ts';
import type { MetricsRow } from '../../src/metrics/metric-table.ts';
import { openSinks } from '../../src/metrics/sinks/open.ts';
import { worldUrl } from '../../src/run/find-world.ts';
import { startRun } from '../../src/run/start-run.ts';
import { TraceFiles } from '../../src/storage/trace-files.ts';
import { queryEpisodes } from '../../src/viewer/query.ts';
import { RunSource } from '../../src/viewer/run-source.ts';
import type { Bench } from './contract.ts';
import { median } from './median.ts';

/** Options of the measurement. */
export interface ObserveOptions {
  /** Pairs of runs, one with everything on and one with everything off. */
  readonly pairs?: number;
  /** Length of each run. */
  readonly seconds?: number;
  /** Episodes of the run that the viewer opens. */
  readonly episodes?: number;
}

/** Result: what seeing costs a rollout, and what the viewer costs. */
export interface Observe {
  readonly training: Cost;
  /** The worst case: no policy to wait for, so that recording weighs most. */
  readonly randomPolicy: Cost;
  /** Microseconds per turn of what cannot be turned off: outcomes and signs of a collapse. */
  readonly alwaysOnMicrosPerTurn: number;
  readonly viewer: ViewerCost;
}

/** Medians over the pairs. */
export interface Cost {
  readonly stepsPerSecondOff: number;
  readonly stepsPerSecondOn: number;
  /** Share of throughput lost: median of each pair's ratio, minus one, and its quartiles. */
  readonly lost: number;
  readonly lostQuartiles: readonly [number, number];
  /** Share of CPU seconds per step added. */
  readonly cpuAdded: number;
}

/** Cost of the viewer: milliseconds to open a run, and memory. */
export interface ViewerCost {
  readonly episodes: number;
  readonly megabytes: number;
  /** Until the first page of the list is there; its CPU time is what an idle machine would need. */
  readonly openMs: number;
  readonly openCpuMs: number;
  /** A sort of all episodes with a filter, one page of it. */
  readonly queryMs: number;
  /** Heap that the open run keeps. */
  readonly heapMb: number;
}

/** Bench `observe`. */
export const bench: Bench = async () => {
  const { training, randomPolicy, alwaysOnMicrosPerTurn, viewer } = await observe();
  const share = 100;
  const figures = (name: string, cost: Cost, note: string) => [
    {
      name: `${name}, all seen`,
      value: cost.stepsPerSecondOn,
      unit: 'steps/s',
      reference: { name: 'nothing seen', value: cost.stepsPerSecondOff },
      note,
    },
    {
      name: `${name}, throughput lost`,
      value: share * cost.lost,
      unit: '%',
      note: `median of interleaved pairs; quartiles ${cost.lostQuartiles.map((q) => (share * q).toFixed(1)).join(' and ')} %`,
    },
    { name: `${name}, CPU time added`, value: share * cost.cpuAdded, unit: '%', note: 'per env step' },
  ];
  return [
    ...figures('training', training, 'traces, metrics, TensorBoard, Prometheus, console'),
    ...figures('random policy', randomPolicy, 'the worst case: nothing to wait for; traces keep to 2 % of the time'),
    { name: 'outcomes and signs of a collapse', value: alwaysOnMicrosPerTurn, unit: 'µs/turn', note: 'always on' },
    {
      name: `viewer opens ${viewer.episodes.toLocaleString('en')} episodes`,
      value: viewer.openMs,
      unit: 'ms',
      note: `${viewer.megabytes.toFixed(0)} MB of traces`,
    },
    { name: 'the same, CPU time', value: viewer.openCpuMs, unit: 'ms' },
    { name: 'viewer sorts and filters them', value: viewer.queryMs, unit: 'ms' },
    { name: 'viewer keeps', value: viewer.heapMb, unit: 'MB of heap' },
  ];
};

/** Measures what seeing a run costs. */
export async function observe({ pairs = 7, seconds = 4, episodes = 100_000 }: ObserveOptions = {}): Promise<Observe> {
  const dir = mkdtempSync(join(tmpdir(), 'longplay-observe-'));
  try {
    return {
      training: await cost(dir, 'local', pairs, seconds),
      randomPolicy: await cost(dir, 'random', pairs, seconds),
      alwaysOnMicrosPerTurn: alwaysOn(),
      viewer: await viewerCost(join(dir, 'big'), episodes),
    };
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

interface Measured {
  readonly stepsPerSecond: number;
  readonly cpuPerStep: number;
}

async function cost(dir: string, policy: 'local' | 'random', pairs: number, seconds: number): Promise<Cost> {
  await measure(dir, policy, true, Math.min(2, seconds)); // lets the compiler settle
  const on: Measured[] = [];
  const off: Measured[] = [];
  for (let pair = 0; pair < pairs; pair++) {
    // The order alternates, so that neither side always has the warmer machine.
    for (const observed of pair % 2 === 0 ? [false, true] : [true, false]) {
      (observed ? on : off).push(await measure(dir, policy, observed, seconds));
    }
  }
  const ratios = on.map((one, i) => off[i]!.stepsPerSecond / one.stepsPerSecond).sort((a, b) => a - b);
  const at = (share: number) => ratios[Math.round(share * (ratios.length - 1))]! - 1;
  return {
    stepsPerSecondOff: median(off.map(({ stepsPerSecond }) => stepsPerSecond)),
    stepsPerSecondOn: median(on.map(({ stepsPerSecond }) => stepsPerSecond)),
    lost: median(ratios) - 1,
    lostQuartiles: [at(0.25), at(0.75)],
    cpuAdded: median(on.map((one, i) => one.cpuPerStep / off[i]!.cpuPerStep)) - 1,
  };
}

let runs = 0;

async function measure(
  root: string,
  policy: 'local' | 'random',
  observed: boolean,
  seconds: number,
): Promise<Measured> {
  const dir = join(root, `run-${runs++}`);
  mkdirSync(dir);
  const input: RunConfigInput = {
    env: { id: 'textcraft' },
    tasks: { labels: ['depth 1', 'depth 2'] },
    horizon: { type: 'fixed', rounds: 8 },
    policy: { kind: policy },
    stop: { minutes: seconds / 60 },
    trace: { everyGroups: observed ? 1 : 0 },
    metrics: observed ? { tensorboard: true, prometheusPort: 0 } : { tensorboard: false },
  };
  const config = checkRunConfig(input, 'bench');
  const metrics$ = new Subject<MetricsRow>();
  const display = observed ? openConsole(metrics$, { ...screen(), json: false, config, name: 'bench' }) : undefined;
  let endpoint: string | undefined;
  const run = await startRun({
    config,
    dir,
    mode: 'async',
    envModule: worldUrl('textcraft'),
    learn: policy === 'local',
    metrics$,
    sinks: await openSinks(config, dir, (line) => {
      endpoint = /http:\S+/.exec(line)?.[0];
    }),
    ...(display ? { onProgress: (status) => display.progress(status) } : {}),
  });
  display?.watch(() => run.stats().actors);
  const scraping = setInterval(() => {
    // The run may end first.
    if (endpoint)
      fetch(endpoint)
        .then((answer) => answer.text())
        .catch(() => {});
  }, 1000);
  const cpu = process.cpuUsage();
  const start = performance.now();
  const { status } = await run.train();
  const elapsed = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  clearInterval(scraping);
  display?.close();
  await run.stop();
  rmSync(dir, { recursive: true, force: true });
  return { stepsPerSecond: status.envSteps / elapsed, cpuPerStep: (user + system) / status.envSteps };
}

/** A terminal that shows nothing, so that what is measured is ours. */
function screen() {
  const make = () => new Writable({ write: (_chunk, _encoding, done) => done() });
  const out = Object.assign(make(), { isTTY: true, columns: 120, rows: 40 });
  return { out: new TerminalWriter(out), notices: new TerminalWriter(make()) };
}

function alwaysOn(): number {
  const groups = Array.from({ length: 200 }, (_, g) => Array.from({ length: 8 }, (_, e) => trajectory(8 * g + e, g)));
  const turns = groups.flat().reduce((sum, one) => sum + one.turns.length, 0);
  const runs = Array.from({ length: 9 }, () => {
    const start = performance.now();
    for (const group of groups) groupFacts(group, 'depth 1');
    return ((performance.now() - start) * 1000) / turns;
  });
  return median(runs);
}

async function viewerCost(dir: string, episodes: number): Promise<ViewerCost> {
  const bytes = writeRun(dir, episodes);
  globalThis.gc?.();
  const before = process.memoryUsage().heapUsed;
  const cpu = process.cpuUsage();
  const start = performance.now();
  const source = new RunSource(dir, 0, async () => ({}));
  const first = queryEpisodes(source.rows, { offset: 0, limit: 50 });
  const openMs = performance.now() - start;
  const { user, system } = process.cpuUsage(cpu);
  const openCpuMs = (user + system) / 1000;
  if (first.total !== episodes) throw new Error(`expected ${episodes} episodes, the viewer found ${first.total}`);
  const again = performance.now();
  queryEpisodes(source.rows, { sort: 'return', descending: true, outcome: 'solved', offset: 500, limit: 50 });
  const queryMs = performance.now() - again;
  await source.episode(episodes - 1);
  globalThis.gc?.();
  const heapMb = (process.memoryUsage().heapUsed - before) / 1e6;
  return { episodes, megabytes: bytes / 1e6, openMs, openCpuMs, queryMs, heapMb };
}

/** @returns bytes of traces */
function writeRun(dir: string, episodes: number): number {
  mkdirSync(dir);
  writeFileSync(join(dir, 'config.yaml'), 'seed: 1\nenv: { id: textcraft }\n');
  const files = new TraceFiles({
    dir: join(dir, 'traces'),
    config: {},
    rotateBytes: 64 * 1024 * 1024,
    keepBytes: 1e12,
  });
  let bytes = 0;
  for (let group = 0; group * 8 < episodes; group++) {
    const members = Array.from({ length: Math.min(8, episodes - group * 8) }, (_, m) =>
      trajectory(group * 8 + m, group),
    );
    files.episodes(members, 'train', `depth ${1 + (group % 3)}`);
    bytes += 1200 * members.length;
  }
  files.close();
  const rows = Array.from(
    { length: 2000 },
    (_, i) => `${JSON.stringify({ update: i + 1, success: i / 2000, horizon: 8 })}\n`,
  );
  writeFileSync(join(dir, 'metrics.jsonl'), rows.join(''));
  return bytes;
}

/** Four turns of about the size that TextCraft's have. */
function trajectory(episode: number, group: number): Trajectory {
  const success = episode % 3 === 0;
  const actionTable = ['inventory', 'get 4 spruce log', 'craft 3 spruce wood using 4 spruce log'];
  return {
    episode,
    group,
    task: { env: 'textcraft', index: group % 500, seed: group },
    horizon: 8,
    attempt: 1,
    actionTable,
    turns: Array.from({ length: 4 }, (_, t) => ({
      observation: `Got ${t} spruce log`,
      actions: Int32Array.of(0, 1, 2),
      action: actionTable[(episode + t) % 3]!,
      decision: {
        kind: 'choice' as const,
        version: 3,
        context: Int32Array.of(36, 269, 989),
        value: 0,
        choice: 1,
        logprob: -0.5,
      },
      reward: success && t === 3 ? 1 : 0,
      actMs: 20.5,
      envMs: 0.01,
    })),
    finalObservation: 'Crafted 3 spruce wood',
    end: success ? 'terminated' : 'truncated',
    success,
  };
}
