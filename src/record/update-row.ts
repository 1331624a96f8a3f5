/** One update as a row of metrics. Pure. */
import { type Accounting, failedTotal } from '../core/failure.ts';
import type { UpdateStats } from '../schedule/horizon-schedule.ts';
import type { MetricName, MetricsRow } from './metrics.ts';

/** What the learner says of an update. */
export interface UpdateFacts {
  readonly version: number;
  readonly stats: Readonly<Record<string, number>>;
  readonly consumed: UpdateStats;
  readonly trained: readonly number[];
  readonly filtered: readonly number[];
  readonly stale: readonly number[];
  readonly lag: { readonly min: number; readonly mean: number; readonly max: number };
  readonly tokens: number;
  readonly skipped: number;
  readonly busyMs: number;
  readonly idleMs: number;
}

/** What the rollouts say at that moment. */
export interface RolloutFacts {
  readonly horizon: number;
  readonly envSteps: number;
  readonly episodes: number;
  readonly elapsedMs: number;
  readonly progress: number;
  readonly accounting: Accounting;
}

/** Statistics of the loss that are metrics under their own names. */
const LOSS_STATS: readonly MetricName[] = [
  'loss',
  'policyLoss',
  'valueLoss',
  'entropy',
  'klOld',
  'klReference',
  'klCoefficient',
  'importanceMean',
  'importanceTruncated',
  'effectiveShare',
  'clipFraction',
  'gradNorm',
  'learningRate',
];

/** @param before seconds and env steps at the row before, for rates */
export function updateRow(
  update: UpdateFacts,
  rollout: RolloutFacts,
  before: { readonly at: number; readonly envSteps: number } | undefined,
): MetricsRow {
  const elapsed = rollout.elapsedMs / 1000;
  const { progress, accounting } = rollout;
  let episodes = 0;
  let successes = 0;
  let truncated = 0;
  for (const part of update.consumed.byHorizon) {
    episodes += part.episodes;
    successes += part.successes;
    truncated += part.truncated;
  }
  const since = elapsed - (before?.at ?? 0);
  const row: { [name in MetricName]?: number } = {
    update: update.version,
    elapsed,
    progress,
    horizon: rollout.horizon,
    envSteps: rollout.envSteps,
    episodes: rollout.episodes,
    trainedGroups: update.trained.length,
    filteredGroups: update.filtered.length,
    staleGroups: update.stale.length,
    lagMin: update.lag.min,
    lagMean: update.lag.mean,
    lagMax: update.lag.max,
    skippedSteps: update.skipped,
    launched: accounting.launched,
    trained: accounting.trained,
    stale: accounting.stale,
    filtered: accounting.filtered,
    failed: failedTotal(accounting),
    inFlight: accounting.inFlight,
  };
  if (progress > 0) row.remaining = (elapsed * (1 - progress)) / progress;
  if (since > 0) row.stepsPerSecond = (rollout.envSteps - (before?.envSteps ?? 0)) / since;
  if (episodes > 0) {
    row.success = successes / episodes;
    row.truncated = truncated / episodes;
  }
  if (update.busyMs > 0) {
    row.learnerTokensPerSecond = (1000 * update.tokens) / update.busyMs;
    row.learnerIdle = update.idleMs / (update.busyMs + update.idleMs);
  }
  for (const name of LOSS_STATS) if (update.stats[name] !== undefined) row[name] = update.stats[name];
  return row;
}
