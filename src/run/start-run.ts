/** Start of a run, below `train`: everything that can be refused is checked first, then its actors are started. */
import {
  type Policy,
  type PreparedCluster,
  type PreparedRun,
  type PreparedWorld,
  type Run,
  type RunOptions,
  type SchedulerState,
  spawnRun,
} from '../../actors/tree.ts';
import { ChaosLedger } from '../chaos/chaos-ledger.ts';
import { checkChaos } from '../chaos/spec.ts';
import { kindsThat, policyKindOf } from '../config/policy-kinds.ts';
import type { Env } from '../core/env.ts';
import { UserError } from '../core/errors.ts';
import { readApiKey } from '../http/api-key.ts';
import type { HorizonState } from '../learning/schedule/horizon-schedule.ts';
import { fitCache } from '../policy/cache-room.ts';
import { fetchModel } from '../policy/pretrained/hub.ts';
import { connect } from '../policy/remote/connect.ts';
import { setUpPolicy } from '../policy/setup.ts';
import { readIdentity } from '../storage/run-identity.ts';
import { codecOf } from '../text/reading/codec-of.ts';
import { defaultView } from '../text/reading/default-view.ts';
import { describeStartedServer } from '../world/mcp/options.ts';
import { checkEnvServer } from '../world/remote/check-server.ts';
import { type ReadWorlds, readingOf, readWorlds } from './read-worlds.ts';
import { prepareTeacher } from './teacher.ts';

/**
 * Starts every actor of a run; training or an evaluation begins when the run is asked to.
 * @throws {UserError} for a configuration, checkpoint, world or server that cannot be used; nothing is then left running
 */
export async function startRun(options: RunOptions): Promise<Run> {
  return spawnRun(await prepareRun(options));
}

/** Prepares a run: reads and checks all that it is made from; no engine and no actor is started. @throws {UserError} as `startRun` does */
export async function prepareRun(options: RunOptions): Promise<PreparedRun> {
  const { mode, learn, dir, checkpoint, initial, onNotice = () => {} } = options;
  const worlds = await readWorlds(options.config, options.envModule);
  const [{ world, env }] = worlds;
  for (const { config: own, module } of worlds) {
    await checkEnvServer(own);
    const started = describeStartedServer(module);
    if (started !== undefined) onNotice(started);
  }
  if (learn && !policyKindOf(options.config).learns) {
    throw new UserError(
      'BAD_CONFIG',
      `policy.kind: '${options.config.policy.kind}' cannot learn; use ${kindsThat('learns')}`,
    );
  }
  await fetchModel(options.config.policy.path, onNotice);
  const reading = readingOf(options.config, worlds);
  const policy = setUpPolicy<SchedulerState, HorizonState>(options.config, reading, dir, checkpoint, initial);
  const teacher = learn ? await prepareTeacher(options.config, policy, reading, onNotice) : undefined;
  const config = fitToMemory(options, policy);
  for (const notice of policy?.notices ?? []) onNotice(notice);
  const { isRemote, isLanguageModel } = policyKindOf(config);
  const cluster = options.cluster && (await prepareCluster({ ...options, config }, env, policy));
  for (const one of worlds) {
    if (!policy || isLanguageModel || one.world.view) continue;
    onNotice(
      `${one.env.id} has no view of its own: the local policy reads it through the default one (${defaultView.id}); a world's own view learns faster`,
    );
  }
  const { openai, apiKeyEnv } = config.policy;
  const server = isRemote ? await connect(config.policy, readApiKey(apiKeyEnv), world.view) : undefined;
  if (options.chaos) checkChaos(options.chaos, mode === 'serial' ? 'inline' : config.rollout.isolation);
  const chaos = options.chaos && new ChaosLedger(options.chaos);
  const isHere = config.rollout.envServer === undefined;
  return {
    options: { ...options, config },
    identity: readIdentity(dir),
    worlds: await shareWorlds(worlds, isHere),
    policy,
    teacher,
    server,
    view: policy?.codec.id ?? (server && openai.prompt === 'tokens' ? codecOf({ view: world.view }).id : undefined),
    chaos,
    onSaved: ({ ok, update }) => chaos?.checkpoint(update, ok),
    cluster,
  };
}

/** Worlds with the memory that their env hosts share. */
async function shareWorlds(worlds: ReadWorlds, isHere: boolean): Promise<PreparedRun['worlds']> {
  const shared: PreparedWorld[] = [];
  for (const { world, ...read } of worlds) {
    shared.push({ ...read, shared: isHere ? await world.share?.(read.config.env.options) : undefined });
  }
  const [first, ...others] = shared;
  return [first!, ...others];
}

/** Configuration under which a policy of this process has room for its episodes. */
function fitToMemory({ config, onNotice }: RunOptions, policy: Policy | undefined): RunOptions['config'] {
  if (!policy || policyKindOf(config).isServed) return config; // the server has the cache
  const fitted = fitCache(config, policy.model);
  if (fitted.notice !== undefined) onNotice?.(fitted.notice);
  return fitted.config;
}

/** Prepares the learner's side of a cluster, which is loaded for those who use it. */
async function prepareCluster(
  options: RunOptions,
  env: Env,
  policy: Policy | undefined,
): Promise<PreparedCluster | undefined> {
  const { checkClusterRun } = await import('../cluster/check-run.ts');
  const { createEpisodeCheck } = await import('../cluster/episode-check.ts');
  const { clusterIdentity } = await import('../cluster/identity.ts');
  const { digestOf, encodeWeights } = await import('../learning/learner/weights-file.ts');
  const { config, cluster } = options;
  checkClusterRun({ ...options, verify: cluster?.verify }, env, policy?.model);
  if (!policy) return undefined;
  const { codec, model, params } = policy;
  const { decoder, masked } = config.policy;
  const bytes = encodeWeights(model, params);
  return {
    identity: clusterIdentity(policy, config),
    first: {
      version: params.version,
      digest: digestOf(bytes),
      bytes: policyKindOf(config).isServed ? new Uint8Array() : bytes,
    },
    check: createEpisodeCheck({ env, codec, maxPositions: model.maxPositions, decoder, masked }),
  };
}
