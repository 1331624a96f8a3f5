/** Options of an MCP world in a file of their own: `mcp:./switches.yaml` is a world. */
import { dirname } from 'node:path';
import { absolutePath } from '../../config/paths.ts';
import { readYaml } from '../../config/yaml-text.ts';
import { MAX_SETTINGS_BYTES, readText } from '../../core/bounded-file.ts';
import { describeValue } from '../../core/describe-value.ts';
import type { EnvOptions } from '../../core/env.ts';
import { UserError } from '../../core/errors.ts';
import { isRecord } from '../../core/record.ts';
import { FOLDER } from './options.ts';

/** Options that are paths; in a file they start from its folder. */
const PATHS = ['module', 'tasks', 'cwd'] as const;

/**
 * Reads the options. The command runs in the file's folder, unless `cwd` names another or it has a
 * folder of its own.
 * @throws {UserError} BAD_ARGUMENT for a file that cannot be read; BAD_CONFIG for one that holds no options
 */
export function readMcpFile(path: string): EnvOptions {
  const options = readYaml(readText(path, MAX_SETTINGS_BYTES), path) ?? {};
  if (!isRecord(options)) {
    throw new UserError('BAD_CONFIG', `${path}: expected the options of an MCP server, got ${describeValue(options)}`);
  }
  const folder = dirname(path);
  const paths = PATHS.flatMap((name) => {
    const given = options[name];
    return typeof given === 'string' ? [[name, absolutePath(given, folder)]] : [];
  });
  return {
    ...(JSON.stringify([options.command, options.env]).includes(FOLDER) ? {} : { cwd: folder }),
    ...options,
    ...Object.fromEntries(paths),
  };
}
