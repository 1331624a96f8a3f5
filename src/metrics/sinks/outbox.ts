/**
 * Outbox: entries that wait for a server, as lines of files in the run's folder. What the server has taken is kept with
 * it, in `state.json`, so a process that is killed loses nothing and the next one goes on with what is left.
 *
 * A line is appended before it is sent and counts as sent once the state says so. A kill between the two sends it again,
 * byte for byte: servers tell by its time that they have it.
 */
import { rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { readJsonFile } from '../../core/bounded-file.ts';
import { messageOf, UserError } from '../../core/errors.ts';
import { parseJson } from '../../core/json-text.ts';
import { isRecord } from '../../core/record.ts';
import { appendWhole, makeFolder, nodeDisk, writeFileAtomic } from '../../storage/atomic-file.ts';
import { wholeLines } from '../../storage/lines.ts';
import type { MetricsRow } from '../metric-table.ts';

/** Entry: a row of metrics, or spans of episodes. */
export type Entry = RowEntry | SpansEntry;

export interface RowEntry {
  readonly kind: 'row';
  /** Milliseconds since 1970 at which the row was written. */
  readonly at: number;
  /** Number of the row among those of the run, from 1. */
  readonly number: number;
  readonly row: MetricsRow;
}

export interface SpansEntry {
  readonly kind: 'spans';
  readonly at: number;
  /** Spans in the sink's own form. */
  readonly spans: readonly unknown[];
}

const stateSchema = z.strictObject({
  format: z.literal(1),
  /** Name of the run at the server, made with the outbox. */
  key: z.string().regex(/^[\da-f]{16,64}$/),
  /** Milliseconds since 1970 at which the outbox was made. */
  created: z.number(),
  /** Processes that have written here, this one included. */
  sessions: z.int().min(1),
  /** File that is read next, and the byte in it. */
  segment: z.int().min(1),
  offset: z.int().min(0),
  /** Rows that were taken, and the largest update among them. */
  rows: z.int().min(0),
  update: z.int().min(0),
  /** Names that the server has given, e.g. of its run. */
  remote: z.record(z.string(), z.string()),
});

/** State of an outbox, as its file holds it. */
export type OutboxState = z.infer<typeof stateSchema>;

/** Entries at the front of an outbox, all of one kind. */
export interface Batch {
  readonly entries: readonly Entry[];
  /** Place behind them. */
  readonly segment: number;
  readonly offset: number;
}

/** Bounds of an outbox, in bytes of its files. */
export interface OutboxBounds {
  /** Bytes that hold the last row. Default 256 MiB. */
  readonly maxBytes?: number | undefined;
  /** Bytes that hold the last spans; rows have room above them. Default 64 MiB. */
  readonly maxSpanBytes?: number | undefined;
  /** Bytes of one file. Default 4 MiB. */
  readonly segmentBytes?: number | undefined;
}

const MIB = 2 ** 20;

export class Outbox {
  readonly #dir: string;
  readonly #bounds: Required<{ [K in keyof OutboxBounds]: number }>;
  #state: OutboxState;
  /** File that is appended to; none of an earlier process, whose last line may be cut off. */
  #last: number;
  /** Bytes of all files, by their number. */
  readonly #bytes = new Map<number, number>();
  /** Rows written, and the largest update among them, whether they were taken or not. */
  #rows: number;
  #update: number;
  #pending = 0;

  /**
   * Opens an outbox, or makes it.
   * @param newKey name that a new one gets
   * @param now milliseconds since 1970
   * @throws {UserError} BAD_CONFIG for a state that cannot be read
   * @throws what the disk throws
   */
  constructor(dir: string, newKey: string, now: number, { maxBytes, maxSpanBytes, segmentBytes }: OutboxBounds = {}) {
    makeFolder(dir);
    this.#dir = dir;
    this.#bounds = {
      maxBytes: maxBytes ?? 256 * MIB,
      maxSpanBytes: maxSpanBytes ?? 64 * MIB,
      segmentBytes: segmentBytes ?? 4 * MIB,
    };
    const saved = readState(dir);
    this.#state = saved ?? {
      format: 1,
      key: newKey,
      created: now,
      sessions: 0,
      segment: 1,
      offset: 0,
      rows: 0,
      update: 0,
      remote: {},
    };
    this.#rows = this.#state.rows;
    this.#update = this.#state.update;
    this.#last = this.#state.segment - 1;
    for (const segment of listSegments(dir)) {
      if (segment < this.#state.segment) rmSync(this.#path(segment), { force: true });
      else this.#scan(segment);
    }
    this.#last++;
    this.#save({ ...this.#state, sessions: this.#state.sessions + 1 });
  }

  get state(): OutboxState {
    return this.#state;
  }

  /** Entries that wait. */
  get pending(): number {
    return this.#pending;
  }

  /** Largest update among the rows that were ever written here; 0 before the first. */
  get update(): number {
    return this.#update;
  }

  /**
   * Appends a row.
   * @returns false where there is no room
   * @throws what the disk throws; nothing is then appended
   */
  appendRow(at: number, row: MetricsRow): boolean {
    const number = this.#rows + 1;
    if (!this.#append({ kind: 'row', at, number, row }, this.#bounds.maxBytes)) return false;
    this.#rows = number;
    this.#update = Math.max(this.#update, row.update ?? 0);
    return true;
  }

  /** Appends spans. @returns false where there is no room */
  appendSpans(at: number, spans: readonly unknown[]): boolean {
    return this.#append({ kind: 'spans', at, spans }, this.#bounds.maxSpanBytes);
  }

  /** Reads the entries at the front, of one kind: as many as the bounds allow, one at least; none where nothing waits. */
  peek(maxEntries: number, maxBytes: number): Batch {
    const entries: Entry[] = [];
    let { segment, offset } = this.#state;
    let bytes = 0;
    for (; segment <= this.#last; segment++, offset = 0) {
      if (!this.#bytes.has(segment)) continue;
      for (const line of wholeLines(this.#path(segment), offset)) {
        const entry = readEntry(line.text);
        const isFull = entries.length >= maxEntries || bytes + line.length > maxBytes;
        if (entries.length > 0 && (isFull || entry?.kind !== entries[0]!.kind)) return { entries, segment, offset };
        offset = line.offset + line.length + 1;
        bytes += line.length;
        if (entry) entries.push(entry);
      }
    }
    return { entries, segment: this.#last, offset: this.#bytes.get(this.#last) ?? 0 };
  }

  /** Takes entries off the front: the server has them, or never will. @throws what the disk throws */
  drop({ entries, segment, offset }: Batch): void {
    let { rows, update } = this.#state;
    for (const entry of entries) {
      if (entry.kind !== 'row') continue;
      rows = Math.max(rows, entry.number);
      update = Math.max(update, entry.row.update ?? 0);
    }
    this.#save({ ...this.#state, segment, offset, rows, update });
    // A file that somebody has changed may hold less than was counted: what is not there is not waited for.
    this.#pending = entries.length === 0 ? 0 : this.#pending - entries.length;
    for (const old of [...this.#bytes.keys()].filter((one) => one < segment)) {
      rmSync(this.#path(old), { force: true });
      this.#bytes.delete(old);
    }
  }

  /** Keeps names that the server has given. @throws what the disk throws */
  keep(remote: Readonly<Record<string, string>>): void {
    this.#save({ ...this.#state, remote: { ...this.#state.remote, ...remote } });
  }

  #append(entry: Entry, maxBytes: number): boolean {
    const line = `${JSON.stringify(entry)}\n`;
    const length = Buffer.byteLength(line);
    let all = 0;
    for (const bytes of this.#bytes.values()) all += bytes;
    if (all + length > maxBytes) return false;
    if ((this.#bytes.get(this.#last) ?? 0) >= this.#bounds.segmentBytes) this.#last++;
    appendWhole(this.#path(this.#last), line);
    this.#bytes.set(this.#last, (this.#bytes.get(this.#last) ?? 0) + length);
    this.#pending++;
    return true;
  }

  /** Counts what an earlier process has left in a file. */
  #scan(segment: number): void {
    this.#last = Math.max(this.#last, segment);
    this.#bytes.set(segment, statSync(this.#path(segment)).size);
    for (const { text } of wholeLines(this.#path(segment), segment === this.#state.segment ? this.#state.offset : 0)) {
      const entry = readEntry(text);
      if (!entry) continue;
      this.#pending++;
      if (entry.kind !== 'row') continue;
      this.#rows = Math.max(this.#rows, entry.number);
      this.#update = Math.max(this.#update, entry.row.update ?? 0);
    }
  }

  #save(state: OutboxState): void {
    writeFileAtomic(join(this.#dir, STATE), `${JSON.stringify(state, null, 2)}\n`);
    this.#state = state;
  }

  #path(segment: number): string {
    return join(this.#dir, `${String(segment).padStart(5, '0')}.jsonl`);
  }
}

const STATE = 'state.json';

function readState(dir: string): OutboxState | undefined {
  const path = join(dir, STATE);
  if (!statSync(path, { throwIfNoEntry: false })) return undefined;
  try {
    return stateSchema.parse(readJsonFile(path));
  } catch (thrown) {
    const why = thrown instanceof z.ZodError ? 'it has another shape' : messageOf(thrown);
    throw new UserError(
      'BAD_CONFIG',
      `${path}: expected the state of a sink: ${why}; remove the folder to begin a new run at the server`,
    );
  }
}

/** Numbers of an outbox's files, ascending. */
function listSegments(dir: string): number[] {
  return nodeDisk
    .list(dir)
    .flatMap((name) => /^(\d{5,9})\.jsonl$/.exec(name)?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);
}

/** Entry of a line; undefined for one that is damaged, which is passed over. */
function readEntry(text: string | undefined): Entry | undefined {
  if (text === undefined) return undefined;
  try {
    const entry = parseJson(text);
    if (!isRecord(entry) || typeof entry.at !== 'number') return undefined;
    const { kind, number, row, spans } = entry;
    if (kind === 'spans' && Array.isArray(spans)) return entry as unknown as SpansEntry;
    const isRow = kind === 'row' && isRecord(row) && Number.isSafeInteger(number);
    if (isRow && (row.update === undefined || Number.isSafeInteger(row.update))) return entry as unknown as RowEntry;
    return undefined;
  } catch {
    return undefined;
  }
}
