/**
 * AgentGym's HTTP dialect of a world, as data: each of AgentGym's servers names its fields, shapes its answers and
 * reports mistakes in its own way. `server` defines what `serve-env` answers, `client` how a world behind such a server is
 * played. The framework does what they share: sessions, order, time limits, retries.
 *
 * @see AgentGym `agentenv-*` (servers) and `agentenv/envs/*.py` (clients)
 */
import type { EnvOptions, MaybePromise, Session } from './env.ts';
import type { TaskTable } from './task.ts';

/** AgentGym dialect of one world. */
export interface AgentGymDialect {
  /** Server side; absent where only the client is known. */
  readonly server?: AgentGymServer;
  readonly client: AgentGymClient;
  /**
   * Episodes of AgentTraj-L as the world plays them again; absent where the world cannot.
   * @param options of the configured world
   */
  openPublished?(options: EnvOptions): PublishedEpisodes;
}

// ---- the server ------------------------------------------------------------------------------------------------

/**
 * Environment of the server, as the dialect's functions see it: the same object for the environment's whole life, so a
 * dialect may keep what it derives in a `WeakMap`. A look that needs more of the world's state than is here opens the
 * task again and takes `actions`.
 */
export interface AgentGymSession {
  readonly id: number;
  /** Task index of the episode; undefined before the first reset. */
  readonly index: number | undefined;
  /** Actions of the episode, in order. */
  readonly actions: readonly string[];
  /** First observation, last observation; empty before the first reset. */
  readonly first: string;
  readonly observation: string;
  /** Reward of the last step; after a reset that of the first observation (`AgentGymServer.firstReward`). */
  readonly reward: number;
  /** Sum of the rewards, that of the first observation among them. */
  readonly score: number;
  readonly done: boolean;
}

/** Field of a request's body or query. Conversions and 422 texts are those of `AgentGymServer.validation`. */
export interface AgentGymField {
  readonly kind: 'int' | 'str';
  /** Default of a missing field; without it the field is required. */
  readonly fallback?: number | string | null;
}
/** Fields of an AgentGym answer, by name. */
export type AgentGymFields = Readonly<Record<string, AgentGymField>>;
/** Values of a request's fields after validation; a field with fallback null may be null. */
export type AgentGymValues = Readonly<Record<string, number | string | null>>;

/** Reply with a status or text of its own; a plain JSON value is sent under HTTP 200. */
export interface AgentGymReply {
  readonly status: number;
  /** Text sent as it is, `text/plain`; else `json`. */
  readonly text?: string;
  readonly json?: unknown;
}

/** Mistake in a request, or an environment that broke. */
export type AgentGymMistake =
  /** Unknown id: no environment has it; `closed` where one had it. */
  | { readonly kind: 'unknown-id'; readonly path: string; readonly id: number; readonly closed: boolean }
  /** `index` threw this message. */
  | { readonly kind: 'bad-index'; readonly path: string; readonly message: string }
  /** `refuses` gave this message. */
  | { readonly kind: 'refused'; readonly path: string; readonly message: string }
  /** The episode broke: a failed env host, a search that cannot be reached. No trainer may take it for a score of 0. */
  | { readonly kind: 'failed'; readonly path: string; readonly message: string };

interface RouteBase {
  /** Path below the world's root, e.g. `/step`. */
  readonly path: string;
  /** Default `POST` for what changes something, `GET` for a look. */
  readonly method?: 'GET' | 'POST';
  /** Fields of the body (POST) or query (GET) beside the id. */
  readonly fields?: AgentGymFields;
}

/**
 * Route and what it does with its environment. `answer` makes the JSON that is sent under HTTP 200 afterwards; where it
 * throws, the answer is FastAPI's bare 500 `Internal Server Error`.
 */
export type AgentGymRoute =
  /** Makes an environment. With `index` it is reset at once (one that throws has used up an id); without, later. */
  | (RouteBase & {
      readonly does: 'create';
      /** False where a body is neither required nor read. Default true. */
      readonly body?: boolean;
      index?(id: number, values: AgentGymValues): number;
      answer(session: AgentGymSession): unknown;
    })
  /** Starts an episode. `index` throws an Error with the original's words for an index that it refuses. */
  | (RouteBase & {
      readonly does: 'reset';
      index(values: AgentGymValues): number;
      answer(session: AgentGymSession): unknown;
    })
  /** Takes an action. */
  | (RouteBase & {
      readonly does: 'step';
      action(values: AgentGymValues): string;
      answer(session: AgentGymSession): unknown;
    })
  /** Reads the environment without changing it. */
  | (RouteBase & { readonly does: 'look'; answer(session: AgentGymSession): MaybePromise<unknown> })
  /** The first grid of the world's drawing as `data:image/png;base64,…`. */
  | (RouteBase & { readonly does: 'render' })
  /** Ends an environment. An unknown id is `existed: false`, no mistake; fields are read all the same. */
  | (RouteBase & { readonly does: 'close'; answer(existed: boolean, id: number): unknown })
  /** A route without an environment: `GET /`, a list, one that always fails. */
  | (RouteBase & { readonly does: 'reply'; readonly reply: AgentGymReply });

/** Answers of one world's server. */
export interface AgentGymServer {
  /** Options under which the world is the original, e.g. `{ fidelity: 'original' }`. */
  readonly options: EnvOptions;
  /** Field that names the environment in requests. */
  readonly idField: 'id' | 'env_idx';
  /**
   * The way bodies are read: as FastAPI over pydantic 1 (`0.5` is the integer 0, `5` the text `5`) or over pydantic 2
   * (both are refused). With `none` a missing field is a bare 500.
   */
  readonly validation: 'pydantic1' | 'pydantic2' | 'none';
  readonly routes: readonly AgentGymRoute[];
  /**
   * Message that a step, look or render gets in this state (before the first reset, after the end), in the place of its
   * answer; undefined where it is taken. Default: all are taken.
   * @param path of the route
   */
  refuses?(session: AgentGymSession, path: string): string | undefined;
  /** Reward that the original pays with the first observation of this task; a world's `First` has none. Default 0. */
  firstReward?(index: number): number;
  /** A reset with a bad index ends the episode before it. Default false. */
  readonly badResetEnds?: boolean;
  /**
   * Answer to a mistake. Default HTTP 200 `{"error": …}`, the habit of several of AgentGym's servers, and HTTP 500 for
   * `failed`.
   */
  mistake?(mistake: AgentGymMistake): AgentGymReply | undefined;
}

// ---- the client ------------------------------------------------------------------------------------------------

/** JSON object of a request or an answer. */
export type AgentGymObject = Readonly<Record<string, unknown>>;

/** Content of a step's answer. */
export interface AgentGymStepped {
  readonly observation: string;
  /**
   * Score as the original's client reports it: the return so far or the reward of the step, as `AgentGymClient.score`
   * names it.
   */
  readonly score: number;
  readonly done: boolean;
}

/**
 * Client side of a world behind an AgentGym server. A function that cannot read an answer returns undefined (the
 * framework quotes the answer) or throws an Error with what the server reported. Both fail the episode and are never a
 * reward. `{"error": …}` has been refused before.
 */
export interface AgentGymClient {
  /** Field that names the environment in requests, and in the answer of `/create` (a bare number there is read too). */
  readonly idField: 'id' | 'env_idx';
  /** Body of `/create`; undefined for none. */
  readonly create: AgentGymObject | undefined;
  /** Body of `/reset`. */
  reset(id: number, index: number): AgentGymObject;
  /** First observation, from the answer of `/reset`; from that of `GET /observation` after it where `observes`. */
  first(answer: unknown): string | undefined;
  readonly observes?: boolean;
  /**
   * Return that an episode begins with, from the answer of `/reset`: no action has earned it, so it is not paid. Only for
   * `score: 'sum'`. Default 0.
   */
  firstScore?(answer: AgentGymObject): number;
  /** Text sent for an action. Default the action, word for word. */
  formatAction?(action: string): string;
  /** The answer of `/step`. */
  readStep(answer: AgentGymObject): Partial<AgentGymStepped>;
  /** The meaning of `score` in `stepped`: the return so far (`sum`) or the reward of one step. */
  readonly score: 'sum' | 'step';
  /** True for a finished episode that is solved with this `score`. */
  isSolved(score: number): boolean;
  /** Tasks of the server: a task's index is its `data_idx`. */
  readonly tasks: TaskTable;
  /** Least and largest reward of a step. */
  readonly rewardRange: readonly [min: number, max: number];
  /** Replay, as `Env.replay`: `never` where repeating the server's actions would repeat their effects. */
  readonly replay?: 'exact' | 'never';
}

// ---- published episodes ----------------------------------------------------------------------------------------

/**
 * Episodes that AgentGym's authors published to imitate (AgentTraj-L), played again: the files list no actions, an older
 * server wrote them, and they may follow the rules of another machine.
 */
export interface PublishedEpisodes {
  /** Options under which the configured world has their rules and task ids, e.g. `{ order: 'agenttraj' }`. */
  readonly options: EnvOptions;
  /**
   * Opens the episode of an item, under the rules it was played by.
   * @param index number in the item's id; undefined where it has none
   * @param opening first observation, as published
   * @throws {Error} with the reason, where the world has no such episode
   */
  open(index: number | undefined, opening: string): PublishedEpisode;
}

/** One published episode, opened. */
export interface PublishedEpisode {
  /** The episode in the configured world. Its `step` takes replies as published. */
  readonly session: Session;
  /** Task of the configured world that has its goal; undefined where none has. */
  readonly index: number | undefined;
  /** A reply as the configured world names the action now; undefined for one that did nothing and is left out. */
  action(reply: string): string | undefined;
  /** True where the present observation has the published content. @param ours as the session answered it */
  agrees(ours: string, published: string): boolean;
}
