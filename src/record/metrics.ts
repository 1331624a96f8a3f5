/** Every metric's name, unit and meaning, in one table; sinks and pages come from it. */

export interface Metric {
  readonly name: string;
  readonly unit: string;
  readonly meaning: string;
}

export const metricTable = [
  {
    name: 'update',
    unit: 'updates',
    meaning: 'policy version after the update: how many updates the weights have seen',
  },
  { name: 'elapsed', unit: 's', meaning: 'training time so far, evaluation left out' },
  { name: 'remaining', unit: 's', meaning: 'training time left, estimated from the progress so far' },
  { name: 'progress', unit: '', meaning: 'share of the run that is done, by whichever stop rule is nearest' },
  { name: 'horizon', unit: 'turns', meaning: 'horizon of the episodes that start now' },
  { name: 'envSteps', unit: 'steps', meaning: 'environment steps taken, all of training and evaluation' },
  { name: 'episodes', unit: 'episodes', meaning: 'episodes finished' },
  { name: 'stepsPerSecond', unit: '1/s', meaning: 'environment steps per second since the row before' },
  { name: 'success', unit: '', meaning: 'share of the update’s episodes that solved their task' },
  { name: 'truncated', unit: '', meaning: 'share of the update’s episodes that the horizon cut' },
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
  { name: 'importanceMean', unit: '', meaning: 'mean ratio of learner to behaviour policy, before truncation' },
  { name: 'importanceTruncated', unit: '', meaning: 'share of decisions whose ratio exceeded the cap' },
  { name: 'effectiveShare', unit: '', meaning: 'effective sample size of the importance weights, as a share' },
  { name: 'clipFraction', unit: '', meaning: 'share of decisions whose ratio was clipped' },
  { name: 'gradNorm', unit: '', meaning: 'global gradient norm before clipping' },
  { name: 'learningRate', unit: '', meaning: 'learning rate of the last optimiser step' },
  { name: 'lagMin', unit: 'updates', meaning: 'least lag of the decisions trained on' },
  { name: 'lagMean', unit: 'updates', meaning: 'mean lag of the decisions trained on' },
  { name: 'lagMax', unit: 'updates', meaning: 'largest lag of the decisions trained on; never above maxLag' },
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
  { name: 'launched', unit: 'episodes', meaning: 'episodes launched' },
  { name: 'trained', unit: 'episodes', meaning: 'episodes consumed by an update' },
  { name: 'stale', unit: 'episodes', meaning: 'episodes dropped as too old' },
  { name: 'filtered', unit: 'episodes', meaning: 'episodes left out on purpose: no signal, evaluation, abandoned' },
  { name: 'failed', unit: 'episodes', meaning: 'episodes that failed; never a reward' },
  { name: 'inFlight', unit: 'episodes', meaning: 'episodes running, or finished and waiting for an update' },
] as const satisfies readonly Metric[];

export type MetricName = (typeof metricTable)[number]['name'];

/** One row: an update. A metric that does not apply is absent. */
export type MetricsRow = Readonly<Partial<Record<MetricName, number>>>;
