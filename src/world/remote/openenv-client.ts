/**
 * OpenEnv client: a world behind an OpenEnv server, `--env openenv+http://host:8000`, and the worlds of another
 * longplay's `serve-env`, which env hosts play with `rollout.envServer`. An episode is a WebSocket connection.
 *
 * Observation  the server's text field, else compact JSON (`openenv-schema.ts`).
 * Action       the text itself where the server's action has one text field; else one JSON object, which the server
 *              validates. A text that is no object, or that the server's validation refuses, costs a turn with reward 0
 *              and is answered in words. It is the policy's mistake, and the world has not moved.
 * Reward       the server's; `true` is 1, `false` and `null` (no reward for this action) are 0.
 * Terminates   when the server reports `done`. OpenEnv has no field for success: a positive last reward counts as one.
 * Tasks        OpenEnv has no task list: task n is `reset` with seed n, of `tasks` (1,000) the last tenth is held out.
 *              A server that ignores the seed opens whatever it likes.
 * Randomness   the server's. It is not known whether an episode repeats itself, so a lost one fails (`replay: never`).
 *              With the option `replay: exact` a lost episode is opened again and its actions are played again.
 * Failures     a lost connection that cannot be restored, a late or unreadable answer, and an error message other than
 *              `VALIDATION_ERROR` fail the episode; none of them becomes a reward.
 * Longplay     A longplay server adds what OpenEnv has no field for under `metadata.longplay` (`openenv-facts.ts`): tasks,
 *              bounds, replay, prompt, and which observations are stages of an action. Success and listed actions are
 *              fields of its observation.
 *
 * @see OpenEnv `core/env_server/http_server.py`, `core/env_server/types.py` (openenv-core 0.3.0)
 */
import { z } from 'zod';
import { systemClock } from '../../core/clock.ts';
import { describeValue } from '../../core/describe-value.ts';
import { type Env, type EnvOptions, type EnvStep, type First, mid, type Session, terminated } from '../../core/env.ts';
import { messageOf, UserError } from '../../core/errors.ts';
import type { WorldPrompt } from '../../core/prompt.ts';
import { Rng, seedFrom } from '../../core/rng.ts';
import { type Task, type TaskTable, taskTable } from '../../core/task.ts';
import type { World } from '../../core/world.ts';
import { readApiKey } from '../../http/api-key.ts';
import { attempt } from '../../http/attempts.ts';
import { excerpt } from '../../http/http-client.ts';
import { RemoteError } from '../../http/retry.ts';
import { WebSocketClient } from '../../http/websocket-client.ts';
import { promptOf, taskTableOf, type WorldFacts, worldFactsSchema } from './openenv-facts.ts';
import {
  LONGPLAY_FIELDS,
  type OpenEnvSchemas,
  readObservation,
  schemasSchema,
  type TextFields,
  textFields,
  writeAction,
} from './openenv-schema.ts';
import { OPEN_SHARE, type RemoteEnvOptions, remoteEnvOptions, tokenVariable } from './options.ts';
import { RemoteRequests } from './requests.ts';

/** Id of every world behind an OpenEnv server. */
const ID = 'openenv';
/** Tasks of a server that has no list of them. */
const DEFAULT_TASKS = 1000;
/** Largest reward, up or down, of a server that states no range. */
const DEFAULT_REWARD = 1e6;
const DEFAULT_OBSERVATION_CHARS = 2 ** 20;
/** Times that the facts of a server are asked for. */
const CONNECT_ATTEMPTS = 3;
/** Characters of a foreign server's description of itself that a prompt holds. */
const MAX_PROMPT_CHARS = 8000;

/** Server of a world: how an episode is opened there and how its messages are read. */
interface OpenEnvServer {
  /** `ws://…/ws` */
  readonly url: string;
  readonly remote: RemoteEnvOptions;
  readonly fields: TextFields;
  /** True for a longplay server: answers have success, listed actions and stages. */
  readonly isLongplay: boolean;
  /** True where an episode repeats itself under the same task and actions. */
  readonly isExact: boolean;
  /** Data of the `reset` that opens a task. */
  reset(task: Task): object;
}

/**
 * Connects to a server and makes the world that it serves.
 * @param query of the module's URL: `server`, the base URL; `token`, the environment variable with its bearer token
 * @throws {UserError} UNKNOWN_ENV where no OpenEnv server answers
 */
export async function connect(query: URLSearchParams): Promise<World> {
  const url = query.get('server')!;
  const tokenEnv = query.get('token') ?? tokenVariable({});
  const defaults = remoteEnvOptions(ID, { url, world: ID, tokenEnv, attempts: CONNECT_ATTEMPTS }, []);
  const requests = new RemoteRequests(defaults);
  try {
    const ask = (path: string) => requests.send('GET', path, undefined, defaults.deadlineMs, true, (answer) => answer);
    const [schemas, description] = await Promise.all([ask('schema'), ask('metadata').catch(acceptMissing)]);
    const read = schemasSchema.safeParse(schemas);
    if (!read.success) throw new Error(`/schema answers no schemas of actions and observations`);
    return makeWorld(url, read.data, schemas, description);
  } catch (thrown) {
    const cure = 'is it running, and is this the base URL that its own client takes?';
    throw new UserError('UNKNOWN_ENV', `openenv+${url}: no OpenEnv server: ${messageOf(thrown)}; ${cure}`);
  } finally {
    requests.close();
  }
}

/** Description of a server without the route. @throws {unknown} what is no 404 */
function acceptMissing(thrown: unknown): object {
  if (thrown instanceof RemoteError && thrown.status === 404) return {};
  throw thrown;
}

/**
 * Makes the env that a host loads in the place of a world that a longplay server serves too (`rollout.envServer`).
 * @param options those of `remoteEnvOptions`, and the world's own `rewardRange`, `maxObservationChars` and `replay`
 * @throws {UserError} BAD_CONFIG
 */
export function createEnv(options: EnvOptions = {}): Env {
  const further = ['rewardRange', 'maxObservationChars', 'replay'];
  const remote = remoteEnvOptions('rollout.envServer', options, further);
  const { rewardRange, maxObservationChars, replay } = options as Pick<
    Env,
    'rewardRange' | 'maxObservationChars' | 'replay'
  >;
  return makeEnv({
    server: makeLongplayServer(`${remote.url.replace(/\/$/, '')}/openenv/${remote.world}`, remote, replay !== 'never'),
    facts: {
      id: remote.world,
      description: `${remote.world} on ${remote.url}`,
      // The table is in the process that draws the tasks.
      tasks: { count: 0, labels: [], label: () => remote.world, split: () => [], evalSeed: 0 },
      rewardRange,
      maxObservationChars,
      replay,
    },
  });
}

interface EnvParts {
  readonly server: OpenEnvServer;
  readonly facts: Omit<Env, 'open' | 'replay'> & { readonly replay: Env['replay'] | undefined };
}

function makeEnv({ server, facts: { replay, ...facts } }: EnvParts): Env {
  const { tasks } = facts;
  return {
    ...facts,
    ...(replay ? { replay } : {}),
    async open(task) {
      // Without a table here the server knows which tasks there are.
      if (tasks.count > 0) tasks.label(task.index); // throws for one outside it
      return OpenEnvSession.open(server, task);
    },
  };
}

const descriptionSchema = z.object({
  name: z.string().nullish().catch(null),
  description: z.string().nullish().catch(null),
  readme_content: z.string().nullish().catch(null),
  metadata: z.object({ longplay: z.unknown().optional() }).optional().catch(undefined),
});

function makeWorld(url: string, schemas: OpenEnvSchemas, rawSchemas: unknown, rawDescription: unknown): World {
  const { name, description, readme_content, metadata } = descriptionSchema.catch({}).parse(rawDescription);
  const sentence = excerpt(description || name || 'A world behind an OpenEnv server.', 200);
  if (metadata?.longplay !== undefined) {
    const facts = worldFactsSchema.safeParse(metadata.longplay);
    if (!facts.success) {
      const [issue] = facts.error.issues;
      throw new Error(`its facts cannot be read (${issue?.path.join('.')}: ${issue?.message}); take the same version`);
    }
    return makeLongplayWorld(url, sentence, facts.data);
  }
  const actionSchema = JSON.stringify((rawSchemas as { action: unknown }).action);
  return {
    createEnv: (options = {}) => makeForeignEnv(url, sentence, schemas, options),
    prompt: ({ actionField }) => {
      const isText = textFields(schemas, { action: actionField as string | undefined }).action !== undefined;
      const role = [sentence, readme_content ?? ''].join('\n\n').trim().slice(0, MAX_PROMPT_CHARS);
      const hint = `Each action is one JSON object, on one line, of this schema: ${actionSchema.slice(0, MAX_PROMPT_CHARS)}`;
      return { role, forms: [], hints: isText ? [] : [hint], format: 'react' } satisfies WorldPrompt;
    },
  };
}

function makeLongplayWorld(url: string, description: string, facts: WorldFacts): World {
  const { rewardRange, maxObservationChars, replay } = facts;
  const tasks = taskTableOf(facts);
  return {
    createEnv(options = {}) {
      const remote = readOptions(url, options, []);
      return makeEnv({
        server: makeLongplayServer(url, remote, replay === 'exact'),
        facts: { id: ID, description, tasks, rewardRange, maxObservationChars, replay },
      });
    },
    prompt: promptOf(facts),
    ...(facts.tools ? { tools: true } : {}),
  };
}

function makeLongplayServer(url: string, remote: RemoteEnvOptions, isExact: boolean): OpenEnvServer {
  const reset = ({ index, seed }: Task) => ({ index, seed });
  return { url: socketUrl(url), remote, fields: LONGPLAY_FIELDS, isLongplay: true, isExact, reset };
}

const foreignOptions = z.object({
  tasks: z.int().min(1).max(10_000_000).default(DEFAULT_TASKS),
  rewardRange: z.tuple([z.number(), z.number()]).default([-DEFAULT_REWARD, DEFAULT_REWARD]),
  maxObservationChars: z.int().min(1).default(DEFAULT_OBSERVATION_CHARS),
  replay: z.enum(['exact', 'never']).default('never'),
  actionField: z.string().optional(),
  observationField: z.string().optional(),
});

function makeForeignEnv(url: string, description: string, schemas: OpenEnvSchemas, options: EnvOptions): Env {
  const own = Object.keys(foreignOptions.shape);
  const remote = readOptions(url, options, own);
  const read = foreignOptions.safeParse(Object.fromEntries(own.map((key) => [key, options[key]])));
  if (!read.success) {
    const [issue] = read.error.issues;
    throw new UserError('BAD_CONFIG', `${ID}: ${issue?.path.join('.')}: ${issue?.message}`);
  }
  const { tasks: count, rewardRange, maxObservationChars, replay, actionField, observationField } = read.data;
  const fields = textFields(schemas, { action: actionField, observation: observationField });
  const tasks: TaskTable =
    count < 10 ? taskTable(count, [], ID) : taskTable(count, [[count - Math.floor(count / 10), count - 1]], ID);
  return makeEnv({
    server: {
      ...{ url: socketUrl(url), remote, fields, isLongplay: false, isExact: replay === 'exact' },
      reset: ({ index }) => ({ seed: index }),
    },
    facts: { id: ID, description, tasks, rewardRange, maxObservationChars, replay },
  });
}

/** Options of a world whose URL its id names. @throws {UserError} BAD_CONFIG */
function readOptions(url: string, options: EnvOptions, further: readonly string[]): RemoteEnvOptions {
  if ('url' in options || 'world' in options) {
    throw new UserError('BAD_CONFIG', `${ID} has no options 'url' and 'world': its id is the URL, openenv+${url}`);
  }
  return remoteEnvOptions(ID, { ...options, url, world: ID }, further);
}

function socketUrl(url: string): string {
  return `${url.replace(/^http/, 'ws').replace(/\/$/, '')}/ws`;
}

/** Answer to `reset` or `step`. */
interface Answer {
  readonly observation: string;
  readonly reward: number;
  readonly isDone: boolean;
  readonly isSolved: boolean;
  readonly isPartial: boolean;
  readonly actions: readonly string[];
}

/** Action that the server took, and what it showed then. */
interface Taken {
  readonly data: object;
  readonly observation: string;
}

let opened = 0;

class OpenEnvSession implements Session {
  readonly first: First;
  readonly #server: OpenEnvServer;
  readonly #reset: object;
  readonly #rng = Rng.fromSeed(seedFrom('openenv', opened++)); // of waits alone: no answer depends on it
  readonly #taken: Taken[] = [];
  #connection: WebSocketClient | undefined;
  #actions: readonly string[];
  #end: EnvStep | undefined;
  #isClosed = false;

  private constructor(server: OpenEnvServer, reset: object, connection: WebSocketClient, answer: Answer) {
    this.#server = server;
    this.#reset = reset;
    this.#connection = connection;
    this.#actions = answer.actions;
    this.first = { kind: 'first', observation: answer.observation };
  }

  /** Opens an episode. @throws {RemoteError} */
  static async open(server: OpenEnvServer, task: Task): Promise<OpenEnvSession> {
    const reset = server.reset(task);
    const rng = Rng.fromSeed(seedFrom('openenv', opened++));
    // Nothing was played yet, so an opening whose answer was lost may be repeated anywhere.
    return retry(server, OPEN_SHARE, rng, async (deadlineMs) => {
      const { connection, answer } = await openEpisode(server, reset, deadlineMs);
      return new OpenEnvSession(server, reset, connection, answer);
    });
  }

  async step(action: string): Promise<EnvStep> {
    if (this.#end) return this.#end; // the contract: a step after the end does no harm
    const server = this.#server;
    const data = writeAction(action, server.fields);
    if (data === undefined) return mid('The action is not one JSON object.', 0);
    let answer: Answer;
    try {
      answer = await retry(server, 1, this.#rng, (deadlineMs) => this.#send(data, deadlineMs));
    } catch (thrown) {
      if (thrown instanceof InvalidAction) return mid(`The server refuses the action: ${thrown.message}`, 0);
      throw thrown;
    }
    const { observation, reward, isDone, isSolved, isPartial, actions } = answer;
    this.#taken.push({ data, observation });
    this.#actions = actions;
    if (isDone) return (this.#end = terminated(observation, reward, isSolved));
    return isPartial ? { kind: 'mid', observation, reward, partial: true } : mid(observation, reward);
  }

  actions(): readonly string[] {
    return this.#actions;
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#connection?.close({ type: 'close' });
  }

  /** @throws {RemoteError} for a session that is closed: it must not be opened again */
  #requireOpen(): void {
    if (this.#isClosed) throw new RemoteError('refused', 'the session is closed');
  }

  /** Sends an action; over a new connection where the last one was lost and the episode can be restored. */
  async #send(data: object, deadlineMs: number): Promise<Answer> {
    const end = systemClock.now() + deadlineMs;
    const { isExact } = this.#server;
    try {
      this.#requireOpen();
      if (!this.#connection) {
        if (!isExact) throw new RemoteError('refused', 'the connection of this episode is lost');
        this.#connection = await this.#restore(end);
        this.#requireOpen(); // it may have been closed meanwhile
      }
      const answer = await send(this.#connection, { type: 'step', data }, end);
      return readAnswer(answer, this.#server, this.#taken.length + 1);
    } catch (thrown) {
      if (thrown instanceof InvalidAction) throw thrown;
      this.#connection?.terminate();
      this.#connection = undefined;
      throw isExact ? thrown : new Final(thrown);
    }
  }

  /**
   * Opens the episode again and repeats its actions.
   * @param end time until which it must be done
   * @throws {RemoteError}
   */
  async #restore(end: number): Promise<WebSocketClient> {
    const { connection, answer } = await openEpisode(this.#server, this.#reset, end - systemClock.now());
    try {
      requireSame(answer.observation, this.first.observation, 0);
      for (const [n, { data, observation }] of this.#taken.entries()) {
        const repeated = readAnswer(await send(connection, { type: 'step', data }, end), this.#server, n + 1);
        requireSame(repeated.observation, observation, n + 1);
      }
      return connection;
    } catch (thrown) {
      connection.terminate();
      throw thrown instanceof InvalidAction ? new Final(thrown) : thrown; // it was valid the first time
    }
  }
}

/** Connects and opens an episode. @throws {RemoteError} */
async function openEpisode(server: OpenEnvServer, reset: object, deadlineMs: number) {
  const end = systemClock.now() + deadlineMs;
  const token = readApiKey(server.remote.tokenEnv);
  const connection = await WebSocketClient.connect(server.url, { token, deadlineMs });
  try {
    const answer = readAnswer(await send(connection, { type: 'reset', data: reset }, end), server, 0);
    if (answer.isDone) throw new RemoteError('refused', 'the episode was over before its first action');
    return { connection, answer };
  } catch (thrown) {
    connection.terminate();
    // What is wrong with a reset is no mistake of a policy.
    throw thrown instanceof InvalidAction ? new RemoteError('refused', thrown.message) : thrown;
  }
}

async function send(connection: WebSocketClient, message: object, end: number): Promise<unknown> {
  const early = connection.takeEarly();
  if (early !== undefined) {
    requireNoError(early);
    throw new RemoteError('mismatch', 'a message that nobody asked for');
  }
  return connection.request(message, Math.max(1, end - systemClock.now()));
}

/**
 * Repeats what a lost connection or a full server failed.
 * @param share of `deadlineMs` that all attempts have
 * @throws {RemoteError}
 */
function retry<T>(
  { remote: { attempts, deadlineMs } }: OpenEnvServer,
  share: number,
  rng: Rng,
  once: (deadlineMs: number) => Promise<T>,
): Promise<T> {
  const totalMs = share * deadlineMs;
  // A live connection loses no message: an attempt may wait for its answer as long as there is time.
  const policy = { attempts, attemptMs: totalMs, minMs: 200, maxMs: 10_000, totalMs };
  return attempt(policy, { clock: systemClock, rng }, once).catch((thrown: unknown) => {
    throw thrown instanceof Final ? thrown.cause : thrown;
  });
}

/** Wraps an error so that it ends the attempts. */
class Final extends Error {
  constructor(cause: unknown) {
    super(messageOf(cause), { cause });
  }
}

/** Refusal of an action by the server's validation, with its message. */
class InvalidAction extends Error {}

const errorSchema = z.object({
  type: z.literal('error'),
  data: z.object({
    message: z.string().catch('no message'),
    code: z.string().catch('UNKNOWN'),
    errors: z.array(z.object({ loc: z.array(z.unknown()), msg: z.string() })).catch([]),
  }),
});
const answerSchema = z.object({
  type: z.literal('observation'),
  data: z.object({
    observation: z.record(z.string(), z.unknown()),
    reward: z.union([z.number(), z.boolean()]).nullish(),
    done: z.boolean().default(false),
  }),
});
const longplaySchema = z.object({
  text: z.string(),
  actions: z.array(z.string()),
  turn: z.int(),
  success: z.boolean().nullable(),
  metadata: z.object({ longplay: z.object({ partial: z.boolean() }) }),
});

/** @throws {RemoteError} for an error that is none of an action; {InvalidAction} for one that is */
function requireNoError(message: unknown): void {
  const error = errorSchema.safeParse(message);
  if (!error.success) return;
  const { message: text, code, errors } = error.data.data;
  const fields = errors.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`).join('; ');
  const reason = excerpt(fields === '' ? text : `${text}: ${fields}`, 500);
  if (code === 'VALIDATION_ERROR') throw new InvalidAction(reason);
  if (code === 'CAPACITY_REACHED') throw new RemoteError('status', `the server is full: ${reason}`, { status: 503 });
  throw new RemoteError('refused', `the server reports ${excerpt(code, 40)}: ${reason}`);
}

/**
 * Reads an answer.
 * @param turn actions that the server has taken, as a longplay server counts them
 * @throws {RemoteError} for another shape or another turn, and for an error
 */
function readAnswer(message: unknown, { fields, isLongplay }: OpenEnvServer, turn: number): Answer {
  requireNoError(message);
  const read = answerSchema.safeParse(message);
  if (!read.success) throw createMalformedError(message);
  const { observation, reward, done } = read.data.data;
  const common = { observation: readObservation(observation, fields), reward: Number(reward ?? 0), isDone: done };
  if (!isLongplay) return { ...common, isSolved: common.reward > 0, isPartial: false, actions: [] };
  const own = longplaySchema.safeParse(observation);
  if (!own.success || (done && own.data.success === null)) throw createMalformedError(message);
  if (own.data.turn !== turn) {
    throw new RemoteError('mismatch', `expected the answer of turn ${turn}, got that of turn ${own.data.turn}`);
  }
  const { actions, success, metadata } = own.data;
  return { ...common, isSolved: success === true, isPartial: metadata.longplay.partial, actions };
}

function createMalformedError(message: unknown): RemoteError {
  return new RemoteError('malformed', `not an observation: ${excerpt(describeValue(message, 4000), 120)}`);
}

/** @throws {Final} where an episode does not repeat itself */
function requireSame(repeated: string, observation: string, turn: number): void {
  if (repeated === observation) return;
  const why = `the episode does not repeat itself: turn ${turn} showed another observation (set replay: never)`;
  throw new Final(new RemoteError('mismatch', why));
}
