/**
 * Spawns, links and supervises all actors of a run: the only file that starts every one of them.
 *
 *     /recorder  /scheduler  /env-hosts  /rollout  /inference (thread)  /learner (thread)      hosts (piscina threads)
 *
 * As the learner of a cluster it also has /weights, which announces them, and /tickets, which stands before /rollout.
 *
 * In serial mode the same actors share one event loop under a virtual clock, and the env hosts are in it too.
 */
import { Subject } from 'rxjs';
import type { MetricsRow } from '../src/metrics/metric-table.ts';
import { createSystem } from '../src/runtime/create-system.ts';
import { OrderPlayer } from '../src/runtime/message-order.ts';
import { reportSlowStarts } from '../src/runtime/slow-start.ts';
import { createEnvPool } from './env/env-pool.ts';
import { poolOptions } from './env/init.ts';
import { spawnEnvHosts } from './env/spawn.ts';
import { awaitFatalError } from './fatal-error.ts';
import { createRun, type Run } from './handle.ts';
import { inferenceInit } from './inference/init.ts';
import { spawnInference } from './inference/spawn.ts';
import { learnerInit } from './learner/init.ts';
import { spawnLearner } from './learner/spawn.ts';
import { runCapacities } from './mailbox-capacities.ts';
import { PATHS, type PreparedRun } from './options.ts';
import { recorderInit, runPast } from './recorder/init.ts';
import { spawnRecorder } from './recorder/spawn.ts';
import { remoteInit } from './remote-inference/init.ts';
import { spawnRemoteInference } from './remote-inference/spawn.ts';
import type { ReplayedUpdate, ReplayOptions } from './replay-learner.ts';
import { rolloutInit } from './rollout/init.ts';
import { spawnRollout } from './rollout/spawn.ts';
import { schedulerInit } from './scheduler/init.ts';
import { openJournal } from './scheduler/open-journal.ts';
import { spawnScheduler } from './scheduler/spawn.ts';
import type { RunningWorker, WorkerOptions } from './worker-tree.ts';

export { openEnvSessions } from './env/sessions.ts';
export type { Run } from './handle.ts';
export { servePolicyActors } from './inference/served-policy.ts';
export type {
  ClusterOptions,
  Policy,
  PreparedCluster,
  PreparedRun,
  PreparedWorld,
  RunLimits,
  RunOptions,
} from './options.ts';
export type { SchedulerState } from './scheduler/protocol.ts';
export type { RunningWorker, WorkerOptions } from './worker-tree.ts';

/**
 * Starts every actor of a run that is prepared; training or an evaluation begins when the run is asked to.
 * @throws {UserError} for a journal or an env host that cannot be used; nothing is then left running
 */
export async function spawnRun(prepared: PreparedRun): Promise<Run> {
  const { options, worlds, server, view, chaos } = prepared;
  const [{ env, prompt }] = worlds;
  const { config, mode, learn, record, replay } = options;
  const journaled = openJournal(prepared);
  const policy = journaled?.policy ?? prepared.policy;
  const system = createSystem({
    mode,
    seed: config.seed,
    supervision: { intensity: 3, periodMs: 60_000 },
    record: record?.recordBegun,
    replay: replay && new OrderPlayer(replay.orders),
  });
  const metrics$ = options.metrics$ ?? new Subject<MetricsRow>();
  const capacities = runCapacities(options);
  const pool = await system.outside(createEnvPool(poolOptions(options, worlds, system, chaos)));
  const countReplaced = () => pool.stats().hosts.reduce((sum, host) => sum + host.replaced, 0);
  try {
    const fatal = awaitFatalError(pool, system);
    reportSlowStarts(system, options.onNotice ?? (() => {}));
    const past = learn && policy?.saved ? runPast(policy.saved, journaled?.journal.digests) : undefined;
    const recorded = recorderInit(options, worlds, metrics$, countReplaced, prepared.onSaved);
    await spawnRecorder(system, { ...recorded, past }, capacities.recorder);
    const scheduled = schedulerInit(options, worlds, policy?.saved, journaled?.journal);
    await spawnScheduler(system, scheduled, capacities.scheduler);
    await spawnEnvHosts(system, { pool, rolloutPath: PATHS.rollout, record, replay }, capacities.envs);
    const played = rolloutInit(options, view, policy !== undefined, policy?.saved?.rollout);
    await spawnRollout(system, played, 'local', capacities.rollout);
    if (journaled && prepared.cluster) {
      const { spawnCluster } = await import('./cluster-run.ts'); // loaded for those who use it
      await spawnCluster(system, options, env, prepared.cluster, journaled, capacities.scheduler);
    }
    if (server) await spawnRemoteInference(system, remoteInit(options, prompt, server), capacities.inference);
    else await spawnInference(system, inferenceInit(options, policy), capacities.inference);
    if (learn && policy)
      await spawnLearner(system, learnerInit(options, policy, prepared.identity, prepared.teacher), capacities.learner);
    return createRun(system, pool, worlds, metrics$, fatal, chaos, options, () => journaled?.journal.journal.close());
  } catch (thrown) {
    await pool.close();
    await system.stop();
    throw thrown;
  }
}

/** Starts a worker of a cluster (worker-tree.ts), loaded for those who use it. */
export async function startWorker(options: WorkerOptions): Promise<RunningWorker> {
  return (await import('./worker-tree.ts')).startWorker(options);
}

/** Replays a run's learner (replay-learner.ts), loaded for those who use it. */
export async function replayLearner(options: ReplayOptions): Promise<readonly ReplayedUpdate[]> {
  return (await import('./replay-learner.ts')).replayLearner(options);
}
