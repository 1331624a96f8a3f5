/** Watched check: runs it in a thread, in which no silence lasts longer than the deadline. */
import { Worker } from 'node:worker_threads';
import { type ErrorCode, LongplayError, UserError } from '../../core/errors.ts';
import { workerUrl } from '../../runtime/module-url.ts';
import type { CheckRequest } from './check-module.ts';
import type { ThreadMessage } from './check-thread.ts';
import type { ConformanceReport } from './report.ts';

/** Milliseconds to start a thread and load a world, which is not the world's silence. */
const LOADING_MS = 60_000;

/**
 * Checks a module in a watched thread.
 * @param silenceMs milliseconds without a message after which the thread is ended
 * @throws {UserError} where the module is no world or an option is none
 * @throws {LongplayError} ENV_BROKEN where the world hangs or ends its thread, with what was tried then
 */
export function checkWatched(request: CheckRequest, silenceMs: number): Promise<ConformanceReport> {
  const worker = new Worker(workerUrl(new URL('./check-thread.ts', import.meta.url)), { workerData: request });
  let doing = 'loading the module';
  return new Promise<ConformanceReport>((resolve, reject) => {
    const hangs = () =>
      reject(
        new LongplayError('ENV_BROKEN', `no end of a case for ${silenceMs / 1000} s (${doing}); is the env hanging?`),
      );
    let timer = setTimeout(hangs, Math.max(silenceMs, LOADING_MS));
    worker.on('message', (message: ThreadMessage) => {
      clearTimeout(timer);
      if (message.type === 'done') return resolve(message.report);
      if (message.type === 'failed') return reject(failure(message));
      doing = message.what;
      timer = setTimeout(hangs, silenceMs);
    });
    worker.on('error', (error) => {
      clearTimeout(timer);
      reject(new LongplayError('ENV_BROKEN', `the env broke its thread (${doing}): ${error.message}`));
    });
    worker.on('exit', (code) => {
      clearTimeout(timer);
      reject(new LongplayError('ENV_BROKEN', `the env ended its thread with code ${code} (${doing})`)); // unless settled
    });
  }).finally(() => worker.terminate());
}

function failure({ code, message }: ThreadMessage & { type: 'failed' }): Error {
  if (code === undefined) return new LongplayError('ENV_BROKEN', message);
  return code === 'ENV_BROKEN' ? new LongplayError(code, message) : new UserError(code as ErrorCode, message);
}
