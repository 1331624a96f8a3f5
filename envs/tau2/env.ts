import type { Env, Session } from '../../src/core/env.ts';
import type { Task, TaskTable } from '../../src/core/task.ts';
import { openToolSession } from '../../src/core/tool-world.ts';
import type { Environment } from './environment.ts';
import { listTools, MAX_OBSERVATION_CHARS, Tau2Episode } from './episode.ts';
import type { Tau2Options } from './options.ts';
import { playGold } from './reward.ts';
import { tableOf } from './task-table.ts';

/** Gold environments of recent tasks that are kept; the members of a group share one. */
const REMEMBERED_TASKS = 64;

/**
 * τ²-bench: serve a customer by tools, under a policy, with a user or from a ticket.
 *
 * Observation  a model call as JSON: system prompt and tools first, then results of calls and the user's texts.
 * Action       a reply as JSON: calls of tools, or a text to the user.
 * Reward       at the end: the product of the task's criteria, each 0 or 1, without those that need a judge.
 * Terminates   by a stop of the user or the agent, `maxSteps`, `maxErrors`, or a reply without a text or a call.
 * Randomness   none.
 * Source       sierra-research/tau2-bench at a2c02472, https://arxiv.org/abs/2506.07982
 * Differs      see the table in README.md
 */
export class Tau2 implements Env {
  readonly id = 'tau2';
  readonly description = 'Serve customers of a shop, an airline or a carrier by tools, under a policy.';
  readonly rewardRange = [0, 1] as const;
  readonly maxObservationChars = MAX_OBSERVATION_CHARS;
  readonly #options: Tau2Options;
  readonly #gold = new Map<number, Environment>();
  #table: TaskTable | undefined;
  #tools: ReturnType<typeof listTools> | undefined;

  constructor(options: Tau2Options) {
    this.#options = options;
  }

  get tasks(): TaskTable {
    this.#table ??= tableOf(this.#options);
    return this.#table;
  }

  /** @throws {RangeError} for a task index outside the table */
  open({ index }: Task): Session {
    this.tasks.label(index);
    const { domain, user } = this.#options;
    this.#tools ??= listTools(domain, user === 'solo');
    const task = domain.tasks()[index]!;
    return openToolSession(new Tau2Episode(task, this.#options, this.#tools, () => this.#goldOf(index)));
  }

  #goldOf(index: number): Environment {
    const known = this.#gold.get(index);
    if (known) return known;
    const { domain } = this.#options;
    const gold = playGold(domain, domain.tasks()[index]!);
    const [oldest] = this.#gold.keys();
    if (this.#gold.size >= REMEMBERED_TASKS) this.#gold.delete(oldest!);
    this.#gold.set(index, gold);
    return gold;
  }
}
