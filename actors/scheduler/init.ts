/** Init of the scheduler, picked from the options of a run. */
import type { Env } from '../../src/core/env.ts';
import { create, restore } from '../../src/learning/schedule/horizon-schedule.ts';
import { CLUSTER_PATHS, hasBarriers, maxClusterGroups, PATHS, type Policy, type RunOptions } from '../options.ts';
import type { SchedulerJournal } from './journaling.ts';
import type { SchedulerInit } from './scheduler-actor.ts';

export function schedulerInit(
  options: RunOptions,
  env: Env,
  tasks: readonly number[],
  saved: Policy['saved'],
  journal?: SchedulerJournal,
): SchedulerInit {
  const { config, learn, evaluation, cluster, firstEpisode = 0 } = options;
  return {
    ...config,
    env: env.id,
    tasks: [...tasks],
    sampling: config.tasks.sampling,
    labelOf: (index) => env.tasks.label(index),
    start: {
      version: saved?.params.version ?? 0,
      horizon: saved?.horizon ? restore(config.horizon, saved.horizon) : create(config.horizon),
      state: saved?.rollout,
      group: firstEpisode,
    },
    barrier: hasBarriers(options),
    evaluation: {
      everyUpdates: learn && evaluation ? config.evaluation.everyUpdates : 0,
      plans: evaluation?.plans(env) ?? [],
    },
    journal,
    ...(cluster ? { rollout: { ...config.rollout, concurrentGroups: maxClusterGroups(config) } } : {}),
    paths: {
      ...PATHS,
      rollout: cluster ? CLUSTER_PATHS.tickets : PATHS.rollout,
      learner: learn ? PATHS.learner : undefined,
    },
  };
}
