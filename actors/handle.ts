/** Handle of a started run. */
import type { Observable, Subject } from 'rxjs';
import type { ChaosLedger, ChaosReport } from '../src/chaos/chaos-ledger.ts';
import type { ClusterFacts } from '../src/cluster/cluster-monitor.ts';
import type { Env } from '../src/core/env.ts';
import { LongplayError } from '../src/core/errors.ts';
import type { MetricsRow } from '../src/metrics/metric-table.ts';
import type { RunStatus } from '../src/metrics/run-status.ts';
import { closeSinks, type RunEnding } from '../src/metrics/sinks/sink.ts';
import type { ActorRef, ActorStats, ActorSystem, Message, ReplyTo } from '../src/runtime/actor.ts';
import { startWatchdog } from '../src/runtime/watchdog.ts';
import type { EnvPool, EnvPoolStats } from './env/env-pool.ts';
import type { EnvEvent } from './env/protocol.ts';
import type { InferenceCommand, InferenceReport } from './inference/protocol.ts';
import type { LearnerCommand, SaveReport } from './learner/protocol.ts';
import type { PreparedRun, RunOptions } from './options.ts';
import type { RecorderCommand } from './recorder/protocol.ts';
import type { EvaluationPlan, EvaluationRecord, SchedulerCommand, TrainEnded } from './scheduler/protocol.ts';

/** Handle of a run whose actors are up, below `train`. */
export interface Run {
  /** Facts of the world; of several those of the first. */
  readonly env: Env;
  /** Worlds, in the configuration's order; one where it lists none. */
  readonly worlds: PreparedRun['worlds'];
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
/** Milliseconds without progress that count as a stall where the learner waits for a judge or a teacher behind a server. */
const SERVER_STALL_MS = 3_600_000;
const CONTROL_MS = 60_000;
const FLUSH_MS = 5_000;

/**
 * Handle of a run whose actors are up.
 * @param fatal rejects with the error that ends the run for good
 * @param closed called once everything has ended
 */
export function createRun(
  system: ActorSystem,
  pool: EnvPool,
  worlds: PreparedRun['worlds'],
  metrics$: Subject<MetricsRow>,
  fatal: Promise<never>,
  chaos: ChaosLedger | undefined,
  { config, onNotice, record, cluster, limits, sinks = [] }: RunOptions,
  closed: () => void,
): Run {
  fatal.catch(() => {}); // reported where it is awaited
  const ref = <M extends Message>(path: string) => system.resolve<M>(path);
  const scheduler = ref<SchedulerCommand>('/scheduler');
  const ask = <R, M extends Message>(to: ActorRef<M>, make: (replyTo: ReplyTo<R>) => M, deadlineMs: number) =>
    Promise.race([system.ask<R, M>(to, make, { deadlineMs }).catch((thrown) => causeOf(thrown, fatal)), fatal]);
  let stopped: Promise<void> | undefined;
  let ending: RunEnding = 'stopped';
  let expected = 0;
  const awaitRun = async <T>(work: Promise<T>, endingOf: (done: T) => RunEnding = () => 'finished'): Promise<T> => {
    expected++;
    try {
      const done = await work;
      ending = endingOf(done);
      return done;
    } catch (thrown) {
      ending = 'failed';
      throw thrown;
    } finally {
      expected--;
    }
  };
  const { ranking, distillation } = config.learner;
  const asksServers = ranking !== undefined || distillation?.teacher.type === 'server';
  const endWatchdog = startWatchdog(system, {
    ...(asksServers ? { stallMs: SERVER_STALL_MS } : {}),
    ...limits?.watchdog,
    onStall: (message) => onNotice?.(message),
    onLag: (lagMs) => onNotice?.(`the main event loop was ${Math.round(lagMs)} ms late`),
    run: () => ({ expected: expected > 0 && pool.stats().pending === 0, progress: pool.stats().observed }),
  });
  return {
    env: worlds[0].env,
    worlds,
    metrics$,
    observations$: pool.observations$,
    train: () =>
      awaitRun(
        ask<TrainEnded, SchedulerCommand>(scheduler, (replyTo) => ({ type: 'train', replyTo }), RUN_MS),
        ({ why }) => (why === 'halted' ? 'stopped' : 'finished'),
      ),
    halt: () => void scheduler.tell({ type: 'halt' }),
    evaluate: (plan) =>
      awaitRun(
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
    cluster: () => cluster?.monitor.facts(system.clock.now()),
    stats: () => ({ actors: system.stats(), envs: pool.stats() }),
    tell: (path, message) => void ref(path).tell(message),
    stop() {
      endWatchdog();
      const ended = ending; // what is still played fails now
      stopped ??= (async () => {
        // Everything sent to the recorder is written before anything ends; after a fatal error it may be gone.
        await system
          .ask<null, RecorderCommand>(ref('/recorder'), (replyTo) => ({ type: 'flush', replyTo }), {
            deadlineMs: FLUSH_MS,
          })
          .catch(() => {});
        await system.stop();
        await pool.close();
        await closeSinks(sinks, ended, (line) => onNotice?.(line));
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

/** Cause of an ask's failure: the asker first learns that the actor ended; the error that ended the run gives the reason. */
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
