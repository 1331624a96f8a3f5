/** Spawns the learner. */
import type { ActorSystem } from '../../src/runtime/actor.ts';
import type { LearnerCommand, LearnerInit } from './protocol.ts';

/** Spawns it in a thread of its own; a crash of it ends the run. @param capacity messages that may wait, ≥ 1 */
export function spawnLearner(system: ActorSystem, init: LearnerInit, capacity: number) {
  return system.spawnModule<LearnerCommand, LearnerInit>(
    'learner',
    { url: new URL('./learner-actor.js', import.meta.url), init, placement: 'thread' },
    {
      killable: false,
      shutdownMs: 60_000,
      restart: 'temporary',
      mailbox: { capacity, overflow: 'wait' },
    },
  );
}
