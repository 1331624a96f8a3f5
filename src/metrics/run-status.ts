/** Status of a run, as console, metrics and library users see it. */
import type { Accounting } from '../core/failure.ts';
import type { SlotTime } from './slot-time.ts';

/** Totals, counted since the run began (`envSteps`, `episodes`) or since this process did (the others). */
export interface RolloutTotals {
  /** Steps of training episodes. */
  readonly envSteps: number;
  /** Finished episodes, evaluations included. */
  readonly episodes: number;
  readonly runningEpisodes: number;
  /** Tokens the policy has computed, padding left out. */
  readonly tokens: number;
  /** Engine calls that finished turns, and the turns they finished. */
  readonly calls: number;
  readonly decidedTurns: number;
  readonly time: SlotTime;
}

/** Status of one world of a run of several. */
export interface WorldStatus {
  readonly name: string;
  /** Horizon of its episodes that start now, in turns. */
  readonly horizon: number;
  /** Share of the groups that are drawn from it now, where all worlds answer, in [0, 1]. */
  readonly share: number;
  /** True while its server answers. */
  readonly isUp: boolean;
}

/** Status of a run at one moment: totals, version, horizon, accounting. The totals are at most 250 ms old while episodes are played. */
export interface RunStatus extends RolloutTotals {
  readonly version: number;
  /** Horizon of the episodes that start now, in turns; of several worlds the largest. */
  readonly horizon: number;
  /** Worlds of a run of several; absent where it has one. */
  readonly worlds?: readonly WorldStatus[];
  readonly elapsedMs: number;
  /** Share of the run that is done, in [0, 1]. */
  readonly progress: number;
  readonly accounting: Accounting;
}
