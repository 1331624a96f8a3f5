import { resolve } from 'node:path';
import { registry } from '../../envs/registry.ts';
import { nearest } from '../config/nearest.ts';
import type { RunConfig } from '../config/run-config.ts';
import { hasWorlds, listWorlds, WORLDS } from '../config/worlds.ts';
import { AGENT } from '../core/agent-call.ts';
import type { Env, EnvOptions } from '../core/env.ts';
import { UserError } from '../core/errors.ts';
import { isMcpId, MCP } from '../core/tool-world.ts';
import type { World } from '../core/world.ts';
import { localUrl } from '../runtime/module-url.ts';
import {
  AGENTGYM,
  envLabel,
  isModulePath,
  isOpenEnvUrl,
  mcpFileOf,
  moduleAt,
  moduleChange,
  moduleUrl,
  OPENENV,
} from '../world/env-id.ts';
import { readMcpFile } from '../world/mcp/options-file.ts';
import { describeEnv, loadWorld, urlOfWorlds } from '../world/open-world.ts';
import { tokenVariable } from '../world/remote/options.ts';

/** Found world. */
export interface FoundWorld {
  /** URL of its module, for hosts and threads. */
  readonly url: URL;
  readonly world: World;
  /** Env for facts only (see `World.createEnv`): open sessions through hosts or `openWorld`. */
  readonly env: Env;
}

/** Ids of the worlds that this package ships. */
export function worldIds(): readonly string[] {
  return Object.keys(registry);
}

/**
 * Finds a world's module.
 * @param id of the registry, `agentgym`, `agent`, `mcp`, `mcp:<file>`, `openenv+<URL>`, or a module's path (relative to the working folder)
 * @throws {UserError} UNKNOWN_ENV, naming the nearest id; BAD_CONFIG where `agentgym` has no `world`
 */
export function worldUrl(id: string, options: EnvOptions = {}): URL {
  if (id === WORLDS) {
    throw new UserError(
      'BAD_CONFIG',
      'the configuration lists several worlds (worlds), and this plays one; give it a configuration with one of them (env, tasks, horizon)',
    );
  }
  if (id === AGENTGYM) return agentGymUrl(options);
  if (id === AGENT) return clientUrl('../gateway/agent-world.js', AGENT, options);
  if (isMcpId(id)) return mcpUrl(id, options);
  if (isOpenEnvUrl(id)) return openEnvUrl(id, options);
  if (Object.hasOwn(registry, id)) return registry[id]!;
  if (isModulePath(id)) return moduleUrl(id);
  const ids = [...Object.keys(registry), AGENTGYM, MCP];
  // A module beside: its path was meant, which needs a slash to differ from an id.
  const meant = moduleAt(resolve(id)) === undefined ? nearest(id, ids) : `./${id}`;
  throw new UserError(
    'UNKNOWN_ENV',
    `unknown env '${id}'; ${meant === undefined ? '' : `did you mean '${meant}'? `}Known: ${ids.join(', ')}, the path of a module (./my/env.mjs), or an OpenEnv server (openenv+http://host:8000)`,
  );
}

/** URL of the module of a run's world, or the one that stands for the modules of several. @throws {UserError} as `worldUrl` */
export function runUrl(config: RunConfig): URL {
  if (!hasWorlds(config)) return worldUrl(config.env.id, config.env.options);
  const worlds = listWorlds(config).map(({ name, config: { env } }) => [name!, worldUrl(env.id, env.options)] as const);
  return urlOfWorlds(new Map(worlds));
}

/** Short name of a run's world, or worlds, for names of runs. */
export function runLabel(config: RunConfig): string {
  return hasWorlds(config) ? WORLDS : envLabel(config.env.id);
}

/** Notices about users' modules that changed since a run was made. @throws {UserError} UNKNOWN_ENV where one is gone */
export function moduleChanges(config: RunConfig): string[] {
  return listWorlds(config).flatMap(({ config: { env } }) => moduleChange(env) ?? []);
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

/** URL of the AgentGym client, with the world whose dialect it speaks in its query. */
function agentGymUrl({ world }: EnvOptions): URL {
  if (typeof world !== 'string' || world === '' || world === AGENTGYM) {
    const known = Object.keys(registry).join(', ');
    throw new UserError(
      'BAD_CONFIG',
      `agentgym: options.world: name the world that the server has: ${known}, or the path of a module`,
    );
  }
  const url = new URL('../world/remote/agentgym-client.js', import.meta.url);
  url.searchParams.set('world', worldUrl(world).href);
  return url;
}

/** URL of the world of an MCP server; options beside those of a file come before them. */
function mcpUrl(id: string, options: EnvOptions): URL {
  const file = mcpFileOf(id);
  const given = file === undefined ? options : { ...readMcpFile(resolve(file)), ...options };
  return clientUrl('../world/mcp/mcp-world.js', MCP, given);
}

/** URL of a module that makes a world of its options, with them in the query. */
function clientUrl(module: string, name: string, options: EnvOptions): URL {
  const url = new URL(module, import.meta.url);
  url.searchParams.set(name, JSON.stringify(options));
  return url;
}

/** URL of the OpenEnv client, with the server in its query. */
function openEnvUrl(id: string, options: EnvOptions): URL {
  const server = id.replace(OPENENV, '');
  if (!URL.canParse(server)) throw new UserError('UNKNOWN_ENV', `'${id}': expected e.g. openenv+http://127.0.0.1:8000`);
  const url = new URL('../world/remote/openenv-client.js', import.meta.url);
  url.searchParams.set('server', server);
  url.searchParams.set('token', tokenVariable(options));
  return url;
}
