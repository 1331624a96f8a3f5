/**
 * One measurement of a language model, in a process of its own so that its memory is its own:
 *
 *     node dist/experiments/bench/llm-worker.js <model folder> <inputs|none|int8|int4> <what> <seconds>
 *
 * Prints one line of JSON: tokens of a run, [wall, processor] milliseconds of each, memory, and the milliseconds from the
 * start to the first result.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isMainThread, Worker } from 'node:worker_threads';
import type { Engine, Program } from '../../src/compute/engine/engine.ts';
import { openEngine } from '../../src/compute/engine/open.ts';
import { compileAdamW, compileGradients } from '../../src/compute/model/compile.ts';
import { ALL_PROJECTIONS, type ModelConfig } from '../../src/compute/model/config.ts';
import { defaultAdamW } from '../../src/compute/model/optimizer.ts';
import { drawParameters, parameterSpecs } from '../../src/compute/model/parameters.ts';
import { decodeGraph, prefillGraph } from '../../src/compute/model/programs.ts';
import { openModel } from '../../src/policy/pretrained/folder.ts';
import { freezeAs, type Quantize } from '../../src/policy/pretrained/quantize.ts';
import { readWeight } from '../../src/policy/pretrained/shards.ts';
import { decodeBatch, type Feeds, promptBatch, trainBatch } from './tensor-feeds.ts';

/** Result of one measurement. */
export interface LlmMeasurement {
  readonly tokens: number;
  readonly times: readonly (readonly [wall: number, cpu: number])[];
  /** 10^9 bytes resident at the most, and 10^6 by which what is resident grew after the second run. */
  readonly peak: number;
  readonly grownMb: number;
  readonly firstMs: number;
  /** Processor milliseconds of it, the process's own start included. */
  readonly firstCpuMs: number;
}

/** Memory of a whole process, whose threads each have a session of their own over one base. */
export interface ThreadsMeasurement {
  /** 10^9 bytes; a page that two sessions map counts once. */
  readonly held: number;
}

/** Programs that are measured: collected, they would not be counted. */
const held: unknown[] = [];

const LORA = { rank: 16, alpha: 32, targets: ALL_PROJECTIONS };

/** @param what `load`, `prefill:<tokens>`, `decode:<batch>`, the same with `:unpacked`, `lora:<batch>x<tokens>` or the same with `:lean` */
async function measure(
  folder: string,
  base: Quantize | 'inputs',
  what: string,
  seconds: number,
): Promise<LlmMeasurement> {
  const start = performance.now();
  const model = openModel(folder, 8192);
  const config = base === 'inputs' ? model.config : freezeAs(model, base, join(folder, 'quantised'));
  const [kind, size = '', how] = what.split(':') as [string, string | undefined, string | undefined];
  const engine = await openEngine({ name: 'onnxruntime-node', threads: 1, packing: how !== 'unpacked' });
  const weights: Feeds =
    base === 'inputs' ? feedTensors(model.config, (name) => readWeight(model.shards.weights.get(name)!)) : {};
  let tokens: number;
  let feeds: Feeds;
  let program: Pick<Program, 'run'>;
  if (kind === 'load') {
    tokens = 17;
    program = await engine.compile(decodeGraph(config));
    feeds = decodeBatch(config, 1, 8, 8);
  } else if (kind === 'prefill') {
    tokens = Number(size);
    program = await engine.compile(prefillGraph(config));
    feeds = promptBatch(config, 1, tokens);
  } else if (kind === 'decode') {
    tokens = Number(size);
    program = await engine.compile(decodeGraph(config));
    feeds = decodeBatch(config, tokens, 64, 64);
  } else {
    const [batch, length] = size.split('x').map(Number) as [number, number];
    tokens = batch * length;
    const adapted = { ...config, adapter: LORA };
    const lean = how === 'lean' && base !== 'inputs';
    program = await trainingStep(engine, adapted, lean ? { chunks: Math.ceil(tokens / 256), recompute: true } : {});
    const drawn = drawParameters(parameterSpecs(adapted), 1);
    feeds = { ...trainBatch(config, batch, length), ...feedTensors(adapted, (name) => drawn[name]!, ['', 'm/', 'v/']) };
  }
  held.push(program);
  const times: [number, number][] = [];
  const step = async () => {
    const [wall, cpu] = [performance.now(), process.cpuUsage()];
    const out = await program.run({ ...weights, ...feeds });
    const used = process.cpuUsage(cpu);
    times.push([performance.now() - wall, (used.user + used.system) / 1000]);
    for (const tensor of Object.values(out)) tensor.dispose();
  };
  await step();
  const firstMs = performance.now() - start;
  const { user, system } = process.cpuUsage();
  const firstCpuMs = (user + system) / 1000;
  await step();
  const second = process.memoryUsage.rss();
  times.length = 0;
  const began = performance.now();
  while (performance.now() - began < seconds * 1000 || times.length < 2) await step();
  const grownMb = (process.memoryUsage.rss() - second) / 1e6;
  return { tokens, times, peak: process.resourceUsage().maxRSS / 1e6, grownMb, firstMs, firstCpuMs };
}

/** Step as the learner makes it: gradients, and AdamW over them. */
async function trainingStep(
  engine: Engine,
  config: ModelConfig,
  decoding: { readonly chunks?: number; readonly recompute?: boolean },
): Promise<Pick<Program, 'run'>> {
  const options = { decoder: 'tokens', objective: 'likelihood', masked: false, ...decoding } as const;
  const gradients = await compileGradients(engine, config, options);
  const optimizer = await compileAdamW(engine, config, defaultAdamW);
  return {
    async run(feeds) {
      const slopes = await gradients.run(feeds);
      return { ...slopes, ...(await optimizer.run({ ...feeds, ...slopes })) };
    },
  };
}

/** Memory of this process while `threads` of it decode, each in a session of its own. */
async function measureThreads(folder: string, base: string, threads: number, how = ''): Promise<ThreadsMeasurement> {
  const argv = [folder, base, `decode:1${how}`, '3'];
  const all = Array.from({ length: threads }, async () => {
    const worker = new Worker(fileURLToPath(import.meta.url), { argv, stdout: true });
    await new Promise((resolve) => worker.stdout.once('data', resolve)); // it has measured, and still holds its session
    return worker;
  });
  const workers = await Promise.all(all);
  const pss = /^Pss:\s+(\d+)/m.exec(readFileSync('/proc/self/smaps_rollup', 'utf8'));
  await Promise.all(workers.map((worker) => worker.terminate()));
  return { held: (Number(pss![1]) * 1024) / 1e9 };
}

/** Feeds of parameters under their names, and of zeros under each further prefix. */
function feedTensors(
  config: ModelConfig,
  numbersOf: (name: string) => Float32Array,
  prefixes: readonly string[] = [''],
): Feeds {
  const feeds: Feeds = {};
  for (const { name, shape } of parameterSpecs(config)) {
    for (const prefix of prefixes) {
      const data = prefix === '' ? numbersOf(name) : new Float32Array(shape.reduce((a, b) => a * b, 1));
      feeds[`${prefix}${name}`] = { dtype: 'f32', shape, data };
    }
  }
  return feeds;
}

const [folder, base, what, seconds] = process.argv.slice(2);
const threads = /^threads:(\d+)(:unpacked)?$/.exec(what!);
const found = threads
  ? await measureThreads(folder!, base!, Number(threads[1]), threads[2])
  : await measure(folder!, base as Quantize, what!, Number(seconds));
console.log(JSON.stringify(found));
if (!isMainThread) setInterval(() => {}, 2 ** 30); // ends with its process
