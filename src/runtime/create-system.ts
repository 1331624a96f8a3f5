/** Creates actor systems. RxJS stays here: a thread's entry takes the system alone, and does without the time to load it. */
import { Subject } from 'rxjs';
import type { ActorSystem, SystemEvent } from './actor.ts';
import { System, type SystemOptions } from './system.ts';

/** Creates an actor system, which runs at once. */
export function createSystem(options: SystemOptions): ActorSystem {
  const inspect$ = new Subject<SystemEvent>();
  return Object.assign(new System(options, (event) => inspect$.next(event)), { inspect$ });
}
