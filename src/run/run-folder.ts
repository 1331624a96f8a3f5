/** Folder of a run: `config.yaml`, `run.json`, `metrics.jsonl`, `traces/`, `checkpoints/`, `results.json`. */
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { stringify } from 'yaml';
import { loadRunConfig } from '../config/load.ts';
import type { RunConfig } from '../config/run-config.ts';
import { mapEnvs, omitFilled } from '../config/worlds.ts';
import { readText } from '../core/bounded-file.ts';
import { messageOf, UserError } from '../core/errors.ts';
import { makeFolder } from '../storage/atomic-file.ts';
import { IDENTITY_FILE, readIdentity, renderIdentity } from '../storage/run-identity.ts';
import { envOfRun, locateEnv, pinEnv } from '../world/env-id.ts';

const FORMAT_LINE = '# longplay run configuration, format 1';

/**
 * Makes a new run folder with its resolved configuration and its identity. It appears whole or not at all.
 * @param files further files, by name
 * @returns the configuration as it was written: with the hash of a user's own world
 * @throws {UserError} RUN_EXISTS, or NO_PERMISSION with the system's words
 */
export function createRunFolder(
  dir: string,
  config: RunConfig,
  files: Readonly<Record<string, string>> = {},
): RunConfig {
  if (existsSync(dir)) {
    throw new UserError(
      'RUN_EXISTS',
      `${dir} exists already; choose another name (--name), continue it (longplay train --resume ${dir}), or remove it`,
    );
  }
  const pinned = mapEnvs(config, (env) => pinEnv(env, dir));
  const { init } = config.policy;
  const all = {
    'config.yaml': `${FORMAT_LINE}\n${stringify(omitFilled(pinned))}`,
    [IDENTITY_FILE]: renderIdentity(config.seed, pinned, init === undefined ? undefined : readIdentity(init)),
    ...files,
  };
  const beside = `${dir}.new-${process.pid}`;
  try {
    makeFolder(dirname(dir));
    mkdirSync(beside);
    for (const [name, text] of Object.entries(all)) writeFileSync(join(beside, name), text);
    renameSync(beside, dir);
    return pinned;
  } catch (thrown) {
    discard(beside);
    throw new UserError(
      'NO_PERMISSION',
      `cannot make the run folder ${dir}: ${messageOf(thrown)}; choose another place with --runs`,
    );
  }
}

/** Removes a fresh run folder that came to nothing; one that cannot be removed stays. */
export function discard(dir: string): void {
  try {
    rmSync(dir, { recursive: true, force: true });
  } catch {
    // A folder that could not be made cannot always be removed either; the error that led here is the one to report.
  }
}

/**
 * Reads the configuration of a run.
 * @throws {UserError} UNKNOWN_RUN when there is no run; BAD_CONFIG when its configuration is damaged
 */
export function readRunConfig(dir: string, overrides: readonly string[] = []): RunConfig {
  const path = join(dir, 'config.yaml');
  let text: string;
  try {
    text = readText(path);
  } catch (thrown) {
    const why = existsSync(path) ? `its configuration cannot be read: ${messageOf(thrown)}` : 'it has no config.yaml';
    throw new UserError('UNKNOWN_RUN', `${dir} is no run: ${why}; runs are made by \`longplay train\``);
  }
  const config = loadRunConfig(text, path, overrides);
  return mapEnvs(config, (env) => envOfRun(locateEnv(env, process.cwd()), dir));
}

/** Folder of the run that a run, its traces folder or a trace file belongs to; the path itself where that is unknown. */
export function runOf(path: string): string {
  const folders = [path, dirname(resolve(path)), dirname(dirname(resolve(path)))];
  return folders.find((one) => existsSync(join(one, 'config.yaml'))) ?? path;
}

/** Folder of a new run. @throws {UserError} BAD_ARGUMENT for a name that is a path: it would lie elsewhere than in `runs` */
export function runDir(runs: string, name: string): string {
  if (/^[^/\\\p{C}]+$/u.test(name) && name !== '.' && name !== '..') return join(runs, name);
  throw new UserError(
    'BAD_ARGUMENT',
    `--name '${name}': expected a name without slashes; --runs names where runs live`,
  );
}

/** Free name, which no run in `runs` has yet: `base`, `base-2`, … */
export function freeRunName(runs: string, base: string): string {
  if (!existsSync(join(runs, base))) return base;
  for (let n = 2; ; n++) if (!existsSync(join(runs, `${base}-${n}`))) return `${base}-${n}`;
}
