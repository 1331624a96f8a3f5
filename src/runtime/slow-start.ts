/** Notices about actors that take long to start: a language model's programs may compile for minutes. */
import type { ActorSystem } from './actor.ts';

/** Reports starts that go on, every half minute. @param onNotice gets the line */
export function reportSlowStarts(system: ActorSystem, onNotice: (line: string) => void): void {
  system.inspect$.subscribe((event) => {
    if (event.type !== 'starting') return;
    onNotice(`${event.path} is still starting after ${Math.round(event.ms / 1000)} s (it compiles, or reads weights)`);
  });
}
