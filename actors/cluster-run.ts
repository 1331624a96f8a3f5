/** Learner's side of a cluster: the actors between its scheduler and the workers. */

import type { Env } from '../src/core/env.ts';
import { openChatModel } from '../src/policy/remote/chat-model.ts';
import type { ActorSystem } from '../src/runtime/actor.ts';
import { localUrl } from '../src/runtime/module-url.ts';
import { loadWorld, openWorld } from '../src/world/open-world.ts';
import { spawnTickets, spawnWeights } from './cluster/spawn.ts';
import { createVerifier } from './cluster/verifier.ts';
import { selectHostedEnv } from './env/init.ts';
import { CLUSTER_PATHS, isServed, PATHS, type PreparedCluster, type RunOptions } from './options.ts';
import type { JournaledPolicy } from './scheduler/open-journal.ts';

/** Opens the world on the learner's machine, to play workers' episodes again. It lives as long as the run. */
async function openEnv({ config, envModule }: RunOptions, env: Env): Promise<Env> {
  const { id, url, options: made } = selectHostedEnv({ config, env, module: envModule });
  const opened = await openWorld(await loadWorld(localUrl(url), id), id, made ?? {}, CLUSTER_PATHS.tickets, {
    openChatModel,
  });
  return opened.env;
}

/** Spawns the actors of a cluster's learner. @param capacity messages that may wait for the tickets actor */
export async function spawnCluster(
  system: ActorSystem,
  options: RunOptions,
  env: Env,
  { identity, first, check }: PreparedCluster,
  { policy, journal: { journal, digests } }: JournaledPolicy,
  capacity: number,
): Promise<void> {
  const { config, cluster, onNotice = () => {} } = options;
  const { broker, run, localGroups, verify, monitor } = cluster!;
  const own = new Map(digests);
  await spawnWeights(system, {
    broker,
    run,
    identity,
    config,
    first,
    digests: own,
    sync: () => journal.sync(),
    onNotice,
    isServed: isServed(config),
  });
  const { nextEpisode = 0, envSteps = 0, episodes = 0 } = policy.saved?.rollout ?? {};
  const init = {
    broker,
    localGroups,
    vocabSize: policy.model.vocabSize,
    digestOf: (version: number) => own.get(version),
    check,
    verify: verify > 0 ? createVerifier(verify, () => openEnv(options, env)) : undefined,
    monitor,
    onNotice,
    start: { nextEpisode, envSteps, episodes },
    paths: { scheduler: PATHS.scheduler, rollout: PATHS.rollout, weights: CLUSTER_PATHS.weights },
  };
  await spawnTickets(system, init, capacity);
}
