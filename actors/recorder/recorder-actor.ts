/**
 * Recorder actor: writes the run's files: `metrics.jsonl` (every row), the metric sinks, `traces/*.jsonl` (every n-th
 * group, rotated) and `quarantine/tasks.jsonl` (tasks that kept failing, each with its last failure). Tracing keeps to
 * a share of the time: past it, whole groups are left out until it is back under. A disk that refuses is reported once
 * and never stops training.
 */
import { appendFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../src/core/errors.ts';
import type { Trajectory } from '../../src/core/trajectory.ts';
import type { MetricsRow } from '../../src/record/metrics.ts';
import { cutMetrics, MetricsFile } from '../../src/record/metrics-file.ts';
import type { RunStatus } from '../../src/record/run-status.ts';
import type { MetricSink } from '../../src/record/sinks/sink.ts';
import { TraceBudget } from '../../src/record/trace-budget.ts';
import { TraceFiles } from '../../src/record/trace-files.ts';
import { earlierRows, type RowBefore, updateRow } from '../../src/record/update-row.ts';
import type { BehaviorFactory } from '../../src/runtime/actor.ts';
import type { SaveReport } from '../learner/protocol.ts';
import type { EvaluationRecord } from '../scheduler/protocol.ts';
import { brokenNotice, failureNotices, unsavedNotice } from './notices.ts';
import type { RecorderCommand, UpdateRecorded } from './protocol.ts';

export interface RecorderInit {
  /** The run's folder; it exists. */
  readonly dir: string;
  /** Updates in the checkpoint from which the run resumed; absent for a new run. */
  readonly resumedFrom: number | undefined;
  /** Resolved configuration, for trace headers. */
  readonly config: unknown;
  readonly everyGroups: number;
  readonly rotateBytes: number;
  readonly keepFiles: number;
  /** Share of the time that tracing may take, in (0, 1]. */
  readonly maxShare: number;
  /** Sub-task of a task index. */
  readonly labelOf: (index: number) => string;
  /** Places metrics go to besides `metrics.jsonl`. */
  readonly sinks: readonly MetricSink[];
  /** Env hosts replaced so far. */
  readonly hostsReplaced: () => number;
  /** Called with every finished group, traced or not. */
  readonly onEpisodes: ((trajectories: readonly Trajectory[], purpose: string) => void) | undefined;
  /** Called with every metrics row. */
  readonly onMetrics: (row: MetricsRow) => void;
  /** Called with the run's progress, between updates too, at most every `PROGRESS_MS`. */
  readonly onProgress: ((status: RunStatus) => void) | undefined;
  /** Called with evaluations made while training went on, each begun at `version`. */
  readonly onEvaluation: ((version: number, record: EvaluationRecord) => void) | undefined;
  /** Called with the result of every checkpoint. */
  readonly onSaved: (report: SaveReport) => void;
  /** Called with notices for a person, one line each. */
  readonly onNotice: (message: string) => void;
}

/** Milliseconds between two calls of `onProgress`. */
const PROGRESS_MS = 250;

export function recorderActor(init: RecorderInit): BehaviorFactory<RecorderCommand> {
  return (ctx) => {
    const troubles = new Set<string>();
    const guarded = (what: string, write: () => void) => {
      try {
        write();
      } catch (thrown) {
        if (!troubles.has(what))
          init.onNotice(`cannot write ${what}: ${messageOf(thrown)}; the run goes on without it`);
        troubles.add(what);
      }
    };
    const metrics = new MetricsFile(init.dir);
    const { resumedFrom } = init;
    if (resumedFrom !== undefined) guarded('metrics.jsonl', () => cutMetrics(init.dir, resumedFrom));
    const traces = new TraceFiles({ ...init, dir: join(init.dir, 'traces') });
    const budget = new TraceBudget(init.maxShare, ctx.clock.now());
    const traced = new Set<number>(); // groups whose advantages are still to come
    const failed = failureNotices(init.onNotice);
    let groups = 0;
    let progressAt = Number.NEGATIVE_INFINITY;
    let earlier: RowBefore[] = [];

    const write = (row: MetricsRow) => {
      guarded('metrics.jsonl', () => metrics.append(row));
      for (const sink of init.sinks) guarded(sink.name, () => sink.write(row));
      init.onMetrics(row);
    };
    const rowOf = ({ report, status, consumed }: UpdateRecorded): MetricsRow => {
      const actors = { actors: ctx.system.stats(), hostsReplaced: init.hostsReplaced() };
      earlier = earlierRows(earlier, status.elapsedMs);
      const row = updateRow(report, consumed, status, actors, earlier[0]);
      earlier.push({ rollout: status, actors });
      return row;
    };
    return {
      handlers: {
        episodes({ trajectories, purpose }) {
          init.onEpisodes?.(trajectories, purpose);
          const [first] = trajectories;
          if (!first || init.everyGroups === 0 || groups++ % init.everyGroups !== 0) return;
          const start = ctx.clock.now();
          if (!budget.allows(start)) return;
          guarded('traces', () => traces.episodes(trajectories, purpose, init.labelOf(first.task.index)));
          budget.spent(ctx.clock.now() - start);
          if (purpose === 'train') remember(traced, first.group);
        },
        updated(update) {
          const { version, credit, broken } = update.report;
          write(rowOf(update));
          const own = credit.filter(({ group }) => traced.delete(group));
          if (own.length > 0) guarded('traces', () => traces.credit(version, own));
          if (broken) init.onNotice(brokenNotice(version, broken));
        },
        metrics: ({ row }) => write(row),
        evaluated: ({ version, record }) => init.onEvaluation?.(version, record),
        saved({ report }) {
          init.onSaved(report);
          if (!report.ok) init.onNotice(unsavedNotice(report));
        },
        failed: ({ failure, task }) => failed(failure, task),
        noticed: ({ text }) => init.onNotice(text),
        progressed({ status }) {
          const now = ctx.clock.now();
          if (!init.onProgress || now - progressAt < PROGRESS_MS) return;
          progressAt = now;
          init.onProgress(status);
        },
        quarantined({ task, failure, attempts }) {
          guarded('quarantine', () => {
            const folder = join(init.dir, 'quarantine');
            mkdirSync(folder, { recursive: true });
            appendFileSync(join(folder, 'tasks.jsonl'), `${JSON.stringify({ format: 1, task, attempts, failure })}\n`);
          });
        },
        flush({ replyTo }) {
          ctx.reply(replyTo, null); // writes are synchronous: whatever was told before is in the files
        },
      },
      stopped() {
        traces.close();
        metrics.close();
        for (const sink of init.sinks) guarded(sink.name, () => sink.close());
      },
    };
  };
}

/** Groups remembered at most: those that are never trained on (stale, filtered) must not pile up. */
const MAX_REMEMBERED = 10_000;

function remember(traced: Set<number>, group: number): void {
  traced.add(group);
  if (traced.size > MAX_REMEMBERED) traced.delete(traced.values().next().value!);
}
