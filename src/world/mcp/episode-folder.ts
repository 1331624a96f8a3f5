/** Folder of an episode: where a server works on the files of its task. It goes with the server. */
import { mkdtempSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { makeFolder } from '../../storage/atomic-file.ts';
import type { McpTask } from './options.ts';

/** Makes a new folder. @returns its path, without symbolic links in it */
export function createEpisodeFolder(): string {
  return realpathSync(mkdtempSync(join(tmpdir(), 'longplay-mcp-')));
}

/** Empties a folder and writes the files of a task into it. */
export function fillEpisodeFolder(folder: string, { files = {} }: Pick<McpTask, 'files'>): void {
  for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true, force: true });
  for (const [path, content] of Object.entries(files)) {
    makeFolder(dirname(join(folder, path)));
    writeFileSync(join(folder, path), content);
  }
}

/** Removes a folder and all that lies in it. */
export function removeEpisodeFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
}
