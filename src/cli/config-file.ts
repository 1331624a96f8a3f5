/** Configuration file of a command. */
import { dirname } from 'node:path';
import { loadRunConfig } from '../config/load.ts';
import { resolvePolicyPaths, resolveTeacherPath } from '../config/paths.ts';
import type { RunConfig } from '../config/run-config.ts';
import { mapEnvs } from '../config/worlds.ts';
import { readText } from '../core/bounded-file.ts';
import { messageOf, UserError } from '../core/errors.ts';
import { locateEnv } from '../world/env-id.ts';

/**
 * Reads a configuration file; names of earlier versions are accepted, with a notice on stderr.
 * @param overrides `key.path=value` strings
 * @throws {UserError} BAD_CONFIG for a file that cannot be read, or is wrong
 */
export function readConfigFile(path: string, overrides: readonly string[]): RunConfig {
  let text: string;
  try {
    text = readText(path);
  } catch (thrown) {
    const setting = /^[\w.]+=/.test(path) ? `; a setting needs its own --set: --set ${path}` : '';
    throw new UserError('BAD_CONFIG', `cannot read ${messageOf(thrown)}${setting}`);
  }
  const config = loadRunConfig(text, path, overrides);
  return locatePaths(config, path);
}

/** Configuration with its paths made absolute: a world's start from the file, those of models from the working folder. */
export function locatePaths(config: RunConfig, path: string): RunConfig {
  const here = process.cwd();
  return {
    ...mapEnvs(config, (env) => locateEnv(env, dirname(path))),
    policy: resolvePolicyPaths(config.policy, here),
    learner: resolveTeacherPath(config.learner, here),
  };
}
