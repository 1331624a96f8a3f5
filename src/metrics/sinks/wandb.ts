/**
 * Weights & Biases sink: the run in the offline form of its client, `wandb/offline-run-…/run-….wandb` in the run's folder, which
 * `wandb beta sync` uploads. It has no documented HTTP door, and its client is Python and a program of Go: no part of either
 * runs here. The file is a log in LevelDB's form whose records are the client's own messages; a resumed run appends to it.
 *
 * @see https://github.com/google/leveldb/blob/main/doc/log_format.md
 * @see https://github.com/wandb/wandb/blob/main/wandb/proto/wandb_internal.proto
 */
import { randomBytes } from 'node:crypto';
import { closeSync, fstatSync, ftruncateSync, statSync, truncateSync, writeSync } from 'node:fs';
import { basename, join } from 'node:path';
import { crc32 } from 'node:zlib';
import { BinaryReader, BinaryWriter } from '@bufbuild/protobuf/wire';
import { MAX_BINARY_BYTES, openFile, readBounded } from '../../core/bounded-file.ts';
import { UserError } from '../../core/errors.ts';
import { makeFolder, nodeDisk, quietly } from '../../storage/atomic-file.ts';
import type { MetricsRow } from '../metric-table.ts';
import { pointName, points } from '../metrics.ts';
import { flattenConfig } from './flat-config.ts';
import type { MetricSink, RunEnding } from './sink.ts';

export interface WandbOptions {
  /** The run's folder. */
  readonly dir: string;
  readonly project: string;
  readonly entity: string | undefined;
  /** Configuration of the run. */
  readonly config: unknown;
  /** Wall clock in milliseconds since 1970. */
  readonly wallClock: () => number;
}

/**
 * Opens the sink: makes the file, or goes on behind the last whole record of the one that is there.
 * @throws {UserError} BAD_CONFIG for a file that is none of these
 * @throws what the disk throws
 */
export function wandbSink({ dir, project, entity, config, wallClock }: WandbOptions): MetricSink {
  const path = findFile(dir) ?? makeFile(dir, wallClock());
  const found = readLog(path);
  truncateSync(path, found.end);
  let file: number | undefined = openFile(path, 'a');
  let { records, began } = found;
  /** Largest update that earlier processes have written, and rows so far. */
  const first = found.step;
  let rows = found.rows;
  let last: MetricsRow | undefined;
  const append = (body: (writer: BinaryWriter) => BinaryWriter) => {
    const { size } = fstatSync(file!);
    const record = body(new BinaryWriter().uint32(tag(1, VARINT)).int64(records + 1)).finish();
    const bytes = logBytes(record, size);
    try {
      for (let at = 0; at < bytes.length; ) at += writeSync(file!, bytes, at);
    } catch (thrown) {
      quietly(() => ftruncateSync(file!, size));
      throw thrown;
    }
    records++;
  };
  if (records === 0) {
    began = wallClock() / 1000;
    append((writer) => submessage(writer, HEADER, headerMessage));
    append((writer) =>
      submessage(writer, RUN, (run) =>
        runMessage(run, { id: idOf(path), name: basename(dir), project, entity, config, began }),
      ),
    );
  }
  return {
    name: 'wandb',
    write(row) {
      if (file === undefined) return;
      const step = row.update ?? rows + 1;
      if (row.update !== undefined && row.update <= first) return; // made again after a resume: it is there
      const now = wallClock() / 1000;
      append((writer) =>
        submessage(writer, HISTORY, (history) => {
          const facts = { _step: step, _timestamp: now, _runtime: now - began };
          itemMessages(history, [...valuesOf(row), ...Object.entries(facts)]);
          return submessage(history, 2, (at) => at.uint32(tag(1, VARINT)).int64(step));
        }),
      );
      rows++;
      last = row;
    },
    close(ending = 'finished') {
      if (file === undefined) return;
      try {
        const row = last;
        if (row) {
          append((writer) => submessage(writer, SUMMARY, (summary) => itemMessages(summary, valuesOf(row))));
        }
        const seconds = Math.max(0, Math.round(wallClock() / 1000 - began));
        append((writer) =>
          submessage(writer, EXIT, (exit) =>
            exit.uint32(tag(1, VARINT)).int32(EXIT_CODE[ending]).uint32(tag(2, VARINT)).int32(seconds),
          ),
        );
      } finally {
        closeSync(file);
        file = undefined;
      }
    },
  };
}

/** Exit codes by which the server marks a run: finished, or failed. */
const EXIT_CODE: Readonly<Record<RunEnding, number>> = { finished: 0, stopped: 255, failed: 1 };

/** Numbers of fields of `Record`. */
const HISTORY = 2;
const SUMMARY = 3;
const RUN = 17;
const EXIT = 18;
const HEADER = 21;

const VARINT = 0;
const DELIMITED = 2;

/** Key of a field: its number, and the type on the wire. */
function tag(field: number, type: number): number {
  return (field << 3) | type;
}

/** Writes a message as a field of another one. */
function submessage(writer: BinaryWriter, field: number, body: (inner: BinaryWriter) => BinaryWriter): BinaryWriter {
  writer.uint32(tag(field, DELIMITED)).fork();
  body(writer);
  return writer.join();
}

/** `HeaderRecord { version_info = 1 { producer = 1, min_consumer = 2 } }` */
function headerMessage(writer: BinaryWriter): BinaryWriter {
  return submessage(writer, 1, (version) => {
    text(version, 1, 'longplay');
    return text(version, 2, '0.12.0');
  });
}

interface RunFacts {
  readonly id: string;
  readonly name: string;
  readonly project: string;
  readonly entity: string | undefined;
  readonly config: unknown;
  /** Seconds since 1970. */
  readonly began: number;
}

/** `RunRecord { run_id = 1, entity = 2, project = 3, config = 4, display_name = 8, start_time = 17 }` */
function runMessage(writer: BinaryWriter, { id, name, project, entity, config, began }: RunFacts): BinaryWriter {
  text(writer, 1, id);
  if (entity !== undefined) text(writer, 2, entity);
  text(writer, 3, project);
  submessage(writer, 4, (values) => itemMessages(values, flattenConfig(config)));
  text(writer, 8, name);
  const seconds = Math.floor(began);
  return submessage(writer, 17, (time) =>
    time
      .uint32(tag(1, VARINT))
      .int64(seconds)
      .uint32(tag(2, VARINT))
      .int32(Math.floor((began - seconds) * 1e9)),
  );
}

/** `HistoryItem`, `SummaryItem`, `ConfigItem`: all are `{ key = 1, value_json = 16 }`, in field 1 of their list. */
function itemMessages(writer: BinaryWriter, items: readonly (readonly [string, number | string])[]): BinaryWriter {
  for (const [key, value] of items) {
    submessage(writer, 1, (item) => text(text(item, 1, key), 16, JSON.stringify(value)));
  }
  return writer;
}

function text(writer: BinaryWriter, field: number, value: string): BinaryWriter {
  return writer.uint32(tag(field, DELIMITED)).string(value.toWellFormed());
}

/** Values of a row: `name`, or `name/key` of a split metric, which the server shows as one section. */
function valuesOf(row: MetricsRow): [string, number][] {
  return [...points(row)].map((point) => [pointName(point), point.value]);
}

/** Header of a file: `:W&B`, 0xBEE1 and version 0. */
const FILE_HEADER = Buffer.from([0x3a, 0x57, 0x26, 0x42, 0xe1, 0xbe, 0]);
const BLOCK = 32_768;
/** Bytes before a piece of a record: CRC-32 over type and bytes, length, type. */
const PIECE_HEADER = 7;
const FULL = 1;
const FIRST = 2;
const MIDDLE = 3;
const LAST = 4;

/**
 * Bytes of a record in a log of blocks: it is cut where a block ends. An end too short for a header is filled with zeros.
 * @param at bytes that the file has
 */
export function logBytes(record: Uint8Array, at: number): Buffer {
  const parts: Uint8Array[] = [];
  let offset = at;
  let rest = record;
  for (let isFirst = true; isFirst || rest.length > 0; isFirst = false) {
    const left = BLOCK - (offset % BLOCK);
    if (left < PIECE_HEADER) {
      parts.push(Buffer.alloc(left));
      offset += left;
    }
    const room = BLOCK - (offset % BLOCK) - PIECE_HEADER;
    const piece = rest.subarray(0, room);
    rest = rest.subarray(piece.length);
    const isLast = rest.length === 0;
    const type = isFirst ? (isLast ? FULL : FIRST) : isLast ? LAST : MIDDLE;
    const head = Buffer.alloc(PIECE_HEADER);
    head.writeUInt32LE(checksum(type, piece), 0);
    head.writeUInt16LE(piece.length, 4);
    head[6] = type;
    parts.push(head, piece);
    offset += PIECE_HEADER + piece.length;
  }
  return Buffer.concat(parts);
}

/** Checksum of a piece, over its type and its bytes. Node's own gives 0 for no bytes, whatever it goes on from. */
function checksum(type: number, piece: Uint8Array): number {
  const ofType = crc32(Buffer.from([type]));
  return piece.length === 0 ? ofType : crc32(piece, ofType);
}

interface FoundLog {
  /** Byte behind the last whole record that is kept: one that marks the end of the run is not. */
  readonly end: number;
  readonly records: number;
  readonly rows: number;
  /** Largest step; 0 without rows. */
  readonly step: number;
  /** Seconds since 1970 at which the run began. */
  readonly began: number;
}

/** Reads a log up to its last whole record. @throws {UserError} BAD_CONFIG for a file of another kind */
function readLog(path: string): FoundLog {
  const bytes = readBounded(path, MAX_BINARY_BYTES);
  if (!bytes.subarray(0, FILE_HEADER.length).equals(FILE_HEADER)) {
    throw new UserError(
      'BAD_CONFIG',
      `${path}: expected an offline run of wandb; remove its folder to begin a new one`,
    );
  }
  let end = FILE_HEADER.length;
  let [records, rows, step, began] = [0, 0, 0, 0];
  for (const { content, behind } of logRecords(bytes)) {
    const record = readRecord(content);
    if (record.field === EXIT) break;
    end = behind;
    records++;
    if (record.field === HISTORY) {
      rows++;
      step = Math.max(step, record.step);
    }
    if (record.field === RUN) began = record.seconds;
  }
  return { end, records, rows, step, began };
}

/** Whole records of a log. It ends at the first damaged one, as after a kill in the middle of a write. */
export function* logRecords(bytes: Buffer): Generator<{ readonly content: Buffer; readonly behind: number }> {
  let pieces: Buffer[] = [];
  for (let at = FILE_HEADER.length; ; ) {
    const left = BLOCK - (at % BLOCK);
    if (left < PIECE_HEADER) at += left;
    if (at + PIECE_HEADER > bytes.length) return;
    const length = bytes.readUInt16LE(at + 4);
    const type = bytes[at + 6]!;
    const piece = bytes.subarray(at + PIECE_HEADER, at + PIECE_HEADER + length);
    if (piece.length < length || bytes.readUInt32LE(at) !== checksum(type, piece)) return;
    at += PIECE_HEADER + length;
    if (type === FULL || type === FIRST) pieces = [];
    pieces.push(piece);
    if (type === FULL || type === LAST) yield { content: Buffer.concat(pieces), behind: at };
  }
}

/** Kind of a record, the step of a row, and the time of a run's beginning. */
function readRecord(content: Uint8Array): { field: number; step: number; seconds: number } {
  const found = { field: 0, step: 0, seconds: 0 };
  const reader = new BinaryReader(content);
  while (reader.pos < reader.len) {
    const [field, type] = reader.tag();
    if (field === 1) {
      reader.skip(type);
      continue;
    }
    found.field = field;
    if (field !== HISTORY && field !== RUN) {
      reader.skip(type);
      continue;
    }
    const inner = new BinaryReader(reader.bytes());
    while (inner.pos < inner.len) {
      const [at, kind] = inner.tag();
      if (at !== (field === HISTORY ? 2 : 17)) {
        inner.skip(kind);
        continue;
      }
      const time = new BinaryReader(inner.bytes());
      while (time.pos < time.len) {
        const [part, form] = time.tag();
        if (part !== 1) time.skip(form);
        else if (field === HISTORY) found.step = Number(time.int64());
        else found.seconds = Number(time.int64());
      }
    }
  }
  return found;
}

/** File of an earlier process; undefined where there is none. */
function findFile(dir: string): string | undefined {
  const folder = join(dir, 'wandb');
  const name = nodeDisk.list(folder).find((one) => /^offline-run-\d{8}_\d{6}-[a-z\d]{8}$/.test(one));
  if (name === undefined) return undefined;
  const path = join(folder, name, `run-${name.slice(-8)}.wandb`);
  const { size } = statSync(path, { throwIfNoEntry: false }) ?? { size: 0 };
  if (size < FILE_HEADER.length) nodeDisk.write(path, FILE_HEADER); // a kill came between the folder and its file
  return path;
}

/** Makes a file with its header, under a name as the client gives it. @returns its path */
function makeFile(dir: string, now: number): string {
  const time = new Date(now).toISOString().replace(/[-:]/g, '').replace('T', '_').slice(0, 15);
  const id = randomBytes(4).toString('hex');
  const folder = join(dir, 'wandb', `offline-run-${time}-${id}`);
  makeFolder(folder);
  const path = join(folder, `run-${id}.wandb`);
  nodeDisk.write(path, FILE_HEADER);
  return path;
}

/** Id of a run, from its file's name. */
function idOf(path: string): string {
  return basename(path, '.wandb').slice('run-'.length);
}
