/**
 * A host away from the main thread: the data port carries batches, the control port comlink calls. Where it lives (a
 * piscina thread, a child process) is the business of `env-thread.ts` and `env-process.ts`.
 */
import * as Comlink from 'comlink';
import { type StepFault, stepFault } from '../../src/chaos/injector.ts';
import type { ChaosSpec } from '../../src/chaos/spec.ts';
import type { Env, EnvModule } from '../../src/core/env.ts';
import { comlinkEndpoint, type PortLike } from '../../src/runtime/comlink-endpoint.ts';
import { type CommandBatch, packEvents, unpackCommands } from './batch.ts';
import { type Beacon, HostCore } from './host-core.ts';

/** What a host is made from; plain data. */
export interface HostTask {
  readonly envs: readonly { readonly id: string; readonly url: string; readonly options?: object }[];
  readonly listActions: boolean;
  readonly where: string;
  readonly chaos?: HostChaos;
}

/** Faults that the host performs. */
export interface HostChaos {
  readonly spec: ChaosSpec;
  /** Longest delay of a slow step, milliseconds. */
  readonly slowMs: number;
}

/** What the main thread may call. */
export interface HostControl {
  /** Resolves once the envs are loaded. @throws what a module threw */
  ready(): Promise<void>;
  health(): { readonly episodes: number; readonly calls: number; readonly heapUsed: number };
  /** Closes all sessions and ends the host. */
  stop(): void;
}

/** Serves until `stop` is called. */
export async function runHost(task: HostTask, data: PortLike, control: PortLike, beacon: Beacon): Promise<void> {
  const envs = new Map<string, Env>();
  const core = new HostCore({
    envs,
    listActions: task.listActions,
    where: task.where,
    now: () => performance.now(),
    emit: (events) => data.postMessage(packEvents(events)),
    soon: setImmediate,
    beacon,
    ...faultsOf(task.chaos),
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

/** The options of a `HostCore` under chaos; none without. */
export function faultsOf(chaos: HostChaos | undefined): {
  readonly fault?: (episode: number, turn: number) => StepFault | undefined;
  readonly slowMs?: number;
} {
  if (!chaos) return {};
  return { fault: (episode, turn) => stepFault(chaos.spec, episode, turn), slowMs: chaos.slowMs };
}

async function load(task: HostTask, envs: Map<string, Env>): Promise<void> {
  for (const { id, url, options } of task.envs) {
    const module = (await import(url)) as EnvModule;
    envs.set(id, module.createEnv(options as Record<string, unknown> | undefined));
  }
}
