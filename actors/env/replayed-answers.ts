/**
 * Answers of the environments in a recorded order. Environments are pure, so a replay computes them anew; their
 * batches, and the failures of episodes, come from the record.
 */
import type { Answered } from '../../src/storage/order-file.ts';
import type { EnvCommand, EnvEvent } from './protocol.ts';

export class ReplayedAnswers {
  readonly #batches: readonly (readonly Answered[])[];
  readonly #send: (command: EnvCommand) => void;
  readonly #deliver: (events: readonly EnvEvent[]) => void;
  /** Answers that each failing episode gave before it failed. */
  readonly #failing = new Map<number, number>();
  readonly #arrived = new Map<number, EnvEvent>();
  #next = 0;

  /**
   * @param send sends a command to the env pool
   * @param deliver sends events to the rollouts
   */
  constructor(
    batches: readonly (readonly Answered[])[],
    send: (command: EnvCommand) => void,
    deliver: (events: readonly EnvEvent[]) => void,
  ) {
    this.#batches = batches;
    this.#send = send;
    this.#deliver = deliver;
    const answers = new Map<number, number>();
    for (const one of batches.flat()) {
      if (typeof one === 'number') answers.set(one, (answers.get(one) ?? 0) + 1);
      else this.#failing.set(one.episode, answers.get(one.episode) ?? 0);
    }
  }

  /** Takes commands in the pool's place: a command that was never answered is not given to the env again. */
  send(command: EnvCommand): void {
    const left = this.#failing.get(command.episode);
    if (left === undefined || left > 0 || command.type === 'close') {
      if (left && command.type !== 'close') this.#failing.set(command.episode, left - 1);
      this.#send(command);
      return;
    }
    queueMicrotask(() => this.#release()); // a batch may consist of failures alone
  }

  arrived(event: EnvEvent): void {
    this.#arrived.set(event.episode, event);
    this.#release();
  }

  /** Delivers the batches that are complete, in order. */
  #release(): void {
    for (let batch = this.#batches[this.#next]; batch; batch = this.#batches[this.#next]) {
      if (!batch.every((one) => this.#ready(one))) return;
      this.#next++;
      const events = batch.map((one): EnvEvent => {
        if (typeof one !== 'number') return { type: 'failed', ...one };
        const event = this.#arrived.get(one)!;
        this.#arrived.delete(one);
        return event;
      });
      this.#deliver(events);
    }
  }

  #ready(one: Answered): boolean {
    return typeof one === 'number' ? this.#arrived.has(one) : this.#failing.get(one.episode) === 0;
  }
}
