/** Learner's side of a cluster: what stands between its scheduler and the workers. */
import { type ClusterIdentity, longplayVersion, PROTOCOL } from '../src/cluster/identity.ts';
import type { RunConfig } from '../src/config/run-config.ts';
import { UserError } from '../src/core/errors.ts';
import { digestOf, encodeWeights } from '../src/learner/weights-file.ts';
import { pinnedEnv } from '../src/run/find-world.ts';
import type { ActorSystem } from '../src/runtime/actor.ts';
import { PATHS, type Policy } from './actor-inits.ts';
import { spawnTickets, spawnWeights } from './cluster/spawn.ts';
import type { JournaledPolicy } from './journaled-run.ts';
import type { RunOptions } from './run.ts';

/** Identity of a run, for its workers. A user's own world is known by its bytes: where they lie differs by machine. */
export function clusterIdentity({ identity }: Policy, { env }: RunConfig): ClusterIdentity {
  const world = pinnedEnv(env, '.').sha256;
  const named = world === undefined ? identity : { ...identity, env: 'a module' };
  return { ...named, protocol: PROTOCOL, longplay: longplayVersion(), world };
}

/** @throws {UserError} BAD_CONFIG for a run that workers cannot play for */
export function checkClusterRun({ config, mode, chaos }: RunOptions): void {
  const refuse = (why: string) => new UserError('BAD_CONFIG', `--cluster: ${why}`);
  if (mode === 'serial') throw refuse('a serial run is one event loop; leave --serial out');
  if (chaos) throw refuse('faults are injected on one machine; leave --chaos out');
  if (config.policy.kind !== 'local') {
    throw refuse(`workers play the local policy, not policy.kind '${config.policy.kind}'`);
  }
}

/** Spawns the actors of a cluster's learner. @param capacity messages that may wait for the tickets actor */
export async function spawnCluster(
  system: ActorSystem,
  { config, cluster }: RunOptions,
  { policy, journal: { journal, digests } }: JournaledPolicy,
  capacity: number,
): Promise<void> {
  const { broker, run, localGroups } = cluster!;
  const bytes = encodeWeights(policy.model, policy.params);
  const first = { version: policy.params.version, digest: digestOf(bytes), bytes };
  const own = new Map(digests);
  const identity = clusterIdentity(policy, config);
  await spawnWeights(system, { broker, run, identity, config, first, digests: own, sync: () => journal.sync() });
  const { nextEpisode = 0, envSteps = 0, episodes = 0 } = policy.saved?.rollout ?? {};
  const init = {
    broker,
    localGroups,
    vocabSize: policy.model.vocabSize,
    digestOf: (version: number) => own.get(version),
    start: { nextEpisode, envSteps, episodes },
    paths: { scheduler: PATHS.scheduler, rollout: PATHS.rollout },
  };
  await spawnTickets(system, init, capacity);
}
