/** Spawns the actor of the env hosts. */
import type { ActorSystem } from '../../src/runtime/actor.ts';
import { type EnvHostsOptions, envHostsActor } from './env-hosts-actor.ts';
import type { EnvCommands } from './protocol.ts';

/**
 * Spawns the actor of the env hosts; a crash of it ends the run. @param capacity batches of commands that may wait, ≥ 1
 */
export function spawnEnvHosts(system: ActorSystem, options: EnvHostsOptions, capacity: number) {
  return system.spawn<EnvCommands>('env-hosts', envHostsActor(options), {
    restart: 'temporary',
    mailbox: { capacity, overflow: 'wait' },
  });
}
