/**
 * Telemetry of onnxruntime-node, off. From 1.29 on its Linux and macOS builds report to their maker unless
 * `ORT_DISABLE_TELEMETRY=1` is in the environment of the *process* when the native library is loaded.
 *
 * In the main thread an assignment to `process.env` sets that environment. In a worker it changes the worker's copy only. So a
 * worker has the main thread set it, through the inspector's channel between threads of one process (no port is opened).
 */
import { isMainThread } from 'node:worker_threads';
import { messageOf, UserError } from '../../core/errors.ts';

/** Variable that onnxruntime reads once, when it is loaded. */
const VARIABLE = 'ORT_DISABLE_TELEMETRY';

/** Milliseconds that the main thread has to set the variable. */
const ANSWER_MS = 10_000;

/**
 * Disables telemetry in this process; called before every load of the native library, in whatever thread. A value that the user
 * has set stays, `0` too.
 * @throws {UserError} MISSING_ENGINE where a worker cannot set the environment of its process
 */
export async function disableTelemetry(): Promise<void> {
  if (process.env[VARIABLE] !== undefined) return; // a worker's copy begins as the main thread's
  let value = '1';
  if (!isMainThread) {
    try {
      value = await setInMainThread();
    } catch (thrown) {
      throw new UserError(
        'MISSING_ENGINE',
        `onnxruntime-node reports to its maker unless ${VARIABLE}=1 is set, which this thread cannot do (${messageOf(thrown)}); set it before Node starts`,
      );
    }
  }
  process.env[VARIABLE] = value;
}

/** Sets the variable in the main thread. @returns its value there */
async function setInMainThread(): Promise<string> {
  const { Session } = await import('node:inspector');
  const session = new Session();
  session.connectToMainThread();
  try {
    return await new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no answer within ${ANSWER_MS / 1000} s`)), ANSWER_MS);
      const expression = `process.env.${VARIABLE} ??= '1'`;
      session.post('Runtime.evaluate', { expression, returnByValue: true }, (error, answer) => {
        clearTimeout(timer);
        if (error || answer.exceptionDetails) reject(error ?? new Error(answer.exceptionDetails!.text));
        else resolve(String(answer.result.value));
      });
    });
  } finally {
    session.disconnect();
  }
}
