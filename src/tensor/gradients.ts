import { ShapeError } from '../core/errors.ts';
import { topological } from './graph.ts';
import { add } from './ops/elementwise.ts';
import { broadcastTo } from './ops/layout.ts';
import { constant, describe, type Tensor } from './tensor.ts';

/**
 * d loss / d x for each x of `wrt`, as tensors of the same graph language: reverse-mode differentiation by building
 * each op's gradient expression. Ops whose operands do not depend on `wrt` are left out.
 * @param loss f32 scalar []
 * @param wrt  f32 tensors of any kind; where the loss does not depend on one, zeros of its shape
 * @throws {ShapeError} if the loss is no f32 scalar or a tensor of `wrt` is not f32
 */
export function gradients(loss: Tensor, wrt: readonly Tensor[]): Tensor[] {
  if (loss.dtype !== 'f32' || loss.shape.length > 0) {
    throw new ShapeError(`gradients: the loss must be an f32 scalar [], got ${describe(loss)}`);
  }
  for (const x of wrt) {
    if (x.dtype !== 'f32') throw new ShapeError(`gradients: only f32 tensors have gradients, got ${describe(x)}`);
  }
  const order = topological([loss]);
  const depends = new Set<Tensor>(wrt);
  for (const node of order) if (node.inputs.some((x) => depends.has(x))) depends.add(node);

  const flowing = new Map<Tensor, Tensor>([[loss, constant(1)]]);
  for (const node of order.toReversed()) {
    const dy = flowing.get(node);
    if (dy === undefined || node.definition.gradient === undefined || !node.inputs.some((x) => depends.has(x)))
      continue;
    const parts = node.definition.gradient(node, dy, node.inputs, node.attrs);
    for (const [i, x] of node.inputs.entries()) {
      const part = parts[i];
      if (part === null || part === undefined || !depends.has(x)) continue;
      const before = flowing.get(x);
      flowing.set(x, before === undefined ? part : add(before, part));
    }
  }
  return wrt.map((x) => flowing.get(x) ?? broadcastTo(constant(0), x.shape));
}
