/** Deadline for synchronous code of others: templates and patterns that come with a model and need not end. */
import { type Context, createContext, Script } from 'node:vm';

const timed = { call: (): unknown => undefined };
/** Made for the first call: most threads that know templates never render one. */
let script: { readonly compiled: Script; readonly context: Context } | undefined;

/**
 * Calls a function that does not end by itself for sure. Node's watchdog for scripts breaks into it, also into the
 * search of a regular expression. A call that ran out of time is made once more: the first one may have slept with the
 * machine. Costs some 0.1 ms beyond the call.
 * @param deadlineMs milliseconds of one call
 * @throws {Error} where it did not end in time; whatever the function throws
 */
export function callWithin<T>(deadlineMs: number, call: () => T): T {
  try {
    return callOnce(deadlineMs, call);
  } catch (thrown) {
    if (!ranOut(thrown)) throw thrown;
  }
  try {
    return callOnce(deadlineMs, call);
  } catch (thrown) {
    if (!ranOut(thrown)) throw thrown;
    throw new Error(`it did not end within ${deadlineMs / 1000} s`);
  }
}

function callOnce<T>(deadlineMs: number, call: () => T): T {
  const outer = timed.call;
  timed.call = call;
  try {
    script ??= { compiled: new Script('call()'), context: createContext(timed) };
    return script.compiled.runInContext(script.context, { timeout: deadlineMs }) as T;
  } finally {
    timed.call = outer; // keeps no conversation
  }
}

function ranOut(thrown: unknown): boolean {
  return (thrown as NodeJS.ErrnoException | null)?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT';
}
