/** Spawns the batching inference actor. */
import type { ActorSystem } from '../../src/runtime/actor.ts';
import type { InferenceCommand, InferenceInit } from './protocol.ts';

/** Spawns it in a thread of its own where it has an engine. @param capacity messages that may wait, ≥ 1 */
export function spawnInference(system: ActorSystem, init: InferenceInit, capacity: number) {
  return system.spawnModule<InferenceCommand, InferenceInit>(
    'inference',
    {
      url: new URL('./inference-actor.js', import.meta.url),
      init,
      placement: init.policy.kind === 'random' ? 'local' : 'thread',
    },
    { killable: false, startMs: 120_000, control: ['loadWeights'], mailbox: { capacity, overflow: 'wait' } },
  );
}
