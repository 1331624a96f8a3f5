/**
 * Blocks: pieces of a transformer block as ops of their own: engines have kernels for them, and their gradients,
 * written out here, read and write the large arrays fewer times than those of their parts would.
 */
import type { Emitter } from '../emitter.ts';
import { elements } from '../ndarray.ts';
import { equalShapes, sizeOf } from '../shape.ts';
import { apply, misfit, type OpDefinition, requireDType, type Tensor } from '../tensor.ts';
import { add, mul, neg, sigmoid, sub } from './elementwise.ts';
import { reshape } from './layout.ts';
import { matmul } from './matmul.ts';

interface NormAttrs {
  readonly eps: number;
}

const rmsNormOp: OpDefinition<NormAttrs> = {
  name: 'rmsNorm',
  infer(inputs) {
    requireNorm('rmsNorm', inputs);
    return inputs[0]!;
  },
  /**
   * With r = 1/√(mean(x²) + ε) and dy⊙x = p:  dgain = Σ r·p over rows,  dx = r·(dy⊙gain) − x·r³·(p·gain)/d.
   */
  gradient(_y, dy, [x, gain], { eps }) {
    const d = gain!.shape[0]!;
    const rows = sizeOf(x!.shape.slice(0, -1));
    const r = apply(rmsInverseOp, [x!, gain!], { eps });
    const p = mul(dy, x!);
    const flat = reshape(p, [rows, d]);
    const along = reshape(matmul(flat, reshape(gain!, [d, 1])), r.shape);
    const shrink = mul(mul(mul(mul(r, r), r), along), 1 / (d as number));
    return [sub(mul(mul(dy, gain!), r), mul(x!, shrink)), reshape(matmul(reshape(r, [1, rows]), flat), [d])];
  },
  onnx: (emit, x, _y, { eps }) => normNode(emit, x, eps)[0]!,
  reference([x, gain], _shape, { eps }) {
    const d = gain!.data.length;
    const r = inverses(x!.data, d, eps);
    return x!.data.map((v, i) => v * r[Math.floor(i / d)]! * gain!.data[i % d]!);
  },
};

/** 1/√(mean(x²) + ε) of each row, which the kernel of the norm gives as its second output. */
const rmsInverseOp: OpDefinition<NormAttrs> = {
  name: 'rmsInverse',
  infer(inputs) {
    requireNorm('rmsInverse', inputs);
    return { shape: [...inputs[0]!.shape.slice(0, -1), 1], dtype: 'f32' };
  },
  onnx(emit, [x, gain], _y, { eps }) {
    if (emit.options.normInverse) return normNode(emit, [x!, gain!], eps)[1]!;
    const square = emit.node('ReduceMean', [emit.node('Mul', [x!, x!]), emit.i64([-1])], { keepdims: 1 });
    return emit.node('Reciprocal', [emit.node('Sqrt', [emit.node('Add', [square, emit.scalar(eps)])])]);
  },
  reference: ([x, gain], _shape, { eps }) => inverses(x!.data, gain!.data.length, eps),
};

function normNode(emit: Emitter, x: readonly string[], eps: number): readonly string[] {
  const attrs = { axis: -1, epsilon: { float: eps }, stash_type: 1 };
  return emit.nodes('SimplifiedLayerNormalization', x, attrs, emit.options.normInverse ? 2 : 1);
}

function requireNorm(op: string, inputs: readonly Tensor[]): void {
  const [x, gain] = inputs as [Tensor, Tensor];
  requireDType(op, inputs, 'f32');
  if (gain.shape.length !== 1 || typeof gain.shape[0] !== 'number' || x.shape.at(-1) !== gain.shape[0]) {
    throw misfit(op, 'expected x [..., d] and gain [d]', inputs);
  }
}

function inverses(x: Float64Array, d: number, eps: number): Float64Array {
  return Float64Array.from({ length: x.length / d }, (_, row) => {
    let sum = 0;
    for (let i = row * d; i < (row + 1) * d; i++) sum += x[i]! * x[i]!;
    return 1 / Math.sqrt(sum / d + eps);
  });
}

/**
 * x / √(mean(x²) + ε) ⊙ gain over the last axis.
 * @param x    f32 [..., d]
 * @param gain f32 [d]
 * @see Zhang & Sennrich 2019, https://arxiv.org/abs/1910.07467
 */
export function rmsNorm(x: Tensor, gain: Tensor, eps: number): Tensor {
  return apply(rmsNormOp, [x, gain], { eps });
}

const swigluOp: OpDefinition<Record<string, never>> = {
  name: 'swiglu',
  infer(inputs) {
    requireDType('swiglu', inputs, 'f32');
    if (!equalShapes(inputs[0]!.shape, inputs[1]!.shape))
      throw misfit('swiglu', 'operands must have one shape', inputs);
    return inputs[0]!;
  },
  /** With s = σ(gate): dup = dy·gate·s and dgate = dy·(y + s·(up − y)), which is dy·up·(s + gate·s·(1 − s)). */
  gradient(y, dy, [gate, up]) {
    const s = sigmoid(gate!);
    return [mul(dy, add(y, mul(s, sub(up!, y)))), mul(dy, mul(gate!, s))];
  },
  onnx: (emit, [gate, up]) => emit.node('Mul', [emit.node('Mul', [gate!, emit.node('Sigmoid', [gate!])]), up!]),
  reference: ([gate, up]) => gate!.data.map((v, i) => (v / (1 + Math.exp(-v))) * up!.data[i]!),
};

/** gate·σ(gate)·up, element by element. @see Shazeer 2020, https://arxiv.org/abs/2002.05202 */
export function swiglu(gate: Tensor, up: Tensor): Tensor {
  return apply(swigluOp, [gate, up], {});
}

interface RotaryAttrs {
  readonly heads: number;
}

const rotaryOp: OpDefinition<RotaryAttrs> = {
  name: 'rotary',
  infer(inputs, { heads }) {
    const [x, positions, cos, sin] = inputs as [Tensor, Tensor, Tensor, Tensor];
    const width = x.shape[1];
    if (x.dtype !== 'f32' || positions.dtype !== 'i32' || x.shape.length !== 2 || typeof width !== 'number') {
      throw misfit('rotary', 'expected x f32 [N, heads*dh] and positions i32 [N]', inputs);
    }
    if (!equalShapes(positions.shape, x.shape.slice(0, 1)) || !equalShapes(cos.shape, sin.shape)) {
      throw misfit('rotary', 'expected x [N, heads*dh], positions [N], cos and sin [max, dh/2]', inputs);
    }
    if (cos.shape.length !== 2 || (cos.shape[1] as number) * 2 * heads !== width) {
      throw misfit('rotary', `${heads} heads need cos and sin [max, ${width / heads / 2}]`, inputs);
    }
    return x;
  },
  gradient: (_y, dy, [, positions, cos, sin], { heads }) => [
    rotary(dy, positions!, cos!, neg(sin!), heads), // turning back
    null,
    null,
    null,
  ],
  onnx(emit, [x, positions, cos, sin], y, { heads }) {
    const width = y.shape[1] as number;
    if (emit.options.contrib) {
      // Each row is a sequence of its own: the kernel wants sequences no longer than the tables.
      const ids = emit.node('Reshape', [emit.node('Cast', [positions!], { to: 7 }), emit.i64([-1, 1])]);
      const batch = emit.node('Reshape', [x!, emit.i64([-1, 1, width])]);
      return emit.node('Reshape', [
        emit.microsoft('RotaryEmbedding', [batch, ids, cos!, sin!], {}),
        emit.i64([-1, width]),
      ]);
    }
    const half = width / heads / 2;
    const angle = (table: string) =>
      emit.node('Reshape', [emit.node('Gather', [table, positions!], { axis: 0 }), emit.i64([-1, 1, half])]);
    const [c, s] = [angle(cos!), angle(sin!)];
    const split = emit.node('Reshape', [x!, emit.i64([-1, heads, 2 * half])]);
    const part = (i: number) =>
      emit.node('Slice', [split, emit.i64([i * half]), emit.i64([(i + 1) * half]), emit.i64([2])]);
    const [a, b] = [part(0), part(1)];
    const turned = [
      emit.node('Sub', [emit.node('Mul', [a, c]), emit.node('Mul', [b, s])]),
      emit.node('Add', [emit.node('Mul', [a, s]), emit.node('Mul', [b, c])]),
    ];
    return emit.node('Reshape', [emit.node('Concat', turned, { axis: 2 }), emit.i64([-1, width])]);
  },
  reference([x, positions, cos, sin], shape, { heads }) {
    const half = shape[1]! / heads / 2;
    const out = new Float64Array(elements(shape));
    for (let row = 0; row < shape[0]!; row++) {
      const angles = positions!.data[row]! * half;
      for (let head = 0; head < heads; head++) {
        const at = (row * heads + head) * 2 * half;
        for (let i = 0; i < half; i++) {
          const [a, b] = [x!.data[at + i]!, x!.data[at + half + i]!];
          const [c, s] = [cos!.data[angles + i]!, sin!.data[angles + i]!];
          out[at + i] = a * c - b * s;
          out[at + half + i] = a * s + b * c;
        }
      }
    }
    return out;
  },
};

/**
 * Rotary positions: element i of each head's first half is turned against element i of its second half by the angle
 * of the row's position.
 * @param x         f32 [N, heads·dh]
 * @param positions i32 [N], in [0, max)
 * @param cos       f32 [max, dh/2]; no gradient flows into the tables
 * @param sin       f32 [max, dh/2]
 * @see Su et al. 2021, https://arxiv.org/abs/2104.09864
 */
export function rotary(x: Tensor, positions: Tensor, cos: Tensor, sin: Tensor, heads: number): Tensor {
  return apply(rotaryOp, [x, positions, cos, sin], { heads });
}
