/**
 * Uniform protocol for all worlds, with true status codes:
 *
 *     GET    /v1/envs                                    the worlds, their tasks and bounds
 *     GET    /v1/envs/{env}/tasks/{index}                label and split of a task
 *     GET    /v1/envs/{env}/splits/{train | test}        the indices of a split's tasks
 *     POST   /v1/sessions                                {env, index, seed?, actions?} → 201 {session, env, turn, step, actions}
 *     POST   /v1/sessions/{session}/step                 {turn, action} → 200 {session, turn, step, actions}
 *     GET    /v1/sessions/{session}                      the last answer again
 *     GET    /v1/sessions/{session}/available_actions    {session, turn, actions}
 *     DELETE /v1/sessions/{session}                      204
 *
 * `step` is a time step of `core/env.ts`: `{kind: first | mid | terminated, observation, reward?, success?}`; the
 * horizon is the client's. A step names its turn, so that one whose answer was lost can be sent again: the same turn
 * and action get the same answer. Errors are `{error: {code, message}}`: 400 malformed, 404 unknown or expired
 * session, 409 wrong turn or episode over, 429 and 413 limits, 500 the environment broke (`cause` says how; the session
 * is over), 503 full.
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { Env } from '../core/env.ts';
import { messageOf } from '../core/errors.ts';
import { type HttpAnswer, type HttpRequest, json } from '../http/http-server.ts';
import { DEFAULT_IDLE_MS, DEFAULT_SESSIONS, type SessionLimits } from './agentgym/sessions.ts';
import { type EpisodeAnswer, EpisodeFailed, type Episodes } from './episodes.ts';

/** Session over HTTP. */
interface Session {
  readonly id: string;
  readonly env: string;
  answer: EpisodeAnswer;
  /** Action that led to `answer`. */
  lastAction: string | undefined;
  readonly listed: boolean;
  over: boolean;
  pending: { readonly turn: number; readonly action: string; readonly answer: Promise<HttpAnswer> } | undefined;
  usedAt: number;
}

const openBody = z.strictObject({
  env: z.string(),
  index: z.int().min(0),
  seed: z.int().min(0).max(0xffffffff).optional(),
  /** True when answers list the actions. */
  actions: z.boolean().default(true),
});
const stepBody = z.strictObject({ turn: z.int().min(1), action: z.string() });

/** A world and its instructions for language models that answer with the bare action. */
export interface InstructedEnv {
  readonly env: Env;
  readonly instructions: string;
}

export class UniformProtocol {
  readonly #worlds: ReadonlyMap<string, InstructedEnv>;
  readonly #episodes: Episodes;
  readonly #limits: SessionLimits;
  readonly #now: () => number;
  readonly #sessions = new Map<string, Session>();
  #opening = 0;

  constructor(
    worlds: ReadonlyMap<string, InstructedEnv>,
    episodes: Episodes,
    limits: SessionLimits,
    now: () => number,
  ) {
    this.#worlds = worlds;
    this.#episodes = episodes;
    this.#limits = limits;
    this.#now = now;
  }

  get count(): number {
    return this.#sessions.size;
  }

  /**
   * Handles a request.
   * @param path begins with `/v1/`
   */
  handle(path: string, request: HttpRequest): HttpAnswer | Promise<HttpAnswer> {
    const [, , what, name, ...rest] = path.split('/');
    if (what === 'sessions') {
      if (name === undefined) return allowed(request, 'POST') ?? this.#open(request);
      const session = this.#sessions.get(name);
      if (!session)
        return problem(404, 'UNKNOWN_SESSION', `no session ${name}; it was closed, has expired, or never was`);
      session.usedAt = this.#now();
      const [sub] = rest;
      if (sub === 'step') return allowed(request, 'POST') ?? this.#step(session, request);
      if (sub === 'available_actions') return allowed(request, 'GET') ?? actionsOf(session);
      if (sub !== undefined) return notFound(path);
      if (request.method === 'DELETE') return this.#delete(session);
      return allowed(request, 'GET', 'DELETE') ?? json(told(session));
    }
    if (what === 'envs') {
      const refusal = allowed(request, 'GET');
      if (refusal) return refusal;
      if (name === undefined) return json({ envs: [...this.#worlds.values()].map(described) });
      const world = this.#worlds.get(name);
      if (!world) return this.#unknownEnv(name);
      if (rest.length === 0) return json(described(world));
      if (rest[0] === 'tasks' && rest.length === 2) return task(world.env, Number(rest[1]));
      if (rest[0] === 'splits' && rest.length === 2) return split(world.env, rest[1]!);
    }
    return notFound(path);
  }

  /** Sweeps sessions that were idle for too long. @returns how many were closed */
  sweep(now: number): number {
    let closed = 0;
    for (const session of this.#sessions.values()) {
      if (session.pending || now - session.usedAt <= (this.#limits.idleMs ?? DEFAULT_IDLE_MS)) continue;
      this.#delete(session);
      closed++;
    }
    return closed;
  }

  async #open(request: HttpRequest): Promise<HttpAnswer> {
    const body = readJson(request, openBody);
    if ('status' in body) return body;
    const env = this.#worlds.get(body.env)?.env;
    if (!env) return this.#unknownEnv(body.env);
    if (body.index >= env.tasks.count) {
      return problem(400, 'BAD_ARGUMENT', `index: ${env.id} has tasks 0 … ${env.tasks.count - 1}, got ${body.index}`);
    }
    if (this.#sessions.size + this.#opening >= (this.#limits.maxSessions ?? DEFAULT_SESSIONS)) {
      return problem(503, 'FULL', 'this server holds as many sessions as it may; close some');
    }
    this.#opening++;
    try {
      const { index, seed = 0, actions } = body;
      const answer = await this.#episodes.open({ env: env.id, index, seed }, { listActions: actions });
      const session: Session = {
        id: randomUUID(),
        env: env.id,
        answer,
        lastAction: undefined,
        listed: actions,
        over: false,
        pending: undefined,
        usedAt: this.#now(),
      };
      if (request.gone.aborted) {
        this.#episodes.close(answer.episode); // no client would ever learn its name
        return problem(499, 'GONE', 'the client left');
      }
      this.#sessions.set(session.id, session);
      return json(told(session), 201);
    } catch (thrown) {
      return broken(thrown);
    } finally {
      this.#opening--;
    }
  }

  #step(session: Session, request: HttpRequest): HttpAnswer | Promise<HttpAnswer> {
    const body = readJson(request, stepBody);
    if ('status' in body) return body;
    const { turn, action } = body;
    const { pending } = session;
    if (pending) {
      if (pending.turn === turn && pending.action === action) return pending.answer;
      return problem(409, 'BUSY', `turn ${pending.turn} is under way`);
    }
    if (turn === session.answer.turn && action === session.lastAction) return json(told(session)); // sent again
    if (session.over) return problem(409, 'EPISODE_OVER', 'the episode has ended; open another session');
    const expected = session.answer.turn + 1;
    if (turn !== expected) return problem(409, 'WRONG_TURN', `expected turn ${expected}, got ${turn}`);
    const answer = this.#take(session, turn, action);
    session.pending = { turn, action, answer };
    return answer;
  }

  async #take(session: Session, turn: number, action: string): Promise<HttpAnswer> {
    try {
      session.answer = await this.#episodes.step(session.answer.episode, turn, action);
      session.lastAction = action;
      session.over = session.answer.step.kind === 'terminated';
      return json(told(session));
    } catch (thrown) {
      this.#sessions.delete(session.id);
      return broken(thrown);
    } finally {
      session.pending = undefined;
    }
  }

  #delete(session: Session): HttpAnswer {
    this.#sessions.delete(session.id);
    this.#episodes.close(session.answer.episode);
    return { status: 204, body: '' };
  }

  #unknownEnv(name: string): HttpAnswer {
    return problem(404, 'UNKNOWN_ENV', `no env '${name}' here; there are ${[...this.#worlds.keys()].join(', ')}`);
  }
}

/** Makes an error answer. */
export function problem(status: number, code: string, message: string, more: object = {}): HttpAnswer {
  return json({ error: { code, message, ...more } }, status);
}

/** Reads a JSON body that fits the schema, or makes the answer that refuses it. */
export function readJson<T>(request: HttpRequest, schema: z.ZodType<T>): T | HttpAnswer {
  let raw: unknown;
  try {
    raw = JSON.parse(request.body);
  } catch (thrown) {
    return problem(400, 'BAD_JSON', `the body is not JSON: ${messageOf(thrown)}`);
  }
  const read = schema.safeParse(raw);
  if (read.success) return read.data;
  const { path, message } = read.error.issues[0]!;
  return problem(400, 'BAD_ARGUMENT', `${path.join('.') || 'body'}: ${message}`);
}

function allowed({ method }: HttpRequest, ...methods: readonly string[]): HttpAnswer | undefined {
  if (methods.includes(method)) return undefined;
  const refusal = problem(405, 'METHOD_NOT_ALLOWED', `expected ${methods.join(' or ')}, got ${method}`);
  return { ...refusal, headers: { allow: methods.join(', ') } };
}

function notFound(path: string): HttpAnswer {
  return problem(404, 'NOT_FOUND', `nothing at ${path}`);
}

function told({ id, env, answer: { turn, step, actions } }: Session) {
  return { session: id, env, turn, step, actions };
}

function actionsOf(session: Session): HttpAnswer {
  if (!session.listed) {
    return problem(409, 'NOT_LISTED', 'this session was opened with actions: false; open one without');
  }
  return json({ session: session.id, turn: session.answer.turn, actions: session.answer.actions });
}

function described({ env, instructions }: InstructedEnv) {
  const { id, description, tasks, rewardRange, maxObservationChars } = env;
  return {
    id,
    description,
    instructions,
    rewardRange,
    maxObservationChars,
    tasks: {
      count: tasks.count,
      labels: tasks.labels,
      evalSeed: tasks.evalSeed,
      train: tasks.split('train').length,
      test: tasks.split('test'),
    },
  };
}

function task(env: Env, index: number): HttpAnswer {
  if (!Number.isInteger(index) || index < 0 || index >= env.tasks.count) {
    return problem(404, 'UNKNOWN_TASK', `${env.id} has tasks 0 … ${env.tasks.count - 1}`);
  }
  const split = env.tasks.split('test').includes(index)
    ? 'test'
    : env.tasks.split('train').includes(index)
      ? 'train'
      : null;
  return json({ env: env.id, index, label: env.tasks.label(index), split });
}

function split(env: Env, name: string): HttpAnswer {
  if (name !== 'train' && name !== 'test')
    return problem(404, 'UNKNOWN_SPLIT', `expected train or test, got '${name}'`);
  return json({ env: env.id, split: name, indices: [...env.tasks.split(name)] });
}

function broken(thrown: unknown): HttpAnswer {
  if (thrown instanceof EpisodeFailed) {
    return problem(500, 'ENV_FAILED', thrown.failure.message, { cause: thrown.failure.cause });
  }
  return problem(500, 'ENV_FAILED', messageOf(thrown));
}
