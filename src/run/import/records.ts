/**
 * Records of files that are imported: lines of JSON, or what a JSON file holds. Lines are read one at a time; records of one
 * episode that lie far apart are found by their places, so that memory holds one episode and a list of places.
 */
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { MAX_DATA_BYTES, readText } from '../../core/bounded-file.ts';
import { messageOf, UserError } from '../../core/errors.ts';
import { parseJson } from '../../core/json-text.ts';
import { isRecord } from '../../core/record.ts';
import { LONGEST_LINE, readLineAt, wholeBytes, wholeLines } from '../../storage/lines.ts';
import type { Span } from '../../storage/trace-index.ts';

/** Place of a record: a line, or a file that is one JSON value. */
export interface RecordPlace {
  readonly file: string;
  /** Line, from 1; 0 in a file that is one JSON value. */
  readonly line: number;
  /** Bytes of the line; absent in a file that is one JSON value. */
  readonly span?: Span;
}

/** Record with its place. */
export interface SourceRecord extends RecordPlace {
  readonly value: unknown;
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
      yield { value: one, file, line: 0 };
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
  const parse = function* (text: string | undefined, span: Span): Generator<SourceRecord> {
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
      yield { value, file, line, span };
    }
  };
  for (const { text, offset, length } of wholeLines(file)) yield* parse(text, { offset, length });
  // Many tools leave out the last newline.
  const offset = wholeBytes(file);
  const length = statSync(file).size - offset;
  if (length > 0)
    yield* parse(length > LONGEST_LINE ? undefined : readLineAt(file, offset, length), { offset, length });
}

/** Part of a record that belongs to one episode. */
export interface KeyedPart {
  readonly key: string;
  readonly part: unknown;
}

/**
 * Groups the parts of records by episode, in the order in which their keys first appear. Files are read twice: once for the
 * places, then record by record.
 */
export function* groupParts(
  files: readonly string[],
  partsOf: (value: unknown) => readonly KeyedPart[],
  onBad: (bad: BadRecord) => void,
): Generator<{ readonly key: string; readonly parts: readonly unknown[]; readonly first: RecordPlace }> {
  const places = new Map<string, RecordPlace[]>();
  for (const file of files) {
    for (const { value, ...at } of readRecords(file, onBad)) {
      const keys = new Set(partsOf(value).map((one) => one.key));
      if (keys.size === 0) onBad({ file, line: at.line, why: 'nothing in it belongs to a trace' });
      for (const key of keys) {
        let known = places.get(key);
        if (!known) places.set(key, (known = []));
        if (!isSamePlace(known.at(-1), at)) known.push(at);
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
    yield { key, parts, first: known[0]! };
  }
}

/** Reader of the parts at a place, which keeps those of the last one: episodes that lie in one record follow each other. */
function createReader(partsOf: (value: unknown) => readonly KeyedPart[]): (place: RecordPlace) => readonly KeyedPart[] {
  let last: (RecordPlace & { readonly parts: readonly KeyedPart[] }) | undefined;
  return (place) => {
    if (!isSamePlace(last, place)) last = { ...place, parts: valuesAt(place).flatMap(partsOf) };
    return last!.parts;
  };
}

function isSamePlace(a: RecordPlace | undefined, b: RecordPlace): boolean {
  return a?.file === b.file && a.span?.offset === b.span?.offset;
}

function valuesAt({ file, span }: RecordPlace): unknown[] {
  if (!span) return [...readRecords(file, () => {})].map(({ value }) => value);
  return [parseJson(readLineAt(file, span.offset, span.length))];
}
