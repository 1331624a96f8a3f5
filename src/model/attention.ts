/**
 * Who sees whom. Tokens are packed [N, ·]; attention happens in padded layouts, which `take` goes to and comes back
 * from, so no token of one episode can meet another's: they never share a layout row.
 *
 * - A *prompt* [G, P] is computed once per group.
 * - *Episodes* [G, K, T] are the K members of each group: T new tokens each, which see their group's prompt, S cached
 *   tokens of their own past, and each other causally.
 */
import {
  add,
  concat,
  div,
  exp,
  lessEqual,
  matmul,
  maximum,
  mul,
  reduceMax,
  reduceSum,
  reshape,
  softmax,
  stopGradient,
  sub,
  take,
  transpose,
  where,
} from '../tensor/ops.ts';
import { type Dim, type Shape, times } from '../tensor/shape.ts';
import { constant, input, type Tensor } from '../tensor/tensor.ts';
import type { ModelConfig } from './config.ts';
import { headSize } from './config.ts';
import type { Attend } from './transformer.ts';

const MASKED = -1e9;

/** Where packed rows lie in a padded layout: `index` [rows] → packed row or −1; `inverse` [N] → layout row. */
export interface Layout {
  readonly index: Tensor;
  readonly inverse: Tensor;
}

/** Declares `<prefix>.index` in the layout's shape, and `<prefix>.inverse` [n]. */
export function layoutInputs(prefix: string, layout: Shape, n: Dim): Layout {
  const index = input(`${prefix}.index`, layout, 'i32');
  return { index: reshape(index, [times(...layout)]), inverse: input(`${prefix}.inverse`, [n], 'i32') };
}

/** One layer's keys and values: prompts [G, kvHeads, P, dh], pasts [G, kvHeads, K, S, dh]. */
export interface KeysValues {
  readonly k: Tensor;
  readonly v: Tensor;
}

/**
 * Self-attention of the prompts.
 * @param lengthMask [G, P] f32: 0 where a prompt has a token, −1e9 in its padding
 * @param kept receives each layer's keys and values [G, kvHeads, P, dh]
 */
export function promptAttention(config: ModelConfig, layout: Layout, lengthMask: Tensor, kept: KeysValues[]): Attend {
  const { heads, kvHeads } = config;
  const dh = headSize(config);
  const repeat = heads / kvHeads;
  const scale = constant(1 / Math.sqrt(dh));
  let mask = reshape(lengthMask, ['G', 1, 1, 'P']);
  if (!config.prefixBidirectional) {
    const steps = input('prompt.steps', ['P'], 'i32'); // 0 … P − 1
    const causal = lessEqual(reshape(steps, [1, 'P']), reshape(steps, ['P', 1]));
    // Query rows are laid out [repeat, P]; the causal mask repeats with them.
    const future = reshape(where(causal, constant(0), constant(MASKED)), [1, 1, 'P', 'P']);
    mask = add(mask, repeat === 1 ? future : concat(Array(repeat).fill(future), 2));
  }
  return (layer, { q, k, v }) => {
    const pad = (x: Tensor) => take(x, layout.index, layout.inverse);
    const queries = reshape(transpose(reshape(pad(q), ['G', 'P', kvHeads, repeat, dh]), [0, 2, 3, 1, 4]), [
      'G',
      kvHeads,
      times(repeat, 'P'),
      dh,
    ]);
    const keys = transpose(reshape(pad(k), ['G', 'P', kvHeads, dh]), [0, 2, 1, 3]);
    const values = transpose(reshape(pad(v), ['G', 'P', kvHeads, dh]), [0, 2, 1, 3]);
    kept[layer] = { k: keys, v: values };
    const weights = softmax(add(matmul(mul(queries, scale), keys, { transposeB: true }), mask));
    const mixed = reshape(matmul(weights, values), ['G', kvHeads, repeat, 'P', dh]);
    const rows = reshape(transpose(mixed, [0, 3, 1, 2, 4]), [times('G', 'P'), heads * dh]);
    return take(rows, layout.inverse, layout.index);
  };
}

/** What an episode's new tokens attend to besides each other. */
export interface EpisodeContext {
  readonly layout: Layout;
  /** Per layer, [G, kvHeads, P, dh]. */
  readonly prompt: readonly KeysValues[];
  /** [G, P] f32: 0 or −1e9. */
  readonly promptMask: Tensor;
  /** Per layer, [G, kvHeads, K, S, dh]; absent in training, where the whole episode is new. */
  readonly past?: { readonly layers: readonly KeysValues[] /** [G, K, S] f32: 0 or −1e9. */; readonly mask: Tensor };
  /** [T] i32 0 … T − 1. */
  readonly steps: Tensor;
}

/** Causal self-attention of the episodes' new tokens over prompt, past and each other. */
export function episodeAttention(config: ModelConfig, context: EpisodeContext): Attend {
  const { heads, kvHeads } = config;
  const dh = headSize(config);
  const repeat = heads / kvHeads;
  const rT = times(repeat, 'T');
  const scale = constant(1 / Math.sqrt(dh));
  const { layout, past } = context;
  const promptMask = reshape(context.promptMask, ['G', 1, 1, 1, 'P']);
  const causal = lessEqual(reshape(context.steps, [1, 'T']), reshape(context.steps, ['T', 1]));
  const future = reshape(where(causal, constant(0), constant(MASKED)), [1, 1, 1, 'T', 'T']);
  const ownMask = repeat === 1 ? future : concat(Array(repeat).fill(future), 3);
  const pastMask = past && reshape(past.mask, ['G', 1, 'K', 1, 'S']);
  return (layer, { q, k, v }) => {
    const pad = (x: Tensor) => take(x, layout.index, layout.inverse);
    // [G, kvHeads, K, repeat·T, dh]: with the members inside, prompt and own scores share one memory order.
    const queries = mul(
      reshape(transpose(reshape(pad(q), ['G', 'K', 'T', kvHeads, repeat, dh]), [0, 3, 1, 4, 2, 5]), [
        'G',
        kvHeads,
        'K',
        rT,
        dh,
      ]),
      scale,
    );
    const own = (x: Tensor) => transpose(reshape(pad(x), ['G', 'K', 'T', kvHeads, dh]), [0, 3, 1, 2, 4]);
    const ownKeys = own(k);
    const ownValues = own(v);
    const prompt = context.prompt[layer]!;
    const flat = reshape(queries, ['G', kvHeads, times('K', rT), dh]);
    const parts: AttentionPart[] = [
      {
        scores: add(reshape(matmul(flat, prompt.k, { transposeB: true }), ['G', kvHeads, 'K', rT, 'P']), promptMask),
        mix: (weights) =>
          reshape(matmul(reshape(weights, ['G', kvHeads, times('K', rT), 'P']), prompt.v), ['G', kvHeads, 'K', rT, dh]),
      },
      {
        scores: add(matmul(queries, ownKeys, { transposeB: true }), ownMask),
        mix: (weights) => matmul(weights, ownValues),
      },
    ];
    if (past && pastMask) {
      const { k: pastKeys, v: pastValues } = past.layers[layer]!;
      parts.push({
        scores: add(matmul(queries, pastKeys, { transposeB: true }), pastMask),
        mix: (weights) => matmul(weights, pastValues),
      });
    }
    const mixed = jointSoftmax(parts);
    const rows = reshape(transpose(reshape(mixed, ['G', kvHeads, 'K', repeat, 'T', dh]), [0, 2, 4, 1, 3, 5]), [
      times('G', 'K', 'T'),
      heads * dh,
    ]);
    return take(rows, layout.inverse, layout.index);
  };
}

interface AttentionPart {
  /** [..., rows, keys], masked. */
  readonly scores: Tensor;
  /** Weights [..., rows, keys] → weighted values [..., rows, dh]; linear. */
  readonly mix: (weights: Tensor) => Tensor;
}

/**
 * One softmax over the keys of several parts, without joining them: the scores of a shared prompt and of an episode's
 * own tokens lie in different layouts, and copying them next to each other costs more than the softmax.
 *
 *   m = maxᵢ max sᵢ,  out = Σᵢ exp(sᵢ − m)·vᵢ / Σᵢ Σ exp(sᵢ − m)
 *
 * m is a constant of the gradient: it cancels.
 */
function jointSoftmax(parts: readonly AttentionPart[]): Tensor {
  const peak = stopGradient(parts.map(({ scores }) => reduceMax(scores, [-1], true)).reduce(maximum));
  const weights = parts.map(({ scores }) => exp(sub(scores, peak)));
  const total = weights.map((w) => reduceSum(w, [-1], true)).reduce(add);
  return div(parts.map(({ mix }, i) => mix(weights[i]!)).reduce(add), total);
}
