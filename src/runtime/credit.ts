/** Credit between threads: what bounds the messages under way to an address that lives elsewhere. */
import type { Link } from './wire.ts';

/** Messages to one address in another thread that may be under way before the sender must wait. */
const CREDIT = 256;

interface Gate {
  readonly opened: Promise<void>;
  readonly open: () => void;
}

export class Credits {
  /** Messages sent to addresses elsewhere that have no place there yet. */
  readonly #spent = new Map<string, { out: number; gate: Gate | undefined }>();
  /** Credits to give back, by thread and address. */
  readonly #taken = new Map<Link, Map<string, number>>();

  /** Spends a credit for a message to `path`. @returns a promise where the sender must wait before it sends more */
  spend(path: string): Promise<void> | undefined {
    let credit = this.#spent.get(path);
    if (!credit) this.#spent.set(path, (credit = { out: 0, gate: undefined }));
    if (++credit.out < CREDIT) return undefined;
    credit.gate ??= makeGate();
    return credit.gate.opened;
  }

  /** Restores credits: the other side has found places for `count` messages. */
  restore(path: string, count: number): void {
    const credit = this.#spent.get(path);
    if (!credit) return;
    credit.out -= count;
    if (credit.out < CREDIT / 2) {
      credit.gate?.open();
      credit.gate = undefined;
    }
    if (credit.out <= 0) this.#spent.delete(path);
  }

  /** Counts a credit to return; they are sent together at the end of the turn. */
  countTaken(path: string, from: Link): void {
    if (this.#taken.size === 0) setImmediate(() => this.#giveBack());
    let counts = this.#taken.get(from);
    if (!counts) this.#taken.set(from, (counts = new Map()));
    counts.set(path, (counts.get(path) ?? 0) + 1);
  }

  #giveBack(): void {
    for (const [link, counts] of this.#taken) for (const [path, n] of counts) link.post(['took', path, n]);
    this.#taken.clear();
  }
}

function makeGate(): Gate {
  let open!: () => void;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}
