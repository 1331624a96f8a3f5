/**
 * Trunk of the transformer over *packed* tokens: linear layers see only real tokens [N, d]; attention goes through a
 * layout (attention.ts) that decides which tokens attend to which.
 */
import { add, concat, cut, gather, gelu, matmul, mul, reshape, rmsNorm, rotary, slice, swiglu } from '../tensor/ops.ts';
import { type Dim, times } from '../tensor/shape.ts';
import { constant, input, type Tensor } from '../tensor/tensor.ts';
import type { ModelConfig } from './config.ts';
import { headSize, rotaryWidth } from './config.ts';

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
  turns: Turns,
  attend: Attend,
): Tensor {
  const at = `model.layers.${layer}`;
  const normed = norm(config, p, `${at}.input_layernorm`, x);
  const rotateHeads = (name: 'q' | 'k', heads: number) => {
    const projected = projection(p, `${at}.self_attn.${name}_proj`, normed, config.qkvBias);
    const own = config.qkNorm ? normHeads(config, p, `${at}.self_attn.${name}_norm`, projected, heads) : projected;
    return config.unrotatedLayers?.includes(layer) ? own : turnHeads(config, turns(layer), own, heads);
  };
  const q = rotateHeads('q', config.heads);
  const k = rotateHeads('k', config.kvHeads);
  const v = projection(p, `${at}.self_attn.v_proj`, normed, config.qkvBias);
  const mixed = projection(p, `${at}.self_attn.o_proj`, attend(layer, { q, k, v }));
  if (!config.outputNorms) {
    const attended = add(x, mixed);
    return add(attended, mlp(config, p, `${at}.mlp`, norm(config, p, `${at}.post_attention_layernorm`, attended)));
  }
  const attended = add(x, norm(config, p, `${at}.post_attention_layernorm`, mixed));
  const inner = mlp(config, p, `${at}.mlp`, norm(config, p, `${at}.pre_feedforward_layernorm`, attended));
  return add(attended, norm(config, p, `${at}.post_feedforward_layernorm`, inner));
}

/** RMSNorm of the last axis, by its name. */
function norm(config: ModelConfig, p: Parameters, name: string, x: Tensor): Tensor {
  const weight = p(`${name}.weight`);
  return rmsNorm(x, config.centredGains ? add(weight, 1) : weight, config.rmsNormEps);
}

/** Norm after the last layer. @param x [N, d] @returns [N, d] */
export function finalNorm(config: ModelConfig, p: Parameters, x: Tensor): Tensor {
  return norm(config, p, 'model.norm', x);
}

/** RMSNorm of each head of packed heads [N, heads·dh], all with one gain [dh]. */
function normHeads(config: ModelConfig, p: Parameters, name: string, x: Tensor, heads: number): Tensor {
  const rows = reshape(x, [times(x.shape[0]!, heads), headSize(config)]);
  return reshape(norm(config, p, name, rows), x.shape);
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

function mlp({ activation }: ModelConfig, p: Parameters, at: string, x: Tensor): Tensor {
  const [gate, up] = [projection(p, `${at}.gate_proj`, x), projection(p, `${at}.up_proj`, x)];
  return projection(p, `${at}.down_proj`, activation === 'gelu' ? mul(gelu(gate), up) : swiglu(gate, up));
}

/** Rotary positions: the tables of angles, and each token's row in them. */
export interface Rotary {
  readonly positions: Tensor; // [N] i32
  readonly cos: Tensor; // [maxPositions, w/2], w of a head's numbers being turned
  readonly sin: Tensor;
}

/** Rotary positions of each layer. */
export type Turns = (layer: number) => Rotary;

/**
 * Angles t·θ^(−2i/w), divided by the factors where there are any, in the half-split convention of the Qwen2 family. Sliding
 * layers may have a base of their own.
 */
export function rotaryTables(config: ModelConfig, positions: Tensor): Turns {
  const half = rotaryWidth(config) / 2;
  const tablesOf = (theta: number, factors: readonly number[] | undefined): Rotary => {
    const angles = (f: (x: number) => number) => {
      const table = new Float32Array(config.maxPositions * half);
      for (let t = 0; t < config.maxPositions; t++) {
        for (let i = 0; i < half; i++)
          table[t * half + i] = f((t * theta ** (-i / half)) / (factors?.[i] ?? 1)) * (config.ropeScale ?? 1);
      }
      return constant(table, [config.maxPositions, half]);
    };
    return { positions, cos: angles(Math.cos), sin: angles(Math.sin) };
  };
  const { localRopeTheta: local, slidingLayers = [] } = config;
  let wide: Rotary | undefined;
  let near: Rotary | undefined;
  return (layer) => {
    if (local !== undefined && slidingLayers.includes(layer)) {
      near ??= tablesOf(local, undefined);
      return near;
    }
    wide ??= tablesOf(config.ropeTheta, config.ropeFactors);
    return wide;
  };
}

/** Turns packed heads [N, heads·dh] by their positions; of each head its first `rotaryWidth` numbers. */
function turnHeads(config: ModelConfig, { positions, cos, sin }: Rotary, x: Tensor, heads: number): Tensor {
  const [dh, width] = [headSize(config), rotaryWidth(config)];
  if (width === dh) return rotary(x, positions, cos, sin, heads);
  const n = x.shape[0]!;
  const rows = reshape(x, [n, heads, dh]);
  const turned = rotary(reshape(slice(rows, 2, 0, width), [n, heads * width]), positions, cos, sin, heads);
  return reshape(concat([reshape(turned, [n, heads, width]), slice(rows, 2, width, dh)], 2), x.shape);
}
