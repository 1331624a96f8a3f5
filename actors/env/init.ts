/** Options of the env pool, picked from the options of a run. */

import type { ChaosLedger } from '../../src/chaos/chaos-ledger.ts';
import type { RunConfig } from '../../src/config/run-config.ts';
import { UserError } from '../../src/core/errors.ts';
import type { ActorSystem } from '../../src/runtime/actor.ts';
import { isServedWorld } from '../../src/world/env-id.ts';
import { listHostVariables } from '../../src/world/mcp/options.ts';
import { tokenVariable } from '../../src/world/remote/options.ts';
import type { PreparedWorld, RunOptions } from '../options.ts';
import type { EnvPoolOptions } from './env-pool.ts';
import type { EnvSpec } from './protocol.ts';

/** World that env hosts play. */
export type HostedWorld = Pick<PreparedWorld, 'config' | 'env' | 'module' | 'shared'>;

export function poolOptions(
  options: Pick<RunOptions, 'config' | 'mode' | 'limits'>,
  worlds: readonly HostedWorld[],
  system: ActorSystem,
  chaos: ChaosLedger | undefined,
): EnvPoolOptions {
  const { config, mode, limits } = options;
  const { envThreads, isolation, stepDeadlineMs, openDeadlineMs, heapMb } = config.rollout;
  return {
    envs: worlds.map((world) => ({ ...selectHostedEnv(world), shared: world.shared })),
    threads: envThreads,
    isolation: mode === 'serial' ? 'inline' : isolation,
    stepDeadlineMs,
    openDeadlineMs,
    maxRestarts: limits?.maxRestarts,
    resourceLimits: { maxOldGenerationSizeMb: heapMb },
    variables: {
      secret: listSecrets(config),
      passed: [...new Set([...config.rollout.hostVariables, ...worlds.flatMap(listPassed)])],
    },
    clock: system.clock,
    outside: (work) => system.outside(work),
    chaos,
  };
}

/** Headers of OpenTelemetry receivers, which hold keys although the name does not look like it. */
const OTEL_HEADERS = 'OTEL_EXPORTER_OTLP_HEADERS';

/** Variables that the configuration names for keys, which are none of a world's business. */
function listSecrets({ learner, metrics, policy }: RunConfig): readonly string[] {
  const named = [learner.ranking?.apiKeyEnv, metrics.otel?.headersEnv, metrics.mlflow?.tokenEnv];
  const { teacher } = learner.distillation ?? {};
  if (teacher?.type === 'server') named.push(teacher.apiKeyEnv);
  return [policy.apiKeyEnv, OTEL_HEADERS, ...named.filter((name) => name !== undefined)];
}

/** Variables that a world gets: the token of its own server, and those that an MCP world's options name. */
function listPassed({ config: { env, rollout }, module }: HostedWorld): readonly string[] {
  const served = isServedWorld(env.id) || rollout.envServer !== undefined;
  return [...(served ? [tokenVariable(env.options)] : []), ...listHostVariables(module)];
}

/** Env that hosts load: the world itself, or a client of the server that has it. */
export function selectHostedEnv({ config, module, env }: Omit<HostedWorld, 'shared'>): EnvSpec {
  const { id, rewardRange, maxObservationChars, replay } = env;
  const { options } = config.env;
  const { envServer: url, stepDeadlineMs } = config.rollout;
  if (url === undefined) return { id, url: module, options };
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
