/**
 * Message order: the order in which actors took their messages, recorded in an async run and replayed in a serial one.
 *
 * An actor's behaviour follows from its messages and their order, and the n-th message of a type that reaches it has
 * one sender in our trees; so the types each actor began, in order, are enough to repeat a run. Order between actors
 * needs no record.
 */

/** Begun message. */
export interface Begun {
  readonly type: string;
  /** True for a message that the actor sent to itself (a timer, a tick): only its moment depends on the clock. */
  readonly self: boolean;
}

/** Sink that gets every message begun. */
export type OrderSink = (path: string, begun: Begun) => void;

/** Player of a recorded order, one message at a time. */
export class OrderPlayer {
  readonly #orders: ReadonlyMap<string, readonly Begun[]>;
  readonly #at = new Map<string, number>();
  /** Ticks that the recorded run had and this one did not need. */
  skipped = 0;

  /** @param orders by path */
  constructor(orders: ReadonlyMap<string, readonly Begun[]>) {
    this.#orders = orders;
  }

  /** The next message for the actor; undefined once the record ends. */
  next(path: string): Begun | undefined {
    return this.#orders.get(path)?.[this.#at.get(path) ?? 0];
  }

  countTaken(path: string): void {
    this.#at.set(path, (this.#at.get(path) ?? 0) + 1);
  }

  /**
   * Skips a tick that will not come: the clock of the recorded run stood elsewhere.
   * @returns whether there were any
   */
  skipTick(): boolean {
    for (const path of this.#orders.keys()) {
      if (!this.next(path)?.self) continue;
      this.countTaken(path);
      this.skipped++;
      return true;
    }
    return false;
  }

  /** Describes the position in the record, in words. */
  describe(): string {
    const waits = [...this.#orders].flatMap(([path, order]) => {
      const at = this.#at.get(path) ?? 0;
      const next = order[at];
      return next ? [`${path} waits for its message ${at + 1} of ${order.length}, ${next.type}`] : [];
    });
    return waits.join('; ') || 'the record is at its end';
  }
}
