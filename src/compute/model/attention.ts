/**
 * Attention layouts and masks. Tokens are packed [N, ·]; attention happens in padded layouts, which `take` goes to and comes back
 * from, so no token of one episode can meet another's: they never share a layout row.
 *
 * - A *prompt* [G, P] is computed once per group.
 * - *Episodes* [G, K, T] are the K members of each group: T new tokens each, which see their group's prompt, S cached
 *   tokens of their own past, and each other causally.
 */
import {
  add,
  and,
  broadcastTo,
  cast,
  concat,
  dimension,
  div,
  equal,
  exp,
  lessEqual,
  matmul,
  maximum,
  mul,
  not,
  reduceMax,
  reduceSum,
  reshape,
  slice,
  softCap,
  softmax,
  stopGradient,
  sub,
  take,
  transpose,
  where,
} from '../tensor/ops.ts';
import { type Dim, plus, type Shape, times } from '../tensor/shape.ts';
import { constant, input, type Tensor } from '../tensor/tensor.ts';
import type { ModelConfig, SameLineBias } from './config.ts';
import { headSize, queryScale } from './config.ts';
import type { Attend } from './transformer.ts';

const MASKED = -1e9;

/** Layout of packed rows in padded ones: `index` [rows] → packed row or −1; `inverse` [N] → layout row. */
export interface Layout {
  readonly index: Tensor;
  readonly inverse: Tensor;
}

/** Declares `<prefix>.index` in the layout's shape, and `<prefix>.inverse` [n]. */
export function layoutInputs(prefix: string, layout: Shape, n: Dim): Layout {
  const index = input(`${prefix}.index`, layout, 'i32');
  return { index: reshape(index, [times(...layout)]), inverse: input(`${prefix}.inverse`, [n], 'i32') };
}

/**
 * Layout of heads: row n of packed heads [N, heads·dh] lies, head by head, in [heads, rows of the layout, dh]. One
 * gather pads, splits and transposes at once. Padding holds any row: no token attends to it and nothing reads it, and
 * the gradients that reach it are zeros.
 */
interface HeadLayout {
  readonly index: Tensor; // [heads·M]
  readonly inverse: Tensor; // [N·heads]
}

function headLayout({ index, inverse }: Layout, heads: number): HeadLayout {
  const [rows, n] = [index.shape[0]!, inverse.shape[0]!];
  const head = constant([...Array(heads).keys()], [heads], 'i32');
  const spread = where(
    lessEqual(index, -1),
    index,
    add(mul(reshape(index, [1, rows]), heads), reshape(head, [heads, 1])),
  );
  const back = add(reshape(inverse, [n, 1]), mul(reshape(head, [1, heads]), cast(dimension(rows), 'i32')));
  return { index: reshape(spread, [times(heads, rows)]), inverse: reshape(back, [times(n, heads)]) };
}

/** Packed heads [N, heads·dh] → [heads·M, dh]. */
function toHeads(x: Tensor, { index, inverse }: HeadLayout, dh: number): Tensor {
  return take(reshape(x, [inverse.shape[0]!, dh]), index, inverse, { zeros: false, total: true });
}

/** [heads, ..., dh] → packed heads [N, heads·dh]. */
function fromHeads(x: Tensor, { index, inverse }: HeadLayout, n: Dim, width: number): Tensor {
  const rows = reshape(x, [index.shape[0]!, x.shape.at(-1)!]);
  return reshape(take(rows, inverse, index, { zeros: false }), [n, width]);
}

/**
 * Keys and values of one layer: prompts [kvHeads, G, P, dh], or cached [G, kvHeads, P, dh] and [G, kvHeads, K, S, dh].
 */
export interface KeysValues {
  readonly k: Tensor;
  readonly v: Tensor;
}

/** Token ids [...] of a padded layout, −1 in padding: declares `<name>` where the model has a bias between equal tokens. */
function declarePaddedIds({ sameTokenBias }: ModelConfig, name: string, shape: Shape): Tensor | undefined {
  return sameTokenBias === undefined ? undefined : input(name, shape, 'i32');
}

/**
 * Bias between equal tokens of two lists, on the scores of the first head.
 * @param axes leading axes of the heads, as in `headAxes`; the lists' own axes follow them
 * @param queries [..., Q, 1] ids
 * @param keys [..., 1, K] ids
 * @param steps [Q] of tokens that are both queries and keys: one with itself gets no bias
 * @returns [...axes, ..., Q, K]
 */
function biasSameToken(
  { sameTokenBias: bias = 0 }: ModelConfig,
  axes: readonly number[],
  queries: Tensor,
  keys: Tensor,
  steps?: Tensor,
): Tensor {
  let same = equal(queries, keys);
  if (steps) {
    const [n] = steps.shape as [Dim];
    same = and(same, not(equal(reshape(steps, [n, 1]), reshape(steps, [1, n]))));
  }
  return onHead(0, axes, same, bias);
}

/** Bias where `pairs` [..., Q, K] holds, on the scores of one head; 0 elsewhere. @returns [...axes, ..., Q, K] */
function onHead(head: number, axes: readonly number[], pairs: Tensor, bias: number): Tensor {
  const heads = axes.reduce((a, b) => a * b, 1);
  const biases = Float32Array.from({ length: heads }, (_, h) => (h === head ? bias : 0));
  const shape = [...axes, ...pairs.shape.map(() => 1)];
  return mul(reshape(cast(pairs, 'f32'), [...axes.map(() => 1), ...pairs.shape]), constant(biases, shape));
}

/** Bias between tokens of one line of the prompts, on the scores of the last head. @returns [...axes, G, P, P] */
function biasSameLine({ heads }: ModelConfig, axes: readonly number[], { bias }: SameLineBias): Tensor {
  const lines = input('prompt.lines', ['G', 'P'], 'i32');
  return onHead(heads - 1, axes, equal(reshape(lines, ['G', 'P', 1]), reshape(lines, ['G', 1, 'P'])), bias);
}

/** Head sharing of queries and keys: leading axes of the queries, and of the keys, which broadcast to them. */
function headAxes({ heads, kvHeads }: ModelConfig): { readonly q: number[]; readonly kv: number[] } {
  return heads === kvHeads ? { q: [heads], kv: [kvHeads] } : { q: [kvHeads, heads / kvHeads], kv: [kvHeads, 1] };
}

/** Ids [G, P] of the prompts' tokens in their layout, where the model has a bias between equal tokens. */
export function promptIds(config: ModelConfig): Tensor | undefined {
  return declarePaddedIds(config, 'prompt.padded', ['G', 'P']);
}

/**
 * Self-attention of the prompts.
 * @param lengthMask [G, P] f32: 0 where a prompt has a token, −1e9 in its padding
 * @param ids `promptIds`
 * @param steps `promptSteps`
 * @param kept receives each layer's keys and values [kvHeads, G, P, dh]
 */
export function promptAttention(
  config: ModelConfig,
  layout: Layout,
  lengthMask: Tensor,
  ids: Tensor | undefined,
  steps: Tensor,
  kept: KeysValues[],
): Attend {
  const { heads, kvHeads, slidingWindow: window } = config;
  const dh = headSize(config);
  const axes = headAxes(config);
  const scale = queryScale(config);
  let mask = reshape(lengthMask, ['G', 1, 'P']);
  if (!config.prefixBidirectional || ids) {
    if (!config.prefixBidirectional) mask = add(mask, causalMask(steps, 'P'));
    if (ids) {
      mask = add(mask, biasSameToken(config, axes.q, reshape(ids, ['G', 'P', 1]), reshape(ids, ['G', 1, 'P']), steps));
    }
  }
  if (config.sameLineBias !== undefined) mask = add(mask, biasSameLine(config, axes.q, config.sameLineBias));
  const near = window === undefined ? mask : add(mask, windowMask(pairSteps(steps, 'P'), window));
  const queryLayout = headLayout(layout, heads);
  const keyLayout = headLayout(layout, kvHeads);
  return (layer, { q, k, v }) => {
    const keys = reshape(toHeads(k, keyLayout, dh), [kvHeads, 'G', 'P', dh]);
    const values = reshape(toHeads(v, keyLayout, dh), [kvHeads, 'G', 'P', dh]);
    kept[layer] = { k: keys, v: values };
    const queries = reshape(toHeads(q, queryLayout, dh), [...axes.q, 'G', 'P', dh]);
    const scores = matmul(queries, reshape(keys, [...axes.kv, 'G', 'P', dh]), { transposeB: true, scale });
    const seen = isSliding(config, layer) ? near : mask;
    const weights = softmax(add(softCap(scores, config.attentionCap), seen));
    const mixed = matmul(weights, reshape(values, [...axes.kv, 'G', 'P', dh]));
    return fromHeads(mixed, queryLayout, layout.inverse.shape[0]!, heads * dh);
  };
}

/** Places of a prompt's tokens, [P] i32 0 … P − 1: declares `prompt.steps`, which few models read. */
export function promptSteps(): Tensor {
  return input('prompt.steps', ['P'], 'i32');
}

/** True for a layer that sees no more than a window. */
function isSliding({ slidingWindow, slidingLayers = [] }: ModelConfig, layer: number): boolean {
  return slidingWindow !== undefined && slidingLayers.includes(layer);
}

/** 0 where a token sees another through a window, −1e9 elsewhere. @param distance i32 [...] how many places before it the other stands */
function windowMask(distance: Tensor, window: number): Tensor {
  return where(lessEqual(distance, constant(window - 1, [], 'i32')), constant(0), constant(MASKED));
}

/** Distances [T, T] between steps [T] i32. */
function pairSteps(steps: Tensor, size: Dim): Tensor {
  return sub(reshape(steps, [size, 1]), reshape(steps, [1, size]));
}

/** Tokens of padded rows [..., n], without the last axis, i32: as many as its mask has zeros, and they lie at the row's start. */
function countTokens(mask: Tensor): Tensor {
  return reduceSum(cast(equal(mask, constant(0)), 'i32'), [-1]);
}

/** [T, T] f32: 0 where a step sees another (its own and those before), −1e9 elsewhere. @param steps [T] i32 0 … T − 1 */
function causalMask(steps: Tensor, size: Dim): Tensor {
  return where(lessEqual(reshape(steps, [1, size]), reshape(steps, [size, 1])), constant(0), constant(MASKED));
}

/** Context of whole episodes: what their tokens attend to besides each other. */
export interface EpisodeContext {
  readonly layout: Layout;
  /** Per layer, [kvHeads, G, P, dh]. */
  readonly prompt: readonly KeysValues[];
  /** [G, P] f32: 0 or −1e9. */
  readonly promptMask: Tensor;
  /** `promptIds`. */
  readonly promptIds: Tensor | undefined;
  /** `promptSteps`. */
  readonly promptSteps: Tensor;
  /** [T] i32 0 … T − 1. */
  readonly steps: Tensor;
}

/** Causal self-attention of whole episodes, nothing cached: over the prompt and each other. */
export function episodeAttention(config: ModelConfig, context: EpisodeContext): Attend {
  const { heads, kvHeads, slidingWindow: window } = config;
  const dh = headSize(config);
  const axes = headAxes(config);
  const scale = queryScale(config);
  const { layout } = context;
  let promptMask = reshape(context.promptMask, ['G', 1, 1, 'P']);
  let ownMask = causalMask(context.steps, 'T');
  const ids = declarePaddedIds(config, 'episodes.padded', ['G', 'K', 'T']);
  if (ids && context.promptIds) {
    const queries = reshape(ids, ['G', 'K', 'T', 1]);
    const keys = reshape(context.promptIds, ['G', 1, 1, 'P']);
    promptMask = add(promptMask, biasSameToken(config, axes.q, queries, keys));
    const own = reshape(ids, ['G', 'K', 1, 'T']);
    ownMask = add(ownMask, biasSameToken(config, axes.q, queries, own, context.steps));
  }
  let near = { prompt: promptMask, own: ownMask };
  if (window !== undefined) {
    const at = add(
      reshape(countTokens(context.promptMask), ['G', 1, 1, 1]),
      sub(reshape(context.steps, ['T', 1]), reshape(context.promptSteps, [1, 'P'])),
    );
    near = {
      prompt: add(promptMask, windowMask(at, window)),
      own: add(ownMask, windowMask(pairSteps(context.steps, 'T'), window)),
    };
  }
  const queryLayout = headLayout(layout, heads);
  const keyLayout = headLayout(layout, kvHeads);
  const KT = times('K', 'T');
  return (layer, { q, k, v }) => {
    const flat = reshape(toHeads(q, queryLayout, dh), [...axes.q, 'G', KT, dh]);
    const queries = reshape(flat, [...axes.q, 'G', 'K', 'T', dh]);
    const own = (x: Tensor) => reshape(toHeads(x, keyLayout, dh), [...axes.kv, 'G', 'K', 'T', dh]);
    const ownValues = own(v);
    const reshapeShared = (x: Tensor) => reshape(x, [...axes.kv, 'G', 'P', dh]);
    const prompt = context.prompt[layer]!;
    const seen = isSliding(config, layer) ? near : { prompt: promptMask, own: ownMask };
    const score = (of: Tensor, keys: Tensor) =>
      softCap(matmul(of, keys, { transposeB: true, scale }), config.attentionCap);
    const promptScores = score(flat, reshapeShared(prompt.k));
    const mixed = jointSoftmax([
      {
        scores: add(reshape(promptScores, [...axes.q, 'G', 'K', 'T', 'P']), seen.prompt),
        mix: (weights) =>
          reshape(matmul(reshape(weights, [...axes.q, 'G', KT, 'P']), reshapeShared(prompt.v)), queries.shape),
      },
      {
        scores: add(score(queries, own(k)), seen.own),
        mix: (weights) => matmul(weights, ownValues),
      },
    ]);
    return fromHeads(mixed, queryLayout, layout.inverse.shape[0]!, heads * dh);
  };
}

/** Cached keys and values that an episode's new tokens attend to, besides each other. */
export interface CachedContext {
  readonly layout: Layout;
  /** Per layer, [G, kvHeads, P, dh]. */
  readonly prompt: readonly KeysValues[];
  /** [G, P] f32: 0 or −1e9. */
  readonly promptMask: Tensor;
  /** Per layer, [G, kvHeads, K, S, dh]. */
  readonly past: readonly KeysValues[];
  /** [G, K, S] f32: 0 or −1e9. */
  readonly pastMask: Tensor;
  /** `promptIds`. */
  readonly promptIds: Tensor | undefined;
  /** `promptSteps`. */
  readonly promptSteps: Tensor;
  /** [T] i32 0 … T − 1. */
  readonly steps: Tensor;
}

/** Causal self-attention of the episodes' new tokens over prompt, past and each other. */
export function attendCached(config: ModelConfig, context: CachedContext): Attend {
  const { heads, kvHeads } = config;
  const dh = headSize(config);
  const repeat = heads / kvHeads;
  const rT = times(repeat, 'T');
  const scale = queryScale(config);
  const { layout, past } = context;
  const future = reshape(causalMask(context.steps, 'T'), [1, 1, 1, 'T', 'T']);
  const masks = [
    broadcastTo(reshape(context.promptMask, ['G', 1, 1, 1, 'P']), ['G', 1, 'K', rT, 'P']),
    broadcastTo(repeat === 1 ? future : concat(Array(repeat).fill(future), 3), ['G', 1, 'K', rT, 'T']),
    broadcastTo(reshape(context.pastMask, ['G', 1, 'K', 1, 'S']), ['G', 1, 'K', rT, 'S']),
  ];
  const biases = biasCached(config, context);
  const mask = concat(biases ? masks.map((part, i) => add(part, biases[i]!)) : masks, 4);
  const windows = windowsCached(config, context);
  const near = windows ? add(mask, windows) : mask;
  const PT = plus('P', 'T');
  return (layer, { q, k, v }) => {
    const pad = (x: Tensor) => take(x, layout.index, layout.inverse, { zeros: false, total: true });
    // [G, kvHeads, K, repeat·T, dh]: with the members inside, prompt and own scores share one memory order. The queries
    // are scaled, not the products: engines have a faster kernel for one row times an unscaled matrix.
    const spread = transpose(reshape(pad(mul(q, scale)), ['G', 'K', 'T', kvHeads, repeat, dh]), [0, 3, 1, 4, 2, 5]);
    const queries = reshape(spread, ['G', kvHeads, 'K', rT, dh]);
    const own = (x: Tensor) => transpose(reshape(pad(x), ['G', 'K', 'T', kvHeads, dh]), [0, 3, 1, 2, 4]);
    const prompt = context.prompt[layer]!;
    const { k: pastKeys, v: pastValues } = past[layer]!;
    const flat = reshape(queries, ['G', kvHeads, times('K', rT), dh]);
    const promptScores = reshape(matmul(flat, prompt.k, { transposeB: true }), ['G', kvHeads, 'K', rT, 'P']);
    const ownScores = matmul(queries, own(k), { transposeB: true });
    const pastScores = matmul(queries, pastKeys, { transposeB: true });
    // A few new tokens' scores are small, so joining them costs less than a softmax in parts does.
    const scores = softCap(concat([promptScores, ownScores, pastScores], 4), config.attentionCap);
    const weights = softmax(add(scores, isSliding(config, layer) ? near : mask));
    const promptWeights = reshape(slice(weights, 4, 0, 'P'), ['G', kvHeads, times('K', rT), 'P']);
    const mixed = [
      reshape(matmul(promptWeights, prompt.v), queries.shape),
      matmul(slice(weights, 4, 'P', PT), own(v)),
      matmul(slice(weights, 4, PT, plus(PT, 'S')), pastValues),
    ].reduce(add);
    const rows = reshape(transpose(reshape(mixed, ['G', kvHeads, 'K', repeat, 'T', dh]), [0, 2, 4, 1, 3, 5]), [
      times('G', 'K', 'T'),
      heads * dh,
    ]);
    return take(rows, layout.inverse, layout.index, { zeros: false });
  };
}

/** Mask of a window over prompt, each other and past: [G, 1, K, repeat·T, P + T + S]; declares `past.steps`. */
function windowsCached(
  config: ModelConfig,
  { promptMask, promptSteps, pastMask, steps }: CachedContext,
): Tensor | undefined {
  const { heads, kvHeads, slidingWindow: window } = config;
  if (window === undefined) return undefined;
  const own = reshape(steps, ['T', 1]);
  const past = reshape(countTokens(pastMask), ['G', 'K', 1, 1]);
  const before = add(past, reshape(countTokens(promptMask), ['G', 1, 1, 1]));
  const parts: readonly (readonly [Tensor, Dim])[] = [
    [add(before, sub(own, reshape(promptSteps, [1, 'P']))), 'P'],
    [pairSteps(steps, 'T'), 'T'],
    [add(past, sub(own, reshape(input('past.steps', ['S'], 'i32'), [1, 'S']))), 'S'],
  ];
  const masks = parts.map(([distance, size]) => broadcastTo(windowMask(distance, window), ['G', 'K', 'T', size]));
  const mask = reshape(concat(masks, 3), ['G', 1, 'K', 'T', plus('P', 'T', 'S')]);
  return heads === kvHeads ? mask : concat(Array(heads / kvHeads).fill(mask), 3);
}

/** Biases between equal tokens over prompt, each other and past: [G, kvHeads, K, repeat·T, P], then T and S in P's place. */
function biasCached(config: ModelConfig, { promptIds: prompt, steps }: CachedContext): Tensor[] | undefined {
  const own = declarePaddedIds(config, 'episodes.padded', ['G', 'K', 'T']);
  const past = declarePaddedIds(config, 'past.padded', ['G', 'K', 'S']);
  if (!own || !past || !prompt) return undefined;
  const { heads, kvHeads } = config;
  const repeat = heads / kvHeads;
  const queries = reshape(own, ['G', 'K', 'T', 1]);
  const parts = [
    { keys: reshape(prompt, ['G', 1, 1, 'P']), size: 'P' },
    { keys: reshape(own, ['G', 'K', 1, 'T']), size: 'T', steps },
    { keys: reshape(past, ['G', 'K', 1, 'S']), size: 'S' },
  ];
  return parts.map(({ keys, size, steps }) => {
    const bias = biasSameToken(config, [kvHeads, repeat], queries, keys, steps); // [kvHeads, repeat, G, K, T, size]
    return reshape(transpose(bias, [2, 0, 3, 1, 4, 5]), ['G', kvHeads, 'K', times(repeat, 'T'), size]);
  });
}

interface AttentionPart {
  /** [..., rows, keys], masked. */
  readonly scores: Tensor;
  /** Weights [..., rows, keys] → weighted values [..., rows, dh]; linear. */
  readonly mix: (weights: Tensor) => Tensor;
}

/**
 * Joint softmax over the keys of several parts, without joining them: the scores of a shared prompt and of an episode's
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
