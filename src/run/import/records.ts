/**
 * Records of files that are imported: lines of JSON, or what a JSON file holds. Lines are read one at a time; records of one
 * episode that lie far apart are found by their places, so that memory holds one episode and a list of places.
 */
import { closeSync, existsSync, fstatSync, readdirSync, readSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { MAX_DATA_BYTES, openFile, readText } from '../../core/bounded-file.ts';
import { messageOf, UserError } from '../../core/errors.ts';
import { parseJson } from '../../core/json-text.ts';
import { isRecord } from '../../core/record.ts';
import { LONGEST_LINE, wholeBytes, wholeLines } from '../../storage/lines.ts';

/** Record with its place. */
export interface SourceRecord {
  readonly value: unknown;
  readonly file: string;
  /** Line, from 1; 0 in a file that is one JSON value. */
  readonly line: number;
  /** First byte of the line; 0 in a file that is one JSON value. */
  readonly offset: number;
}

/** Line or file that could not be read. */
export interface BadRecord {
  readonly file: string;
  /** Line, from 1; 0 for the file. */
  readonly line: number;
  readonly why: string;
}

const ENDING = /\.(?:jsonl|ndjson|json)$/i;

/**
 * Lists the files of a source, in the order of their names.
 * @throws {UserError} BAD_TRACE where there is none
 */
export function listFiles(path: string): string[] {
  if (!existsSync(path))
    throw new UserError('BAD_TRACE', `${path} does not exist; give a file or a folder of .json or .jsonl`);
  if (!statSync(path).isDirectory()) return [path];
  const names = readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && ENDING.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
  if (names.length === 0)
    throw new UserError('BAD_TRACE', `${path}: expected files that end in .json or .jsonl, found none`);
  return names;
}

/** Reads the records of a file. @param onBad gets what is no JSON */
export function* readRecords(file: string, onBad: (bad: BadRecord) => void): Generator<SourceRecord> {
  if (isLines(file)) yield* readLines(file, onBad);
  else {
    let value: unknown;
    try {
      value = parseJson(readText(file, MAX_DATA_BYTES));
    } catch (thrown) {
      onBad({ file, line: 0, why: messageOf(thrown) });
      return;
    }
    for (const one of Array.isArray(value) && !value.every(isMessage) ? value : [value]) {
      yield { value: one, file, line: 0, offset: 0 };
    }
  }
}

/** True for an item of a conversation: a bare list of them is one record. */
function isMessage(value: unknown): boolean {
  return isRecord(value) && ('role' in value || 'from' in value) && !('messages' in value);
}

/** True for a file of JSON lines, whatever its name: its first line is a JSON value, and more may follow. */
function isLines(file: string): boolean {
  if (/\.(?:jsonl|ndjson)$/i.test(file)) return true;
  const [first] = wholeLines(file, 0, 1);
  if (first?.text === undefined || first.length + 1 >= statSync(file).size) return false;
  try {
    return isRecord(parseJson(first.text));
  } catch {
    return false;
  }
}

function* readLines(file: string, onBad: (bad: BadRecord) => void): Generator<SourceRecord> {
  let line = 0;
  const parse = function* (text: string | undefined, offset: number): Generator<SourceRecord> {
    line++;
    if (text?.trim() === '') return;
    if (text === undefined) onBad({ file, line, why: `it is longer than ${LONGEST_LINE} bytes` });
    else {
      let value: unknown;
      try {
        value = parseJson(text);
      } catch (thrown) {
        onBad({ file, line, why: `it is no JSON: ${messageOf(thrown)}` });
        return;
      }
      yield { value, file, line, offset };
    }
  };
  for (const { text, offset } of wholeLines(file)) yield* parse(text, offset);
  // Many tools leave out the last newline.
  const begin = wholeBytes(file);
  const rest = readRest(file, begin);
  if (rest !== '') yield* parse(rest, begin);
}

/** Reads what stands behind the last newline. @returns undefined for what is too long */
function readRest(file: string, from: number): string | undefined {
  const fd = openFile(file);
  try {
    const length = fstatSync(fd).size - from;
    if (length > LONGEST_LINE) return undefined;
    const bytes = Buffer.allocUnsafe(Math.max(0, length));
    let read = 0;
    while (read < length) {
      const got = readSync(fd, bytes, read, length - read, from + read);
      if (got === 0) break;
      read += got;
    }
    return bytes.toString('utf8', 0, read);
  } finally {
    closeSync(fd);
  }
}

/** Part of a record that belongs to one episode. */
export interface KeyedPart {
  readonly key: string;
  readonly part: unknown;
}

/** Place of a record. */
interface Place {
  readonly file: string;
  readonly offset: number;
}

/**
 * Groups the parts of records by episode, in the order in which their keys first appear. Files are read twice: once for the
 * places, then record by record.
 */
export function* groupParts(
  files: readonly string[],
  partsOf: (value: unknown) => readonly KeyedPart[],
  onBad: (bad: BadRecord) => void,
): Generator<{ readonly key: string; readonly parts: readonly unknown[]; readonly first: SourceRecord }> {
  const places = new Map<string, Place[]>();
  const firsts = new Map<string, SourceRecord>();
  for (const file of files) {
    for (const { value, ...at } of readRecords(file, onBad)) {
      const keys = new Set(partsOf(value).map((one) => one.key));
      if (keys.size === 0) onBad({ file, line: at.line, why: 'nothing in it belongs to a trace' });
      for (const key of keys) {
        let known = places.get(key);
        if (!known) places.set(key, (known = []));
        if (!firsts.has(key)) firsts.set(key, { value: undefined, ...at });
        const last = known.at(-1);
        if (last?.file !== file || last.offset !== at.offset) known.push({ file, offset: at.offset });
      }
    }
  }
  const read = createReader(partsOf);
  for (const [key, known] of places) {
    const parts = known.flatMap((place) =>
      read(place)
        .filter((one) => one.key === key)
        .map(({ part }) => part),
    );
    yield { key, parts, first: firsts.get(key)! };
  }
}

/** Reader of the parts at a place, which keeps those of the last one: episodes that lie in one record follow each other. */
function createReader(partsOf: (value: unknown) => readonly KeyedPart[]): (place: Place) => readonly KeyedPart[] {
  let last: (Place & { readonly parts: readonly KeyedPart[] }) | undefined;
  return ({ file, offset }) => {
    if (last?.file === file && last.offset === offset) return last.parts;
    const parts = valuesAt(file, offset).flatMap(partsOf);
    last = { file, offset, parts };
    return parts;
  };
}

/** Values of a line, or of a file that is one JSON value. */
function valuesAt(file: string, offset: number): unknown[] {
  if (!isLines(file)) return [...readRecords(file, () => {})].map(({ value }) => value);
  const [line] = wholeLines(file, offset, 1);
  return [parseJson(line?.text ?? readRest(file, offset) ?? 'null')];
}
