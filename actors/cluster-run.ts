/** Learner's side of a cluster: the actors between its scheduler and the workers. */

import { MAX_WEIGHTS_BYTES } from '../src/cluster/broker.ts';
import { createEpisodeCheck } from '../src/cluster/episode-check.ts';
import { type ClusterIdentity, longplayVersion, PROTOCOL } from '../src/cluster/identity.ts';
import type { ModelConfig } from '../src/compute/model/config.ts';
import { parameterSpecs } from '../src/compute/model/parameters.ts';
import { kindsThat, policyKindOf } from '../src/config/policy-kinds.ts';
import type { RunConfig } from '../src/config/run-config.ts';
import type { Env } from '../src/core/env.ts';
import { UserError } from '../src/core/errors.ts';
import { digestOf, encodeWeights } from '../src/learning/learner/weights-file.ts';
import type { ActorSystem } from '../src/runtime/actor.ts';
import { localUrl } from '../src/runtime/module-url.ts';
import { pinEnv } from '../src/world/env-id.ts';
import { loadWorld, openWorld } from '../src/world/open-world.ts';
import { spawnTickets, spawnWeights } from './cluster/spawn.ts';
import { createVerifier } from './cluster/verifier.ts';
import { selectHostedEnv } from './env/init.ts';
import { CLUSTER_PATHS, isServed, PATHS, type Policy, type RunOptions } from './options.ts';
import type { JournaledPolicy } from './scheduler/open-journal.ts';

/** Returns the identity of a run. A user's own world is identified by its bytes: its path differs by machine. */
export function clusterIdentity({ identity: own }: Pick<Policy, 'identity'>, config: RunConfig): ClusterIdentity {
  const { env } = config;
  const { base: _, adapter: __, ...read } = own.model;
  // A generation server has the base and its adapter: workers only read and write tokens.
  const identity = isServed(config) ? { ...own, model: read } : own;
  const world = pinEnv(env, '.').sha256;
  const named = world === undefined ? identity : { ...identity, env: 'a module' };
  return { ...named, protocol: PROTOCOL, longplay: longplayVersion(), world };
}

/**
 * Checks that workers can play for a run.
 * @param model of its policy; undefined where it has none of its own
 * @throws {UserError} BAD_CONFIG naming what they cannot play, and what to do
 */
export function checkClusterRun(
  { config, mode, chaos, cluster }: Pick<RunOptions, 'config' | 'mode' | 'chaos' | 'cluster'>,
  { replay }: Pick<Env, 'replay'>,
  model: ModelConfig | undefined,
): void {
  const refuse = (why: string) => new UserError('BAD_CONFIG', `--cluster: ${why}`);
  if (mode === 'serial') throw refuse('a serial run is one event loop; leave --serial out');
  if (chaos) throw refuse('faults are injected on one machine; leave --chaos out');
  if (cluster && cluster.verify > 0 && replay === 'never') {
    throw refuse("--verify plays episodes again, and this world's actions have effects outside; leave it out");
  }
  if (!policyKindOf(config).hasWorkers) {
    throw refuse(`workers play policy.kind ${kindsThat('hasWorkers')}, not '${config.policy.kind}'`);
  }
  const bytes = model && !isServed(config) ? weightBytes(model) : 0;
  if (bytes > MAX_WEIGHTS_BYTES) {
    const [has, most] = [bytes, MAX_WEIGHTS_BYTES].map((n) => Math.ceil(n / 2 ** 20));
    throw refuse(
      `the weights of this model have ${has} MiB, expected at most ${most} MiB; use policy.kind: server, or a smaller model`,
    );
  }
}

/** Bytes of the weights that are trained, float32. */
function weightBytes(model: ModelConfig): number {
  return parameterSpecs(model).reduce((sum, { shape }) => sum + 4 * shape.reduce((a, b) => a * b, 1), 0);
}

/** Opens the world on the learner's machine, to play workers' episodes again. It lives as long as the run. */
async function openEnv(options: RunOptions, env: Env): Promise<Env> {
  const { id, url, options: made } = selectHostedEnv(options, env);
  const opened = await openWorld(await loadWorld(localUrl(url), id), id, made ?? {}, CLUSTER_PATHS.tickets);
  return opened.env;
}

/** Spawns the actors of a cluster's learner. @param capacity messages that may wait for the tickets actor */
export async function spawnCluster(
  system: ActorSystem,
  options: RunOptions,
  env: Env,
  { policy, journal: { journal, digests } }: JournaledPolicy,
  capacity: number,
): Promise<void> {
  const { config, cluster, onNotice = () => {} } = options;
  const { broker, run, localGroups, verify, monitor } = cluster!;
  const bytes = encodeWeights(policy.model, policy.params);
  const served = isServed(config);
  const first = { version: policy.params.version, digest: digestOf(bytes), bytes: served ? new Uint8Array() : bytes };
  const own = new Map(digests);
  const { codec, model } = policy;
  const { decoder, masked } = config.policy;
  const identity = clusterIdentity(policy, config);
  await spawnWeights(system, {
    broker,
    run,
    identity,
    config,
    first,
    digests: own,
    sync: () => journal.sync(),
    onNotice,
    isServed: served,
  });
  const { nextEpisode = 0, envSteps = 0, episodes = 0 } = policy.saved?.rollout ?? {};
  const init = {
    broker,
    localGroups,
    vocabSize: policy.model.vocabSize,
    digestOf: (version: number) => own.get(version),
    check: createEpisodeCheck({ env, codec, maxPositions: model.maxPositions, decoder, masked }),
    verify: verify > 0 ? createVerifier(verify, () => openEnv(options, env)) : undefined,
    monitor,
    onNotice,
    start: { nextEpisode, envSteps, episodes },
    paths: { scheduler: PATHS.scheduler, rollout: PATHS.rollout, weights: CLUSTER_PATHS.weights },
  };
  await spawnTickets(system, init, capacity);
}
