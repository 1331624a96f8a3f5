/**
 * Numbers of Hugging Face's models and peft's adapters, computed by our programs: logits, greedy decoding, losses,
 * gradients and optimiser steps, on onnxruntime-node and on the float64 reference.
 *
 * Tolerances are the recordings': logits 1e-4, gradients 1e-4 of their norm, weights after n steps 2e-6 + 1e-3·lr·n where
 * their gradient is above 1e-4 of its norm.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import type { Engine, HostTensor, Program } from '../../src/compute/engine/engine.ts';
import { openEngine } from '../../src/compute/engine/open.ts';
import type { LoraConfig, ModelConfig } from '../../src/compute/model/config.ts';
import { parameterSpecs } from '../../src/compute/model/parameters.ts';
import {
  decodeGraph,
  forwardGraph,
  gradientGraph,
  logprobsGraph,
  prefillGraph,
  trainGraph,
} from '../../src/compute/model/programs.ts';
import type { Difference, ParityCounts } from '../../src/core/parity.ts';
import { readAdapter } from '../../src/policy/pretrained/adapter.ts';
import { freeze } from '../../src/policy/pretrained/base.ts';
import { openModel, type PretrainedModel } from '../../src/policy/pretrained/folder.ts';
import { mergeWeight, writeMerged } from '../../src/policy/pretrained/merge.ts';
import { readWeight } from '../../src/policy/pretrained/shards.ts';
import { decodeSafetensors } from '../../src/storage/safetensors.ts';
import { type Feeds, f32, promptsOf, scalarsOf, sequencesOf } from './llm-feeds.ts';
import { generateGreedily } from './llm-greedy.ts';

type Report = (difference: Difference) => void;

interface Samples {
  readonly norm: number;
  readonly at: readonly number[];
  readonly values: readonly number[];
}
interface RecordedStep {
  readonly loss: number;
  readonly grad_norm: number;
  readonly grads: Readonly<Record<string, Samples>>;
  readonly weights: Readonly<Record<string, Samples>>;
}
interface Recorded {
  readonly sequences: readonly {
    readonly ids: readonly number[];
    readonly logprobs: readonly number[];
    readonly loss?: number;
    readonly last_logits?: readonly number[];
  }[];
  readonly greedy?: readonly { readonly prompt: readonly number[]; readonly continuation: readonly number[] }[];
  readonly training: {
    readonly mask: readonly (readonly number[])[];
    readonly old_logprobs: readonly (readonly number[])[];
    readonly advantages: readonly number[];
    readonly clip_low: number;
    readonly clip_high: number;
    readonly adamw: {
      readonly lr: number;
      readonly beta1: number;
      readonly beta2: number;
      readonly eps: number;
      readonly weight_decay: number;
      readonly max_grad_norm: number;
    };
    readonly likelihood: readonly RecordedStep[];
    readonly clipped: readonly RecordedStep[];
  };
  readonly merged?: {
    readonly weights: Readonly<Record<string, Samples>>;
    readonly logprobs: readonly (readonly number[])[];
  };
}

const ENGINES = ['onnxruntime-node', 'reference'] as const;
const TOLERANCE = 1e-4;

/** A base model's recording. */
export async function replayModel(record: unknown, report: Report, folder: string): Promise<ParityCounts> {
  const model = openModel(folder);
  const specs = parameterSpecs(model.config);
  const weights = Object.fromEntries(
    specs.map(({ name, shape }) => [name, f32(shape, readWeight(model.shards.weights.get(name)!))]),
  );
  // Frozen in programs that only read; fed where every weight is trained.
  await onEachEngine(basename(folder), record as Recorded, report, folder, freeze(model), {}, model.config, weights);
  return { episodes: 1, steps: 0 };
}

/** An adapter's recording; its base lies in `models/` beside `adapters/`. */
export async function replayAdapter(record: unknown, report: Report, folder: string): Promise<ParityCounts> {
  const { base } = record as { readonly base: string };
  const model = openModel(join(folder, '../../models', basename(base)));
  const { lora, values } = readAdapter(folder, model.config);
  const config: ModelConfig = { ...freeze(model), adapter: lora };
  const weights = Object.fromEntries(
    parameterSpecs(config).map(({ name, shape }) => [name, f32(shape, values[name]!)]),
  );
  const recorded = record as Recorded;
  const name = basename(folder);
  for (const [weight, { norm, at, values: expected }] of Object.entries(recorded.merged!.weights)) {
    const got = mergeWeight(model, lora, values, weight);
    isNear(
      report,
      `${name}: merged`,
      weight,
      expected,
      at.map((i) => got[i]!),
      1e-4,
    );
    isNear(report, `${name}: merged`, `norm of ${weight}`, [norm], [normOf(got)], 1e-3);
  }
  await checkMerged(name, recorded, report, model, lora, values);
  await onEachEngine(name, recorded, report, folder, config, weights, config, weights);
  return { episodes: 1, steps: 0 };
}

/**
 * Log-probabilities under the merged weights, and of the folder that we write, read again as any model is. Where its
 * weights are rounded to 16 bits, single log-probabilities move by some hundredths; the mean may move by 0.02.
 */
async function checkMerged(
  name: string,
  { sequences, merged }: Recorded,
  report: Report,
  model: PretrainedModel,
  lora: LoraConfig,
  values: Readonly<Record<string, Float32Array>>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'longplay-merged-'));
  const engine = await openEngine({ name: 'onnxruntime-node', threads: 1 });
  try {
    writeMerged(model, lora, values, folder);
    const written = openModel(folder);
    const rounded = [...written.shards.weights.values()].some(({ source }) => source.dtype !== 'f32');
    const exact = await engine.compile(forwardGraph(model.config));
    const stored = await engine.compile(forwardGraph(freeze(written)));
    const weights = Object.fromEntries(
      parameterSpecs(model.config).map(({ name, shape }) => [name, f32(shape, mergeWeight(model, lora, values, name))]),
    );
    for (const [i, expected] of merged!.logprobs.entries()) {
      const { ids } = sequences[i]!;
      const logprobs = async (program: Program, feeds: Feeds) => {
        const logits = floats((await program.run({ ...feeds, ...promptsOf([ids]) })).logits);
        return ids.slice(1).map((id, t) => logprobOf(logits, t, model.config.vocabSize, id));
      };
      const at = `${name}: merged, sequence ${i}`;
      isNear(report, at, 'log-probabilities', expected, await logprobs(exact, weights), TOLERANCE);
      const own = await logprobs(stored, {});
      const mean = own.reduce((sum, x, t) => sum + Math.abs(x - expected[t]!), 0) / own.length;
      if (rounded) isNear(report, at, 'mean difference of the folder’s', [0], [mean], 0.02);
      else isNear(report, at, 'log-probabilities of the folder', expected, own, TOLERANCE);
    }
  } finally {
    await engine.dispose();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function onEachEngine(
  name: string,
  record: Recorded,
  report: Report,
  folder: string,
  reading: ModelConfig,
  readingWeights: Feeds,
  training: ModelConfig,
  weights: Feeds,
): Promise<void> {
  const logits = decodeSafetensors(readFileSync(join(folder, 'expected-logits.safetensors')));
  for (const engineName of ENGINES) {
    const engine = await openEngine({ name: engineName, threads: 1 });
    const where = `${name} on ${engineName}`;
    await checkForward(engine, record, report, where, reading, readingWeights, logits);
    await checkGreedy(engine, record, report, where, reading, readingWeights);
    for (const objective of ['likelihood', 'clipped'] as const) {
      await checkTraining(engine, record, report, where, training, weights, objective);
    }
    await engine.dispose();
  }
}

async function checkForward(
  engine: Engine,
  { sequences }: Recorded,
  report: Report,
  where: string,
  config: ModelConfig,
  weights: Feeds,
  expected: ReturnType<typeof decodeSafetensors>,
): Promise<void> {
  const forward = await engine.compile(forwardGraph(config));
  const scoring = await engine.compile(logprobsGraph(config, { decoder: 'tokens', masked: false }));
  for (const [i, { ids, logprobs, loss, last_logits }] of sequences.entries()) {
    const at = `${where}, sequence ${i}`;
    const out = await forward.run({ ...weights, ...promptsOf([ids]) });
    const got = floats(out.logits);
    const want = expected[`logits.${i}`];
    if (want) isNear(report, at, 'logits', want.data, got, TOLERANCE);
    if (last_logits)
      isNear(report, at, 'last logits', last_logits, got.subarray(got.length - config.vocabSize), TOLERANCE);
    const own = ids.slice(1).map((id, t) => logprobOf(got, t, config.vocabSize, id));
    isNear(report, at, 'log-probabilities', logprobs, own, TOLERANCE);
    if (loss !== undefined)
      isNear(report, at, 'loss', [loss], [-own.reduce((a, b) => a + b, 0) / own.length], TOLERANCE);
    if (ids.length < 3) continue;
    const { feeds, rows } = sequencesOf([ids]);
    const scored = floats((await scoring.run({ ...weights, ...feeds })).logprob);
    isNear(
      report,
      at,
      'log-probabilities as the learner scores them',
      rows.map(([, t]) => logprobs[t]!),
      scored,
      TOLERANCE,
    );
  }
  await forward.dispose();
  await scoring.dispose();
}

async function checkGreedy(
  engine: Engine,
  { greedy = [] }: Recorded,
  report: Report,
  where: string,
  config: ModelConfig,
  weights: Feeds,
): Promise<void> {
  if (greedy.length === 0) return;
  const programs: Program[] = [];
  for (const graph of [prefillGraph(config), decodeGraph(config)]) programs.push(await engine.compile(graph));
  const length = Math.max(...greedy.map(({ continuation }) => continuation.length));
  const prompts = greedy.map(({ prompt }) => prompt);
  const got = await generateGreedily(config, { prefill: programs[0]!, decode: programs[1]! }, weights, prompts, length);
  for (const [i, { continuation }] of greedy.entries()) {
    const own = got[i]!.slice(0, continuation.length);
    if (own.join() === continuation.join()) continue;
    report({ where: `${where}, prompt ${i}`, what: 'greedy decoding', expected: continuation, got: own });
  }
  for (const program of programs) await program.dispose();
}

async function checkTraining(
  engine: Engine,
  { sequences, training }: Recorded,
  report: Report,
  where: string,
  config: ModelConfig,
  start: Feeds,
  objective: 'likelihood' | 'clipped',
): Promise<void> {
  const { mask, old_logprobs, advantages, adamw } = training;
  const total = mask.flat().reduce((a, b) => a + b, 0);
  const { feeds } = sequencesOf(
    sequences.slice(0, mask.length).map(({ ids }) => ids),
    {
      weight: (g, t) => mask[g]![t]! / total,
      oldLogprob: (g, t) => old_logprobs[g]![t]!,
      referenceLogprob: (g, t) => old_logprobs[g]![t]!,
      advantage: (g) => advantages[g]!,
    },
  );
  const coefficients = {
    clipLow: training.clip_low,
    clipHigh: training.clip_high,
    ...{ entropyCoef: 0, valueCoef: 0, valueClip: 1, klCoef1: 0, klCoef2: 0, klCoef3: 0 },
  };
  const options = {
    decoder: 'tokens',
    masked: false,
    objective: objective === 'likelihood' ? 'likelihood' : 'policy',
    adamW: { beta1: adamw.beta1, beta2: adamw.beta2, epsilon: adamw.eps, weightDecay: adamw.weight_decay },
  } as const;
  const gradient = await engine.compile(gradientGraph(config, options));
  const step = await engine.compile(trainGraph(config, options));
  const specs = parameterSpecs(config);
  let state: Feeds = { ...start };
  // Where a gradient is rounding noise Adam divides noise by noise: such a weight is not compared, then or later.
  const noise = new Map<string, Set<number>>();
  for (const { name, shape } of specs) {
    const size = shape.reduce((a, b) => a * b, 1);
    for (const moment of ['m', 'v']) state[`${moment}/${name}`] = f32(shape, new Float32Array(size));
  }
  for (const [n, recorded] of training[objective].entries()) {
    const t = n + 1;
    const at = `${where}, ${objective} step ${t}`;
    const all: Feeds = { ...feeds, ...scalarsOf('loss', coefficients), ...state };
    const grads = await gradient.run(all);
    isNear(report, at, 'loss', [recorded.loss], [floats(grads.loss)[0]!], TOLERANCE);
    for (const [name, { norm, at: places, values }] of Object.entries(recorded.grads)) {
      const d = floats(grads[`d/${name}`]);
      isNear(
        report,
        at,
        `gradient of ${name}`,
        values,
        places.map((i) => d[i]!),
        TOLERANCE * norm + 1e-12,
      );
      isNear(report, at, `norm of the gradient of ${name}`, [norm], [normOf(d)], TOLERANCE * norm + 1e-12);
      const noisy = noise.get(name) ?? new Set();
      for (const [i, value] of d.entries()) if (Math.abs(value) < TOLERANCE * norm) noisy.add(i);
      noise.set(name, noisy);
    }
    const rates = {
      lr: adamw.lr,
      maxGradNorm: adamw.max_grad_norm,
      correction1: 1 - adamw.beta1 ** t,
      correction2: 1 - adamw.beta2 ** t,
    };
    const out = await step.run({ ...all, ...scalarsOf('adam', rates) });
    const norm = floats(out.gradNorm)[0]!;
    isNear(report, at, 'global norm of the gradients', [recorded.grad_norm], [norm], TOLERANCE * recorded.grad_norm);
    const next: Feeds = {};
    for (const { name } of specs) {
      next[name] = out[`w/${name}`]!;
      for (const moment of ['m', 'v']) next[`${moment}/${name}`] = out[`${moment}/${name}`]!;
    }
    for (const [name, { at: places, values }] of Object.entries(recorded.weights)) {
      const own = floats(next[name]);
      const compared = places.map((place, at) => ({ place, value: values[at]! }));
      const clear = compared.filter(({ place }) => !noise.get(name)?.has(place));
      isNear(
        report,
        at,
        `weights of ${name}`,
        clear.map(({ value }) => value),
        clear.map(({ place }) => own[place]!),
        2e-6 + 1e-3 * adamw.lr * t,
      );
    }
    state = next;
  }
  await gradient.dispose();
  await step.dispose();
}

/** Reports the largest difference above the tolerance; lengths must be equal. */
function isNear(
  report: Report,
  where: string,
  what: string,
  expected: ArrayLike<number>,
  got: ArrayLike<number>,
  tolerance: number,
): void {
  if (expected.length !== got.length) {
    report({ where, what: `${what}: how many`, expected: expected.length, got: got.length });
    return;
  }
  let [worst, at] = [0, -1];
  for (let i = 0; i < expected.length; i++) {
    const difference = Math.abs(expected[i]! - got[i]!);
    if (difference <= tolerance || (at >= 0 && difference <= worst)) continue;
    [worst, at] = [difference, i];
  }
  if (at >= 0) report({ where, what: `${what} [${at}], tolerance ${tolerance}`, expected: expected[at], got: got[at] });
}

function logprobOf(logits: Float32Array, row: number, width: number, id: number): number {
  let [peak, sum] = [Number.NEGATIVE_INFINITY, 0];
  for (let i = row * width; i < (row + 1) * width; i++) peak = Math.max(peak, logits[i]!);
  for (let i = row * width; i < (row + 1) * width; i++) sum += Math.exp(logits[i]! - peak);
  return logits[row * width + id]! - peak - Math.log(sum);
}

function normOf(values: Float32Array): number {
  return Math.sqrt(values.reduce((sum, x) => sum + x * x, 0));
}

function floats(tensor: HostTensor | undefined): Float32Array {
  return tensor!.data as Float32Array;
}
