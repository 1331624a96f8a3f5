/** Options of the env pool, picked from the options of a run. */
import type { ChaosLedger } from '../../src/chaos/chaos-ledger.ts';
import type { RunConfig } from '../../src/config/run-config.ts';
import type { Env } from '../../src/core/env.ts';
import { UserError } from '../../src/core/errors.ts';
import type { ActorSystem } from '../../src/runtime/actor.ts';
import { isServedWorld } from '../../src/world/env-id.ts';
import { listHostVariables } from '../../src/world/mcp/options.ts';
import { tokenVariable } from '../../src/world/remote/options.ts';
import type { RunOptions } from '../options.ts';
import type { EnvPoolOptions } from './env-pool.ts';
import type { HostVariables } from './host-environment.ts';
import type { EnvSpec } from './protocol.ts';

export function poolOptions(
  options: RunOptions,
  env: Env,
  system: ActorSystem,
  chaos: ChaosLedger | undefined,
  shared?: unknown,
): EnvPoolOptions {
  const { config, mode, limits } = options;
  const { envThreads, isolation, stepDeadlineMs, openDeadlineMs, heapMb } = config.rollout;
  return {
    envs: [{ ...selectHostedEnv(options, env), shared }],
    threads: envThreads,
    isolation: mode === 'serial' ? 'inline' : isolation,
    stepDeadlineMs,
    openDeadlineMs,
    maxRestarts: limits?.maxRestarts,
    resourceLimits: { maxOldGenerationSizeMb: heapMb },
    variables: hostVariables(config, options.envModule),
    clock: system.clock,
    outside: (work) => system.outside(work),
    chaos,
  };
}

/** Headers of OpenTelemetry receivers, which hold keys although the name does not look like it. */
const OTEL_HEADERS = 'OTEL_EXPORTER_OTLP_HEADERS';

/** Keys that the configuration names are none of a world's business; the token of its own server is, and so are the
 * variables that an MCP world's options name. */
function hostVariables({ env, learner, metrics, policy, rollout }: RunConfig, envModule: URL): HostVariables {
  const served = isServedWorld(env.id) || rollout.envServer !== undefined;
  const named = [learner.ranking?.apiKeyEnv, metrics.otel?.headersEnv, metrics.mlflow?.tokenEnv];
  return {
    secret: [policy.apiKeyEnv, OTEL_HEADERS, ...named.filter((name) => name !== undefined)],
    passed: [
      ...rollout.hostVariables,
      ...(served ? [tokenVariable(env.options)] : []),
      ...listHostVariables(envModule),
    ],
  };
}

/** Env that hosts load: the world itself, or a client of the server that has it. */
export function selectHostedEnv({ config, envModule }: RunOptions, env: Env): EnvSpec {
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
    url: new URL('../../src/world/remote/openenv-client.js', import.meta.url),
    options: { url, world: id, rewardRange, maxObservationChars, deadlineMs, ...(replay ? { replay } : {}) },
  };
}
