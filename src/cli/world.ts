/** Finding a world by id, for every command. */
import { closest } from 'fastest-levenshtein';
import { registry } from '../../envs/registry.ts';
import type { Env, EnvModule, EnvOptions } from '../core/env.ts';
import { UserError } from '../core/errors.ts';
import { localUrl } from '../runtime/thread.ts';

/** Worlds that live elsewhere: they need a URL before they are anything, so no list of worlds opens them. */
const ELSEWHERE: Readonly<Record<string, URL>> = {
  agentgym: new URL('../remote/env/agentgym.js', import.meta.url),
};

/** @throws {UserError} UNKNOWN_ENV naming the nearest id */
export function envModuleUrl(id: string): URL {
  const url = registry[id] ?? ELSEWHERE[id];
  if (url) return url;
  const ids = [...Object.keys(registry), ...Object.keys(ELSEWHERE)];
  throw new UserError(
    'UNKNOWN_ENV',
    `unknown env '${id}'; did you mean '${closest(id, ids)}'? Known: ${ids.join(', ')}`,
  );
}

/** Loads a world's module and makes its env. */
export async function loadWorld(id: string, options: EnvOptions = {}): Promise<{ module: EnvModule; env: Env }> {
  const module = (await import(localUrl(envModuleUrl(id)).href)) as EnvModule;
  return { module, env: module.createEnv(options) };
}
