/** Reference to an address. Looks its actor up once, and again only after that one is gone. */
import type { ActorRef, Message } from './actor.ts';
import type { ActorCell } from './cell.ts';
import type { System } from './system.ts';

export class Ref<M extends Message> implements ActorRef<M> {
  readonly path: string;
  readonly #system: System;
  #cell: ActorCell | undefined;

  constructor(system: System, path: string) {
    this.#system = system;
    this.path = path;
  }

  tell(message: M, transfer?: readonly ArrayBuffer[]): void | Promise<void> {
    let cell = this.#cell;
    if (!cell || cell.state === 'stopped') cell = this.#cell = this.#system.router.cells.get(this.path);
    if (cell) return cell.receive({ message, ask: undefined, transfer, at: this.#system.clock.now() });
    return this.#system.router.send(this.path, message, transfer, undefined);
  }
}
