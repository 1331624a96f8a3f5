/** Capacities of the actors' mailboxes. */
import { maxGroups } from '../src/algo/dynamic-sampling.ts';
import type { RunConfig } from '../src/config/run-config.ts';
import { maxClusterGroups, type PATHS, type RunOptions } from './options.ts';

/** Bytes that may wait for the recorder: it falls behind the run only where the disk does. */
const RECORDER_BYTES = 256 * 2 ** 20;

/**
 * Capacities of the mailboxes, in messages (the recorder's in bytes). Admission bounds them. Beside the training groups
 * there are at most as many (`groups`) of evaluations. An episode has at most one command, one request or one answer
 * under way, and may be followed by another one while its end is reported. A group is with the learner once (twice
 * around a barrier). The rest is for control messages, and for attempts that failed: each is reported, and made again
 * at once.
 *
 * @param groups training groups that are played at once
 */
export function capacities(
  { rollout, evaluation, learner }: Pick<RunConfig, 'rollout' | 'evaluation' | 'learner'>,
  groups = rollout.concurrentGroups,
): Record<keyof typeof PATHS, number> {
  const episodes = 2 * groups * Math.max(rollout.groupSize, evaluation.episodesPerTask);
  const delivered = (learner.maxLag + 1) * maxGroups(learner);
  const control = 1024;
  return {
    recorder: RECORDER_BYTES,
    scheduler: episodes + control,
    envs: 2 * episodes + control,
    rollout: episodes + 2 * groups + control,
    inference: 2 * episodes + control,
    learner: 2 * (groups + delivered) + control,
  };
}

/** Capacities of a run, with those of a cluster's groups where it has one. */
export function runCapacities({ config, cluster }: RunOptions): ReturnType<typeof capacities> {
  return capacities(config, cluster ? maxClusterGroups(config) : undefined);
}
