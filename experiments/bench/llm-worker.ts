/**
 * One measurement of a language model, in a process of its own so that its memory is its own:
 *
 *     node dist/experiments/bench/llm-worker.js <model folder> <inputs|none|int8|int4> <what> <seconds>
 *
 * Prints one line of JSON: tokens of a run, [wall, processor] milliseconds of each, peak resident memory, and the
 * milliseconds from the start to the first result.
 */
import { join } from 'node:path';
import { openEngine } from '../../src/engine/open.ts';
import { ALL_PROJECTIONS, type ModelConfig } from '../../src/model/config.ts';
import { defaultAdamW } from '../../src/model/optimizer.ts';
import { drawParameters, parameterSpecs } from '../../src/model/parameters.ts';
import { decodeGraph, prefillGraph, trainGraph } from '../../src/model/programs.ts';
import { openModel } from '../../src/pretrained/folder.ts';
import { frozenAs, type Quantize } from '../../src/pretrained/quantize.ts';
import { readWeight } from '../../src/pretrained/shards.ts';
import { decodeBatch, type Feeds, promptBatch, trainBatch } from './tensor-feeds.ts';

/** Result of one measurement. */
export interface LlmMeasurement {
  readonly tokens: number;
  readonly times: readonly (readonly [wall: number, cpu: number])[];
  /** 10^9 bytes. */
  readonly peak: number;
  readonly firstMs: number;
  /** Processor milliseconds of it, the process's own start included. */
  readonly firstCpuMs: number;
}

const LORA = { rank: 16, alpha: 32, targets: ALL_PROJECTIONS };

/** @param what `load`, `prefill:<tokens>`, `decode:<batch>`, `lora:<batch>x<tokens>` or `lora:<batch>x<tokens>:lean` */
async function measure(
  folder: string,
  base: Quantize | 'inputs',
  what: string,
  seconds: number,
): Promise<LlmMeasurement> {
  const start = performance.now();
  const model = openModel(folder, 8192);
  const config = base === 'inputs' ? model.config : frozenAs(model, base, join(folder, 'quantised'));
  const engine = await openEngine({ name: 'onnxruntime-node', threads: 1 });
  const [kind, size = '', how] = what.split(':') as [string, string | undefined, string | undefined];
  const weights: Feeds =
    base === 'inputs' ? fed(model.config, (name) => readWeight(model.shards.weights.get(name)!)) : {};
  let tokens: number;
  let feeds: Feeds;
  let graph: ReturnType<typeof prefillGraph>;
  if (kind === 'load') {
    tokens = 17;
    graph = decodeGraph(config);
    feeds = decodeBatch(config, 1, 8, 8);
  } else if (kind === 'prefill') {
    tokens = Number(size);
    graph = prefillGraph(config);
    feeds = promptBatch(config, 1, tokens);
  } else if (kind === 'decode') {
    tokens = Number(size);
    graph = decodeGraph(config);
    feeds = decodeBatch(config, tokens, 64, 64);
  } else {
    const [batch, length] = size.split('x').map(Number) as [number, number];
    tokens = batch * length;
    const adapted = { ...config, adapter: LORA };
    const lean = how === 'lean' && base !== 'inputs';
    const decoding = lean ? { chunks: Math.ceil(tokens / 256), recompute: true, masked: false } : { masked: false };
    graph = trainGraph(adapted, { decoder: 'tokens', objective: 'likelihood', adamW: defaultAdamW, ...decoding });
    const drawn = drawParameters(parameterSpecs(adapted), 1);
    feeds = { ...trainBatch(config, batch, length), ...fed(adapted, (name) => drawn[name]!, ['', 'm/', 'v/']) };
  }
  const program = await engine.compile(graph);
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
  times.length = 0;
  const began = performance.now();
  while (performance.now() - began < seconds * 1000 || times.length < 2) await step();
  return { tokens, times, peak: process.resourceUsage().maxRSS / 1e6, firstMs, firstCpuMs };
}

/** Feeds of parameters under their names, and of zeros under each further prefix. */
function fed(
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
console.log(JSON.stringify(await measure(folder!, base as Quantize, what!, Number(seconds))));
