/**
 * Worker of a cluster: env hosts, rollouts and a policy of its own, which play the groups of tickets.
 *
 *     /env-hosts  /rollout  /inference (thread)  /worker      hosts (piscina threads)
 */
import { type Broker, BrokerAway } from '../src/cluster/broker.ts';
import { type Announcement, checkIdentity, decodeAnnouncement } from '../src/cluster/identity.ts';
import type { ServedAt } from '../src/cluster/weights-http.ts';
import { WeightsRelay } from '../src/cluster/weights-relay.ts';
import type { RunConfig } from '../src/config/run-config.ts';
import { LongplayError } from '../src/core/errors.ts';
import { seedFrom } from '../src/core/rng.ts';
import { decodeWeights, digestOf } from '../src/learner/weights-file.ts';
import { setUpLocalPolicy } from '../src/policy/setup.ts';
import { setUpReader } from '../src/policy/setup-checkpoint.ts';
import { worldPrompt } from '../src/prompts/world-prompt.ts';
import type { RemoteHostsAt } from '../src/run/env-hosts.ts';
import { createSystem } from '../src/runtime/create-system.ts';
import { localUrl } from '../src/runtime/thread.ts';
import { startWatchdog } from '../src/runtime/watchdog.ts';
import { describeEnv, loadWorld } from '../src/world/open-world.ts';
import {
  CLUSTER_PATHS,
  capacities,
  inferenceInit,
  isServed,
  PATHS,
  type Policy,
  poolOptions,
  remoteHosts,
  rolloutInit,
  toldInference,
} from './actor-inits.ts';
import { spawnWorker } from './cluster/spawn.ts';
import { type FirstWeights, servedBy } from './cluster/worker-actor.ts';
import { clusterIdentity } from './cluster-run.ts';
import { createEnvPool } from './env/env-pool.ts';
import { spawnEnvHosts } from './env/spawn.ts';
import { fatalError } from './fatal-error.ts';
import { spawnInference } from './inference/spawn.ts';
import { spawnRollout } from './rollout/spawn.ts';
import type { RunOptions } from './run.ts';

/** Options of a worker. */
export interface WorkerOptions {
  readonly broker: Broker;
  /** Name of the run at the broker. */
  readonly run: string;
  /** Name of this worker. */
  readonly name: string;
  readonly announcement: Announcement;
  /** Configuration of the run, with the world as this machine has it. */
  readonly config: RunConfig;
  readonly envModule: URL;
  /** Groups at once, ≥ 1. */
  readonly slots: number;
  readonly leaseMs: number;
  /** Address at which weights that came over HTTP are handed on. */
  readonly relayAt: ServedAt;
  /** Way to the env hosts of other machines, where the run's `rollout.isolation` is `remote`. */
  readonly remoteHosts: RemoteHostsAt;
  readonly onNotice: (text: string) => void;
}

/** Running worker. */
export interface RunningWorker {
  /** Resolves when the run has ended; rejects with what ended the worker. */
  readonly done: Promise<void>;
  /** Stops it: what it holds goes to others. */
  stop(): Promise<void>;
}

/**
 * Starts a worker.
 * @throws {UserError} BAD_CONFIG where this machine has not what the run was announced with
 */
export async function startWorker(options: WorkerOptions): Promise<RunningWorker> {
  const { config, envModule, broker, run, announcement, slots, onNotice } = options;
  const module = await loadWorld(localUrl(envModule), config.env.id);
  const env = describeEnv(module, config.env.id, config.env.options);
  // Behind a server nothing is computed here: what reads and writes the tokens is enough.
  const reader = isServed(config)
    ? setUpReader(config, worldPrompt(module, config.env.options, env.description))
    : undefined;
  const local: Omit<Policy, 'params'> | undefined = reader
    ? undefined
    : setUpLocalPolicy(config, module.view, undefined);
  const { codec, identity: own } = reader ?? local!;
  const identity = clusterIdentity({ identity: own }, config);
  checkIdentity(run, announcement.identity, identity);
  const relay = new WeightsRelay(broker, options.name, options.relayAt, seedFrom(options.name));
  const first = await firstWeights(options, relay).catch(async (thrown) => {
    await relay.close();
    throw thrown;
  });
  const { remoteHosts: remoteHostsAt } = options;
  const as: RunOptions = {
    ...{ config, dir: '', mode: 'async', envModule, learn: false },
    remoteHosts: remoteHostsAt,
    onNotice,
  };
  const most = capacities(config, slots);
  const system = createSystem({ mode: 'async', seed: config.seed, supervision: { intensity: 3, periodMs: 60_000 } });
  const hosts = await remoteHosts(as, env, system.clock);
  const isHere = config.rollout.envServer === undefined && !hosts;
  const shared = isHere ? await module.share?.(config.env.options) : undefined;
  const pool = await system.outside(createEnvPool(poolOptions(as, env, system, undefined, shared, hosts)));
  let ended = () => {};
  const finished = new Promise<void>((resolve) => {
    ended = resolve;
  });
  try {
    const fatal = fatalError(pool, system);
    await spawnEnvHosts(system, { pool, rolloutPath: PATHS.rollout, record: undefined, replay: undefined }, most.envs);
    const played = rolloutInit(as, codec.id, true, undefined);
    const { worker } = CLUSTER_PATHS;
    const inference = reader
      ? toldInference(as, reader.chat, servedBy(first.announcement)!)
      : { ...inferenceInit(as, { ...local!, params: first.params! }), learnerPath: worker };
    const init = { ...played, slots: slots * config.rollout.groupSize, paths: { ...played.paths, scheduler: worker } };
    await spawnRollout(system, init, 'local', most.rollout);
    await spawnInference(system, inference, most.inference);
    await spawnWorker(system, { ...options, identity, relay, first, onEnd: ended, paths: PATHS }, most.scheduler);
    const endWatchdog = startWatchdog(system, {
      onStall: onNotice,
      onLag: (lagMs) => onNotice(`the main event loop was ${Math.round(lagMs)} ms late`),
      run: () => ({ expected: false, progress: 0 }),
    });
    return {
      done: Promise.race([finished, fatal]),
      async stop() {
        endWatchdog();
        await system.stop();
        await relay.close();
        await pool.close();
        await broker.close();
      },
    };
  } catch (thrown) {
    await relay.close();
    await pool.close();
    await system.stop();
    throw thrown;
  }
}

/** Milliseconds in which the weights that a run is announced with have to be had: a learner that was started again serves them soon. */
const FIRST_WEIGHTS_MS = 60_000;

/**
 * Weights to begin with, and what announced them.
 * @throws {LongplayError} REMOTE_FAILED where they cannot be had
 */
async function firstWeights(
  { broker, announcement: announced, onNotice }: WorkerOptions,
  relay: WeightsRelay,
): Promise<FirstWeights> {
  if (announced.adapter) return { announcement: announced };
  const began = performance.now();
  for (let announcement = announced; ; ) {
    const { digest, version } = announcement;
    const isLate = performance.now() - began > FIRST_WEIGHTS_MS;
    const found = await relay.fetch(announcement).catch((thrown) => {
      if (!(thrown instanceof BrokerAway) || isLate) throw thrown;
      onNotice(`${thrown.message}; waiting for it`);
    });
    if (found && digestOf(found) === digest) {
      return { announcement, params: decodeWeights(found, version, `the weights of update ${version}`) };
    }
    if (!announcement.where || isLate) {
      throw new LongplayError(
        'REMOTE_FAILED',
        `the weights of update ${version} are not at the broker; start the worker again`,
      );
    }
    await new Promise((resolve) => setTimeout(resolve, 2000));
    const newer = await broker.announced();
    if (newer) announcement = decodeAnnouncement(newer.bytes);
  }
}
