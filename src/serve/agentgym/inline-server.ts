/**
 * Inline AgentGym server of one world, in this thread, without sockets and env hosts: the protocol that `serve-env`
 * speaks, over sessions of the world itself. For recorded exchanges, which are answered one after the other.
 */
import type { Env, EnvStep, Session } from '../../core/env.ts';
import { messageOf, UserError } from '../../core/errors.ts';
import type { ServeWorld } from '../../core/parity.ts';
import type { Task } from '../../core/task.ts';
import { openWorld } from '../../world/open-world.ts';
import { type EpisodeAnswer, EpisodeFailed, type Episodes, type OpenOptions } from '../episodes.ts';
import { AgentGymProtocol } from './protocol.ts';

/** Sessions of one env by number. An error fails the episode, as on a host. */
class InlineEpisodes implements Episodes {
  readonly healthy = true;
  readonly #env: Env;
  readonly #open = new Map<number, Session>();
  #next = 0;

  constructor(env: Env) {
    this.#env = env;
  }

  get count(): number {
    return this.#open.size;
  }

  async open(task: Task, { replay = [] }: OpenOptions): Promise<EpisodeAnswer> {
    const episode = this.#next++;
    const session = await attempt(() => this.#env.open({ ...task, env: this.#env.id }));
    this.#open.set(episode, session);
    let answer: EpisodeAnswer = { episode, turn: 0, step: session.first, actions: [] };
    for (const [i, action] of replay.entries()) answer = await this.step(episode, i + 1, action);
    return answer;
  }

  async step(episode: number, turn: number, action: string): Promise<EpisodeAnswer> {
    const session = this.#open.get(episode)!;
    const step = await attempt<EnvStep>(() => session.step(action));
    return { episode, turn, step, actions: [] };
  }

  close(episode: number): void {
    void this.#open.get(episode)?.close();
    this.#open.delete(episode);
  }
}

async function attempt<T>(work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    throw new EpisodeFailed({ cause: 'threw', where: '/inline', message: messageOf(thrown) });
  }
}

/**
 * Serves a world.
 * @throws {UserError} for a world without an AgentGym server
 */
export const serveInline: ServeWorld = async (world) => {
  const server = world.agentgym?.server;
  if (!server) throw new UserError('BAD_ARGUMENT', 'this world has no AgentGym server to play exchanges with');
  const { env, dispose } = await openWorld(world, 'the recorded world', server.options, '/inline');
  const episodes = new InlineEpisodes(env);
  const served = { env: env.id, original: env.id, server, draw: world.draw };
  const protocol = new AgentGymProtocol(served, episodes, {}, () => 0);
  const gone = new AbortController().signal;
  return {
    async handle({ method, path, body, contentType: marked = 'application/json' }) {
      const [place = '', query = ''] = path.split('?');
      const contentType = body === undefined ? undefined : marked;
      const answer = await protocol.handle(place, { method, path: place, query, contentType, body: body ?? '', gone });
      const type = answer.contentType ?? 'application/json';
      return { status: answer.status, contentType: type === '' ? undefined : type, body: String(answer.body) };
    },
    close: dispose,
  };
};
