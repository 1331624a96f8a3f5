/** The configuration file that a command was given. */
import { readFileSync } from 'node:fs';
import { loadRunConfig } from '../config/load.ts';
import type { RunConfig } from '../config/run-config.ts';
import { messageOf, UserError } from '../core/errors.ts';

/** @param overrides `key.path=value` strings @throws {UserError} BAD_CONFIG for a file that cannot be read, or is wrong */
export function readConfigFile(path: string, overrides: readonly string[]): RunConfig {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (thrown) {
    throw new UserError('BAD_CONFIG', `cannot read ${path}: ${messageOf(thrown)}`);
  }
  return loadRunConfig(text, path, overrides);
}
