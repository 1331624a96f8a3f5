/**
 * Metrics: name, unit and meaning of each in one table. Rows, sinks and METRICS.md come from it; a name that is not in
 * it does not compile, and a test fails for one that is never emitted.
 */
import { largestOf } from '../core/extremes.ts';

/** Dimension that a metric is split by. */
export type SplitBy = 'label' | 'horizon' | 'part' | 'actor' | 'worker';

export interface Metric {
  readonly name: string;
  readonly unit: string;
  readonly meaning: string;
  /** Split of a metric that has one value per sub-task label, horizon, part of the time, actor or worker. */
  readonly by?: SplitBy;
  /** True for a total of the run so far, which only grows: a counter to Prometheus; others are gauges. */
  readonly total?: boolean;
}

/** Table of all metrics: name, unit, meaning. */
export const metricTable = [
  {
    name: 'update',
    unit: 'updates',
    meaning: 'policy version after the update: how many updates the weights have seen',
  },
  { name: 'elapsed', unit: 's', total: true, meaning: 'training time so far, evaluation left out' },
  { name: 'remaining', unit: 's', meaning: 'training time left, estimated from the progress so far' },
  { name: 'progress', unit: '', meaning: 'share of the run that is done, by whichever stop rule is nearest' },
  { name: 'horizon', unit: 'turns', meaning: 'horizon of the episodes that start now' },
  { name: 'envSteps', unit: 'steps', total: true, meaning: 'environment steps taken by training episodes' },
  { name: 'episodes', unit: 'episodes', total: true, meaning: 'episodes finished' },
  { name: 'stepsPerSecond', unit: '1/s', meaning: 'environment steps per second, over at least the last second' },
  { name: 'episodesPerSecond', unit: '1/s', meaning: 'episodes finished per second, over at least the last second' },
  {
    name: 'tokensPerSecond',
    unit: '1/s',
    meaning: 'tokens the policy computed per second, over at least the last second',
  },
  { name: 'batchSize', unit: 'turns', meaning: 'mean number of turns that one engine call finished' },
  { name: 'success', unit: '', meaning: 'share of the update’s episodes that solved their task' },
  { name: 'return', unit: '', meaning: 'mean undiscounted sum of rewards of the update’s episodes' },
  { name: 'turns', unit: 'turns', meaning: 'mean length of the update’s episodes' },
  { name: 'truncated', unit: '', meaning: 'share of the update’s episodes that the horizon cut' },
  { name: 'episodesByLabel', unit: 'episodes', by: 'label', meaning: 'the update’s episodes of a sub-task' },
  { name: 'successByLabel', unit: '', by: 'label', meaning: '`success` of a sub-task' },
  { name: 'returnByLabel', unit: '', by: 'label', meaning: '`return` of a sub-task' },
  { name: 'turnsByLabel', unit: 'turns', by: 'label', meaning: '`turns` of a sub-task' },
  { name: 'truncatedByLabel', unit: '', by: 'label', meaning: '`truncated` of a sub-task' },
  {
    name: 'episodesByHorizon',
    unit: 'episodes',
    by: 'horizon',
    meaning: 'the update’s episodes that started under a horizon',
  },
  { name: 'successByHorizon', unit: '', by: 'horizon', meaning: '`success` of episodes under a horizon' },
  { name: 'truncatedByHorizon', unit: '', by: 'horizon', meaning: '`truncated` of episodes under a horizon' },
  { name: 'topAction', unit: '', meaning: 'share of the update’s turns that took its most frequent action text' },
  {
    name: 'repeatedTurns',
    unit: '',
    meaning: 'share of turns that repeat an action in the same situation within an episode: loops',
  },
  {
    name: 'zeroVarianceGroups',
    unit: '',
    meaning:
      'share of the update’s groups of two or more whose members all have the same return, whether or not they are left out',
  },
  { name: 'trainedGroups', unit: 'groups', meaning: 'groups trained on in the update' },
  { name: 'filteredGroups', unit: 'groups', meaning: 'groups left out because all their episodes scored the same' },
  { name: 'staleGroups', unit: 'groups', meaning: 'groups dropped because a decision was older than maxLag' },
  { name: 'loss', unit: '', meaning: 'total loss, mean over the update’s optimiser steps' },
  { name: 'policyLoss', unit: '', meaning: 'clipped surrogate' },
  { name: 'valueLoss', unit: '', meaning: 'value head’s squared error' },
  { name: 'entropy', unit: 'nats', meaning: 'mean entropy of the decisions’ distributions' },
  { name: 'klOld', unit: 'nats', meaning: 'KL (k3) of the behaviour policy to the new one' },
  { name: 'klReference', unit: 'nats', meaning: 'KL (k3) to the reference policy' },
  { name: 'klCoefficient', unit: '', meaning: 'β of the KL to the reference policy' },
  {
    name: 'behaviourGap',
    unit: 'nats',
    meaning:
      'mean |log π learner − log π server| over tokens of the present weights; some hundredths with a 16-bit server',
  },
  { name: 'importanceMean', unit: '', meaning: 'mean ratio of learner to behaviour policy, before truncation' },
  { name: 'importanceTruncated', unit: '', meaning: 'share of decisions whose ratio exceeded the cap' },
  { name: 'effectiveShare', unit: '', meaning: 'effective sample size of the importance weights, as a share' },
  { name: 'imitatedEpisodes', unit: 'episodes', meaning: 'remembered episodes trained on besides (self-imitation)' },
  { name: 'imitatedSurplus', unit: '', meaning: 'mean of what they earned beyond the critic’s expectation' },
  { name: 'clipFraction', unit: '', meaning: 'share of decisions whose ratio was clipped' },
  { name: 'gradNorm', unit: '', meaning: 'global gradient norm before clipping' },
  { name: 'learningRate', unit: '', meaning: 'learning rate of the last optimiser step' },
  { name: 'lagMin', unit: 'updates', meaning: 'least lag of the choices and tokens trained on' },
  { name: 'lagMean', unit: 'updates', meaning: 'mean lag of the choices and tokens trained on' },
  { name: 'lagMax', unit: 'updates', meaning: 'largest lag of the choices and tokens trained on; never above maxLag' },
  { name: 'skippedSteps', unit: 'steps', meaning: 'optimiser steps not applied because something was not finite' },
  {
    name: 'learnerTokensPerSecond',
    unit: '1/s',
    meaning: 'tokens per second of the update, all epochs, padding left out',
  },
  {
    name: 'learnerIdle',
    unit: '',
    meaning: 'share of the time since the update before that the learner waited for groups',
  },
  {
    name: 'time',
    unit: '',
    by: 'part',
    meaning:
      'where the episode slots’ time went, over at least the last second: env, batchWait, prefill, decode, learner (slots empty until it consumes groups), group (waiting for slower members), messages; adds up to 1',
  },
  {
    name: 'actorBusy',
    unit: '',
    by: 'actor',
    meaning: 'share of the time spent in handlers, over at least the last second',
  },
  { name: 'actorDepth', unit: 'messages', by: 'actor', meaning: 'messages waiting in the mailbox' },
  { name: 'actorRestarts', unit: 'restarts', total: true, by: 'actor', meaning: 'restarts so far' },
  { name: 'hostsReplaced', unit: 'hosts', total: true, meaning: 'env hosts ended and replaced so far' },
  { name: 'launched', unit: 'episodes', total: true, meaning: 'episodes launched' },
  { name: 'trained', unit: 'episodes', total: true, meaning: 'episodes consumed by an update' },
  { name: 'stale', unit: 'episodes', total: true, meaning: 'episodes dropped as too old' },
  {
    name: 'filtered',
    unit: 'episodes',
    total: true,
    meaning: 'episodes left out on purpose: no signal, evaluation, abandoned',
  },
  { name: 'failed', unit: 'episodes', total: true, meaning: 'episodes that failed; never a reward' },
  { name: 'inFlight', unit: 'episodes', meaning: 'episodes running, or finished and waiting for an update' },
  { name: 'clusterWorkers', unit: 'workers', meaning: 'workers of the cluster that were heard within the last 3 s' },
  { name: 'clusterSlots', unit: 'groups', meaning: 'groups that those workers play at once' },
  {
    name: 'clusterOutstanding',
    unit: 'groups',
    meaning: 'groups with workers: tickets whose results have not counted',
  },
  { name: 'clusterResults', unit: 'results', meaning: 'results at the server that the learner has not taken' },
  { name: 'clusterRoundTrip', unit: 's', meaning: 'time from a question to the server to its answer' },
  {
    name: 'clusterDuplicates',
    unit: 'results',
    total: true,
    meaning: 'results of groups that were not outstanding any more, by this process',
  },
  {
    name: 'clusterIssuedAgain',
    unit: 'groups',
    total: true,
    meaning: 'tickets that the server had lost or that were late, issued again by this process',
  },
  { name: 'clusterRefused', unit: 'results', total: true, meaning: 'results that could not be believed' },
  { name: 'clusterVerified', unit: 'results', total: true, meaning: 'results played again here (`--verify`)' },
  {
    name: 'clusterLost',
    unit: 'episodes',
    total: true,
    meaning: 'episodes that failed with their worker: it went away, or sent what cannot be believed',
  },
  { name: 'workerGroupsPerSecond', unit: '1/s', by: 'worker', meaning: 'groups that a worker finished per second' },
  { name: 'workerTokensPerSecond', unit: '1/s', by: 'worker', meaning: 'tokens its policy computed per second' },
  { name: 'workerHeld', unit: 'groups', by: 'worker', meaning: 'tickets that it holds' },
  { name: 'workerLag', unit: 'updates', by: 'worker', meaning: 'update minus the version of its weights' },
] as const satisfies readonly Metric[];

type Entry = (typeof metricTable)[number];
export type SplitName = Extract<Entry, { readonly by: SplitBy }>['name'];
export type PlainName = Exclude<Entry['name'], SplitName>;

/** Row of metrics, of one update. A metric that does not apply is absent; a split one has a value per key. */
export type MetricsRow = Readonly<
  Partial<Record<PlainName, number>> & Partial<Record<SplitName, Readonly<Record<string, number>>>>
>;

/** Point: one number of a row. */
export interface Point {
  readonly metric: Metric;
  /** Key of a split metric: label, horizon, part, actor or worker. */
  readonly key: string | undefined;
  readonly value: number;
}

/** Points of a row, its finite numbers in the table's order, as a sink writes them. */
export function* points(row: MetricsRow): Generator<Point> {
  for (const metric of metricTable) {
    const value = row[metric.name];
    if (typeof value === 'number') {
      if (Number.isFinite(value)) yield { metric, key: undefined, value };
    } else if (value) {
      for (const [key, part] of Object.entries(value)) if (Number.isFinite(part)) yield { metric, key, value: part };
    }
  }
}

/** Page METRICS.md. */
export function metricsPage(): string {
  const rows = metricTable.map((metric: Metric) => {
    const { name, unit, by, total, meaning } = metric;
    return [`\`${name}\``, unit || '–', by ?? '', total ? 'yes' : '', meaning];
  });
  return [
    '# Metrics',
    '',
    'Generated from the table in `src/record/metrics.ts`; a test compares the two. One row per update, in',
    '`metrics.jsonl` (one JSON object per line, a split metric as an object of its keys), in TensorBoard events',
    '(`<name>` or `<name>/<key>`) and at the Prometheus endpoint (`longplay_<name>{<split>="<key>"}`, the name in snake',
    'case, `_seconds` behind it for times, `_total` for totals of the run, which are counters; all others are gauges).',
    'Shares lie in [0, 1]. A metric that does not apply to an update is absent from its row.',
    '',
    ...markdownTable([['name', 'unit', 'split by', 'total', 'meaning'], ...rows]),
    '',
  ].join('\n');
}

/** Markdown table, padded as the formatter pads. */
function markdownTable([head = [], ...rows]: readonly (readonly string[])[]): string[] {
  const widths = head.map((_, c) => largestOf([head, ...rows].map((row) => row[c]!.length)));
  const line = (cells: readonly string[]) => `| ${cells.map((cell, c) => cell.padEnd(widths[c]!)).join(' | ')} |`;
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)];
}
