/**
 * What onnxruntime-node and onnxruntime-web share: one ONNX session per program. `run` blocks its thread until the
 * numbers are there. Ending the thread meanwhile aborts the process (node), so an engine wants a thread of its own that
 * is asked to stop, not killed.
 */
import type { InferenceSession, Tensor as OrtTensor } from 'onnxruntime-web';
import { LongplayError, messageOf } from '../core/errors.ts';
import type { Graph } from '../tensor/graph.ts';
import { onnxOutputName, toOnnx } from '../tensor/onnx.ts';
import type { DType, HostData } from '../tensor/tensor.ts';
import type { Engine, EngineDevice, EngineName, Feed, HostTensor, Program, RunTensor } from './engine.ts';
import { bindFeeds, checkData, feedsOf } from './feeds.ts';

/** The part of either package that is used here. */
export type Ort = Pick<typeof import('onnxruntime-web'), 'InferenceSession' | 'Tensor'>;

const ORT_TYPE = { f32: 'float32', i32: 'int32', bool: 'bool' } as const;

export interface OrtSettings {
  readonly name: EngineName;
  readonly device: EngineDevice;
  readonly threads: number;
  readonly reason: string;
  readonly session: InferenceSession.SessionOptions;
  /** Whether `run` writes into output tensors that it is given. */
  readonly reuses: boolean;
  /** Feeds of one run may hold this many bytes. */
  readonly maxFeedBytes: number;
}

/** Buffers kept for an output whose last values were disposed of: double buffering wants two. */
const MAX_SPARE = 2;

/** An output lies in this thread's memory, kept or not; feeding it again costs nothing. */
class OrtOutput implements RunTensor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly #release: (() => void) | undefined;
  #data: HostData | undefined;

  constructor(dtype: DType, { dims, data }: OrtTensor, release: (() => void) | undefined) {
    this.dtype = dtype;
    this.shape = dims;
    this.#data = data as HostData;
    this.#release = release;
  }

  get data(): HostData {
    if (this.#data === undefined) throw new LongplayError('BAD_ARGUMENT', 'this output was disposed of');
    return this.#data;
  }

  async read(): Promise<HostTensor> {
    return this;
  }

  dispose(): void {
    if (this.#data === undefined) return;
    this.#data = undefined;
    this.#release?.();
  }
}

/** The ort tensors of what was fed before: building one costs as much as a small op, and weights are fed every run. */
type KnownFeeds = WeakMap<Feed, OrtTensor>;

class OrtProgram implements Program {
  readonly inputs: Program['inputs'];
  readonly outputs: Program['outputs'];
  readonly #ort: Ort;
  readonly #settings: OrtSettings;
  readonly #session: InferenceSession;
  readonly #known: KnownFeeds;
  /** Buffers of outputs of fixed shape that were disposed of, by output: the next runs write into them. */
  readonly #spare = new Map<string, OrtTensor[]>();
  #disposed = false;

  constructor(ort: Ort, settings: OrtSettings, session: InferenceSession, graph: Graph, known: KnownFeeds) {
    this.#ort = ort;
    this.#settings = settings;
    this.#session = session;
    this.#known = known;
    this.inputs = feedsOf(graph);
    this.outputs = graph.outputs;
    if (!settings.reuses) return;
    for (const { name, shape } of graph.outputs) {
      if (shape.every((dim) => typeof dim === 'number')) this.#spare.set(name, []);
    }
  }

  async run(feeds: Readonly<Record<string, Feed>>): Promise<Record<string, RunTensor>> {
    const { name: engine, maxFeedBytes } = this.#settings;
    if (this.#disposed) throw new LongplayError('ENGINE_FAILED', 'the program was disposed of');
    bindFeeds(this.inputs, feeds);
    const ready: Record<string, OrtTensor> = {};
    let bytes = 0;
    for (const { name } of this.inputs) {
      const tensor = this.#known.get(feeds[name]!) ?? this.#feed(name, feeds[name]!);
      bytes += 4 * tensor.size;
      ready[name] = tensor;
    }
    if (bytes > maxFeedBytes) {
      throw new LongplayError(
        'ENGINE_FAILED',
        `${engine}: the inputs hold ${bytes} bytes, expected at most ${maxFeedBytes}; use onnxruntime-node`,
      );
    }
    let results: InferenceSession.OnnxValueMapType;
    try {
      results = await this.#session.run(ready, this.#fetches());
    } catch (error) {
      throw new LongplayError('ENGINE_FAILED', `${engine}: ${messageOf(error)}`, { cause: error });
    }
    const out: Record<string, RunTensor> = {};
    for (const { name, dtype } of this.outputs) {
      const result = results[onnxOutputName(name)] as OrtTensor;
      const spare = this.#spare.get(name);
      const tensor = new OrtOutput(
        dtype,
        result,
        spare && (() => void (spare.length < MAX_SPARE && spare.push(result))),
      );
      this.#known.set(tensor, result);
      out[name] = tensor;
    }
    return out;
  }

  #fetches(): Record<string, OrtTensor | null> {
    const fetches: Record<string, OrtTensor | null> = {};
    for (const { name } of this.outputs) fetches[onnxOutputName(name)] = this.#spare.get(name)?.pop() ?? null;
    return fetches;
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
    this.#spare.clear();
    await this.#session.release();
  }
}

/** An engine over a loaded onnxruntime package. */
export function openOrt(ort: Ort, settings: OrtSettings): Engine {
  const { name, device, threads, reason } = settings;
  const known: KnownFeeds = new WeakMap();
  const programs = new Set<Program>();
  return {
    name,
    device,
    threads,
    reason,
    async compile(graph) {
      // Only the cpu's own ScatterND adds rows one after another.
      const cpu = device === 'cpu';
      const model = toOnnx(graph, { contrib: true, normInverse: cpu, oneThread: cpu && threads === 1 });
      let session: InferenceSession;
      try {
        session = await ort.InferenceSession.create(model, settings.session);
      } catch (error) {
        throw new LongplayError('ENGINE_FAILED', `${name} refuses the graph: ${messageOf(error)}`, { cause: error });
      }
      const program = new OrtProgram(ort, settings, session, graph, known);
      programs.add(program);
      return program;
    },
    async dispose() {
      for (const program of programs) await program.dispose();
      programs.clear();
    },
  };
}
