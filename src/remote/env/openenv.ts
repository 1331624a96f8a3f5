/**
 * OpenEnv client: a world behind any OpenEnv server whose actions are text or one JSON object, `--env
 * openenv+http://host:8000`. The module stands for the server in its URL (`openenv.js?server=http:…`, see `loadWorld`).
 *
 * Sessions     one WebSocket each, at the server's `/ws`.
 * Action       the text goes into the action's text field where that is all an action needs; else the text is parsed as
 *              one JSON object. What is no such object, or what the server calls a VALIDATION_ERROR, is the agent's
 *              mistake: it is answered in words, costs a turn and pays 0.
 * Observation  its text where it has that field alone, else all its fields as compact JSON.
 * Reward       the server's; null, OpenEnv's "no reward for this action", is 0.
 * Terminates   with `done`; solved where the last reward is positive, since OpenEnv has no success.
 * Tasks        OpenEnv has none: task k is `reset(seed=k)`, of `tasks` (an option, by default 1000) of which the last
 *              tenth is held out.
 * Randomness   the server's. An episode is taken for no pure function of its actions, so no action is sent twice: where
 *              its answer is lost, the episode fails and is issued again.
 *
 * Our own server (`longplay serve-env`) says under `longplay` in its `/metadata` what OpenEnv has no words for: task
 * table, reward range, prompt, whether episodes may be replayed. There the world is as it would be here: tasks, listed
 * actions, partial steps, success; and an episode whose connection is lost goes on, replayed in a new session.
 *
 * A lost connection, a time-out, an answer that makes no sense and an error frame are failures of the episode, never a
 * reward.
 *
 * @see huggingface/OpenEnv `src/openenv/core/env_server/http_server.py`, `env_client.py` (openenv-core 0.3.0)
 */
import { systemClock } from '../../core/clock.ts';
import { type Env, type EnvOptions, type EnvStep, type First, mid, type Session, terminated } from '../../core/env.ts';
import { messageOf, UserError } from '../../core/errors.ts';
import { Rng, seedFrom } from '../../core/rng.ts';
import { readSecret } from '../../core/secrets.ts';
import { type Task, taskTable } from '../../core/task.ts';
import type { World } from '../../core/world.ts';
import { type ReadFacts, readFacts } from '../../world/facts.ts';
import { attempt } from '../attempts.ts';
import { excerpt, HttpClient, parseAnswer } from '../http-client.ts';
import { RemoteError } from '../retry.ts';
import { OpenEnvConnection, ServerRefusal } from './openenv-connection.ts';
import { type ActionSchema, actionOf, type JsonObject, observationText, readActionSchema } from './openenv-schema.ts';
import { numberOption, OPEN_SHARE, type RequestOptions, requestOptions } from './options.ts';
import { Unrepeatable } from './requests.ts';

/** Id of a world behind a server that is not ours. */
const FOREIGN_ID = 'openenv';
/** Tasks of such a world, unless its option `tasks` says otherwise. */
const DEFAULT_TASKS = 1000;
/** Share of them that is held out. */
const HELD_OUT = 0.1;
/** Bound of rewards where the server states none; one beyond it fails the episode. */
const MAX_REWARD = 1e6;
/** Bound of an observation's length where the server states none. */
const MAX_OBSERVATION_CHARS = 2 ** 20;
/** Attempts at what a server says of itself, and milliseconds of each and of all. */
const DESCRIBE = { attempts: 4, attemptMs: 5000, totalMs: 15_000, minMs: 200, maxMs: 5000 };

/** Description that a server gives of itself. */
interface Description {
  readonly url: string;
  readonly name: string;
  readonly description: string;
  readonly action: ActionSchema;
  /** Facts of one of our servers. */
  readonly facts: ReadFacts | undefined;
}

/**
 * Connects to a server: reads what it says of itself.
 * @param url base URL: that of `/ws`, `/schema` and `/metadata`
 * @param tokenEnv environment variable with the server's bearer token
 * @throws {UserError} UNKNOWN_ENV where there is no OpenEnv server
 */
export async function connect(url: string, tokenEnv: string): Promise<World> {
  const token = readSecret(tokenEnv);
  const http = new HttpClient({ baseUrl: url, headers: token ? { authorization: `Bearer ${token}` } : {} });
  try {
    const rng = Rng.fromSeed(seedFrom('openenv', 0)); // only the waits are drawn
    const read = (path: string) =>
      attempt(DESCRIBE, { clock: systemClock, rng }, async (deadlineMs) =>
        parseAnswer((await http.send('GET', path, undefined, deadlineMs)).body),
      );
    const [schema, metadata] = await Promise.all([read('schema'), read('metadata')]);
    return worldOf(readDescription(url, schema, metadata));
  } catch (thrown) {
    if (thrown instanceof UserError) throw thrown;
    throw new UserError(
      'UNKNOWN_ENV',
      `openenv+${url}: expected an OpenEnv server (with /schema, /metadata and /ws); ${messageOf(thrown)}`,
    );
  } finally {
    http.close();
  }
}

function readDescription(url: string, schema: unknown, metadata: unknown): Description {
  const { action } = (schema ?? {}) as JsonObject;
  const { name, description, longplay } = (metadata ?? {}) as JsonObject;
  const facts = longplay === undefined ? undefined : readFacts(longplay);
  return {
    url,
    name: facts && typeof name === 'string' && /^[a-z][a-z0-9-]*$/.test(name) ? name : FOREIGN_ID,
    description: typeof description === 'string' && description.trim() !== '' ? excerpt(description, 1000) : url,
    action: readActionSchema(action),
    facts,
  };
}

function worldOf(server: Description): World {
  const { description, facts } = server;
  return {
    description,
    createEnv: (options = {}) => createEnv(server, options),
    ...(facts ? { prompt: facts.prompt } : {}),
  };
}

function createEnv(server: Description, options: EnvOptions): Env {
  const { name: id, description, facts } = server;
  const requests = requestOptions('openenv', options, facts ? [] : ['tasks']);
  const open = (task: Task) => OpenEnvSession.open(server, requests, task);
  if (facts) {
    const { rewardRange, maxObservationChars, tasks, replay } = facts;
    return { id, description, rewardRange, maxObservationChars, tasks, replay, open };
  }
  const count = Math.floor(numberOption('openenv', options, 'tasks', 1_000_000, DEFAULT_TASKS));
  const held = Math.min(count - 1, Math.floor((1 - HELD_OUT) * count));
  return {
    id,
    description,
    rewardRange: [-MAX_REWARD, MAX_REWARD],
    maxObservationChars: MAX_OBSERVATION_CHARS,
    tasks: taskTable(count, count > 1 ? [[held, count - 1]] : [], 'openenv'),
    replay: 'never',
    open,
  };
}

/** Answer to a reset or a step, checked. */
interface Answer {
  readonly observation: string;
  readonly reward: number;
  readonly done: boolean;
  readonly actions: readonly string[];
  readonly success: boolean;
  readonly partial: boolean;
}

/** Requests that have been sent so far; each draws its waits from a sequence of its own. */
let sent = 0;

class OpenEnvSession implements Session {
  readonly first: First;
  readonly #server: Description;
  readonly #options: RequestOptions;
  readonly #task: Task;
  readonly #actionsTaken: string[] = [];
  #connection: OpenEnvConnection;
  #last: Answer;

  private constructor(
    server: Description,
    options: RequestOptions,
    task: Task,
    connection: OpenEnvConnection,
    first: Answer,
  ) {
    this.#server = server;
    this.#options = options;
    this.#task = task;
    this.#connection = connection;
    this.#last = first;
    this.first = { kind: 'first', observation: first.observation };
  }

  static async open(server: Description, options: RequestOptions, task: Task): Promise<OpenEnvSession> {
    if (server.facts)
      server.facts.tasks.label(task.index); // throws for one outside the table
    else if (!(Number.isInteger(task.index) && task.index >= 0))
      throw new RangeError(`task ${task.index}: expected 0 or more`);
    return withAttempts(options, OPEN_SHARE * options.deadlineMs, async (attemptMs) => {
      const { connection, answer } = await reset(server, options, task, [], attemptMs);
      return new OpenEnvSession(server, options, task, connection, answer);
    });
  }

  async step(action: string): Promise<EnvStep> {
    if (this.#last.done) return terminated(this.#last.observation, 0, this.#last.success);
    const { facts, action: schema } = this.#server;
    const data = actionOf(schema, action);
    if (typeof data === 'string') return mid(data);
    let answer: Answer;
    try {
      answer = await withAttempts(this.#options, this.#options.deadlineMs, (attemptMs) =>
        facts?.replay === 'exact' ? this.#stepOrReplay(action, data, attemptMs) : this.#stepOnce(data, attemptMs),
      );
    } catch (thrown) {
      if (!(thrown instanceof ServerRefusal && thrown.code === 'VALIDATION_ERROR')) throw thrown;
      return mid(`Invalid action: ${thrown.message}`); // nothing was done for it
    }
    this.#last = answer;
    this.#actionsTaken.push(action);
    const { observation, reward, done, success, partial } = answer;
    if (done) return terminated(observation, reward, success);
    return partial ? { ...mid(observation, reward), partial } : mid(observation, reward);
  }

  actions(): readonly string[] {
    return this.#last.actions;
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  /** Takes the action once: what is lost may have been done. */
  async #stepOnce(data: JsonObject, attemptMs: number): Promise<Answer> {
    try {
      return await step(this.#server, this.#connection, data, this.#actionsTaken.length + 1, attemptMs);
    } catch (thrown) {
      throw thrown instanceof RemoteError ? new Unrepeatable(thrown) : thrown;
    }
  }

  /** Takes the action in the session, or in a new one that replays those before it. */
  async #stepOrReplay(action: string, data: JsonObject, attemptMs: number): Promise<Answer> {
    const turn = this.#actionsTaken.length + 1;
    if (this.#connection.isOpen) return step(this.#server, this.#connection, data, turn, attemptMs);
    const replayed = [...this.#actionsTaken, action];
    const { connection, answer } = await reset(this.#server, this.#options, this.#task, replayed, attemptMs);
    this.#connection = connection;
    return answer;
  }
}

/** Attempts a request. @throws {RemoteError} @throws {ServerRefusal} */
async function withAttempts<T>(
  { attempts, attemptMs }: RequestOptions,
  totalMs: number,
  once: (attemptMs: number) => Promise<T>,
): Promise<T> {
  const rng = Rng.fromSeed(seedFrom('openenv', sent++));
  try {
    const policy = { attempts, attemptMs, minMs: 200, maxMs: 10_000, totalMs };
    return await attempt(policy, { clock: systemClock, rng }, once);
  } catch (thrown) {
    throw thrown instanceof Unrepeatable ? thrown.cause : thrown;
  }
}

/**
 * Opens a session and resets it.
 * @param replay actions that one of our servers takes at once
 */
async function reset(
  server: Description,
  { tokenEnv }: RequestOptions,
  { index, seed }: Task,
  replay: readonly string[],
  attemptMs: number,
): Promise<{ readonly connection: OpenEnvConnection; readonly answer: Answer }> {
  const end = systemClock.now() + attemptMs;
  const url = `${server.url.replace(/^http/, 'ws').replace(/\/$/, '')}/ws`;
  const connection = await OpenEnvConnection.open({ url, token: readSecret(tokenEnv) }, attemptMs);
  try {
    const data = server.facts ? { index, seed, ...(replay.length > 0 ? { replay } : {}) } : { seed: index };
    const left = Math.max(1, end - systemClock.now());
    const got = await connection.request({ type: 'reset', data }, 'observation', left);
    const answer = readAnswer(server, got, replay.length);
    if (answer.done && replay.length === 0) throw new RemoteError('malformed', 'a reset was answered with done');
    return { connection, answer };
  } catch (thrown) {
    connection.drop();
    throw thrown;
  }
}

async function step(
  server: Description,
  connection: OpenEnvConnection,
  data: JsonObject,
  turn: number,
  attemptMs: number,
): Promise<Answer> {
  const got = await connection.request({ type: 'step', data }, 'observation', attemptMs);
  try {
    return readAnswer(server, got, turn);
  } catch (thrown) {
    connection.drop();
    throw thrown;
  }
}

/**
 * Reads an answer.
 * @param turn actions taken, this one among them
 * @throws {RemoteError} for another shape; from our server, for another turn
 */
function readAnswer({ facts }: Description, value: unknown, turn: number): Answer {
  const { observation, reward = null, done = false } = (value ?? {}) as JsonObject;
  const paid = reward === null ? 0 : Number(reward);
  const isPlain = reward === null || typeof reward === 'number' || typeof reward === 'boolean';
  if (
    typeof observation !== 'object' ||
    observation === null ||
    Array.isArray(observation) ||
    typeof done !== 'boolean'
  )
    throw malformed(value);
  if (!isPlain || !Number.isFinite(paid)) throw malformed(value);
  const fields = observation as JsonObject;
  if (!facts) {
    const success = done && paid > 0;
    return { observation: observationText(fields), reward: paid, done, actions: [], success, partial: false };
  }
  const { text, actions, success } = fields;
  const { partial } = longplayOf(fields);
  const isOurs =
    typeof text === 'string' &&
    Array.isArray(actions) &&
    actions.every((action) => typeof action === 'string') &&
    (done ? typeof success === 'boolean' : success === null) &&
    (partial === undefined || partial === true);
  if (!isOurs) throw malformed(value);
  if (fields.turn !== turn)
    throw new RemoteError('mismatch', `asked for turn ${turn}, got turn ${excerpt(String(fields.turn), 40)}`);
  return { observation: text, reward: paid, done, actions, success: success === true, partial: partial === true };
}

function longplayOf({ metadata }: JsonObject): JsonObject {
  const { longplay } = (metadata ?? {}) as JsonObject;
  return (longplay ?? {}) as JsonObject;
}

function malformed(value: unknown): RemoteError {
  return new RemoteError('malformed', `not an observation: ${excerpt(JSON.stringify(value) ?? 'nothing', 120)}`);
}
