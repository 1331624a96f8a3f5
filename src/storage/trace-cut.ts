/**
 * Cuts of trace files, made by the process that holds the run's lock: a line that a kill left half written, and, when a run
 * goes on from a checkpoint, what it plays and records again from there.
 */
import { existsSync, rmSync, statSync, truncateSync } from 'node:fs';
import { messageOf } from '../core/errors.ts';
import { smallestOf } from '../core/extremes.ts';
import { wholeBytes, wholeLines } from './lines.ts';
import { isEvaluation } from './trace.ts';
import { tracePaths } from './trace-files.ts';
import { indexPath } from './trace-index.ts';
import { TraceStore } from './trace-store.ts';

/** Past of a run that goes on: what its checkpoint, and its journal where it keeps one, have of it. */
export interface RunPast {
  /** Updates in the checkpoint. Evaluations of later weights are made again. */
  readonly version: number;
  /** Updates whose credit is not recorded again: those of the checkpoint, and those that the journal names. */
  readonly credited: number;
  /** Groups from this number on are launched again. */
  readonly nextGroup: number;
  /** Groups below it that are still to be played. */
  readonly outstanding: ReadonlySet<number>;
}

/** Result of a cut. */
export interface CutTraces {
  /** Episodes that were removed. */
  readonly removed: number;
  /** Traced groups whose advantages are still to come. */
  readonly uncredited: ReadonlySet<number>;
}

/**
 * Cuts a run's traces back to its past: each file from the first line on that is recorded again. Files of `longplay eval`
 * are not the run's own, and stay.
 * @param dir `traces` folder of the run
 * @param onNotice receives a line about a file that cannot be read or cut; it stays as it is
 */
export function cutTraces(dir: string, past: RunPast, onNotice: (message: string) => void): CutTraces {
  const uncredited = new Set<number>();
  const credited = new Set<number>();
  let removed = 0;
  for (const path of tracePaths(dir, ['played', 'evaluation'])) {
    try {
      const store = TraceStore.open(path);
      const credits = store.credits;
      const ends = [
        ...credits.filter(({ update }) => update > past.credited),
        ...store.episodes.filter(({ purpose, group, version }) =>
          isEvaluation(purpose) ? version > past.version : group >= past.nextGroup || past.outstanding.has(group),
        ),
      ].map(({ offset }) => offset);
      const end = smallestOf(ends, wholeBytes(path));
      const kept = store.episodes.filter(({ offset }) => offset < end);
      removed += store.size - kept.length;
      for (const { purpose, group } of kept) if (!isEvaluation(purpose)) uncredited.add(group);
      for (const { offset, groups } of credits) if (offset < end) for (const group of groups) credited.add(group);
      cutTrace(path, kept.length > 0 || credits.some(({ offset }) => offset < end) ? end : 0);
    } catch (thrown) {
      onNotice(`${path} cannot be cut back to update ${past.version}: ${messageOf(thrown)}; it stays as it is`);
    }
  }
  for (const group of credited) uncredited.delete(group);
  return { removed, uncredited };
}

/**
 * Mends a trace: removes a last line that was cut off while it was written, so that the file can be appended to, and what
 * its index has beyond the end. A file without a whole header goes.
 */
export function mendTrace(path: string): void {
  cutTrace(path, wholeBytes(path));
}

/** Cuts a trace and its index. @param end bytes that stay, whole lines; 0 removes both files */
function cutTrace(path: string, end: number): void {
  // The index first: what it lacks is read from the trace itself.
  const index = indexPath(path);
  if (index !== path && existsSync(index)) {
    const bytes = end === 0 ? 0 : indexBytes(index, end);
    if (bytes === 0) rmSync(index);
    else if (bytes < statSync(index).size) truncateSync(index, bytes);
  }
  if (end === 0) rmSync(path);
  else if (end < statSync(path).size) truncateSync(path, end);
}

/** Bytes of an index up to its first line about what lies at `end` of the trace or behind it. */
function indexBytes(index: string, end: number): number {
  let bytes = 0;
  for (const { text = '', offset, length } of wholeLines(index)) {
    const at = /^\[(\d+),/.exec(text)?.[1];
    if (at !== undefined && Number(at) >= end) break;
    bytes = offset + length + 1;
  }
  return bytes;
}
