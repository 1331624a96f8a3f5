/** Learner's side of a cluster: what stands between its scheduler and the workers. */

import { episodeCheck } from '../src/cluster/episode-check.ts';
import { type ClusterIdentity, longplayVersion, PROTOCOL } from '../src/cluster/identity.ts';
import { kindsThat, policyKindOf } from '../src/config/policy-kinds.ts';
import type { RunConfig } from '../src/config/run-config.ts';
import type { Env } from '../src/core/env.ts';
import { UserError } from '../src/core/errors.ts';
import { digestOf, encodeWeights } from '../src/learner/weights-file.ts';
import { pinnedEnv } from '../src/run/find-world.ts';
import type { ActorSystem } from '../src/runtime/actor.ts';
import { localUrl } from '../src/runtime/thread.ts';
import { loadWorld, openWorld } from '../src/world/open-world.ts';
import { CLUSTER_PATHS, hostedEnv, isServed, PATHS, type Policy } from './actor-inits.ts';
import { spawnTickets, spawnWeights } from './cluster/spawn.ts';
import { verifierOf } from './cluster/verifier.ts';
import type { JournaledPolicy } from './journaled-run.ts';
import type { RunOptions } from './run.ts';

/** Identity of a run, for its workers. A user's own world is known by its bytes: where they lie differs by machine. */
export function clusterIdentity({ identity: own }: Pick<Policy, 'identity'>, config: RunConfig): ClusterIdentity {
  const { env } = config;
  const { base: _, adapter: __, ...read } = own.model;
  // Behind a server the base and its adapter are the server's: workers read and write the tokens alone.
  const identity = isServed(config) ? { ...own, model: read } : own;
  const world = pinnedEnv(env, '.').sha256;
  const named = world === undefined ? identity : { ...identity, env: 'a module' };
  return { ...named, protocol: PROTOCOL, longplay: longplayVersion(), world };
}

/** @throws {UserError} BAD_CONFIG for a run that workers cannot play for */
export function checkClusterRun({ config, mode, chaos, cluster }: RunOptions, { replay }: Env): void {
  const refuse = (why: string) => new UserError('BAD_CONFIG', `--cluster: ${why}`);
  if (mode === 'serial') throw refuse('a serial run is one event loop; leave --serial out');
  if (chaos) throw refuse('faults are injected on one machine; leave --chaos out');
  if (cluster && cluster.verify > 0 && replay === 'never') {
    throw refuse("--verify plays episodes again, and this world's actions have effects outside; leave it out");
  }
  if (!policyKindOf(config).hasWorkers) {
    throw refuse(`workers play policy.kind ${kindsThat('hasWorkers')}, not '${config.policy.kind}'`);
  }
}

/** World of the learner's own machine, to play workers' episodes again. It lives as long as the run. */
async function openedEnv(options: RunOptions, env: Env): Promise<Env> {
  const { id, url, options: made } = hostedEnv(options, env);
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
  const { broker, run, localGroups, verify, watch, http } = cluster!;
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
    http,
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
    check: episodeCheck({ env, codec, maxPositions: model.maxPositions, decoder, masked }),
    verify: verify > 0 ? verifierOf(verify, () => openedEnv(options, env)) : undefined,
    watch,
    onNotice,
    start: { nextEpisode, envSteps, episodes },
    paths: { scheduler: PATHS.scheduler, rollout: PATHS.rollout, weights: CLUSTER_PATHS.weights },
  };
  await spawnTickets(system, init, capacity);
}
