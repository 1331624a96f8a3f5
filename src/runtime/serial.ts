/**
 * Serial mode: the same actors on one event loop in a seeded order, under a clock that moves only when nothing else
 * can. The same seed gives the same run, bit for bit.
 *
 * One message is delivered at a time. The next is delivered when every handler has ended or waits for something the
 * system knows: an ask, a place in a mailbox, `ctx.sleep`, a spawn. A handler that waits for anything else (a file, a
 * native call) is waited for in real time, so how long that takes cannot change the order.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { SimulatedClock } from '../core/clock.ts';
import { LongplayError } from '../core/errors.ts';
import type { Rng } from '../core/rng.ts';
import type { Dispatcher, Runnable } from './dispatcher.ts';
import type { OrderPlayer } from './message-order.ts';

/** Activity: user code under way, in a handler, a factory or a `stopped`. */
interface Activity {
  readonly owner: SerialDispatcher;
  readonly name: string;
  /** Waits that the system knows it is in. */
  waits: number;
  ended: boolean;
}

/** Driver: a caller that waits for the system to move. */
interface Driver {
  /** Called when nothing is left to do. */
  readonly idle: () => void;
  readonly fail: (error: Error) => void;
}

/**
 * Storage of the running activity, one for all systems: node visits every storage ever used whenever a promise is made.
 */
const current = new AsyncLocalStorage<Activity>();

/** Virtual milliseconds: in a replay, timers farther away than this are deadlines, which a record does not need. */
const TICK_MS = 1000;

/** Real milliseconds that work outside the system may take before the run is called stalled. */
const OUTSIDE_DEADLINE_MS = 600_000;

export class SerialDispatcher implements Dispatcher {
  readonly #clock: SimulatedClock;
  #rng: Rng;
  readonly #replay: OrderPlayer | undefined;
  readonly #ready: Runnable[] = [];
  /** Actors known in a replay, where what may run next depends on the record too. */
  readonly #known = new Set<Runnable>();
  readonly #running = new Set<Activity>();
  #outside = 0;
  #looping = false;
  readonly #driving = new Set<Driver>();
  #changed: (() => void) | undefined;
  /** Messages delivered so far. */
  delivered = 0;

  /** @param replay a recorded order, which then takes the place of the rng's */
  constructor(clock: SimulatedClock, rng: Rng, replay?: OrderPlayer) {
    this.#clock = clock;
    this.#rng = rng;
    this.#replay = replay;
  }

  reorder(rng: Rng): void {
    this.#rng = rng;
  }

  wake(actor: Runnable): void {
    if (this.#replay) this.#known.add(actor);
    if (actor.queued || !actor.deliverable) return;
    actor.queued = true;
    this.#ready.push(actor);
  }

  /** Tracks user code, so that its waits are known to be its own. */
  track<T>(name: string, work: () => T | Promise<T>): T | Promise<T> {
    const activity: Activity = { owner: this, name, waits: 0, ended: false };
    const result = current.run(activity, work);
    if (!(result instanceof Promise)) return result;
    if (activity.waits === 0) this.#running.add(activity);
    return result.finally(() => {
      activity.ended = true;
      this.#running.delete(activity);
      this.#notify();
    });
  }

  wait<T>(work: Promise<T>): Promise<T> {
    const activity = current.getStore();
    if (activity?.owner !== this) return work;
    if (++activity.waits === 1) {
      this.#running.delete(activity);
      this.#notify();
    }
    const end = () => {
      if (--activity.waits === 0 && !activity.ended) this.#running.add(activity);
    };
    // Ended before the waiting code goes on: `then` handlers run in the order they were attached.
    work.then(end, end);
    return work;
  }

  outside<T>(work: Promise<T>): Promise<T> {
    this.#outside++;
    const end = () => {
      this.#outside--;
      this.#notify();
    };
    work.then(end, end);
    return work;
  }

  outsideDone(): Promise<void> {
    return this.#settle();
  }

  /** Delivers messages and moves time until `until` settles; without it, until nothing is left to do. */
  async drive<T>(until?: Promise<T>): Promise<T | undefined> {
    let driver!: Driver;
    const ended = new Promise<undefined>((resolve, reject) => {
      const idle = () => (until ? reject(createStalledError()) : resolve(undefined));
      driver = { idle, fail: reject };
    });
    this.#driving.add(driver);
    if (!this.#looping) void this.#loop();
    try {
      return await (until ? Promise.race([until, ended]) : ended);
    } finally {
      this.#driving.delete(driver);
    }
  }

  async #loop(): Promise<void> {
    this.#looping = true;
    try {
      while (this.#driving.size > 0) {
        await this.#settle();
        if (this.#driving.size === 0) break;
        if (this.#ready.length > 0) {
          this.#deliverOne();
          continue;
        }
        const ms = this.#clock.untilNext;
        if (this.#replay && (ms === undefined || ms > TICK_MS)) {
          // No tick is near: the next one in the record was not needed here, or the record does not fit.
          if (!this.#replay.skipTick()) {
            const stuck = new LongplayError('STALLED', `the recorded order does not fit: ${this.#replay.describe()}`);
            for (const driver of this.#driving) driver.fail(stuck);
            await macrotask();
          }
          for (const actor of this.#known) this.wake(actor);
          continue;
        }
        if (ms === undefined) {
          for (const driver of this.#driving) driver.idle();
          await macrotask();
          continue;
        }
        this.#clock.advance(ms);
      }
    } catch (error) {
      for (const driver of this.#driving) driver.fail(error as Error);
    } finally {
      this.#looping = false;
    }
  }

  #deliverOne(): void {
    const at = this.#rng.int(this.#ready.length);
    const actor = this.#ready[at]!;
    // Swap with the last: the line is a set, its order is the rng's.
    const last = this.#ready.pop()!;
    if (at < this.#ready.length) this.#ready[at] = last;
    actor.queued = false;
    if (actor.deliverable) {
      this.delivered++;
      actor.step();
    }
    this.wake(actor);
  }

  /** Settles promises, and waits for outside work. @throws {LongplayError} STALLED when that takes too long */
  async #settle(): Promise<void> {
    await macrotask();
    while (this.#running.size > 0 || this.#outside > 0) {
      const changed = new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<never>((_, reject) => {
        timer = setTimeout(() => {
          const names = [...this.#running].map((activity) => activity.name).join(', ');
          const message = `waited ${OUTSIDE_DEADLINE_MS} ms of real time for ${names || 'work outside the system'}`;
          reject(new LongplayError('STALLED', message));
        }, OUTSIDE_DEADLINE_MS);
      });
      try {
        await Promise.race([changed, late]);
      } finally {
        clearTimeout(timer);
      }
      await macrotask();
    }
  }

  #notify(): void {
    this.#changed?.();
    this.#changed = undefined;
  }
}

/** Macrotask: when it resolves, every promise that could run has run. */
function macrotask(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function createStalledError(): LongplayError {
  return new LongplayError('STALLED', 'nothing is left to do, and what was waited for has not come');
}
