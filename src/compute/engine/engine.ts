/** Engines compute graphs. A policy proposes, an engine computes; engines differ in speed and place, not in meaning. */
import type { Graph, ValueInfo } from '../tensor/graph.ts';
import type { DType, HostData } from '../tensor/tensor.ts';

export type EngineName = 'onnxruntime-node' | 'onnxruntime-web' | 'tfjs' | 'reference';
export type EngineDevice = 'cpu' | 'webgpu' | 'cuda';

/**
 * Host tensor: numbers in this thread's memory, row-major. An engine may keep what it derives from the object (not from
 * its elements, which may change between runs), so feeding the same object again is cheapest.
 */
export interface HostTensor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** Float32Array for f32, Int32Array for i32, Uint8Array of 0 and 1 for bool. */
  readonly data: HostData;
}

/** Device tensor: numbers where the engine keeps them. */
export interface DeviceTensor {
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** Reads the numbers, copied to this thread where they are elsewhere. */
  read(): Promise<HostTensor>;
  /** Frees what the engine holds; the tensor must not be used again. */
  dispose(): void;
}

export type Feed = HostTensor | DeviceTensor;

/**
 * Output of a run: a device tensor that can be fed to the next run as it is. `data` is there unless the output was kept
 * on a device with memory of its own; reading it then throws an error that names `read`.
 */
export interface RunTensor extends DeviceTensor, HostTensor {}

export interface RunOptions {
  /** Outputs to leave on the device, to be fed to later runs. */
  readonly keep?: readonly string[];
}

/** Program: a graph ready to run. */
export interface Program {
  /** Inputs to feed, weights included. */
  readonly inputs: readonly ValueInfo[];
  readonly outputs: readonly ValueInfo[];
  /**
   * Computes the outputs. Symbolic sizes are bound by what is fed; feeds the program has no input for are ignored, so
   * programs can share one set of weights.
   * @throws {ShapeError} naming the input, what was expected and what came
   * @throws {LongplayError} ENGINE_FAILED if the engine fails or was disposed of
   */
  run(feeds: Readonly<Record<string, Feed>>, options?: RunOptions): Promise<Record<string, RunTensor>>;
  dispose(): Promise<void>;
}

/** Engine: compiles tensor programs and runs them on one device. */
export interface Engine {
  readonly name: EngineName;
  readonly device: EngineDevice;
  readonly threads: number;
  /** Reason for this engine: what `auto` found, or that it was asked for. */
  readonly reason: string;
  compile(graph: Graph): Promise<Program>;
  dispose(): Promise<void>;
}

/** Options of an engine: which one, on which device, with how many threads. */
export interface EngineOptions {
  readonly name: EngineName | 'auto';
  /** Device, 'cpu' by default. */
  readonly device?: EngineDevice;
  /** Threads of one run, at least 1; by default one per core. */
  readonly threads?: number;
  /** Let idle threads of a run spin: faster alone, far slower as soon as two engines share the cores. Off by default. */
  readonly spinning?: boolean;
  /**
   * Keep a copy of fixed weights in the order in which onnxruntime-node's kernels read them: faster, above all in small batches, and memory of
   * each engine of its own. Without it, all engines of a machine read the same pages of the files. On by default.
   */
  readonly packing?: boolean;
}
