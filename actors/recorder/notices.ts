/** Notices about updates, checkpoints and failures: lines for a person. */
import type { Failure } from '../../src/core/failure.ts';
import { type Task, taskName } from '../../src/core/task.ts';
import type { BrokenUpdate, SaveReport } from '../learner/protocol.ts';

/** Notice of an update that was taken back. */
export function formatBrokenNotice(
  version: number,
  { where, message, quarantine, inARow, rolledBack }: BrokenUpdate,
): string {
  const what = `update ${version} was taken back: not finite: ${where}: ${message}; weights are unchanged, its batch lies in ${quarantine}`;
  return rolledBack
    ? `${what}; ${inARow} in a row: the weights of update ${rolledBack.toUpdate} are restored, learning rate × ${rolledBack.rateScale}`
    : what;
}

/** Notice of a checkpoint that could not be written. */
export function formatUnsavedNotice({ update, message }: SaveReport): string {
  return `checkpoint at update ${update} failed: ${message}; the last good one is kept, the next update tries again`;
}

/** Notices of failures, the first of each cause; the counts are in the metrics. */
export function failureNotices(notice: (message: string) => void) {
  const reported = new Set<string>();
  return ({ cause, where, message }: Failure, task: Task): void => {
    if (reported.has(cause)) return;
    reported.add(cause);
    notice(`an episode of ${taskName(task)} failed at ${where} (${cause}): ${message}; further ones are only counted`);
  };
}
