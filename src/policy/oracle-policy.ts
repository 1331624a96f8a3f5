/** Oracle policy: the world's own scripted solver plays. Its episodes are demonstrations, and the ceiling of a table. */
import type { Oracle, TimeStep } from '../core/env.ts';
import { messageOf } from '../core/errors.ts';
import type { Acted, ActRequest, Policy, Unanswered } from './policy.ts';

/** Episode in play: its solver, and the texts of its actions. */
interface Solved {
  readonly solve: (step: TimeStep) => string | undefined;
  readonly table: string[];
}

/**
 * Oracle policy. An episode in which the solver gives up ends there, truncated. Where it has no plan at all, the first listed
 * action is played before, as an episode has a turn at least.
 */
export class OraclePolicy implements Policy {
  readonly maxBatch: number;
  readonly tokens = 0;
  readonly version = 0;
  readonly #oracle: Oracle;
  readonly #episodes = new Map<number, Solved>();
  #queue: Acted[] = [];

  constructor(maxBatch: number, oracle: Oracle) {
    this.maxBatch = maxBatch;
    this.#oracle = oracle;
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
      const { episode, turn } = request;
      try {
        const action = this.#solve(request);
        if (action === undefined) refused.push({ episode, message: 'the oracle gives up', ends: true });
        else this.#queue.push({ episode, turn, action });
      } catch (thrown) {
        refused.push({ episode, message: `the oracle threw: ${messageOf(thrown)}` });
      }
    }
    return refused;
  }

  /** Asks the solver of an episode. @returns undefined where it gives up */
  #solve({ episode, task, turn, observation, actions, newActions, history = [] }: ActRequest): string | undefined {
    let solved = this.#episodes.get(episode);
    if (!solved) {
      if (!task) throw new TypeError('expected the task of the episode with its first turn');
      solved = { solve: this.#oracle(task), table: [] };
      this.#episodes.set(episode, solved);
      // Turns of before a restart: the solver sees them again, and answers as it did.
      history.forEach((past, i) => solved!.solve(stepOf(i, past.observation)));
    }
    for (const text of newActions) solved.table.push(text);
    const action = solved.solve(stepOf(turn, observation));
    return action ?? (turn === 0 && actions.length > 0 ? solved.table[actions[0]!] : undefined);
  }

  step(): readonly Acted[] {
    return this.#queue.splice(0, this.maxBatch);
  }

  release(episodes: readonly number[]): void {
    for (const episode of episodes) this.#episodes.delete(episode);
    this.#queue = this.#queue.filter(({ episode }) => this.#episodes.has(episode));
  }

  forget(): void {
    this.#episodes.clear();
    this.#queue = [];
  }

  dispose(): void {}
}

/** Step as a solver sees it; rewards are not passed on, and none looks at them. */
function stepOf(turn: number, observation: string): TimeStep {
  return turn === 0 ? { kind: 'first', observation } : { kind: 'mid', observation, reward: 0 };
}
