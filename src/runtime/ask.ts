/** Asks under way: every one has a deadline, and its error names the chain of actors that wait for each other. */
import type { Clock } from '../core/clock.ts';
import { LongplayError } from '../core/errors.ts';
import { type Answer, reviveError } from './envelope.ts';

/** Wait of one actor for another: an edge of the wait graph. */
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

/** Table of the asks made in this thread. */
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
      const cancel = this.#clock.setTimer(deadlineMs, async () => {
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

  /** Settles an ask. @returns false when the asker no longer waits */
  settle(id: number, answer: Answer): boolean {
    const pending = this.#pending.get(id);
    pending?.settle(answer);
    return pending !== undefined;
  }

  waits(): Iterable<Wait> {
    return this.#pending.values();
  }
}

/** Describes an actor for the end of a chain. */
export type Describe = (path: string) => string;

/**
 * Chain of actors that wait for each other, from `wait` on: the oldest open ask of each asked actor is the next link.
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

/** Error of an ask that was not answered in time. */
export function askTimeout(wait: Wait, waitedMs: number, waits: Iterable<Wait>, describe: Describe): LongplayError {
  const links = chain(wait, waits);
  const last = links.at(-1)!.to;
  const circle = links.some((link) => link.from === last);
  const path = links.map((link) => `${link.from} —${link.message}→`).join(' ');
  const end = circle ? 'they wait in a circle' : `${last} ${describe(last)}`;
  return new LongplayError('ASK_TIMEOUT', `no answer after ${Math.round(waitedMs)} ms: ${path} ${last}; ${end}`);
}
