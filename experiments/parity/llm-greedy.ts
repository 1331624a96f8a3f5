/** Greedy decoding of ragged prompts in one batch over the caches of the programs, without a policy's bookkeeping. */
import type { HostTensor, Program } from '../../src/compute/engine/engine.ts';
import { headSize, type ModelConfig } from '../../src/compute/model/config.ts';
import { type Feeds, f32, promptsOf } from './llm-feeds.ts';

/** New tokens of one member per call: prompts are read in pieces, as a policy reads them. */
const PIECE = 5;

/**
 * The most likely ids, one after another, for each prompt. All but the first token of a prompt is read as tokens of its
 * own, a few per call, so that chunked reading, caching and batching of ragged rows are all exercised.
 */
export async function generateGreedily(
  config: ModelConfig,
  { prefill, decode }: { readonly prefill: Program; readonly decode: Program },
  weights: Feeds,
  prompts: readonly (readonly number[])[],
  length: number,
): Promise<number[][]> {
  const { layers, kvHeads, slidingWindow } = config;
  const dh = headSize(config);
  const G = prompts.length;
  const S = Math.max(...prompts.map((prompt) => prompt.length)) + length;
  const first = await prefill.run({ ...weights, ...promptsOf(prompts.map(([id]) => [id!])) });
  const past: Feeds = {};
  for (let layer = 0; layer < layers; layer++) {
    for (const kind of ['k', 'v']) {
      past[`prompt.${kind}${layer}`] = first[`${kind}${layer}`]!;
      past[`past.${kind}${layer}`] = f32([G, kvHeads, 1, S, dh], new Float32Array(G * kvHeads * S * dh));
    }
  }
  const mask = new Float32Array(G * S).fill(-1e9);
  const tokens = prompts.map((prompt) => prompt.slice(1));
  const cached = prompts.map(() => 0);
  for (;;) {
    const reading = prompts.map((prompt, g) => {
      const done = tokens[g]!.length >= prompt.length - 1 + length;
      return done ? 0 : Math.min(PIECE, tokens[g]!.length - cached[g]!);
    });
    const T = Math.max(...reading);
    if (T === 0) return prompts.map((prompt, g) => tokens[g]!.slice(prompt.length - 1));
    const out = await decode.run({
      ...weights,
      ...past,
      ...piece(prompts, tokens, cached, reading, mask, S, slidingWindow !== undefined),
    });
    const logits = out.logits!.data as Float32Array;
    let n = 0;
    for (const [g, count] of reading.entries()) {
      for (let layer = 0; layer < layers; layer++) {
        for (const kind of ['k', 'v']) {
          const from = out[`${kind}${layer}`]!.data as Float32Array; // [N, kvHeads·dh]
          const to = past[`past.${kind}${layer}`]!.data as Float32Array;
          for (let t = 0; t < count; t++) {
            for (let head = 0; head < kvHeads; head++) {
              const row = from.subarray(((n + t) * kvHeads + head) * dh, ((n + t) * kvHeads + head + 1) * dh);
              to.set(row, ((g * kvHeads + head) * S + cached[g]! + t) * dh);
            }
          }
        }
      }
      n += count;
      mask.fill(0, g * S + cached[g]!, g * S + cached[g]! + count);
      cached[g]! += count;
      if (count > 0 && cached[g] === tokens[g]!.length) {
        tokens[g]!.push(best(logits.subarray(g * config.vocabSize, (g + 1) * config.vocabSize)));
      }
    }
  }
}

function piece(
  prompts: readonly (readonly number[])[],
  tokens: readonly (readonly number[])[],
  cached: readonly number[],
  reading: readonly number[],
  mask: Float32Array,
  S: number,
  window: boolean,
): Feeds {
  const G = prompts.length;
  const T = Math.max(...reading);
  const ids: number[] = [];
  const positions: number[] = [];
  const inverse: number[] = [];
  const index = new Int32Array(G * T).fill(-1);
  const deciding = new Int32Array(G).fill(-1);
  const back: number[] = [];
  for (const [g, count] of reading.entries()) {
    for (let t = 0; t < count; t++) {
      index[g * T + t] = ids.length;
      inverse.push(g * T + t);
      positions.push(1 + cached[g]! + t);
      ids.push(tokens[g]![cached[g]! + t]!);
      back.push(t === count - 1 ? g : -1);
    }
    if (count > 0) deciding[g] = ids.length - 1;
  }
  const i32 = (shape: readonly number[], data: ArrayLike<number>): HostTensor => ({
    dtype: 'i32',
    shape,
    data: Int32Array.from(data),
  });
  return {
    'tokens.ids': i32([ids.length], ids),
    'tokens.positions': i32([ids.length], positions),
    'episodes.index': i32([G, 1, T], index),
    'episodes.inverse': i32([ids.length], inverse),
    'episodes.steps': i32([T], [...Array(T).keys()]),
    'decisions.index': i32([G, 1], deciding),
    'decisions.inverse': i32([ids.length], back),
    'prompt.mask': f32([G, 1], new Float32Array(G)),
    'past.mask': f32([G, 1, S], mask),
    ...(window ? { 'prompt.steps': i32([1], [0]), 'past.steps': i32([S], [...Array(S).keys()]) } : {}),
  };
}

function best(logits: Float32Array): number {
  let at = 0;
  for (let i = 1; i < logits.length; i++) if (logits[i]! > logits[at]!) at = i;
  return at;
}
