/** The configuration file that a command was given. */
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { loadRunConfig } from '../config/load.ts';
import type { RunConfig } from '../config/run-config.ts';
import { messageOf, UserError } from '../core/errors.ts';
import { locatedEnv } from '../run/find-world.ts';

/** @param overrides `key.path=value` strings @throws {UserError} BAD_CONFIG for a file that cannot be read, or is wrong */
export function readConfigFile(path: string, overrides: readonly string[]): RunConfig {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (thrown) {
    const setting = /^[\w.]+=/.test(path) ? `; a setting needs its own --set: --set ${path}` : '';
    throw new UserError('BAD_CONFIG', `cannot read ${path}: ${messageOf(thrown)}${setting}`);
  }
  const config = loadRunConfig(text, path, overrides);
  return { ...config, env: locatedEnv(config.env, dirname(path)) };
}
