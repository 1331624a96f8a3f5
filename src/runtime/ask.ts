/** Requests under way: every one has a deadline, and its error names who waits for whom. */
import type { Clock } from '../core/clock.ts';
import { LongplayError } from '../core/errors.ts';
import { type Answer, reviveError } from './envelope.ts';

/** One edge of the wait graph. */
export interface Wait {
  readonly from: string;
  readonly to: string;
  /** Type of the message that was sent. */
  readonly message: string;
  /** Clock at the send. */
  readonly at: number;
}

interface Pending extends Wait {
  readonly settle: (answer: Answer) => void;
}

/** Asks made in this thread. */
export class AskTable {
  readonly #pending = new Map<number, Pending>();
  readonly #clock: Clock;
  #nextId = 1;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#pending.size;
  }

  nextId(): number {
    return this.#nextId++;
  }

  /**
   * @param timedOut makes the error; may take a moment (it asks another thread)
   */
  open<R>(
    id: number,
    wait: Omit<Wait, 'at'>,
    deadlineMs: number,
    timedOut: (waitedMs: number) => Promise<Error> | Error,
  ): Promise<R> {
    const at = this.#clock.now();
    return new Promise<R>((resolve, reject) => {
      const cancel = this.#clock.after(deadlineMs, async () => {
        const error = await timedOut(this.#clock.now() - at);
        this.#pending.delete(id);
        reject(error);
      });
      const settle = (answer: Answer) => {
        cancel();
        this.#pending.delete(id);
        if (answer.ok) resolve(answer.value as R);
        else reject(reviveError(answer.error));
      };
      this.#pending.set(id, { ...wait, at, settle });
    });
  }

  /** @returns false when nobody waits (any more) */
  settle(id: number, answer: Answer): boolean {
    const pending = this.#pending.get(id);
    pending?.settle(answer);
    return pending !== undefined;
  }

  waits(): Iterable<Wait> {
    return this.#pending.values();
  }
}

/** The description of an actor that `chain` needs at its end. */
export type Describe = (path: string) => string;

/**
 * The actors waiting on each other, from `wait` on: each asked one's oldest open ask is the next link.
 * @returns the paths in order; the last repeats an earlier one when they wait in a circle
 */
function chain(wait: Wait, waits: Iterable<Wait>): Wait[] {
  const oldest = new Map<string, Wait>();
  for (const other of waits) {
    const known = oldest.get(other.from);
    if (!known || other.at < known.at) oldest.set(other.from, other);
  }
  const links = [wait];
  const seen = new Set([wait.from]);
  for (let next = oldest.get(wait.to); next && !seen.has(next.from); next = oldest.get(next.to)) {
    seen.add(next.from);
    links.push(next);
  }
  return links;
}

/** The error of an ask that nobody answered in time. */
export function askTimeout(wait: Wait, waitedMs: number, waits: Iterable<Wait>, describe: Describe): LongplayError {
  const links = chain(wait, waits);
  const last = links.at(-1)!.to;
  const circle = links.some((link) => link.from === last);
  const path = links.map((link) => `${link.from} —${link.message}→`).join(' ');
  const end = circle ? 'they wait in a circle' : `${last} ${describe(last)}`;
  return new LongplayError('ASK_TIMEOUT', `no answer after ${Math.round(waitedMs)} ms: ${path} ${last}; ${end}`);
}
