/** Starts the recorder. */
import type { ActorSystem } from '../../src/runtime/actor.ts';
import type { RecorderCommand } from './protocol.ts';
import { type RecorderInit, recorderActor } from './recorder-actor.ts';

/** @param capacity messages that may wait; past it the oldest is dropped and counted */
export function spawnRecorder(system: ActorSystem, init: RecorderInit, capacity: number) {
  return system.spawn<RecorderCommand>('recorder', recorderActor(init), {
    mailbox: { capacity, overflow: 'drop-oldest' },
  });
}
