/** Spawns the remote inference actor, in the place of the batching one. */
import type { ActorSystem } from '../../src/runtime/actor.ts';
import type { InferenceCommand } from '../inference/protocol.ts';
import type { RemoteInferenceInit } from './protocol.ts';

/**
 * Spawns the remote inference actor; its end is the run's.
 * @param capacity messages that may wait, ≥ 1
 */
export function spawnRemoteInference(system: ActorSystem, init: RemoteInferenceInit, capacity: number) {
  return system.spawnModule<InferenceCommand, RemoteInferenceInit>(
    'inference',
    { url: new URL('./remote-inference-actor.js', import.meta.url), init, placement: 'local' },
    {
      restart: 'temporary', // what it throws is the server's last word
      killable: false,
      control: ['loadWeights'],
      mailbox: { capacity, overflow: 'wait' },
    },
  );
}
