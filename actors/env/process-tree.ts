/**
 * The processes that a host's worlds started, ended with it. On Linux it ends every process that carries the host's
 * mark in its environment, which children inherit even where they left the group (`detached`, `setsid`). Where the host
 * is a process, it also ends its process group. A process that leaves the group *and* clears its environment escapes.
 * Elsewhere a thread's children cannot be distinguished from ours and stay, and on Windows those of a process too.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { HOST_MARK } from '../../src/runtime/host-mark.ts';

export { HOST_MARK };

/** Hosts lead a process group of their own here, so that it can be ended as a whole. */
export const HAS_GROUPS = process.platform !== 'win32';

/**
 * Ends what is left of a host's processes. The caller is not among them, even where it carries the mark.
 * @param leader pid of the host, which may be gone
 * @param mark value of `HOST_MARK` in its environment
 */
export function endProcessTree(leader: number, mark: string): void {
  if (!HAS_GROUPS) return;
  endMarked([mark]);
  // Last: the caller may be the leader.
  kill(-leader);
}

/** Ends the processes that carry one of the marks in the environment they were started with, but not the caller. */
export function endMarked(marks: readonly string[]): void {
  for (const pid of findMarked(marks)) if (pid !== process.pid) kill(pid);
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // Gone already, which is what was wanted.
  }
}

/** Pids of the processes that carry one of the marks; none where there is no /proc. */
function findMarked(marks: readonly string[]): number[] {
  const entries = new Set(marks.map((mark) => `${HOST_MARK}=${mark}`));
  return processIds().filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'latin1')
        .split('\0')
        .some((entry) => entries.has(entry));
    } catch {
      return false; // gone, or another user's
    }
  });
}

function processIds(): number[] {
  try {
    return readdirSync('/proc').flatMap((name) => (/^\d+$/.test(name) ? [Number(name)] : []));
  } catch {
    return [];
  }
}
