/** Scaled dot-product attention as one op: engines that have a kernel for it keep a head's scores in their cache. */
import { ShapeError } from '../../core/errors.ts';
import type { Emitter } from '../emitter.ts';
import { gradients } from '../gradients.ts';
import { topological } from '../graph.ts';
import { elements } from '../ndarray.ts';
import { sameShape } from '../shape.ts';
import { apply, input, misfit, type OpDefinition, requireDType, type Tensor } from '../tensor.ts';
import { add, mul, stopGradient } from './elementwise.ts';
import { reshape, transpose } from './layout.ts';
import { matmul } from './matmul.ts';
import { reduceSum, softmax } from './reduce.ts';

interface AttentionAttrs {
  readonly heads: number;
  readonly kvHeads: number;
  readonly scale: number;
}

const attentionOp: OpDefinition<AttentionAttrs> = {
  name: 'attention',
  infer(inputs, { heads, kvHeads }) {
    const [q, k, v, mask] = inputs as [Tensor, Tensor, Tensor, Tensor];
    requireDType('attention', inputs, 'f32');
    const [B, S, width] = q.shape;
    const T = k.shape[1];
    const wide = typeof width === 'number' && width % heads === 0 && heads % kvHeads === 0;
    if (q.shape.length !== 3 || !wide || !sameShape(k.shape, [B!, T!, (width / heads) * kvHeads])) {
      throw misfit('attention', `expected q [B, S, ${heads}*dh] and k, v [B, T, ${kvHeads}*dh]`, inputs);
    }
    if (!sameShape(v.shape, k.shape) || !sameShape(mask.shape, [B!, S!, T!])) {
      throw misfit('attention', 'v must have the shape of k, and the mask be [B, S, T]', inputs);
    }
    return q;
  },
  /** That of its parts, from scores computed once more: the kernel keeps none. */
  gradient(_y, dy, inputs, attrs) {
    const leaves = inputs.map(stopGradient);
    return gradients(reduceSum(mul(parts(leaves, attrs), stopGradient(dy))), leaves);
  },
  onnx(emit, x, y, attrs) {
    const { heads, kvHeads, scale } = attrs;
    if (!emit.options.attention) return emitParts(emit, x, y.inputs, attrs);
    const [q, k, v, mask] = x as [string, string, string, string];
    const perHead = emit.node('Unsqueeze', [mask, emit.i64([1])]);
    return emit.node('Attention', [q, k, v, perHead], {
      q_num_heads: heads,
      kv_num_heads: kvHeads,
      scale: { float: scale },
    });
  },
  reference([q, k, v, mask], shape, { heads, kvHeads, scale }) {
    const [B, S, width] = shape as [number, number, number];
    const T = k!.shape[1]!;
    const dh = width / heads;
    const out = new Float64Array(elements(shape));
    for (let b = 0; b < B; b++) {
      for (let head = 0; head < heads; head++) {
        const from = Math.floor((head * kvHeads) / heads) * dh;
        const key = (t: number) => (b * T + t) * kvHeads * dh + from;
        for (let s = 0; s < S; s++) {
          const at = (b * S + s) * width + head * dh;
          const weights = Array.from({ length: T }, (_, t) => {
            let dot = 0;
            for (let i = 0; i < dh; i++) dot += q!.data[at + i]! * k!.data[key(t) + i]!;
            return dot * scale + mask!.data[(b * S + s) * T + t]!;
          });
          const peak = Math.max(...weights);
          const shares = weights.map((score) => Math.exp(score - peak));
          const total = shares.reduce((sum, share) => sum + share, 0);
          for (const [t, share] of shares.entries()) {
            for (let i = 0; i < dh; i++) out[at + i]! += (share / total) * v!.data[key(t) + i]!;
          }
        }
      }
    }
    return out;
  },
};

/**
 * softmax(scale·q·kᵀ + mask)·v, head by head; query heads share the keys and values of their group.
 * @param q    f32 [B, S, heads·dh]
 * @param k    f32 [B, T, kvHeads·dh]; query head h reads key head ⌊h·kvHeads/heads⌋
 * @param v    f32 [B, T, kvHeads·dh]
 * @param mask f32 [B, S, T], added to the scores of every head
 * @see Vaswani et al. 2017, https://arxiv.org/abs/1706.03762; Ainslie et al. 2023, https://arxiv.org/abs/2305.13245
 */
export function attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, attrs: AttentionAttrs): Tensor {
  const { heads, kvHeads, scale } = attrs;
  if (!(heads >= 1 && kvHeads >= 1 && scale > 0)) {
    throw new ShapeError(`attention: expected heads, kvHeads and a scale above 0, got ${heads}, ${kvHeads}, ${scale}`);
  }
  return apply(attentionOp, [q, k, v, mask], attrs);
}

/** The same of smaller ops. */
function parts([q, k, v, mask]: readonly Tensor[], { heads, kvHeads, scale }: AttentionAttrs): Tensor {
  const [B, S, width] = q!.shape as [Tensor['shape'][0], Tensor['shape'][0], number];
  const T = k!.shape[1]!;
  const [dh, repeat] = [width / heads, heads / kvHeads];
  // [B, kvHeads, repeat, ·, dh]
  const queries = transpose(reshape(q!, [B, S, kvHeads, repeat, dh]), [0, 2, 3, 1, 4]);
  const [keys, values] = [k!, v!].map((x) => transpose(reshape(x, [B, T, kvHeads, 1, dh]), [0, 2, 3, 1, 4]));
  const scores = add(matmul(queries, keys!, { transposeB: true, scale }), reshape(mask!, [B, 1, 1, S, T]));
  return reshape(transpose(matmul(softmax(scores), values!), [0, 3, 1, 2, 4]), [B, S, width]);
}

/** Emits the parts, for an engine without the kernel. */
function emitParts(emit: Emitter, x: readonly string[], inputs: readonly Tensor[], attrs: AttentionAttrs): string {
  const leaves = inputs.map(({ shape, dtype }, i) => input(x[i]!, shape, dtype));
  const result = parts(leaves, attrs);
  const names = new Map<Tensor, string>();
  for (const node of topological([result])) {
    const operands = node.inputs.map((operand) => names.get(operand)!);
    names.set(node, node.definition.onnx(emit, operands, node, node.attrs));
  }
  return names.get(result)!;
}
