/**
 * Env host away from the main thread: the data port carries batches, the control port comlink calls. Where it lives (a
 * piscina thread, a child process) is the business of `env-thread.ts` and `env-process.ts`.
 */
import { AsyncLocalStorage, createHook } from 'node:async_hooks';
import * as Comlink from 'comlink';
import { type StepFault, stepFault } from '../../src/chaos/injector.ts';
import type { ChaosSpec } from '../../src/chaos/spec.ts';
import type { OpenChatModel } from '../../src/core/chat-model.ts';
import type { Env, MaybePromise } from '../../src/core/env.ts';
import { messageOf } from '../../src/core/errors.ts';
import { comlinkEndpoint, type PortLike } from '../../src/runtime/comlink-endpoint.ts';
import { loadWorld, type OpenWorld, openWorld } from '../../src/world/open-world.ts';
import { type CommandBatch, packEvents, portions, unpackCommands } from './batch.ts';
import { readStatedBounds, type StepBounds } from './check.ts';
import { type Beacon, HostCore } from './host-core.ts';

/** Task of a host: everything it is made from; plain data. */
export interface HostTask {
  readonly envs: readonly {
    readonly id: string;
    readonly url: string;
    readonly options?: object;
    readonly shared?: unknown;
  }[];
  readonly listActions: boolean;
  readonly where: string;
  readonly chaos?: HostChaos | undefined;
  /** True to show in the beacon whose timers and promises run, too: it is to be found whose code ends the hosts. */
  readonly watchful?: boolean | undefined;
}

/** Faults that the host performs. */
export interface HostChaos {
  readonly spec: ChaosSpec;
  /** Milliseconds that a slow step is delayed at most. */
  readonly slowMs: number;
}

/** Control calls of the main thread. */
export interface HostControl {
  /** Resolves once the worlds are started. @throws what a module threw */
  ready(): Promise<readonly EnvFacts[]>;
  /** Ends the showing of timers and promises in the beacon. */
  unwatch(): void;
  health(): MaybePromise<{ readonly episodes: number; readonly calls: number }>;
  /** Closes all sessions, releases what the worlds started, and ends the host. */
  stop(): void;
}

/** Facts about a world that the pool must know, from the host that started it. */
export interface EnvFacts {
  readonly id: string;
  readonly replay: 'exact' | 'never';
  /** Bounds that the world states; absent where it states none, and breaks its contract when it is opened. */
  readonly bounds?: StepBounds | undefined;
}

/**
 * Runs a host until `stop` is called. An error that an env lets float (a timer that throws, a promise that is not
 * awaited) fails the episode whose call started it, and the host goes on.
 * @param die ends the host for an error that cannot be attributed to an episode
 */
export async function runHost(
  task: HostTask,
  data: PortLike,
  control: PortLike,
  beacon: Beacon,
  die: (message: string) => void,
): Promise<void> {
  const envs = new Map<string, Env>();
  const running = new AsyncLocalStorage<number>();
  const core = new HostCore({
    envs,
    listActions: task.listActions,
    where: task.where,
    now: () => performance.now(),
    emit(events) {
      for (const some of portions(events)) data.postMessage(packEvents(some));
    },
    soon: setImmediate,
    beacon,
    track: (episode, call) => running.run(episode, call),
    ...faultsOf(task.chaos),
  });
  let isDying = false;
  const floating = (thrown: unknown) => {
    const episode = running.getStore();
    if (episode === undefined) {
      isDying = true;
      die(messageOf(thrown));
    } else core.uncaught(episode, thrown);
  };
  process.on('uncaughtException', floating);
  process.on('unhandledRejection', floating);
  blameExits(running, beacon);
  const watch = watchCallbacks(running, beacon);
  if (task.watchful) watch.enable();
  const loaded = startWorlds(task.envs, task.where, envs);
  loaded.catch(() => {}); // reported through `ready`
  await new Promise<void>((stop) => {
    const api: HostControl = {
      ready: () => loaded.then(({ facts }) => facts),
      unwatch: () => void watch.disable(),
      // A host that is about to end has not outlived the command that it is asked about.
      health: () => (isDying ? new Promise<never>(() => {}) : { episodes: core.episodes, calls: core.calls }),
      stop,
    };
    Comlink.expose(api, comlinkEndpoint(control));
    data.on('message', (batch: CommandBatch) => core.handle(unpackCommands(batch)));
  });
  await core.closeAll();
  await loaded.then(({ dispose }) => dispose()).catch(() => {});
  data.close();
  // The answer to `stop` leaves first.
  setImmediate(() => control.close());
}

/** Blames exits: the beacon shows whose code ends the host, also where that happens in a timer. */
function blameExits(running: AsyncLocalStorage<number>, beacon: Beacon): void {
  const exit = process.exit.bind(process);
  process.exit = (code) => {
    const episode = running.getStore();
    if (episode !== undefined) beacon.enter(episode);
    return exit(code);
  };
}

/**
 * Hook that shows in the beacon the episode whose timer or promise runs, so that one that never returns has a name. It costs
 * two entries a callback, and so is on only while a culprit is sought.
 */
function watchCallbacks(running: AsyncLocalStorage<number>, beacon: Beacon) {
  return createHook({
    before() {
      const episode = running.getStore();
      if (episode !== undefined) beacon.show(episode);
    },
    after() {
      if (running.getStore() !== undefined) beacon.leave();
    },
  });
}

/** Fault options of a `HostCore` under chaos; none without. */
export function faultsOf(chaos: HostChaos | undefined): {
  readonly fault?: (episode: number, turn: number) => StepFault | undefined;
  readonly slowMs?: number;
} {
  if (!chaos) return {};
  return { fault: (episode, turn) => stepFault(chaos.spec, episode, turn), slowMs: chaos.slowMs };
}

/** Worlds of one host. */
export interface HostedWorlds {
  readonly facts: readonly EnvFacts[];
  /** Releases all of them; the first error is thrown after the last one. */
  dispose(): Promise<void>;
}

/** Opens a model for a world that talks to one; other hosts do not load what that takes. */
const openChatModel: OpenChatModel = async (options) =>
  (await import('../../src/policy/remote/chat-model.ts')).openChatModel(options);

/**
 * Loads and starts the worlds of a host, once each.
 * @param envs gets the rules, by id
 * @throws what a world threw; those started before it are released again
 */
export async function startWorlds(
  specs: HostTask['envs'],
  where: string,
  envs: Map<string, Env>,
): Promise<HostedWorlds> {
  const opened: OpenWorld[] = [];
  const dispose = async () => {
    const released = await Promise.allSettled(opened.map((one) => one.dispose()));
    for (const one of released) if (one.status === 'rejected') throw one.reason;
  };
  try {
    const facts: EnvFacts[] = [];
    for (const { id, url, options, shared } of specs) {
      const world = await loadWorld(new URL(url), id);
      const one = await openWorld(world, id, { ...options }, where, { shared, openChatModel });
      opened.push(one);
      envs.set(id, one.env);
      facts.push({ id, replay: one.env.replay === 'never' ? 'never' : 'exact', bounds: readStatedBounds(one.env) });
    }
    return { facts, dispose };
  } catch (thrown) {
    await dispose().catch(() => {}); // the first mistake is the one to report
    throw thrown;
  }
}
