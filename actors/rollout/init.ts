/** Init of the rollout actor, picked from the options of a run. */
import { nameWorld } from '../../src/config/worlds.ts';
import { CLUSTER_PATHS, hasBarriers, PATHS, type RunOptions } from '../options.ts';
import type { SchedulerState } from '../scheduler/protocol.ts';
import type { RolloutInit } from './protocol.ts';
import { MAX_ATTEMPTS, MAX_FAILURES, MAX_OUTAGE_MS } from './retry.ts';

/**
 * Init of the rollout actor.
 * @param view id of the view the policy reads through, if any
 */
export function rolloutInit(
  options: RunOptions,
  view: string | undefined,
  policyInThread: boolean,
  saved: SchedulerState | undefined,
): RolloutInit {
  const { groupSize, concurrentGroups, envThreads } = options.config.rollout;
  const { envSteps = 0, episodes = 0, nextEpisode = options.firstEpisode ?? 0 } = saved ?? {};
  return {
    worlds: options.config.worlds?.map(nameWorld),
    view,
    policyInThread,
    slots: concurrentGroups * groupSize,
    envThreads,
    maxAttempts: MAX_ATTEMPTS,
    maxFailures: MAX_FAILURES,
    maxOutageMs: MAX_OUTAGE_MS,
    ...options.limits?.retry,
    barrier: hasBarriers(options),
    start: { nextEpisode, envSteps, episodes },
    paths: {
      inference: PATHS.inference,
      envs: PATHS.envs,
      scheduler: options.cluster ? CLUSTER_PATHS.tickets : PATHS.scheduler,
    },
  };
}
