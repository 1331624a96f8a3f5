/**
 * Trace files of a run, in three series: `00001.jsonl`, … of what was played to learn from, `evaluation-00001.jsonl`, … of
 * the evaluations that the training process makes, `eval-00001.jsonl`, … of `longplay eval`. An index lies beside each. A
 * new file is begun when the newest is full, when the process starts (another may be writing the old one, or its last line
 * may be cut off) and after a failed write. Each series is bounded in bytes; its oldest file is removed, with a notice.
 */
import { closeSync, openSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Trajectory } from '../core/trajectory.ts';
import { makeFolder, writeAll } from './atomic-file.ts';
import { LONGEST_LINE } from './lines.ts';
import { type Credit, creditLine, isEvaluation, traceHeader, traceLine } from './trace.ts';
import { INDEX_HEADER, indexCredit, indexEpisode, indexPath, summaryOf } from './trace-index.ts';

/** Files of one kind of episode: none of them is removed to make room for another kind. */
export type TraceSeries = 'played' | 'evaluation' | 'eval';

/** Beginnings of the names of a series. */
const PREFIXES: Readonly<Record<TraceSeries, string>> = { played: '', evaluation: 'evaluation-', eval: 'eval-' };
const SERIES = Object.keys(PREFIXES) as TraceSeries[];

/** Pattern of what stands before the ending of a trace or of its index. */
const OR_INDEX = '(?:\\.index)?';

export interface TraceFilesOptions {
  /** `traces` folder of the run. */
  readonly dir: string;
  /** Resolved configuration, for headers. */
  readonly config: unknown;
  /** Bytes after which a new file is begun. Default 64 MiB. */
  readonly rotateBytes?: number | undefined;
  /** Bytes that the files of a series may hold, at least `rotateBytes`. Default no bound. */
  readonly keepBytes?: number | undefined;
  /** Series of evaluations: that of the training process, or that of `longplay eval`. Default `evaluation`. */
  readonly evaluations?: 'evaluation' | 'eval' | undefined;
  /** Called when old episodes are removed, once for each series. */
  readonly onNotice?: ((message: string) => void) | undefined;
}

/** Bytes after which a new file is begun where the options name no number. */
const ROTATE_BYTES = 64 * 2 ** 20;

interface OpenFile {
  readonly trace: number;
  readonly index: number;
  bytes: number;
}

/** Line of a trace, and its line of the index where it is at a place. */
interface NewLine {
  readonly text: string;
  readonly index: (span: { readonly offset: number; readonly length: number }) => string;
}

export class TraceFiles {
  readonly #played: SeriesFiles;
  readonly #evaluations: SeriesFiles;

  constructor(options: TraceFilesOptions) {
    this.#played = new SeriesFiles('played', options);
    this.#evaluations = new SeriesFiles(options.evaluations ?? 'evaluation', options);
  }

  /**
   * Writes episodes.
   * @throws what the disk throws; the next call begins a new file
   */
  episodes(trajectories: readonly Trajectory[], purpose: string, label: string | undefined): void {
    const lines = trajectories.map(
      (trajectory): NewLine => ({
        text: traceLine(trajectory, purpose, label),
        index: (span) =>
          indexEpisode(summaryOf({ ...trajectory, purpose, ...(label === undefined ? {} : { label }) }), span),
      }),
    );
    (isEvaluation(purpose) ? this.#evaluations : this.#played).append(lines);
  }

  /**
   * Writes credit.
   * @throws as `episodes`
   */
  credit(update: number, groups: readonly Credit[]): void {
    const line = { groups: groups.map(({ group }) => ({ group, advantages: [] })) };
    this.#played.append([{ text: creditLine(update, groups), index: (span) => indexCredit(line, span) }]);
  }

  close(): void {
    this.#played.close();
    this.#evaluations.close();
  }
}

/** Files of one series. */
class SeriesFiles {
  readonly #series: TraceSeries;
  readonly #options: TraceFilesOptions;
  #number: number | undefined;
  #file: OpenFile | undefined;
  #noticed = false;

  constructor(series: TraceSeries, options: TraceFilesOptions) {
    this.#series = series;
    this.#options = options;
  }

  close(): void {
    if (!this.#file) return;
    closeSync(this.#file.trace);
    closeSync(this.#file.index);
    this.#file = undefined;
  }

  append(lines: readonly NewLine[]): void {
    const { rotateBytes = ROTATE_BYTES } = this.#options;
    if (!this.#file || this.#file.bytes >= rotateBytes) this.#rotate();
    const file = this.#file!;
    let index = '';
    let offset = file.bytes;
    for (const line of lines) {
      const length = Buffer.byteLength(line.text);
      if (length > LONGEST_LINE) throw new Error(`an episode of ${length} bytes, traces hold at most ${LONGEST_LINE}`);
      index += line.index({ offset, length: length - 1 });
      offset += length;
    }
    try {
      writeAll(file.trace, lines.map(({ text }) => text).join(''));
      file.bytes = offset;
      writeAll(file.index, index);
    } catch (thrown) {
      this.close(); // what was half written ends that file
      throw thrown;
    }
  }

  #rotate(): void {
    const { dir, config } = this.#options;
    this.close();
    makeFolder(dir);
    const { trace, path } = this.#create();
    const index = openSync(indexPath(path), 'ax');
    this.#file = { trace, index, bytes: 0 };
    const header = traceHeader(config);
    writeAll(trace, header);
    writeAll(index, INDEX_HEADER);
    this.#file.bytes = Buffer.byteLength(header);
    this.#removeOldest();
  }

  /** Creates a file under the next number. Two processes may write one series: each has files of its own. */
  #create(): { readonly trace: number; readonly path: string } {
    const { dir } = this.#options;
    for (;;) {
      this.#number = 1 + Math.max(this.#number ?? 0, numbersOf(namesIn(dir), this.#series, OR_INDEX).at(-1) ?? 0);
      const path = join(dir, traceName(this.#number, this.#series));
      try {
        return { trace: openSync(path, 'ax'), path };
      } catch (thrown) {
        if ((thrown as NodeJS.ErrnoException).code !== 'EEXIST') throw thrown;
      }
    }
  }

  /** Removes the oldest files of the series until there is room for the one that has just been begun. */
  #removeOldest(): void {
    const { dir, rotateBytes = ROTATE_BYTES, keepBytes = Number.POSITIVE_INFINITY, onNotice } = this.#options;
    const older = numbersOf(namesIn(dir), this.#series)
      .filter((number) => number < this.#number!)
      .map((number) => join(dir, traceName(number, this.#series)));
    let bytes = 0;
    const sizes = older.map((path) => statSync(path, { throwIfNoEntry: false })?.size ?? 0);
    for (const size of sizes) bytes += size;
    for (const [i, path] of older.entries()) {
      if (bytes + rotateBytes <= keepBytes) return;
      bytes -= sizes[i]!;
      rmSync(path, { force: true });
      rmSync(indexPath(path), { force: true });
      if (!this.#noticed) {
        onNotice?.(`${path} is removed, and so on: its kind of trace has ${keepBytes} bytes (trace.keepBytes)`);
      }
      this.#noticed = true;
    }
  }
}

export function traceName(number: number, series: TraceSeries = 'played'): string {
  return `${PREFIXES[series]}${String(number).padStart(5, '0')}.jsonl`;
}

/** Names in a folder; none where there is no folder. */
function namesIn(dir: string): string[] {
  try {
    return readdirSync(dir);
  } catch {
    return [];
  }
}

/** Numbers of a series among names of files, ascending. @param before what may stand before the ending, as a pattern */
function numbersOf(names: readonly string[], series: TraceSeries, before = ''): number[] {
  const pattern = new RegExp(`^${PREFIXES[series]}(\\d+)${before}\\.jsonl$`);
  const found = names.flatMap((name) => pattern.exec(name)?.[1] ?? []).map(Number);
  return [...new Set(found)].sort((a, b) => a - b);
}

/**
 * Paths of the trace files in a folder, series by series, oldest first; the indexes beside them are not among them.
 * @param series those of these series alone
 * @param lost   those of which only the index is left, too
 */
export function tracePaths(dir: string, series: readonly TraceSeries[] = SERIES, lost = false): string[] {
  const names = namesIn(dir);
  const before = lost ? OR_INDEX : '';
  return series.flatMap((one) => numbersOf(names, one, before).map((number) => join(dir, traceName(number, one))));
}
