/** Program inputs that rollout and learner build alike. */
import type { HostTensor } from '../engine/engine.ts';
import type { ModelConfig } from '../model/config.ts';
import { type PromptReading, previousTokens } from './reading.ts';
import type { Tokenizer } from './tokenizer.ts';

/** An i32 feed. */
export function i32(shape: readonly number[], data: Int32Array): HostTensor {
  return { dtype: 'i32', shape, data };
}

/** An f32 feed; of a pool that is longer than the shape, the first values. */
export function f32(shape: readonly number[], data: Float32Array): HostTensor {
  const size = shape.reduce((a, b) => a * b, 1);
  return { dtype: 'f32', shape, data: size === data.length ? data : data.subarray(0, size) };
}

/** 0, 1, … n − 1. */
export function steps(n: number): HostTensor {
  return i32(
    [n],
    Int32Array.from({ length: n }, (_, t) => t),
  );
}

/** Feeds of the prompt part: packed tokens and layout for prompts padded to `longest`. */
export function promptFeeds(
  config: ModelConfig,
  readings: readonly Pick<PromptReading, 'tokens' | 'focus'>[],
  longest: number,
): Record<string, HostTensor> {
  const N = readings.reduce((sum, { tokens }) => sum + tokens.length, 0);
  const ids = new Int32Array(N);
  const previous = [new Int32Array(N), new Int32Array(N)] as const;
  const focus = new Float32Array(N);
  const positions = new Int32Array(N);
  const index = new Int32Array(readings.length * longest).fill(-1);
  const inverse = new Int32Array(N);
  const mask = new Float32Array(readings.length * longest).fill(-1e9);
  let n = 0;
  readings.forEach((reading, g) => {
    const { previous1, previous2 } = previousTokens(reading.tokens);
    ids.set(reading.tokens, n);
    previous[0].set(previous1, n);
    previous[1].set(previous2, n);
    reading.tokens.forEach((id, t) => {
      focus[n] = reading.focus.has(id) ? 1 : 0;
      positions[n] = t;
      index[g * longest + t] = n;
      inverse[n] = g * longest + t;
      mask[g * longest + t] = 0;
      n++;
    });
  });
  const feeds: Record<string, HostTensor> = {
    'prompt.ids': { dtype: 'i32', shape: [N], data: ids },
    'prompt.positions': { dtype: 'i32', shape: [N], data: positions },
    'prompt.index': { dtype: 'i32', shape: [readings.length, longest], data: index },
    'prompt.inverse': { dtype: 'i32', shape: [N], data: inverse },
    'prompt.mask': { dtype: 'f32', shape: [readings.length, longest], data: mask },
  };
  for (let i = 0; i < config.tokenShift; i++) {
    feeds[`prompt.previous${i + 1}`] = { dtype: 'i32', shape: [N], data: previous[i]! };
  }
  if (config.focusBit) feeds['prompt.focus'] = { dtype: 'f32', shape: [N, 1], data: focus };
  if (!config.prefixBidirectional) {
    feeds['prompt.steps'] = steps(longest);
  }
  return feeds;
}

/** Feeds of the action texts, padded to the longest; an empty text is all padding. */
export function actionFeeds(
  config: ModelConfig,
  tokenizer: Tokenizer,
  actions: readonly { readonly text: string; readonly focus: ReadonlySet<number> }[],
): Record<string, HostTensor> {
  const encoded = actions.map(({ text }) => tokenizer.encode(text));
  const W = Math.max(1, ...encoded.map((tokens) => tokens.length));
  const N = actions.length * W;
  const ids = new Int32Array(N);
  const previous = [new Int32Array(N), new Int32Array(N)] as const;
  const focus = new Float32Array(N);
  const valid = new Float32Array(N);
  encoded.forEach((tokens, row) => {
    const { previous1, previous2 } = previousTokens(tokens);
    ids.set(tokens, row * W);
    previous[0].set(previous1, row * W);
    previous[1].set(previous2, row * W);
    tokens.forEach((id, t) => {
      focus[row * W + t] = actions[row]!.focus.has(id) ? 1 : 0;
    });
    valid.fill(1, row * W, row * W + tokens.length);
  });
  const feeds: Record<string, HostTensor> = {
    'actions.ids': { dtype: 'i32', shape: [actions.length, W], data: ids },
    'actions.valid': { dtype: 'f32', shape: [actions.length, W], data: valid },
  };
  for (let i = 0; i < config.tokenShift; i++) {
    feeds[`actions.previous${i + 1}`] = { dtype: 'i32', shape: [actions.length, W], data: previous[i]! };
  }
  if (config.focusBit) feeds['actions.focus'] = { dtype: 'f32', shape: [actions.length, W], data: focus };
  return feeds;
}
