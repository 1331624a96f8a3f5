/**
 * onnxruntime-node: one ONNX session per program. `run` blocks its thread until the numbers are there, and ending the
 * thread meanwhile aborts the process: an engine wants a thread of its own that is asked to stop, not killed.
 */
import type { InferenceSession, Tensor as OrtTensor } from 'onnxruntime-node';
import { LongplayError, messageOf } from '../core/errors.ts';
import type { Graph } from '../tensor/graph.ts';
import { onnxOutputName, toOnnx } from '../tensor/onnx.ts';
import type { DType, HostData } from '../tensor/tensor.ts';
import type { Engine, Feed, HostTensor, Program, RunTensor } from './engine.ts';
import { bindFeeds, checkData, feedsOf } from './feeds.ts';

export type OrtNode = typeof import('onnxruntime-node');

const ORT_TYPE = { f32: 'float32', i32: 'int32', bool: 'bool' } as const;

export interface OrtNodeSettings {
  readonly threads: number;
  readonly spinning: boolean;
  readonly reason: string;
}

/** On the cpu an output lies in this thread's memory, kept or not; feeding it again costs nothing. */
class OrtCpuTensor implements RunTensor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly data: HostData;
  constructor(dtype: DType, { dims, data }: OrtTensor) {
    this.dtype = dtype;
    this.shape = dims;
    this.data = data as HostData;
  }
  async read(): Promise<HostTensor> {
    return this;
  }
  dispose(): void {}
}

/** The ort tensors of what was fed before: building one costs as much as a small op, and weights are fed every run. */
type KnownFeeds = WeakMap<Feed, OrtTensor>;

class OrtProgram implements Program {
  readonly inputs: Program['inputs'];
  readonly outputs: Program['outputs'];
  readonly #ort: OrtNode;
  readonly #session: InferenceSession;
  readonly #known: KnownFeeds;
  #disposed = false;

  constructor(ort: OrtNode, session: InferenceSession, graph: Graph, known: KnownFeeds) {
    this.#ort = ort;
    this.#session = session;
    this.#known = known;
    this.inputs = feedsOf(graph);
    this.outputs = graph.outputs;
  }

  async run(feeds: Readonly<Record<string, Feed>>): Promise<Record<string, RunTensor>> {
    if (this.#disposed) throw new LongplayError('ENGINE_FAILED', 'the program was disposed of');
    bindFeeds(this.inputs, feeds);
    const ready: Record<string, OrtTensor> = {};
    for (const { name } of this.inputs) ready[name] = this.#known.get(feeds[name]!) ?? this.#feed(name, feeds[name]!);
    let results: InferenceSession.OnnxValueMapType;
    try {
      results = await this.#session.run(ready);
    } catch (error) {
      throw new LongplayError('ENGINE_FAILED', `onnxruntime-node: ${messageOf(error)}`, { cause: error });
    }
    const out: Record<string, RunTensor> = {};
    for (const { name, dtype } of this.outputs) {
      const result = results[onnxOutputName(name)] as OrtTensor;
      const tensor = new OrtCpuTensor(dtype, result);
      this.#known.set(tensor, result);
      out[name] = tensor;
    }
    return out;
  }

  /** The ort tensor shares the feed's memory: what is written into its array later is seen by later runs. */
  #feed(name: string, feed: Feed): OrtTensor {
    const host = feed as HostTensor;
    checkData(name, host);
    const made = new this.#ort.Tensor(ORT_TYPE[host.dtype], host.data, host.shape);
    this.#known.set(feed, made);
    return made;
  }

  async dispose(): Promise<void> {
    if (this.#disposed) return;
    this.#disposed = true;
    await this.#session.release();
  }
}

/** An engine over a loaded onnxruntime-node, on the cpu. */
export function openOrtNode(ort: OrtNode, { threads, spinning, reason }: OrtNodeSettings): Engine {
  const known: KnownFeeds = new WeakMap();
  const programs = new Set<Program>();
  return {
    name: 'onnxruntime-node',
    device: 'cpu',
    threads,
    reason,
    async compile(graph) {
      const model = toOnnx(graph, { contrib: true, oneThread: threads === 1 });
      let session: InferenceSession;
      try {
        session = await ort.InferenceSession.create(model, {
          executionProviders: ['cpu'],
          executionMode: 'sequential',
          graphOptimizationLevel: 'all',
          intraOpNumThreads: threads,
          interOpNumThreads: 1,
          logSeverityLevel: 4, // what goes wrong comes as an exception, and the console is not the engine's
          extra: { session: { intra_op: { allow_spinning: spinning ? '1' : '0' } } },
        });
      } catch (error) {
        throw new LongplayError('ENGINE_FAILED', `onnxruntime-node refuses the graph: ${messageOf(error)}`, {
          cause: error,
        });
      }
      const program = new OrtProgram(ort, session, graph, known);
      programs.add(program);
      return program;
    },
    async dispose() {
      for (const program of programs) await program.dispose();
      programs.clear();
    },
  };
}
