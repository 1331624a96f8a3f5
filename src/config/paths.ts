/** Paths in a configuration, made absolute: a run is found from any folder. */
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { isHubName, parseHubName } from '../core/hub-name.ts';
import { POLICY_KINDS } from './policy-kinds.ts';
import type { RunConfig } from './run-config.ts';

/**
 * Makes a path absolute; `~/` at its beginning is the home folder, which no shell expands behind `key=`.
 * @param folder that relative paths start from
 */
export function absolutePath(path: string, folder: string): string {
  return path === '~' || path.startsWith('~/') ? join(homedir(), path.slice(1)) : resolve(folder, path);
}

/** Makes the place of a model absolute; a name on the hub stays as it is. */
export function absoluteModel(model: string, folder: string): string {
  return isHubName(model) ? model : absolutePath(model, folder);
}

/** Names a base model for other programs: a repository on the hub by its own name, anything else by its absolute path. */
export function nameBaseModel(model: string): string {
  return parseHubName(model)?.repo ?? resolve(model);
}

/**
 * Makes the paths of a policy's models absolute. A server keeps the name that was typed: by it, it knows its model.
 * @param folder that relative paths start from
 */
export function resolvePolicyPaths(policy: RunConfig['policy'], folder: string): RunConfig['policy'] {
  const { kind, path, init, adapter, server } = policy;
  const named = POLICY_KINDS[kind].isServed && path !== undefined && server.model === undefined;
  return {
    ...policy,
    ...(path === undefined ? {} : { path: absoluteModel(path, folder) }),
    ...(named ? { server: { ...server, model: parseHubName(path)?.repo ?? path } } : {}),
    ...(init === undefined ? {} : { init: absolutePath(init, folder) }),
    adapter: adapter.init === undefined ? adapter : { ...adapter, init: absolutePath(adapter.init, folder) },
  };
}

/**
 * Makes the path of a teacher absolute.
 * @param folder that a relative path starts from
 */
export function resolveTeacherPath(learner: RunConfig['learner'], folder: string): RunConfig['learner'] {
  const { distillation } = learner;
  if (distillation?.teacher.type !== 'run') return learner;
  const teacher = { ...distillation.teacher, path: absolutePath(distillation.teacher.path, folder) };
  return { ...learner, distillation: { ...distillation, teacher } };
}
