/** A model of Qwen2.5-0.5B's shape with random weights: prefill, decoding and a LoRA step, and the memory they take. */
import type { EngineOptions, HostTensor, Program } from '../../src/compute/engine/engine.ts';
import { openEngine } from '../../src/compute/engine/open.ts';
import type { ModelConfig } from '../../src/compute/model/config.ts';
import { defaultAdamW } from '../../src/compute/model/optimizer.ts';
import { drawParameters, parameterSpecs } from '../../src/compute/model/parameters.ts';
import { decodeGraph, prefillGraph, trainGraph } from '../../src/compute/model/programs.ts';
import { decodeBatch, type Feeds, promptBatch, trainBatch } from './tensor-feeds.ts';

/** @see https://huggingface.co/Qwen/Qwen2.5-0.5B (config.json); positions cut to what is measured */
const QWEN: ModelConfig = {
  vocabSize: 151936,
  hiddenSize: 896,
  layers: 24,
  heads: 14,
  kvHeads: 2,
  intermediateSize: 4864,
  ropeTheta: 1e6,
  rmsNormEps: 1e-6,
  qkvBias: true,
  tieEmbeddings: true,
  maxPositions: 1024,
  prefixBidirectional: false,
  tokenShift: 0,
  focusBit: false,
  embeddingScale: 1,
  choiceHead: false,
  valueHead: false,
};
const LORA = { rank: 8, alpha: 16, targets: ['q_proj', 'v_proj'] };
const TOKENS = 128;

/** Small numbers without a generator's cost: half a billion of them are wanted. */
function weights(): Feeds {
  let state = 12345;
  return Object.fromEntries(
    parameterSpecs(QWEN).map(({ name, shape }): [string, HostTensor] => {
      const data = new Float32Array(shape.reduce((a, b) => a * b, 1));
      const std = shape.length === 1 ? 1 : 0.03;
      for (let i = 0; i < data.length; i++) {
        state = (Math.imul(state, 1664525) + 1013904223) | 0;
        data[i] = (state * std) / 2 ** 31;
      }
      return [name, { dtype: 'f32', shape, data }];
    }),
  );
}

/** Multiply-adds of one token's way through a layer, its keys and values alone, and the head; attention is left out. */
const KEYS_VALUES = (2 * QWEN.hiddenSize * QWEN.hiddenSize * QWEN.kvHeads) / QWEN.heads;
const LAYER = 2 * QWEN.hiddenSize ** 2 + KEYS_VALUES + 3 * QWEN.hiddenSize * QWEN.intermediateSize;
const HEAD = QWEN.hiddenSize * QWEN.vocabSize;
/** Per token, in multiply-adds: a prefill ends with the last layer's keys, LoRA adds the gradients of the inputs. */
const WORK = {
  prefill: (QWEN.layers - 1) * LAYER + KEYS_VALUES,
  decode: QWEN.layers * LAYER + HEAD,
  lora: 2 * (QWEN.layers * LAYER + HEAD),
};

interface Measured {
  readonly label: string;
  readonly tokens: number;
  /** Multiply-adds per token. */
  readonly work: number;
  /** The machine's matmul limit, GFLOP/s. */
  readonly limit: number;
}

async function report({ label, tokens, work, limit }: Measured, program: Program, feeds: Feeds): Promise<void> {
  const times: number[] = [];
  for (let run = 0; run < 4; run++) {
    const start = performance.now();
    const out = await program.run(feeds);
    if (run > 0) times.push(performance.now() - start);
    for (const tensor of Object.values(out)) tensor.dispose();
  }
  const ms = times.toSorted((a, b) => a - b)[times.length >> 1]!;
  const resident = (process.memoryUsage().rss / 1e9).toFixed(1);
  const share = `${((100 * 2 * work * tokens) / ms / 1e6 / limit).toFixed(0)}%`;
  console.log(`| ${label} | ${((1000 * tokens) / ms).toFixed(1)} | ${ms.toFixed(0)} | ${share} | ${resident} |`);
  await program.dispose();
}

/** Prints a table of rates, shares of the matmul `limit` (GFLOP/s) and resident memory; takes 8 GB and a minute. */
export async function qwenBench(options: EngineOptions, limit: number): Promise<void> {
  const engine = await openEngine(options);
  const base = weights();
  console.log('| Qwen2.5-0.5B shape, fp32 | tokens/s | ms | of the limit | resident GB |\n|---|---|---|---|---|');
  const prefill = await engine.compile(prefillGraph(QWEN));
  const prefilled = { label: `prefill 1×${TOKENS}`, tokens: TOKENS, work: WORK.prefill, limit };
  await report(prefilled, prefill, { ...base, ...promptBatch(QWEN, 1, TOKENS) });
  for (const batch of [1, 8]) {
    const feeds = decodeBatch(QWEN, batch, TOKENS / 2, TOKENS / 2);
    const decode = await engine.compile(decodeGraph(QWEN));
    const decoded = { label: `decode ${batch}, KV ${TOKENS}`, tokens: batch, work: WORK.decode, limit };
    await report(decoded, decode, { ...base, ...feeds });
  }
  const adapted = { ...QWEN, adapter: LORA };
  const specs = parameterSpecs(adapted);
  const state: Feeds = {};
  for (const [name, data] of Object.entries(drawParameters(specs, 1))) {
    const { shape } = specs.find((spec) => spec.name === name)!;
    state[name] = { dtype: 'f32', shape, data };
    for (const moment of ['m', 'v']) {
      state[`${moment}/${name}`] = { dtype: 'f32', shape, data: new Float32Array(data.length) };
    }
  }
  const graph = trainGraph(adapted, { decoder: 'tokens', masked: false, objective: 'likelihood', adamW: defaultAdamW });
  const step = await engine.compile(graph);
  const feeds = { ...base, ...trainBatch(QWEN, 1, TOKENS), ...state };
  const label = `LoRA step (rank ${LORA.rank} on q and v), 1×${TOKENS}`;
  await report({ label, tokens: TOKENS, work: WORK.lora, limit }, step, feeds);
  await engine.dispose();
  console.log('');
}
