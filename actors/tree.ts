/**
 * Spawns, links and supervises all actors of a run: the only file that sees every one of them.
 *
 *     /recorder  /horizon  /inference (thread)  /learner (thread)  /rollout        env hosts (piscina threads)
 *
 * In serial mode the same actors share one event loop under a virtual clock, and the env hosts are in it too.
 */
import { join } from 'node:path';
import { Subject } from 'rxjs';
import type { RunConfig } from '../src/config/run-config.ts';
import type { Env, EnvModule } from '../src/core/env.ts';
import { UserError } from '../src/core/errors.ts';
import type { EngineOptions } from '../src/engine/engine.ts';
import { defaultAdamW } from '../src/model/optimizer.ts';
import { type SmallPolicySetup, setUpSmallPolicy } from '../src/policy/setup.ts';
import type { LoadedCheckpoint } from '../src/record/checkpoint.ts';
import type { MetricsRow } from '../src/record/metrics.ts';
import { updateRow } from '../src/record/update-row.ts';
import type { ActorRef, ActorStats, ActorSystem, Message, ReplyTo } from '../src/runtime/actor.ts';
import { createSystem } from '../src/runtime/system.ts';
import { localUrl, workerUrl } from '../src/runtime/thread.ts';
import { create, type HorizonState, horizon, restore } from '../src/schedule/horizon-schedule.ts';
import { TaskSampler } from '../src/schedule/task-sampler.ts';
import { createEnvPool, type EnvPool, type EnvPoolOptions, type EnvPoolStats } from './env/env-pool.ts';
import type { EnvEvent } from './env/protocol.ts';
import { horizonActor } from './horizon/horizon-actor.ts';
import type { InferenceCommand, InferenceInit, InferenceReport } from './inference/protocol.ts';
import type { BrokenUpdate, LearnerCommand, LearnerInit, SaveReport, UpdateReport } from './learner/protocol.ts';
import type { RecorderCommand } from './recorder/protocol.ts';
import { recorderActor } from './recorder/recorder-actor.ts';
import type {
  EvaluationPlan,
  EvaluationRecord,
  RolloutCommand,
  RolloutState,
  RolloutStatus,
  TrainEnded,
} from './rollout/protocol.ts';
import { rolloutActor } from './rollout/rollout-actor.ts';

type Policy = SmallPolicySetup<RolloutState, HorizonState>;
type Paths = LearnerInit['paths'];

export interface RunOptions {
  readonly config: RunConfig;
  /** The run's folder; it exists. */
  readonly dir: string;
  /** `serial`: one event loop, bit for bit repeatable. */
  readonly mode: 'async' | 'serial';
  /** URL of the env's module. */
  readonly envModule: URL;
  /** False for a run that only evaluates: no learner is started. */
  readonly learn: boolean;
  /** Goes on from here instead of from random weights. */
  readonly checkpoint?: LoadedCheckpoint;
  /** Starts a fresh run from these weights instead of from random ones. */
  readonly initial?: LoadedCheckpoint;
  readonly metrics$?: Subject<MetricsRow>;
  /** Evaluations while training goes on, every `evaluation.everyUpdates`. */
  readonly evaluation?: {
    readonly plans: (env: Env) => readonly EvaluationPlan[];
    readonly onRecord: (version: number, record: EvaluationRecord, env: Env) => void;
  };
  /** Things a person should know, one line each. */
  readonly onNotice?: (message: string) => void;
}

/** A started run. */
export interface Run {
  readonly env: Env;
  readonly metrics$: Subject<MetricsRow>;
  /** Trains until the stop condition. */
  train(): Promise<TrainEnded>;
  /** Ends training early. */
  halt(): void;
  evaluate(plan: EvaluationPlan): Promise<EvaluationRecord>;
  /** Writes a checkpoint now. */
  save(): Promise<SaveReport>;
  status(): Promise<RolloutStatus>;
  inference(): Promise<InferenceReport>;
  stats(): { readonly actors: readonly ActorStats[]; readonly envs: EnvPoolStats };
  stop(): Promise<void>;
}

/** A training run may take days; asks that span it have this deadline, in milliseconds. */
const RUN_MS = 2 ** 31 - 1;
const CONTROL_MS = 60_000;

export async function startRun(options: RunOptions): Promise<Run> {
  const { config, mode, envModule } = options;
  const module = (await import(localUrl(envModule).href)) as EnvModule;
  const env = module.createEnv(config.env.options);
  const small =
    config.policy.kind === 'small'
      ? setUpSmallPolicy<RolloutState, HorizonState>(config, module.view, options.checkpoint, options.initial)
      : undefined;
  if (options.learn && !small) {
    throw new UserError('BAD_CONFIG', `policy.kind: '${config.policy.kind}' cannot learn; use 'small'`);
  }
  const saved = small?.saved;
  const system = createSystem({ mode, seed: config.seed, supervision: { intensity: 3, periodMs: 60_000 } });
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

  const pool = await system.outside(createEnvPool(poolOptions(options, system)));
  try {
    const recorder = await system.spawn<RecorderCommand>(
      'recorder',
      recorderActor({
        dir: options.dir,
        config,
        ...config.trace,
        onMetrics: (row) => metrics$.next(row),
        onTrouble: (message) => options.onNotice?.(message),
      }),
      { mailbox: { capacity: 100_000, overflow: 'drop-oldest' } },
    );
    await system.spawn('horizon', horizonActor({ state: schedule, rolloutPath: paths.rollout }));
    const rollout = await system.spawn<RolloutCommand>(
      'rollout',
      rolloutActor({
        envs: pool,
        sampler,
        seed: config.seed,
        view: small?.view.id,
        groupSize: config.rollout.groupSize,
        concurrentGroups: config.rollout.concurrentGroups,
        groupsPerUpdate: config.learner.groupsPerUpdate,
        maxLag: config.learner.maxLag,
        maxAttempts: config.rollout.maxAttempts,
        stop: config.stop,
        start: { version: saved?.params.version ?? 0, horizon: horizon(schedule), state: saved?.rollout ?? undefined },
        paths: {
          inference: paths.inference,
          learner: options.learn ? paths.learner : undefined,
          recorder: paths.recorder,
        },
        barrier: mode === 'serial',
        evaluation: {
          everyUpdates: options.learn && options.evaluation ? config.evaluation.everyUpdates : 0,
          plans: options.evaluation?.plans(env) ?? [],
          onRecord: (version, record) => options.evaluation?.onRecord(version, record, env),
        },
        onSaved: ({ ok, update, message }) => {
          if (!ok)
            options.onNotice?.(
              `checkpoint at update ${update} failed: ${message}; the last good one is kept, the next update tries again`,
            );
        },
        onUpdate: metricsOf(
          (row) => void recorder.tell({ type: 'metrics', row }),
          (message) => options.onNotice?.(message),
          saved?.rollout && { at: saved.rollout.elapsedMs / 1000, envSteps: saved.rollout.envSteps },
        ),
      }),
      { restart: 'temporary', mailbox: { capacity: 1_000_000, overflow: 'wait' } },
    );
    const inferenceInit: InferenceInit = {
      policy: small ? smallInference(options, small) : { kind: 'random' },
      maxBatch: config.rollout.maxBatch,
      maxWaitMs: config.rollout.maxWaitMs,
      replyPath: paths.rollout,
    };
    await system.spawnModule<InferenceCommand, InferenceInit>(
      'inference',
      {
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
    const fatal = watch(pool, rollout, system);
    return running(system, pool, env, metrics$, fatal);
  } catch (thrown) {
    await pool.close();
    await system.stop();
    throw thrown;
  }
}

/** Feeds the hosts' answers to the rollouts, one message per tick; whatever ends the hosts for good ends the run. */
function watch(pool: EnvPool, rollout: ActorRef<RolloutCommand>, system: ActorSystem): Promise<never> {
  let batch: EnvEvent[] = [];
  return new Promise((_, reject) => {
    system.terminated.catch(reject);
    system.inspect$.subscribe((event) => {
      if (event.type === 'stopped' && event.final && event.reason.kind === 'crashed') reject(event.reason.error);
    });
    pool.observations$.subscribe({
      next(event) {
        if (batch.push(event) > 1) return;
        queueMicrotask(() => {
          const events = batch;
          batch = [];
          void rollout.tell({ type: 'observed', events });
        });
      },
      error: reject,
    });
  });
}

function running(
  system: ActorSystem,
  pool: EnvPool,
  env: Env,
  metrics$: Subject<MetricsRow>,
  fatal: Promise<never>,
): Run {
  fatal.catch(() => {}); // reported by whoever waits
  const ref = <M extends Message>(path: string) => system.resolve<M>(path);
  const rollout = ref<RolloutCommand>('/rollout');
  const ask = <R, M extends Message>(to: ActorRef<M>, make: (replyTo: ReplyTo<R>) => M, deadlineMs: number) =>
    Promise.race([system.ask<R, M>(to, make, { deadlineMs }), fatal]);
  let stopped: Promise<void> | undefined;
  return {
    env,
    metrics$,
    train: () => ask<TrainEnded, RolloutCommand>(rollout, (replyTo) => ({ type: 'train', replyTo }), RUN_MS),
    halt: () => void rollout.tell({ type: 'halt' }),
    evaluate: (plan) =>
      ask<EvaluationRecord, RolloutCommand>(rollout, (replyTo) => ({ type: 'evaluate', plan, replyTo }), RUN_MS),
    save: () => ask<SaveReport, LearnerCommand>(ref('/learner'), (replyTo) => ({ type: 'save', replyTo }), CONTROL_MS),
    status: () => ask<RolloutStatus, RolloutCommand>(rollout, (replyTo) => ({ type: 'status', replyTo }), CONTROL_MS),
    inference: () =>
      ask<InferenceReport, InferenceCommand>(ref('/inference'), (replyTo) => ({ type: 'report', replyTo }), CONTROL_MS),
    stats: () => ({ actors: system.stats(), envs: pool.stats() }),
    stop() {
      stopped ??= (async () => {
        await system.stop();
        await pool.close();
        metrics$.complete();
      })();
      return stopped;
    },
  };
}

/** The task indices a run trains on. @throws {UserError} BAD_CONFIG for a label the world does not have */
function trainingTasks(env: Env, { tasks }: RunConfig): number[] {
  const unknown = tasks.labels?.find((label) => !env.tasks.labels.includes(label));
  if (unknown !== undefined) {
    throw new UserError(
      'BAD_CONFIG',
      `tasks.labels: '${unknown}' is no label of ${env.id}; it has ${env.tasks.labels.join(', ')}`,
    );
  }
  return env.tasks.split(tasks.split).filter((index) => !tasks.labels || tasks.labels.includes(env.tasks.label(index)));
}

function smallInference({ config, mode, envModule }: RunOptions, { model, params }: Policy): InferenceInit['policy'] {
  const { decoder, masked, maxTokens, cacheOnUpdate } = config.policy;
  return {
    kind: 'small',
    engine: engineOptions(config, mode, config.engine.inferenceThreads),
    model,
    envModule: workerUrl(envModule).href,
    decoder,
    masked,
    maxTokens,
    groupSize: config.rollout.groupSize,
    cacheOnUpdate,
    params,
  };
}

function poolOptions({ config, mode, envModule }: RunOptions, system: ActorSystem): EnvPoolOptions {
  const { envThreads, isolation, stepDeadlineMs, openDeadlineMs } = config.rollout;
  return {
    envs: [{ id: config.env.id, url: envModule, options: config.env.options }],
    threads: envThreads,
    isolation: mode === 'serial' ? 'inline' : isolation,
    stepDeadlineMs,
    openDeadlineMs,
    clock: system.clock,
    outside: (work) => system.outside(work),
  };
}

function learnerInit({ config, dir, mode, envModule }: RunOptions, policy: Policy, paths: Paths): LearnerInit {
  const { learner, checkpoint } = config;
  const { params, saved, model, identity } = policy;
  return {
    engine: engineOptions(config, mode, config.engine.learnerThreads),
    envModule: workerUrl(envModule).href,
    trainer: {
      model,
      decoder: config.policy.decoder,
      estimator: learner.estimator,
      epochs: learner.epochs,
      minibatches: learner.minibatches,
      coefficients: {
        clipLow: learner.clipLow,
        clipHigh: learner.clipHigh,
        entropyCoef: learner.entropyCoef,
        valueCoef: learner.valueCoef,
        valueClip: learner.valueClip,
      },
      learningRate: {
        peak: learner.learningRate,
        warmupSteps: learner.warmupSteps,
        decay: learner.decay,
        final: learner.finalRate,
      },
      maxGradNorm: learner.maxGradNorm,
      adamW: { ...defaultAdamW, weightDecay: learner.weightDecay },
      filterGroups: learner.filterGroups,
      offPolicy: learner.offPolicy,
      ...(learner.kl ? { kl: learner.kl } : {}),
      seed: config.seed,
    },
    start: saved
      ? {
          params,
          moments: saved.moments,
          ...(saved.reference ? { reference: saved.reference } : {}),
          state: saved.learner,
        }
      : { params },
    stopUpdates: config.stop.updates,
    breaker: { ...learner.breaker, dir: join(dir, 'quarantine') },
    groupsPerUpdate: learner.groupsPerUpdate,
    maxLag: learner.maxLag,
    checkpoint: { dir: join(dir, 'checkpoints'), ...checkpoint, identity, barrier: mode === 'serial' },
    paths,
  };
}

/** In serial mode both engines compute on one thread each, so that a run repeats bit for bit on any machine. */
function engineOptions({ engine }: RunConfig, mode: RunOptions['mode'], threads: number): EngineOptions {
  return { name: engine.name, device: engine.device, threads: mode === 'serial' ? 1 : threads };
}

/** Turns update reports into rows of metrics, and says loudly what deserves it. */
function metricsOf(
  record: (row: MetricsRow) => void,
  notice: (message: string) => void,
  start: { readonly at: number; readonly envSteps: number } | undefined,
) {
  let before = start;
  return (report: UpdateReport, status: RolloutStatus): void => {
    const seconds = status.elapsedMs / 1000;
    const row = updateRow(report, status, before);
    before = { at: seconds, envSteps: status.envSteps };
    record(row);
    if (report.broken) notice(brokenNotice(report.version, report.broken));
  };
}

function brokenNotice(version: number, { where, message, quarantine, inARow, rolledBack }: BrokenUpdate): string {
  const what = `update ${version} was taken back: not finite: ${where}: ${message}; weights are unchanged, its batch lies in ${quarantine}`;
  return rolledBack
    ? `${what}; ${inARow} in a row: the weights of update ${rolledBack.toUpdate} are restored, learning rate × ${rolledBack.rateScale}`
    : what;
}
