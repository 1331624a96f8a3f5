/** Files of τ²-bench in `data/`: read when first used, once per process. */
import { existsSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { MAX_DATA_BYTES, readBounded } from '../../src/core/bounded-file.ts';
import { parsePython } from './python/json.ts';
import type { PyValue } from './python/values.ts';

/** Folder of the data: beside the sources, or in the package above `dist`. */
const FOLDER = [new URL('./data/', import.meta.url), new URL('../../../envs/tau2/data/', import.meta.url)].find(
  (folder) => existsSync(folder),
);

/** Reads a text, also of a `.gz` file. @param name path below `data/`, e.g. `retail/policy.md` */
export function readData(name: string): string {
  if (!FOLDER) throw new Error('tau2: the folder envs/tau2/data is missing: the package is not whole');
  const bytes = readBounded(new URL(name, FOLDER), MAX_DATA_BYTES);
  return (name.endsWith('.gz') ? gunzipSync(bytes, { maxOutputLength: MAX_DATA_BYTES }) : bytes).toString('utf8');
}

/** Reads JSON as Python's values. @param name path below `data/` */
export function readDataJson(name: string): PyValue {
  return parsePython(readData(name));
}

/** Makes a function that computes a value when it is first called, and keeps it. */
export function once<T>(compute: () => T): () => T {
  let known: { readonly value: T } | undefined;
  return () => {
    known ??= { value: compute() };
    return known.value;
  };
}
