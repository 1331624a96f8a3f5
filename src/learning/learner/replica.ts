/**
 * Replica of the learner: the gradient program once more, in a thread of its own with its own copy of the weights. A run of an
 * engine blocks its thread, so a learner that is to use several cores shares the passes of a minibatch among replicas
 * (data parallelism); their gradients come back and are added up as if one engine had made them.
 */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { Engine, EngineOptions, HostTensor } from '../../compute/engine/engine.ts';
import type { ModelConfig } from '../../compute/model/config.ts';
import type { TrainOptions } from '../../compute/model/programs.ts';
import { LongplayError, messageOf } from '../../core/errors.ts';
import { workerUrl } from '../../runtime/module-url.ts';

/** Program of a replica: its graph is built anew in the thread, since tensors are not sent. */
export interface ReplicaProgram {
  readonly engine: EngineOptions;
  readonly model: ModelConfig;
  readonly options: Omit<TrainOptions, 'adamW'>;
}

/** Message to a replica's thread: feeds that the runs after it share, a run, or the end. */
export type ReplicaCommand =
  | { readonly type: 'hold' | 'run'; readonly feeds: Readonly<Record<string, HostTensor>> }
  | { readonly type: 'end' };

/** First message from a replica's thread: it is ready, and reads these inputs. */
export interface ReplicaReady {
  readonly inputs: readonly string[];
}

/** Every further message: the outcome of the oldest run that is under way. */
export type ReplicaEvent =
  | { readonly type: 'ran'; readonly outputs: Readonly<Record<string, HostTensor>> }
  | { readonly type: 'failed'; readonly message: string };

interface Run {
  resolve(outputs: Readonly<Record<string, HostTensor>>): void;
  reject(error: Error): void;
}

/** Replica that is ready. Runs are answered in their order; several may be under way. */
export class Replica {
  readonly #worker: Worker;
  readonly #inputs: ReadonlySet<string>;
  readonly #running: Run[] = [];
  #ended: Error | undefined;

  private constructor(worker: Worker, inputs: readonly string[]) {
    this.#worker = worker;
    this.#inputs = new Set(inputs);
    worker.on('message', (event: ReplicaEvent) => {
      const run = this.#running.shift();
      if (event.type === 'ran') run?.resolve(event.outputs);
      else run?.reject(new LongplayError('ENGINE_FAILED', event.message));
    });
    worker.on('error', (error) => this.#end(error));
    worker.on('exit', () => this.#end(new LongplayError('ENGINE_FAILED', 'a replica of the learner has ended')));
  }

  /**
   * Opens an engine in a thread and compiles the program there.
   * @throws {LongplayError} ENGINE_FAILED when that fails
   */
  static async open(program: ReplicaProgram): Promise<Replica> {
    const worker = new Worker(workerUrl(new URL('./replica-thread.ts', import.meta.url)), {
      workerData: program,
      name: 'learner replica',
      execArgv: [],
    });
    try {
      const [{ inputs }] = (await once(worker, 'message')) as [ReplicaReady];
      return new Replica(worker, inputs);
    } catch (error) {
      throw new LongplayError('ENGINE_FAILED', `a replica of the learner: ${messageOf(error)}`, { cause: error });
    }
  }

  /** Holds feeds for all runs that follow, such as weights: they are sent once instead of with every run. */
  hold(feeds: Readonly<Record<string, HostTensor>>): void {
    this.#post({ type: 'hold', feeds: this.#pickFeeds(feeds) });
  }

  /**
   * Runs the program over these feeds and those held.
   * @throws {LongplayError} ENGINE_FAILED when the engine fails or the thread has ended
   */
  run(feeds: Readonly<Record<string, HostTensor>>): Promise<Readonly<Record<string, HostTensor>>> {
    return new Promise((resolve, reject) => {
      if (this.#ended) return reject(this.#ended);
      this.#running.push({ resolve, reject });
      this.#post({ type: 'run', feeds: this.#pickFeeds(feeds) });
    });
  }

  /** Ends the thread once its runs are through: ending it in the middle of one would abort the process. */
  async dispose(): Promise<void> {
    if (this.#ended) return;
    const exited = once(this.#worker, 'exit');
    this.#post({ type: 'end' });
    await exited;
  }

  #post(command: ReplicaCommand): void {
    this.#worker.postMessage(command);
  }

  /** Feeds that the program has an input for. */
  #pickFeeds(feeds: Readonly<Record<string, HostTensor>>): Record<string, HostTensor> {
    return Object.fromEntries(Object.entries(feeds).filter(([name]) => this.#inputs.has(name)));
  }

  #end(error: Error): void {
    this.#ended ??= error;
    for (const run of this.#running.splice(0)) run.reject(this.#ended);
  }
}

/** Opens so many replicas of a gradient program as an engine of this kind runs it. */
export function openReplicas(
  count: number,
  { name, device, threads }: Engine,
  program: Omit<ReplicaProgram, 'engine'>,
): Promise<readonly Replica[]> {
  const engine = { name, device, threads };
  return Promise.all(Array.from({ length: count }, () => Replica.open({ ...program, engine })));
}
