/** Reference engine: every op's meaning in float64, one after another. Slow; the oracle for the others. */
import { LongplayError } from '../../core/errors.ts';
import type { Graph } from '../tensor/graph.ts';
import type { NdArray } from '../tensor/ndarray.ts';
import { type Bindings, evaluate } from '../tensor/shape.ts';
import { type DType, inputAttrs, type Tensor } from '../tensor/tensor.ts';
import type { Engine, Feed, HostTensor, Program, RunTensor } from './engine.ts';
import { bindFeeds, checkData, feedsOf } from './feeds.ts';

/**
 * Interprets a graph in float64.
 * @param feeds    value of each input
 * @param bindings value of each symbolic size
 * @returns value of each output, by name
 */
export function interpret(graph: Graph, feeds: ReadonlyMap<string, NdArray>, bindings: Bindings): Map<string, NdArray> {
  const size = (dim: number | string) => evaluate(dim, bindings);
  const values = new Map<Tensor, NdArray>();
  for (const node of graph.nodes) {
    const name = inputAttrs(node)?.name;
    const fed = name === undefined ? undefined : feeds.get(name);
    const shape = node.shape.map(size);
    const operands = node.inputs.map((x) => values.get(x)!);
    values.set(node, fed ?? { shape, data: node.definition.reference(operands, shape, node.attrs, size) });
  }
  return new Map([...graph.results].map(([name, tensor]) => [name, values.get(tensor)!]));
}

class ReferenceTensor implements RunTensor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly data: HostTensor['data'];
  constructor(dtype: DType, { shape, data }: NdArray) {
    this.dtype = dtype;
    this.shape = shape;
    this.data =
      dtype === 'f32' ? Float32Array.from(data) : dtype === 'i32' ? Int32Array.from(data) : Uint8Array.from(data);
  }
  async read(): Promise<HostTensor> {
    return this;
  }
  dispose(): void {}
}

function programOf(graph: Graph): Program {
  const inputs = feedsOf(graph);
  let disposed = false;
  return {
    inputs,
    outputs: graph.outputs,
    async run(feeds: Readonly<Record<string, Feed>>) {
      if (disposed) throw new LongplayError('ENGINE_FAILED', 'the program was disposed of');
      const bindings = bindFeeds(inputs, feeds);
      const values = new Map<string, NdArray>();
      for (const { name } of inputs) {
        const host = feeds[name] as HostTensor;
        checkData(name, host);
        values.set(name, { shape: host.shape, data: Float64Array.from(host.data) });
      }
      const results = interpret(graph, values, bindings);
      return Object.fromEntries(
        graph.outputs.map(({ name, dtype }) => [name, new ReferenceTensor(dtype, results.get(name)!)]),
      );
    },
    async dispose() {
      disposed = true;
    },
  };
}

export function openReference(reason: string): Engine {
  return {
    name: 'reference',
    device: 'cpu',
    threads: 1,
    reason,
    compile: async (graph) => programOf(graph),
    dispose: async () => {},
  };
}
