import { LongplayError } from '../../core/errors.ts';
import type { SymbolSource } from './emitter.ts';
import { multipleOf, type Shape } from './shape.ts';
import { constantAttrs, type DType, describe, inputAttrs, type Tensor } from './tensor.ts';

/** Value that goes in or comes out by name. */
export interface ValueInfo {
  readonly name: string;
  readonly shape: Shape;
  readonly dtype: DType;
}

/** Program that an engine compiles: named outputs and everything they need, equal nodes merged. */
export interface Graph {
  /** Ordinary inputs, in order of first use. */
  readonly inputs: readonly ValueInfo[];
  /** Weights, in order of first use. */
  readonly parameters: readonly ValueInfo[];
  readonly outputs: readonly ValueInfo[];
  /** Results: the tensor behind each output, by its name. */
  readonly results: ReadonlyMap<string, Tensor>;
  /** Nodes: all tensors, operands before their users. */
  readonly nodes: readonly Tensor[];
  /** Source of each symbolic size. */
  readonly symbols: ReadonlyMap<string, SymbolSource>;
  /** True where its matrices usually meet few rows at a time, as in decoding; kernels are chosen by it. */
  readonly fewRows: boolean;
}

/**
 * Collects what the outputs need into a graph. Inputs that no output needs are not part of it. An output may bear the
 * name of an input, as the new value of a weight does.
 * @param options.fewRows see {@link Graph}
 * @throws {LongplayError} BAD_ARGUMENT if there is no output, or two inputs bear one name
 */
export function defineGraph(outputs: Readonly<Record<string, Tensor>>, { fewRows = false } = {}): Graph {
  const names = Object.keys(outputs);
  if (names.length === 0) throw new LongplayError('BAD_ARGUMENT', 'defineGraph: there must be an output');
  const canonical = mergeEqualNodes(topological(Object.values(outputs)));
  const nodes = [...new Set(canonical.values())];
  const declared = new Map<string, Tensor>();
  const inputs: ValueInfo[] = [];
  const parameters: ValueInfo[] = [];
  for (const node of nodes) {
    const info = inputAttrs(node);
    if (info === undefined) continue;
    const other = declared.get(info.name);
    if (other !== undefined) {
      throw new LongplayError(
        'BAD_ARGUMENT',
        `defineGraph: two inputs of one name: ${describe(other)}, ${describe(node)}`,
      );
    }
    if (!/^[^%@]/.test(info.name)) {
      throw new LongplayError(
        'BAD_ARGUMENT',
        `defineGraph: an input's name must not be empty or start with % or @, got '${info.name}'`,
      );
    }
    declared.set(info.name, node);
    (info.parameter ? parameters : inputs).push({ name: info.name, shape: info.shape, dtype: info.dtype });
  }
  const results = new Map(names.map((name) => [name, canonical.get(outputs[name]!)!]));
  return {
    inputs,
    parameters,
    outputs: [...results].map(([name, { shape, dtype }]) => ({ name, shape, dtype })),
    results,
    nodes,
    symbols: symbolSources(inputs),
    fewRows,
  };
}

/**
 * Merges equal nodes: each tensor's representative: of equal tensors (same op, attributes and operands) the first.
 * Inputs stay apart.
 */
function mergeEqualNodes(order: readonly Tensor[]): Map<Tensor, Tensor> {
  const representative = new Map<Tensor, Tensor>();
  const ids = new Map<Tensor, number>();
  const byKey = new Map<string, Tensor>();
  for (const node of order) {
    const operands = node.inputs.map((x) => representative.get(x)!);
    const attrs = inputAttrs(node) ? undefined : attrsKey(node);
    const key = attrs === undefined ? undefined : `${node.op} ${operands.map((x) => ids.get(x))} ${attrs}`;
    let same = key === undefined ? undefined : byKey.get(key);
    if (same === undefined) {
      same = operands.every((x, i) => x === node.inputs[i]) ? node : { ...node, inputs: operands };
      ids.set(same, ids.size);
      if (key !== undefined) byKey.set(key, same);
    }
    representative.set(node, same);
  }
  return representative;
}

/** Text equal for equal attributes; undefined for large constants, which are not compared. */
function attrsKey(node: Tensor): string | undefined {
  const fixed = constantAttrs(node);
  if (fixed === undefined) return JSON.stringify(node.attrs);
  if (fixed.data.length > 16) return undefined;
  const bits = Buffer.from(fixed.data.buffer, fixed.data.byteOffset, fixed.data.byteLength).toString('hex');
  return `${fixed.dtype}${fixed.shape} ${bits}`;
}

/**
 * Sources of symbols: each is read from the first input dimension that is a multiple of it alone, preferably the symbol
 * itself.
 */
function symbolSources(inputs: readonly ValueInfo[]): Map<string, SymbolSource> {
  const sources = new Map<string, SymbolSource>();
  for (const { name, shape } of inputs) {
    for (const [axis, dim] of shape.entries()) {
      const known = multipleOf(dim);
      if (known === undefined) continue;
      const before = sources.get(known.symbol);
      if (before === undefined || known.multiple < before.multiple) {
        sources.set(known.symbol, { input: name, axis, multiple: known.multiple });
      }
    }
  }
  return sources;
}

/**
 * Topological order of every tensor that the outputs need, operands before their users. Without recursion: graphs are
 * deeper than the stack.
 */
export function topological(outputs: readonly Tensor[]): Tensor[] {
  const order: Tensor[] = [];
  const seen = new Set<Tensor>();
  const stack: { readonly node: Tensor; next: number }[] = [];
  for (const output of outputs) {
    if (seen.has(output)) continue;
    seen.add(output);
    stack.push({ node: output, next: 0 });
    while (stack.length > 0) {
      const top = stack.at(-1)!;
      const operand = top.node.inputs[top.next++];
      if (operand === undefined) {
        order.push(top.node);
        stack.pop();
      } else if (!seen.has(operand)) {
        seen.add(operand);
        stack.push({ node: operand, next: 0 });
      }
    }
  }
  return order;
}
