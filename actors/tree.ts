/**
 * Spawns, links and supervises all actors of a run: the only file that starts every one of them.
 *
 *     /recorder  /horizon  /inference (thread)  /learner (thread)  /rollout        env hosts (piscina threads)
 *
 * In serial mode the same actors share one event loop under a virtual clock, and the env hosts are in it too.
 */
import { Subject } from 'rxjs';
import { ChaosLedger } from '../src/chaos/chaos-ledger.ts';
import { UserError } from '../src/core/errors.ts';
import { setUpSmallPolicy } from '../src/policy/setup.ts';
import { worldPrompt } from '../src/prompts/world-prompt.ts';
import { codecOf } from '../src/reading/codec-of.ts';
import type { MetricsRow } from '../src/record/metrics.ts';
import { connect } from '../src/remote/policy/connect.ts';
import type { ScheduleRecorder } from '../src/run/schedule-file.ts';
import type { ActorSystem } from '../src/runtime/actor.ts';
import { SchedulePlayer } from '../src/runtime/schedule.ts';
import { createSystem } from '../src/runtime/system.ts';
import { localUrl } from '../src/runtime/thread.ts';
import { create, type HorizonState, horizon, restore } from '../src/schedule/horizon-schedule.ts';
import { TaskSampler } from '../src/schedule/task-sampler.ts';
import { describeEnv, loadWorld } from '../src/world/open-world.ts';
import {
  checkChaos,
  dynamicSampling,
  hasBarriers,
  learnerInit,
  poolOptions,
  remoteInit,
  smallInference,
  trainingTasks,
} from './actor-inits.ts';
import { createEnvPool, type EnvPool } from './env/env-pool.ts';
import type { EnvEvent } from './env/protocol.ts';
import { ReplayedAnswers } from './env/replayed-answers.ts';
import { horizonActor } from './horizon/horizon-actor.ts';
import type { InferenceCommand, InferenceInit } from './inference/protocol.ts';
import type { LearnerCommand, LearnerInit } from './learner/protocol.ts';
import { failureNotices, metricsOf } from './notices.ts';
import type { RecorderCommand } from './recorder/protocol.ts';
import { recorderActor } from './recorder/recorder-actor.ts';
import type { RemoteInferenceInit } from './remote-inference/protocol.ts';
import type { RolloutCommand, RolloutState } from './rollout/protocol.ts';
import { rolloutActor } from './rollout/rollout-actor.ts';
import { type Run, type RunOptions, startedRun } from './run.ts';

export { openEnvSessions } from './env/sessions.ts';
export { servePolicyActors } from './inference/served-policy.ts';
export type { Run, RunOptions } from './run.ts';

/**
 * Starts every actor of a run; training or an evaluation begins when the run is told to.
 * @throws {UserError} for a configuration, checkpoint, world or server that cannot be used; nothing is then left running
 */
export async function startRun(options: RunOptions): Promise<Run> {
  const { config, mode, envModule } = options;
  const module = await loadWorld(localUrl(envModule), config.env.id);
  const env = describeEnv(module, config.env.id, config.env.options);
  const small =
    config.policy.kind === 'small'
      ? setUpSmallPolicy<RolloutState, HorizonState>(config, module.view, options.checkpoint, options.initial)
      : undefined;
  if (small && !module.view) {
    options.onNotice?.(
      `${env.id} has no view of its own: the small policy reads it through the default one (${small.codec.id}); a world's own view learns faster`,
    );
  }
  if (options.learn && !small) {
    throw new UserError('BAD_CONFIG', `policy.kind: '${config.policy.kind}' cannot learn; use 'small'`);
  }
  const { openai } = config.policy;
  const remote =
    config.policy.kind === 'openai' ? await connect(openai, process.env[openai.apiKeyEnv], module.view) : undefined;
  const saved = small?.saved;
  if (options.chaos) checkChaos(options.chaos, mode === 'serial' ? 'inline' : config.rollout.isolation);
  const { record, replay } = options;
  const system = createSystem({
    mode,
    seed: config.seed,
    supervision: { intensity: 3, periodMs: 60_000 },
    ...(record ? { record: record.begun } : {}),
    ...(replay ? { replay: new SchedulePlayer(replay.orders) } : {}),
  });
  const metrics$ = options.metrics$ ?? new Subject<MetricsRow>();
  const sampler = new TaskSampler(env.id, trainingTasks(env, config), config.seed, config.tasks.sampling);
  const schedule = saved?.horizon ? restore(config.horizon, saved.horizon) : create(config.horizon);
  const paths = {
    inference: '/inference',
    horizon: '/horizon',
    rollout: '/rollout',
    recorder: '/recorder',
    learner: '/learner',
  };

  const chaos = options.chaos && new ChaosLedger(options.chaos);
  const pool = await system.outside(createEnvPool(poolOptions(options, env, system, chaos)));
  const tellRollouts = (events: readonly EnvEvent[]) => {
    void system.resolve<RolloutCommand>(paths.rollout).tell({ type: 'observed', events });
  };
  const replayed = replay && new ReplayedAnswers(replay.batches, (command) => pool.tell(command), tellRollouts);
  try {
    const recorder = await system.spawn<RecorderCommand>(
      'recorder',
      recorderActor({
        dir: options.dir,
        config,
        ...config.trace,
        labelOf: (index) => env.tasks.label(index),
        sinks: options.sinks ?? [],
        ...(options.onEpisodes ? { onEpisodes: options.onEpisodes } : {}),
        onMetrics: (row) => metrics$.next(row),
        onTrouble: (message) => options.onNotice?.(message),
      }),
      { mailbox: { capacity: 100_000, overflow: 'drop-oldest' } },
    );
    await system.spawn('horizon', horizonActor({ state: schedule, rolloutPath: paths.rollout }));
    await system.spawn<RolloutCommand>(
      'rollout',
      rolloutActor({
        envs: replayed ?? pool,
        sampler,
        seed: config.seed,
        view: small?.codec.id ?? (remote && openai.prompt === 'tokens' ? codecOf(module).id : undefined),
        policyInThread: small !== undefined,
        groupSize: config.rollout.groupSize,
        concurrentGroups: config.rollout.concurrentGroups,
        envThreads: config.rollout.envThreads,
        labelOf: (index) => env.tasks.label(index),
        groupsPerUpdate: config.learner.groupsPerUpdate,
        ...(config.learner.oversampling > 1 ? { dynamicSampling: dynamicSampling(config) } : {}),
        maxLag: config.learner.maxLag,
        maxAttempts: config.rollout.maxAttempts,
        maxFailures: config.rollout.maxFailures,
        stop: config.stop,
        start: {
          version: saved?.params.version ?? 0,
          horizon: horizon(schedule),
          state: saved?.rollout ?? undefined,
          episode: options.firstEpisode,
        },
        paths: {
          inference: paths.inference,
          learner: options.learn ? paths.learner : undefined,
          recorder: paths.recorder,
        },
        barrier: hasBarriers(options),
        evaluation: {
          everyUpdates: options.learn && options.evaluation ? config.evaluation.everyUpdates : 0,
          plans: options.evaluation?.plans(env) ?? [],
          onRecord: (version, record) => options.evaluation?.onRecord(version, record, env),
        },
        onSaved: ({ ok, update, message }) => {
          chaos?.checkpoint(update, ok);
          if (!ok)
            options.onNotice?.(
              `checkpoint at update ${update} failed: ${message}; the last good one is kept, the next update tries again`,
            );
        },
        ...(options.onProgress ? { onProgress: options.onProgress } : {}),
        onUpdate: metricsOf(
          () => ({ actors: system.stats(), hostsReplaced: replaced(pool) }),
          (row, { version, credit }) => {
            void recorder.tell({ type: 'metrics', row });
            if (credit.length > 0) void recorder.tell({ type: 'credit', update: version, groups: credit });
          },
          (message) => options.onNotice?.(message),
        ),
        onFailure: failureNotices((message) => options.onNotice?.(message)),
      }),
      { restart: 'temporary', mailbox: { capacity: 1_000_000, overflow: 'wait' } },
    );
    const inferenceInit: InferenceInit = {
      policy: small ? smallInference(options, small) : { kind: 'random' },
      maxBatch: config.rollout.maxBatch,
      maxWaitMs: config.rollout.maxWaitMs,
      replyPath: paths.rollout,
      ...(options.learn ? { learnerPath: paths.learner } : {}),
    };
    await system.spawnModule<InferenceCommand, InferenceInit | RemoteInferenceInit>(
      'inference',
      remote
        ? {
            url: new URL('./remote-inference/remote-inference-actor.js', import.meta.url),
            init: remoteInit(options, worldPrompt(module, config.env.options, env.description), remote, paths.rollout),
            placement: 'local',
          }
        : {
            url: new URL('./inference/inference-actor.js', import.meta.url),
            init: inferenceInit,
            placement: small ? 'thread' : 'local',
          },
      {
        killable: false,
        startMs: 120_000,
        control: ['loadWeights'],
        mailbox: { capacity: 1_000_000, overflow: 'wait' },
      },
    );
    if (options.learn && small) {
      await system.spawnModule<LearnerCommand, LearnerInit>(
        'learner',
        {
          url: new URL('./learner/learner-actor.js', import.meta.url),
          init: learnerInit(options, small, paths),
          placement: 'thread',
        },
        { killable: false, startMs: 120_000, shutdownMs: 60_000, restart: 'temporary' },
      );
    }
    const fatal = watch(pool, system, replayed ? (event) => replayed.arrived(event) : batched(tellRollouts, record));
    return startedRun(system, pool, env, metrics$, fatal, chaos, options);
  } catch (thrown) {
    await pool.close();
    await system.stop();
    throw thrown;
  }
}

/** Collects the hosts' answers of one tick. */
function batched(tell: (events: readonly EnvEvent[]) => void, record: ScheduleRecorder | undefined) {
  let batch: EnvEvent[] = [];
  return (event: EnvEvent): void => {
    if (batch.push(event) > 1) return;
    queueMicrotask(() => {
      const events = batch;
      batch = [];
      record?.answered(
        events.map((one) => (one.type === 'failed' ? { episode: one.episode, failure: one.failure } : one.episode)),
      );
      tell(events);
    });
  };
}

/** Passes on the hosts' answers; rejects with whatever ends the run for good. */
function watch(pool: EnvPool, system: ActorSystem, answered: (event: EnvEvent) => void): Promise<never> {
  return new Promise((_, reject) => {
    system.terminated.catch(reject);
    system.inspect$.subscribe((event) => {
      if (event.type === 'stopped' && event.final && event.reason.kind === 'crashed') reject(event.reason.error);
    });
    pool.observations$.subscribe({ next: answered, error: reject });
  });
}

function replaced(pool: EnvPool): number {
  return pool.stats().hosts.reduce((sum, host) => sum + host.replaced, 0);
}
