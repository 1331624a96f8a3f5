/**
 * Sessions on the env hosts as promises, for servers: one command in hand per episode, whose answer settles its
 * promise.
 */
import { LongplayError, messageOf } from '../../src/core/errors.ts';
import type { Failure } from '../../src/core/failure.ts';
import type { Task } from '../../src/core/task.ts';
import { type EpisodeAnswer, EpisodeFailed, type Episodes, type OpenOptions } from '../../src/serve/episodes.ts';
import { createEnvPool, type EnvPool, type EnvPoolOptions, type EnvPoolStats } from './env-pool.ts';
import type { EnvEvent } from './protocol.ts';

interface AwaitedEpisode {
  readonly table: string[];
  resolve: ((answer: EpisodeAnswer) => void) | undefined;
  reject: ((error: Error) => void) | undefined;
}

const NONE: readonly string[] = [];

/** Starts env hosts. @throws {LongplayError} ENV_BROKEN when they cannot load the envs */
export async function openEnvSessions(options: EnvPoolOptions): Promise<EnvSessions> {
  return new EnvSessions(await createEnvPool(options));
}

class EnvSessions implements Episodes {
  readonly #pool: EnvPool;
  readonly #episodes = new Map<number, AwaitedEpisode>();
  #next = 0;
  #broken: string | undefined;

  constructor(pool: EnvPool) {
    this.#pool = pool;
    pool.observations$.subscribe({
      next: (event) => this.#settle(event),
      error: (error) => this.#break(messageOf(error)),
    });
  }

  get count(): number {
    return this.#episodes.size;
  }

  get healthy(): boolean {
    return this.#broken === undefined;
  }

  stats(): EnvPoolStats {
    return this.#pool.stats();
  }

  open(task: Task, { listActions, replay }: OpenOptions): Promise<EpisodeAnswer> {
    const episode = this.#next;
    this.#next = (this.#next + 1) & 0x7fffffff;
    const held: AwaitedEpisode = { table: [], resolve: undefined, reject: undefined };
    this.#episodes.set(episode, held);
    return this.#request(episode, held, {
      type: 'open',
      episode,
      attempt: 1,
      task,
      listActions,
      ...(replay ? { replay } : {}),
    });
  }

  step(episode: number, turn: number, action: string): Promise<EpisodeAnswer> {
    const held = this.#episodes.get(episode);
    if (!held) {
      const failure: Failure = { cause: 'protocol', where: '/env-sessions', message: `episode ${episode} is over` };
      return Promise.reject(new EpisodeFailed(failure));
    }
    return this.#request(episode, held, { type: 'step', episode, turn, action });
  }

  close(episode: number): void {
    const held = this.#episodes.get(episode);
    if (!held) return;
    this.#episodes.delete(episode);
    held.reject?.(new LongplayError('ACTOR_STOPPED', `episode ${episode} was closed`));
    if (!this.#broken) this.#pool.send({ type: 'close', episode });
  }

  async stop(): Promise<void> {
    this.#break('the server stops');
    await this.#pool.close();
  }

  #request(episode: number, held: AwaitedEpisode, command: Parameters<EnvPool['send']>[0]): Promise<EpisodeAnswer> {
    return new Promise((resolve, reject) => {
      if (this.#broken !== undefined) {
        this.#episodes.delete(episode);
        reject(new LongplayError('ENV_BROKEN', this.#broken));
        return;
      }
      held.resolve = resolve;
      held.reject = reject;
      try {
        this.#pool.send(command);
      } catch (thrown) {
        this.#episodes.delete(episode);
        reject(thrown);
      }
    });
  }

  #settle(event: EnvEvent): void {
    const held = this.#episodes.get(event.episode);
    if (!held) return; // closed meanwhile
    const { resolve, reject } = held;
    held.resolve = held.reject = undefined;
    if (event.type === 'failed') {
      this.#episodes.delete(event.episode);
      reject?.(new EpisodeFailed(event.failure));
      return;
    }
    const { episode, turn, step, newActions } = event;
    for (const text of newActions) held.table.push(text);
    const actions = event.actions.length === 0 ? NONE : Array.from(event.actions, (index) => held.table[index]!);
    if (step.kind === 'terminated') this.#episodes.delete(episode);
    resolve?.({ episode, turn, step, actions });
  }

  #break(message: string): void {
    this.#broken ??= message;
    const held = [...this.#episodes.values()];
    this.#episodes.clear();
    for (const { reject } of held) reject?.(new LongplayError('ENV_BROKEN', message));
  }
}
