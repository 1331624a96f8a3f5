/**
 * The processes that a host process started, ended with it: its process group, and on Linux every process that carries
 * its mark in the environment too, which children inherit even where they left the group (`detached`, `setsid`). A
 * process that leaves the group *and* clears its environment escapes. Windows has neither: there only the host itself
 * is ended.
 */
import { readdirSync, readFileSync } from 'node:fs';

/** Environment variable that holds a host's mark. */
export const HOST_MARK = 'LONGPLAY_ENV_HOST';

/** Hosts lead a process group of their own here, so that it can be ended as a whole. */
export const HAS_GROUPS = process.platform !== 'win32';

/**
 * Ends what is left of a host's processes. The caller is not among them, even where it carries the mark.
 * @param leader pid of the host, which may be gone
 * @param mark value of `HOST_MARK` in its environment
 */
export function endProcessTree(leader: number, mark: string): void {
  if (!HAS_GROUPS) return;
  for (const pid of marked(mark)) if (pid !== process.pid) kill(pid);
  // Last: the caller may be the leader.
  kill(-leader);
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // Gone already, which is what was wanted.
  }
}

/** Pids of the processes that carry a mark; none where there is no /proc. */
function marked(mark: string): number[] {
  const entry = `${HOST_MARK}=${mark}`;
  return processIds().filter((pid) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'latin1').split('\0').includes(entry);
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
