/**
 * Metrics file of a run, `metrics.jsonl`: one row a line, never half a one. A write that fails (a full disk) is taken
 * back, so the next row begins a line of its own; a resumed run removes the rows of updates that its checkpoint has not
 * seen.
 */
import { closeSync, existsSync, fstatSync, ftruncateSync, statSync, truncateSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { openFile } from '../core/bounded-file.ts';
import { parseJson } from '../core/json-text.ts';
import { wholeLines } from '../storage/lines.ts';
import type { MetricsRow } from './metric-table.ts';

const NAME = 'metrics.jsonl';

export class MetricsFile {
  readonly #path: string;
  #fd: number | undefined;

  /** @param dir the run's folder; the file is opened with the first row */
  constructor(dir: string) {
    this.#path = join(dir, NAME);
  }

  /** Appends a row. @throws what the disk throws; the file then ends with the row before */
  append(row: MetricsRow): void {
    this.#fd ??= openFile(this.#path, 'a');
    const { size } = fstatSync(this.#fd);
    const line = Buffer.from(`${JSON.stringify(row)}\n`);
    try {
      for (let at = 0; at < line.length; ) at += writeSync(this.#fd, line, at);
    } catch (thrown) {
      ftruncateSync(this.#fd, size);
      throw thrown;
    }
  }

  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
  }
}

/**
 * Cuts a run's metrics back to a checkpoint, as `cutRows` does.
 * @param version updates that the checkpoint has seen
 * @throws what the disk throws
 */
export function cutMetrics(dir: string, version: number): void {
  cutRows(join(dir, NAME), version);
}

/**
 * Cuts a file of rows that name their update: from the first row of a later one on, and a last line that was cut off. A file
 * that is not there stays absent.
 * @param version last update that is kept
 * @throws what the disk throws
 */
export function cutRows(path: string, version: number): void {
  if (!existsSync(path)) return;
  let kept = 0;
  for (const { text = '', offset, length } of wholeLines(path)) {
    const update = updateOf(text);
    if (update !== undefined && update > version) break;
    kept = offset + length + 1;
  }
  if (kept < statSync(path).size) truncateSync(path, kept);
}

/** Update of a row; undefined for a damaged one, which stays where it is: readers leave it out. */
function updateOf(line: string): number | undefined {
  try {
    const { update } = parseJson(line) as { update?: unknown };
    return typeof update === 'number' ? update : undefined;
  } catch {
    return undefined;
  }
}
