/**
 * Engine shared by onnxruntime-node and onnxruntime-web: one ONNX session per program. `run` blocks its thread until
 * the numbers are there. Ending the thread meanwhile aborts the process (node), so an engine wants a thread of its own
 * that is asked to stop, not killed.
 */
import type { InferenceSession, Tensor as OrtTensor } from 'onnxruntime-web';
import { LongplayError, messageOf } from '../../core/errors.ts';
import { defineGraph, type Graph } from '../tensor/graph.ts';
import { onnxOutputName, toOnnx } from '../tensor/onnx.ts';
import { type DType, type HostData, input } from '../tensor/tensor.ts';
import type { Engine, EngineDevice, EngineName, Feed, HostTensor, Program, RunOptions, RunTensor } from './engine.ts';
import { bindFeeds, checkData, feedsOf } from './feeds.ts';

/** Interface of either package, as far as it is used here. */
export type Ort = Pick<typeof import('onnxruntime-web'), 'InferenceSession' | 'Tensor'>;

const ORT_TYPE = { f32: 'float32', i32: 'int32', bool: 'bool' } as const;

export interface OrtSettings {
  readonly name: EngineName;
  readonly device: EngineDevice;
  readonly threads: number;
  readonly reason: string;
  readonly session: InferenceSession.SessionOptions;
  /** True when `run` writes into output tensors that it is given. */
  readonly reuses: boolean;
  /** True when outputs can stay on the device, in memory that this thread does not see. */
  readonly keeps: boolean;
  /** True when sessions can map the files of fixed tensors. */
  readonly files: boolean;
  /** Most bytes that the feeds of one run may hold. */
  readonly maxFeedBytes: number;
}

/** Buffers kept for an output whose last values were disposed of: double buffering wants two. */
const MAX_SPARE = 2;

/** Output in this thread's memory; feeding it again costs nothing. */
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

/** Output that was kept on a device with memory of its own. */
class KeptOutput implements RunTensor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly #download: (tensor: OrtTensor) => Promise<HostData>;
  #tensor: OrtTensor | undefined;

  constructor(dtype: DType, tensor: OrtTensor, download: (tensor: OrtTensor) => Promise<HostData>) {
    this.dtype = dtype;
    this.shape = tensor.dims;
    this.#tensor = tensor;
    this.#download = download;
  }

  get data(): HostData {
    throw new LongplayError('BAD_ARGUMENT', 'this output was kept on the device, or disposed of: call read()');
  }

  /** Device tensor, to be fed as it is. */
  get tensor(): OrtTensor {
    if (this.#tensor === undefined) throw new LongplayError('BAD_ARGUMENT', 'this output was disposed of');
    return this.#tensor;
  }

  async read(): Promise<HostTensor> {
    const { dtype, shape } = this;
    return { dtype, shape, data: await this.#download(this.tensor) };
  }

  dispose(): void {
    this.#tensor?.dispose();
    this.#tensor = undefined;
  }
}

/** State that the programs of an engine share. */
interface Shared {
  readonly ort: Ort;
  readonly settings: OrtSettings;
  readonly known: KnownFeeds;
  /** Copies a device tensor to this thread. */
  download(dtype: DType, tensor: OrtTensor): Promise<HostData>;
}

/**
 * Cache of the ort tensors that were fed before: building one costs as much as a small op, and weights are fed every
 * run.
 */
type KnownFeeds = WeakMap<Feed, OrtTensor>;

class OrtProgram implements Program {
  readonly inputs: Program['inputs'];
  readonly outputs: Program['outputs'];
  readonly #shared: Shared;
  readonly #model: Uint8Array;
  /** Sessions by the outputs that they keep on the device; a session is created for one such set. */
  readonly #sessions = new Map<string, InferenceSession>();
  /** Buffers of outputs of fixed shape that were disposed of, by output: the next runs write into them. */
  readonly #spare = new Map<string, OrtTensor[]>();
  #disposed = false;

  constructor(shared: Shared, model: Uint8Array, session: InferenceSession, graph: Graph) {
    this.#shared = shared;
    this.#model = shared.settings.keeps ? model : new Uint8Array();
    this.#sessions.set('', session);
    this.inputs = feedsOf(graph);
    this.outputs = graph.outputs;
    if (!shared.settings.reuses) return;
    for (const { name, shape } of graph.outputs) {
      if (shape.every((dim) => typeof dim === 'number')) this.#spare.set(name, []);
    }
  }

  async run(feeds: Readonly<Record<string, Feed>>, { keep = [] }: RunOptions = {}): Promise<Record<string, RunTensor>> {
    const { settings, known } = this.#shared;
    const { name: engine, maxFeedBytes } = settings;
    if (this.#disposed) throw new LongplayError('ENGINE_FAILED', 'the program was disposed of');
    bindFeeds(this.inputs, feeds);
    const ready: Record<string, OrtTensor> = {};
    let bytes = 0;
    for (const { name } of this.inputs) {
      const tensor = known.get(feeds[name]!) ?? this.#feed(name, feeds[name]!);
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
      const session = settings.keeps && keep.length > 0 ? await this.#keeping(keep) : this.#sessions.get('')!;
      results = await session.run(ready, this.#fetches());
    } catch (error) {
      throw new LongplayError('ENGINE_FAILED', `${engine}: ${messageOf(error)}`, { cause: error });
    }
    const out: Record<string, RunTensor> = {};
    for (const { name, dtype } of this.outputs) {
      const result = results[onnxOutputName(name)] as OrtTensor;
      if (result.location !== 'cpu') {
        out[name] = new KeptOutput(dtype, result, (tensor) => this.#shared.download(dtype, tensor));
        continue;
      }
      const spare = this.#spare.get(name);
      const tensor = new OrtOutput(
        dtype,
        result,
        spare && (() => void (spare.length < MAX_SPARE && spare.push(result))),
      );
      known.set(tensor, result);
      out[name] = tensor;
    }
    return out;
  }

  /** Session that leaves some outputs on the device. */
  async #keeping(keep: readonly string[]): Promise<InferenceSession> {
    const kept = this.outputs.filter(({ name }) => keep.includes(name)).map(({ name }) => onnxOutputName(name));
    const key = kept.join('\n');
    let session = this.#sessions.get(key);
    if (session === undefined) {
      const { ort, settings } = this.#shared;
      const preferredOutputLocation = Object.fromEntries(kept.map((name) => [name, 'gpu-buffer' as const]));
      session = await ort.InferenceSession.create(this.#model, { ...settings.session, preferredOutputLocation });
      this.#sessions.set(key, session);
    }
    return session;
  }

  #fetches(): Record<string, OrtTensor | null> {
    const fetches: Record<string, OrtTensor | null> = {};
    for (const { name } of this.outputs) fetches[onnxOutputName(name)] = this.#spare.get(name)?.pop() ?? null;
    return fetches;
  }

  /** Ort tensor of a feed. It shares the feed's memory: later writes into its array are seen by later runs. */
  #feed(name: string, feed: Feed): OrtTensor {
    if (feed instanceof KeptOutput) return feed.tensor;
    const host = feed as HostTensor;
    checkData(name, host);
    const made = new this.#shared.ort.Tensor(ORT_TYPE[host.dtype], host.data, host.shape);
    this.#shared.known.set(feed, made);
    return made;
  }

  async dispose(): Promise<void> {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#spare.clear();
    for (const session of this.#sessions.values()) await session.release();
  }
}

/** Opens an engine over a loaded onnxruntime package. */
export function openOrt(ort: Ort, settings: OrtSettings): Engine {
  const { name, device, threads, reason, files } = settings;
  const programs = new Set<Program>();
  const copies = new Map<string, Promise<Program>>();
  const shared: Shared = {
    ort,
    settings,
    known: new WeakMap(),
    // Through a graph that does nothing: in onnxruntime-node 1.30 a device tensor's own getData aborts the process.
    async download(dtype, tensor) {
      const key = `${dtype}${tensor.dims.length}`;
      const dims = tensor.dims.map((_, axis) => `D${axis}`);
      const copy = copies.get(key) ?? engine.compile(defineGraph({ y: input('x', dims, dtype) }));
      copies.set(key, copy);
      return (await (await copy).run({ x: new KeptOutput(dtype, tensor, () => this.download(dtype, tensor)) })).y!.data;
    },
  };
  const engine: Engine = {
    name,
    device,
    threads,
    reason,
    async compile(graph) {
      // Only the cpu's own ScatterND adds rows one after another.
      const cpu = device === 'cpu';
      const model = toOnnx(graph, {
        ...{ contrib: true, normInverse: cpu, oneThread: cpu && threads === 1, files },
        fewRows: cpu && graph.fewRows,
      });
      let session: InferenceSession;
      try {
        session = await ort.InferenceSession.create(model, settings.session);
      } catch (error) {
        throw new LongplayError('ENGINE_FAILED', `${name} refuses the graph: ${stripSourcePlace(messageOf(error))}`, {
          cause: error,
        });
      }
      const program = new OrtProgram(shared, model, session, graph);
      programs.add(program);
      return program;
    },
    async dispose() {
      for (const program of programs) await program.dispose();
      programs.clear();
    },
  };
  return engine;
}

/** Message of onnxruntime without the place in its C++ source, which is of no use to a user. */
function stripSourcePlace(message: string): string {
  return message.replace(/^\/\S+\.(?:cc|cpp|h):\d+ .*? was false\. /, '');
}
