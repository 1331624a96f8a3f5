/** Outages: how long the server of each world has answered no episode. */
import type { FailureCause } from '../../src/core/failure.ts';
import { MIN_UNANSWERED } from './retry.ts';

/** Failed episodes of a world after which another one must have answered since the first of them. */
const MAX_ALONE = 256;

interface WorldAnswers {
  /** Failed episodes that the server has not answered, since any other one was answered last. */
  failures: number;
  /** Clock since when they were not answered. */
  since: number;
  /** Clock at the last answer. */
  answeredAt: number;
}

/** Outage of a world's server, as a failed episode finds it. */
export interface Outage {
  /** Episodes that were not answered, since any other one was answered last. */
  readonly unanswered: number;
  /** Milliseconds in which they were not answered; 0 without one. */
  readonly outageMs: number;
  /** True while another world of the run answers. */
  readonly othersAnswer: boolean;
}

/** Book of the answers of a run's worlds. */
export class Outages {
  readonly #maxOutageMs: number;
  readonly #worlds: ReadonlyMap<string, WorldAnswers>;

  /**
   * @param worlds names (`Task.env`) of several worlds; undefined where the run has one, whatever its tasks call it
   * @param maxOutageMs milliseconds without an answer from which a world is out
   */
  constructor(worlds: readonly string[] | undefined, maxOutageMs: number) {
    this.#maxOutageMs = maxOutageMs;
    this.#worlds = new Map((worlds ?? ['']).map((name) => [name, { failures: 0, since: 0, answeredAt: 0 }]));
  }

  /** Records an answer. @param world undefined for an episode that is over: it counts where there is one world */
  recordAnswer(world: string | undefined, now: number): void {
    const own = this.#get(world);
    if (!own) return;
    own.answeredAt = now;
    own.failures = 0;
  }

  /**
   * Records a failed episode.
   * @param sentAt clock at which its last command went out
   */
  recordFailure(world: string, cause: FailureCause, sentAt: number, now: number): Outage {
    const own = this.#get(world)!;
    if (cause !== 'unreachable') own.failures = 0;
    else if (own.failures++ === 0) own.since = Math.max(sentAt, own.answeredAt);
    const others = [...this.#worlds.values()].filter((one) => one !== own);
    // Others that are never drawn would answer for ever: after so many failures one must have answered meanwhile.
    const isAlone = own.failures >= MAX_ALONE && others.every(({ answeredAt }) => answeredAt < own.since);
    return {
      unanswered: own.failures,
      outageMs: own.failures === 0 ? 0 : now - own.since,
      othersAnswer:
        !isAlone && others.some(({ failures, since }) => failures < MIN_UNANSWERED || now - since < this.#maxOutageMs),
    };
  }

  #get(world: string | undefined): WorldAnswers | undefined {
    return this.#worlds.size === 1 ? this.#worlds.values().next().value : this.#worlds.get(world ?? '');
  }
}
