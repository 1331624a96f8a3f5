/** What each actor of a run is made from, out of its configuration. */
import { join } from 'node:path';
import { isInformative, mostGroups } from '../src/algo/dynamic-sampling.ts';
import type { ChaosLedger } from '../src/chaos/chaos-ledger.ts';
import { type ChaosSpec, deadlyKinds } from '../src/chaos/spec.ts';
import type { RunConfig } from '../src/config/run-config.ts';
import type { Env } from '../src/core/env.ts';
import { UserError } from '../src/core/errors.ts';
import type { WorldPrompt } from '../src/core/prompt.ts';
import type { EngineOptions } from '../src/engine/engine.ts';
import { trainerOptions } from '../src/learner/options.ts';
import type { SmallPolicySetup } from '../src/policy/setup.ts';
import type { Connection } from '../src/remote/policy/connect.ts';
import type { Schedule } from '../src/run/schedule-file.ts';
import type { ActorSystem } from '../src/runtime/actor.ts';
import { workerUrl } from '../src/runtime/thread.ts';
import type { HorizonState } from '../src/schedule/horizon-schedule.ts';
import type { EnvPoolOptions } from './env/env-pool.ts';
import type { EnvSpec } from './env/protocol.ts';
import type { InferenceInit } from './inference/protocol.ts';
import type { LearnerInit } from './learner/protocol.ts';
import type { RemoteInferenceInit } from './remote-inference/protocol.ts';
import type { RolloutState } from './rollout/protocol.ts';
import type { RolloutInit } from './rollout/rollout-actor.ts';
import type { RunOptions } from './run.ts';

/** A small policy, and what its checkpoint holds. */
export type Policy = SmallPolicySetup<RolloutState, HorizonState>;

/** Checkpoints of a serial run are barriers; the asynchronous run that a replay repeats had none. */
export function hasBarriers({ mode, replay }: RunOptions): boolean {
  return mode === 'serial' && !replay;
}

/** The task indices a run trains on. @throws {UserError} BAD_CONFIG for a label the world does not have */
export function trainingTasks(env: Env, { tasks }: RunConfig): number[] {
  const unknown = tasks.labels?.find((label) => !env.tasks.labels.includes(label));
  if (unknown !== undefined) {
    throw new UserError(
      'BAD_CONFIG',
      `tasks.labels: '${unknown}' is no label of ${env.id}; it has ${env.tasks.labels.join(', ')}`,
    );
  }
  return env.tasks.split(tasks.split).filter((index) => !tasks.labels || tasks.labels.includes(env.tasks.label(index)));
}

export function smallInference(
  { config, mode, replay, envModule }: RunOptions,
  { model, params }: Policy,
): InferenceInit['policy'] {
  const { decoder, masked, maxTokens, cacheOnUpdate } = config.policy;
  return {
    kind: 'small',
    engine: engineOptions(config, mode, config.engine.inferenceThreads, replay),
    model,
    envModule: workerUrl(envModule).href,
    decoder,
    masked,
    maxTokens,
    cacheOnUpdate,
    params,
  };
}

export function remoteInit(
  { config, envModule }: RunOptions,
  prompt: WorldPrompt,
  remote: Connection,
  replyPath: string,
): RemoteInferenceInit {
  return {
    openai: config.policy.openai,
    ...remote,
    prompt,
    envModule: envModule.href,
    replyPath,
  };
}

export function poolOptions(
  options: RunOptions,
  env: Env,
  system: ActorSystem,
  chaos: ChaosLedger | undefined,
): EnvPoolOptions {
  const { config, mode } = options;
  const { envThreads, isolation, stepDeadlineMs, openDeadlineMs, maxRestarts, heapMb } = config.rollout;
  return {
    envs: [hostedEnv(options, env)],
    threads: envThreads,
    isolation: mode === 'serial' ? 'inline' : isolation,
    stepDeadlineMs,
    openDeadlineMs,
    maxRestarts,
    resourceLimits: { maxOldGenerationSizeMb: heapMb },
    clock: system.clock,
    outside: (work) => system.outside(work),
    ...(chaos ? { chaos } : {}),
  };
}

/** What the hosts load: the world itself, or the way to the server that has it. */
function hostedEnv({ config, envModule }: RunOptions, { id, rewardRange, maxObservationChars }: Env): EnvSpec {
  const { options } = config.env;
  const { envServer: url, stepDeadlineMs } = config.rollout;
  if (url === undefined) return { id, url: envModule, options };
  if (Object.keys(options).length > 0) {
    throw new UserError('BAD_CONFIG', 'env.options: the env server has its own; leave them out with rollout.envServer');
  }
  const deadlineMs = Math.max(1, 0.9 * stepDeadlineMs);
  return {
    id,
    url: new URL('../src/remote/env/uniform.js', import.meta.url),
    options: { url, world: id, rewardRange, maxObservationChars, deadlineMs },
  };
}

export function dynamicSampling({ learner }: RunConfig): RolloutInit['dynamicSampling'] & {} {
  return { mostPerUpdate: mostGroups(learner), informative: (group) => isInformative(group, learner) };
}

export function learnerInit(options: RunOptions, policy: Policy, paths: LearnerInit['paths']): LearnerInit {
  const { config, dir, mode, replay, envModule, chaos } = options;
  const { learner, checkpoint } = config;
  const { params, saved, model, identity } = policy;
  return {
    engine: engineOptions(config, mode, config.engine.learnerThreads, replay),
    envModule: workerUrl(envModule).href,
    trainer: trainerOptions(config, model),
    start: saved
      ? {
          params,
          moments: saved.moments,
          ...(saved.reference ? { reference: saved.reference } : {}),
          state: saved.learner,
        }
      : { params },
    breaker: { ...learner.breaker, dir: join(dir, 'quarantine') },
    groupsPerUpdate: learner.groupsPerUpdate,
    oversampling: learner.oversampling,
    maxLag: learner.maxLag,
    maxUpdates: config.stop.updates,
    checkpoint: {
      dir: join(dir, 'checkpoints'),
      ...checkpoint,
      identity,
      barrier: hasBarriers(options),
      ...(chaos ? { chaos } : {}),
    },
    paths,
  };
}

/**
 * In serial mode both engines compute on one thread each, so that a run repeats bit for bit on any machine; a repeated
 * async run computes as it did.
 */
function engineOptions(
  { engine }: RunConfig,
  mode: RunOptions['mode'],
  threads: number,
  replay: Schedule | undefined,
): EngineOptions {
  return { name: engine.name, device: engine.device, threads: mode === 'serial' && !replay ? 1 : threads };
}

/** @throws {UserError} BAD_ARGUMENT for faults that would end this process itself */
export function checkChaos({ rates }: ChaosSpec, isolation: string): void {
  const deadly =
    isolation === 'inline' ? ([...deadlyKinds, 'hang'] as const).filter((kind) => (rates[kind] ?? 0) > 0) : [];
  if (deadly.length === 0) return;
  const why = 'envs share the main thread here (a serial run, or rollout.isolation: inline)';
  throw new UserError('BAD_ARGUMENT', `--chaos: ${deadly.join(', ')} would end the run itself: ${why}; leave them out`);
}
