/** Start of a run, below `train`: everything that can be refused is checked first, then its actors are started. */
import {
  type Policy,
  type PreparedCluster,
  type PreparedRun,
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
import { listTrainTasks } from '../learning/evaluation/tasks.ts';
import type { HorizonState } from '../learning/schedule/horizon-schedule.ts';
import { fitCache } from '../policy/cache-room.ts';
import { fetchModel } from '../policy/pretrained/hub.ts';
import { connect } from '../policy/remote/connect.ts';
import { setUpPolicy } from '../policy/setup.ts';
import { localUrl } from '../runtime/module-url.ts';
import { readIdentity } from '../storage/run-identity.ts';
import { worldPrompt } from '../text/prompts/world-prompt.ts';
import { codecOf } from '../text/reading/codec-of.ts';
import { describeStartedServer } from '../world/mcp/options.ts';
import { describeEnv, loadWorld } from '../world/open-world.ts';
import { checkEnvServer } from '../world/remote/check-server.ts';
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
  const { env: world } = options.config;
  const module = await loadWorld(localUrl(options.envModule), world.id);
  const env = describeEnv(module, world.id, world.options);
  await checkEnvServer(options.config);
  const started = describeStartedServer(options.envModule);
  if (started !== undefined) onNotice(started);
  const tasks = listTrainTasks(env, options.config.tasks);
  if (learn && !policyKindOf(options.config).learns) {
    throw new UserError(
      'BAD_CONFIG',
      `policy.kind: '${options.config.policy.kind}' cannot learn; use ${kindsThat('learns')}`,
    );
  }
  const prompt = worldPrompt(module, world.options, env.description);
  const read = { view: module.view, prompt };
  await fetchModel(options.config.policy.path, onNotice);
  const policy = setUpPolicy<SchedulerState, HorizonState>(options.config, read, dir, checkpoint, initial);
  const teacher = learn ? await prepareTeacher(options.config, policy, read, onNotice) : undefined;
  const config = fitToMemory(options, policy);
  for (const notice of policy?.notices ?? []) onNotice(notice);
  const { isRemote, isLanguageModel } = policyKindOf(config);
  const cluster = options.cluster && (await prepareCluster({ ...options, config }, env, policy));
  if (policy && !isLanguageModel && !module.view) {
    onNotice(
      `${env.id} has no view of its own: the local policy reads it through the default one (${policy.codec.id}); a world's own view learns faster`,
    );
  }
  const { openai, apiKeyEnv } = config.policy;
  const server = isRemote ? await connect(config.policy, readApiKey(apiKeyEnv), module.view) : undefined;
  if (options.chaos) checkChaos(options.chaos, mode === 'serial' ? 'inline' : config.rollout.isolation);
  const chaos = options.chaos && new ChaosLedger(options.chaos);
  const isHere = config.rollout.envServer === undefined;
  return {
    options: { ...options, config },
    identity: readIdentity(dir),
    env,
    tasks,
    prompt,
    shared: isHere ? await module.share?.(world.options) : undefined,
    policy,
    teacher,
    server,
    view: policy?.codec.id ?? (server && openai.prompt === 'tokens' ? codecOf(module).id : undefined),
    chaos,
    onSaved: ({ ok, update }) => chaos?.checkpoint(update, ok),
    cluster,
  };
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
