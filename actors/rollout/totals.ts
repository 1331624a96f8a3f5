/** Counts and times of the rollouts, as status and metrics show them. */
import type { TurnStages } from '../../src/core/trajectory.ts';
import type { RolloutTotals } from '../../src/record/run-status.ts';
import type { RolloutInit } from './protocol.ts';
import { SlotTimer } from './slot-time.ts';

export class Totals {
  readonly #timer: SlotTimer;
  #envSteps: number;
  #episodes: number;
  #tokens = 0;
  /** Tokens that the present incarnation of the policy has reported. */
  #tokensSeen = 0;
  #calls = 0;
  #decidedTurns = 0;

  constructor(now: number, { start, slots, envThreads }: Pick<RolloutInit, 'start' | 'slots' | 'envThreads'>) {
    this.#timer = new SlotTimer(now, slots, envThreads);
    this.#envSteps = start.envSteps;
    this.#episodes = start.episodes;
  }

  get envSteps(): number {
    return this.#envSteps;
  }

  /** Charges the time since the last call to what the slots were doing; see `SlotTimer.pass`. */
  pass(now: number, running: number, held: number, training: boolean): void {
    this.#timer.pass(now, running, held, training);
  }

  /** An env answered. @param training a step of a training episode, taken for the first time */
  stepped(training: boolean, stepMs: number, envMs: number, batchMs: number): void {
    if (training) this.#envSteps++;
    this.#timer.stepped(stepMs, envMs, batchMs);
  }

  /** An engine call decided `turns` turns. @param tokens that the policy has computed since it started */
  called(turns: number, tokens: number): void {
    this.#tokens += Math.max(0, tokens - this.#tokensSeen);
    this.#tokensSeen = tokens;
    this.#calls++;
    this.#decidedTurns += turns;
  }

  /** A turn was decided; see `SlotTimer.acted`. */
  acted(actMs: number, stages: TurnStages | undefined): void {
    this.#timer.acted(actMs, stages);
  }

  finished(): void {
    this.#episodes++;
  }

  /** Its next incarnation counts tokens from zero. */
  policyEnded(): void {
    this.#tokensSeen = 0;
  }

  /** All of them, with the episodes that run now. */
  with(runningEpisodes: number): RolloutTotals {
    return {
      envSteps: this.#envSteps,
      episodes: this.#episodes,
      runningEpisodes,
      tokens: this.#tokens,
      calls: this.#calls,
      decidedTurns: this.#decidedTurns,
      time: this.#timer.totals,
    };
  }
}
