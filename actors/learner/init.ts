/** Init of the learner, picked from the options of a run. */
import { join } from 'node:path';
import { trainerOptions } from '../../src/learning/learner/options.ts';
import type { TeacherSpec } from '../../src/learning/learner/teacher.ts';
import { workerUrl } from '../../src/runtime/module-url.ts';
import {
  CLUSTER_PATHS,
  engineOptions,
  hasBarriers,
  isServed,
  PATHS,
  type Policy,
  type RunOptions,
} from '../options.ts';
import type { LearnerInit } from './protocol.ts';

/**
 * @param run identity of the run, where its folder has one
 * @param teacher that the configuration names
 */
export function learnerInit(options: RunOptions, policy: Policy, run?: string, teacher?: TeacherSpec): LearnerInit {
  const { config, dir, mode, replay, envModule, chaos } = options;
  const { learner, checkpoint } = config;
  const { params, saved, model, identity, chat } = policy;
  return {
    engine: engineOptions(config, mode, config.engine.learnerThreads, replay),
    envModule: workerUrl(envModule).href,
    chat,
    // Threads of their own would change nothing in a serial run but its speed, and one thread is what it promises.
    trainer: { ...trainerOptions(config, model), ...(mode === 'serial' ? { replicas: 1 } : {}) },
    start: { params, moments: saved?.moments, reference: saved?.reference, teacher, state: saved?.learner },
    breaker: { ...options.limits?.breaker, dir: join(dir, 'quarantine') },
    groupsPerUpdate: learner.groupsPerUpdate,
    oversampling: learner.oversampling,
    maxLag: learner.maxLag,
    ...(learner.ranking ? { ranking: learner.ranking } : {}),
    digests: options.journal !== undefined,
    maxUpdates: config.stop.updates,
    checkpoint: {
      dir: join(dir, 'checkpoints'),
      ...checkpoint,
      run,
      identity,
      barrier: hasBarriers(options),
      chaos,
    },
    paths: {
      inference: PATHS.inference,
      scheduler: PATHS.scheduler,
      weights: options.cluster ? CLUSTER_PATHS.weights : undefined,
    },
    publishBytes: !isServed(config),
  };
}
