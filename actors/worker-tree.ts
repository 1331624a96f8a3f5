/**
 * Worker of a cluster: env hosts, rollouts and a policy of its own, which play the groups of tickets.
 *
 *     /env-hosts  /rollout  /inference (thread)  /worker      hosts (piscina threads)
 */
import type { Broker } from '../src/cluster/broker.ts';
import { type Announcement, checkIdentity, clusterIdentity } from '../src/cluster/identity.ts';
import type { RunConfig } from '../src/config/run-config.ts';
import { LongplayError } from '../src/core/errors.ts';
import { decodeWeights, digestOf } from '../src/learning/learner/weights-file.ts';
import { fetchModel } from '../src/policy/pretrained/hub.ts';
import { setUpLocalPolicy } from '../src/policy/setup.ts';
import { setUpReader } from '../src/policy/setup-checkpoint.ts';
import { createSystem } from '../src/runtime/create-system.ts';
import { localUrl } from '../src/runtime/module-url.ts';
import { reportSlowStarts } from '../src/runtime/slow-start.ts';
import { startWatchdog } from '../src/runtime/watchdog.ts';
import { worldPrompt } from '../src/text/prompts/world-prompt.ts';
import { describeEnv, loadWorld } from '../src/world/open-world.ts';
import { checkEnvServer } from '../src/world/remote/check-server.ts';
import { spawnWorker } from './cluster/spawn.ts';
import { adapterOf, type FirstWeights } from './cluster/worker-actor.ts';
import { createEnvPool } from './env/env-pool.ts';
import { poolOptions } from './env/init.ts';
import { spawnEnvHosts } from './env/spawn.ts';
import { awaitFatalError } from './fatal-error.ts';
import { followerInference, inferenceInit } from './inference/init.ts';
import { spawnInference } from './inference/spawn.ts';
import { capacities } from './mailbox-capacities.ts';
import { CLUSTER_PATHS, isServed, PATHS, type Policy, type RunOptions } from './options.ts';
import { rolloutInit } from './rollout/init.ts';
import { spawnRollout } from './rollout/spawn.ts';

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
  readonly onNotice: (text: string) => void;
}

/** Running worker. */
export interface RunningWorker {
  /** Resolves when the run has ended; rejects with what ended the worker. */
  readonly done: Promise<void>;
  /** Stops it: the tickets that it holds go to others. */
  stop(): Promise<void>;
}

/**
 * Starts a worker.
 * @throws {UserError} BAD_CONFIG where this machine differs from what the run was announced with
 */
export async function startWorker(options: WorkerOptions): Promise<RunningWorker> {
  const { config, envModule, broker, run, announcement, slots, onNotice } = options;
  const module = await loadWorld(localUrl(envModule), config.env.id);
  const env = describeEnv(module, config.env.id, config.env.options);
  await checkEnvServer(config);
  // Behind a generation server nothing is computed here: the tokenizer and the configuration are enough.
  if (isServed(config)) await fetchModel(config.policy.path, onNotice);
  const reader = isServed(config)
    ? setUpReader(config, worldPrompt(module, config.env.options, env.description))
    : undefined;
  const local: Omit<Policy, 'params'> | undefined = reader
    ? undefined
    : setUpLocalPolicy(config, module.view, undefined);
  const { codec, identity: own } = reader ?? local!;
  const identity = clusterIdentity({ identity: own }, config);
  checkIdentity(run, announcement.identity, identity);
  const first = await readFirstWeights(options);
  const as: RunOptions = { config, dir: '', mode: 'async', envModule, learn: false, onNotice };
  const limits = capacities(config, slots);
  const system = createSystem({ mode: 'async', seed: config.seed, supervision: { intensity: 3, periodMs: 60_000 } });
  reportSlowStarts(system, onNotice);
  const isHere = config.rollout.envServer === undefined;
  const shared = isHere ? await module.share?.(config.env.options) : undefined;
  const pool = await system.outside(
    createEnvPool(poolOptions(as, [{ config, env, module: envModule, shared }], system, undefined)),
  );
  let onEnded = () => {};
  const finished = new Promise<void>((resolve) => {
    onEnded = resolve;
  });
  try {
    const fatal = awaitFatalError(pool, system);
    await spawnEnvHosts(
      system,
      { pool, rolloutPath: PATHS.rollout, record: undefined, replay: undefined },
      limits.envs,
    );
    const played = rolloutInit(as, codec.id, true, undefined);
    const { worker } = CLUSTER_PATHS;
    const inference = reader
      ? followerInference(as, reader.chat, adapterOf(first.announcement)!)
      : { ...inferenceInit(as, { ...local!, params: first.params! }), learnerPath: worker };
    const init = { ...played, slots: slots * config.rollout.groupSize, paths: { ...played.paths, scheduler: worker } };
    await spawnRollout(system, init, 'local', limits.rollout);
    await spawnInference(system, inference, limits.inference);
    await spawnWorker(system, { ...options, identity, first, onEnd: onEnded, paths: PATHS }, limits.scheduler);
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
        await pool.close();
        await broker.close();
      },
    };
  } catch (thrown) {
    await pool.close();
    await system.stop();
    throw thrown;
  }
}

/**
 * Reads the weights that the run was announced with.
 * @returns those, and the announcement; no weights where a generation server has them
 * @throws {LongplayError} REMOTE_FAILED where they are not at the broker
 */
async function readFirstWeights({ broker, announcement }: WorkerOptions): Promise<FirstWeights> {
  if (announcement.adapter) return { announcement };
  const { digest, version, bytes } = announcement;
  const found = await broker.weights.get(digest, bytes);
  if (found && digestOf(found) === digest) {
    return { announcement, params: decodeWeights(found, version, `the weights of update ${version}`) };
  }
  throw new LongplayError(
    'REMOTE_FAILED',
    `the weights of update ${version} are not at the broker; start the worker again`,
  );
}
