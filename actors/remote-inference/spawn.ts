/** Spawns the remote inference actor, in the place of the batching one. */
import type { ActorSystem } from '../../src/runtime/actor.ts';
import type { InferenceCommand } from '../inference/protocol.ts';
import type { RemoteInferenceInit } from './protocol.ts';

/**
 * Spawns the remote inference actor.
 * @param capacity messages that may wait, ≥ 1
 */
export function spawnRemoteInference(system: ActorSystem, init: RemoteInferenceInit, capacity: number) {
  return system.spawnModule<InferenceCommand, RemoteInferenceInit>(
    'inference',
    { url: new URL('./remote-inference-actor.js', import.meta.url), init, placement: 'local' },
    { killable: false, control: ['loadWeights'], mailbox: { capacity, overflow: 'wait' } },
  );
}
