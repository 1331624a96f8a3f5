/**
 * Cost of supervision and accounting: TextCraft under the random policy, once through scheduler, rollout and inference
 * actors with all that they account for, and once in a bare loop over the same hosts, which plays the same groups with
 * the same functions and keeps the same trajectories, without a mailbox, a message, a supervisor or a ledger.
 */
import { filter } from 'rxjs';
import { createEnvPool, type EnvPool } from '../../actors/env/env-pool.ts';
import type { EnvCommand, EnvEvent } from '../../actors/env/protocol.ts';
import { spawnEnvHosts } from '../../actors/env/spawn.ts';
import inferenceActor from '../../actors/inference/inference-actor.ts';
import type { InferenceCommand } from '../../actors/inference/protocol.ts';
import { act, type EpisodeRun, observe, openEpisode, openGroup } from '../../actors/rollout/episode-run.ts';
import type { RolloutInit } from '../../actors/rollout/protocol.ts';
import { spawnRollout } from '../../actors/rollout/spawn.ts';
import type { EvaluationPlan, EvaluationRecord, SchedulerCommand } from '../../actors/scheduler/protocol.ts';
import type { SchedulerInit } from '../../actors/scheduler/scheduler-actor.ts';
import { spawnScheduler } from '../../actors/scheduler/spawn.ts';
import { registry } from '../../envs/registry.ts';
import { runConfigSchema } from '../../src/config/run-config.ts';
import type { Trajectory } from '../../src/core/trajectory.ts';
import { create } from '../../src/learning/schedule/horizon-schedule.ts';
import { RandomPolicy } from '../../src/policy/random-policy.ts';
import { createSystem } from '../../src/runtime/create-system.ts';
import { rate, rounds } from './alternate.ts';
import type { Figure } from './contract.ts';
import { median } from './median.ts';

/** Groups, and episodes of each: as many at once as a run has by default. */
const GROUPS = 16;
const REPEATS = 8;
/** Tasks of one run. */
const TASKS = 200;
const MAX_BATCH = 64;
const HORIZON = 20;
/** Messages that may wait for an actor: four for every episode. */
const CAPACITY = 4 * GROUPS * REPEATS;

/** Measures the share of time that supervision takes. @param pairs rounds in which each of the two takes its turn */
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
    pool.observations$.subscribe((event) => {
      if (!routes.actor) routes.bare(event);
    });
    const routed = {
      send: (command: EnvCommand) => pool.send(command),
      observations$: pool.observations$.pipe(filter(() => routes.actor)),
    };
    const recorded = { episodes() {}, progressed() {} };
    await system.spawn<{ type: keyof typeof recorded }>('recorder', () => ({ handlers: recorded }));
    await spawnScheduler(system, schedulerInit(), CAPACITY);
    const hosts = { pool: routed, rolloutPath: '/rollout', record: undefined, replay: undefined };
    await spawnEnvHosts(system, hosts, CAPACITY);
    await spawnRollout(system, rolloutInit(), 'local', CAPACITY);
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
      const record = await system.ask<EvaluationRecord, SchedulerCommand>(
        system.resolve('/scheduler'),
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
    const measures = [
      () => rate(() => measureCost(actors, cpu[0])),
      () => rate(() => measureCost(bare, cpu[1])),
    ] as const;
    const [withActors, without] = (await rounds(measures, pairs)) as [number[], number[]];
    // Neighbours in time are compared with each other: what else the machine does moves both.
    const shares = withActors.map((value, i) => value / without[i]!);
    return [
      {
        name: 'TextCraft rollout under actors, supervised and accounted for',
        value: median(shares),
        unit: "of a bare loop's throughput",
        note: `median of ${pairs} pairs; ${computeRate(withActors)} and ${computeRate(without)} steps/s`,
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

function schedulerInit(): SchedulerInit {
  const horizon = { type: 'fixed', rounds: HORIZON } as const;
  const { learner, rollout } = runConfigSchema.parse({ env: { id: 'textcraft' }, horizon });
  return {
    worlds: [
      {
        name: 'textcraft',
        schedule: [{ from: 0, weight: 1 }],
        tasks: [0],
        sampling: { type: 'uniform' },
        labelOf: () => 'all',
        horizon: create(horizon),
      },
    ],
    mixture: 'fixed',
    seed: 1,
    stop: { updates: 1 },
    rollout: { ...rollout, groupSize: 1, concurrentGroups: GROUPS },
    learner,
    start: { version: 0, state: undefined, group: 0 },
    barrier: false,
    evaluation: { everyUpdates: 0, plans: [] },
    paths: { rollout: '/rollout', learner: undefined, recorder: '/recorder' },
  };
}

function rolloutInit(): RolloutInit {
  return {
    view: undefined,
    policyInThread: false,
    slots: GROUPS,
    envThreads: 1,
    maxAttempts: 1,
    maxFailures: 1,
    maxOutageMs: 10_000,
    barrier: false,
    start: { nextEpisode: 0, envSteps: 0, episodes: 0 },
    paths: { inference: '/inference', envs: '/env-hosts', scheduler: '/scheduler' },
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
      const group = openGroup({ group: first + groups++, task, horizon: HORIZON, size: REPEATS, purpose, version: 0 });
      for (let member = 0; member < REPEATS; member++) {
        const episode = next++;
        runs.set(episode, openEpisode(group, member, episode, 1, performance.now()));
        pool.send({ type: 'open', episode, attempt: 1, task });
      }
    };
    const decide = () => {
      ticking = false;
      while (policy.waiting > 0) {
        for (const acted of policy.step()) {
          const { episode, turn } = acted;
          const action = act(runs.get(episode)!, acted, performance.now())!;
          pool.send({ type: 'step', episode, turn: turn + 1, action });
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
        pool.send({ type: 'close', episode });
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

function computeRate(rates: readonly number[]): string {
  return Math.round(median(rates)).toLocaleString('en');
}

/** Runs `work` and notes the processor microseconds of each thing it counted. */
async function measureCost(work: () => Promise<number>, into: number[]): Promise<number> {
  const before = process.cpuUsage();
  const count = await work();
  const { user, system } = process.cpuUsage(before);
  into.push((user + system) / count);
  return count;
}
