/** Spawns the actors between a run and its broker. */
import type { ActorSystem } from '../../src/runtime/actor.ts';
import type { TicketsCommand, WeightsCommand, WorkerCommand } from './protocol.ts';
import { type TicketsInit, ticketsActor } from './tickets-actor.ts';
import { type WeightsInit, weightsActor } from './weights-actor.ts';
import { type WorkerInit, workerActor } from './worker-actor.ts';

/** Spawns the tickets actor; a crash of it ends the run. @param capacity messages that may wait, ≥ 1 */
export function spawnTickets(system: ActorSystem, init: TicketsInit, capacity: number) {
  return system.spawn<TicketsCommand>('tickets', ticketsActor(init), {
    restart: 'temporary',
    mailbox: { capacity, overflow: 'wait' },
  });
}

/**
 * Spawns the weights actor; a crash of it ends the run. While the broker is unavailable only the newest weights wait, and
 * training goes on.
 */
export function spawnWeights(system: ActorSystem, init: WeightsInit) {
  return system.spawn<WeightsCommand>('weights', weightsActor(init), {
    restart: 'temporary',
    // Behind a server two messages make a version, and neither may be lost; there is little in them.
    mailbox: init.isServed ? { capacity: 1024, overflow: 'wait' } : { capacity: 2, overflow: 'drop-oldest' },
  });
}

/** Spawns a worker's own actor; a crash of it ends the worker. @param capacity messages that may wait, ≥ 1 */
export function spawnWorker(system: ActorSystem, init: WorkerInit, capacity: number) {
  return system.spawn<WorkerCommand>('worker', workerActor(init), {
    restart: 'temporary',
    mailbox: { capacity, overflow: 'wait' },
  });
}
