/** Worlds by name, for every command: an id of the registry, `agentgym`, or the path of a user's own module. */
import { existsSync, statSync } from 'node:fs';
import { isAbsolute, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { closest } from 'fastest-levenshtein';
import { registry } from '../../envs/registry.ts';
import type { Env, EnvOptions } from '../core/env.ts';
import { UserError } from '../core/errors.ts';
import type { World } from '../core/world.ts';
import { localUrl } from '../runtime/thread.ts';
import { describeEnv, loadWorld } from '../world/open-world.ts';

/** Any world behind an AgentGym server; `options.world` names it. */
const AGENTGYM = 'agentgym';
const MODULE_NAMES = ['index.mjs', 'index.js'];

/** A world that was found. */
export interface FoundWorld {
  /** URL of its module, for hosts and threads. */
  readonly url: URL;
  readonly world: World;
  /** Facts only (see `World.createEnv`): open sessions through hosts or `openWorld`. */
  readonly env: Env;
}

/** Whether an env id is the path of a module: ids have neither slashes nor dots. */
export function isModulePath(id: string): boolean {
  return /[\\/.:]/.test(id);
}

/**
 * An env id with a module's path made absolute; an id of the registry stays as it is.
 * @param folder that relative paths start from
 */
export function resolvedEnvId(id: string, folder: string): string {
  if (!isModulePath(id)) return id;
  if (id.startsWith('file:')) return fileURLToPath(id);
  return isAbsolute(id) ? id : resolve(folder, id);
}

/**
 * Finds a world's module.
 * @param id of the registry, `agentgym`, or a module's path (relative to the working folder)
 * @throws {UserError} UNKNOWN_ENV, naming the nearest id; BAD_CONFIG where `agentgym` is not told which world
 */
export function worldUrl(id: string, options: EnvOptions = {}): URL {
  if (id === AGENTGYM) return agentGymUrl(options);
  if (Object.hasOwn(registry, id)) return registry[id]!;
  if (isModulePath(id)) return moduleUrl(id);
  const ids = [...Object.keys(registry), AGENTGYM];
  throw new UserError(
    'UNKNOWN_ENV',
    `unknown env '${id}'; did you mean '${closest(id, ids)}'? Known: ${ids.join(', ')}, or the path of a module (./my/env.mjs)`,
  );
}

/**
 * Finds and loads a world with rules, and reads its facts.
 * @throws {UserError} UNKNOWN_ENV, BAD_ARGUMENT, BAD_CONFIG
 */
export async function findWorld(id: string, options: EnvOptions = {}): Promise<FoundWorld> {
  const url = worldUrl(id, options);
  const world = await loadWorld(localUrl(url), id);
  return { url, world, env: describeEnv(world, id, options) };
}

/** The AgentGym client, told in its query which world's dialect it speaks. */
function agentGymUrl({ world }: EnvOptions): URL {
  if (typeof world !== 'string' || world === '' || world === AGENTGYM) {
    const known = Object.keys(registry).join(', ');
    throw new UserError(
      'BAD_CONFIG',
      `agentgym: options.world: say which world the server has: ${known}, or the path of a module`,
    );
  }
  const url = new URL('../remote/env/agentgym.js', import.meta.url);
  url.searchParams.set('world', worldUrl(world).href);
  return url;
}

function moduleUrl(id: string): URL {
  const path = resolvedEnvId(id, process.cwd());
  const candidates = [path, ...MODULE_NAMES.map((name) => join(path, name))];
  const file = candidates.find((one) => existsSync(one) && statSync(one).isFile());
  if (file !== undefined) return pathToFileURL(file);
  throw new UserError('UNKNOWN_ENV', `there is no module at ${path}; write one with \`longplay new-env\``);
}
