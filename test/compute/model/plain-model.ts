/**
 * The model again, in plain float64 loops over one sequence: written from the definition, sharing no code with
 * src/compute/model, as what the graphs are checked against.
 */
import type { ModelConfig } from '../../../src/compute/model/config.ts';

export type Weights = Readonly<Record<string, ArrayLike<number>>>;

export interface PlainSequence {
  /** Prompt and all that follows. */
  readonly tokens: readonly number[];
  readonly promptLength: number;
  /** Token ids that carry the focus bit. */
  readonly focus: ReadonlySet<number>;
}

/** y[o] = Σᵢ W[o, i]·x[i] (+ b[o]) */
export function linear(weight: ArrayLike<number>, x: readonly number[], bias?: ArrayLike<number>): number[] {
  const outputs = weight.length / x.length;
  return Array.from({ length: outputs }, (_, o) => {
    let sum = bias ? bias[o]! : 0;
    for (let i = 0; i < x.length; i++) sum += weight[o * x.length + i]! * x[i]!;
    return sum;
  });
}

function norm(x: readonly number[], gain: ArrayLike<number>, eps: number): number[] {
  const mean = x.reduce((sum, v) => sum + v * v, 0) / x.length;
  return x.map((v, i) => (v / Math.sqrt(mean + eps)) * gain[i]!);
}

export function silu(x: number): number {
  return x / (1 + Math.exp(-x));
}

/** GELU in its tanh form. */
function gelu(x: number): number {
  return 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));
}

function bend(x: number, cap: number | undefined): number {
  return cap === undefined ? x : cap * Math.tanh(x / cap);
}

function turn(config: ModelConfig, x: readonly number[], position: number, dh: number, slides: boolean): number[] {
  const { ropeTheta, localRopeTheta, ropeFactors, ropeScale = 1, rotaryWidth: width = dh } = config;
  const local = slides && localRopeTheta !== undefined;
  const theta = local ? localRopeTheta : ropeTheta;
  const out = [...x];
  const half = width / 2;
  for (let start = 0; start < x.length; start += dh) {
    for (let i = 0; i < half; i++) {
      const angle = (position * theta ** ((-2 * i) / width)) / (local ? 1 : (ropeFactors?.[i] ?? 1));
      const [a, b] = [x[start + i]! * ropeScale, x[start + half + i]! * ropeScale];
      out[start + i] = a * Math.cos(angle) - b * Math.sin(angle);
      out[start + half + i] = b * Math.cos(angle) + a * Math.sin(angle);
    }
  }
  return out;
}

/** Embedding of one token given the two before it. */
export function plainEmbedding(
  config: ModelConfig,
  w: Weights,
  [id, before1, before2]: readonly [number, number, number],
  focused: boolean,
): number[] {
  const { hiddenSize: d, tokenShift, focusBit, embeddingScale } = config;
  const table = w['model.embed_tokens.weight']!;
  return Array.from({ length: d }, (_, i) => {
    let x = table[id * d + i]!;
    if (tokenShift > 0) x += table[before1 * d + i]! * w['token_shift.weight']![i]!;
    if (tokenShift > 1) x += table[before2 * d + i]! * w['token_shift.weight']![d + i]!;
    if (focusBit && focused) x += w['focus_embedding.weight']![i]!;
    return x * embeddingScale;
  });
}

/** Hidden states after the final norm, one per token. */
export function plainHidden(config: ModelConfig, w: Weights, sequence: PlainSequence): number[][] {
  const { heads, kvHeads, hiddenSize: d, rmsNormEps: eps, prefixBidirectional } = config;
  const { sameTokenBias = 0, sameLineBias, slidingLayers = [], slidingWindow: window = Infinity } = config;
  const { tokens, promptLength, focus } = sequence;
  const dh = config.headDim ?? d / heads;
  const scale = config.queryScale ?? 1 / Math.sqrt(dh);
  const normOf = (name: string, row: readonly number[]) =>
    norm(
      row,
      Array.from(w[`${name}.weight`]!, (gain) => (config.centredGains ? 1 + gain : gain)),
      eps,
    );
  const before = (t: number) => (t < 0 ? 0 : tokens[t]!);
  const line = (t: number) => tokens.slice(0, t + 1).filter((id) => id === sameLineBias?.newline).length;
  const sees = (t: number, s: number) => s <= t || (prefixBidirectional && t < promptLength && s < promptLength);
  let x = tokens.map((id, t) => plainEmbedding(config, w, [id, before(t - 1), before(t - 2)], focus.has(id)));
  for (let layer = 0; layer < config.layers; layer++) {
    const at = `model.layers.${layer}`;
    const project = (name: string, h: readonly number[]) =>
      linear(w[`${at}.self_attn.${name}_proj.weight`]!, h, w[`${at}.self_attn.${name}_proj.bias`]);
    const slides = slidingLayers.includes(layer);
    const normed = x.map((row) => normOf(`${at}.input_layernorm`, row));
    const q = normed.map((h, t) => turn(config, project('q', h), t, dh, slides));
    const k = normed.map((h, t) => turn(config, project('k', h), t, dh, slides));
    const v = normed.map((h) => project('v', h));
    x = x.map((row, t) => {
      const mixed: number[] = [];
      for (let head = 0; head < heads; head++) {
        const from = Math.floor((head * kvHeads) / heads) * dh;
        const scores = tokens.map((_, s) => {
          if (!sees(t, s) || (slides && t - s >= window)) return Number.NEGATIVE_INFINITY;
          let dot = 0;
          for (let i = 0; i < dh; i++) dot += q[t]![head * dh + i]! * k[s]![from + i]!;
          const looksUp = head === 0 && s !== t && tokens[s] === tokens[t];
          const inLine = head === heads - 1 && Math.max(s, t) < promptLength && line(s) === line(t);
          const score = bend(dot * scale, config.attentionCap);
          return score + (looksUp ? sameTokenBias : 0) + (inLine ? (sameLineBias?.bias ?? 0) : 0);
        });
        const weights = plainSoftmax(scores);
        for (let i = 0; i < dh; i++) mixed.push(weights.reduce((sum, p, s) => sum + p * v[s]![from + i]!, 0));
      }
      const given = linear(w[`${at}.self_attn.o_proj.weight`]!, mixed);
      const out = config.outputNorms ? normOf(`${at}.post_attention_layernorm`, given) : given;
      return row.map((value, i) => value + out[i]!);
    });
    x = x.map((row) => {
      const h = normOf(`${at}.${config.outputNorms ? 'pre_feedforward' : 'post_attention'}_layernorm`, row);
      const gate = linear(w[`${at}.mlp.gate_proj.weight`]!, h);
      const up = linear(w[`${at}.mlp.up_proj.weight`]!, h);
      const given = linear(
        w[`${at}.mlp.down_proj.weight`]!,
        gate.map((g, i) => (config.activation === 'gelu' ? gelu(g) : silu(g)) * up[i]!),
      );
      const out = config.outputNorms ? normOf(`${at}.post_feedforward_layernorm`, given) : given;
      return row.map((value, i) => value + out[i]!);
    });
  }
  return x.map((row) => normOf('model.norm', row));
}

export function plainLogits(config: ModelConfig, w: Weights, hidden: readonly number[]): number[] {
  const logits = linear(w[config.tieEmbeddings ? 'model.embed_tokens.weight' : 'lm_head.weight']!, hidden);
  return logits.map((logit) => bend(logit, config.logitCap));
}

export function plainSoftmax(scores: readonly number[]): number[] {
  const peak = Math.max(...scores);
  const e = scores.map((s) => Math.exp(s - peak));
  const total = e.reduce((a, b) => a + b, 0);
  return e.map((v) => v / total);
}
