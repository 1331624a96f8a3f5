/** Options of a run, as every actor's `init.ts` reads them, and the addresses of its actors. */
import type { Subject } from 'rxjs';
import { maxGroups } from '../src/algo/dynamic-sampling.ts';
import type { ChaosLedger } from '../src/chaos/chaos-ledger.ts';
import type { ChaosSpec } from '../src/chaos/spec.ts';
import type { Broker } from '../src/cluster/broker.ts';
import type { ClusterMonitor } from '../src/cluster/cluster-monitor.ts';
import type { EpisodeCheck } from '../src/cluster/episode-check.ts';
import type { ClusterIdentity } from '../src/cluster/identity.ts';
import type { EngineOptions } from '../src/compute/engine/engine.ts';
import { policyKindOf } from '../src/config/policy-kinds.ts';
import type { RunConfig } from '../src/config/run-config.ts';
import type { RunWorld } from '../src/config/worlds.ts';
import type { Env } from '../src/core/env.ts';
import type { WorldPrompt } from '../src/core/prompt.ts';
import type { Trajectory } from '../src/core/trajectory.ts';
import type { AttemptOptions } from '../src/http/attempts.ts';
import type { TeacherSpec } from '../src/learning/learner/teacher.ts';
import type { HorizonState } from '../src/learning/schedule/horizon-schedule.ts';
import type { MetricsRow } from '../src/metrics/metric-table.ts';
import type { RunStatus } from '../src/metrics/run-status.ts';
import type { MetricSink } from '../src/metrics/sinks/sink.ts';
import type { Connection } from '../src/policy/remote/connect.ts';
import type { Rule } from '../src/policy/rule-policy.ts';
import type { ServerRetries } from '../src/policy/served-adapters.ts';
import type { PolicySetup } from '../src/policy/setup.ts';
import type { WatchdogOptions } from '../src/runtime/watchdog.ts';
import type { LoadedCheckpoint } from '../src/storage/checkpoint.ts';
import type { OrderRecorder, RecordedOrder } from '../src/storage/order-file.ts';
import type { BreakerOptions } from './learner/protocol.ts';
import type { RetryLimits } from './rollout/retry.ts';
import type { EvaluationPlan, EvaluationRecord, SchedulerState } from './scheduler/protocol.ts';

/** Policy with weights of its own, and what its checkpoint holds. */
export type Policy = PolicySetup<SchedulerState, HorizonState>;

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
  /** Monitor of the cluster, for console and metrics. */
  readonly monitor: ClusterMonitor;
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
  /** URL of the env's module; of several worlds the one that stands for them (`urlOfWorlds`). */
  readonly envModule: URL;
  /** False for a run that only evaluates: no learner is started. */
  readonly learn: boolean;
  /** Checkpoint to resume from. */
  readonly checkpoint?: LoadedCheckpoint | undefined;
  /** Folder of the journal of a run that learns; what it holds after the checkpoint is taken up. */
  readonly journal?: string | undefined;
  /** Cluster whose workers play; needs a journal. */
  readonly cluster?: ClusterOptions | undefined;
  /** Initial weights of a fresh run, instead of random ones. */
  readonly initial?: LoadedCheckpoint | undefined;
  readonly metrics$?: Subject<MetricsRow> | undefined;
  /** Evaluations while training goes on, every `evaluation.everyUpdates`. */
  readonly evaluation?:
    | {
        readonly plans: (worlds: PreparedRun['worlds']) => readonly EvaluationPlan[];
        readonly onRecord: (version: number, record: EvaluationRecord, worlds: PreparedRun['worlds']) => void;
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
  /** Trivial rule that plays where the configuration's policy is `random`. */
  readonly rule?: Rule | undefined;
  /** Number of the first episode and group; for a run whose traces hold some already. Default 0. */
  readonly firstEpisode?: number | undefined;
  /** Limits that no configuration sets. */
  readonly limits?: RunLimits | undefined;
  /** Called with notices for a person, one line each. */
  readonly onNotice?: ((message: string) => void) | undefined;
}

/** World of a run that is ready to start. */
export interface PreparedWorld {
  /** Configuration as if the run had this world alone. */
  readonly config: RunConfig;
  /** Facts of the world, under the id that its tasks name (`Task.env`). */
  readonly env: Env;
  /** URL of its module. */
  readonly module: URL;
  /** Training tasks. */
  readonly tasks: readonly number[];
  readonly prompt: WorldPrompt;
  /** Memory that the world's `share` made for its env hosts. */
  readonly shared: unknown;
  /** Weights of its groups, each from an update on. */
  readonly schedule: RunWorld['schedule'];
}

/** Run that is ready to start: it was checked, and what lies outside its actors is read and connected. */
export interface PreparedRun {
  /** Options, with a configuration that fits this machine's memory. */
  readonly options: RunOptions;
  /** Identity of the run, where its folder has one. */
  readonly identity: string | undefined;
  /** Worlds, in the configuration's order; one where it lists none. */
  readonly worlds: readonly [PreparedWorld, ...PreparedWorld[]];
  readonly policy: Policy | undefined;
  /** Teacher of a run that distils. */
  readonly teacher: TeacherSpec | undefined;
  /** OpenAI-compatible server whose model plays. */
  readonly server: Connection | undefined;
  /** Id of the view that the policy reads through, if any. */
  readonly view: string | undefined;
  readonly chaos: ChaosLedger | undefined;
  /** Called with the result of every checkpoint. */
  readonly onSaved: (saved: { readonly ok: boolean; readonly update: number }) => void;
  /** Learner's side of a cluster. */
  readonly cluster: PreparedCluster | undefined;
}

/** Announcement of a cluster's learner, and its check of what comes back. */
export interface PreparedCluster {
  readonly identity: ClusterIdentity;
  /** Weights that the run begins with; their bytes are empty where a generation server has them. */
  readonly first: { readonly version: number; readonly digest: string; readonly bytes: Uint8Array };
  readonly check: EpisodeCheck;
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

/**
 * True where checkpoints are barriers: in a serial run, but not in the replay of an asynchronous one, which had none.
 */
export function hasBarriers({ mode, replay }: RunOptions): boolean {
  return mode === 'serial' && !replay;
}

/** True for a policy whose tokens a server samples. */
export function isServed(config: RunConfig): boolean {
  return policyKindOf(config).isServed;
}

/**
 * Options of an engine. In serial mode both engines compute on one thread each, so that a run repeats bit for bit on
 * any machine; a repeated async run computes as it did.
 */
export function engineOptions(
  { engine }: RunConfig,
  mode: RunOptions['mode'],
  threads: number,
  replay: RecordedOrder | undefined,
): EngineOptions {
  const { name, device, packing } = engine;
  return { name, device, packing, threads: mode === 'serial' && !replay ? 1 : threads };
}

/** Counts the groups that a cluster may play at once: the lag bounds them, and no machine's memory. */
export function maxClusterGroups({ rollout, learner }: RunConfig): number {
  return Math.max(rollout.concurrentGroups, (learner.maxLag + 1) * maxGroups(learner));
}
