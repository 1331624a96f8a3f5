/** Host threads: hosts in piscina threads, one per thread, so that ending one leaves the others alone. */
import { MessageChannel } from 'node:worker_threads';
import { Piscina } from 'piscina';
import { messageOf } from '../../src/core/errors.ts';
import type { PortLike } from '../../src/runtime/comlink-endpoint.ts';
import { workerUrl } from '../../src/runtime/thread.ts';
import { readShared, sharedBeacon } from './beacon.ts';
import type { ThreadTask } from './env-thread.ts';
import {
  type Host,
  type HostEnd,
  type HostFactory,
  type HostListener,
  type HostOptions,
  hostTask,
  startRemoteHost,
} from './hosts.ts';

export interface ThreadLimits {
  readonly maxOldGenerationSizeMb?: number;
  readonly maxYoungGenerationSizeMb?: number;
}

export class HostThreads implements HostFactory {
  readonly #piscina: Piscina;

  /**
   * @param resourceLimits of each thread. Buffers do not count: V8 limits its own heap alone
   * @param variables environment variables of each thread
   */
  constructor(threads: number, resourceLimits: ThreadLimits, variables: Readonly<Record<string, string>>) {
    this.#piscina = new Piscina({
      filename: workerUrl(new URL('./env-thread.ts', import.meta.url)).href,
      minThreads: threads,
      maxThreads: threads,
      concurrentTasksPerWorker: 1,
      atomics: 'disabled', // else a thread whose task waits for messages sleeps in Atomics.wait and never hears them
      resourceLimits,
      env: { ...variables },
    });
    this.#piscina.on('error', () => {}); // threads that die without a task; those with one reject it
  }

  start(options: HostOptions, listener: HostListener, startMs: number): Promise<Host> {
    const data = new MessageChannel();
    const control = new MessageChannel();
    const shared = sharedBeacon();
    const task: ThreadTask = { ...hostTask(options), shared, data: data.port2, control: control.port2 };
    // The signal is the kill switch: it ends the thread, whatever runs there.
    const killer = new AbortController();
    const life = this.#piscina.run(task, { signal: killer.signal, transferList: [data.port2, control.port2] });
    const residence = {
      data: data.port1 as unknown as PortLike,
      control: control.port1 as unknown as PortLike,
      ended: life.then(
        () => undefined,
        (thrown: unknown) => endOf(thrown),
      ),
      beacon: () => readShared(shared),
      kill: () => killer.abort(),
    };
    return startRemoteHost(residence, listener, startMs);
  }

  async close(): Promise<void> {
    await this.#piscina.destroy();
  }
}

function endOf(thrown: unknown): HostEnd {
  const message = messageOf(thrown);
  const code = (thrown as { code?: unknown } | null)?.code;
  if (code === 'ERR_WORKER_OUT_OF_MEMORY' || /out of memory|memory limit/i.test(message)) {
    return { cause: 'out-of-memory', message };
  }
  return { cause: /^worker exited/i.test(message) ? 'exited' : 'threw', message };
}
