/** State of the console, and the change that each event makes to it. Pure: the clock comes in with the events. */
import type { ClusterFacts } from '../cluster/cluster-monitor.ts';
import type { MetricsRow } from '../metrics/metric-table.ts';
import type { RunStatus } from '../metrics/run-status.ts';
import { type TimeShares, timeShares } from '../metrics/slot-time.ts';
import type { RemoteUsage } from '../policy/remote/usage.ts';

/** Configuration, as far as the console shows it or advises on it. */
export interface ConsoleConfig {
  readonly env: { readonly id: string };
  /** Episodes to play, of a rollout: nothing is learnt. */
  readonly episodes?: number;
  readonly horizon:
    | { readonly type: 'fixed'; readonly rounds: number }
    | {
        readonly type: 'scaling_inter_stepwise' | 'linear';
        readonly rounds: readonly number[];
        readonly steps_scaling_inter: number;
      }
    | { readonly type: 'adaptive'; readonly rounds: readonly number[] };
  readonly rollout: {
    readonly groupSize: number;
    readonly concurrentGroups: number;
    readonly envThreads: number;
    readonly maxBatch: number;
  };
  readonly learner: {
    readonly maxLag: number;
    readonly epochs: number;
    readonly groupsPerUpdate: number;
    readonly maxTokens?: number;
  };
  readonly policy?: { readonly kind: string; readonly openai: { readonly concurrency: number } };
  readonly engine: {
    readonly inferenceThreads: number;
    readonly learnerThreads: number;
    readonly learnerReplicas: number;
  };
}

/** State of the run between updates. */
export interface Progress extends RunStatus {
  /** Usage of a policy behind a server. */
  readonly remote?: RemoteUsage | undefined;
}

/** Line of an actor, or of the env hosts as one. */
export interface ActorLine {
  readonly path: string;
  readonly state: string;
  readonly depth: number;
  readonly busyMs: number;
  readonly restarts: number;
  readonly message: string | undefined;
  readonly oldestMs: number;
  readonly waitingFor: readonly string[];
  /** Note shown instead of its activity. */
  readonly note?: string;
}

export type ConsoleEvent =
  | { readonly type: 'row'; readonly row: MetricsRow }
  | { readonly type: 'progress'; readonly progress: Progress }
  | { readonly type: 'actors'; readonly actors: readonly ActorLine[]; readonly at: number }
  | { readonly type: 'cluster'; readonly facts: ClusterFacts }
  | { readonly type: 'notice'; readonly text: string };

/** Rates and shares over the last seconds. */
export interface Rates {
  readonly stepsPerSecond: number;
  readonly episodesPerSecond: number;
  readonly tokensPerSecond: number;
  readonly batchSize: number | undefined;
  readonly time: TimeShares | undefined;
}

export interface ConsoleState {
  readonly config: ConsoleConfig;
  readonly name: string;
  /** Rows, oldest first, at most `MAX_ROWS`. */
  readonly rows: readonly MetricsRow[];
  /** Progress samples, oldest first, spanning the window of rates. */
  readonly progress: readonly Progress[];
  readonly rates: Rates | undefined;
  readonly actors: readonly (ActorLine & { readonly busy: number })[];
  readonly actorsAt: number | undefined;
  /** Workers, tickets and results of the cluster that plays. */
  readonly cluster?: ClusterFacts | undefined;
  readonly notices: readonly string[];
}

/** Rows kept for sparklines and warnings: every row of a short run; of a long one the newest. */
const MAX_ROWS = 600;
const MAX_NOTICES = 20;
/** Milliseconds that rates span. */
const WINDOW_MS = 5000;

export function startState(config: ConsoleConfig, name: string): ConsoleState {
  return { config, name, rows: [], progress: [], rates: undefined, actors: [], actorsAt: undefined, notices: [] };
}

export function reduce(state: ConsoleState, event: ConsoleEvent): ConsoleState {
  switch (event.type) {
    case 'row':
      return { ...state, rows: [...state.rows, event.row].slice(-MAX_ROWS) };
    case 'progress':
      return withProgress(state, event.progress);
    case 'actors':
      return withActors(state, event.actors, event.at);
    case 'cluster':
      return { ...state, cluster: event.facts };
    case 'notice':
      return { ...state, notices: [...state.notices, event.text].slice(-MAX_NOTICES) };
  }
}

function withProgress(state: ConsoleState, newest: Progress): ConsoleState {
  const all = [...state.progress, newest];
  const start = all.findLastIndex(({ elapsedMs }) => newest.elapsedMs - elapsedMs >= WINDOW_MS);
  const progress = all.slice(Math.max(0, start));
  const oldest = progress[0]!;
  const seconds = (newest.elapsedMs - oldest.elapsedMs) / 1000;
  if (seconds <= 0) return { ...state, progress };
  const calls = newest.calls - oldest.calls;
  const rates: Rates = {
    stepsPerSecond: (newest.envSteps - oldest.envSteps) / seconds,
    episodesPerSecond: (newest.episodes - oldest.episodes) / seconds,
    tokensPerSecond: (newest.tokens - oldest.tokens) / seconds,
    batchSize: calls > 0 ? (newest.decidedTurns - oldest.decidedTurns) / calls : undefined,
    time: timeShares(oldest.time, newest.time),
  };
  return { ...state, progress, rates };
}

function withActors(state: ConsoleState, actors: readonly ActorLine[], at: number): ConsoleState {
  const ms = state.actorsAt === undefined ? 0 : at - state.actorsAt;
  const before = new Map(state.actors.map((actor) => [actor.path, actor]));
  return {
    ...state,
    actorsAt: at,
    actors: actors.map((actor) => {
      const known = before.get(actor.path);
      const now = ms > 0 && known ? Math.min(1, Math.max(0, actor.busyMs - known.busyMs) / ms) : 0;
      // Long calls report when they end: averaged, or the share would jump between 0 and 1.
      return { ...actor, busy: known ? 0.7 * known.busy + 0.3 * now : now };
    }),
  };
}

/** Newest row, merged with newer progress. */
export function newest(state: ConsoleState): { readonly row: MetricsRow; readonly progress: Progress | undefined } {
  return { row: state.rows.at(-1) ?? {}, progress: state.progress.at(-1) };
}
