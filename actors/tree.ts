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
import { ChaosLedger } from '../src/chaos/chaos-ledger.ts';
import { checkChaos } from '../src/chaos/spec.ts';
import type { ModelConfig } from '../src/compute/model/config.ts';
import { kindsThat, policyKindOf } from '../src/config/policy-kinds.ts';
import type { Env } from '../src/core/env.ts';
import { UserError } from '../src/core/errors.ts';
import { readSecret } from '../src/core/secrets.ts';
import type { View } from '../src/core/view.ts';
import type { HorizonState } from '../src/learning/schedule/horizon-schedule.ts';
import type { MetricsRow } from '../src/metrics/metric-table.ts';
import { fitCache } from '../src/policy/cache-room.ts';
import { connect } from '../src/policy/remote/connect.ts';
import { setUpPolicy } from '../src/policy/setup.ts';
import { createSystem } from '../src/runtime/create-system.ts';
import { OrderPlayer } from '../src/runtime/message-order.ts';
import { localUrl } from '../src/runtime/module-url.ts';
import { worldPrompt } from '../src/text/prompts/world-prompt.ts';
import { codecOf } from '../src/text/reading/codec-of.ts';
import { describeEnv, loadWorld } from '../src/world/open-world.ts';
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
import { PATHS, type Policy, type RunOptions } from './options.ts';
import { recorderInit } from './recorder/init.ts';
import { spawnRecorder } from './recorder/spawn.ts';
import { remoteInit } from './remote-inference/init.ts';
import { spawnRemoteInference } from './remote-inference/spawn.ts';
import type { ReplayedUpdate, ReplayOptions } from './replay-learner.ts';
import { rolloutInit } from './rollout/init.ts';
import { spawnRollout } from './rollout/spawn.ts';
import { schedulerInit } from './scheduler/init.ts';
import { openJournal } from './scheduler/open-journal.ts';
import type { SchedulerState } from './scheduler/protocol.ts';
import { spawnScheduler } from './scheduler/spawn.ts';
import type { RunningWorker, WorkerOptions } from './worker-tree.ts';

export { openEnvSessions } from './env/sessions.ts';
export type { Run } from './handle.ts';
export { servePolicyActors } from './inference/served-policy.ts';
export type { ClusterOptions, RunLimits, RunOptions } from './options.ts';
export type { RunningWorker, WorkerOptions } from './worker-tree.ts';

/** Options under which a policy of this process has room for its episodes. */
function fitToMemory(options: RunOptions, policy: { readonly model: ModelConfig } | undefined): RunOptions {
  if (!policy || policyKindOf(options.config).isServed) return options; // the server has the cache
  const { config, notice } = fitCache(options.config, policy.model);
  if (notice !== undefined) options.onNotice?.(notice);
  return { ...options, config };
}

/**
 * Starts every actor of a run; training or an evaluation begins when the run is asked to.
 * @throws {UserError} for a configuration, checkpoint, world or server that cannot be used; nothing is then left running
 */
export async function startRun(given: RunOptions): Promise<Run> {
  const { mode, learn, record, replay } = given;
  const module = await loadWorld(localUrl(given.envModule), given.config.env.id);
  const env = describeEnv(module, given.config.env.id, given.config.env.options);
  const prompt = worldPrompt(module, given.config.env.options, env.description);
  const set = setUpPolicy<SchedulerState, HorizonState>(
    given.config,
    { view: module.view, prompt },
    given.dir,
    given.checkpoint,
    given.initial,
  );
  const options = fitToMemory(given, set);
  const { config } = options;
  for (const notice of set?.notices ?? []) options.onNotice?.(notice);
  // Loaded for those who use it.
  const cluster = options.cluster && (await import('./cluster-run.ts'));
  cluster?.checkClusterRun(options, env, set?.model);
  const journaled = set && options.journal !== undefined ? openJournal(options, env, options.journal, set) : undefined;
  const policy = journaled?.policy ?? set;
  noticeDefaultView(options, env, policy, module.view);
  if (learn && !policy) {
    throw new UserError('BAD_CONFIG', `policy.kind: '${config.policy.kind}' cannot learn; use ${kindsThat('learns')}`);
  }
  const { openai, apiKeyEnv } = config.policy;
  const remote = policyKindOf(config).isRemote
    ? await connect(config.policy, readSecret(apiKeyEnv), module.view)
    : undefined;
  const view = policy?.codec.id ?? (remote && openai.prompt === 'tokens' ? codecOf(module).id : undefined);
  if (options.chaos) checkChaos(options.chaos, mode === 'serial' ? 'inline' : config.rollout.isolation);
  const chaos = options.chaos && new ChaosLedger(options.chaos);
  const system = createSystem({
    mode,
    seed: config.seed,
    supervision: { intensity: 3, periodMs: 60_000 },
    record: record?.recordBegun,
    replay: replay && new OrderPlayer(replay.orders),
  });
  const metrics$ = options.metrics$ ?? new Subject<MetricsRow>();
  const capacities = runCapacities(options);
  const isHere = config.rollout.envServer === undefined;
  const shared = isHere ? await module.share?.(config.env.options) : undefined;
  const pool = await system.outside(createEnvPool(poolOptions(options, env, system, chaos, shared)));
  const countReplaced = () => pool.stats().hosts.reduce((sum, host) => sum + host.replaced, 0);
  try {
    const fatal = awaitFatalError(pool, system);
    const checkpoints = ({ ok, update }: { ok: boolean; update: number }) => chaos?.checkpoint(update, ok);
    const resumedFrom = learn ? policy?.saved?.params.version : undefined;
    const recorded = { ...recorderInit(options, env, metrics$, countReplaced, checkpoints), resumedFrom };
    await spawnRecorder(system, recorded, capacities.recorder);
    await spawnScheduler(system, schedulerInit(options, env, policy?.saved, journaled?.journal), capacities.scheduler);
    await spawnEnvHosts(system, { pool, rolloutPath: PATHS.rollout, record, replay }, capacities.envs);
    const played = rolloutInit(options, view, policy !== undefined, policy?.saved?.rollout);
    await spawnRollout(system, played, 'local', capacities.rollout);
    if (journaled) await cluster?.spawnCluster(system, options, env, journaled, capacities.scheduler);
    if (remote) {
      await spawnRemoteInference(system, remoteInit(options, prompt, remote), capacities.inference);
    } else await spawnInference(system, inferenceInit(options, policy), capacities.inference);
    if (learn && policy) await spawnLearner(system, learnerInit(options, policy), capacities.learner);
    return createRun(system, pool, env, metrics$, fatal, chaos, options, () => journaled?.journal.journal.close());
  } catch (thrown) {
    await pool.close();
    await system.stop();
    throw thrown;
  }
}

/** Says that a local policy reads a world through the default view. */
function noticeDefaultView(
  { config, onNotice }: RunOptions,
  { id }: Env,
  policy: Policy | undefined,
  view: View | undefined,
): void {
  if (policyKindOf(config).isLanguageModel || !policy || view) return;
  onNotice?.(
    `${id} has no view of its own: the local policy reads it through the default one (${policy.codec.id}); a world's own view learns faster`,
  );
}

/** Starts a worker of a cluster (worker-tree.ts), loaded for those who use it. */
export async function startWorker(options: WorkerOptions): Promise<RunningWorker> {
  return (await import('./worker-tree.ts')).startWorker(options);
}

/** Replays a run's learner (replay-learner.ts), loaded for those who use it. */
export async function replayLearner(options: ReplayOptions): Promise<readonly ReplayedUpdate[]> {
  return (await import('./replay-learner.ts')).replayLearner(options);
}
