/**
 * A file in a run's folder for as long as a process trains there. A native library that aborts, or a kill, takes the
 * process along before it can say anything: the file that it leaves is how the next start knows.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

interface Mark {
  readonly format: 1;
  readonly pid: number;
}

const NAME = 'training.json';

/**
 * Marks the run as being trained by this process.
 * @returns what the last process left behind, in words; undefined if it ended by itself, however it went
 */
export function markStarted(dir: string): string | undefined {
  const before = read(join(dir, NAME));
  writeFileSync(join(dir, NAME), JSON.stringify({ format: 1, pid: process.pid } satisfies Mark));
  if (before === undefined) return undefined;
  if (lives(before.pid)) {
    return `process ${before.pid} may still be training this run (or its number is another's by now): only one must`;
  }
  const who = before.pid === 0 ? 'the process that trained here last' : `process ${before.pid}`;
  return `${who} ended without a word: it was killed, or a native library (the engine) aborted it`;
}

/** This process no longer trains there. */
export function markEnded(dir: string): void {
  rmSync(join(dir, NAME), { force: true });
}

function lives(pid: number): boolean {
  if (pid === 0 || pid === process.pid) return false;
  try {
    process.kill(pid, 0); // signal 0 is none: it only asks
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** pid 0 where the file was cut off while it was written. */
function read(path: string): { readonly pid: number } | undefined {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
  try {
    return { pid: (JSON.parse(text) as Mark).pid };
  } catch {
    return { pid: 0 };
  }
}
