/**
 * Cache of Hugging Face's hub on this machine, as Python's `huggingface_hub` lays it out: `models--owner--name` with
 * `blobs` by digest, `snapshots/<commit>` of links to them, and `refs/<revision>` with a commit each. Both read and write
 * the same one.
 */
import { existsSync, readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { readText } from '../../core/bounded-file.ts';
import { UserError } from '../../core/errors.ts';
import { type HubName, parseHubName } from '../../core/hub-name.ts';

/** Folder of the cache, absolute: `HF_HUB_CACHE`, or `hub` in `HF_HOME`. */
export function hubCacheFolder(): string {
  const { HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME, XDG_CACHE_HOME } = process.env;
  const named = HF_HUB_CACHE || HUGGINGFACE_HUB_CACHE;
  if (named) return resolve(named);
  return resolve(HF_HOME || join(XDG_CACHE_HOME || join(homedir(), '.cache'), 'huggingface'), 'hub');
}

/** True where `HF_HUB_OFFLINE` forbids asking the hub. */
export function isHubOffline(): boolean {
  return /^(1|on|yes|true)$/i.test(process.env.HF_HUB_OFFLINE ?? '');
}

/** Folder of a repository in the cache. */
export function repoFolder({ repo }: HubName): string {
  return join(hubCacheFolder(), `models--${repo.replaceAll('/', '--')}`);
}

/** Reads a name of the hub. @throws {UserError} BAD_CHECKPOINT for what is none */
export function readHubName(model: string): HubName {
  const name = parseHubName(model);
  if (name) return name;
  throw new UserError(
    'BAD_CHECKPOINT',
    `${model}: expected hf:owner/name, with @revision or /file.gguf behind it, e.g. hf:Qwen/Qwen2.5-0.5B-Instruct`,
  );
}

/** Commit that a revision names, by the cache; undefined where it is not known there. */
export function cachedCommit(name: HubName): string | undefined {
  if (/^[0-9a-f]{40}$/.test(name.revision)) return name.revision;
  const file = join(repoFolder(name), 'refs', name.revision);
  return existsSync(file) ? readText(file).trim() : undefined;
}

/**
 * Finds a model in the cache.
 * @returns path of its folder, or of its GGUF file
 * @throws {UserError} BAD_CHECKPOINT where it is not there
 */
export function locateInHubCache(model: string): string {
  const name = readHubName(model);
  const commit = cachedCommit(name);
  const folder = commit && /^[\w.-]+$/.test(commit) ? join(repoFolder(name), 'snapshots', commit) : undefined;
  const path = folder && name.file !== undefined ? join(folder, name.file) : folder;
  if (path !== undefined && existsSync(path) && (name.file !== undefined || readdirSync(path).length > 0)) return path;
  const why = isHubOffline() ? '; HF_HUB_OFFLINE is set: unset it once, to fetch the model' : '';
  throw new UserError('BAD_CHECKPOINT', `${model}: it is not in the cache ${hubCacheFolder()}${why}`);
}
