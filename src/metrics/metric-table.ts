/**
 * Metrics: everything about one stands in its row of one table: name, unit, meaning, and where it is shown.
 * Rows, sinks, console, viewer and METRICS.md come from it. A name that is not in it does not compile; a test fails for
 * one that is never emitted. No imports: the viewer's page carries it too.
 */

/** Dimension that a metric is split by. */
export type SplitBy = 'label' | 'horizon' | 'world' | 'part' | 'actor' | 'worker' | 'metric';

export interface Metric {
  readonly name: string;
  readonly unit: string;
  readonly meaning: string;
  /** Split of a metric that has one value per sub-task label, horizon, world, part of the time, actor, worker or metric of an agent. */
  readonly by?: SplitBy;
  /** True for a total of the run so far, which only grows: a counter to Prometheus; others are gauges. */
  readonly total?: boolean;
  /** True for a share that is drawn from 0 to 1. */
  readonly share?: boolean;
  /** True for a statistic that the learner reports under this name. */
  readonly isLearnerStat?: boolean;
  /** Title of its chart in the viewer's overview; none where absent. Charts stand in the table's order. */
  readonly chart?: string;
  /** Section and label of its trend on the console's screen; `ifPresent`: only where a row has it. */
  readonly console?: { readonly section: 'outcomes' | 'learning'; readonly label: string; readonly ifPresent?: true };
  /** True where it stands in the `key=value` line of a log. */
  readonly inLine?: boolean;
}

/** Table of all metrics. */
export const metricTable = [
  {
    name: 'update',
    unit: 'updates',
    inLine: true,
    meaning: 'policy version after the update: how many updates the weights have seen',
  },
  {
    name: 'horizon',
    unit: 'turns',
    inLine: true,
    meaning: 'horizon of the episodes that start now; of several worlds the largest',
  },
  {
    name: 'success',
    unit: '',
    share: true,
    chart: 'Success',
    console: { section: 'outcomes', label: 'success' },
    inLine: true,
    meaning: 'share of the update’s episodes that solved their task',
  },
  {
    name: 'return',
    unit: '',
    chart: 'Return',
    console: { section: 'outcomes', label: 'return' },
    inLine: true,
    meaning: 'mean undiscounted sum of rewards of the update’s episodes',
  },
  {
    name: 'turns',
    unit: 'turns',
    chart: 'Turns an episode',
    console: { section: 'outcomes', label: 'turns' },
    inLine: true,
    meaning: 'mean length of the update’s episodes',
  },
  {
    name: 'truncated',
    unit: '',
    share: true,
    chart: 'Truncated',
    console: { section: 'outcomes', label: 'truncated' },
    inLine: true,
    meaning: 'share of the update’s episodes that the horizon cut',
  },
  {
    name: 'repeatedTurns',
    unit: '',
    share: true,
    chart: 'Repeated turns',
    meaning: 'share of turns that repeat an action in the same situation within an episode: loops',
  },
  {
    name: 'formatErrors',
    unit: '',
    share: true,
    chart: 'Answers not understood',
    meaning: 'share of a language model’s answers in which no action could be read',
  },
  {
    name: 'validCalls',
    unit: '',
    share: true,
    chart: 'Valid calls of tools',
    console: { section: 'outcomes', label: 'calls ok', ifPresent: true },
    meaning:
      'share of the calls of tools that name a tool of the world, with arguments that fit its schema; where no call can be read, see `formatErrors`',
  },
  { name: 'unknownTools', unit: '', share: true, meaning: 'share of the calls that name no tool of the world' },
  {
    name: 'invalidArguments',
    unit: '',
    share: true,
    meaning:
      'share of the calls whose arguments do not fit the schema: one is missing, unknown, of another type or not among those listed',
  },
  {
    name: 'malformedArguments',
    unit: '',
    share: true,
    meaning: 'share of the calls whose arguments are no JSON of an object',
  },
  { name: 'toolErrors', unit: '', share: true, meaning: 'share of the calls that the world answered by an error' },
  { name: 'callsPerTurn', unit: 'calls', meaning: 'calls of tools a reply, in worlds of tools' },
  { name: 'topAction', unit: '', meaning: 'share of the update’s turns that took its most frequent action text' },
  {
    name: 'zeroVarianceGroups',
    unit: '',
    share: true,
    chart: 'Groups that score all the same',
    meaning:
      'share of the update’s groups of two or more whose members all have the same return, whether or not they are left out',
  },
  { name: 'trainedGroups', unit: 'groups', meaning: 'groups trained on in the update' },
  { name: 'filteredGroups', unit: 'groups', meaning: 'groups left out because all their episodes scored the same' },
  { name: 'staleGroups', unit: 'groups', meaning: 'groups dropped because a decision was older than maxLag' },
  { name: 'episodesByLabel', unit: 'episodes', by: 'label', meaning: 'the update’s episodes of a sub-task' },
  { name: 'successByLabel', unit: '', by: 'label', meaning: '`success` of a sub-task' },
  { name: 'returnByLabel', unit: '', by: 'label', meaning: '`return` of a sub-task' },
  {
    name: 'agentMetrics',
    unit: '',
    by: 'metric',
    meaning:
      'mean of a number that an agent reported at its end, or a world of tools: the parts of its reward, for example',
  },
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
  {
    name: 'episodesByWorld',
    unit: 'episodes',
    by: 'world',
    meaning: 'the update’s episodes of a world, in a run of several',
  },
  { name: 'successByWorld', unit: '', by: 'world', meaning: '`success` of a world' },
  { name: 'returnByWorld', unit: '', by: 'world', meaning: '`return` of a world' },
  { name: 'turnsByWorld', unit: 'turns', by: 'world', meaning: '`turns` of a world' },
  { name: 'truncatedByWorld', unit: '', by: 'world', meaning: '`truncated` of a world' },
  { name: 'horizonByWorld', unit: 'turns', by: 'world', meaning: '`horizon` of a world' },
  {
    name: 'shareByWorld',
    unit: '',
    by: 'world',
    meaning: 'share of the groups that are drawn from a world now, where all worlds answer',
  },
  { name: 'downByWorld', unit: '', by: 'world', meaning: '1 while a world’s server does not answer, else 0' },
  {
    name: 'loss',
    unit: '',
    isLearnerStat: true,
    chart: 'Loss',
    console: { section: 'learning', label: 'loss' },
    inLine: true,
    meaning: 'total loss, mean over the update’s optimiser steps',
  },
  { name: 'policyLoss', unit: '', isLearnerStat: true, meaning: 'surrogate of the policy loss' },
  { name: 'valueLoss', unit: '', isLearnerStat: true, meaning: 'value head’s squared error' },
  {
    name: 'entropy',
    unit: 'nats',
    isLearnerStat: true,
    chart: 'Entropy [nats]',
    console: { section: 'learning', label: 'entropy' },
    inLine: true,
    meaning: 'mean entropy of the decisions’ distributions',
  },
  {
    name: 'klOld',
    unit: 'nats',
    isLearnerStat: true,
    chart: 'KL to the behaviour policy',
    console: { section: 'learning', label: 'KL' },
    inLine: true,
    meaning: 'KL (k3) of the behaviour policy to the new one',
  },
  { name: 'klReference', unit: 'nats', isLearnerStat: true, meaning: 'KL (k3) to the reference policy' },
  { name: 'klCoefficient', unit: '', isLearnerStat: true, meaning: 'β of the KL to the reference policy' },
  {
    name: 'distillationKl',
    unit: 'nats',
    isLearnerStat: true,
    chart: 'KL to the teacher',
    meaning: 'reverse KL of the policy to its teacher: exact over listed actions, estimated (k1) on sampled tokens',
  },
  {
    name: 'observationNll',
    unit: 'nats',
    isLearnerStat: true,
    meaning: 'mean −log π of the world’s tokens (ECHO)',
  },
  {
    name: 'behaviourGap',
    unit: 'nats',
    isLearnerStat: true,
    meaning:
      'mean |log π learner − log π server| over tokens of the present weights; some hundredths with a 16-bit server',
  },
  {
    name: 'importanceMean',
    unit: '',
    isLearnerStat: true,
    meaning: 'mean ratio of learner to behaviour policy, before truncation or mask',
  },
  {
    name: 'importanceTruncated',
    unit: '',
    isLearnerStat: true,
    meaning: 'share of decisions whose ratio was beyond the bounds: truncated or masked',
  },
  {
    name: 'effectiveShare',
    unit: '',
    isLearnerStat: true,
    meaning: 'effective sample size of the importance weights, as a share',
  },
  {
    name: 'imitatedEpisodes',
    unit: 'episodes',
    isLearnerStat: true,
    meaning: 'remembered episodes trained on besides (self-imitation)',
  },
  {
    name: 'imitatedSurplus',
    unit: '',
    isLearnerStat: true,
    meaning: 'mean of what they earned beyond the critic’s expectation',
  },
  {
    name: 'judgeScore',
    unit: '',
    isLearnerStat: true,
    meaning: 'mean score that a judge gave the episodes of an update (learner.ranking)',
  },
  {
    name: 'gradNorm',
    unit: '',
    isLearnerStat: true,
    chart: 'Gradient norm',
    console: { section: 'learning', label: 'grad norm' },
    inLine: true,
    meaning: 'global gradient norm before clipping',
  },
  {
    name: 'clipFraction',
    unit: '',
    share: true,
    isLearnerStat: true,
    chart: 'Clipped',
    console: { section: 'learning', label: 'clipped' },
    meaning: 'share of decisions whose ratio was clipped, or that the policy loss masked',
  },
  { name: 'learningRate', unit: '', isLearnerStat: true, meaning: 'learning rate of the last optimiser step' },
  { name: 'lagMin', unit: 'updates', meaning: 'least lag of the choices and tokens trained on' },
  {
    name: 'lagMean',
    unit: 'updates',
    chart: 'Lag [updates]',
    meaning: 'mean lag of the choices and tokens trained on',
  },
  {
    name: 'lagMax',
    unit: 'updates',
    inLine: true,
    meaning: 'largest lag of the choices and tokens trained on; never above maxLag',
  },
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
    name: 'envSteps',
    unit: 'steps',
    inLine: true,
    total: true,
    meaning: 'environment steps taken by training episodes',
  },
  { name: 'episodes', unit: 'episodes', inLine: true, total: true, meaning: 'episodes finished' },
  {
    name: 'stepsPerSecond',
    unit: '1/s',
    chart: 'Env steps per second',
    inLine: true,
    meaning: 'environment steps per second, over at least the last second',
  },
  {
    name: 'episodesPerSecond',
    unit: '1/s',
    inLine: true,
    meaning: 'episodes finished per second, over at least the last second',
  },
  {
    name: 'tokensPerSecond',
    unit: '1/s',
    chart: 'Tokens per second',
    inLine: true,
    meaning: 'tokens the policy computed per second, over at least the last second',
  },
  { name: 'batchSize', unit: 'turns', meaning: 'mean number of turns that one engine call finished' },
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
  { name: 'failed', unit: 'episodes', inLine: true, total: true, meaning: 'episodes that failed; never a reward' },
  { name: 'inFlight', unit: 'episodes', meaning: 'episodes running, or finished and waiting for an update' },
  { name: 'elapsed', unit: 's', inLine: true, total: true, meaning: 'training time so far, evaluation left out' },
  { name: 'remaining', unit: 's', inLine: true, meaning: 'training time left, estimated from the progress so far' },
  { name: 'progress', unit: '', meaning: 'share of the run that is done, by whichever stop rule is nearest' },
  {
    name: 'clusterWorkers',
    unit: 'workers',
    meaning: 'workers of the cluster that sent a heartbeat within the last 3 s',
  },
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
