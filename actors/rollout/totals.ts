/** Totals of the rollouts, counts and times, as status and metrics show them. */
import type { TurnStages } from '../../src/core/trajectory.ts';
import type { RolloutTotals } from '../../src/metrics/run-status.ts';
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

  /** Charges the time since the last call to the uses of the slots; see `SlotTimer.chargeTime`. */
  chargeTime(now: number, running: number, held: number, training: boolean): void {
    this.#timer.chargeTime(now, running, held, training);
  }

  /** Counts a step that an env answered. @param training a step of a training episode, taken for the first time */
  countStep(training: boolean, stepMs: number, envMs: number, batchMs: number): void {
    if (training) this.#envSteps++;
    this.#timer.chargeStep(stepMs, envMs, batchMs);
  }

  /** Counts an engine call that decided `turns` turns. @param tokens that the policy has computed since it started */
  countCall(turns: number, tokens: number): void {
    this.#tokens += Math.max(0, tokens - this.#tokensSeen);
    this.#tokensSeen = tokens;
    this.#calls++;
    this.#decidedTurns += turns;
  }

  /** Charges a turn that was decided; see `SlotTimer.acted`. */
  countTurn(actMs: number, stages: TurnStages | undefined): void {
    this.#timer.chargeTurn(actMs, stages);
  }

  countFinished(): void {
    this.#episodes++;
  }

  /** Resets the token count: the policy's next incarnation counts from zero. */
  policyEnded(): void {
    this.#tokensSeen = 0;
  }

  /** Totals, with the episodes that run now. */
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
