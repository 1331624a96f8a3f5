/**
 * Cuts: places where the backward pass starts a stretch of the forward pass again, instead of the stretch's activations
 * being kept since then. `gradients` (../gradients.ts) rebuilds what lies between two cuts.
 *
 * @see Chen et al. 2016, https://arxiv.org/abs/1604.06174
 */
import { apply, type OpDefinition, type Tensor } from '../tensor.ts';

interface CutAttrs {
  readonly level: number;
}

const cutOp: OpDefinition<CutAttrs> = {
  name: 'cut',
  infer: ([x]) => x!,
  gradient: (_y, dy) => [dy],
  onnx: (_emit, [x]) => x!,
  reference: ([x]) => x!.data,
};

/**
 * Cut: x itself. What is computed from it, up to a cut of a higher level, is computed again for gradients.
 * @param level ≥ 1; cuts that follow each other have rising levels
 */
export function cut(x: Tensor, level: number): Tensor {
  return apply(cutOp, [x], { level });
}

/** Level of a cut; undefined for any other tensor. */
export function cutLevel(x: Tensor): number | undefined {
  return x.definition === cutOp ? (x.attrs as CutAttrs).level : undefined;
}

const afterOp: OpDefinition<Record<string, never>> = {
  name: 'after',
  infer: ([x]) => x!,
  /**
   * A true dependency: equal nodes are made once, by our emitter and by onnxruntime, and onnxruntime orders nodes by its
   * own walk; a stretch that begins with this is neither merged with the first time nor run before its time.
   */
  onnx(emit, [x, signal]) {
    const first = emit.node('Slice', [emit.node('Reshape', [signal!, emit.i64([-1])]), emit.i64([0]), emit.i64([1])]);
    return emit.node('Add', [x!, emit.node('Mul', [first, emit.scalar(0)])]);
  },
  reference: ([x]) => x!.data,
};

/** Delays x until `signal`, f32, is there. No gradient flows through it. */
export function delayUntil(x: Tensor, signal: Tensor): Tensor {
  return apply(afterOp, [x, signal], {});
}
