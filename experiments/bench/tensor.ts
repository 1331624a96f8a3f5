/**
 * The tensor program against PyTorch on the same cores: training, decoding and forward passes of the report's model,
 * the share of the machine's matmul limit that each reaches, and a model of Qwen2.5-0.5B's shape.
 *
 * `--threads 2 --python <path> --rounds 5 --seconds 2 --engine onnxruntime-node --device cpu --no-qwen`
 */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import type { Engine, EngineDevice, EngineName } from '../../src/engine/engine.ts';
import { openEngine } from '../../src/engine/open.ts';
import type { ModelConfig } from '../../src/model/config.ts';
import { defaultAdamW } from '../../src/model/optimizer.ts';
import { initialParams } from '../../src/model/parameters.ts';
import { decodeGraph, forwardGraph, trainGraph } from '../../src/model/programs.ts';
import { defineGraph } from '../../src/tensor/graph.ts';
import { input, matmul } from '../../src/tensor/ops.ts';
import { decodeBatch, type Feeds, momentFeeds, promptBatch, trainBatch, weightFeeds } from './tensor-feeds.ts';
import { qwenBench } from './tensor-qwen.ts';
import { Torch } from './tensor-torch.ts';

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
      objective: 'likelihood',
      adamW: { ...defaultAdamW, weightDecay: 0.01 },
    });
    const program = await engine.compile(graph);
    let state: Feeds = { ...weights, ...momentFeeds(MODEL) };
    const batchFeeds = trainBatch(MODEL, batch, TOKENS);
    return async () => {
      const out = await program.run({ ...batchFeeds, ...state });
      const next: Feeds = {};
      for (const name of Object.keys(state)) next[name] = out[/^[mv]\//.test(name) ? name : `w/${name}`]!;
      state = next;
    };
  }
  const program = await engine.compile(what === 'forward' ? forwardGraph(MODEL) : decodeGraph(MODEL));
  const feeds = what === 'forward' ? promptBatch(MODEL, batch, TOKENS) : decodeBatch(MODEL, batch, PAST / 2, PAST / 2);
  return async () => {
    await program.run({ ...weights, ...feeds });
  };
}

async function timed(run: () => Promise<void>, seconds: number): Promise<number[]> {
  const times: number[] = [];
  const start = performance.now();
  while (performance.now() - start < seconds * 1000 || times.length < 3) {
    const at = performance.now();
    await run();
    times.push(performance.now() - at);
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
  const times = await timed(async () => {
    await program.run(feeds);
  }, seconds);
  await program.dispose();
  return (2 * n ** 3) / Math.min(...times) / 1e6;
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!;
}

export interface Row extends Workload {
  /** Milliseconds of one run, medians. */
  readonly ms: number;
  readonly torchMs: number | undefined;
  /** Median over the rounds of PyTorch's time by ours. */
  readonly ratio: number | undefined;
}

/** Runs the benchmark and prints it; the last line is `ratio train=… decode=… forward=…`. */
export async function tensorBench(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    allowNegative: true,
    options: {
      threads: { type: 'string', default: String(availableParallelism()) },
      python: { type: 'string' },
      rounds: { type: 'string', default: '5' },
      seconds: { type: 'string', default: '1' },
      engine: { type: 'string', default: 'onnxruntime-node' },
      device: { type: 'string', default: 'cpu' },
      qwen: { type: 'boolean', default: true },
      json: { type: 'boolean', default: false },
    },
  });
  const threads = Number(values.threads);
  const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];
  const options = {
    name: values.engine as EngineName | 'auto',
    device: values.device as EngineDevice,
    threads,
    spinning: true, // the engine is alone in the process, and PyTorch's threads spin too
  };
  const engine = await openEngine(options);
  const pythons = [values.python, process.env.PYTHON_TORCH, 'python3', '/usr/bin/python3'].filter(
    (p) => p !== undefined,
  );
  const torch = await Torch.start(pythons, threads, { ...MODEL, tokens: TOKENS });
  console.log(`${engine.name} ${engine.device}, ${threads} threads; PyTorch ${torch?.version ?? 'not measured'}`);

  const runs = await Promise.all(workloads().map(async (load) => ({ load, run: await prepare(engine, load) })));
  const ours = runs.map((): number[] => []);
  const theirs = runs.map((): number[] => []);
  let limit = 0;
  for (let round = 0; round < rounds; round++) {
    limit = Math.max(limit, await matmulLimit(engine, seconds / 2));
    for (const [i, { load, run }] of runs.entries()) {
      if (round === 0) await run();
      ours[i]!.push(median(await timed(run, seconds)));
      if (torch) theirs[i]!.push(median(await torch.measure(load.what, load.batch, seconds)));
    }
  }
  torch?.stop();
  await engine.dispose();

  const rows = runs.map(({ load }, i): Row => {
    const ratios = theirs[i]!.map((ms, round) => ms / ours[i]![round]!);
    const ms = median(ours[i]!);
    return { ...load, ms, torchMs: torch && median(theirs[i]!), ratio: torch && median(ratios) };
  });
  if (values.json) console.log(JSON.stringify({ limit, rows }));
  else print(rows, limit);
  if (values.qwen) await qwenBench(options);
  const ratio = (what: string, batch: number) =>
    rows.find((row) => row.what === what && row.batch === batch)!.ratio?.toFixed(2) ?? 'not measured';
  console.log(`ratio train=${ratio('train', 16)} decode=${ratio('decode', 64)} forward=${ratio('forward', 64)}`);
}

function print(rows: readonly Row[], limit: number): void {
  console.log(`matmul limit ${limit.toFixed(0)} GFLOP/s (1024³, best run)\n`);
  console.log('| workload | tokens/s | of the limit | PyTorch tokens/s | ratio |\n|---|---|---|---|---|');
  const rate = (tokens: number, ms: number | undefined) =>
    ms === undefined ? 'not measured' : `${((tokens / ms) * 1).toFixed(1)}k`;
  for (const { what, batch, tokens, flop, ms, torchMs, ratio } of rows) {
    const shape = what === 'decode' ? `${batch}, KV ${PAST}` : `${batch}×${TOKENS}`;
    const share = ((100 * flop) / ms / 1e6 / limit).toFixed(0);
    const cells = [`${what} ${shape}`, rate(tokens, ms), `${share}%`, rate(tokens, torchMs), ratio?.toFixed(2) ?? '–'];
    console.log(`| ${cells.join(' | ')} |`);
  }
  console.log('');
}

if (process.argv[1]?.endsWith('bench/tensor.js')) await tensorBench(process.argv.slice(2));
