/** Spawns the batching inference actor. */
import { hasEngine } from '../../src/policy/open-policy.ts';
import type { ActorSystem } from '../../src/runtime/actor.ts';
import type { InferenceCommand, InferenceInit } from './protocol.ts';

/** Spawns it in a thread of its own where it has an engine. @param capacity messages that may wait, ≥ 1 */
export function spawnInference(system: ActorSystem, init: InferenceInit, capacity: number) {
  return system.spawnModule<InferenceCommand, InferenceInit>(
    'inference',
    {
      url: new URL('./inference-actor.js', import.meta.url),
      init,
      placement: hasEngine(init.policy) ? 'thread' : 'local',
    },
    { killable: false, control: ['loadWeights'], mailbox: { capacity, overflow: 'wait' } },
  );
}
