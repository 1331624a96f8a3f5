/** What a run says of its updates and failures: rows of metrics, and lines for a person. */
import type { Failure } from '../src/core/failure.ts';
import { type Task, taskName } from '../src/core/task.ts';
import type { ConsumedFacts } from '../src/record/group-facts.ts';
import type { MetricsRow } from '../src/record/metrics.ts';
import { earlierRows, type RowBefore, updateRow } from '../src/record/update-row.ts';
import type { BrokenUpdate, UpdateReport } from './learner/protocol.ts';
import type { RolloutStatus } from './rollout/protocol.ts';

/** Turns update reports into rows of metrics, and says loudly what deserves it. */
export function metricsOf(
  actorFacts: () => RowBefore['actors'],
  record: (row: MetricsRow, report: UpdateReport) => void,
  notice: (message: string) => void,
) {
  let earlier: RowBefore[] = [];
  return (report: UpdateReport, status: RolloutStatus, consumed: ConsumedFacts): void => {
    const actors = actorFacts();
    earlier = earlierRows(earlier, status.elapsedMs);
    record(updateRow(report, consumed, status, actors, earlier[0]), report);
    earlier.push({ rollout: status, actors });
    if (report.broken) notice(brokenNotice(report.version, report.broken));
  };
}

function brokenNotice(version: number, { where, message, quarantine, inARow, rolledBack }: BrokenUpdate): string {
  const what = `update ${version} was taken back: not finite: ${where}: ${message}; weights are unchanged, its batch lies in ${quarantine}`;
  return rolledBack
    ? `${what}; ${inARow} in a row: the weights of update ${rolledBack.toUpdate} are restored, learning rate × ${rolledBack.rateScale}`
    : what;
}

/** Says the first failure of each cause; the counts are in the metrics. */
export function failureNotices(notice: (message: string) => void) {
  const told = new Set<string>();
  return ({ cause, where, message }: Failure, task: Task): void => {
    if (told.has(cause)) return;
    told.add(cause);
    notice(`an episode of ${taskName(task)} failed at ${where} (${cause}): ${message}; further ones are only counted`);
  };
}
