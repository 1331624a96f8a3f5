/** Spawns the recorder. */
import { trajectoryBytes } from '../../src/record/trajectory-bytes.ts';
import type { ActorSystem } from '../../src/runtime/actor.ts';
import type { RecorderCommand } from './protocol.ts';
import { type RecorderInit, recorderActor } from './recorder-actor.ts';

/** Bytes of a message without trajectories, about. */
const SMALL = 1024;

/**
 * Spawns the recorder.
 * @param bytes of messages that may wait; past them the oldest are dropped and counted
 */
export function spawnRecorder(system: ActorSystem, init: RecorderInit, bytes: number) {
  return system.spawn<RecorderCommand>('recorder', recorderActor(init), {
    mailbox: { capacity: bytes, overflow: 'drop-oldest', weigh: (message) => weightOf(message as RecorderCommand) },
  });
}

function weightOf(message: RecorderCommand): number {
  return message.type === 'episodes' ? SMALL + trajectoryBytes(message.trajectories) : SMALL;
}
