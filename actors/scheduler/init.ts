/** Init of the scheduler, picked from the options of a run. */
import { worldEstimators } from '../../src/learning/learner/options.ts';
import { create, restore } from '../../src/learning/schedule/horizon-schedule.ts';
import {
  CLUSTER_PATHS,
  hasBarriers,
  maxClusterGroups,
  PATHS,
  type Policy,
  type PreparedRun,
  type RunOptions,
} from '../options.ts';
import type { SchedulerJournal } from './journaling.ts';
import type { SchedulerInit } from './scheduler-actor.ts';

export function schedulerInit(
  options: RunOptions,
  worlds: PreparedRun['worlds'],
  saved: Policy['saved'],
  journal?: SchedulerJournal,
): SchedulerInit {
  const { config, learn, evaluation, cluster, firstEpisode = 0 } = options;
  return {
    ...config,
    learner: { ...config.learner, worlds: worldEstimators(config) },
    worlds: worlds.map(({ env, tasks, config: { tasks: drawn, horizon }, schedule }, i) => {
      const kept = i === 0 ? saved?.horizon : saved?.rollout.mixture?.others[i - 1]?.horizon;
      return {
        name: env.id,
        schedule,
        tasks: [...tasks],
        sampling: drawn.sampling,
        labelOf: (index) => env.tasks.label(index),
        horizon: kept ? restore(horizon, kept) : create(horizon),
      };
    }),
    mixture: config.mixture ?? 'fixed',
    start: {
      version: saved?.params.version ?? 0,
      state: saved?.rollout,
      group: firstEpisode,
    },
    barrier: hasBarriers(options),
    evaluation: {
      everyUpdates: learn && evaluation ? config.evaluation.everyUpdates : 0,
      plans: evaluation?.plans(worlds) ?? [],
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
