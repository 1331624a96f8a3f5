/**
 * Locates a pretrained model: a folder as Hugging Face writes it, a GGUF file, which is converted into such a folder once
 * (gguf/convert.ts), or a name on the hub, which was fetched before (hub.ts).
 */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { UserError } from '../../core/errors.ts';
import { isHubName } from '../../core/hub-name.ts';
import { convertGguf } from './gguf/convert.ts';
import { locateInHubCache } from './hub-cache.ts';

/**
 * Locates a model.
 * @param model path of a folder or of a GGUF file, or a name on the hub
 * @returns its folder, absolute
 * @throws {UserError} BAD_CHECKPOINT where there is none
 */
export function locateModel(model: string): string {
  const { path, isGguf } = findModel(model);
  return isGguf ? convertGguf(path) : path;
}

/** Locates the GGUF file of a model; undefined where it is a folder of another form. @throws as {@link locateModel} does */
export function locateGguf(model: string): string | undefined {
  const { path, isGguf } = findModel(model);
  return isGguf ? path : undefined;
}

function findModel(model: string): { readonly path: string; readonly isGguf: boolean } {
  const path = isHubName(model) ? locateInHubCache(model) : resolve(model);
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat) {
    throw new UserError(
      'BAD_CHECKPOINT',
      `${model}: there is no such file or folder; expected a model's folder (config.json, safetensors) or a GGUF file`,
    );
  }
  if (!stat.isDirectory()) return { path, isGguf: true };
  if (existsSync(join(path, 'config.json'))) return { path, isGguf: false };
  const files = readdirSync(path).filter((name) => /\.gguf$/i.test(name));
  if (files.length === 1) return { path: join(path, files[0]!), isGguf: true };
  if (files.length > 1) {
    throw new UserError(
      'BAD_CHECKPOINT',
      `${model}: expected one GGUF file or a file's path, found ${files.join(', ')}`,
    );
  }
  return { path, isGguf: false };
}
