/** Spawns the scheduler. */
import type { ActorSystem } from '../../src/runtime/actor.ts';
import type { SchedulerCommand } from './protocol.ts';
import { type SchedulerInit, schedulerActor } from './scheduler-actor.ts';

/** Spawns the scheduler; a crash of it ends the run. @param capacity messages that may wait, ≥ 1 */
export function spawnScheduler(system: ActorSystem, init: SchedulerInit, capacity: number) {
  return system.spawn<SchedulerCommand>('scheduler', schedulerActor(init), {
    restart: 'temporary',
    mailbox: { capacity, overflow: 'wait' },
  });
}
