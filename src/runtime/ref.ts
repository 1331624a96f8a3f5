/** An address. Looks its actor up once and again only after that one is gone. */
import type { Clock } from '../core/clock.ts';
import type { ActorRef, Message } from './actor.ts';
import type { ActorCell } from './cell.ts';
import type { Router } from './router.ts';

export class Ref<M extends Message> implements ActorRef<M> {
  readonly path: string;
  readonly #router: Router;
  readonly #clock: Clock;
  #cell: ActorCell | undefined;

  constructor(router: Router, clock: Clock, path: string) {
    this.#router = router;
    this.#clock = clock;
    this.path = path;
  }

  tell(message: M, transfer?: readonly ArrayBuffer[]): void | Promise<void> {
    let cell = this.#cell;
    if (!cell || cell.state === 'stopped') cell = this.#cell = this.#router.cells.get(this.path);
    if (cell) return cell.receive({ message, ask: undefined, transfer, at: this.#clock.now() });
    return this.#router.send(this.path, message, transfer, undefined);
  }
}
