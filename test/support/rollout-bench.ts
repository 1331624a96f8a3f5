/** The real rollout actor with real env hosts and the random policy, and a learner that only counts. */
import { createEnvPool, type EnvPool, type EnvPoolOptions } from '../../actors/env/env-pool.ts';
import type { EnvEvent } from '../../actors/env/protocol.ts';
import inferenceActor from '../../actors/inference/inference-actor.ts';
import type { InferenceCommand } from '../../actors/inference/protocol.ts';
import type { UpdateReport } from '../../actors/learner/protocol.ts';
import type { RecorderCommand } from '../../actors/recorder/protocol.ts';
import type { RolloutCommand, RolloutStatus, TrainEnded } from '../../actors/rollout/protocol.ts';
import { type RolloutInit, rolloutActor } from '../../actors/rollout/rollout-actor.ts';
import { ChaosLedger } from '../../src/chaos/chaos-ledger.ts';
import { parseChaos } from '../../src/chaos/spec.ts';
import { type Failure, unaccounted } from '../../src/core/failure.ts';
import type { Group } from '../../src/core/trajectory.ts';
import type { ActorSystem, BehaviorFactory } from '../../src/runtime/actor.ts';
import { createSystem } from '../../src/runtime/system.ts';
import { TaskSampler } from '../../src/schedule/task-sampler.ts';

type LearnerMessage = { readonly type: 'group'; readonly group: Group } | { readonly type: 'work' };

export interface BenchOptions {
  readonly mode?: 'async' | 'serial';
  readonly updates: number;
  readonly tasks?: readonly number[];
  readonly chaos?: string;
  readonly pool?: Partial<EnvPoolOptions>;
  readonly rollout?: Partial<RolloutInit>;
  /** Milliseconds an update takes. */
  readonly updateMs?: number;
  /** Sees every finished group, which is then not kept. */
  readonly onGroup?: (group: Group) => void;
}

export interface RolloutBench {
  readonly system: ActorSystem;
  readonly pool: EnvPool;
  readonly chaos: ChaosLedger | undefined;
  readonly groups: Group[];
  readonly failures: Failure[];
  readonly recorded: RecorderCommand[];
  /** Status after each update. */
  readonly updates: RolloutStatus[];
  /** While true the learner takes groups and makes no update. */
  stalled: boolean;
  train(): Promise<TrainEnded>;
  status(): Promise<RolloutStatus>;
  stop(): Promise<void>;
}

export const GROUP_SIZE = 4;
export const GROUPS_PER_UPDATE = 2;
export const MAX_LAG = 1;
export const CONCURRENT_GROUPS = 8;

export async function rolloutBench(options: BenchOptions): Promise<RolloutBench> {
  const system = createSystem({ mode: options.mode ?? 'async', seed: 5 });
  const chaos = options.chaos === undefined ? undefined : new ChaosLedger(parseChaos(options.chaos));
  const pool = await system.outside(
    createEnvPool({
      envs: [{ id: 'faulty', url: new URL('./faulty-env.ts', import.meta.url) }],
      threads: 1,
      isolation: system.mode === 'serial' ? 'inline' : 'thread',
      stepDeadlineMs: 300,
      openDeadlineMs: 600,
      resourceLimits: { maxOldGenerationSizeMb: 64 },
      clock: system.clock,
      outside: (work) => system.outside(work),
      ...(chaos ? { chaos } : {}),
      ...options.pool,
    }),
  );
  const groups: Group[] = [];
  const failures: Failure[] = [];
  const recorded: RecorderCommand[] = [];
  const updates: RolloutStatus[] = [];
  const flags = { stalled: false };

  await system.spawn<RecorderCommand>('recorder', () => {
    const take = (message: RecorderCommand) => void recorded.push(message);
    return { handlers: { episodes: () => {}, credit: take, metrics: take, quarantined: take, flush() {} } };
  });
  await system.spawn<LearnerMessage>(
    'learner',
    countingLearner(options.onGroup ?? ((group) => groups.push(group)), flags, options.updateMs ?? 0),
  );
  const rollout = await system.spawn<RolloutCommand>(
    'rollout',
    rolloutActor({
      envs: pool,
      sampler: new TaskSampler('faulty', options.tasks ?? [1, 2, 3, 4, 5, 6], 1, { type: 'uniform' }),
      seed: 1,
      view: undefined,
      envThreads: 1,
      labelOf: String,
      groupSize: GROUP_SIZE,
      concurrentGroups: CONCURRENT_GROUPS,
      groupsPerUpdate: GROUPS_PER_UPDATE,
      maxLag: MAX_LAG,
      maxAttempts: 6,
      maxFailures: 200,
      stop: { updates: options.updates },
      start: { version: 0, horizon: 6, state: undefined },
      paths: { inference: '/inference', learner: '/learner', recorder: '/recorder' },
      onUpdate: (_, status) => void updates.push(status),
      onFailure: (failure) => void failures.push(failure),
      ...options.rollout,
    }),
    { restart: 'temporary' },
  );
  await system.spawn<InferenceCommand>(
    'inference',
    inferenceActor({ policy: { kind: 'random' }, maxBatch: 64, maxWaitMs: 1, replyPath: '/rollout' }) as never,
  );
  const broken = new Promise<never>((_, reject) => {
    system.terminated.catch(reject);
    system.inspect$.subscribe((event) => {
      if (event.type === 'stopped' && event.final && event.reason.kind === 'crashed') reject(event.reason.error);
    });
    let batch: EnvEvent[] = [];
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
  broken.catch(() => {});
  let ended: Promise<void> | undefined;
  return {
    system,
    pool,
    chaos,
    groups,
    failures,
    recorded,
    updates,
    get stalled() {
      return flags.stalled;
    },
    set stalled(value) {
      flags.stalled = value;
      if (!value) void system.resolve<LearnerMessage>('/learner').tell({ type: 'work' });
    },
    train: () =>
      Promise.race([
        broken,
        system
          .ask<TrainEnded, RolloutCommand>(rollout, (replyTo) => ({ type: 'train', replyTo }), { deadlineMs: 600_000 })
          .catch((thrown) => Promise.race([broken, soon().then(() => Promise.reject(thrown))])),
      ]),
    status: () =>
      system.ask<RolloutStatus, RolloutCommand>(rollout, (replyTo) => ({ type: 'status', replyTo }), {
        deadlineMs: 5000,
      }),
    stop() {
      ended ??= (async () => {
        await system.stop();
        await pool.close();
      })();
      return ended;
    },
  };
}

const soon = () => new Promise<void>((resolve) => setTimeout(resolve, 200));

/** Takes an update's worth of groups at a time and says that it trained on them. */
function countingLearner(
  keep: (group: Group) => void,
  flags: { readonly stalled: boolean },
  updateMs: number,
): BehaviorFactory<LearnerMessage> {
  return (ctx) => {
    const waiting: Group[] = [];
    let version = 0;
    const work = async () => {
      while (!flags.stalled && waiting.length >= GROUPS_PER_UPDATE) {
        const batch = waiting.splice(0, GROUPS_PER_UPDATE);
        if (updateMs > 0) await ctx.sleep(updateMs);
        const report = { version: ++version, trained: batch.map(({ group }) => group), filtered: [], stale: [] };
        await ctx.resolve<RolloutCommand>('/rollout').tell({
          type: 'advance',
          report: report as unknown as UpdateReport,
          horizon: 6,
        });
      }
    };
    return {
      handlers: {
        group({ group }) {
          keep(group);
          waiting.push(group);
          return work();
        },
        work,
      },
    };
  };
}

/** Launched minus all that is accounted for, after each update. */
export function identities({ updates }: RolloutBench): number[] {
  return updates.map(({ accounting }) => unaccounted(accounting));
}
