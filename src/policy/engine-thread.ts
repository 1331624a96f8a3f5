/**
 * Thread of an engine: computes the calls of a policy beside the thread that prepares them. A run of an engine blocks its
 * thread; here only the engine's own is blocked, and the next call is ready when one is done.
 *
 * Keys and values stay in the thread, in caches that follow the layout of those whose slots and lengths are kept here.
 */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { EngineOptions } from '../compute/engine/engine.ts';
import type { ModelConfig } from '../compute/model/config.ts';
import type { DecoderKind } from '../compute/model/programs.ts';
import { LongplayError, messageOf } from '../core/errors.ts';
import { type ErrorRecord, reviveError } from '../runtime/envelope.ts';
import { workerUrl } from '../runtime/module-url.ts';
import type { CallOutputs, CallRunner, EngineCall, Feeds } from './engine-call.ts';
import type { CacheLayout, KvCache } from './kv-cache.ts';

/** Data of the thread. Its programs are compiled there, since tensors of a graph are not sent. */
export interface EngineThreadData {
  readonly engine: EngineOptions;
  readonly config: ModelConfig;
  readonly decoder: DecoderKind;
  /** [2] 1 while the engine computes, and 1 once it must not begin another call; shared. */
  readonly state: Int32Array;
}

/** Place of each flag in `state`. */
export const COMPUTING = 0;
export const CLOSED = 1;

/** Message to the thread: weights of the calls that follow, a call, or the end. */
export type EngineThreadCommand =
  | { readonly type: 'load'; readonly weights: Feeds }
  | { readonly type: 'run'; readonly cache: FollowedCache; readonly call: EngineCall }
  | { readonly type: 'forget' }
  | { readonly type: 'end' };

/** Cache of a call: its number, its size, and its layout from this call on. */
export interface FollowedCache {
  readonly id: number;
  readonly groups: number;
  readonly members: number;
  readonly layout: CacheLayout;
}

/** First message from the thread: its engine is open, with its name and device (`onnxruntime-node/cpu`); or it cannot be. */
export type EngineThreadOpened = { readonly engine: string } | { readonly error: ErrorRecord };

/** Every further message: the outcome of the oldest call that is under way. */
export type EngineThreadEvent =
  | {
      readonly type: 'ran';
      readonly out: CallOutputs;
      /** Milliseconds inside the engine. */
      readonly engineMs: number;
    }
  | { readonly type: 'failed'; readonly error: ErrorRecord };

interface Call {
  resolve(out: CallOutputs): void;
  reject(error: Error): void;
}

/** Most milliseconds that the end of this thread waits for a call that the engine is inside of. */
const LAST_CALL_MS = 10_000;

/** Calls computed in a thread of their own, in the order in which they were given. */
export class EngineThread implements CallRunner {
  readonly overlaps = true;
  /** Name and device of the engine. */
  readonly engine: string;
  /** Milliseconds inside the engine so far. */
  readonly computing = { ms: 0 };
  readonly #worker: Worker;
  readonly #calls: Call[] = [];
  readonly #ids = new WeakMap<KvCache, number>();
  #nextId = 0;
  #ended: Error | undefined;

  private constructor(worker: Worker, engine: string, state: Int32Array) {
    this.#worker = worker;
    this.engine = engine;
    worker.on('message', (event: EngineThreadEvent) => {
      const call = this.#calls.shift();
      if (event.type === 'failed') return call?.reject(reviveError(event.error));
      this.computing.ms += event.engineMs;
      call?.resolve(event.out);
    });
    // This thread's end takes the engine's along, which must not be inside a call then: that aborts the process.
    const onExit = () => {
      Atomics.store(state, CLOSED, 1);
      Atomics.wait(state, COMPUTING, 1, LAST_CALL_MS);
    };
    process.on('exit', onExit);
    worker.on('error', (error) => this.#end(error));
    worker.on('exit', () => {
      process.off('exit', onExit);
      this.#end(new LongplayError('ENGINE_FAILED', "the engine's thread has ended"));
    });
  }

  /**
   * Opens an engine in a thread and compiles the programs there.
   * @throws {UserError} MISSING_ENGINE where this machine has no such engine or device
   * @throws {LongplayError} ENGINE_FAILED when the thread or a program fails
   */
  static async open(data: Omit<EngineThreadData, 'state'>): Promise<EngineThread> {
    const state = new Int32Array(new SharedArrayBuffer(8));
    const worker = new Worker(workerUrl(new URL('./engine-thread-main.ts', import.meta.url)), {
      workerData: { ...data, state } satisfies EngineThreadData,
      name: 'engine',
      execArgv: [],
    });
    let opened: EngineThreadOpened;
    try {
      [opened] = (await once(worker, 'message')) as [EngineThreadOpened];
    } catch (error) {
      throw new LongplayError('ENGINE_FAILED', `the engine's thread: ${messageOf(error)}`, { cause: error });
    }
    if ('error' in opened) throw reviveError(opened.error);
    return new EngineThread(worker, opened.engine, state);
  }

  load(weights: Feeds): void {
    this.#post({ type: 'load', weights });
  }

  run(cache: KvCache, call: EngineCall): Promise<CallOutputs> {
    let id = this.#ids.get(cache);
    if (id === undefined) this.#ids.set(cache, (id = this.#nextId++));
    const { groups, members, layout } = cache;
    return new Promise((resolve, reject) => {
      if (this.#ended) return reject(this.#ended);
      this.#calls.push({ resolve, reject });
      this.#post({ type: 'run', cache: { id: id!, groups, members, layout }, call });
    });
  }

  forget(): void {
    this.#post({ type: 'forget' });
  }

  /** Ends the thread once its calls are through. */
  async dispose(): Promise<void> {
    if (this.#ended) return;
    const exited = once(this.#worker, 'exit');
    this.#post({ type: 'end' });
    await exited;
  }

  #post(command: EngineThreadCommand): void {
    this.#worker.postMessage(command);
  }

  #end(error: Error): void {
    this.#ended ??= error;
    for (const call of this.#calls.splice(0)) call.reject(this.#ended);
  }
}
