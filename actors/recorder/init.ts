/** Init of the recorder, picked from the options of a run. */
import type { Env } from '../../src/core/env.ts';
import type { MetricsRow } from '../../src/metrics/metric-table.ts';
import type { RunOptions } from '../options.ts';
import type { RecorderInit } from './recorder-actor.ts';

/**
 * Init of the recorder.
 * @param onSaved gets the result of every checkpoint
 */
export function recorderInit(
  options: RunOptions,
  env: Env,
  metrics$: { next(row: MetricsRow): void },
  hostsReplaced: () => number,
  onSaved: RecorderInit['onSaved'],
): Omit<RecorderInit, 'resumedFrom'> {
  const { config, evaluation, cluster } = options;
  return {
    dir: options.dir,
    config,
    trace: config.trace,
    labelOf: (index) => env.tasks.label(index),
    sinks: options.sinks ?? [],
    hostsReplaced,
    cluster: cluster && ((now) => cluster.monitor.facts(now)),
    onEpisodes: options.onEpisodes,
    onMetrics: (row) => metrics$.next(row),
    onProgress: options.onProgress,
    onEvaluation: evaluation && ((version, record) => evaluation.onRecord(version, record, env)),
    onSaved,
    onNotice: (message) => options.onNotice?.(message),
  };
}
