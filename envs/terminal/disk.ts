/**
 * Files of a machine, as Linux keeps them. just-bash makes folders that are missing, resets permissions when a file is written
 * again, and writes in place of links: commands would solve tasks here that fail elsewhere, and the other way round.
 */
import type { Bash } from 'just-bash';

interface Entry {
  readonly type: 'file' | 'directory' | 'symlink';
  readonly mode: number;
}

/** Members of just-bash's `InMemoryFs` that are replaced or used; some are private there. */
interface Disk {
  readonly data: ReadonlyMap<string, Entry>;
  resolvePathWithSymlinks(path: string): string;
  ensureParentDirs(path: string): void;
  writeFileSync(path: string, content: unknown, options?: unknown, metadata?: { readonly mode?: number }): void;
  appendFile(path: string, content: unknown, options?: unknown): Promise<void>;
  cp(from: string, to: string, options?: unknown): Promise<void>;
  chmod(path: string, mode: number): Promise<void>;
  utimes(path: string, accessed: Date, modified: Date): Promise<void>;
}

/** Permissions that new files do not get. */
const UMASK = 0o022;

/**
 * Makes a file system of just-bash keep files as Linux does.
 * @param now present time of the machine, in its own class of dates
 */
export function mendDisk(fs: Bash['fs'], now: () => Date): void {
  const disk = fs as unknown as Disk;
  const plain = {
    write: disk.writeFileSync.bind(disk),
    append: disk.appendFile.bind(disk),
    copy: disk.cp.bind(disk),
  };
  disk.ensureParentDirs = (path) => {
    const parent = path.slice(0, path.lastIndexOf('/')) || '/';
    const found = disk.data.get(disk.resolvePathWithSymlinks(parent))?.type;
    if (found === undefined) throw new Error(`ENOENT: no such file or directory, open '${path}'`);
    if (found !== 'directory') throw new Error(`ENOTDIR: not a directory, open '${path}'`);
  };
  disk.writeFileSync = (path, content, options, metadata) => {
    const target = disk.resolvePathWithSymlinks(path);
    const before = disk.data.get(target);
    plain.write(target, content, options, before?.type === 'file' ? { mode: before.mode, ...metadata } : metadata);
  };
  disk.appendFile = (path, content, options) => plain.append(disk.resolvePathWithSymlinks(path), content, options);
  disk.cp = async (from, to, options) => {
    const before = disk.data.get(to);
    await plain.copy(from, to, options);
    const copied = disk.data.get(to);
    if (copied?.type !== 'file') return;
    await disk.chmod(to, before?.type === 'file' ? before.mode : copied.mode & ~UMASK);
    await disk.utimes(to, now(), now());
  };
}
