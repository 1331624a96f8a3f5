/**
 * The transformer's trunk over *packed* tokens: linear layers see only real tokens [N, d]; attention goes through a
 * layout (attention.ts) that decides who sees whom.
 */
import {
  add,
  concat,
  gather,
  matmul,
  mul,
  neg,
  reciprocal,
  reduceMean,
  reshape,
  sigmoid,
  slice,
  sqrt,
} from '../tensor/ops.ts';
import type { Dim } from '../tensor/shape.ts';
import { constant, input, type Tensor } from '../tensor/tensor.ts';
import type { ModelConfig } from './config.ts';
import { headSize } from './config.ts';

/** Looks a parameter up by name. */
export type Parameters = (name: string) => Tensor;

/** Per-token inputs of one packed run of tokens. */
export interface TokenInputs {
  /** [N] i32 token ids. */
  readonly ids: Tensor;
  /** [N] i32 the token before, and the one before that (0 at the start); only with `tokenShift`. */
  readonly previous: readonly Tensor[];
  /** [N, 1] f32 the focus bit; only with `focusBit`. */
  readonly focus: Tensor | undefined;
  /** [N] i32 position in the episode's sequence, in [0, maxPositions). */
  readonly positions: Tensor;
}

/** Declares the inputs `<prefix>.ids`, `.previous1`, `.previous2`, `.focus`, `.positions`. */
export function tokenInputs(config: ModelConfig, prefix: string, n: Dim): TokenInputs {
  return {
    ids: input(`${prefix}.ids`, [n], 'i32'),
    previous: Array.from({ length: config.tokenShift }, (_, i) => input(`${prefix}.previous${i + 1}`, [n], 'i32')),
    focus: config.focusBit ? input(`${prefix}.focus`, [n, 1]) : undefined,
    positions: input(`${prefix}.positions`, [n], 'i32'),
  };
}

/** Packed queries, keys and values of one layer: [N, heads·dh], [N, kvHeads·dh] twice; rotary positions applied. */
export interface LayerHeads {
  readonly q: Tensor;
  readonly k: Tensor;
  readonly v: Tensor;
}

/** Attention of one layer: packed heads in, packed outputs [N, heads·dh] out. */
export type Attend = (layer: number, heads: LayerHeads) => Tensor;

/**
 * Token embeddings with the small policy's options.
 *
 *   x = s·(E[idₜ] + a₁⊙E[idₜ₋₁] + a₂⊙E[idₜ₋₂] + focusₜ·f)
 *
 * @returns [N, d]
 */
export function embed(
  config: ModelConfig,
  p: Parameters,
  tokens: Pick<TokenInputs, 'ids' | 'previous' | 'focus'>,
): Tensor {
  const table = p('model.embed_tokens.weight');
  let x = gather(table, tokens.ids);
  tokens.previous.forEach((ids, i) => {
    x = add(x, mul(gather(table, ids), slice(p('token_shift.weight'), 0, i, i + 1)));
  });
  if (tokens.focus) x = add(x, mul(tokens.focus, p('focus_embedding.weight')));
  return config.embeddingScale === 1 ? x : mul(x, constant(config.embeddingScale));
}

/** Runs all layers and the final norm. @returns [N, d] */
export function trunk(config: ModelConfig, p: Parameters, tokens: TokenInputs, n: Dim, attend: Attend): Tensor {
  const rotary = rotaryTables(config, tokens.positions, n);
  let x = embed(config, p, tokens);
  for (let layer = 0; layer < config.layers; layer++) {
    const at = `model.layers.${layer}`;
    const normed = rmsNorm(x, p(`${at}.input_layernorm.weight`), config.rmsNormEps);
    const q = rotate(config, projection(p, `${at}.self_attn.q_proj`, normed, config.qkvBias), config.heads, rotary, n);
    const k = rotate(
      config,
      projection(p, `${at}.self_attn.k_proj`, normed, config.qkvBias),
      config.kvHeads,
      rotary,
      n,
    );
    const v = projection(p, `${at}.self_attn.v_proj`, normed, config.qkvBias);
    x = add(x, projection(p, `${at}.self_attn.o_proj`, attend(layer, { q, k, v })));
    x = add(x, swiglu(p, `${at}.mlp`, rmsNorm(x, p(`${at}.post_attention_layernorm.weight`), config.rmsNormEps)));
  }
  return rmsNorm(x, p('model.norm.weight'), config.rmsNormEps);
}

/** x·Wᵀ (+ b), W stored [out, in]. */
export function projection(p: Parameters, name: string, x: Tensor, bias = false): Tensor {
  const y = matmul(x, p(`${name}.weight`), { transposeB: true });
  return bias ? add(y, p(`${name}.bias`)) : y;
}

/** x / √(mean(x²) + ε) ⊙ gain, over the last axis. @see Zhang & Sennrich 2019, https://arxiv.org/abs/1910.07467 */
export function rmsNorm(x: Tensor, gain: Tensor, eps: number): Tensor {
  const scale = reciprocal(sqrt(add(reduceMean(mul(x, x), [-1], true), constant(eps))));
  return mul(mul(x, scale), gain);
}

/** x·sigmoid(x). */
export function silu(x: Tensor): Tensor {
  return mul(x, sigmoid(x));
}

function swiglu(p: Parameters, at: string, x: Tensor): Tensor {
  return projection(
    p,
    `${at}.down_proj`,
    mul(silu(projection(p, `${at}.gate_proj`, x)), projection(p, `${at}.up_proj`, x)),
  );
}

interface Rotary {
  readonly cos: Tensor; // [N, 1, dh/2]
  readonly sin: Tensor;
}

function rotaryTables(config: ModelConfig, positions: Tensor, n: Dim): Rotary {
  const half = headSize(config) / 2;
  const angles = (f: (x: number) => number) => {
    const table = new Float32Array(config.maxPositions * half);
    for (let t = 0; t < config.maxPositions; t++) {
      for (let i = 0; i < half; i++) table[t * half + i] = f(t * config.ropeTheta ** (-i / half));
    }
    return reshape(gather(constant(table, [config.maxPositions, half]), positions), [n, 1, half]);
  };
  return { cos: angles(Math.cos), sin: angles(Math.sin) };
}

/** Rotary positions in the half-split convention of the Qwen2 family. @see Su et al. 2021, https://arxiv.org/abs/2104.09864 */
function rotate(config: ModelConfig, x: Tensor, heads: number, { cos, sin }: Rotary, n: Dim): Tensor {
  const dh = headSize(config);
  const split = reshape(x, [n, heads, dh]);
  const a = slice(split, 2, 0, dh / 2);
  const b = slice(split, 2, dh / 2, dh);
  const rotated = concat([add(mul(a, cos), neg(mul(b, sin))), add(mul(a, sin), mul(b, cos))], 2);
  return reshape(rotated, [n, heads * dh]);
}
