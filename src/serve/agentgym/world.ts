/**
 * AgentGym's HTTP protocol as recorded from its servers: paths, bodies, status codes, and the habit of reporting a
 * wrong id as HTTP 200 `{"error": …}`. Each world's file says what its server answers; this one does what they share.
 *
 * Differs: an environment that breaks (a thread that dies, a deadline that passes) is a 500 with `{"error": …}`, and
 * a full server a 503, so that no trainer takes either for a score of 0.
 */

import type { Draw } from '../../core/draw.ts';
import { messageOf } from '../../core/errors.ts';
import { EpisodeFailed, type Episodes } from '../episodes.ts';
import { type HttpAnswer, type HttpRequest, json } from '../http-server.ts';
import { pictureOf } from './picture.ts';
import { type AgentGymSession, AgentGymSessions, type SessionLimits } from './sessions.ts';
import { isRefusal, readBody, readQuery } from './validation.ts';

/** What one world's server answers, where it is its own. */
export interface AgentGymWorld {
  /** Env id. */
  readonly env: string;
  readonly greeting: string;
  /** False where the body of `/create` is ignored. */
  readonly createNeedsBody: boolean;
  /** Index that a new environment is reset to by `/create`; undefined where it stays unset. */
  readonly indexAtCreate?: (id: number) => number;
  /** Default of `data_idx`; undefined where it is required. */
  readonly defaultIndex: number | undefined;
  /** Task index of a `data_idx`. @throws {Error} with the words of the original */
  taskIndex(dataIndex: number): number;
  created(session: AgentGymSession): unknown;
  wasReset(session: AgentGymSession): unknown;
  stepped(session: AgentGymSession): unknown;
  observation(session: AgentGymSession): unknown;
  /** Further GET routes that take an id. */
  readonly routes: Readonly<Record<string, (session: AgentGymSession) => unknown>>;
  /** Whether `POST /render` answers a picture of the state. */
  readonly renders?: boolean;
  /** GET routes that the original has and that always fail. */
  readonly brokenRoutes: readonly string[];
  /** What a step before the first reset, or after the end, is told; undefined where it is taken. */
  refusesStep(session: AgentGymSession): string | undefined;
}

const POST_ROUTES = new Set(['/create', '/reset', '/step', '/close']);

const step = { id: { kind: 'int' }, action: { kind: 'str' } } as const;
const onlyId = { id: { kind: 'int' } } as const;
const create = { commands: { kind: 'str', fallback: null }, goal: { kind: 'str', fallback: null } } as const;

export class AgentGymProtocol {
  readonly sessions: AgentGymSessions;
  readonly #world: AgentGymWorld;
  readonly #now: () => number;
  readonly #reset: { readonly id: { kind: 'int' }; readonly data_idx: { kind: 'int'; fallback?: number } };
  readonly #getRoutes: ReadonlySet<string>;
  readonly #draw: Draw | undefined;

  /**
   * @param env id under which the hosts know the world with `fidelity: original`
   * @param draw of the world; without it nothing is rendered
   */
  constructor(
    world: AgentGymWorld,
    episodes: Episodes,
    env: string,
    limits: SessionLimits,
    now: () => number,
    draw?: Draw,
  ) {
    this.#world = world;
    this.#draw = world.renders ? draw : undefined;
    this.#now = now;
    this.sessions = new AgentGymSessions(episodes, env, limits);
    const { defaultIndex } = world;
    const fallback = defaultIndex === undefined ? {} : { fallback: defaultIndex };
    this.#reset = { id: { kind: 'int' }, data_idx: { kind: 'int', ...fallback } };
    this.#getRoutes = new Set(['/', '/observation', ...Object.keys(world.routes), ...world.brokenRoutes]);
  }

  /** @param path below the world's own root */
  handle(path: string, request: HttpRequest): HttpAnswer | Promise<HttpAnswer> {
    const { method } = request;
    if (method === 'POST' && path === '/step') return this.#step(request);
    const isPost = POST_ROUTES.has(path) || (path === '/render' && this.#draw !== undefined);
    if (!isPost && !this.#getRoutes.has(path)) return json({ detail: 'Not Found' }, 404);
    if (method !== (isPost ? 'POST' : 'GET')) return json({ detail: 'Method Not Allowed' }, 405);
    if (path === '/create') return this.#create(request);
    if (path === '/reset') return this.#resetTo(request);
    if (path === '/close') return this.#close(request);
    if (path === '/render') return this.#render(request, this.#draw!);
    if (path === '/') return json(this.#world.greeting);
    return this.#look(path, request);
  }

  #create(request: HttpRequest): HttpAnswer | Promise<HttpAnswer> {
    if (this.#world.createNeedsBody) {
      const read = readBody(request, create);
      if (isRefusal(read)) return read;
    }
    const session = this.sessions.create(this.#now());
    if (!session) return json({ error: 'This server holds as many environments as it may; close some.' }, 503);
    const index = this.#world.indexAtCreate?.(session.id);
    if (index === undefined) return json(this.#world.created(session));
    return this.#ordered(session, async () => {
      await this.sessions.reset(session, this.#world.taskIndex(index));
      return this.#world.created(session);
    });
  }

  #resetTo(request: HttpRequest): HttpAnswer | Promise<HttpAnswer> {
    const read = readBody(request, this.#reset);
    if (isRefusal(read)) return read;
    const session = this.sessions.get(read.id, this.#now());
    if (!session) return unknownId(read.id);
    return this.#ordered(session, async () => {
      let index: number;
      try {
        index = this.#world.taskIndex(read.data_idx);
      } catch (thrown) {
        return { error: messageOf(thrown) };
      }
      await this.sessions.reset(session, index);
      return this.#world.wasReset(session);
    });
  }

  #step(request: HttpRequest): HttpAnswer | Promise<HttpAnswer> {
    const read = readBody(request, step);
    if (isRefusal(read)) return read;
    const session = this.sessions.get(read.id, this.#now());
    if (!session) return unknownId(read.id);
    return this.#ordered(session, async () => {
      const refusal = this.#world.refusesStep(session);
      if (refusal !== undefined) return { error: refusal };
      await this.sessions.step(session, read.action);
      return this.#world.stepped(session);
    });
  }

  #close(request: HttpRequest): HttpAnswer {
    const read = readBody(request, onlyId);
    if (isRefusal(read)) return read;
    return json(this.sessions.close(read.id));
  }

  /** Drawn in this thread: an episode of BabyAI is played again within a millisecond. */
  #render(request: HttpRequest, draw: Draw): HttpAnswer {
    const read = readBody(request, onlyId);
    if (isRefusal(read)) return read;
    const session = this.sessions.get(read.id, this.#now());
    if (!session) return unknownId(read.id);
    const { id, index, first: observation, actions } = session;
    if (index === undefined) return json({ error: String(id) });
    const turns = actions.map((action) => ({ action, observation: '' }));
    const drawing = draw({ env: this.#world.env, index, seed: 0 }, { kind: 'first', observation }, turns);
    return json(pictureOf(drawing));
  }

  #look(path: string, request: HttpRequest): HttpAnswer {
    const read = readQuery(request, onlyId);
    if (isRefusal(read)) return read;
    if (this.#world.brokenRoutes.includes(path)) {
      return { status: 500, contentType: 'text/plain; charset=utf-8', body: 'Internal Server Error' };
    }
    const session = this.sessions.get(read.id, this.#now());
    if (!session) return unknownId(read.id);
    const look = path === '/observation' ? this.#world.observation : this.#world.routes[path]!;
    return json(look(session));
  }

  #ordered(session: AgentGymSession, work: () => Promise<unknown>): Promise<HttpAnswer> {
    return this.sessions.inOrder(session, work, answered, broke);
  }
}

function answered(value: unknown): HttpAnswer {
  return json(value);
}

function broke(thrown: unknown): HttpAnswer {
  if (thrown instanceof EpisodeFailed) return json({ error: thrown.message, cause: thrown.failure.cause }, 500);
  return json({ error: messageOf(thrown) }, 500);
}

function unknownId(id: number): HttpAnswer {
  return json({ error: `The id ${id} is not valid.` });
}
