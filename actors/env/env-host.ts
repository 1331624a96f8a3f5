/**
 * A host in a piscina thread: one task for the thread's whole life. The data port carries batches, the control port
 * comlink calls, and a shared array says at any moment which episode's code is running, so that the main thread can
 * name the culprit of a thread that spins or died.
 */
import type { MessagePort } from 'node:worker_threads';
import * as Comlink from 'comlink';
import type { Env, EnvModule } from '../../src/core/env.ts';
import { comlinkEndpoint } from '../../src/runtime/comlink-endpoint.ts';
import { type CommandBatch, packEvents, unpackCommands } from './batch.ts';
import { HostCore } from './host-core.ts';

/** Places in the shared array. */
export const beacon = {
  /** Episode whose code runs now; −1 for none. */
  current: 0,
  /** Commands begun. */
  began: 1,
  /** Calls into envs begun: a number that stands still while `current` is set means a call that does not return. */
  calls: 2,
  length: 3,
} as const;

export interface HostTask {
  readonly envs: readonly { readonly id: string; readonly url: string; readonly options?: object }[];
  readonly listActions: boolean;
  readonly where: string;
  readonly shared: Int32Array<SharedArrayBuffer>;
  readonly data: MessagePort;
  readonly control: MessagePort;
}

/** What the main thread may call. */
export interface HostControl {
  /** Resolves once the envs are loaded. @throws what a module threw */
  ready(): Promise<void>;
  health(): { readonly episodes: number; readonly calls: number; readonly heapUsed: number };
  /** Closes all sessions and ends the task. */
  stop(): void;
}

/** The piscina task. Resolves when `stop` was called. */
export default async function host(task: HostTask): Promise<void> {
  const { shared, data, control } = task;
  shared[beacon.current] = -1;
  const envs = new Map<string, Env>();
  const core = new HostCore({
    envs,
    listActions: task.listActions,
    where: task.where,
    now: () => performance.now(),
    emit: (events) => data.postMessage(packEvents(events)),
    soon: setImmediate,
    beacon: {
      enter(episode) {
        shared[beacon.calls]!++;
        Atomics.store(shared, beacon.current, episode);
      },
      leave: () => void Atomics.store(shared, beacon.current, -1),
      began: () => void shared[beacon.began]!++,
    },
  });
  const loaded = load(task, envs);
  loaded.catch(() => {}); // told through `ready`
  await new Promise<void>((stop) => {
    const api: HostControl = {
      ready: () => loaded,
      health: () => ({ episodes: core.episodes, calls: core.calls, heapUsed: process.memoryUsage().heapUsed }),
      stop,
    };
    Comlink.expose(api, comlinkEndpoint(control));
    data.on('message', (batch: CommandBatch) => core.handle(unpackCommands(batch)));
  });
  core.closeAll();
  data.close();
  // The answer to `stop` leaves first.
  setImmediate(() => control.close());
}

async function load(task: HostTask, envs: Map<string, Env>): Promise<void> {
  for (const { id, url, options } of task.envs) {
    const module = (await import(url)) as EnvModule;
    envs.set(id, module.createEnv(options as Record<string, unknown> | undefined));
  }
}
