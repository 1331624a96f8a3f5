/** Spawns the rollout actor. */
import type { ActorSystem } from '../../src/runtime/actor.ts';
import type { RolloutCommand, RolloutInit } from './protocol.ts';

/**
 * Spawns the rollout actor; a crash of it ends the run.
 * @param placement here, or in a thread of its own: two hops a turn farther away from hosts and policy
 * @param capacity messages that may wait, ≥ 1
 */
export function spawnRollout(system: ActorSystem, init: RolloutInit, placement: 'local' | 'thread', capacity: number) {
  const url = new URL('./rollout-actor.js', import.meta.url);
  return system.spawnModule<RolloutCommand, RolloutInit>(
    'rollout',
    { url, init, placement },
    { restart: 'temporary', mailbox: { capacity, overflow: 'wait' } },
  );
}
