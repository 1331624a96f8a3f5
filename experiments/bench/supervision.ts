/**
 * What supervision and accounting cost: TextCraft under the random policy, once through the rollout and inference
 * actors with all that they account for, and once in a bare loop over the same hosts, which plays the same groups with
 * the same functions and keeps the same trajectories, without a mailbox, a message, a supervisor or a ledger.
 */
import { createEnvPool, type EnvPool } from '../../actors/env/env-pool.ts';
import type { EnvEvent } from '../../actors/env/protocol.ts';
import inferenceActor from '../../actors/inference/inference-actor.ts';
import type { InferenceCommand } from '../../actors/inference/protocol.ts';
import { act, type EpisodeRun, observe, openEpisode, openGroup } from '../../actors/rollout/episode-run.ts';
import type { EvaluationPlan, EvaluationRecord, RolloutCommand } from '../../actors/rollout/protocol.ts';
import { rolloutActor } from '../../actors/rollout/rollout-actor.ts';
import { registry } from '../../envs/registry.ts';
import type { Trajectory } from '../../src/core/trajectory.ts';
import { RandomPolicy } from '../../src/policy/random-policy.ts';
import { createSystem } from '../../src/runtime/system.ts';
import { TaskSampler } from '../../src/schedule/task-sampler.ts';
import { rate, rounds } from './alternate.ts';
import type { Figure } from './contract.ts';
import { median } from './median.ts';

/** As many episodes at once as a run has by default: groups, and episodes of each. */
const GROUPS = 16;
const REPEATS = 8;
/** Tasks of one run. */
const TASKS = 200;
const MAX_BATCH = 64;
const HORIZON = 20;

/** @param pairs rounds in which each of the two takes its turn */
export async function supervision(pairs = 31): Promise<Figure[]> {
  const pool = await createEnvPool({
    envs: [{ id: 'textcraft', url: registry.textcraft! }],
    threads: 1,
    isolation: 'thread',
    stepDeadlineMs: 10_000,
    openDeadlineMs: 30_000,
  });
  const system = createSystem({ mode: 'async' });
  try {
    const routes = { actor: true, bare: (_: EnvEvent) => {} };
    let batch: EnvEvent[] = [];
    pool.observations$.subscribe((event) => {
      if (!routes.actor) return routes.bare(event);
      if (batch.push(event) > 1) return;
      queueMicrotask(() => {
        const events = batch;
        batch = [];
        void system.resolve<RolloutCommand>('/rollout').tell({ type: 'observed', events });
      });
    });
    await system.spawn<{ type: 'episodes' }>('recorder', () => ({ handlers: { episodes() {} } }));
    await system.spawn<RolloutCommand>('rollout', rolloutActor(rolloutInit(pool)), { restart: 'temporary' });
    await system.spawn<InferenceCommand>(
      'inference',
      inferenceActor({ policy: { kind: 'random' }, maxBatch: MAX_BATCH, maxWaitMs: 1, replyPath: '/rollout' }) as never,
    );
    let repeat = 0;
    const actors = async () => {
      routes.actor = true;
      const plan: EvaluationPlan = {
        name: `bench ${repeat++}`,
        tasks: Array.from({ length: TASKS }, (_, index) => ({ env: 'textcraft', index, seed: repeat })),
        episodes: REPEATS,
        horizon: HORIZON,
        temperature: 1,
        seed: repeat,
      };
      const record = await system.ask<EvaluationRecord, RolloutCommand>(
        system.resolve('/rollout'),
        (replyTo) => ({ type: 'evaluate', plan, replyTo }),
        { deadlineMs: 600_000 },
      );
      return record.results.flatMap(({ turns }) => turns).reduce((a, b) => a + b, 0);
    };
    const bare = () => {
      routes.actor = false;
      return bareLoop(pool, routes, 1_000_000 * ++repeat);
    };
    const cpu: [number[], number[]] = [[], []];
    const measures = [() => rate(() => costed(actors, cpu[0])), () => rate(() => costed(bare, cpu[1]))] as const;
    const [withActors, without] = (await rounds(measures, pairs)) as [number[], number[]];
    // Neighbours in time are compared with each other: what else the machine does moves both.
    const shares = withActors.map((value, i) => value / without[i]!);
    return [
      {
        name: 'TextCraft rollout under actors, supervised and accounted for',
        value: median(shares),
        unit: "of a bare loop's throughput",
        note: `median of ${pairs} pairs; ${perSecond(withActors)} and ${perSecond(without)} steps/s`,
      },
      {
        name: 'the same, processor time of a step (all threads)',
        value: median(cpu[0]),
        unit: 'µs',
        reference: { name: 'the bare loop', value: median(cpu[1]) },
        note: 'moves less with the load of the machine',
      },
    ];
  } finally {
    await system.stop();
    await pool.close();
  }
}

function rolloutInit(pool: EnvPool): Parameters<typeof rolloutActor>[0] {
  return {
    envs: pool,
    sampler: new TaskSampler('textcraft', [0], 1, { type: 'uniform' }),
    seed: 1,
    view: undefined,
    groupSize: 1,
    envThreads: 1,
    labelOf: () => 'all',
    concurrentGroups: GROUPS,
    groupsPerUpdate: 1,
    maxLag: 0,
    maxAttempts: 1,
    maxFailures: 1,
    stop: { updates: 1 },
    start: { version: 0, horizon: HORIZON, state: undefined },
    paths: { inference: '/inference', learner: undefined, recorder: '/recorder' },
    onUpdate() {},
    onFailure() {},
  };
}

/** The same groups, played and kept by the same functions. @param first number of its first episode */
async function bareLoop(pool: EnvPool, routes: { bare: (event: EnvEvent) => void }, first: number): Promise<number> {
  const policy = new RandomPolicy(MAX_BATCH);
  const runs = new Map<number, EpisodeRun>();
  const finished: Trajectory[] = [];
  const purpose = { name: 'bench', temperature: 1, seed: first };
  let groups = 0;
  let next = first;
  let ticking = false;
  await new Promise<void>((done) => {
    const open = () => {
      if (groups === TASKS) return;
      const task = { env: 'textcraft', index: groups, seed: first };
      const group = openGroup(first + groups++, task, HORIZON, REPEATS, purpose);
      for (let member = 0; member < REPEATS; member++) {
        const episode = next++;
        runs.set(episode, openEpisode(group, member, episode, 1, performance.now()));
        pool.tell({ type: 'open', episode, attempt: 1, task });
      }
    };
    const decide = () => {
      ticking = false;
      while (policy.waiting > 0) {
        for (const acted of policy.step()) {
          const { episode, turn } = acted;
          const action = act(runs.get(episode)!, acted, performance.now())!;
          pool.tell({ type: 'step', episode, turn: turn + 1, action });
        }
      }
    };
    routes.bare = (event) => {
      if (event.type === 'failed') throw new Error(event.failure.message);
      const { episode } = event;
      const run = runs.get(episode)!;
      const after = observe(run, event, undefined, performance.now());
      if ('broken' in after) throw new Error(after.broken.message);
      if ('trajectory' in after) {
        finished.push(after.trajectory);
        runs.delete(episode);
        run.group.running.delete(run.member);
        pool.tell({ type: 'close', episode });
        policy.release([episode]);
        if (finished.length === TASKS * REPEATS) done();
        if (run.group.running.size === 0) open();
        return;
      }
      policy.submit([after.request]);
      if (!ticking) queueMicrotask(decide);
      ticking = true;
    };
    for (let i = 0; i < GROUPS; i++) open();
  });
  routes.bare = () => {}; // it holds every trajectory, which the other one's garbage collections would have to walk
  return finished.reduce((sum, { turns }) => sum + turns.length, 0);
}

function perSecond(rates: readonly number[]): string {
  return Math.round(median(rates)).toLocaleString('en');
}

/** Runs `work` and notes the processor microseconds of each thing it counted. */
async function costed(work: () => Promise<number>, into: number[]): Promise<number> {
  const before = process.cpuUsage();
  const count = await work();
  const { user, system } = process.cpuUsage(before);
  into.push((user + system) / count);
  return count;
}
