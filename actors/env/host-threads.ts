/**
 * Host threads: hosts in piscina threads, one per thread, so that ending one leaves the others alone. Processes that a
 * world starts there are children of the whole run. They end with their host where `process-tree.ts` recognises them,
 * and when the run exits. Those of a run that is killed stay.
 */
import { randomUUID } from 'node:crypto';
import { MessageChannel } from 'node:worker_threads';
import { Piscina } from 'piscina';
import { messageOf } from '../../src/core/errors.ts';
import type { PortLike } from '../../src/runtime/comlink-endpoint.ts';
import { workerUrl } from '../../src/runtime/module-url.ts';
import { createSharedBeacon, readShared, threadOf } from './beacon.ts';
import type { ThreadTask } from './env-thread.ts';
import {
  type Host,
  type HostEnd,
  type HostFactory,
  type HostListener,
  type HostOptions,
  hostTask,
  startHostIn,
} from './hosts.ts';
import { endMarked } from './process-tree.ts';
import { ProcessorWait, readThread } from './processor-wait.ts';

export interface ThreadLimits {
  readonly maxOldGenerationSizeMb?: number;
}

export class HostThreads implements HostFactory {
  readonly #piscina: Piscina;
  /** Marks of all hosts: one that is ended may start a last process before it is gone. */
  readonly #marks: string[] = [];
  readonly #onExit = () => endMarked(this.#marks);

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
      atomics: 'disabled', // else a thread whose task waits for messages sleeps in Atomics.wait and never receives them
      resourceLimits,
      env: { ...variables },
    });
    process.once('exit', this.#onExit);
    this.#piscina.on('error', () => {}); // threads that die without a task; those with one reject it
  }

  start(options: HostOptions, listener: HostListener, startMs: number): Promise<Host> {
    const data = new MessageChannel();
    const control = new MessageChannel();
    const shared = createSharedBeacon();
    const mark = randomUUID();
    this.#marks.push(mark);
    const task: ThreadTask = { ...hostTask(options), shared, mark, data: data.port2, control: control.port2 };
    // The signal is the kill switch: it ends the thread, whatever runs there.
    const killer = new AbortController();
    const life = this.#piscina.run(task, { signal: killer.signal, transferList: [data.port2, control.port2] });
    const wait = new ProcessorWait(() => {
      const thread = threadOf(shared);
      return thread === 0 ? undefined : readThread('self', thread);
    });
    const residence = {
      data: data.port1 as unknown as PortLike,
      control: control.port1 as unknown as PortLike,
      ended: life
        .then(() => undefined, endOf)
        .then((end) => {
          endMarked([mark]);
          return end;
        }),
      beacon: () => readShared(shared),
      waitedMs: (now: number) => wait.ms(now),
      kill: () => killer.abort(),
    };
    return startHostIn(residence, listener, startMs);
  }

  async close(): Promise<void> {
    await this.#piscina.destroy();
    process.off('exit', this.#onExit);
    this.#onExit();
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
