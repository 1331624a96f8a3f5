/**
 * Removes what an installed engine never loads on this machine: binaries for other platforms, and builds for browsers. npm installs
 * them all, since the packages hold every platform in one.
 */
import { existsSync, readdirSync, rmdirSync, rmSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative, sep } from 'node:path';
import { arch, platform } from 'node:process';
import { messageOf, UserError } from '../core/errors.ts';

/** Machine that the engines run on, as Node names it. */
export interface Machine {
  readonly platform: string;
  readonly arch: string;
}

/** Package of an engine: its folder, and which of its files are loaded. */
interface EnginePackage {
  readonly name: string;
  /** Folders below which whatever `isLoaded` does not name is unused. */
  readonly folders: readonly string[];
  /** True for a file that is loaded, by its path in the package, with slashes. */
  isLoaded(path: string, machine: Machine): boolean;
}

const PACKAGES: readonly EnginePackage[] = [
  {
    name: 'onnxruntime-node',
    folders: ['bin'],
    isLoaded: (path, machine) => new RegExp(`^bin/napi-v\\d+/${machine.platform}/${machine.arch}/`).test(path),
  },
  {
    name: 'onnxruntime-web',
    folders: ['dist'],
    isLoaded: (path) =>
      /^dist\/(?:ort\.node\.[^/]*|ort-wasm-simd-threaded\.(?:mjs|wasm))$/.test(path) && !path.endsWith('.map'),
  },
];

/** Files of a package that are never loaded here. */
export interface UnusedFiles {
  readonly package: string;
  /** Folder of the package. */
  readonly folder: string;
  /** Paths in the package. */
  readonly files: readonly string[];
  readonly bytes: number;
  /** Bytes of the files that stay, of those folders. */
  readonly kept: number;
}

/**
 * Lists the files of the installed engines that this machine never loads.
 * @param from file that the packages are looked for from; by default this one
 */
export function listUnusedEngineFiles(
  from: string | URL = import.meta.url,
  machine: Machine = { platform, arch },
): UnusedFiles[] {
  return PACKAGES.flatMap((one) => {
    const folder = findPackage(one.name, from);
    if (folder === undefined) return [];
    const files = one.folders.flatMap((sub) => listFiles(folder, sub));
    const isLoaded = (path: string) => one.isLoaded(path, machine);
    // A package that has nothing for this machine is left whole: it may be another version than this rule knows.
    if (!files.some(isLoaded)) return [];
    const sizeOf = (path: string) => statSync(join(folder, path)).size;
    const sum = (paths: readonly string[]) => paths.reduce((total, path) => total + sizeOf(path), 0);
    const unused = files.filter((path) => !isLoaded(path));
    return [{ package: one.name, folder, files: unused, bytes: sum(unused), kept: sum(files.filter(isLoaded)) }];
  });
}

/** Removes listed files, and folders that are empty then. @throws {UserError} NO_PERMISSION naming the file that cannot be removed */
export function removeUnusedFiles(listed: readonly UnusedFiles[]): void {
  for (const { folder, files } of listed) {
    for (const path of files) {
      try {
        rmSync(join(folder, path));
      } catch (thrown) {
        throw new UserError(
          'NO_PERMISSION',
          `prune-engines: cannot remove ${join(folder, path)}: ${messageOf(thrown)}`,
        );
      }
    }
    for (const path of files) removeEmptyFolders(folder, dirname(path));
  }
}

function removeEmptyFolders(folder: string, path: string): void {
  try {
    for (let at = path; at !== '.'; at = dirname(at)) rmdirSync(join(folder, at));
  } catch {} // one that holds something, or has gone with another file
}

/** Folder of a package as Node resolves it; undefined where it is not installed. */
function findPackage(name: string, from: string | URL): string | undefined {
  try {
    const main = createRequire(from).resolve(name);
    const mark = `${sep}node_modules${sep}${name}${sep}`;
    const at = main.lastIndexOf(mark);
    return at < 0 ? undefined : main.slice(0, at + mark.length - 1);
  } catch {
    return undefined;
  }
}

/** Paths in a package of all files below one of its folders, with slashes; none where there is no such folder. */
function listFiles(folder: string, sub: string): string[] {
  if (!existsSync(join(folder, sub))) return [];
  return readdirSync(join(folder, sub), { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).replaceAll(sep, '/'));
}
