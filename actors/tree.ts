/**
 * Spawns, links and supervises all actors of a run: the only file that sees every one of them.
 *
 *     /recorder  /horizon  /inference (thread)  /learner (thread)  /rollout        env hosts (piscina threads)
 *
 * In serial mode the same actors share one event loop under a virtual clock, and the env hosts are in it too.
 */
import { join } from 'node:path';
import { Subject } from 'rxjs';
import { isInformative, mostGroups } from '../src/algo/dynamic-sampling.ts';
import { ChaosLedger, type ChaosReport } from '../src/chaos/chaos-ledger.ts';
import { type ChaosSpec, deadlyKinds } from '../src/chaos/spec.ts';
import type { RunConfig } from '../src/config/run-config.ts';
import type { Env, EnvModule } from '../src/core/env.ts';
import { LongplayError, UserError } from '../src/core/errors.ts';
import type { Failure } from '../src/core/failure.ts';
import { type Task, taskName } from '../src/core/task.ts';
import type { Trajectory } from '../src/core/trajectory.ts';
import type { EngineOptions } from '../src/engine/engine.ts';
import { trainerOptions } from '../src/learner/options.ts';
import { type SmallPolicySetup, setUpSmallPolicy } from '../src/policy/setup.ts';
import type { LoadedCheckpoint } from '../src/record/checkpoint.ts';
import type { ConsumedFacts } from '../src/record/group-facts.ts';
import type { MetricsRow } from '../src/record/metrics.ts';
import type { MetricSink } from '../src/record/sinks/sink.ts';
import { earlierRows, type RowBefore, updateRow } from '../src/record/update-row.ts';
import { type Connection, connect } from '../src/remote/connect.ts';
import type { Schedule, ScheduleRecorder } from '../src/run/schedule-file.ts';
import type { ActorRef, ActorStats, ActorSystem, Message, ReplyTo } from '../src/runtime/actor.ts';
import { SchedulePlayer } from '../src/runtime/schedule.ts';
import { createSystem } from '../src/runtime/system.ts';
import { localUrl, workerUrl } from '../src/runtime/thread.ts';
import { startWatchdog } from '../src/runtime/watchdog.ts';
import { create, type HorizonState, horizon, restore } from '../src/schedule/horizon-schedule.ts';
import { TaskSampler } from '../src/schedule/task-sampler.ts';
import { createEnvPool, type EnvPool, type EnvPoolOptions, type EnvPoolStats } from './env/env-pool.ts';
import type { EnvEvent, EnvSpec } from './env/protocol.ts';
import { ReplayedAnswers } from './env/replayed-answers.ts';
import { horizonActor } from './horizon/horizon-actor.ts';
import type { InferenceCommand, InferenceInit, InferenceReport } from './inference/protocol.ts';
import type { BrokenUpdate, LearnerCommand, LearnerInit, SaveReport, UpdateReport } from './learner/protocol.ts';
import type { RecorderCommand } from './recorder/protocol.ts';
import { recorderActor } from './recorder/recorder-actor.ts';
import type { RemoteInferenceInit } from './remote-inference/protocol.ts';
import type {
  EvaluationPlan,
  EvaluationRecord,
  RolloutCommand,
  RolloutState,
  RolloutStatus,
  TrainEnded,
} from './rollout/protocol.ts';
import { type RolloutInit, rolloutActor } from './rollout/rollout-actor.ts';

export { openEnvSessions } from './env/sessions.ts';
export { servePolicyActors } from './inference/served-policy.ts';

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
  /** Faults to inject, into the user's own environment too. */
  readonly chaos?: ChaosSpec;
  /** Keeps the order of messages. */
  readonly record?: ScheduleRecorder;
  /** Repeats a recorded order bit for bit; `mode` must be `serial`, and nothing else may differ. */
  readonly replay?: Schedule;
  /** Places metrics go to besides `metrics.jsonl`; closed with the run. */
  readonly sinks?: readonly MetricSink[];
  /** Gets the state of the rollouts a few times a second, between updates too. */
  readonly onProgress?: (status: RolloutStatus) => void;
  /** Sees every finished group, traced or not; for displays. */
  readonly onEpisodes?: (trajectories: readonly Trajectory[], purpose: string) => void;
  /** Number of the first episode and group; for a run whose traces hold some already. Default 0. */
  readonly firstEpisode?: number;
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
  /** What was injected, detected and lost so far; undefined without chaos. */
  chaos(): ChaosReport | undefined;
  /** Resolves when every finished episode told so far is on disk. */
  flush(): Promise<void>;
  stats(): { readonly actors: readonly ActorStats[]; readonly envs: EnvPoolStats };
  /** Sends a message to any actor of the run, by path; for tests and tools. */
  tell(path: string, message: Message): void;
  stop(): Promise<void>;
}

/** A training run may take days; asks that span it have this deadline, in milliseconds. */
const RUN_MS = 2 ** 31 - 1;
const CONTROL_MS = 60_000;
const FLUSH_MS = 5_000;

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
        view: small?.view.id ?? (remote && openai.prompt === 'tokens' ? module.view?.id : undefined),
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
            init: remoteInit(options, env, remote, paths.rollout),
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
    return running(system, pool, env, metrics$, fatal, chaos, options);
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

function running(
  system: ActorSystem,
  pool: EnvPool,
  env: Env,
  metrics$: Subject<MetricsRow>,
  fatal: Promise<never>,
  chaos: ChaosLedger | undefined,
  { config, onNotice, record }: RunOptions,
): Run {
  fatal.catch(() => {}); // reported by whoever waits
  const ref = <M extends Message>(path: string) => system.resolve<M>(path);
  const rollout = ref<RolloutCommand>('/rollout');
  const ask = <R, M extends Message>(to: ActorRef<M>, make: (replyTo: ReplyTo<R>) => M, deadlineMs: number) =>
    Promise.race([system.ask<R, M>(to, make, { deadlineMs }).catch((thrown) => causeOf(thrown, fatal)), fatal]);
  let stopped: Promise<void> | undefined;
  let expected = 0;
  const waited = async <T>(work: Promise<T>): Promise<T> => {
    expected++;
    try {
      return await work;
    } finally {
      expected--;
    }
  };
  const endWatchdog = startWatchdog(system, {
    ...config.watchdog,
    onStall: (message) => onNotice?.(message),
    onLag: (lagMs) => onNotice?.(`the main event loop was ${Math.round(lagMs)} ms late`),
    run: () => ({ expected: expected > 0 && pool.stats().pending === 0, progress: pool.stats().observed }),
  });
  return {
    env,
    metrics$,
    train: () => waited(ask<TrainEnded, RolloutCommand>(rollout, (replyTo) => ({ type: 'train', replyTo }), RUN_MS)),
    halt: () => void rollout.tell({ type: 'halt' }),
    evaluate: (plan) =>
      waited(
        ask<EvaluationRecord, RolloutCommand>(rollout, (replyTo) => ({ type: 'evaluate', plan, replyTo }), RUN_MS),
      ),
    async save() {
      const saved = await ask<SaveReport, LearnerCommand>(
        ref('/learner'),
        (replyTo) => ({ type: 'save', replyTo }),
        CONTROL_MS,
      );
      return saved;
    },
    status: () => ask<RolloutStatus, RolloutCommand>(rollout, (replyTo) => ({ type: 'status', replyTo }), CONTROL_MS),
    inference: () =>
      ask<InferenceReport, InferenceCommand>(ref('/inference'), (replyTo) => ({ type: 'report', replyTo }), CONTROL_MS),
    chaos: () => chaos?.report(),
    flush: async () => {
      await ask<null, RecorderCommand>(ref('/recorder'), (replyTo) => ({ type: 'flush', replyTo }), CONTROL_MS);
    },
    stats: () => ({ actors: system.stats(), envs: pool.stats() }),
    tell: (path, message) => void ref(path).tell(message),
    stop() {
      endWatchdog();
      stopped ??= (async () => {
        // What was told to the recorder is written before anything ends; after a fatal error it may be gone.
        await system
          .ask<null, RecorderCommand>(ref('/recorder'), (replyTo) => ({ type: 'flush', replyTo }), {
            deadlineMs: FLUSH_MS,
          })
          .catch(() => {});
        await system.stop();
        await pool.close();
        record?.flush();
        metrics$.complete();
      })();
      return stopped;
    },
  };
}

/** Milliseconds between an actor's end and the word of why it ended the run. */
const CAUSE_MS = 1000;

/** Who asked hears first that the asked actor ended; what ended the run says more. */
async function causeOf(thrown: unknown, fatal: Promise<never>): Promise<never> {
  let timer: NodeJS.Timeout | undefined;
  const soon = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, thrown instanceof LongplayError && thrown.code === 'ACTOR_STOPPED' ? CAUSE_MS : 0);
  });
  try {
    await Promise.race([fatal, soon]);
  } finally {
    clearTimeout(timer);
  }
  throw thrown;
}

/** Checkpoints of a serial run are barriers; the asynchronous run that a replay repeats had none. */
function hasBarriers({ mode, replay }: RunOptions): boolean {
  return mode === 'serial' && !replay;
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

function smallInference(
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

function remoteInit(
  { config, envModule }: RunOptions,
  env: Env,
  remote: Connection,
  replyPath: string,
): RemoteInferenceInit {
  const { world } = config.env.options;
  return {
    openai: config.policy.openai,
    ...remote,
    world: { id: typeof world === 'string' ? world : env.id, description: env.description },
    envModule: envModule.href,
    replyPath,
  };
}

function poolOptions(
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
function hostedEnv({ config, envModule }: RunOptions, { rewardRange, maxObservationChars }: Env): EnvSpec {
  const { id, options } = config.env;
  const { envServer: url, stepDeadlineMs } = config.rollout;
  if (url === undefined) return { id, url: envModule, options };
  if (Object.keys(options).length > 0) {
    throw new UserError('BAD_CONFIG', 'env.options: the env server has its own; leave them out with rollout.envServer');
  }
  const deadlineMs = Math.max(1, 0.9 * stepDeadlineMs);
  return {
    id,
    url: new URL('../src/remote-env/uniform.js', import.meta.url),
    options: { url, world: id, rewardRange, maxObservationChars, deadlineMs },
  };
}

function dynamicSampling({ learner }: RunConfig): RolloutInit['dynamicSampling'] & {} {
  return { mostPerUpdate: mostGroups(learner), informative: (group) => isInformative(group, learner) };
}

function learnerInit(options: RunOptions, policy: Policy, paths: Paths): LearnerInit {
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

function replaced(pool: EnvPool): number {
  return pool.stats().hosts.reduce((sum, host) => sum + host.replaced, 0);
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

/** Turns update reports into rows of metrics, and says loudly what deserves it. */
function metricsOf(
  actorFacts: () => RowBefore['actors'],
  record: (row: MetricsRow, report: UpdateReport) => void,
  notice: (message: string) => void,
) {
  let earlier: RowBefore[] = [];
  return (report: UpdateReport, status: RolloutStatus, consumed: ConsumedFacts): void => {
    const actors = actorFacts();
    earlier = earlierRows(earlier, status.elapsedMs);
    record(updateRow(report, consumed, status, actors, earlier[0]), report);
    earlier.push({ rollout: status, actors });
    if (report.broken) notice(brokenNotice(report.version, report.broken));
  };
}

function brokenNotice(version: number, { where, message, quarantine, inARow, rolledBack }: BrokenUpdate): string {
  const what = `update ${version} was taken back: not finite: ${where}: ${message}; weights are unchanged, its batch lies in ${quarantine}`;
  return rolledBack
    ? `${what}; ${inARow} in a row: the weights of update ${rolledBack.toUpdate} are restored, learning rate × ${rolledBack.rateScale}`
    : what;
}

/** Says the first failure of each cause; the counts are in the metrics. */
function failureNotices(notice: (message: string) => void) {
  const told = new Set<string>();
  return ({ cause, where, message }: Failure, task: Task): void => {
    if (told.has(cause)) return;
    told.add(cause);
    notice(`an episode of ${taskName(task)} failed at ${where} (${cause}): ${message}; further ones are only counted`);
  };
}

/** @throws {UserError} BAD_ARGUMENT for faults that would end this process itself */
function checkChaos({ rates }: ChaosSpec, isolation: string): void {
  const deadly =
    isolation === 'inline' ? ([...deadlyKinds, 'hang'] as const).filter((kind) => (rates[kind] ?? 0) > 0) : [];
  if (deadly.length === 0) return;
  const why = 'envs share the main thread here (a serial run, or rollout.isolation: inline)';
  throw new UserError('BAD_ARGUMENT', `--chaos: ${deadly.join(', ')} would end the run itself: ${why}; leave them out`);
}
