/** Splits a computation in two programs, of which the second reads what the first has computed instead of computing it again. */
import { topological } from './graph.ts';
import { input, inputAttrs, type Tensor } from './tensor.ts';

/** Computation in two parts. */
export interface SplitComputation {
  /** Values of the first part that the second reads, by the names of the inputs in their place. */
  readonly kept: Readonly<Record<string, Tensor>>;
  /** Results of the second part, over those inputs. */
  readonly later: readonly Tensor[];
}

/**
 * Replaces what `later` shares with `first` by inputs `kept.0`, `kept.1`, … Only values that depend on `roots` are kept: what is
 * made of other inputs (masks, places in a layout) is cheap and is made again. Views are not kept beside what they show.
 * @param roots inputs of the first part, such as a layer's hidden states and weights
 */
export function splitComputation(
  first: readonly Tensor[],
  later: readonly Tensor[],
  roots: readonly Tensor[],
): SplitComputation {
  const changing = new Set<Tensor>(roots);
  for (const node of topological(first)) if (node.inputs.some((x) => changing.has(x))) changing.add(node);
  const kept: Record<string, Tensor> = {};
  const copies = new Map<Tensor, Tensor>();
  const copy = (node: Tensor): Tensor => {
    let made = copies.get(node);
    if (made !== undefined) return made;
    if (inputAttrs(node)) made = node;
    else if (changing.has(node) && node.op !== 'reshape') {
      const name = `kept.${Object.keys(kept).length}`;
      kept[name] = node;
      made = input(name, node.shape, node.dtype);
    } else {
      const inputs = node.inputs.map(copy);
      made = inputs.every((x, i) => x === node.inputs[i]) ? node : { ...node, inputs };
    }
    copies.set(node, made);
    return made;
  };
  return { later: later.map(copy), kept };
}
