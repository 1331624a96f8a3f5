/**
 * Sessions: the numbered environments of one AgentGym server; each holds at most one episode on the env hosts. Requests
 * of one number are answered in the order they came; the original lets them race.
 */
import type { AgentGymServer, AgentGymSession } from '../../core/agentgym.ts';
import { LongplayError } from '../../core/errors.ts';
import type { EpisodeAnswer, Episodes } from '../episodes.ts';

/** Live session: an environment and what the server keeps of it. */
export interface LiveSession extends Writable<AgentGymSession> {
  actions: string[];
  /** Episode that runs; undefined before the first reset and after the end. */
  episode: number | undefined;
  usedAt: number;
  busy: Promise<unknown> | undefined;
}

type Writable<T> = { -readonly [K in keyof T]: T[K] };

export interface SessionLimits {
  /** Environments at once. Default 4096. */
  readonly maxSessions?: number;
  /** Milliseconds without a request after which an environment is closed. Default 30 minutes. */
  readonly idleMs?: number;
}

export const DEFAULT_SESSIONS = 4096;
export const DEFAULT_IDLE_MS = 30 * 60_000;

export class AgentGymSessions {
  readonly #episodes: Episodes;
  readonly #env: string;
  readonly #limits: SessionLimits;
  readonly #firstReward: AgentGymServer['firstReward'];
  readonly #sessions = new Map<number, LiveSession>();
  #next = 0;

  /**
   * @param env id under which the hosts know the world as the original is
   * @param firstReward reward of a task's first observation, see `AgentGymServer`
   */
  constructor(episodes: Episodes, env: string, limits: SessionLimits, firstReward?: AgentGymServer['firstReward']) {
    this.#episodes = episodes;
    this.#env = env;
    this.#limits = limits;
    this.#firstReward = firstReward;
  }

  get count(): number {
    return this.#sessions.size;
  }

  /** True if an environment has or had this number. */
  hasHeld(id: number): boolean {
    return Number.isInteger(id) && id >= 0 && id < this.#next;
  }

  /** True while a session is open: another request may close it while one is under way. */
  has(session: LiveSession): boolean {
    return this.#sessions.get(session.id) === session;
  }

  /** Creates a session. @returns its number, undefined when there are as many as allowed */
  create(now: number): LiveSession | undefined {
    if (this.#sessions.size >= (this.#limits.maxSessions ?? DEFAULT_SESSIONS)) return undefined;
    const session: LiveSession = {
      id: this.#next++,
      episode: undefined,
      index: undefined,
      actions: [],
      first: '',
      observation: '',
      reward: 0,
      score: 0,
      done: false,
      usedAt: now,
      busy: undefined,
    };
    this.#sessions.set(session.id, session);
    return session;
  }

  get(id: number, now: number): LiveSession | undefined {
    const session = this.#sessions.get(id);
    if (session) session.usedAt = now;
    return session;
  }

  /**
   * Closes a session.
   * @returns whether there was one
   */
  close(id: number): boolean {
    const session = this.#sessions.get(id);
    if (!session) return false;
    this.#sessions.delete(id);
    if (session.episode !== undefined) this.#episodes.close(session.episode);
    session.episode = undefined;
    return true;
  }

  /** Sweeps sessions that were idle for too long. @returns how many were closed */
  sweep(now: number): number {
    let closed = 0;
    for (const { id, usedAt, busy } of this.#sessions.values()) {
      if (!busy && now - usedAt > (this.#limits.idleMs ?? DEFAULT_IDLE_MS) && this.close(id)) closed++;
    }
    return closed;
  }

  /** Runs `work` after the session's present work. @returns the result of `done` or `failed`; never rejects */
  inOrder<T, A>(
    session: LiveSession,
    work: () => Promise<T>,
    done: (value: T) => A,
    failed: (thrown: unknown) => A,
  ): Promise<A> {
    const free = () => {
      if (session.busy === run) session.busy = undefined;
    };
    const run: Promise<A> = (session.busy ? session.busy.then(work) : work()).then(
      (value) => {
        free();
        return done(value);
      },
      (thrown) => {
        free();
        return failed(thrown);
      },
    );
    session.busy = run;
    return run;
  }

  /** Ends the episode; the environment stays, and is done. */
  end(session: LiveSession): void {
    if (session.episode !== undefined) this.#episodes.close(session.episode);
    session.episode = undefined;
    session.done = true;
  }

  /** Starts an episode; the one before ends only when the new one has started. */
  async reset(session: LiveSession, index: number): Promise<void> {
    const task = { env: this.#env, index, seed: 0 };
    const answer = await this.#episodes.open(task, { listActions: false });
    if (session.episode !== undefined) this.#episodes.close(session.episode);
    if (!this.has(session)) {
      this.#episodes.close(answer.episode);
      throw createClosedError(session.id);
    }
    session.episode = answer.episode;
    session.index = index;
    session.actions = [];
    session.first = session.observation = answer.step.observation;
    session.reward = session.score = this.#firstReward?.(index) ?? 0;
    session.done = false;
  }

  /** Steps, past the end too: the original goes on there, so the episode is played again up to it. */
  async step(session: LiveSession, action: string): Promise<void> {
    const { episode, index, actions } = session;
    const turn = actions.length + 1;
    let answer: EpisodeAnswer;
    if (episode === undefined) {
      const task = { env: this.#env, index: index!, seed: 0 };
      answer = await this.#episodes.open(task, { listActions: false, replay: [...actions, action] });
    } else answer = await this.#episodes.step(episode, turn, action);
    if (!this.has(session)) {
      this.#episodes.close(answer.episode);
      throw createClosedError(session.id);
    }
    const { step } = answer;
    actions.push(action);
    session.episode = step.kind === 'terminated' ? undefined : answer.episode;
    session.observation = step.observation;
    session.reward = step.kind === 'first' ? 0 : step.reward;
    session.score += session.reward;
    session.done = step.kind === 'terminated';
  }
}

function createClosedError(id: number): LongplayError {
  return new LongplayError('ACTOR_STOPPED', `The id ${id} is not valid.`);
}
