/**
 * Threads inside which a native call may be under way (an engine's). One that is ended there takes the process along by
 * an abort of the native library, so it is only ever asked to end, and the process waits for it. `process.exit` ends
 * threads wherever they are; while there are such threads, a signal ends the process instead.
 */

const alive = new Set<Promise<void>>();

/** Adds a thread. @param exited resolves when the thread has ended */
export function addNativeThread(exited: Promise<void>): void {
  alive.add(exited);
  void exited.then(() => alive.delete(exited));
}

/**
 * Waits for all such threads to end.
 * @param ms milliseconds at most
 * @returns true if none is left
 */
export async function nativeThreadsEnded(ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  await Promise.race([Promise.all(alive), late]);
  clearTimeout(timer);
  return alive.size === 0;
}

/**
 * Ends the process at once: with the exit code, or by the signal where a native call may be under way. A shell shows
 * 128 + the signal's number then.
 */
export function endProcess(code: number, signal: NodeJS.Signals): void {
  if (alive.size > 0) {
    process.removeAllListeners(signal); // the system's own answer to it
    process.kill(process.pid, signal);
  } else process.exit(code);
}
