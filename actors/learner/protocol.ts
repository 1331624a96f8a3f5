/** Messages of the learner, which owns weights and optimiser in a thread of its own. */
import type { ChaosSpec } from '../../src/chaos/spec.ts';
import type { EngineOptions } from '../../src/compute/engine/engine.ts';
import type { ParamSet } from '../../src/compute/model/parameters.ts';
import type { RunConfig } from '../../src/config/run-config.ts';
import type { Group } from '../../src/core/trajectory.ts';
import type { LearnerState } from '../../src/learning/learner/run-state.ts';
import type { TeacherSpec } from '../../src/learning/learner/teacher.ts';
import type { Breakage, GroupCredit, Moments, TrainerOptions } from '../../src/learning/learner/trainer.ts';
import type { UpdateStats } from '../../src/learning/schedule/horizon-schedule.ts';
import type { ServedAdapter } from '../../src/policy/served-adapters.ts';
import type { ReplyTo } from '../../src/runtime/actor.ts';
import type { ChatCodecSpec } from '../../src/text/reading/chat-codec.ts';

export type LearnerCommand = GroupFinished | GroupRanked | Save | Weights;

/** Group that is finished, handed over for training. */
export interface GroupFinished {
  readonly type: 'group';
  readonly group: Group;
  /** Share of the run that was done when it finished, in [0, 1]. */
  readonly progress: number;
  /** Number of checkpoints before it that were barriers: all groups are handed over again after one. */
  readonly barrier: number;
}

/** Group with the rewards of a judge, or the reason why there are none; the learner sends it to itself. */
export interface GroupRanked {
  readonly type: 'ranked';
  readonly result: GroupFinished | { readonly failure: string };
}

/** Writes a checkpoint, when training has ended. */
export interface Save {
  readonly type: 'save';
  readonly replyTo: ReplyTo<SaveReport>;
}

/** Asks for the current weights: a restarted inference actor has only those it was made with. */
export interface Weights {
  readonly type: 'weights';
  /** Gets the weights, or the adapter by which a server has them. */
  readonly replyTo: ReplyTo<ParamSet | ServedAdapter>;
}

export interface SaveReport {
  readonly ok: boolean;
  readonly update: number;
  readonly message: string;
}

/** Report of an update to the scheduler. */
export interface UpdateReport {
  /** Updates made, this one included: the new policy version. */
  readonly version: number;
  readonly stats: Readonly<Record<string, number>>;
  /** Statistics of what was consumed, by horizon, for the schedule. */
  readonly consumed: UpdateStats;
  /** Ids of groups, by their outcome. */
  readonly trained: readonly number[];
  readonly filtered: readonly number[];
  readonly stale: readonly number[];
  /** Lag of the trained decisions: learner version before this update minus decision version. */
  readonly lag: { readonly min: number; readonly mean: number; readonly max: number };
  readonly decisions: number;
  readonly tokens: number;
  /** Steps left out because something was not finite. */
  readonly skipped: number;
  /** Advantages, for traces. */
  readonly credit: readonly GroupCredit[];
  /** Milliseconds computing, and waiting for groups before. */
  readonly busyMs: number;
  readonly idleMs: number;
  /** Digest of the new weights, in a run with a journal. */
  readonly digest?: string | undefined;
  /** Broken update, set where it was taken back; its groups count as filtered. */
  readonly broken?: BrokenUpdate | undefined;
}

/** Broken update: one that was taken back. */
export interface BrokenUpdate extends Breakage {
  /** Folder that holds the batch. */
  readonly quarantine: string;
  /** Broken updates in a row, this one included. */
  readonly inARow: number;
  /** Rollback, where earlier weights were restored: their update, and the factor now on the learning rate. */
  readonly rolledBack?: { readonly toUpdate: number; readonly rateScale: number };
}

/** Rule for updates that are not finite. */
export interface BreakerOptions {
  /** Updates in a row, taken back, after which the weights of the last good checkpoint are restored, ≥ 1. Default 3. */
  readonly rollbackAfter: number;
  /** Factor on the learning rate whenever that happens, in (0, 1]. Default 0.5. */
  readonly shrink: number;
}

/** Init of the learner actor; plain data. */
export interface LearnerInit
  extends Pick<RunConfig['learner'], 'groupsPerUpdate' | 'oversampling' | 'maxLag' | 'ranking'> {
  readonly engine: EngineOptions;
  readonly envModule: string;
  /** Reading of a language model, where the policy is one. */
  readonly chat?: ChatCodecSpec | undefined;
  readonly trainer: Omit<TrainerOptions, 'codec'>;
  readonly start: {
    readonly params: ParamSet;
    readonly moments?: Moments | undefined;
    readonly reference?: ParamSet | undefined;
    readonly teacher?: TeacherSpec | undefined;
    readonly state?: LearnerState | undefined;
  };
  /** Rule for updates that are not finite; absent values have the defaults. */
  readonly breaker: Partial<BreakerOptions> & {
    /** `quarantine` folder of the run. */
    readonly dir: string;
  };
  /** True to report the digest of every update's weights. */
  readonly digests: boolean;
  /** Updates at which the run ends: groups that arrive later are kept, not trained on. */
  readonly maxUpdates: number | undefined;
  readonly checkpoint: RunConfig['checkpoint'] & {
    /** `checkpoints` folder of the run. */
    readonly dir: string;
    /** Chaos faults: strike checkpoints with a full disk. */
    readonly chaos?: ChaosSpec | undefined;
    /** Identity of the run, and that of its weights: every checkpoint records both, and they are checked on load. */
    readonly run?: string | undefined;
    readonly identity: CheckpointIdentity;
    /** True in serial mode: all groups are handed over again after a checkpoint. */
    readonly barrier: boolean;
  };
  /** True where the weights themselves go to other machines, not only their digest: none behind a server needs them. */
  readonly publishBytes: boolean;
  /** Paths of others; `weights` where they are announced to other machines. */
  readonly paths: { readonly inference: string; readonly scheduler: string; readonly weights?: string | undefined };
}

/** Identity of a checkpoint: the conditions under which its weights are valid. */
export interface CheckpointIdentity {
  readonly env: string;
  readonly view: string;
  readonly vocabulary: string;
  readonly decoder: string;
  readonly model: TrainerOptions['model'];
}
