/** Spawns the recorder. */

import type { ActorSystem } from '../../src/runtime/actor.ts';
import { arrayBytes, textBytes, trajectoryBytes } from '../../src/storage/trajectory-bytes.ts';
import type { RecorderCommand } from './protocol.ts';
import { type RecorderInit, recorderActor } from './recorder-actor.ts';

/** Bytes of a message beside what it carries by the episode, about: a status, a row of metrics. */
const SMALL = 4096;
/** Bytes of a result of an evaluation, and of what refers to a group's advantages, about. */
const RESULT = 500;

/**
 * Spawns the recorder.
 * @param bytes of messages that may wait; past them the oldest are dropped and counted
 */
export function spawnRecorder(system: ActorSystem, init: RecorderInit, bytes: number) {
  return system.spawn<RecorderCommand>('recorder', recorderActor(init), {
    mailbox: { capacity: bytes, overflow: 'drop-oldest', weigh: (message) => weightOf(message as RecorderCommand) },
  });
}

/** Bytes of memory that a message holds, an estimate from above. */
export function weightOf(message: RecorderCommand): number {
  switch (message.type) {
    case 'episodes':
      return SMALL + trajectoryBytes(message.trajectories);
    case 'updated':
      return SMALL + creditBytes(message.report.credit);
    case 'evaluated': {
      const { plan, results } = message.record;
      return SMALL + RESULT * (plan.tasks.length + results.length * (1 + plan.episodes));
    }
    case 'failed':
    case 'quarantined':
      return SMALL + textBytes(message.failure.message);
    case 'noticed':
      return SMALL + textBytes(message.text);
    default:
      return SMALL;
  }
}

function creditBytes(credit: readonly { readonly advantages: readonly Float32Array[] }[]): number {
  let bytes = 0;
  for (const { advantages } of credit) {
    bytes += RESULT;
    for (const one of advantages) bytes += arrayBytes(one);
  }
  return bytes;
}
