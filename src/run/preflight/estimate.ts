/** Estimate of a whole run: tokens, time here, time and cost on other hardware. Pure; every figure has its formula beside it. */
import { countOperations, type Hardware } from './hardware.ts';

/** Input of an estimate: limits and sizes of the run, and what was measured. */
export interface EstimateInput {
  readonly stop: {
    readonly updates?: number | undefined;
    readonly minutes?: number | undefined;
    readonly envSteps?: number | undefined;
  };
  readonly groupsPerUpdate: number;
  readonly groupSize: number;
  readonly epochs: number;
  /** Turns of an episode, as played here. */
  readonly turns: number;
  /** Tokens of an episode, prompts included, as counted here; NaN where none were. */
  readonly tokens: number;
  /** Parameters of the policy; undefined where it is not known. */
  readonly parameters: number | undefined;
  /** Seconds of one update: measured with this policy, or computed from its measured tokens a second. */
  readonly update:
    | { readonly from: 'updates'; readonly seconds: number }
    | { readonly from: 'tokens'; readonly tokensPerSecond: number }
    | undefined;
}

/** Estimate of a whole run; a number is undefined where nothing measured leads to it. */
export interface Estimate {
  /** Updates until the run's `stop`, by whichever limit is reached first. */
  readonly updates: number | undefined;
  /** Limit that ends the run. */
  readonly endedBy: 'updates' | 'minutes' | 'envSteps';
  /** Episodes and tokens of all updates. */
  readonly episodes: number | undefined;
  readonly tokens: number | undefined;
  readonly secondsPerUpdate: number | undefined;
  /** Seconds of the whole run on this machine. */
  readonly seconds: number | undefined;
}

/**
 * Estimates a run. Episodes of groups that are filtered or too old come on top. Updates of `envSteps` are
 * envSteps / (groupsPerUpdate · groupSize · turns), those of `minutes` are 60 · minutes / seconds per update.
 */
export function estimateRun(input: EstimateInput): Estimate {
  const { stop, groupsPerUpdate, groupSize, turns, epochs, update } = input;
  const perUpdate = groupsPerUpdate * groupSize;
  const tokensPerUpdate = finite(perUpdate * input.tokens);
  const secondsPerUpdate =
    update?.from === 'updates'
      ? finite(update.seconds)
      : update && tokensPerUpdate !== undefined
        ? finite((tokensPerUpdate * (1 + 3 * epochs)) / update.tokensPerSecond)
        : undefined;
  const limits: (readonly [Estimate['endedBy'], number | undefined])[] = [];
  if (stop.updates !== undefined) limits.push(['updates', stop.updates]);
  if (stop.envSteps !== undefined) limits.push(['envSteps', finite(Math.ceil(stop.envSteps / (perUpdate * turns)))]);
  if (stop.minutes !== undefined) {
    limits.push([
      'minutes',
      secondsPerUpdate === undefined ? undefined : finite((60 * stop.minutes) / secondsPerUpdate),
    ]);
  }
  const known = limits.filter((limit): limit is readonly [Estimate['endedBy'], number] => limit[1] !== undefined);
  const [endedBy, updates] = known.sort((a, b) => a[1] - b[1])[0] ?? [limits[0]?.[0] ?? 'updates', undefined];
  const computed = updates === undefined || secondsPerUpdate === undefined ? undefined : updates * secondsPerUpdate;
  return {
    updates,
    endedBy,
    episodes: updates === undefined ? undefined : updates * perUpdate,
    tokens: updates === undefined || tokensPerUpdate === undefined ? undefined : updates * tokensPerUpdate,
    secondsPerUpdate,
    seconds: endedBy === 'minutes' && stop.minutes !== undefined ? 60 * stop.minutes : computed,
  };
}

/** Computes the seconds that the policy's operations of a whole run take on hardware; undefined where tokens or parameters are. */
export function secondsOn(
  { tokens }: Pick<Estimate, 'tokens'>,
  { parameters, epochs }: Pick<EstimateInput, 'parameters' | 'epochs'>,
  { peak }: Hardware,
  utilisation: number,
): number | undefined {
  if (tokens === undefined || parameters === undefined) return undefined;
  return countOperations(parameters, tokens, epochs) / (peak * utilisation);
}

function finite(value: number): number | undefined {
  return Number.isFinite(value) ? value : undefined;
}
