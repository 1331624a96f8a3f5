/** Oracle policy: the world's own scripted solver plays. Its episodes are demonstrations, and the ceiling of a table. */
import type { Oracle, TimeStep } from '../core/env.ts';
import { messageOf } from '../core/errors.ts';
import { ImmediatePolicy, type Undecided } from './immediate-policy.ts';
import type { ActRequest } from './policy.ts';

type Solver = ReturnType<Oracle>;

/**
 * Oracle policy. An episode in which the solver gives up ends there, truncated. Where it has no plan at all, the first listed
 * action is played before, as an episode has a turn at least.
 */
export class OraclePolicy extends ImmediatePolicy {
  readonly #oracle: Oracle;
  readonly #solvers = new Map<number, Solver>();

  constructor(maxBatch: number, oracle: Oracle) {
    super(maxBatch);
    this.#oracle = oracle;
  }

  protected decide(request: ActRequest, table: readonly string[]): string | Undecided {
    const { turn, observation, actions } = request;
    try {
      const action = this.#solverOf(request)(stepOf(turn, observation));
      if (action !== undefined) return action;
      return turn === 0 && actions.length > 0 ? table[actions[0]!]! : { message: 'the oracle gives up', ends: true };
    } catch (thrown) {
      return { message: `the oracle threw: ${messageOf(thrown)}` };
    }
  }

  /** Solver of an episode, which has seen the turns of before a restart: it answers them again as it did. */
  #solverOf({ episode, task, history = [] }: ActRequest): Solver {
    let solve = this.#solvers.get(episode);
    if (!solve) {
      if (!task) throw new TypeError('expected the task of the episode with its first turn');
      solve = this.#oracle(task);
      this.#solvers.set(episode, solve);
      for (const [turn, past] of history.entries()) solve(stepOf(turn, past.observation));
    }
    return solve;
  }

  protected override drop(episode: number): void {
    this.#solvers.delete(episode);
  }
}

/** Step as a solver sees it; rewards are not passed on, and none looks at them. */
function stepOf(turn: number, observation: string): TimeStep {
  return turn === 0 ? { kind: 'first', observation } : { kind: 'mid', observation, reward: 0 };
}
