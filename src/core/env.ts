/**
 * Contract of an environment.
 *
 * An episode is a pure function of (task, actions): no wall clock, no global random, no state shared between
 * sessions. That is what lets a lost episode be restored by replaying its actions, and a run be repeated bit for bit.
 *
 * An env never truncates. It opens with one `first` step, answers each action with `mid`, and ends with `terminated`;
 * `truncated` is made by the horizon alone (horizon.ts). Any string is a legal action: what an env does not
 * understand costs a turn and is answered in words.
 */
import type { Task, TaskTable } from './task.ts';

/** Value, or a promise of one. */
export type MaybePromise<T> = T | Promise<T>;

/** Opening of an episode: its first observation, without a reward, since no action has been taken. */
export interface First {
  readonly kind: 'first';
  readonly observation: string;
}

/** Step after which the episode goes on; `reward` is for the action that led to it. */
export interface Mid {
  readonly kind: 'mid';
  readonly observation: string;
  /** Finite, within the env's `rewardRange`; 0 where `partial`. */
  readonly reward: number;
  /**
   * Marks a stage of an action that is not whole yet: for example, the action named a template and `actions()` now lists its
   * objects. The world has not moved, so no turn of the horizon is used and nothing is discounted; the policy's choice
   * is a decision like any other. At most `MAX_PARTIAL_STEPS` in a row.
   */
  readonly partial?: true;
  /**
   * Marks that the action reached nobody: the program that had asked for it was gone. Nothing has moved, so it goes with
   * `partial`; the action is not trained on.
   */
  readonly undelivered?: true;
}

/** Step with which the env ended the episode: nothing follows, nothing is bootstrapped. */
export interface Terminated {
  readonly kind: 'terminated';
  readonly observation: string;
  readonly reward: number;
  /** True when the task was solved, whatever the reward. */
  readonly success: boolean;
  /** Marks that the last action reached nobody (see `Mid.undelivered`), and is not trained on. */
  readonly undelivered?: true;
}

/** Step at which the horizon cut a live episode: a future existed and was not played. Never returned by an env. */
export interface Truncated {
  readonly kind: 'truncated';
  readonly observation: string;
  readonly reward: number;
}

/** Answers of an env: `first` once, then `mid` until `terminated`. */
export type EnvStep = Mid | Terminated;
/** Time step of an episode: its first observation, an answer, or a cut by the horizon. */
export type TimeStep = First | EnvStep | Truncated;

/**
 * Partial steps that may follow each other: a call of a tool takes one for the tool and one for each argument but the last. One more
 * breaks the contract, so an env that offers a way back offers none where it would be the last one, or lets it cost a turn.
 */
export const MAX_PARTIAL_STEPS = 16;

/** Most actions that a world should list at a time; a world with more lists them in stages (`Mid.partial`). */
export const ACTIONS_PER_STAGE = 64;

/** Bounds of one list of actions; a longer one fails the episode as `oversized`. Lengths in UTF-16 units. */
export const ACTION_LIMITS = { count: 1024, chars: 4096, totalChars: 65_536 } as const;

/** Session: one running episode. Sessions are independent of each other and of the order in which they are stepped. */
export interface Session {
  readonly first: First;
  /**
   * Takes one action. After `terminated` further steps are answered without harm, but mean nothing.
   * @param action raw policy text; parsing it is the env's business
   */
  step(action: string): MaybePromise<EnvStep>;
  /**
   * Actions that can be executed now, each as the exact text `step` understands; empty where the env cannot list them.
   * Computed on demand: a step alone never pays for it. Deterministic in order.
   *
   * With more than `ACTIONS_PER_STAGE` of them, these are the texts of the present stage; an action typed whole, as
   * one text, is always legal too.
   */
  actions(): readonly string[];
  /** Releases what the session holds; twice does no harm. */
  close(): MaybePromise<void>;
}

/** Limits of an episode that is opened. */
export interface EpisodeLimits {
  /**
   * Turns the episode may take, ≥ 1. Only a session that must prepare its end looks at it (a program that is to be stopped
   * politely); the horizon itself is applied outside.
   */
  readonly horizon: number;
}

/** Environment: a family of tasks with one set of rules. */
export interface Env {
  /** `^[a-z][a-z0-9-]*$` */
  readonly id: string;
  /** One sentence for `longplay envs`. */
  readonly description: string;
  readonly tasks: TaskTable;
  /** Least and largest reward of one step. */
  readonly rewardRange: readonly [min: number, max: number];
  /** Upper bound of an observation's length in UTF-16 units. */
  readonly maxObservationChars: number;
  /**
   * Permission for recovery to repeat an episode's actions. `exact` (default): an episode is a pure function of its
   * task and actions, and one that lost its host is restored by replaying them. `never`: actions have effects outside
   * (a live site), so such an episode fails and its task is issued anew.
   */
  readonly replay?: 'exact' | 'never';
  /**
   * Opens a session.
   * @param limits absent where nobody counts turns: a server's client, a conformance check
   * @throws {RangeError} for a task index outside the table
   */
  open(task: Task, limits?: EpisodeLimits): MaybePromise<Session>;
}

/**
 * Oracle, a scripted solver: called with each time step, it returns the next action, or `undefined` to give up. It may
 * look at the task (it knows the world's rules) but plays through the same actions as any policy.
 */
export type Oracle = (task: Task) => (step: TimeStep) => string | undefined;

/** Options of an env as written in a config, e.g. `{ fidelity: 'original' }`; each env checks its own. */
export type EnvOptions = Readonly<Record<string, unknown>>;

/** Makes a `mid` step: the episode goes on. */
export function mid(observation: string, reward = 0): Mid {
  return { kind: 'mid', observation, reward };
}

/** Makes a `terminated` step: the env ends the episode; success defaults to a positive reward. */
export function terminated(observation: string, reward: number, success = reward > 0): Terminated {
  return { kind: 'terminated', observation, reward, success };
}
