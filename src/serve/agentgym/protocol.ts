/**
 * AgentGym's HTTP protocol, as a world's dialect describes it (`src/core/agentgym.ts`): routes, sessions, order, and
 * the errors of the frameworks that the originals run on.
 *
 * Differs: an environment that breaks (a thread that dies, a deadline that passes) is a 500, and a full server a 503.
 * So no trainer takes either for a score of 0.
 */
import type {
  AgentGymFields,
  AgentGymMistake,
  AgentGymReply,
  AgentGymRoute,
  AgentGymServer,
  AgentGymValues,
} from '../../core/agentgym.ts';
import type { Draw } from '../../core/draw.ts';
import type { MaybePromise } from '../../core/env.ts';
import { messageOf } from '../../core/errors.ts';
import { type HttpAnswer, type HttpRequest, json } from '../../http/app.ts';
import { EpisodeFailed, type Episodes } from '../episodes.ts';
import { pictureOf } from './picture.ts';
import { AgentGymSessions, type LiveSession, type SessionLimits } from './sessions.ts';
import { isRefusal, readFields, readNothing } from './validation.ts';

/** Served world, as its server knows it. */
export interface ServedWorld {
  /** Env id. */
  readonly env: string;
  /** Id under which the hosts know it with the dialect's options. */
  readonly original: string;
  readonly server: AgentGymServer;
  /** Drawing function; without it nothing is rendered. */
  readonly draw?: Draw | undefined;
}

/** Route, and the fields of its requests. */
interface FieldedRoute {
  readonly route: AgentGymRoute;
  readonly fields: AgentGymFields;
}

const INTERNAL_ERROR: AgentGymReply = { status: 500, text: 'Internal Server Error' };

export class AgentGymProtocol {
  readonly sessions: AgentGymSessions;
  readonly #world: ServedWorld;
  readonly #now: () => number;
  /** Routes by method and path, e.g. `POST /step`. */
  readonly #routes = new Map<string, FieldedRoute>();
  readonly #paths = new Set<string>();

  constructor(world: ServedWorld, episodes: Episodes, limits: SessionLimits, now: () => number) {
    this.#world = world;
    this.#now = now;
    const { original, server } = world;
    this.sessions = new AgentGymSessions(episodes, original, limits, server.firstReward?.bind(server));
    for (const route of world.server.routes) {
      if (route.does === 'render' && !world.draw) continue;
      this.#routes.set(`${methodOf(route)} ${route.path}`, { route, fields: fieldsOf(route, world.server.idField) });
      this.#paths.add(route.path);
    }
  }

  /**
   * Handles a request.
   * @param path below the world's own root
   */
  handle(path: string, request: HttpRequest): HttpAnswer | Promise<HttpAnswer> {
    const found = this.#routes.get(`${request.method} ${path}`);
    if (found) return this.#serve(found, request);
    if (this.#paths.has(path)) return json({ detail: 'Method Not Allowed' }, 405);
    const bare = path.slice(0, -1);
    if (path.endsWith('/') && bare !== '' && this.#paths.has(bare)) {
      const location = `..${bare.slice(bare.lastIndexOf('/'))}`;
      return { status: 307, contentType: '', headers: { location }, body: '' };
    }
    return json({ detail: 'Not Found' }, 404);
  }

  #serve({ route, fields }: FieldedRoute, request: HttpRequest): HttpAnswer | Promise<HttpAnswer> {
    if (route.does === 'reply') return writeReply(route.reply);
    const { idField, validation } = this.#world.server;
    const isCreate = route.does === 'create';
    const read = isCreate && route.body === false ? readNothing : readFields(request, fields, validation);
    if (isRefusal(read)) return read;
    const values: AgentGymValues = read;
    if (isCreate) return this.#create(route, values);
    const id = Number(values[idField]);
    if (route.does === 'close') return makeAnswer(() => route.answer(this.sessions.close(id), id));
    const session = this.sessions.get(id, this.#now());
    if (!session)
      return this.#answerMistake({ kind: 'unknown-id', path: route.path, id, closed: this.sessions.hasHeld(id) });
    if (route.does === 'reset') return this.#reset(route, session, values);
    const { does, path } = route;
    if (does === 'step') {
      return this.#runInOrder(session, path, async () => {
        const refusal = this.#refusal(session, path);
        if (refusal) return refusal;
        await this.sessions.step(session, route.action(values));
        return makeAnswer(() => route.answer(session));
      });
    }
    const refusal = this.#refusal(session, path);
    if (refusal) return refusal;
    return makeAnswer(() => (does === 'render' ? this.#drawPicture(session) : route.answer(session)));
  }

  #create(route: AgentGymRoute & { does: 'create' }, values: AgentGymValues): HttpAnswer | Promise<HttpAnswer> {
    const session = this.sessions.create(this.#now());
    if (!session) return json({ error: 'This server holds as many environments as it may; close some.' }, 503);
    if (!route.index) return makeAnswer(() => route.answer(session));
    let index: number;
    try {
      index = route.index(session.id, values);
    } catch (thrown) {
      this.sessions.close(session.id);
      return this.#answerMistake({ kind: 'bad-index', path: route.path, message: messageOf(thrown) });
    }
    return this.#runInOrder(session, route.path, async () => {
      await this.sessions.reset(session, index);
      return makeAnswer(() => route.answer(session));
    });
  }

  #reset(route: AgentGymRoute & { does: 'reset' }, session: LiveSession, values: AgentGymValues): Promise<HttpAnswer> {
    return this.#runInOrder(session, route.path, async () => {
      let index: number;
      try {
        index = route.index(values);
      } catch (thrown) {
        if (this.#world.server.badResetEnds) this.sessions.end(session);
        return this.#answerMistake({ kind: 'bad-index', path: route.path, message: messageOf(thrown) });
      }
      await this.sessions.reset(session, index);
      return makeAnswer(() => route.answer(session));
    });
  }

  #refusal(session: LiveSession, path: string): HttpAnswer | undefined {
    const message = this.#world.server.refuses?.(session, path);
    return message === undefined ? undefined : this.#answerMistake({ kind: 'refused', path, message });
  }

  /** Picture, drawn in this thread from the actions. */
  #drawPicture({ index, first: observation, actions }: LiveSession): string | undefined {
    const turns = actions.map((action) => ({ action, observation: '' }));
    const task = { env: this.#world.env, index: index!, seed: 0 };
    return pictureOf(this.#world.draw!(task, { kind: 'first', observation }, turns));
  }

  #runInOrder(session: LiveSession, path: string, work: () => Promise<HttpAnswer>): Promise<HttpAnswer> {
    return this.sessions.inOrder(
      session,
      work,
      (answer) => answer,
      (thrown) => {
        const { id } = session;
        if (!this.sessions.has(session)) return this.#answerMistake({ kind: 'unknown-id', path, id, closed: true });
        const reply = this.#world.server.mistake?.({ kind: 'failed', path, message: messageOf(thrown) });
        if (reply) return writeReply(reply);
        const cause = thrown instanceof EpisodeFailed ? { cause: thrown.failure.cause } : {};
        return json({ error: messageOf(thrown), ...cause }, 500);
      },
    );
  }

  #answerMistake(mistake: AgentGymMistake): HttpAnswer {
    const reply = this.#world.server.mistake?.(mistake);
    if (reply) return writeReply(reply);
    return json({ error: mistake.kind === 'unknown-id' ? `The id ${mistake.id} is not valid.` : mistake.message });
  }
}

function methodOf({ does, method }: AgentGymRoute): 'GET' | 'POST' {
  return method ?? (does === 'look' || does === 'reply' ? 'GET' : 'POST');
}

function fieldsOf(route: AgentGymRoute, idField: string): AgentGymFields {
  if (route.does === 'reply') return {};
  return route.does === 'create' ? (route.fields ?? {}) : { [idField]: { kind: 'int' }, ...route.fields };
}

/** Answer that a dialect makes, or a 500 where it throws. */
function makeAnswer(make: () => MaybePromise<unknown>): HttpAnswer | Promise<HttpAnswer> {
  try {
    const value = make();
    if (!(value instanceof Promise)) return json(value ?? null);
    return value.then(
      (later) => json(later ?? null),
      () => writeReply(INTERNAL_ERROR),
    );
  } catch {
    return writeReply(INTERNAL_ERROR);
  }
}

function writeReply({ status, text, json: value }: AgentGymReply): HttpAnswer {
  if (text === undefined) return json(value ?? null, status);
  return { status, contentType: 'text/plain; charset=utf-8', body: text };
}
