/** Progress of a run: steps, episodes, the time that training has taken over all resumes, and its share of the whole. */
import type { Clock } from '../../src/core/clock.ts';
import { progressOf, type StopCondition, stopReached, type TrainedSoFar } from '../../src/learning/schedule/stop.ts';
import type { RolloutTotals } from '../../src/metrics/run-status.ts';
import { NO_TIME } from '../../src/metrics/slot-time.ts';
import type { SchedulerState } from './protocol.ts';

export class Progress {
  /** Totals as the rollouts last reported them. */
  totals: RolloutTotals;
  readonly #clock: Clock;
  readonly #stop: StopCondition;
  /** Milliseconds of training before `#startedAt`. */
  #before: number;
  #startedAt: number | undefined;

  /** Resumes from `saved`. */
  constructor(clock: Clock, stop: StopCondition, saved: SchedulerState | undefined) {
    const { envSteps = 0, episodes = 0, elapsedMs = 0 } = saved ?? {};
    const none = { runningEpisodes: 0, tokens: 0, calls: 0, decidedTurns: 0, time: NO_TIME };
    this.totals = { envSteps, episodes, ...none };
    this.#clock = clock;
    this.#stop = stop;
    this.#before = elapsedMs;
  }

  /** Starts the clock of training. */
  start(): void {
    this.#startedAt = this.#clock.now();
  }

  /** Stops the clock of training. */
  end(): void {
    this.#before = this.elapsedMs;
    this.#startedAt = undefined;
  }

  /** Milliseconds of training, over all resumes. */
  get elapsedMs(): number {
    return this.#before + (this.#startedAt === undefined ? 0 : this.#clock.now() - this.#startedAt);
  }

  /** Stop condition that is met at policy version `updates`, or undefined. */
  stopReached(updates: number): keyof StopCondition | undefined {
    return stopReached(this.#stop, this.#summarizeSoFar(updates, this.totals.envSteps));
  }

  /** Share of the run that is done, in [0, 1], at policy version `updates` and so many steps. */
  share(updates: number, envSteps = this.totals.envSteps): number {
    return progressOf(this.#stop, this.#summarizeSoFar(updates, envSteps));
  }

  #summarizeSoFar(updates: number, envSteps: number): TrainedSoFar {
    return { updates, envSteps, elapsedMs: this.elapsedMs };
  }
}
