/**
 * Recorder actor: writes the run's files: `metrics.jsonl` (every row), the metric sinks, `traces/*.jsonl` (every n-th
 * group, rotated) and `quarantine/tasks.jsonl` (tasks that kept failing, each with its last failure). Tracing keeps to
 * a share of the time: past it, whole groups are left out until it is back under. A disk that refuses is reported once
 * and never stops training.
 */
import { join } from 'node:path';
import type { ClusterFacts } from '../../src/cluster/cluster-monitor.ts';
import type { RunConfig } from '../../src/config/run-config.ts';
import { messageOf } from '../../src/core/errors.ts';
import type { Task } from '../../src/core/task.ts';
import type { Trajectory } from '../../src/core/trajectory.ts';
import type { MetricsRow } from '../../src/metrics/metric-table.ts';
import { cutMetrics, cutRows, MetricsFile } from '../../src/metrics/metrics-file.ts';
import type { RunStatus } from '../../src/metrics/run-status.ts';
import type { MetricSink } from '../../src/metrics/sinks/sink.ts';
import { earlierRows, type RowBefore, updateRow } from '../../src/metrics/update-row.ts';
import type { BehaviorFactory, Context } from '../../src/runtime/actor.ts';
import { appendWhole, makeFolder } from '../../src/storage/atomic-file.ts';
import { TraceBudget } from '../../src/storage/trace-budget.ts';
import { cutTraces, type RunPast } from '../../src/storage/trace-cut.ts';
import { TraceFiles, type TraceFilesOptions } from '../../src/storage/trace-files.ts';
import type { SaveReport } from '../learner/protocol.ts';
import type { EvaluationRecord } from '../scheduler/protocol.ts';
import { failureNotices, formatBrokenNotice, formatUnsavedNotice } from './notices.ts';
import type { RecorderCommand, TaskQuarantined, UpdateRecorded } from './protocol.ts';

export interface RecorderInit extends Pick<RunConfig, 'trace'> {
  /** The run's folder; it exists. */
  readonly dir: string;
  /** Past of a run that goes on from a checkpoint, to which its files are cut back; absent for a new run. */
  readonly past: RunPast | undefined;
  /** Resolved configuration, for trace headers. */
  readonly config: unknown;
  /** Series of traces that its evaluations go to. */
  readonly evaluations: TraceFilesOptions['evaluations'];
  /** Label of a task. */
  readonly labelOf: (task: Task) => string;
  /** Places metrics go to besides `metrics.jsonl`. Who opened them closes them: they outlive a recorder that is restarted. */
  readonly sinks: readonly MetricSink[];
  /** Env hosts replaced so far. */
  readonly hostsReplaced: () => number;
  /** Facts of the cluster that plays, at a moment of the clock. */
  readonly cluster: ((now: number) => ClusterFacts) | undefined;
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
  let { past } = init;
  return (ctx) => {
    const recorder = new Recorder(ctx, init, past);
    past = undefined; // a recorder that is restarted goes on with what the first one wrote
    return {
      handlers: {
        episodes: ({ trajectories, purpose }) => recorder.episodes(trajectories, purpose),
        updated: (update) => recorder.updated(update),
        metrics: ({ row }) => recorder.metrics(row),
        evaluated: ({ version, record }) => init.onEvaluation?.(version, record),
        saved: ({ report }) => recorder.saved(report),
        noticed: ({ text }) => init.onNotice(text),
        failed: ({ failure, task }) => recorder.failed(failure, task),
        progressed: ({ status }) => recorder.progressed(status),
        quarantined: (quarantined) => recorder.quarantined(quarantined),
        flush: ({ replyTo }) => ctx.reply(replyTo, null), // writes are synchronous: what was sent before is in the files
      },
      stopped: () => recorder.close(),
    };
  };
}

class Recorder {
  readonly failed: ReturnType<typeof failureNotices>;
  readonly #ctx: Context<RecorderCommand>;
  readonly #init: RecorderInit;
  readonly #metrics: MetricsFile;
  readonly #traces: TraceFiles;
  readonly #budget: TraceBudget;
  /** Troubles that were reported: files and sinks that could not be written. */
  readonly #troubles = new Set<string>();
  /** Groups whose advantages are still to come. */
  readonly #traced = new Set<number>();
  #groups = 0;
  #progressAt = Number.NEGATIVE_INFINITY;
  #earlier: RowBefore[] = [];

  constructor(ctx: Context<RecorderCommand>, init: RecorderInit, past: RunPast | undefined) {
    const { dir, config, trace, evaluations, onNotice } = init;
    this.#ctx = ctx;
    this.#init = init;
    this.#metrics = new MetricsFile(dir);
    if (past) this.#cutBack(past);
    this.#traces = new TraceFiles({ ...trace, config, dir: join(dir, 'traces'), evaluations, onNotice });
    this.#budget = new TraceBudget(trace.maxShare, ctx.clock.now());
    this.failed = failureNotices(init.onNotice);
  }

  episodes(trajectories: readonly Trajectory[], purpose: string): void {
    const { onEpisodes, labelOf, trace } = this.#init;
    onEpisodes?.(trajectories, purpose);
    const [first] = trajectories;
    if (!first || trace.everyGroups === 0 || this.#groups++ % trace.everyGroups !== 0) return;
    const start = this.#ctx.clock.now();
    if (!this.#budget.allows(start)) return;
    this.#writeGuarded('traces', () => this.#traces.episodes(trajectories, purpose, labelOf(first.task)));
    for (const sink of this.#init.sinks) this.#writeGuarded(sink.name, () => sink.episodes?.(trajectories, purpose));
    this.#budget.spend(this.#ctx.clock.now() - start);
    if (purpose === 'train') remember(this.#traced, first.group);
  }

  updated(update: UpdateRecorded): void {
    const { version, credit, broken } = update.report;
    this.metrics(this.#rowOf(update));
    const own = credit.filter(({ group }) => this.#traced.delete(group));
    if (own.length > 0) this.#writeGuarded('traces', () => this.#traces.credit(version, own));
    if (broken) this.#init.onNotice(formatBrokenNotice(version, broken));
  }

  metrics(row: MetricsRow): void {
    this.#writeGuarded('metrics.jsonl', () => this.#metrics.append(row));
    for (const sink of this.#init.sinks) this.#writeGuarded(sink.name, () => sink.write(row));
    this.#init.onMetrics(row);
  }

  saved(report: SaveReport): void {
    this.#init.onSaved(report);
    if (!report.ok) this.#init.onNotice(formatUnsavedNotice(report));
  }

  progressed(status: RunStatus): void {
    const { onProgress } = this.#init;
    const now = this.#ctx.clock.now();
    if (!onProgress || now - this.#progressAt < PROGRESS_MS) return;
    this.#progressAt = now;
    onProgress(status);
  }

  quarantined({ task, failure, attempts }: TaskQuarantined): void {
    this.#writeGuarded('quarantine', () => {
      const folder = join(this.#init.dir, 'quarantine');
      makeFolder(folder);
      appendWhole(join(folder, 'tasks.jsonl'), `${JSON.stringify({ format: 1, task, attempts, failure })}\n`);
    });
  }

  close(): void {
    this.#traces.close();
    this.#metrics.close();
  }

  /** Cuts back what is recorded again from here on. */
  #cutBack(past: RunPast): void {
    const { dir, onNotice } = this.#init;
    const { version } = past;
    this.#writeGuarded('metrics.jsonl', () => cutMetrics(dir, version));
    this.#writeGuarded('evaluations.jsonl', () => cutRows(join(dir, 'evaluations.jsonl'), version));
    const { removed, uncredited } = cutTraces(join(dir, 'traces'), past, onNotice);
    if (removed > 0) onNotice(`${removed} episodes that the checkpoint does not have are removed from the traces`);
    for (const group of uncredited) remember(this.#traced, group);
  }

  /** Writes, and reports once what cannot be written. */
  #writeGuarded(what: string, write: () => void): void {
    try {
      write();
    } catch (thrown) {
      if (this.#troubles.has(what)) return;
      this.#troubles.add(what);
      this.#init.onNotice(`cannot write ${what}: ${messageOf(thrown)}; the run goes on without it`);
    }
  }

  #rowOf({ report, status, consumed }: UpdateRecorded): MetricsRow {
    const actors = { actors: this.#ctx.system.stats(), hostsReplaced: this.#init.hostsReplaced() };
    this.#earlier = earlierRows(this.#earlier, status.elapsedMs);
    const cluster = this.#init.cluster?.(this.#ctx.clock.now());
    const row = updateRow(report, consumed, status, actors, this.#earlier[0], cluster);
    this.#earlier.push({ rollout: status, actors });
    return row;
  }
}

/** Groups remembered at most: those that are never trained on (stale, filtered) must not pile up. */
const MAX_REMEMBERED = 10_000;

function remember(traced: Set<number>, group: number): void {
  traced.add(group);
  if (traced.size > MAX_REMEMBERED) traced.delete(traced.values().next().value!);
}
