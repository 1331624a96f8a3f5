/** Init of the recorder, picked from the options of a run. */
import { largestOf } from '../../src/core/extremes.ts';
import { createLabels } from '../../src/core/task.ts';
import type { MetricsRow } from '../../src/metrics/metric-table.ts';
import type { RunPast } from '../../src/storage/trace-cut.ts';
import type { Policy, PreparedRun, RunOptions } from '../options.ts';
import type { RecorderInit } from './recorder-actor.ts';

/**
 * Past of a run that goes on.
 * @param saved its checkpoint, brought to the journal's end where it keeps one
 * @param digests of the updates that the journal names, by version
 */
export function runPast(
  { params, rollout }: NonNullable<Policy['saved']>,
  digests: ReadonlyMap<number, string> = new Map(),
): RunPast {
  const { version } = params;
  const { running = [], tickets = [], nextGroup = 0 } = rollout ?? {};
  return {
    version,
    credited: largestOf([...digests.keys()], version),
    nextGroup,
    outstanding: new Set([...running, ...tickets].map(({ group }) => group)),
  };
}

/**
 * Init of the recorder.
 * @param onSaved gets the result of every checkpoint
 */
export function recorderInit(
  options: RunOptions,
  worlds: PreparedRun['worlds'],
  metrics$: { next(row: MetricsRow): void },
  hostsReplaced: () => number,
  onSaved: RecorderInit['onSaved'],
): Omit<RecorderInit, 'past'> {
  const { config, evaluation, cluster } = options;
  return {
    dir: options.dir,
    config,
    trace: config.trace,
    evaluations: options.learn ? 'evaluation' : 'eval',
    labelOf: createLabels(worlds.map(({ env }) => ({ name: env.id, labelOf: (index) => env.tasks.label(index) }))),
    sinks: options.sinks ?? [],
    hostsReplaced,
    cluster: cluster && ((now) => cluster.monitor.facts(now)),
    onEpisodes: options.onEpisodes,
    onMetrics: (row) => metrics$.next(row),
    onProgress: options.onProgress,
    onEvaluation: evaluation && ((version, record) => evaluation.onRecord(version, record, worlds)),
    onSaved,
    onNotice: (message) => options.onNotice?.(message),
  };
}
