/**
 * Trunk of the transformer over *packed* tokens: linear layers see only real tokens [N, d]; attention goes through a
 * layout (attention.ts) that decides which tokens attend to which.
 */
import { add, cut, gather, matmul, mul, rmsNorm, rotary, slice, swiglu } from '../tensor/ops.ts';
import type { Dim } from '../tensor/shape.ts';
import { constant, input, type Tensor } from '../tensor/tensor.ts';
import type { ModelConfig } from './config.ts';
import { headSize } from './config.ts';

/** Looks a parameter up by name. */
export interface Parameters {
  (name: string): Tensor;
  /** Low-rank matrices beside a projection (lora.ts): A [r, in], B [out, r], and the factor on their product. */
  adapter?(projection: string): { readonly down: Tensor; readonly up: Tensor; readonly scale: number } | undefined;
}

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
 * Token embeddings with the local policy's options.
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

/**
 * Runs all layers and the final norm.
 * @param again the level of the first layer's cut, where gradients compute each layer's activations again from what
 *   entered it instead of keeping them; the levels up to `again + layers` are taken
 * @returns [N, d]
 */
export function trunk(config: ModelConfig, p: Parameters, tokens: TokenInputs, attend: Attend, again?: number): Tensor {
  const turns = rotaryTables(config, tokens.positions);
  let x = embed(config, p, tokens);
  for (let layer = 0; layer < config.layers; layer++) {
    x = block(config, p, layer, again === undefined ? x : cut(x, again + layer), turns, attend);
  }
  return finalNorm(config, p, again === undefined ? x : cut(x, again + config.layers));
}

/** One layer: attention and MLP, each added to what enters it. @param x [N, d] @returns [N, d] */
export function block(
  config: ModelConfig,
  p: Parameters,
  layer: number,
  x: Tensor,
  { positions, cos, sin }: Rotary,
  attend: Attend,
): Tensor {
  const at = `model.layers.${layer}`;
  const normed = rmsNorm(x, p(`${at}.input_layernorm.weight`), config.rmsNormEps);
  const rotateHeads = (name: string, heads: number) =>
    rotary(projection(p, `${at}.self_attn.${name}`, normed, config.qkvBias), positions, cos, sin, heads);
  const q = rotateHeads('q_proj', config.heads);
  const k = rotateHeads('k_proj', config.kvHeads);
  const v = projection(p, `${at}.self_attn.v_proj`, normed, config.qkvBias);
  const attended = add(x, projection(p, `${at}.self_attn.o_proj`, attend(layer, { q, k, v })));
  const inner = rmsNorm(attended, p(`${at}.post_attention_layernorm.weight`), config.rmsNormEps);
  return add(attended, mlp(p, `${at}.mlp`, inner));
}

/** Norm after the last layer. @param x [N, d] @returns [N, d] */
export function finalNorm(config: ModelConfig, p: Parameters, x: Tensor): Tensor {
  return rmsNorm(x, p('model.norm.weight'), config.rmsNormEps);
}

/** Projection x·Wᵀ (+ b), W stored [out, in]. */
export function projection(p: Parameters, name: string, x: Tensor, bias = false): Tensor {
  const adapter = p.adapter?.(name);
  let y = matmul(x, p(`${name}.weight`), { transposeB: true });
  if (adapter) {
    const { down, up, scale } = adapter;
    y = add(y, matmul(matmul(x, down, { transposeB: true }), up, { transposeB: true, scale }));
  }
  return bias ? add(y, p(`${name}.bias`)) : y;
}

function mlp(p: Parameters, at: string, x: Tensor): Tensor {
  return projection(
    p,
    `${at}.down_proj`,
    swiglu(projection(p, `${at}.gate_proj`, x), projection(p, `${at}.up_proj`, x)),
  );
}

/** Rotary positions: the tables of angles, and each token's row in them. */
export interface Rotary {
  readonly positions: Tensor; // [N] i32
  readonly cos: Tensor; // [maxPositions, dh/2]
  readonly sin: Tensor;
}

/** Angles t·θ^(−2i/dh), in the half-split convention of the Qwen2 family. */
export function rotaryTables(config: ModelConfig, positions: Tensor): Rotary {
  const half = headSize(config) / 2;
  const angles = (f: (x: number) => number) => {
    const table = new Float32Array(config.maxPositions * half);
    for (let t = 0; t < config.maxPositions; t++) {
      for (let i = 0; i < half; i++) table[t * half + i] = f(t * config.ropeTheta ** (-i / half));
    }
    return constant(table, [config.maxPositions, half]);
  };
  return { positions, cos: angles(Math.cos), sin: angles(Math.sin) };
}
