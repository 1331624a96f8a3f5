import type { Env, MaybePromise, Session } from '../../src/core/env.ts';
import type { Task, TaskTable } from '../../src/core/task.ts';
import { openToolSession } from '../../src/core/tool-world.ts';
import type { Environment } from './environment.ts';
import { type EpisodeState, listTools, MAX_OBSERVATION_CHARS, Tau2Episode } from './episode.ts';
import { ModelUser } from './model-user.ts';
import type { Tau2Options } from './options.ts';
import { findRequests } from './phone-requests.ts';
import type { Tau2Resources } from './resources.ts';
import { playGold } from './reward.ts';
import { tableOf } from './task-table.ts';
import type { TauTask } from './tasks.ts';
import { ScriptedUser, type SimulatedUser } from './users.ts';

/** Gold environments of recent tasks that are kept; the members of a group share one. */
const REMEMBERED_TASKS = 64;

/**
 * τ²-bench: serve a customer by tools, under a policy, with a user or from a ticket.
 *
 * Observation  a model call as JSON: system prompt and tools first, then results of calls and the user's texts.
 * Action       a reply as JSON: calls of tools, or a text to the user.
 * Reward       at the end: the product of the task's criteria, each 0 or 1; those for a judge count where one is configured.
 * Terminates   by a stop of the user or the agent, `maxSteps`, `maxErrors`, or a reply without a text or a call.
 * Randomness   none, but for a user or a judge that is a language model.
 * Source       sierra-research/tau2-bench at a2c02472, https://arxiv.org/abs/2506.07982
 * Differs      see the table in README.md
 */
export class Tau2 implements Env {
  readonly id = 'tau2';
  readonly description = 'Serve customers of a shop, an airline or a carrier by tools, under a policy.';
  readonly rewardRange = [0, 1] as const;
  readonly maxObservationChars = MAX_OBSERVATION_CHARS;
  /** A user or a judge that is a language model may answer otherwise the next time. */
  readonly replay: 'exact' | 'never';
  readonly #options: Tau2Options;
  readonly #resources: Tau2Resources | undefined;
  readonly #gold = new Map<number, Environment>();
  #table: TaskTable | undefined;
  #tools: ReturnType<typeof listTools> | undefined;

  constructor(options: Tau2Options, resources?: Tau2Resources) {
    this.#options = options;
    this.#resources = resources;
    this.replay = options.user === 'openai' || options.judge ? 'never' : 'exact';
  }

  get tasks(): TaskTable {
    this.#table ??= tableOf(this.#options);
    return this.#table;
  }

  /**
   * @throws {RangeError} for a task index outside the table
   * @throws {LongplayError} REMOTE_FAILED where the user's model does not answer
   */
  open({ index, seed }: Task): MaybePromise<Session> {
    this.tasks.label(index);
    const { domain, user, judge } = this.#options;
    if (judge && !this.#resources?.judge) throw createNotStarted('this judge');
    this.#tools ??= listTools(domain, user === 'solo');
    const task = domain.tasks()[index]!;
    const episode = Tau2Episode.open(task, this.#options, {
      tools: this.#tools,
      gold: () => this.#goldOf(index),
      createUser: user === 'solo' ? undefined : (state) => this.#createUser(task, seed, state),
      judge: this.#resources?.judge,
    });
    return episode instanceof Promise ? episode.then(openToolSession) : openToolSession(episode);
  }

  #createUser(task: TauTask, seed: number, { isDone, environment }: EpisodeState): SimulatedUser {
    const { domain, user, userTurns } = this.#options;
    const tools = domain.tools('user').map(({ tool }) => tool);
    if (user === 'openai') {
      const model = this.#resources?.user;
      if (!model) throw createNotStarted('this user');
      return new ModelUser(model, task, tools, seed);
    }
    const { requests } = domain;
    const isOn = (tool: string) => requests?.isOn(tool, environment.databaseOf('user')!);
    return new ScriptedUser(task, {
      maxTurns: userTurns,
      isDone,
      findRequests: requests && ((text) => findRequests(text, tools, { words: requests.words, isOn })),
    });
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

function createNotStarted(who: string): TypeError {
  return new TypeError(`tau2: the world must be started before an episode with ${who} is opened`);
}
