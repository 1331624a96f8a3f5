/** Row of metrics of one update. Pure. */
import type { ClusterFacts } from '../cluster/cluster-monitor.ts';
import type { WorkerRow } from '../cluster/worker-report.ts';
import { countFailed } from '../core/failure.ts';
import { toolRates } from '../core/tool-counts.ts';
import type { ConsumedFacts, EpisodeSums } from './group-facts.ts';
import { type Metric, type MetricsRow, metricTable, type PlainName, type SplitName } from './metric-table.ts';
import type { RunStatus, WorldStatus } from './run-status.ts';
import { timeShares } from './slot-time.ts';

/** Facts of an update, from the learner. */
export interface UpdateFacts {
  readonly version: number;
  readonly stats: Readonly<Record<string, number>>;
  readonly trained: readonly number[];
  readonly filtered: readonly number[];
  readonly stale: readonly number[];
  readonly lag: { readonly min: number; readonly mean: number; readonly max: number };
  readonly tokens: number;
  readonly skipped: number;
  readonly busyMs: number;
  readonly idleMs: number;
}

/** Facts of the rollouts at that moment. */
export type RolloutFacts = Omit<RunStatus, 'version' | 'runningEpisodes'>;

/** Facts of the actors. */
export interface ActorFacts {
  readonly actors: readonly {
    readonly path: string;
    readonly busyMs: number;
    readonly depth: number;
    readonly restarts: number;
  }[];
  readonly hostsReplaced: number;
}

/** Facts of an earlier row, for rates. */
export interface RowBefore {
  readonly rollout: RolloutFacts;
  readonly actors: ActorFacts;
}

/** Milliseconds that rates are taken over, at least, where the run is old enough: updates may come in bursts. */
const RATE_MS = 1000;

/**
 * Earlier rows, without those that no rate will be taken from: of the rows at least `RATE_MS` old, all but the newest.
 */
export function earlierRows(rows: readonly RowBefore[], elapsedMs: number): RowBefore[] {
  const newest = rows.findLastIndex(({ rollout }) => elapsedMs - rollout.elapsedMs >= RATE_MS);
  return rows.slice(Math.max(0, newest));
}

/** Statistics of the learner that are metrics under their own names. */
const LEARNER_STATS = metricTable.filter((metric: Metric) => metric.isLearnerStat).map(({ name }) => name as PlainName);

type Row = { [name in PlainName]?: number } & { [name in SplitName]?: Record<string, number> };

/**
 * Makes the row of an update.
 * @param before start of the rates; `undefined` for the first row of a process, which has none
 * @param cluster that plays for the run
 */
export function updateRow(
  update: UpdateFacts,
  consumed: ConsumedFacts,
  rollout: RolloutFacts,
  actors: ActorFacts,
  before: RowBefore | undefined,
  cluster?: ClusterFacts,
): MetricsRow {
  const row: Row = {
    update: update.version,
    ...counters(rollout, actors),
    trainedGroups: update.trained.length,
    filteredGroups: update.filtered.length,
    staleGroups: update.stale.length,
    lagMin: update.lag.min,
    lagMean: update.lag.mean,
    lagMax: update.lag.max,
    skippedSteps: update.skipped,
  };
  if (update.busyMs > 0) {
    row.learnerTokensPerSecond = (1000 * update.tokens) / update.busyMs;
    row.learnerIdle = update.idleMs / (update.busyMs + update.idleMs);
  }
  for (const name of LEARNER_STATS) if (update.stats[name] !== undefined) row[name] = update.stats[name];
  addOutcomes(row, consumed);
  if (rollout.worlds) addWorlds(row, consumed, rollout.worlds);
  addRates(row, rollout, before?.rollout);
  addActors(row, rollout, actors, before);
  if (cluster) addCluster(row, update.version, rollout, cluster);
  return row;
}

/**
 * Row of an interval of a rollout, in which nothing is learnt.
 * @param finished the groups that ended in it
 */
export function rolloutRow(
  finished: ConsumedFacts,
  rollout: RolloutFacts,
  actors: ActorFacts,
  before: RowBefore | undefined,
): MetricsRow {
  const row: Row = counters(rollout, actors);
  addOutcomes(row, finished);
  delete row.zeroVarianceGroups; // groups are of one task's samples, and no estimator compares them
  addRates(row, rollout, before?.rollout);
  addActors(row, rollout, actors, before);
  return row;
}

function counters({ elapsedMs, progress, horizon, envSteps, episodes, accounting }: RolloutFacts, actors: ActorFacts) {
  const elapsed = elapsedMs / 1000;
  const row: Row = {
    elapsed,
    progress,
    horizon,
    envSteps,
    episodes,
    hostsReplaced: actors.hostsReplaced,
    launched: accounting.launched,
    trained: accounting.trained,
    stale: accounting.stale,
    filtered: accounting.filtered,
    failed: countFailed(accounting),
    inFlight: accounting.inFlight,
  };
  if (progress > 0) row.remaining = (elapsed * (1 - progress)) / progress;
  return row;
}

function addOutcomes(
  row: Row,
  {
    all,
    byLabel,
    byHorizon,
    comparedGroups,
    flatGroups,
    repeats,
    answers,
    formatErrors,
    reported,
    tools,
    top,
  }: ConsumedFacts,
): void {
  if (all.episodes === 0) return;
  row.success = all.successes / all.episodes;
  row.return = all.returns / all.episodes;
  row.turns = all.turns / all.episodes;
  row.truncated = all.truncated / all.episodes;
  row.episodesByLabel = mapSums(byLabel, (sums) => sums.episodes);
  row.successByLabel = mapSums(byLabel, (sums) => sums.successes / sums.episodes);
  row.returnByLabel = mapSums(byLabel, (sums) => sums.returns / sums.episodes);
  row.turnsByLabel = mapSums(byLabel, (sums) => sums.turns / sums.episodes);
  row.truncatedByLabel = mapSums(byLabel, (sums) => sums.truncated / sums.episodes);
  row.episodesByHorizon = mapSums(byHorizon, (sums) => sums.episodes);
  row.successByHorizon = mapSums(byHorizon, (sums) => sums.successes / sums.episodes);
  row.truncatedByHorizon = mapSums(byHorizon, (sums) => sums.truncated / sums.episodes);
  if (comparedGroups > 0) row.zeroVarianceGroups = flatGroups / comparedGroups;
  if (answers > 0) row.formatErrors = formatErrors / answers;
  if (reported.size > 0) {
    row.agentMetrics = Object.fromEntries([...reported].map(([name, { sum, count }]) => [name, sum / count]));
  }
  Object.assign(row, toolRates(tools));
  if (all.turns === 0) return;
  row.topAction = (top?.count ?? 0) / all.turns;
  row.repeatedTurns = repeats / all.turns;
}

/** Columns of a run of several worlds; what an update did not play is absent. */
function addWorlds(row: Row, { byWorld }: ConsumedFacts, worlds: readonly WorldStatus[]): void {
  const mapWorlds = (value: (world: WorldStatus) => number) =>
    Object.fromEntries(worlds.map((world) => [world.name, value(world)]));
  row.horizonByWorld = mapWorlds(({ horizon }) => horizon);
  row.shareByWorld = mapWorlds(({ share }) => share);
  row.downByWorld = mapWorlds(({ isUp }) => (isUp ? 0 : 1));
  row.episodesByWorld = mapSums(byWorld, (sums) => sums.episodes);
  row.successByWorld = mapSums(byWorld, (sums) => sums.successes / sums.episodes);
  row.returnByWorld = mapSums(byWorld, (sums) => sums.returns / sums.episodes);
  row.turnsByWorld = mapSums(byWorld, (sums) => sums.turns / sums.episodes);
  row.truncatedByWorld = mapSums(byWorld, (sums) => sums.truncated / sums.episodes);
}

function addRates(row: Row, now: RolloutFacts, before: RolloutFacts | undefined): void {
  const seconds = (now.elapsedMs - (before?.elapsedMs ?? now.elapsedMs)) / 1000;
  if (!before || seconds <= 0) return;
  row.stepsPerSecond = (now.envSteps - before.envSteps) / seconds;
  row.episodesPerSecond = (now.episodes - before.episodes) / seconds;
  row.tokensPerSecond = (now.tokens - before.tokens) / seconds;
  const calls = now.calls - before.calls;
  if (calls > 0) row.batchSize = (now.decidedTurns - before.decidedTurns) / calls;
  const time = timeShares(before.time, now.time);
  if (time) row.time = time;
}

function addActors(row: Row, rollout: RolloutFacts, now: ActorFacts, before: RowBefore | undefined): void {
  row.actorDepth = mapActors(now, ({ depth }) => depth);
  row.actorRestarts = mapActors(now, ({ restarts }) => restarts);
  const ms = before ? rollout.elapsedMs - before.rollout.elapsedMs : 0;
  if (!before || ms <= 0) return;
  const earlier = mapActors(before.actors, ({ busyMs }) => busyMs);
  row.actorBusy = mapActors(now, ({ path, busyMs }) =>
    Math.min(1, Math.max(0, busyMs - (earlier[actorName(path)] ?? 0)) / ms),
  );
}

function addCluster(row: Row, version: number, rollout: RolloutFacts, { workers, counts, load }: ClusterFacts): void {
  const here = workers.filter(({ state }) => state === 'here');
  row.clusterWorkers = here.length;
  row.clusterSlots = here.reduce((sum, { slots }) => sum + slots, 0);
  row.clusterOutstanding = counts.outstanding;
  row.clusterDuplicates = counts.duplicates;
  row.clusterIssuedAgain = counts.reissued;
  row.clusterRefused = counts.refused;
  row.clusterVerified = counts.verified;
  row.clusterLost = rollout.accounting.failed.worker ?? 0;
  if (load) {
    row.clusterResults = load.results;
    row.clusterRoundTrip = load.roundTripMs / 1000;
  }
  const mapWorkers = (value: (worker: WorkerRow) => number) =>
    Object.fromEntries(here.map((worker) => [worker.name, value(worker)]));
  row.workerGroupsPerSecond = mapWorkers((worker) => worker.groupsPerSecond);
  row.workerTokensPerSecond = mapWorkers((worker) => worker.tokensPerSecond);
  row.workerHeld = mapWorkers((worker) => worker.held);
  row.workerLag = mapWorkers((worker) => version - worker.version);
}

type OneActor = ActorFacts['actors'][number];

function mapActors({ actors }: ActorFacts, value: (actor: OneActor) => number): Record<string, number> {
  return Object.fromEntries(actors.map((actor) => [actorName(actor.path), value(actor)]));
}

/** Name of an actor: `/inference` as `inference`. */
function actorName(path: string): string {
  return path.replace(/^\//, '');
}

function mapSums(parts: Readonly<Record<string, EpisodeSums>>, value: (sums: EpisodeSums) => number) {
  return Object.fromEntries(Object.entries(parts).map(([key, sums]) => [key, value(sums)]));
}
