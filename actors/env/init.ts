/** Options of the env pool, picked from the options of a run. */
import type { ChaosLedger } from '../../src/chaos/chaos-ledger.ts';
import type { RunConfig } from '../../src/config/run-config.ts';
import type { Clock } from '../../src/core/clock.ts';
import type { Env } from '../../src/core/env.ts';
import { UserError } from '../../src/core/errors.ts';
import { tokenVariable } from '../../src/remote/env/options.ts';
import { isServedWorld } from '../../src/run/find-world.ts';
import type { ActorSystem } from '../../src/runtime/actor.ts';
import type { RunOptions } from '../options.ts';
import { statedBounds } from './check.ts';
import type { EnvPoolOptions } from './env-pool.ts';
import type { HostVariables } from './host-environment.ts';
import type { HostFactory } from './hosts.ts';
import type { EnvSpec } from './protocol.ts';

export function poolOptions(
  options: RunOptions,
  env: Env,
  system: ActorSystem,
  chaos: ChaosLedger | undefined,
  shared?: unknown,
  hosts?: HostFactory,
): EnvPoolOptions {
  const { config, mode, cluster } = options;
  const { envThreads, isolation, stepDeadlineMs, openDeadlineMs, maxRestarts, heapMb } = config.rollout;
  return {
    envs: [{ ...hostedEnv(options, env), shared }],
    // Places of other machines are for those who play: a learner whose workers do keeps one, should it have to.
    threads: hosts && cluster?.localGroups === 0 ? 1 : envThreads,
    isolation: mode === 'serial' ? 'inline' : isolation,
    hosts,
    stepDeadlineMs,
    openDeadlineMs,
    maxRestarts,
    resourceLimits: { maxOldGenerationSizeMb: heapMb },
    variables: hostVariables(config),
    clock: system.clock,
    outside: (work) => system.outside(work),
    chaos,
  };
}

/**
 * Hosts on other machines; undefined where the run has its own.
 * @throws {UserError} BAD_CONFIG where they are to be used and nobody says where they are
 */
export async function remoteHosts(
  { config, mode, remoteHosts: at, onNotice = () => {} }: RunOptions,
  env: Env,
  clock: Clock,
): Promise<HostFactory | undefined> {
  const { isolation, envServer, heapMb } = config.rollout;
  if (isolation !== 'remote' || mode === 'serial') return undefined;
  if (envServer !== undefined) {
    throw new UserError(
      'BAD_CONFIG',
      'rollout.isolation: remote beside rollout.envServer: both play elsewhere; keep one',
    );
  }
  if (!at) {
    throw new UserError(
      'BAD_CONFIG',
      'rollout.isolation: remote: say at which NATS server the env hosts are, --env-hosts nats://127.0.0.1:4222 (or --cluster)',
    );
  }
  // Loaded for those who use it.
  const [{ RemoteHosts }, { hostIdentity }] = await Promise.all([
    import('./remote-hosts.ts'),
    import('./host-identity.ts'),
  ]);
  return new RemoteHosts({
    switchboard: await at.connect(),
    clock,
    identity: hostIdentity(config.env),
    facts: { replay: env.replay === 'never' ? 'never' : 'exact', bounds: statedBounds(env) },
    heapMb,
    variables: hostVariables(config),
    command: at.command,
    onNotice,
  });
}

/** Keys that the configuration names are none of a world's business; the token of its own server is. */
function hostVariables({ env, policy, rollout }: RunConfig): HostVariables {
  const served = isServedWorld(env.id) || rollout.envServer !== undefined;
  return {
    secret: [policy.openai.apiKeyEnv, policy.server.apiKeyEnv],
    passed: [...rollout.hostVariables, ...(served ? [tokenVariable(env.options)] : [])],
  };
}

/** Env that hosts load: the world itself, or a client of the server that has it. */
export function hostedEnv({ config, envModule }: RunOptions, env: Env): EnvSpec {
  const { id, rewardRange, maxObservationChars, replay } = env;
  const { options } = config.env;
  const { envServer: url, stepDeadlineMs } = config.rollout;
  if (url === undefined) return { id, url: envModule, options };
  if (Object.keys(options).length > 0) {
    throw new UserError('BAD_CONFIG', 'env.options: the env server has its own; leave them out with rollout.envServer');
  }
  const deadlineMs = Math.max(1, 0.9 * stepDeadlineMs);
  return {
    id,
    url: new URL('../../src/remote/env/openenv.js', import.meta.url),
    options: { url, world: id, rewardRange, maxObservationChars, deadlineMs, ...(replay ? { replay } : {}) },
  };
}
