/**
 * Trace files of a run: `00001.jsonl`, `00002.jsonl`, … with an index beside each. A new file is begun when the newest
 * is full, when the process starts (the last line of an old one may be cut off) and after a failed write; the oldest is
 * removed.
 */
import { closeSync, openSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { Trajectory } from '../core/trajectory.ts';
import { makeFolder, writeAll } from './atomic-file.ts';
import { LONGEST_LINE } from './lines.ts';
import { type Credit, creditLine, traceHeader, traceLine } from './trace.ts';
import { INDEX_HEADER, indexCredit, indexEpisode, indexPath, summaryOf } from './trace-index.ts';

export interface TraceFilesOptions {
  /** `traces` folder of the run. */
  readonly dir: string;
  /** Resolved configuration, for headers. */
  readonly config: unknown;
  readonly rotateBytes: number;
  readonly keepFiles: number;
}

interface OpenFile {
  readonly trace: number;
  readonly index: number;
  bytes: number;
}

export class TraceFiles {
  readonly #options: TraceFilesOptions;
  #number: number | undefined;
  #file: OpenFile | undefined;

  constructor(options: TraceFilesOptions) {
    this.#options = options;
  }

  /**
   * Writes episodes.
   * @throws what the disk throws; the next call begins a new file
   */
  episodes(trajectories: readonly Trajectory[], purpose: string, label: string | undefined): void {
    const lines = trajectories.map((trajectory) => ({
      text: traceLine(trajectory, purpose, label),
      index: (span: { offset: number; length: number }) =>
        indexEpisode(summaryOf({ ...trajectory, purpose, ...(label === undefined ? {} : { label }) }), span),
    }));
    this.#append(lines);
  }

  /**
   * Writes credit.
   * @throws as `episodes`
   */
  credit(update: number, groups: readonly Credit[]): void {
    const line = { groups: groups.map(({ group }) => ({ group, advantages: [] })) };
    this.#append([{ text: creditLine(update, groups), index: (span) => indexCredit(line, span) }]);
  }

  close(): void {
    if (!this.#file) return;
    closeSync(this.#file.trace);
    closeSync(this.#file.index);
    this.#file = undefined;
  }

  #append(lines: readonly { text: string; index: (span: { offset: number; length: number }) => string }[]): void {
    if (!this.#file || this.#file.bytes >= this.#options.rotateBytes) this.#rotate();
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
    const { dir, config, keepFiles } = this.#options;
    this.close();
    makeFolder(dir);
    this.#number = (this.#number ?? traceNumbers(dir).at(-1) ?? 0) + 1;
    const path = join(dir, traceName(this.#number));
    const trace = openSync(path, 'ax');
    const index = openSync(indexPath(path), 'ax');
    this.#file = { trace, index, bytes: 0 };
    const header = traceHeader(config);
    writeAll(trace, header);
    writeAll(index, INDEX_HEADER);
    this.#file.bytes = Buffer.byteLength(header);
    for (const old of traceNumbers(dir)) {
      if (old > this.#number - keepFiles) continue;
      rmSync(join(dir, traceName(old)), { force: true });
      rmSync(indexPath(join(dir, traceName(old))), { force: true });
    }
  }
}

export function traceName(number: number): string {
  return `${String(number).padStart(5, '0')}.jsonl`;
}

/** Numbers of the trace files in a folder, ascending; none where there is no folder. */
export function traceNumbers(dir: string): number[] {
  let names: string[];
  try {
    names = readdirSync(dir);
  } catch {
    return [];
  }
  return names
    .flatMap((name) => {
      const number = /^(\d+)\.jsonl$/.exec(name)?.[1];
      return number === undefined ? [] : [Number(number)];
    })
    .sort((a, b) => a - b);
}

/** Paths of the trace files in a folder, oldest first; the indexes beside them are not among them. */
export function tracePaths(dir: string): string[] {
  return traceNumbers(dir).map((number) => join(dir, traceName(number)));
}
