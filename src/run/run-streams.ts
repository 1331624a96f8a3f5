/** Streams to watch a run by. */
import type { EnvEvent } from '../../actors/env/protocol.ts';
import type { Run } from '../../actors/tree.ts';
import type { Trajectory } from '../core/trajectory.ts';
import type { MetricsRow } from '../metrics/metric-table.ts';
import { LiveStream } from './live-stream.ts';

/** Finished episode: its trajectory, and its purpose (training, or which evaluation). */
export interface FinishedEpisode {
  /** `train`, or the name of the evaluation or rollout it belongs to. */
  readonly purpose: string;
  readonly trajectory: Trajectory;
}

/** Live streams of a run, each bounded (see `LiveStream` for what a slow subscriber loses); all complete with the run. */
export interface RunStreams {
  /** Answers of the environments, and episodes that failed; backlog 10,000. */
  readonly observations$: LiveStream<EnvEvent>;
  /** Finished episodes, in groups as they finish; backlog 1,000. */
  readonly episodes$: LiveStream<FinishedEpisode>;
  /** Rows of metrics; backlog 10,000. */
  readonly metrics$: LiveStream<MetricsRow>;
}

/** Makes the streams, still empty. */
export function runStreams(): RunStreams {
  return {
    observations$: new LiveStream(10_000),
    episodes$: new LiveStream(1_000),
    metrics$: new LiveStream(10_000),
  };
}

/** Watches the observations of a started run. */
export function watchObservations({ observations$ }: RunStreams, run: Run): void {
  // Whatever breaks the pool ends the run, which reports it.
  run.observations$.subscribe({ next: (event) => observations$.push(event), error() {} });
}

/** Watches episodes: pushes a finished group. */
export function watchEpisodes({ episodes$ }: RunStreams, trajectories: readonly Trajectory[], purpose: string): void {
  for (const trajectory of trajectories) episodes$.push({ purpose, trajectory });
}

/** Ends all streams. @returns resolves when every subscriber has had its backlog */
export async function endStreams({ observations$, episodes$, metrics$ }: RunStreams): Promise<void> {
  await Promise.all([observations$.end(), episodes$.end(), metrics$.end()]);
}
