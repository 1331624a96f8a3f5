import { ShapeError } from '../../core/errors.ts';
import { largestOf } from '../../core/extremes.ts';
import { topological } from './graph.ts';
import { add } from './ops/elementwise.ts';
import { broadcastTo } from './ops/layout.ts';
import { cutLevel, delayUntil } from './ops/recompute.ts';
import { equalShapes } from './shape.ts';
import { constant, describe, type Tensor } from './tensor.ts';

/**
 * Gradients d loss / d x for each x of `wrt`, as tensors of the same graph language: reverse-mode differentiation by
 * building each op's gradient expression. Ops whose operands do not depend on `wrt` are left out.
 * @param loss f32 scalar []
 * @param wrt  f32 tensors of any kind; where the loss does not depend on one, zeros of its shape
 * @throws {ShapeError} if the loss is no f32 scalar or a tensor of `wrt` is not f32
 */
export function gradients(loss: Tensor, wrt: readonly Tensor[]): Tensor[] {
  if (loss.dtype !== 'f32' || loss.shape.length > 0) {
    throw new ShapeError(`gradients: the loss must be an f32 scalar [], got ${describe(loss)}`);
  }
  return pullBack(loss, constant(1), wrt);
}

/**
 * Gradients d loss / d x for each x of `wrt`, where `dy` = d loss / d y is known from elsewhere: one part of a program that
 * is differentiated part by part.
 * @param dy f32, of y's shape
 * @throws {ShapeError} if the shapes differ or a tensor is not f32
 */
export function pullBack(y: Tensor, dy: Tensor, wrt: readonly Tensor[]): Tensor[] {
  if (y.dtype !== 'f32' || dy.dtype !== 'f32' || !equalShapes(y.shape, dy.shape)) {
    throw new ShapeError(`pullBack: expected f32 y and dy of one shape, got ${describe(y)}, ${describe(dy)}`);
  }
  for (const x of wrt) {
    if (x.dtype !== 'f32') throw new ShapeError(`gradients: only f32 tensors have gradients, got ${describe(x)}`);
  }
  const order = topological([y]);
  const depends = new Set<Tensor>(wrt);
  for (const node of order) if (node.inputs.some((x) => depends.has(x))) depends.add(node);

  const flowing = new Map<Tensor, Tensor>([[y, dy]]);
  const again = recomputeStretches(order);
  for (const node of order.toReversed()) {
    const slope = flowing.get(node);
    if (slope === undefined || node.definition.gradient === undefined || !node.inputs.some((x) => depends.has(x)))
      continue;
    const { y: value, inputs } = again(node, slope);
    const parts = node.definition.gradient(value, slope, inputs, node.attrs);
    for (const [i, x] of node.inputs.entries()) {
      const part = parts[i];
      if (part === null || part === undefined || !depends.has(x)) continue;
      const before = flowing.get(x);
      flowing.set(x, before === undefined ? part : add(before, part));
    }
  }
  return wrt.map((x) => flowing.get(x) ?? broadcastTo(constant(0), x.shape));
}

/**
 * Recomputed node, as the backward pass sees it: what lies between two cuts is a copy, made from what entered at the
 * first.
 */
type Recomputed = (node: Tensor, dy: Tensor) => { readonly y: Tensor; readonly inputs: readonly Tensor[] };

/**
 * Recomputes stretches: a stretch is everything whose highest cut is the same. Its copy starts when the first gradient
 * reaches it, and not before. What depends on the highest cut of all (the loss), or on none, is kept as it is.
 * @param order operands before their users
 */
function recomputeStretches(order: readonly Tensor[]): Recomputed {
  const stretch = new Map<Tensor, number>();
  let highest = 0;
  for (const node of order) {
    const level = largestOf(
      node.inputs.map((x) => stretch.get(x)!),
      cutLevel(node) ?? 0,
    );
    stretch.set(node, level);
    highest = Math.max(highest, level);
  }
  const copies = new Map<Tensor, Tensor>();
  const signals = new Map<number, Tensor>();
  const copy = (node: Tensor, at: number): Tensor => {
    if (stretch.get(node) !== at) return node;
    let made = copies.get(node);
    if (made === undefined) {
      made = cutLevel(node)
        ? delayUntil(node.inputs[0]!, signals.get(at)!)
        : { ...node, inputs: node.inputs.map((x) => copy(x, at)) };
      copies.set(node, made);
    }
    return made;
  };
  return (node, dy) => {
    const at = stretch.get(node)!;
    if (at === 0 || at === highest || cutLevel(node)) return { y: node, inputs: node.inputs };
    if (!signals.has(at)) signals.set(at, dy);
    return { y: copy(node, at), inputs: node.inputs.map((x) => copy(x, at)) };
  };
}
