/**
 * The tensor program against PyTorch on the same cores: training, decoding and forward passes of the report's model,
 * the share of the machine's matmul limit that each reaches, and a model of Qwen2.5-0.5B's shape.
 *
 * `--threads 2 --python <path> --rounds 5 --seconds 2 --engine onnxruntime-node --device cpu --no-qwen`
 */
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Engine, RunTensor } from '../../src/compute/engine/engine.ts';
import { openEngine } from '../../src/compute/engine/open.ts';
import type { ModelConfig } from '../../src/compute/model/config.ts';
import { forwardLogits, promptsPerRun } from '../../src/compute/model/forward.ts';
import { defaultAdamW } from '../../src/compute/model/optimizer.ts';
import { initialParams } from '../../src/compute/model/parameters.ts';
import { decodeGraph, forwardGraph, trainGraph } from '../../src/compute/model/programs.ts';
import { defineGraph } from '../../src/compute/tensor/graph.ts';
import { input, matmul } from '../../src/compute/tensor/ops.ts';
import type { BenchFlags } from './contract.ts';
import { median } from './median.ts';
import { decodeBatch, type Feeds, momentFeeds, promptBatch, trainBatch, weightFeeds } from './tensor-feeds.ts';
import { qwenBench } from './tensor-qwen.ts';
import { type Times, Torch } from './tensor-torch.ts';

/** The report's model with this project's block: 4 layers, d 128, 4 heads, SwiGLU 512, vocabulary 512. */
const MODEL: ModelConfig = {
  vocabSize: 512,
  hiddenSize: 128,
  layers: 4,
  heads: 4,
  kvHeads: 4,
  intermediateSize: 512,
  ropeTheta: 10000,
  rmsNormEps: 1e-6,
  qkvBias: false,
  tieEmbeddings: false,
  maxPositions: 256,
  prefixBidirectional: false,
  tokenShift: 0,
  focusBit: false,
  embeddingScale: 1,
  choiceHead: false,
  valueHead: false,
};
const TOKENS = 128;
const PAST = 64;
/** Threads of either side spin for up to 200 ms (KMP_BLOCKTIME) after their work and would slow the other side's. */
const SETTLE_MS = 250;

interface Workload {
  readonly what: 'train' | 'decode' | 'forward';
  readonly batch: number;
  /** Tokens of one run. */
  readonly tokens: number;
  /** Multiply-adds count two; only matrix products count. */
  readonly flop: number;
}

/** Products of one token's pass that attends to `seen` others on average. */
function flopPerToken({ hiddenSize: d, intermediateSize, layers, vocabSize }: ModelConfig, seen: number): number {
  return 2 * (layers * (4 * d * d + 3 * d * intermediateSize + 2 * d * seen) + d * vocabSize);
}

function workloads(): Workload[] {
  const full = (what: 'train' | 'forward', batch: number, passes: number): Workload => {
    const tokens = batch * TOKENS;
    return { what, batch, tokens, flop: passes * tokens * flopPerToken(MODEL, TOKENS) };
  };
  const decode = (batch: number): Workload => ({
    what: 'decode',
    batch,
    tokens: batch,
    flop: batch * flopPerToken(MODEL, PAST + 1),
  });
  return [full('train', 16, 3), full('forward', 8, 1), full('forward', 64, 1), ...[1, 16, 64, 256].map(decode)];
}

/** A workload ready to run on an engine; training feeds its weights and moments back. */
export async function prepare(engine: Engine, { what, batch }: Workload): Promise<() => Promise<void>> {
  const weights = weightFeeds(MODEL, initialParams(MODEL, 1));
  if (what === 'train') {
    const graph = trainGraph(MODEL, {
      decoder: 'tokens',
      masked: false,
      objective: 'likelihood',
      adamW: { ...defaultAdamW, weightDecay: 0.01 },
    });
    const program = await engine.compile(graph);
    let kept: RunTensor[] = [];
    let state: Feeds = { ...weights, ...momentFeeds(MODEL) };
    const batchFeeds = trainBatch(MODEL, batch, TOKENS);
    return async () => {
      const out = await program.run({ ...batchFeeds, ...state });
      const next: Record<string, RunTensor> = {};
      for (const name of Object.keys(state)) next[name] = out[/^[mv]\//.test(name) ? name : `w/${name}`]!;
      for (const old of kept) old.dispose(); // the next step writes into their buffers
      kept = Object.values(next);
      state = next;
    };
  }
  if (what === 'forward') {
    const forward = await engine.compile(forwardGraph(MODEL));
    const max = promptsPerRun(TOKENS);
    const runs = Array.from({ length: Math.ceil(batch / max) }, (_, i) =>
      promptBatch(MODEL, Math.min(max, batch - i * max), TOKENS),
    );
    return async () => {
      await forwardLogits(forward, weights, runs);
    };
  }
  const program = await engine.compile(decodeGraph(MODEL));
  const feeds = decodeBatch(MODEL, batch, PAST / 2, PAST / 2);
  return async () => {
    const out = await program.run({ ...weights, ...feeds });
    for (const tensor of Object.values(out)) tensor.dispose();
  };
}

async function measureMs(run: () => Promise<void>, seconds: number): Promise<Times> {
  const times: Times = [];
  const start = performance.now();
  while (performance.now() - start < seconds * 1000 || times.length < 3) {
    const [used, at] = [process.cpuUsage(), performance.now()];
    await run();
    const { user, system } = process.cpuUsage(used);
    times.push([performance.now() - at, (user + system) / 1000]);
  }
  return times;
}

/** Best rate of a 1024³ product, in GFLOP/s. */
async function matmulLimit(engine: Engine, seconds: number): Promise<number> {
  const n = 1024;
  const shape = [n, n];
  const program = await engine.compile(defineGraph({ y: matmul(input('a', shape), input('b', shape)) }));
  const data = Float32Array.from({ length: n * n }, (_, i) => Math.sin(i));
  const feeds: Feeds = { a: { dtype: 'f32', shape, data }, b: { dtype: 'f32', shape, data } };
  const times = await measureMs(async () => {
    (await program.run(feeds)).y!.dispose();
  }, seconds);
  await program.dispose();
  return gflops(times);
}

function gflops(times: Times): number {
  return (2 * 1024 ** 3) / Math.min(...times.map(([wall]) => wall)) / 1e6;
}

export interface Row extends Workload {
  /** Milliseconds of one run, medians over the rounds' medians. */
  readonly ms: number;
  readonly torchMs: number | undefined;
  /** PyTorch's time by ours: medians over the rounds, by the clock and in processor time. */
  readonly ratio: number | undefined;
  readonly cpuRatio: number | undefined;
}

/** One round's medians. */
interface Round {
  readonly wall: number;
  readonly cpu: number;
}

function roundOf(times: Times): Round {
  return { wall: median(times.map(([wall]) => wall)), cpu: median(times.map(([, cpu]) => cpu)) };
}

function rowOf(load: Workload, ours: readonly Round[], theirs: readonly Round[]): Row {
  const measured = theirs.length > 0;
  const ratio = (key: keyof Round) =>
    measured ? median(theirs.map((round, i) => round[key] / ours[i]![key])) : undefined;
  const ms = median(ours.map(({ wall }) => wall));
  const torchMs = measured ? median(theirs.map(({ wall }) => wall)) : undefined;
  return { ...load, ms, torchMs, ratio: ratio('wall'), cpuRatio: ratio('cpu') };
}

/** Runs the benchmark and prints it; the last line is `ratio train=… decode=… forward=…`. */
export async function tensorBench(flags: BenchFlags): Promise<void> {
  const { threads = availableParallelism(), rounds = 5, seconds = 1, python, json, qwen } = flags;
  const options = {
    name: flags.engine ?? 'onnxruntime-node',
    device: flags.device ?? 'cpu',
    threads,
    spinning: true, // the engine is alone in the process, and PyTorch's threads spin too
  };
  const engine = await openEngine(options);
  const pythons = [python, process.env.PYTHON_TORCH, 'python3', '/usr/bin/python3'].filter((p) => p !== undefined);
  const torch = await Torch.start(pythons, threads, { ...MODEL, tokens: TOKENS });
  if (!json) {
    console.log(`${engine.name} ${engine.device}, ${threads} threads; PyTorch ${torch?.version ?? 'not measured'}`);
  }

  const runs = await Promise.all(workloads().map(async (load) => ({ load, run: await prepare(engine, load) })));
  const ours = runs.map((): Round[] => []);
  const theirs = runs.map((): Round[] => []);
  let [limit, torchLimit] = [0, 0];
  for (let round = 0; round < rounds; round++) {
    limit = Math.max(limit, await matmulLimit(engine, seconds / 2));
    if (torch) torchLimit = Math.max(torchLimit, gflops(await torch.measure('matmul', 1024, seconds / 2)));
    for (const [i, { load, run }] of runs.entries()) {
      if (round === 0) await run();
      await sleep(SETTLE_MS);
      ours[i]!.push(roundOf(await measureMs(run, seconds)));
      await sleep(SETTLE_MS);
      if (torch) theirs[i]!.push(roundOf(await torch.measure(load.what, load.batch, seconds)));
    }
  }
  torch?.stop();
  await engine.dispose();

  const rows = runs.map(({ load }, i) => rowOf(load, ours[i]!, theirs[i]!));
  const ratio = (what: string, batch: number) => rows.find((row) => row.what === what && row.batch === batch)!.ratio;
  const ratios = { train: ratio('train', 16), decode: ratio('decode', 64), forward: ratio('forward', 64) };
  if (json) {
    console.log(
      JSON.stringify({ engine: engine.name, device: engine.device, threads, limit, torchLimit, rows, ratios }),
    );
    return;
  }
  print(rows, limit, torch && torchLimit);
  if (qwen) await qwenBench(options, limit);
  const shown = Object.entries(ratios).map(([what, value]) => `${what}=${value?.toFixed(2) ?? 'not measured'}`);
  console.log(`ratio ${shown.join(' ')}`);
}

function print(rows: readonly Row[], limit: number, torchLimit: number | undefined): void {
  const theirs = torchLimit === undefined ? '' : `; PyTorch's own ${torchLimit.toFixed(0)}`;
  console.log(`matmul limit ${limit.toFixed(0)} GFLOP/s (1024³, best run${theirs})\n`);
  console.log('| workload | tokens/s | of the limit | PyTorch tokens/s | ratio | in processor time |');
  console.log('|---|---|---|---|---|---|');
  const rate = (tokens: number, ms: number | undefined) =>
    ms === undefined ? 'not measured' : `${(tokens / ms).toFixed(1)}k`;
  for (const { what, batch, tokens, flop, ms, torchMs, ratio, cpuRatio } of rows) {
    const shape = what === 'decode' ? `${batch}, KV ${PAST}` : `${batch}×${TOKENS}`;
    const share = `${((100 * flop) / ms / 1e6 / limit).toFixed(0)}%`;
    const ratios = [ratio?.toFixed(2) ?? '–', cpuRatio?.toFixed(2) ?? '–'];
    console.log(`| ${[`${what} ${shape}`, rate(tokens, ms), share, rate(tokens, torchMs), ...ratios].join(' | ')} |`);
  }
  console.log('');
}
