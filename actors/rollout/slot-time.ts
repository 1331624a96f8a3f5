/**
 * Time of the episode slots, by use. A run has `concurrentGroups · groupSize` slots; every slot is, at every
 * instant, running an episode, holding a finished one that waits for its group, or empty because admission waits for
 * the learner. Summed over slots that accounts for all time, so the shares of an interval add up to one.
 */
import type { TurnStages } from '../../src/core/trajectory.ts';
import type { SlotTime } from '../../src/metrics/slot-time.ts';

export class SlotTimer {
  readonly #slots: number;
  readonly #envThreads: number;
  #at: number;
  #runningMs = 0;
  #groupMs = 0;
  #emptyMs = 0;
  #envMs = 0;
  #hostMs = 0;
  #waitMs = 0;
  #prefillMs = 0;
  #decodeMs = 0;
  #actRestMs = 0;
  #stepRestMs = 0;

  constructor(now: number, slots: number, envThreads: number) {
    this.#at = now;
    this.#slots = slots;
    this.#envThreads = envThreads;
  }

  /**
   * Charges the time that has passed with these counts unchanged.
   * @param held finished episodes that wait for their group
   * @param training whether empty slots would be filled if admission allowed it
   */
  chargeTime(now: number, running: number, held: number, training: boolean): void {
    const ms = now - this.#at;
    this.#at = now;
    this.#runningMs += ms * running;
    this.#groupMs += ms * held;
    if (training) this.#emptyMs += ms * Math.max(0, this.#slots - running - held);
  }

  /** Charges a turn that was decided `actMs` after it was asked. */
  chargeTurn(actMs: number, stages: TurnStages | undefined): void {
    const { waitMs = 0, prefillMs = 0, decodeMs = 0 } = stages ?? {};
    this.#waitMs += waitMs;
    this.#prefillMs += prefillMs;
    this.#decodeMs += decodeMs;
    this.#actRestMs += Math.max(0, actMs - waitMs - prefillMs - decodeMs);
  }

  /**
   * Charges a step that the env answered.
   * @param stepMs since the action was sent
   * @param envMs inside the env
   * @param batchMs inside the env, of all answers that came together: they waited for each other
   */
  chargeStep(stepMs: number, envMs: number, batchMs: number): void {
    const inEnv = Math.min(stepMs, Math.max(envMs, batchMs / this.#envThreads));
    this.#envMs += inEnv;
    this.#hostMs += envMs;
    this.#stepRestMs += Math.max(0, stepMs - inEnv);
  }

  get totals(): SlotTime {
    return {
      runningMs: this.#runningMs,
      groupMs: this.#groupMs,
      learnerMs: this.#emptyMs,
      envMs: this.#envMs,
      hostMs: this.#hostMs,
      waitMs: this.#waitMs,
      prefillMs: this.#prefillMs,
      decodeMs: this.#decodeMs,
      actRestMs: this.#actRestMs,
      stepRestMs: this.#stepRestMs,
    };
  }
}
