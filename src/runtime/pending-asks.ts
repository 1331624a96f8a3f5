/** Asks that an actor was given and has not answered: their askers get an error when the actor ends. */
import type { Address, AskTag } from './envelope.ts';

/** Asks up to which none is looked at for having expired. */
const FEW = 256;

export class PendingAsks {
  readonly #asks = new Map<string, AskTag & { readonly expires: number }>();
  #limit = FEW;

  /** @param now milliseconds */
  add(ask: AskTag, now: number): void {
    // Asks that another actor answers on its behalf stay until they expire.
    if (this.#asks.size >= this.#limit) {
      for (const [key, { expires }] of this.#asks) if (expires < now) this.#asks.delete(key);
      this.#limit = Math.max(FEW, 2 * this.#asks.size);
    }
    this.#asks.set(keyOf(ask), { ...ask, expires: now + ask.deadlineMs });
  }

  /** Forgets one: it was answered, or goes back into the mailbox. */
  settle(ask: Address): void {
    this.#asks.delete(keyOf(ask));
  }

  /** Takes all of them out. */
  drain(): readonly AskTag[] {
    const asks = [...this.#asks.values()];
    this.#asks.clear();
    return asks;
  }
}

function keyOf({ path, id }: Address): string {
  return `${path}#${id}`;
}
