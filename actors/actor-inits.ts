/** Inits of a run's actors, made from its configuration. */
import { join, resolve } from 'node:path';
import { mostGroups } from '../src/algo/dynamic-sampling.ts';
import type { ChaosLedger } from '../src/chaos/chaos-ledger.ts';
import { type ChaosSpec, deadlyKinds } from '../src/chaos/spec.ts';
import type { RunConfig } from '../src/config/run-config.ts';
import type { Clock } from '../src/core/clock.ts';
import type { Env } from '../src/core/env.ts';
import { UserError } from '../src/core/errors.ts';
import type { WorldPrompt } from '../src/core/prompt.ts';
import { readSecret } from '../src/core/secrets.ts';
import type { EngineOptions } from '../src/engine/engine.ts';
import { trainedTasks } from '../src/evaluation/tasks.ts';
import { trainerOptions } from '../src/learner/options.ts';
import type { ServedAdapter } from '../src/policy/served-adapters.ts';
import type { PolicySetup } from '../src/policy/setup.ts';
import type { ChatReading } from '../src/reading/chat-codec.ts';
import type { MetricsRow } from '../src/record/metrics.ts';
import { tokenVariable } from '../src/remote/env/options.ts';
import type { Connection } from '../src/remote/policy/connect.ts';
import { AGENTGYM, isOpenEnvId, openEnvUrl } from '../src/run/find-world.ts';
import type { RecordedOrder } from '../src/run/order-file.ts';
import type { ActorSystem } from '../src/runtime/actor.ts';
import { workerUrl } from '../src/runtime/thread.ts';
import { create, type HorizonState, restore } from '../src/schedule/horizon-schedule.ts';
import { statedBounds } from './env/check.ts';
import type { EnvPoolOptions } from './env/env-pool.ts';
import type { HostVariables } from './env/host-environment.ts';
import type { HostFactory } from './env/hosts.ts';
import type { EnvSpec } from './env/protocol.ts';
import type { InferenceInit } from './inference/protocol.ts';
import type { LearnerInit } from './learner/protocol.ts';
import type { RecorderInit } from './recorder/recorder-actor.ts';
import type { RemoteInferenceInit } from './remote-inference/protocol.ts';
import type { RolloutInit } from './rollout/protocol.ts';
import type { RunOptions } from './run.ts';
import type { SchedulerJournal } from './scheduler/journaling.ts';
import type { SchedulerState } from './scheduler/protocol.ts';
import type { SchedulerInit } from './scheduler/scheduler-actor.ts';

/** Policy with weights of its own, and what its checkpoint holds. */
export type Policy = PolicySetup<SchedulerState, HorizonState>;

/**
 * True where checkpoints are barriers: in a serial run, but not in the replay of an asynchronous one, which had none.
 */
function hasBarriers({ mode, replay }: RunOptions): boolean {
  return mode === 'serial' && !replay;
}

export function inferenceInit(options: RunOptions, policy: Policy | undefined): InferenceInit {
  const { maxBatch, maxWaitMs } = options.config.rollout;
  return {
    policy: policy
      ? options.config.policy.kind === 'server'
        ? serverInference(options, policy)
        : localInference(options, policy)
      : { kind: 'random' },
    maxBatch,
    maxWaitMs,
    replyPath: PATHS.rollout,
    learnerPath: options.learn ? PATHS.learner : undefined,
    servedPath: options.cluster && isServed(options.config) ? CLUSTER_PATHS.weights : undefined,
  };
}

/** True for a policy whose tokens a server samples. */
export function isServed({ policy }: RunConfig): boolean {
  return policy.kind === 'server';
}

function serverInference(options: RunOptions, { model, params, chat }: Policy): InferenceInit['policy'] {
  const { config, dir } = options;
  const { server, path } = config.policy;
  return {
    ...sampledBy(config, chat!),
    kind: 'server',
    config: { ...model, adapter: model.adapter! },
    adapters: resolve(server.adapters ?? join(dir, 'adapters')),
    baseModel: resolve(path!),
    maxLag: config.learner.maxLag,
    params,
  };
}

/** Server that samples a policy's tokens, and how it is asked. */
function sampledBy({ policy: { server, path, maxTokens } }: RunConfig, chat: ChatReading) {
  const { api, url, attempts, attemptMs, retryMs, apiKeyEnv } = server;
  const apiKey = readSecret(apiKeyEnv);
  return { server: { api, url, model: server.model ?? path!, attemptMs, apiKey }, chat, maxTokens, attempts, retryMs };
}

/** Inference of a worker whose policy is behind a server: another process has had the adapters loaded. */
export function toldInference({ config }: RunOptions, chat: ChatReading, adapter: ServedAdapter): InferenceInit {
  const { maxBatch, maxWaitMs } = config.rollout;
  const policy = { ...sampledBy(config, chat), kind: 'told', adapter } as const;
  return { policy, maxBatch, maxWaitMs, replyPath: PATHS.rollout, learnerPath: CLUSTER_PATHS.worker };
}

function localInference(
  { config, mode, replay, envModule }: RunOptions,
  { model, params, chat }: Policy,
): InferenceInit['policy'] {
  const { decoder, masked, maxTokens, cacheOnUpdate } = config.policy;
  return {
    kind: 'local',
    engine: engineOptions(config, mode, config.engine.inferenceThreads, replay),
    model,
    envModule: workerUrl(envModule).href,
    decoder,
    masked,
    maxTokens,
    cacheOnUpdate,
    params,
    chat,
  };
}

export function remoteInit(
  { config, envModule }: RunOptions,
  prompt: WorldPrompt,
  remote: Connection,
): RemoteInferenceInit {
  return {
    openai: config.policy.openai,
    ...remote,
    prompt,
    envModule: envModule.href,
    noticePath: PATHS.recorder,
    replyPath: PATHS.rollout,
  };
}

export function poolOptions(
  options: RunOptions,
  env: Env,
  system: ActorSystem,
  chaos: ChaosLedger | undefined,
  shared?: unknown,
  hosts?: HostFactory,
): EnvPoolOptions {
  const { config, mode, cluster } = options;
  const { envThreads, isolation, stepDeadlineMs, openDeadlineMs, maxRestarts, heapMb } = config.rollout;
  return {
    envs: [{ ...hostedEnv(options, env), shared }],
    // Places of other machines are for those who play: a learner whose workers do keeps one, should it have to.
    threads: hosts && cluster?.localGroups === 0 ? 1 : envThreads,
    isolation: mode === 'serial' ? 'inline' : isolation,
    hosts,
    stepDeadlineMs,
    openDeadlineMs,
    maxRestarts,
    resourceLimits: { maxOldGenerationSizeMb: heapMb },
    variables: hostVariables(config),
    clock: system.clock,
    outside: (work) => system.outside(work),
    chaos,
  };
}

/**
 * Hosts on other machines; undefined where the run has its own.
 * @throws {UserError} BAD_CONFIG where they are to be used and nobody says where they are
 */
export async function remoteHosts(
  { config, mode, remoteHosts: at, onNotice = () => {} }: RunOptions,
  env: Env,
  clock: Clock,
): Promise<HostFactory | undefined> {
  const { isolation, envServer, heapMb } = config.rollout;
  if (isolation !== 'remote' || mode === 'serial') return undefined;
  if (envServer !== undefined) {
    throw new UserError(
      'BAD_CONFIG',
      'rollout.isolation: remote beside rollout.envServer: both play elsewhere; keep one',
    );
  }
  if (!at) {
    throw new UserError(
      'BAD_CONFIG',
      'rollout.isolation: remote: say at which NATS server the env hosts are, --env-hosts nats://127.0.0.1:4222 (or --cluster)',
    );
  }
  // Loaded for those who use it.
  const [{ RemoteHosts }, { hostIdentity }] = await Promise.all([
    import('./env/remote-hosts.ts'),
    import('./env/host-identity.ts'),
  ]);
  return new RemoteHosts({
    switchboard: await at.connect(),
    clock,
    identity: hostIdentity(config.env),
    facts: { replay: env.replay === 'never' ? 'never' : 'exact', bounds: statedBounds(env) },
    heapMb,
    variables: hostVariables(config),
    command: at.command,
    onNotice,
  });
}

/** Keys that the configuration names are none of a world's business; the token of its own server is. */
function hostVariables({ env, policy, rollout }: RunConfig): HostVariables {
  const served = env.id === AGENTGYM || isOpenEnvId(env.id) || rollout.envServer !== undefined;
  return {
    secret: [policy.openai.apiKeyEnv, policy.server.apiKeyEnv],
    passed: [...rollout.hostVariables, ...(served ? [tokenVariable(env.options)] : [])],
  };
}

/** Env that hosts load: the world itself, or a client of the server that has it. */
export function hostedEnv({ config, envModule }: RunOptions, { id }: Env): EnvSpec {
  const { options } = config.env;
  const { envServer, stepDeadlineMs } = config.rollout;
  if (envServer === undefined) return { id, url: envModule, options };
  if (Object.keys(options).length > 0) {
    throw new UserError('BAD_CONFIG', 'env.options: the env server has its own; leave them out with rollout.envServer');
  }
  const url = openEnvUrl(`${envServer.replace(/\/$/, '')}/openenv/${id}`, {});
  return { id, url, options: { deadlineMs: Math.max(1, 0.9 * stepDeadlineMs) } };
}

/** Addresses of a run's actors. */
export const PATHS = {
  recorder: '/recorder',
  scheduler: '/scheduler',
  envs: '/env-hosts',
  rollout: '/rollout',
  inference: '/inference',
  learner: '/learner',
} as const;

/** Addresses of the actors between a run and its broker. */
export const CLUSTER_PATHS = { tickets: '/tickets', weights: '/weights', worker: '/worker' } as const;

/** Bytes that may wait for the recorder: it falls behind the run only where the disk does. */
const RECORDER_BYTES = 256 * 2 ** 20;

/**
 * Capacities of the mailboxes, in messages (the recorder's in bytes). Admission bounds them: beside as many training
 * groups there are at most `groups` of evaluations, an episode has at most one command, one request or one answer under
 * way (and may be followed by another one while its end is told), and a group is with the learner once (twice around a
 * barrier). The rest is for control messages, and for attempts that failed: each is told, and made again at once.
 *
 * @param groups training groups that are played at once
 */
export function capacities(
  { rollout, evaluation, learner }: Pick<RunConfig, 'rollout' | 'evaluation' | 'learner'>,
  groups = rollout.concurrentGroups,
): Record<keyof typeof PATHS, number> {
  const episodes = 2 * groups * Math.max(rollout.groupSize, evaluation.episodesPerTask);
  const delivered = (learner.maxLag + 1) * mostGroups(learner);
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
  return capacities(config, cluster ? clusterGroups(config) : undefined);
}

/**
 * Init of the recorder.
 * @param onSaved gets the result of every checkpoint
 */
export function recorderInit(
  options: RunOptions,
  env: Env,
  metrics$: { next(row: MetricsRow): void },
  hostsReplaced: () => number,
  onSaved: RecorderInit['onSaved'],
): Omit<RecorderInit, 'resumedFrom'> {
  const { config, evaluation, cluster } = options;
  return {
    dir: options.dir,
    config,
    trace: config.trace,
    labelOf: (index) => env.tasks.label(index),
    sinks: options.sinks ?? [],
    hostsReplaced,
    cluster: cluster && ((now) => cluster.watch.facts(now)),
    onEpisodes: options.onEpisodes,
    onMetrics: (row) => metrics$.next(row),
    onProgress: options.onProgress,
    onEvaluation: evaluation && ((version, record) => evaluation.onRecord(version, record, env)),
    onSaved,
    onNotice: (message) => options.onNotice?.(message),
  };
}

export function schedulerInit(
  options: RunOptions,
  env: Env,
  saved: Policy['saved'],
  journal?: SchedulerJournal,
): SchedulerInit {
  const { config, learn, evaluation, cluster, firstEpisode = 0 } = options;
  return {
    ...config,
    env: env.id,
    tasks: [...trainedTasks(env, config.tasks)],
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
    ...(cluster ? { rollout: { ...config.rollout, concurrentGroups: clusterGroups(config) } } : {}),
    paths: {
      ...PATHS,
      rollout: cluster ? CLUSTER_PATHS.tickets : PATHS.rollout,
      learner: learn ? PATHS.learner : undefined,
    },
  };
}

/** Groups that may be out in a cluster: the lag bounds them, and no machine's memory. */
function clusterGroups({ rollout, learner }: RunConfig): number {
  return Math.max(rollout.concurrentGroups, (learner.maxLag + 1) * mostGroups(learner));
}

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
  const { groupSize, concurrentGroups, envThreads, maxAttempts, maxFailures } = options.config.rollout;
  const { envSteps = 0, episodes = 0, nextEpisode = options.firstEpisode ?? 0 } = saved ?? {};
  return {
    view,
    policyInThread,
    slots: concurrentGroups * groupSize,
    envThreads,
    maxAttempts,
    maxFailures,
    barrier: hasBarriers(options),
    start: { nextEpisode, envSteps, episodes },
    paths: {
      inference: PATHS.inference,
      envs: PATHS.envs,
      scheduler: options.cluster ? CLUSTER_PATHS.tickets : PATHS.scheduler,
    },
  };
}

export function learnerInit(options: RunOptions, policy: Policy): LearnerInit {
  const { config, dir, mode, replay, envModule, chaos } = options;
  const { learner, checkpoint } = config;
  const { params, saved, model, identity, chat } = policy;
  return {
    engine: engineOptions(config, mode, config.engine.learnerThreads, replay),
    envModule: workerUrl(envModule).href,
    chat,
    // Threads of their own would change nothing in a serial run but its speed, and one thread is what it promises.
    trainer: { ...trainerOptions(config, model), ...(mode === 'serial' ? { replicas: 1 } : {}) },
    start: { params, moments: saved?.moments, reference: saved?.reference, state: saved?.learner },
    breaker: { ...learner.breaker, dir: join(dir, 'quarantine') },
    groupsPerUpdate: learner.groupsPerUpdate,
    oversampling: learner.oversampling,
    maxLag: learner.maxLag,
    digests: options.journal !== undefined,
    maxUpdates: config.stop.updates,
    checkpoint: {
      dir: join(dir, 'checkpoints'),
      ...checkpoint,
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

/**
 * Options of an engine. In serial mode both engines compute on one thread each, so that a run repeats bit for bit on
 * any machine; a repeated async run computes as it did.
 */
function engineOptions(
  { engine }: RunConfig,
  mode: RunOptions['mode'],
  threads: number,
  replay: RecordedOrder | undefined,
): EngineOptions {
  const { name, device, packing } = engine;
  return { name, device, packing, threads: mode === 'serial' && !replay ? 1 : threads };
}

/**
 * Checks the faults to inject.
 * @throws {UserError} BAD_ARGUMENT for faults that would end this process itself
 */
export function checkChaos({ rates }: ChaosSpec, isolation: string): void {
  const deadly =
    isolation === 'inline' ? ([...deadlyKinds, 'hang'] as const).filter((kind) => (rates[kind] ?? 0) > 0) : [];
  if (deadly.length === 0) return;
  const why = 'envs share the main thread here (a serial run, or rollout.isolation: inline)';
  throw new UserError('BAD_ARGUMENT', `--chaos: ${deadly.join(', ')} would end the run itself: ${why}; leave them out`);
}
