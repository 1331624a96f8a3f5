/** Ids of worlds: a name of the registry, a server's, or the path of a user's own module, as a run records it. */
import { createHash } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { basename, dirname, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { absolutePath } from '../config/paths.ts';
import { AGENT } from '../core/agent-call.ts';
import { MAX_SETTINGS_BYTES, readBounded } from '../core/bounded-file.ts';
import type { EnvOptions } from '../core/env.ts';
import { UserError } from '../core/errors.ts';
import { isMcpId, MCP } from '../core/tool-world.ts';

/** Id of any world behind an AgentGym server; `options.world` names it. */
export const AGENTGYM = 'agentgym';
/** Beginning of the URL of an OpenEnv server. */
export const OPENENV = /^openenv\+(?=https?:\/\/)/;
/** Endings of what a path may leave out: of a file, and of the folder that `new-env` writes. */
const MODULE_ENDINGS = ['', '.mjs', '.js', '/env.mjs', '/env.js', '/index.mjs', '/index.js'];

/** True for an env id that is the path of a module: ids have neither slashes nor dots, and a server's URL is no path. */
export function isModulePath(id: string): boolean {
  return /[\\/.:]/.test(id) && !isOpenEnvUrl(id);
}

/** True for an env id that is the URL of an OpenEnv server. */
export function isOpenEnvUrl(id: string): boolean {
  return OPENENV.test(id);
}

/** True for an env id of a world that is played through a server. */
export function isServedWorld(id: string): boolean {
  return id === AGENTGYM || isOpenEnvUrl(id);
}

/** Path of the file with the options of an MCP world, in an id like `mcp:./switches.yaml`; undefined in any other id. */
export function mcpFileOf(id: string): string | undefined {
  return isMcpId(id) && id !== MCP ? id.slice(MCP.length + 1) : undefined;
}

/**
 * Env id with a module's path made absolute; an id of the registry stays as it is.
 * @param folder that relative paths start from
 */
export function resolveEnvId(id: string, folder: string): string {
  if (!isModulePath(id)) return id;
  const file = mcpFileOf(id);
  if (file !== undefined) return `${MCP}:${absolutePath(file, folder)}`;
  return id.startsWith('file:') ? fileURLToPath(id) : absolutePath(id, folder);
}

/** World of a configuration. */
export interface ConfiguredEnv {
  readonly id: string;
  readonly options: EnvOptions;
  /** Hash of a user's module as it was when the run was made. */
  readonly sha256?: string | undefined;
  /** Path of a user's module from the run's folder. */
  readonly fromRun?: string | undefined;
}

/**
 * World of a configuration, with paths of modules made absolute.
 * @param folder of the configuration's file
 */
export function locateEnv<E extends ConfiguredEnv>(env: E, folder: string): E {
  const { world } = env.options;
  const located = { ...env, id: resolveEnvId(env.id, folder) };
  if (hasModule(env)) return { ...located, options: locateModule(env.options, folder) };
  if (env.id !== AGENTGYM || typeof world !== 'string') return located;
  return { ...located, options: { ...env.options, world: resolveEnvId(world, folder) } };
}

/** True for a world whose options name the user's module and tasks. */
function hasModule({ id }: Pick<ConfiguredEnv, 'id'>): boolean {
  return id === AGENT || isMcpId(id);
}

/** Options of such a world with the paths of its module, its tasks and its working folder made absolute. */
function locateModule(options: EnvOptions, folder: string): EnvOptions {
  const { module, tasks, cwd } = options;
  return {
    ...options,
    ...(typeof cwd === 'string' ? { cwd: absolutePath(cwd, folder) } : {}),
    ...(typeof module === 'string' ? { module: absolutePath(module, folder) } : {}),
    ...(typeof tasks === 'string' ? { tasks: absolutePath(tasks, folder) } : {}),
  };
}

/**
 * True for a world whose options name what is started: an agent, an MCP server, a module behind an AgentGym server. Another
 * machine must not start it because a configuration says so.
 */
export function namesPrograms({ id, options }: ConfiguredEnv): boolean {
  const { world } = options;
  if (isMcpId(id)) return id === MCP || Object.keys(options).length > 0;
  return id === AGENT || (id === AGENTGYM && typeof world === 'string' && isModulePath(world));
}

/** Path of the user's module, or file of options, that a world is made of; undefined where there is none. */
function modulePath({ id, options }: ConfiguredEnv): string | undefined {
  const file = mcpFileOf(id);
  if (file !== undefined) return file;
  if (hasModule({ id })) return typeof options.module === 'string' ? options.module : undefined;
  return isModulePath(id) ? id : undefined;
}

/** World with another path of its module. */
function withModule<E extends ConfiguredEnv>(env: E, path: string): E {
  if (mcpFileOf(env.id) !== undefined) return { ...env, id: `${MCP}:${path}` };
  return hasModule(env) ? { ...env, options: { ...env.options, module: path } } : { ...env, id: path };
}

/**
 * World of a new run, with the hash of its module and the way to it where that is a user's own.
 * @param dir the run's folder
 */
export function pinEnv<E extends ConfiguredEnv>(env: E, dir: string): E {
  const path = modulePath(env);
  if (path === undefined) return env;
  const url = moduleUrl(path);
  return { ...env, sha256: hashOf(url), fromRun: relative(resolve(dir), fileURLToPath(url)) };
}

/** World of a run as it is found today: a user's module that was moved together with the run lies elsewhere now. */
export function envOfRun<E extends ConfiguredEnv>(env: E, dir: string): E {
  const path = modulePath(env);
  if (env.fromRun === undefined || path === undefined || moduleAt(resolveEnvId(path, process.cwd())) !== undefined) {
    return env;
  }
  const moved = resolve(dir, env.fromRun);
  return moduleAt(moved) === undefined ? env : withModule(env, moved);
}

/**
 * Change of a user's module since a run was made, as a sentence; undefined where nothing has changed.
 * @throws {UserError} UNKNOWN_ENV where it is gone
 */
export function moduleChange(env: ConfiguredEnv): string | undefined {
  const { sha256 } = env;
  if (sha256 === undefined) return undefined;
  const id = modulePath(env) ?? env.id;
  const path = moduleAt(resolveEnvId(id, process.cwd()));
  if (path === undefined) {
    throw new UserError(
      'UNKNOWN_ENV',
      `the run's world, the module ${id}, is gone; put it back, or name its place: --env <path> (replay, rollout), --set env.id=<path> (eval, train --resume)`,
    );
  }
  if (hashOf(pathToFileURL(path)) === sha256) return undefined;
  return `${id} has changed since the run was made: its episodes may differ from those recorded`;
}

/**
 * Short name of a world, for names of runs: an id, the module's file name (its folder's, of an `env` or `index`), or the
 * last part of a server's path.
 */
export function envLabel(id: string): string {
  if (isOpenEnvUrl(id))
    return /\/([a-z][a-z0-9-]*)\/?$/.exec(new URL(id.replace(OPENENV, '')).pathname)?.[1] ?? 'openenv';
  if (!isModulePath(id)) return id;
  const file = mcpFileOf(id);
  if (file !== undefined) return basename(file).replace(/\.(ya?ml|json)$/, '');
  const name = basename(id).replace(/\.[cm]?[jt]s$/, '');
  return name === 'env' || name === 'index' ? basename(dirname(resolve(id))) : name;
}

function hashOf(url: URL): string {
  return createHash('sha256').update(readBounded(url, MAX_SETTINGS_BYTES)).digest('hex');
}

/**
 * URL of a user's module.
 * @throws {UserError} UNKNOWN_ENV where there is no such file
 */
export function moduleUrl(id: string): URL {
  const path = resolveEnvId(id, process.cwd());
  const file = moduleAt(path);
  if (file !== undefined) return pathToFileURL(file);
  throw new UserError('UNKNOWN_ENV', `there is no module at ${path}; write one with \`longplay new-env\``);
}

/** File of the module that a path means; undefined where there is none. */
export function moduleAt(path: string): string | undefined {
  return MODULE_ENDINGS.map((ending) => path + ending).find((one) => existsSync(one) && statSync(one).isFile());
}
