/**
 * Templates of the folders that `new-env`, `new-agent` and `new-study` write: real files in `templates/<kind>`, small, whole and right.
 * `NAME` in them stands for the name of the new folder.
 */
import { readdirSync } from 'node:fs';
import { MAX_SETTINGS_BYTES, readBounded } from '../core/bounded-file.ts';
import { packageRoot } from '../runtime/module-url.ts';

/** Kind of template. */
export type TemplateKind = 'world' | 'agent' | 'study';

/** Reads a template. @param name `^[a-z][a-z0-9-]*$` @returns texts by the names of their files */
export function readTemplate(kind: TemplateKind, name: string): Readonly<Record<string, string>> {
  const folder = new URL(`templates/${kind}/`, packageRoot);
  const read = (file: string) => readBounded(new URL(file, folder), MAX_SETTINGS_BYTES).toString('utf8');
  return Object.fromEntries(readdirSync(folder).map((file) => [file, read(file).replaceAll(/\bNAME\b/g, name)]));
}
