/** Policy without weights or engine: each turn is decided at once, and answered by the next call. */
import type { Acted, ActRequest, Policy, Unanswered } from './policy.ts';

/** Turn that an immediate policy does not decide; the rest is as in `Unanswered`. */
export type Undecided = Omit<Unanswered, 'episode'>;

export abstract class ImmediatePolicy implements Policy {
  readonly maxBatch: number;
  readonly tokens = 0;
  readonly version = 0;
  #queue: Acted[] = [];
  /** Action texts of each episode, which a request names by their indices. */
  readonly #tables = new Map<number, string[]>();

  constructor(maxBatch: number) {
    this.maxBatch = maxBatch;
  }

  /** Decides a turn: the action's text, or the reason why there is none. @param table of the episode's action texts */
  protected abstract decide(request: ActRequest, table: readonly string[]): string | Undecided;

  /** Drops what is kept of an episode; nothing by default. */
  protected drop(_episode: number): void {}

  /** Takes no weights: there are none. */
  load(): void {}

  get waiting(): number {
    return this.#queue.length;
  }

  /** Complete at once: nothing is gained by waiting for more turns. */
  get complete(): boolean {
    return true;
  }

  submit(requests: readonly ActRequest[]): readonly Unanswered[] {
    const refused: Unanswered[] = [];
    for (const request of requests) {
      const { episode, turn } = request;
      let table = this.#tables.get(episode);
      if (!table) this.#tables.set(episode, (table = []));
      // Also of a turn that is refused: later turns count on the table being whole.
      for (const text of request.newActions) table.push(text);
      const action = this.decide(request, table);
      if (typeof action === 'string') this.#queue.push({ episode, turn, action });
      else refused.push({ episode, ...action });
    }
    return refused;
  }

  step(): readonly Acted[] {
    // At most `maxBatch` a call, oldest first, as the policies with an engine do.
    return this.#queue.splice(0, this.maxBatch);
  }

  release(episodes: readonly number[]): void {
    for (const episode of episodes) {
      this.#tables.delete(episode);
      this.drop(episode);
    }
    // A turn that waits goes with its episode: nothing would take its answer.
    this.#queue = this.#queue.filter(({ episode }) => this.#tables.has(episode));
  }

  forget(): void {
    this.release([...this.#tables.keys()]);
  }

  dispose(): void {}
}
