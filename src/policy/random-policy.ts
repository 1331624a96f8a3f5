/** Random policy, uniform over the listed actions: the baseline beside every figure, and the load of benches. */
import { Rng, seedFrom } from '../core/rng.ts';
import { type Acted, type ActRequest, nothingListed, type Policy, type Unanswered } from './policy.ts';

/** Random policy: draws by (sampling seed, turn) alone, so its decisions depend on neither batches nor time. */
export class RandomPolicy implements Policy {
  readonly maxBatch: number;
  readonly tokens = 0;
  readonly version = 0;
  #queue: ActRequest[] = [];
  /** Action texts of each episode, which a request names by their indices. */
  readonly #tables = new Map<number, string[]>();

  constructor(maxBatch: number) {
    this.maxBatch = maxBatch;
  }

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
      let table = this.#tables.get(request.episode);
      if (!table) this.#tables.set(request.episode, (table = []));
      // Also of a turn that is refused: later turns count on the table being whole.
      for (const text of request.newActions) table.push(text);
      if (request.actions.length === 0) {
        refused.push({ episode: request.episode, message: nothingListed(request) });
        continue;
      }
      this.#queue.push(request);
    }
    return refused;
  }

  step(): readonly Acted[] {
    // At most `maxBatch` a call, oldest first, as the policies with an engine do.
    const batch = this.#queue.splice(0, this.maxBatch);
    return batch.map(({ episode, turn, actions, samplingSeed }) => {
      const at = Rng.fromSeed(seedFrom(samplingSeed, turn)).int(actions.length);
      return { episode, turn, action: this.#tables.get(episode)![actions[at]!]! };
    });
  }

  release(episodes: readonly number[]): void {
    for (const episode of episodes) this.#tables.delete(episode);
    // A turn that waits goes with its episode: nothing would take its answer, and its table is gone.
    this.#queue = this.#queue.filter(({ episode }) => this.#tables.has(episode));
  }

  forget(): void {
    this.#tables.clear();
    this.#queue = [];
  }

  dispose(): void {}
}
