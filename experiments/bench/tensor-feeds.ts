/** Feeds of the language-model programs for full batches: every prompt of one length, every member of one length. */
import type { HostTensor } from '../../src/compute/engine/engine.ts';
import { headSize, type ModelConfig } from '../../src/compute/model/config.ts';
import { f32, i32, promptFeeds, steps } from '../../src/compute/model/feeds.ts';
import { type ParamSet, parameterSpecs } from '../../src/compute/model/parameters.ts';

export type Feeds = Record<string, HostTensor>;

export function weightFeeds(config: ModelConfig, params: ParamSet): Feeds {
  return Object.fromEntries(parameterSpecs(config).map(({ name, shape }) => [name, f32(shape, params.values[name]!)]));
}

/** Zero moments of every parameter. */
export function momentFeeds(config: ModelConfig): Feeds {
  const feeds: Feeds = {};
  for (const { name, shape } of parameterSpecs(config)) {
    const size = shape.reduce((a, b) => a * b, 1);
    feeds[`m/${name}`] = f32(shape, new Float32Array(size));
    feeds[`v/${name}`] = f32(shape, new Float32Array(size));
  }
  return feeds;
}

/** Token ids without a pattern that a model could be quick at. */
function ids(config: ModelConfig, count: number): Int32Array {
  return Int32Array.from({ length: count }, (_, i) => (i * 7919 + 13) % config.vocabSize);
}

/** `count` prompts of `length` tokens. */
export function promptBatch(config: ModelConfig, count: number, length: number): Feeds {
  const all = ids(config, count * length);
  const readings = Array.from({ length: count }, (_, g) => ({
    tokens: all.subarray(g * length, (g + 1) * length),
    focus: new Set<number>(),
  }));
  return promptFeeds(config, readings, length);
}

/** New tokens of `groups` episodes, one member each, `length` tokens after `before` others. */
function tokenBatch(config: ModelConfig, groups: number, length: number, before: number): Feeds {
  const N = groups * length;
  const rows = Int32Array.from({ length: N }, (_, n) => n);
  return {
    'tokens.ids': i32([N], ids(config, N)),
    'tokens.positions': i32(
      [N],
      rows.map((n) => before + (n % length)),
    ),
    'episodes.index': i32([groups, 1, length], rows),
    'episodes.inverse': i32([N], rows),
    'episodes.steps': steps(length),
  };
}

/** Whole episodes of one prompt token and `length − 1` more, every one of them a training target. */
export function trainBatch(config: ModelConfig, groups: number, length: number): Feeds {
  const T = length - 1;
  const N = groups * T;
  const rows = Int32Array.from({ length: N }, (_, n) => n);
  return {
    ...promptBatch(config, groups, 1),
    ...tokenBatch(config, groups, T, 1),
    'decisions.index': i32([N], rows),
    'decisions.inverse': i32([N], rows),
    'decisions.chosen': i32(
      [N, 1],
      rows.map((n) => (n * 31 + 7) % config.vocabSize),
    ),
    'decisions.weight': f32([N], new Float32Array(N).fill(1 / N)),
    'adam.lr': f32([], Float32Array.of(1e-3)),
    'adam.maxGradNorm': f32([], Float32Array.of(1)),
    'adam.correction1': f32([], Float32Array.of(0.1)),
    'adam.correction2': f32([], Float32Array.of(0.02)),
  };
}

/** One new token for each of `groups` sequences that have read `prompt` + `past` tokens. */
export function decodeBatch(config: ModelConfig, groups: number, prompt: number, past: number): Feeds {
  const dh = headSize(config);
  const { kvHeads } = config;
  const rows = Int32Array.from({ length: groups }, (_, n) => n);
  const feeds: Feeds = {
    ...tokenBatch(config, groups, 1, prompt + past),
    'decisions.index': i32([groups, 1], rows),
    'decisions.inverse': i32([groups], rows),
    'prompt.mask': f32([groups, prompt], new Float32Array(groups * prompt)),
    'past.mask': f32([groups, 1, past], new Float32Array(groups * past)),
  };
  for (let layer = 0; layer < config.layers; layer++) {
    for (const kind of ['k', 'v']) {
      feeds[`prompt.${kind}${layer}`] = f32([groups, kvHeads, prompt, dh], wave(groups * kvHeads * prompt * dh));
      feeds[`past.${kind}${layer}`] = f32([groups, kvHeads, 1, past, dh], wave(groups * kvHeads * past * dh));
    }
  }
  return feeds;
}

function wave(length: number): Float32Array {
  return Float32Array.from({ length }, (_, i) => Math.sin(i * 0.37));
}
