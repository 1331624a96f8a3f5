/**
 * Any AgentGym server as an environment: `env: { id: agentgym, options: { url, world, … } }`.
 *
 * Observation  the server's (SciWorld's and WebArena's task is put before the first one, as AgentGym's clients do).
 * Action       as the world takes it; the server is sent it word for word.
 * Reward       the difference the step made to what AgentGym's client hands on: BabyAI's and SciWorld's running score,
 *              the others' last reward; multiplied by `rewardScale`.
 * Terminates   when the server says done.
 * Randomness   the server's. Where its episodes are no pure function of their actions, a lost one cannot be restored
 *              and fails.
 * Differs      an `{"error": …}` under HTTP 200 fails the episode instead of scoring 0; a step whose answer was lost is
 *              not sent twice: the episode fails and is issued again.
 *
 * @see AgentGym `agentenv/envs/*.py`
 */
import { type Env, type EnvOptions, type EnvStep, type First, mid, type Session, terminated } from '../../core/env.ts';
import { UserError } from '../../core/errors.ts';
import type { Task, TaskTable } from '../../core/task.ts';
import { RemoteError } from '../retry.ts';
import { remoteEnvOptions } from './options.ts';
import { type Fields, RemoteRequests } from './requests.ts';

/** How one world's server names things. */
interface Dialect {
  /** Field that names the environment in requests, and in the answer of `/create` (a bare number where absent there). */
  readonly idField: 'id' | 'env_idx';
  readonly create: Fields | undefined;
  reset(id: number, index: number): Fields;
  /** First observation, from the answer of `/reset`. */
  first(answer: unknown): unknown;
  /** Return so far (`score`), or the reward of the step. */
  readonly score: 'sum' | 'step';
  readonly done: (answer: Fields) => unknown;
  /** The return that means solved. */
  readonly solved: (score: number) => boolean;
  /** Tasks of the server: `data_idx` 0 … count − 1. */
  readonly count: number;
  readonly test: readonly (readonly [number, number])[];
  /** Least and largest reward of a step. */
  readonly range: readonly [number, number];
}

const plain = {
  idField: 'id',
  create: {},
  reset: (id: number, index: number): Fields => ({ id, data_idx: index }),
  first: (answer: unknown) => field(answer, 'observation'),
  done: ({ done }: Fields) => done,
} as const;

const withTask = (answer: unknown) =>
  `${String(field(answer, 'task_description'))}\n${String(field(answer, 'observation'))}`;

/** The worlds of AgentGym-RL. Counts and test ids as far as they are known to be the paper's; else every task is both. */
const DIALECTS: Readonly<Record<string, Dialect>> = {
  textcraft: {
    ...plain,
    score: 'step',
    solved: (score) => score > 0,
    count: 544,
    test: [
      [0, 30],
      [140, 180],
      [420, 444],
      [533, 535],
    ],
    range: [0, 1],
  },
  babyai: {
    ...plain,
    score: 'sum',
    solved: (score) => score > 0,
    count: 40_000,
    test: [[1804, 2003]],
    range: [-1000, 1],
  },
  sciworld: {
    ...plain,
    create: undefined,
    first: withTask,
    score: 'sum',
    solved: (score) => score >= 100,
    count: 4639,
    test: [],
    range: [-200, 200],
  },
  searchqa: {
    ...plain,
    idField: 'env_idx',
    create: { id: 0 },
    reset: (id, index) => ({ env_idx: id, id: index }),
    first: (answer) => answer,
    score: 'step',
    solved: (score) => score > 0,
    count: 221_328,
    test: [[0, 51_712]],
    range: [0, 1],
  },
  webarena: {
    ...plain,
    idField: 'env_idx',
    create: undefined,
    reset: (id, index) => ({ env_idx: id, seed: 0, idx: index }),
    done: (answer) => answer.terminated === true || answer.truncated === true,
    score: 'step',
    solved: (score) => score > 0,
    count: 812,
    test: [],
    range: [0, 1],
  },
};

/** Create and reset get this share of the action's deadline each. */
const OPEN_SHARE = 1.5;
const CLOSE_MS = 2000;

/** @throws {UserError} BAD_CONFIG */
export function createEnv(options: EnvOptions = {}): Env {
  const remote = remoteEnvOptions('agentgym', options, ['rewardScale']);
  const dialect = Object.hasOwn(DIALECTS, remote.world) ? DIALECTS[remote.world] : undefined;
  if (!dialect) {
    const worlds = Object.keys(DIALECTS).join(', ');
    throw new UserError('BAD_CONFIG', `agentgym: no world '${remote.world}'; there are ${worlds}`);
  }
  const { rewardScale = 1 } = options;
  if (typeof rewardScale !== 'number' || !(rewardScale > 0)) {
    throw new UserError('BAD_CONFIG', `agentgym: rewardScale: expected a positive number, got ${String(rewardScale)}`);
  }
  const requests = new RemoteRequests(remote);
  const [least, most] = dialect.range;
  return {
    id: 'agentgym',
    description: `The ${remote.world} of an AgentGym server.`,
    tasks: tasksOf(dialect, remote.world),
    rewardRange: [least * rewardScale, most * rewardScale],
    maxObservationChars: 2 ** 20,
    open: (task) => AgentGymSession.open(requests, dialect, task, rewardScale, remote.deadlineMs),
  };
}

class AgentGymSession implements Session {
  readonly first: First;
  readonly #requests: RemoteRequests;
  readonly #dialect: Dialect;
  readonly #id: number;
  readonly #rewardScale: number;
  readonly #deadlineMs: number;
  #score = 0;
  #closed = false;

  private constructor(
    requests: RemoteRequests,
    dialect: Dialect,
    id: number,
    observation: string,
    rewardScale: number,
    deadlineMs: number,
  ) {
    this.#requests = requests;
    this.#dialect = dialect;
    this.#id = id;
    this.#rewardScale = rewardScale;
    this.#deadlineMs = deadlineMs;
    this.first = { kind: 'first', observation };
  }

  static async open(
    requests: RemoteRequests,
    dialect: Dialect,
    task: Task,
    rewardScale: number,
    deadlineMs: number,
  ): Promise<AgentGymSession> {
    const openMs = OPEN_SHARE * deadlineMs;
    // A create whose answer was lost leaves an environment behind, which the server forgets; it is sent again.
    const id = await requests.send('POST', 'create', dialect.create, openMs, true, (created) => {
      const named = typeof created === 'number' ? created : field(created, dialect.idField);
      if (Number.isInteger(named)) return named as number;
      throw malformed(`/create answered ${JSON.stringify(created)?.slice(0, 80)}`);
    });
    try {
      const body = dialect.reset(id, task.index);
      const observation = await requests.send('POST', 'reset', body, openMs, true, (answer) => {
        const first = dialect.first(answer);
        if (typeof first !== 'string') throw malformed(`/reset answered ${JSON.stringify(answer)?.slice(0, 80)}`);
        requireOwn(answer, dialect, id);
        return first;
      });
      return new AgentGymSession(requests, dialect, id, observation, rewardScale, deadlineMs);
    } catch (thrown) {
      await release(requests, dialect, id);
      throw thrown;
    }
  }

  async step(action: string): Promise<EnvStep> {
    const { idField, score, done, solved } = this.#dialect;
    const body = { [idField]: this.#id, action };
    const { observation, told, ended } = await this.#requests.send(
      'POST',
      'step',
      body,
      this.#deadlineMs,
      false,
      (answer) => {
        const observation = field(answer, 'observation');
        const told = field(answer, score === 'sum' ? 'score' : 'reward');
        const ended = done(answer as Fields);
        if (typeof observation !== 'string' || typeof told !== 'number' || typeof ended !== 'boolean') {
          throw malformed(`/step answered ${JSON.stringify(answer).slice(0, 80)}`);
        }
        requireOwn(answer, this.#dialect, this.#id);
        return { observation, told, ended };
      },
    );
    const reward = (score === 'sum' ? told - this.#score : told) * this.#rewardScale;
    this.#score = told;
    return ended ? terminated(observation, reward, solved(told)) : mid(observation, reward);
  }

  /** AgentGym's protocol has no list of actions. */
  actions(): readonly string[] {
    return [];
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await release(this.#requests, this.#dialect, this.#id);
  }
}

/** Closing is a courtesy: a server without the route, or none any more, changes nothing for us. */
async function release(requests: RemoteRequests, { idField }: Dialect, id: number): Promise<void> {
  await requests.send('POST', 'close', { [idField]: id }, CLOSE_MS, false, () => {}).catch(() => {});
}

/** @throws {RemoteError} for an answer that names another environment; most name none */
function requireOwn(answer: unknown, { idField }: Dialect, id: number): void {
  const named = typeof answer === 'object' && answer !== null ? (answer as Fields)[idField] : undefined;
  if (typeof named === 'number' && named !== id) {
    throw new RemoteError('mismatch', `asked environment ${id}, got the answer of ${named}`);
  }
}

/** @throws {RemoteError} for `{"error": …}` and for anything but an object with the field */
function field(answer: unknown, name: string): unknown {
  if (typeof answer !== 'object' || answer === null) {
    throw malformed(`expected an object with '${name}', got ${JSON.stringify(answer)?.slice(0, 80)}`);
  }
  const { error } = answer as Fields;
  if (error !== undefined) throw malformed(`the server reports an error: ${String(error)}`);
  if (!Object.hasOwn(answer, name)) throw malformed(`the answer has no '${name}'`);
  return (answer as Fields)[name];
}

function malformed(message: string): RemoteError {
  return new RemoteError('malformed', message);
}

function tasksOf({ count, test }: Dialect, world: string): TaskTable {
  const isTest = (index: number) => test.some(([first, last]) => index >= first && index <= last);
  const indices = Array.from({ length: count }, (_, index) => index);
  const held = test.length === 0 ? indices : indices.filter(isTest);
  const train = test.length === 0 ? indices : indices.filter((index) => !isTest(index));
  return {
    count,
    labels: [world],
    label(index) {
      if (!(index >= 0 && index < count)) throw new RangeError(`agentgym: ${world} has tasks 0 … ${count - 1}`);
      return world;
    },
    split: (split) => (split === 'test' ? held : train),
    evalSeed: 0,
  };
}
