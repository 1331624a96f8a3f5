/** Horizon: the largest number of turns an episode may take. This file is the only place that truncates. */
import type { EnvStep, Truncated } from './env.ts';

/** End of an episode: by the env (`terminated`), or by the horizon (`truncated`). A failed one has none: it is no trajectory. */
export type EpisodeEnd = 'terminated' | 'truncated';

/**
 * Applies the horizon to the env's answer to turn number `turn`: a `mid` step at the horizon becomes `truncated`.
 *
 * @param step what the env answered
 * @param turn whole turns used, this one included: 1 for the first action of the episode, stages left out
 * @param horizon turns the episode may take, ≥ 1
 * @returns `step`, or a truncated step when the horizon is used up and the env has not ended the episode itself; never after
 * a stage of an action (`partial`), which uses no turn
 */
export function withHorizon(step: EnvStep, turn: number, horizon: number): EnvStep | Truncated {
  if (step.kind === 'mid' && !step.partial && turn >= horizon) {
    return { kind: 'truncated', observation: step.observation, reward: step.reward };
  }
  return step;
}
