/** World of a trace, as its header or its episodes name it. */
import { relative, resolve } from 'node:path';
import { findEnvOf } from '../config/worlds.ts';
import { isRecord, recordOf } from '../core/record.ts';
import { type ConfiguredEnv, envOfRun } from '../world/env-id.ts';
import { runOf } from './run-folder.ts';

/**
 * World of a trace as it is found today: the run's own, with its options, else the one that a task names. Headers are not to be
 * believed.
 * @param path of the trace, beside which a module that moved with its run is looked for
 * @param named env id of the task
 */
export function findTracedEnv(config: unknown, path: string, named: string): ConfiguredEnv {
  return envOfRun(readTracedEnv(config, named), runOf(path));
}

/** World of a trace as its header names it. */
export function readTracedEnv(config: unknown, named: string): ConfiguredEnv {
  const { id, options, sha256, fromRun } = recordOf(findEnvOf(config, named)) ?? {};
  if (typeof id !== 'string') return { id: named, options: {} };
  return {
    id,
    options: recordOf(options) ?? {},
    ...(typeof sha256 === 'string' ? { sha256 } : {}),
    ...(typeof fromRun === 'string' ? { fromRun } : {}),
  };
}

/**
 * Configuration of a trace for a copy elsewhere: the way to a user's module starts from the new folder.
 * @param path of the trace that it comes from
 * @param out folder of the copy
 */
export function relocateEnv(config: unknown, path: string, out: string): unknown {
  if (!isRecord(config) || !isRecord(config.env)) return config;
  const { fromRun } = config.env;
  if (typeof fromRun !== 'string') return config;
  return { ...config, env: { ...config.env, fromRun: relative(resolve(out), resolve(runOf(path), fromRun)) } };
}
