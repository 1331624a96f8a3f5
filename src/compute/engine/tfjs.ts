/**
 * tfjs engine: interprets the graph op by op. It is for its GPU build and for comparison, chosen by name alone; the
 * ONNX engines run the same programs several times as fast on a cpu.
 */
import type { Tensor as TfTensor } from '@tensorflow/tfjs-core';
import { LongplayError, messageOf, UserError } from '../../core/errors.ts';
import { firstLineOf } from '../../core/first-line.ts';
import { readFixed, readFixedAttrs } from '../tensor/fixed.ts';
import type { Graph } from '../tensor/graph.ts';
import { evaluate } from '../tensor/shape.ts';
import { constantAttrs, type DType, type HostData, inputAttrs, type Tensor } from '../tensor/tensor.ts';
import type { Engine, Feed, HostTensor, Program, RunOptions, RunTensor } from './engine.ts';
import { bindFeeds, checkData, feedsOf } from './feeds.ts';
import { TF_TYPE, type Tf, tfjsOps } from './tfjs-ops.ts';

/** Output: numbers here, or, if it was kept, a tensor of tfjs that is fed as it is. */
class TfjsOutput implements RunTensor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  #data: HostData | undefined;
  #kept: TfTensor | undefined;

  constructor(dtype: DType, shape: readonly number[], tensor: TfTensor, keep: boolean) {
    this.dtype = dtype;
    this.shape = shape;
    if (keep) this.#kept = tensor;
    else this.#data = hostData(tensor, dtype);
  }

  get data(): HostData {
    if (this.#data) return this.#data;
    throw new LongplayError('BAD_ARGUMENT', 'this output was kept on the device, or disposed of: call read()');
  }

  /** Device tensor of a kept output. */
  get kept(): TfTensor | undefined {
    return this.#kept;
  }

  async read(): Promise<HostTensor> {
    if (this.#data) return this;
    if (!this.#kept) throw new LongplayError('BAD_ARGUMENT', 'this output was disposed of');
    const { dtype, shape } = this;
    return { dtype, shape, data: convertValues(await this.#kept.data(), dtype) };
  }

  dispose(): void {
    this.#kept?.dispose();
    this.#kept = this.#data = undefined;
  }
}

function hostData(tensor: TfTensor, dtype: DType): HostData {
  return convertValues(tensor.dataSync(), dtype);
}

/** Copies the numbers: some backends hand out their own memory. */
function convertValues(values: ArrayLike<number>, dtype: DType): HostData {
  return dtype === 'f32'
    ? Float32Array.from(values)
    : dtype === 'i32'
      ? Int32Array.from(values)
      : Uint8Array.from(values);
}

class TfjsProgram implements Program {
  readonly inputs: Program['inputs'];
  readonly outputs: Program['outputs'];
  readonly #tf: Tf;
  readonly #graph: Graph;
  readonly #constants: ReadonlyMap<Tensor, TfTensor>;
  /** Number of readers of each node: nodes and outputs. */
  readonly #readers = new Map<Tensor, number>();
  #disposed = false;

  constructor(tf: Tf, graph: Graph) {
    this.#tf = tf;
    this.#graph = graph;
    this.inputs = feedsOf(graph);
    this.outputs = graph.outputs;
    const constants = new Map<Tensor, TfTensor>();
    for (const node of graph.nodes) {
      for (const x of node.inputs) this.#readers.set(x, (this.#readers.get(x) ?? 0) + 1);
      const constant = constantAttrs(node);
      const fixed = readFixedAttrs(node);
      if (constant)
        constants.set(node, tf.keep(tf.tensor(constant.data, [...constant.shape], TF_TYPE[constant.dtype])));
      else if (fixed) constants.set(node, tf.keep(tf.tensor(readFixed(fixed.shape, fixed.source), [...fixed.shape])));
      else if (!inputAttrs(node) && !tfjsOps[node.op]) {
        throw new LongplayError('ENGINE_FAILED', `tfjs: op '${node.op}' has no meaning there`);
      }
    }
    this.#constants = constants;
  }

  async run(feeds: Readonly<Record<string, Feed>>, { keep = [] }: RunOptions = {}): Promise<Record<string, RunTensor>> {
    if (this.#disposed) throw new LongplayError('ENGINE_FAILED', 'the program was disposed of');
    const bindings = bindFeeds(this.inputs, feeds);
    for (const { name } of this.inputs) {
      const feed = feeds[name]!;
      if (!(feed instanceof TfjsOutput && feed.kept)) checkData(name, feed as HostTensor);
    }
    const tf = this.#tf;
    const size = (dim: number | string) => evaluate(dim, bindings);
    const out: Record<string, RunTensor> = {};
    try {
      tf.tidy(() => {
        const values = new Map<Tensor, TfTensor>();
        const left = new Map(this.#readers);
        for (const node of this.#graph.nodes) {
          values.set(node, this.#valueOf(node, values, feeds, size));
          for (const x of node.inputs) {
            const readers = left.get(x)! - 1;
            left.set(x, readers);
            if (readers === 0 && this.#isOwned(x)) values.get(x)!.dispose();
          }
        }
        for (const [name, node] of this.#graph.results) {
          const kept = keep.includes(name);
          const value = values.get(node)!;
          const result = new TfjsOutput(node.dtype, value.shape, kept ? tf.keep(value.clone()) : value, kept);
          out[name] = result;
        }
      });
    } catch (error) {
      for (const tensor of Object.values(out)) tensor.dispose();
      if (error instanceof LongplayError) throw error;
      throw new LongplayError('ENGINE_FAILED', `tfjs: ${messageOf(error)}`, { cause: error });
    }
    return out;
  }

  #valueOf(
    node: Tensor,
    values: ReadonlyMap<Tensor, TfTensor>,
    feeds: Readonly<Record<string, Feed>>,
    size: (dim: number | string) => number,
  ): TfTensor {
    const tf = this.#tf;
    const fixed = this.#constants.get(node);
    if (fixed) return fixed;
    const name = inputAttrs(node)?.name;
    if (name !== undefined) {
      const feed = feeds[name]!;
      if (feed instanceof TfjsOutput && feed.kept) return feed.kept;
      return tf.tensor((feed as HostTensor).data, [...feed.shape], TF_TYPE[feed.dtype]);
    }
    const operands = node.inputs.map((x) => values.get(x)!);
    for (const [i, x] of node.inputs.entries()) this.#checkIndices(node, x, i, operands);
    return tf.tidy(() => tfjsOps[node.op]!(tf, operands, node.shape.map(size), node, size));
  }

  /** Checks indices first, since tfjs reads past the end without an error. */
  #checkIndices(node: Tensor, x: Tensor, at: number, operands: readonly TfTensor[]): void {
    if (x.dtype !== 'i32' || !inputAttrs(x)) return;
    const axis = node.op === 'gather' || node.op === 'gatherElements' ? (node.attrs as { axis: number }).axis : 0;
    const limit = at === 1 && node.op in INDEXED ? operands[INDEXED[node.op]!]!.shape[axis]! : undefined;
    if (limit === undefined) return;
    const lowest = node.op === 'take' ? -1 : 0;
    for (const id of operands[at]!.dataSync()) {
      if (id < lowest || id >= limit) {
        throw new LongplayError('BAD_ARGUMENT', `${node.op}: index ${id} is not in [${lowest}, ${limit})`);
      }
    }
  }

  /** True when a value was made in this run for this run: neither a constant nor a tensor that is kept elsewhere. */
  #isOwned(node: Tensor): boolean {
    return !this.#constants.has(node) && !inputAttrs(node) && ![...this.#graph.results.values()].includes(node);
  }

  async dispose(): Promise<void> {
    if (this.#disposed) return;
    this.#disposed = true;
    for (const tensor of this.#constants.values()) tensor.dispose();
  }
}

/** Ops that take indices as their second operand, with the operand that is indexed. */
const INDEXED: Readonly<Record<string, number>> = { gather: 0, gatherElements: 0, take: 0, rotary: 2 };

/** Packages in order of preference. */
const PACKAGES = ['@tensorflow/tfjs-node-gpu', '@tensorflow/tfjs-node'] as const;

/**
 * Opens tfjs: the native packages where they are, else WebAssembly, else plain JavaScript.
 * @throws {UserError} MISSING_ENGINE when no package is there, with the command that installs one
 */
export async function openTfjs(reason: string): Promise<Engine> {
  const { tf, found } = await loadTfjs();
  const programs = new Set<Program>();
  return {
    name: 'tfjs',
    device: 'cpu',
    threads: 1,
    reason: `${reason}; ${found}`,
    async compile(graph) {
      const program = new TfjsProgram(tf, graph);
      programs.add(program);
      return program;
    },
    async dispose() {
      for (const program of programs) await program.dispose();
      programs.clear();
    },
  };
}

async function loadTfjs(): Promise<{ readonly tf: Tf; readonly found: string }> {
  const missing: string[] = [];
  for (const name of PACKAGES) {
    try {
      await restoreUtil();
      const tf = (await import(name)) as Tf & { readonly default?: Tf };
      return { tf: tf.default ?? tf, found: `through ${name}` };
    } catch (error) {
      missing.push(`${name}: ${firstLineOf(messageOf(error))}`);
    }
  }
  const absent = missing.join('; ');
  for (const backend of ['wasm', 'cpu'] as const) {
    try {
      const tf = await import('@tensorflow/tfjs-core');
      await import(backend === 'wasm' ? '@tensorflow/tfjs-backend-wasm' : '@tensorflow/tfjs-backend-cpu');
      if (await tf.setBackend(backend)) return { tf, found: `its ${backend} backend (${absent})` };
      missing.push(`${backend}: it does not start`);
    } catch (error) {
      missing.push(`${backend}: ${firstLineOf(messageOf(error))}`);
    }
  }
  throw new UserError(
    'MISSING_ENGINE',
    `engine tfjs is not there (${missing.join('; ')}). Install one: npm install @tensorflow/tfjs-node-gpu (GPU), npm install @tensorflow/tfjs-node, or npm install @tensorflow/tfjs-core @tensorflow/tfjs-backend-wasm`,
  );
}

/** tfjs-node 4.22 calls two functions that Node 23 took out of `util`. */
async function restoreUtil(): Promise<void> {
  if (Number.parseInt(process.versions.node, 10) < 23) return;
  const util = (await import('node:util')).default as unknown as Record<string, unknown>;
  util.isNullOrUndefined ??= (value: unknown) => value === null || value === undefined;
  util.isArray ??= Array.isArray;
}
