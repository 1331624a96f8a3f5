/**
 * AgentGym client: a world behind an AgentGym server, `env: { id: agentgym, options: { url, world, … } }`. It stands
 * before the world's own module (`agentgym.js?world=file:…`, see `loadWorld`), which exports the dialect.
 *
 * Observation  the server's, as the dialect reads it.
 * Action       as the world takes it; the server is sent it unchanged, or as the dialect writes it.
 * Reward       the difference the step made to what AgentGym's client hands on (a running score, or the last reward);
 *              multiplied by `rewardScale`.
 * Terminates   when the server reports `done`.
 * Randomness   the server's. Where its episodes are no pure function of their actions, a lost one cannot be restored
 *              and fails.
 * Differs      an `{"error": …}` under HTTP 200 fails the episode instead of scoring 0; a step whose answer was lost is
 *              not sent twice: the episode fails and is issued again.
 *
 * @see AgentGym `agentenv/envs/*.py`
 */
import type { AgentGymClient, AgentGymObject } from '../../core/agentgym.ts';
import { describeValue } from '../../core/describe-value.ts';
import { type Env, type EnvOptions, type EnvStep, type First, mid, type Session, terminated } from '../../core/env.ts';
import { messageOf, UserError } from '../../core/errors.ts';
import type { Task } from '../../core/task.ts';
import type { World } from '../../core/world.ts';
import { excerpt } from '../../http/http-client.ts';
import { RemoteError } from '../../http/retry.ts';
import { remoteEnvOptions } from './options.ts';
import { RemoteRequests } from './requests.ts';

/** World that is played through a server, standing before the world's own module. */
export function wrap({ agentgym, prompt }: World): World {
  const client = agentgym?.client;
  return { createEnv: (options = {}) => createEnv(options, client), ...(prompt ? { prompt } : {}) };
}

/** Share of the action's deadline that create and reset get each. */
const OPEN_SHARE = 1.5;
const CLOSE_MS = 2000;

/**
 * Makes the env.
 * @throws {UserError} BAD_CONFIG
 */
export function createEnv(options: EnvOptions, client: AgentGymClient | undefined): Env {
  const remote = remoteEnvOptions('agentgym', options, ['rewardScale']);
  if (!client) {
    throw new UserError(
      'BAD_CONFIG',
      `agentgym: the world '${remote.world}' exports no \`agentgym\`, the dialect of its server`,
    );
  }
  const { rewardScale = 1 } = options;
  if (typeof rewardScale !== 'number' || !(rewardScale > 0)) {
    throw new UserError('BAD_CONFIG', `agentgym: rewardScale: expected a positive number, got ${String(rewardScale)}`);
  }
  const requests = new RemoteRequests(remote);
  const [least, most] = client.rewardRange;
  return {
    id: 'agentgym',
    description: `The ${remote.world} of an AgentGym server.`,
    tasks: client.tasks,
    rewardRange: [least * rewardScale, most * rewardScale],
    maxObservationChars: 2 ** 20,
    ...(client.replay ? { replay: client.replay } : {}),
    open: (task) => AgentGymSession.open({ requests, client, rewardScale, deadlineMs: remote.deadlineMs }, task),
  };
}

/** Server, shared by every session. */
interface Server {
  readonly requests: RemoteRequests;
  readonly client: AgentGymClient;
  readonly rewardScale: number;
  readonly deadlineMs: number;
}

class AgentGymSession implements Session {
  readonly first: First;
  readonly #server: Server;
  readonly #id: number;
  #score: number;
  #closed = false;

  private constructor(server: Server, id: number, observation: string, score: number) {
    this.#server = server;
    this.#id = id;
    this.#score = score;
    this.first = { kind: 'first', observation };
  }

  static async open(server: Server, task: Task): Promise<AgentGymSession> {
    const { requests, client } = server;
    const openMs = OPEN_SHARE * server.deadlineMs;
    // A create whose answer was lost leaves an environment behind, which the server forgets; it is sent again.
    const id = await requests.send('POST', 'create', client.create, openMs, true, (created) => {
      const named = typeof created === 'number' ? created : objectOf(created, 'create')[client.idField];
      if (Number.isInteger(named)) return named as number;
      throw createUnreadableError('create', created);
    });
    const first = (path: string) => (answer: unknown) => {
      requireOwn(answer, client, id);
      const observation = readAnswer(() => client.first(answer), path, answer);
      if (typeof observation === 'string') return observation;
      throw createUnreadableError(path, answer);
    };
    try {
      const body = client.reset(id, task.index);
      const read = client.observes ? () => '' : first('reset');
      let score = 0;
      let observation = await requests.send('POST', 'reset', body, openMs, true, (answer) => {
        // Refuses `{"error": …}`.
        if (typeof answer === 'object') score = client.firstScore?.(objectOf(answer, 'reset')) ?? 0;
        return read(answer);
      });
      if (client.observes) {
        const path = `observation?${client.idField}=${id}`;
        observation = await requests.send('GET', path, undefined, openMs, true, first('observation'));
      }
      return new AgentGymSession(server, id, observation, score);
    } catch (thrown) {
      await release(server, id);
      throw thrown;
    }
  }

  async step(action: string): Promise<EnvStep> {
    const { requests, client, rewardScale, deadlineMs } = this.#server;
    const body = { [client.idField]: this.#id, action: client.formatAction?.(action) ?? action };
    const { observation, score, done } = await requests.send('POST', 'step', body, deadlineMs, false, (answer) => {
      const object = objectOf(answer, 'step');
      requireOwn(answer, client, this.#id);
      const { observation, score, done } = readAnswer(() => client.readStep(object), 'step', answer);
      if (typeof observation !== 'string' || typeof score !== 'number' || typeof done !== 'boolean') {
        throw createUnreadableError('step', answer);
      }
      return { observation, score, done };
    });
    const reward = (client.score === 'sum' ? score - this.#score : score) * rewardScale;
    this.#score = score;
    return done ? terminated(observation, reward, client.isSolved(score)) : mid(observation, reward);
  }

  /** Actions: none, since AgentGym's protocol has no list of them. */
  actions(): readonly string[] {
    return [];
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await release(this.#server, this.#id);
  }
}

/** Releases the environment as a courtesy: a server without the route, or one that is gone, changes nothing for us. */
async function release({ requests, client }: Server, id: number): Promise<void> {
  await requests.send('POST', 'close', { [client.idField]: id }, CLOSE_MS, false, () => {}).catch(() => {});
}

/**
 * Requires an answer to be of our environment.
 * @throws {RemoteError} for an answer that names another environment; most name none
 */
function requireOwn(answer: unknown, { idField }: AgentGymClient, id: number): void {
  const named = typeof answer === 'object' && answer !== null ? (answer as AgentGymObject)[idField] : undefined;
  if (typeof named === 'number' && named !== id) {
    throw new RemoteError('mismatch', `asked environment ${id}, got the answer of ${named}`);
  }
}

/** Reads an answer by the dialect. @throws {RemoteError} for what it throws */
function readAnswer<T>(read: () => T, path: string, answer: unknown): T {
  try {
    return read();
  } catch (thrown) {
    throw createMalformedError(`/${path} answered ${quoteAnswer(answer)}: ${messageOf(thrown)}`);
  }
}

/**
 * Object of an answer.
 * @throws {RemoteError} for `{"error": …}` and for anything but an object
 */
function objectOf(answer: unknown, path: string): AgentGymObject {
  if (typeof answer !== 'object' || answer === null) throw createUnreadableError(path, answer);
  const { error } = answer as AgentGymObject;
  if (error !== undefined) throw createMalformedError(`the server reports an error: ${messageOf(error)}`);
  return answer as AgentGymObject;
}

function createUnreadableError(path: string, answer: unknown): RemoteError {
  return createMalformedError(`/${path} answered ${quoteAnswer(answer)}`);
}

function quoteAnswer(answer: unknown): string {
  return excerpt(describeValue(answer, 4000), 80);
}

function createMalformedError(message: string): RemoteError {
  return new RemoteError('malformed', message);
}
