/** The real scheduler and rollout actor with real env hosts and the random policy, and a learner that only counts. */
import { createEnvPool, type EnvPool, type EnvPoolOptions } from '../../actors/env/env-pool.ts';
import { spawnEnvHosts } from '../../actors/env/spawn.ts';
import inferenceActor from '../../actors/inference/inference-actor.ts';
import type { InferenceCommand } from '../../actors/inference/protocol.ts';
import type { UpdateReport } from '../../actors/learner/protocol.ts';
import type { RecorderCommand } from '../../actors/recorder/protocol.ts';
import type { RolloutInit } from '../../actors/rollout/protocol.ts';
import { spawnRollout } from '../../actors/rollout/spawn.ts';
import type { SchedulerCommand, TrainEnded } from '../../actors/scheduler/protocol.ts';
import { spawnScheduler } from '../../actors/scheduler/spawn.ts';
import { ChaosLedger } from '../../src/chaos/chaos-ledger.ts';
import { parseChaos } from '../../src/chaos/spec.ts';
import { runConfigSchema } from '../../src/config/run-config.ts';
import { countUnaccounted, type Failure } from '../../src/core/failure.ts';
import type { Group } from '../../src/core/trajectory.ts';
import { create } from '../../src/learning/schedule/horizon-schedule.ts';
import type { RunStatus } from '../../src/metrics/run-status.ts';
import type { ActorSystem, BehaviorFactory } from '../../src/runtime/actor.ts';
import { createSystem } from '../../src/runtime/create-system.ts';

type LearnerMessage = { readonly type: 'group'; readonly group: Group } | { readonly type: 'work' };

export interface BenchOptions {
  readonly mode?: 'async' | 'serial';
  readonly updates: number;
  readonly tasks?: readonly number[];
  readonly chaos?: string;
  readonly pool?: Partial<EnvPoolOptions>;
  readonly rollout?: Partial<RolloutInit>;
  /** Home of the rollout actor. Default `local`. */
  readonly placement?: 'local' | 'thread';
  /** Milliseconds an update takes. */
  readonly updateMs?: number;
  /** Updates after which the learner makes none until `stalled` is set to false. */
  readonly stallsAfter?: number;
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
  readonly updates: RunStatus[];
  /** While true the learner takes groups and makes no update. */
  stalled: boolean;
  train(): Promise<TrainEnded>;
  status(): Promise<RunStatus>;
  stop(): Promise<void>;
}

export const GROUP_SIZE = 4;
export const GROUPS_PER_UPDATE = 2;
export const MAX_LAG = 1;
export const CONCURRENT_GROUPS = 8;

const HORIZON = { type: 'fixed', rounds: 6 } as const;
/** Messages that may wait for an actor: four for every episode. */
const CAPACITY = 4 * CONCURRENT_GROUPS * GROUP_SIZE;

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
  const updates: RunStatus[] = [];
  const flags = { stalled: false };

  await system.spawn<RecorderCommand>('recorder', () => {
    return {
      handlers: {
        episodes() {},
        updated: ({ status }) => void updates.push(status),
        failed: ({ failure }) => void failures.push(failure),
        quarantined: (message) => void recorded.push(message),
        noticed() {},
        metrics() {},
        evaluated() {},
        saved() {},
        progressed() {},
        flush() {},
      },
    };
  });
  await system.spawn<LearnerMessage>(
    'learner',
    countingLearner(options.onGroup ?? ((group) => groups.push(group)), flags, options),
  );
  const { learner, rollout } = runConfigSchema.parse({ env: { id: 'faulty' }, horizon: HORIZON });
  await spawnScheduler(
    system,
    {
      worlds: [
        {
          name: 'faulty',
          schedule: [{ from: 0, weight: 1 }],
          tasks: options.tasks ?? [1, 2, 3, 4, 5, 6],
          sampling: { type: 'uniform' },
          labelOf: String,
          horizon: create(HORIZON),
        },
      ],
      mixture: 'fixed',
      seed: 1,
      stop: { updates: options.updates },
      rollout: { ...rollout, groupSize: GROUP_SIZE, concurrentGroups: CONCURRENT_GROUPS },
      learner: { ...learner, groupsPerUpdate: GROUPS_PER_UPDATE, maxLag: MAX_LAG },
      start: { version: 0, state: undefined, group: 0 },
      barrier: false,
      evaluation: { everyUpdates: 0, plans: [] },
      paths: { rollout: '/rollout', learner: '/learner', recorder: '/recorder' },
    },
    CAPACITY,
  );
  await spawnEnvHosts(system, { pool, rolloutPath: '/rollout', record: undefined, replay: undefined }, CAPACITY);
  const init: RolloutInit = {
    view: undefined,
    policyInThread: false,
    slots: CONCURRENT_GROUPS * GROUP_SIZE,
    envThreads: 1,
    maxAttempts: 6,
    maxFailures: 200,
    maxOutageMs: 10_000,
    barrier: false,
    start: { nextEpisode: 0, envSteps: 0, episodes: 0 },
    paths: { inference: '/inference', envs: '/env-hosts', scheduler: '/scheduler' },
    ...options.rollout,
  };
  await spawnRollout(system, structuredClone(init), options.placement ?? 'local', CAPACITY);
  await system.spawn<InferenceCommand>(
    'inference',
    inferenceActor({ policy: { kind: 'random' }, maxBatch: 64, maxWaitMs: 1, replyPath: '/rollout' }) as never,
  );
  const scheduler = system.resolve<SchedulerCommand>('/scheduler');
  const broken = new Promise<never>((_, reject) => {
    system.terminated.catch(reject);
    system.inspect$.subscribe((event) => {
      if (event.type === 'stopped' && event.final && event.reason.kind === 'crashed') reject(event.reason.error);
    });
    pool.observations$.subscribe({ error: reject });
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
    async train() {
      const ended = await Promise.race([
        broken,
        system
          .ask<TrainEnded, SchedulerCommand>(scheduler, (replyTo) => ({ type: 'train', replyTo }), {
            deadlineMs: 600_000,
          })
          .catch((thrown) => Promise.race([broken, soon().then(() => Promise.reject(thrown))])),
      ]);
      // The recorder may receive the last update a moment after the answer.
      while (updates.length < ended.status.version) await new Promise((resolve) => setImmediate(resolve));
      return ended;
    },
    status: () =>
      system.ask<RunStatus, SchedulerCommand>(scheduler, (replyTo) => ({ type: 'status', replyTo }), {
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

/** Takes an update's worth of groups at a time and reports that it trained on them. */
function countingLearner(
  keep: (group: Group) => void,
  flags: { stalled: boolean },
  { updateMs = 0, stallsAfter }: BenchOptions,
): BehaviorFactory<LearnerMessage> {
  return (ctx) => {
    const waiting: Group[] = [];
    let version = 0;
    const work = async () => {
      while (!flags.stalled && waiting.length >= GROUPS_PER_UPDATE) {
        const batch = waiting.splice(0, GROUPS_PER_UPDATE);
        if (updateMs > 0) await ctx.sleep(updateMs);
        if (version + 1 === stallsAfter) flags.stalled = true;
        const report = { version: ++version, trained: batch.map(({ group }) => group), filtered: [], stale: [] };
        const updated = { ...report, consumed: { byHorizon: [] } } as unknown as UpdateReport;
        await ctx.resolve<SchedulerCommand>('/scheduler').tell({ type: 'updated', report: updated });
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
  return updates.map(({ accounting }) => countUnaccounted(accounting));
}
