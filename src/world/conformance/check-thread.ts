/** Entry of the thread that checks a module: a world that never answers, or ends its thread, must not take the command along. */
import { parentPort, workerData } from 'node:worker_threads';
import { LongplayError, messageOf } from '../../core/errors.ts';
import { type CheckRequest, checkModule } from './check-module.ts';
import type { ConformanceReport } from './report.ts';

/** Messages of the thread: the work it is at, now and then, and its end. */
export type ThreadMessage =
  | { readonly type: 'doing'; readonly what: string }
  | { readonly type: 'done'; readonly report: ConformanceReport }
  | { readonly type: 'failed'; readonly code: string | undefined; readonly message: string };

const post = (message: ThreadMessage) => parentPort!.postMessage(message);
try {
  const report = await checkModule(workerData as CheckRequest, (what) => post({ type: 'doing', what }));
  post({ type: 'done', report });
} catch (thrown) {
  post({ type: 'failed', code: thrown instanceof LongplayError ? thrown.code : undefined, message: messageOf(thrown) });
}
