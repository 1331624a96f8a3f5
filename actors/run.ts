/** Run options, and the handle of a started run. */
import type { Observable, Subject } from 'rxjs';
import type { ChaosLedger, ChaosReport } from '../src/chaos/chaos-ledger.ts';
import type { ChaosSpec } from '../src/chaos/spec.ts';
import type { Broker } from '../src/cluster/broker.ts';
import type { ClusterFacts, ClusterWatch } from '../src/cluster/watch.ts';
import type { ServedAt } from '../src/cluster/weights-http.ts';
import type { RunConfig } from '../src/config/run-config.ts';
import type { Env } from '../src/core/env.ts';
import { LongplayError } from '../src/core/errors.ts';
import type { Trajectory } from '../src/core/trajectory.ts';
import type { ServerRetries } from '../src/policy/served-adapters.ts';
import type { LoadedCheckpoint } from '../src/record/checkpoint.ts';
import type { MetricsRow } from '../src/record/metrics.ts';
import type { RunStatus } from '../src/record/run-status.ts';
import type { MetricSink } from '../src/record/sinks/sink.ts';
import type { AttemptOptions } from '../src/remote/attempts.ts';
import type { RemoteHostsAt } from '../src/run/env-hosts.ts';
import type { OrderRecorder, RecordedOrder } from '../src/run/order-file.ts';
import type { ActorRef, ActorStats, ActorSystem, Message, ReplyTo } from '../src/runtime/actor.ts';
import { startWatchdog, type WatchdogOptions } from '../src/runtime/watchdog.ts';
import type { EnvPool, EnvPoolStats } from './env/env-pool.ts';
import type { EnvEvent } from './env/protocol.ts';
import type { InferenceCommand, InferenceReport } from './inference/protocol.ts';
import type { BreakerOptions, LearnerCommand, SaveReport } from './learner/protocol.ts';
import type { RecorderCommand } from './recorder/protocol.ts';
import type { RetryLimits } from './rollout/retry.ts';
import type { EvaluationPlan, EvaluationRecord, SchedulerCommand, TrainEnded } from './scheduler/protocol.ts';

/** Cluster that a run is the learner of. */
export interface ClusterOptions {
  /** Connection, which its owner closes after the run. */
  readonly broker: Broker;
  /** Name of the run at the broker. */
  readonly run: string;
  /** Groups played here at once; 0: all go to workers. */
  readonly localGroups: number;
  /** Share of workers' results that are played again here, in [0, 1]. */
  readonly verify: number;
  /** Bytes of weights above which they go over HTTP, and where they are served then. */
  readonly http: { readonly above: number; readonly at: ServedAt };
  /** Watch over the cluster, for console and metrics. */
  readonly watch: ClusterWatch;
}

/** Limits of a run that no configuration sets; absent ones have the defaults that stand beside their use. For tests. */
export interface RunLimits {
  /** Retries of failed episodes. */
  readonly retry?: Partial<RetryLimits> | undefined;
  /** Env hosts replaced in a row, no action answered in between, until the run ends. */
  readonly maxRestarts?: number | undefined;
  /** Rule for updates that are not finite. */
  readonly breaker?: Partial<BreakerOptions> | undefined;
  readonly watchdog?: Pick<WatchdogOptions, 'stallMs' | 'lagMs'> | undefined;
  /** Retries of requests to a generation server. */
  readonly server?: Partial<ServerRetries> | undefined;
  /** Retries of requests to an OpenAI-compatible server. */
  readonly openai?: Partial<AttemptOptions> | undefined;
}

/** Options of a run: everything it is made from. */
export interface RunOptions {
  readonly config: RunConfig;
  /** Folder of the run; it exists. */
  readonly dir: string;
  /** `serial`: one event loop, bit for bit repeatable. */
  readonly mode: 'async' | 'serial';
  /** URL of the env's module. */
  readonly envModule: URL;
  /** False for a run that only evaluates: no learner is started. */
  readonly learn: boolean;
  /** Checkpoint to resume from. */
  readonly checkpoint?: LoadedCheckpoint | undefined;
  /** Folder of the journal of a run that learns; what it holds after the checkpoint is taken up. */
  readonly journal?: string | undefined;
  /** Cluster whose workers play; needs a journal. */
  readonly cluster?: ClusterOptions | undefined;
  /** Way to the env hosts of other machines, where `rollout.isolation` is `remote`. */
  readonly remoteHosts?: RemoteHostsAt | undefined;
  /** Initial weights of a fresh run, instead of random ones. */
  readonly initial?: LoadedCheckpoint | undefined;
  readonly metrics$?: Subject<MetricsRow> | undefined;
  /** Evaluations while training goes on, every `evaluation.everyUpdates`. */
  readonly evaluation?:
    | {
        readonly plans: (env: Env) => readonly EvaluationPlan[];
        readonly onRecord: (version: number, record: EvaluationRecord, env: Env) => void;
      }
    | undefined;
  /** Faults to inject, into the user's own environment too. */
  readonly chaos?: ChaosSpec | undefined;
  /** Recorder of the order of messages. */
  readonly record?: OrderRecorder | undefined;
  /** Recorded order to repeat bit for bit; `mode` must be `serial`, and nothing else may differ. */
  readonly replay?: RecordedOrder | undefined;
  /** Sinks for metrics besides `metrics.jsonl`; closed with the run. */
  readonly sinks?: readonly MetricSink[] | undefined;
  /** Called with the state of the run a few times a second, between updates too. */
  readonly onProgress?: ((status: RunStatus) => void) | undefined;
  /** Called with every finished group, traced or not; for displays. */
  readonly onEpisodes?: ((trajectories: readonly Trajectory[], purpose: string) => void) | undefined;
  /** Number of the first episode and group; for a run whose traces hold some already. Default 0. */
  readonly firstEpisode?: number | undefined;
  /** Limits that no configuration sets. */
  readonly limits?: RunLimits | undefined;
  /** Called with notices for a person, one line each. */
  readonly onNotice?: ((message: string) => void) | undefined;
}

/** Handle of a run whose actors are up, below `train`. */
export interface Run {
  readonly env: Env;
  readonly metrics$: Subject<MetricsRow>;
  /** Observations: every answer of the environments, as it comes; hot, in the middle of the run's work. */
  readonly observations$: Observable<EnvEvent>;
  /** Trains until the stop condition. */
  train(): Promise<TrainEnded>;
  /** Ends training early. */
  halt(): void;
  evaluate(plan: EvaluationPlan): Promise<EvaluationRecord>;
  /** Writes a checkpoint now. */
  save(): Promise<SaveReport>;
  status(): Promise<RunStatus>;
  inference(): Promise<InferenceReport>;
  /** Faults injected, detected and lost so far; undefined without chaos. */
  chaos(): ChaosReport | undefined;
  /** Flushes: resolves when every episode finished so far is on disk. */
  flush(): Promise<void>;
  /** Workers, tickets and results; undefined without a cluster. */
  cluster(): ClusterFacts | undefined;
  stats(): { readonly actors: readonly ActorStats[]; readonly envs: EnvPoolStats };
  /** Sends a message to any actor of the run, by path; for tests and tools. */
  tell(path: string, message: Message): void;
  stop(): Promise<void>;
}

/** Deadline in milliseconds of asks that span a training run, which may take days. */
const RUN_MS = 2 ** 31 - 1;
const CONTROL_MS = 60_000;
const FLUSH_MS = 5_000;

/**
 * Handle of a run whose actors are up.
 * @param fatal rejects with the error that ends the run for good
 * @param closed called once everything has ended
 */
export function startedRun(
  system: ActorSystem,
  pool: EnvPool,
  env: Env,
  metrics$: Subject<MetricsRow>,
  fatal: Promise<never>,
  chaos: ChaosLedger | undefined,
  { onNotice, record, cluster, limits }: RunOptions,
  closed: () => void,
): Run {
  fatal.catch(() => {}); // reported where it is awaited
  const ref = <M extends Message>(path: string) => system.resolve<M>(path);
  const scheduler = ref<SchedulerCommand>('/scheduler');
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
    ...limits?.watchdog,
    onStall: (message) => onNotice?.(message),
    onLag: (lagMs) => onNotice?.(`the main event loop was ${Math.round(lagMs)} ms late`),
    run: () => ({ expected: expected > 0 && pool.stats().pending === 0, progress: pool.stats().observed }),
  });
  return {
    env,
    metrics$,
    observations$: pool.observations$,
    train: () =>
      waited(ask<TrainEnded, SchedulerCommand>(scheduler, (replyTo) => ({ type: 'train', replyTo }), RUN_MS)),
    halt: () => void scheduler.tell({ type: 'halt' }),
    evaluate: (plan) =>
      waited(
        ask<EvaluationRecord, SchedulerCommand>(scheduler, (replyTo) => ({ type: 'evaluate', plan, replyTo }), RUN_MS),
      ),
    async save() {
      const saved = await ask<SaveReport, LearnerCommand>(
        ref('/learner'),
        (replyTo) => ({ type: 'save', replyTo }),
        CONTROL_MS,
      );
      return saved;
    },
    status: () => ask<RunStatus, SchedulerCommand>(scheduler, (replyTo) => ({ type: 'status', replyTo }), CONTROL_MS),
    inference: () =>
      ask<InferenceReport, InferenceCommand>(ref('/inference'), (replyTo) => ({ type: 'report', replyTo }), CONTROL_MS),
    chaos: () => chaos?.report(),
    flush: async () => {
      await ask<null, RecorderCommand>(ref('/recorder'), (replyTo) => ({ type: 'flush', replyTo }), CONTROL_MS);
    },
    cluster: () => cluster?.watch.facts(system.clock.now()),
    stats: () => ({ actors: system.stats(), envs: pool.stats() }),
    tell: (path, message) => void ref(path).tell(message),
    stop() {
      endWatchdog();
      stopped ??= (async () => {
        // Everything told to the recorder is written before anything ends; after a fatal error it may be gone.
        await system
          .ask<null, RecorderCommand>(ref('/recorder'), (replyTo) => ({ type: 'flush', replyTo }), {
            deadlineMs: FLUSH_MS,
          })
          .catch(() => {});
        await system.stop();
        await pool.close();
        record?.flush();
        closed();
        metrics$.complete();
      })();
      return stopped;
    },
  };
}

/** Milliseconds between an actor's end and the report of why it ended the run. */
const CAUSE_MS = 1000;

/** Cause of an ask's failure: the asker hears first that the actor ended; the error that ended the run says more. */
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
