/** Digests and differences of databases, as the recordings of the original give them. */

import { createHash } from 'node:crypto';
import { compareCodePoints } from '../../src/core/python-text.ts';
import { dumpFloat, quoteAscii } from './python/format.ts';
import type { ModelType } from './python/model.ts';
import { isEqual } from './python/operations.ts';
import { fieldsOf, isDict, Model, type PyDict, type PyValue, Table } from './python/values.ts';

/** Way to write a database as one text. */
interface Style {
  readonly comma: string;
  readonly colon: string;
  quote(text: string): string;
  float(value: number): string;
  /** Texts of frozen rows: most rows of a database are shared and never change. */
  readonly known: WeakMap<object, string>;
}

/** `json.dumps(…, sort_keys=True)`: the original hashes this. */
const PYTHON: Style = { comma: ', ', colon: ': ', quote: quoteAscii, float: dumpFloat, known: new WeakMap() };
/** Canonical JSON: no blanks, numbers as JavaScript prints them. */
const CANONICAL: Style = { comma: ',', colon: ':', quote: JSON.stringify, float: String, known: new WeakMap() };

/** Hash of a database as the original computes it: SHA-256 of its JSON with sorted keys, in hexadecimal. */
export function hashOf(database: PyValue): string {
  return sha256(write(database, PYTHON));
}

/** Digest of a database for ports: SHA-256 of canonical JSON, in hexadecimal. */
export function digestOf(database: PyValue): string {
  return sha256(write(database, CANONICAL));
}

function sha256(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}

function write(value: PyValue, style: Style): string {
  switch (typeof value) {
    case 'string':
      return style.quote(value);
    case 'number':
      return style.float(value);
    case 'bigint':
    case 'boolean':
      return String(value);
  }
  if (value === null) return 'null';
  if (Array.isArray(value)) return `[${value.map((one) => write(one, style)).join(style.comma)}]`;
  const writeRow = value instanceof Table ? writeShared : write;
  const entries = value instanceof Model ? sortedFieldsOf(value) : sortEntries(entriesOf(value));
  return `{${entries.map(([key, one]) => style.quote(key) + style.colon + writeRow(one, style)).join(style.comma)}}`;
}

/**
 * Text that is the same for the same state, of the rows that an episode has edited or made: short, where the database is long.
 * Databases over other shared rows may have the same one.
 */
export function fingerprintOf(database: PyValue): string {
  if (!isObject(database)) return write(database, CANONICAL);
  const entries = entriesOf(database).map(([name, one]) => {
    return [name, one instanceof Table ? new Map(one.own()) : one] as const;
  });
  return write(new Map(entries), PYTHON);
}

/** Text of a row, which is kept where the row is shared. */
function writeShared(row: PyValue, style: Style): string {
  if (typeof row !== 'object' || row === null || !Object.isFrozen(row)) return write(row, style);
  let text = style.known.get(row);
  if (text === undefined) {
    text = write(row, style);
    style.known.set(row, text);
  }
  return text;
}

const sortedNames = new WeakMap<ModelType, readonly string[]>();

/** Fields of a model, sorted; those of one type are sorted once. */
function sortedFieldsOf(model: Model): [string, PyValue][] {
  const type = Model.typeOf(model);
  let names = sortedNames.get(type);
  if (!names) sortedNames.set(type, (names = sortEntries(fieldsOf(model)).map(([name]) => name)));
  return names.map((name) => [name, Reflect.get(model, name)]);
}

function sortEntries(entries: [string, PyValue][]): [string, PyValue][] {
  return entries.sort(([a], [b]) => compareCodePoints(a, b));
}

function entriesOf(value: PyDict | Model): [string, PyValue][] {
  return isDict(value) ? Array.from(value as Iterable<[string, PyValue]>) : fieldsOf(value);
}

/**
 * True for two states whose hashes are equal: ints differ from floats, the order of keys does not count. Rows that both share are
 * not looked through.
 */
export function isSameState(a: PyValue, b: PyValue): boolean {
  if (Object.is(a, b)) return true;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((one, i) => isSameState(one, b[i]!));
  }
  if (!isObject(a) || !isObject(b)) return false;
  const [ours, others] = [entriesOf(a), new Map(entriesOf(b))];
  if (ours.length !== others.size) return false;
  return ours.every(([key, one]) => {
    const other = others.get(key);
    return other !== undefined && isSameState(one, other);
  });
}

/** Change of a database: the JSON pointer, and what is there now; `gone` where nothing is. */
export type Change =
  | readonly [pointer: string, kind: 'set' | 'new', value: PyValue]
  | readonly [pointer: string, kind: 'gone'];

/** Changes from one state of a database to another, sorted by keys. A list that became shorter is set as a whole. */
export function changesOf(before: PyValue, after: PyValue): Change[] {
  const changes: Change[] = [];
  compare(before, after, '', changes);
  return changes;
}

function compare(before: PyValue, after: PyValue, pointer: string, changes: Change[]): void {
  if (before === after) return;
  if (Array.isArray(before) && Array.isArray(after) && before.length <= after.length) {
    after.forEach((one, i) => {
      if (i < before.length) compare(before[i]!, one, `${pointer}/${i}`, changes);
      else changes.push([`${pointer}/${i}`, 'new', one]);
    });
  } else if (isObject(before) && isObject(after)) {
    const [old, now] = [new Map(entriesOf(before)), new Map(entriesOf(after))];
    for (const key of [...new Set([...old.keys(), ...now.keys()])].sort(compareCodePoints)) {
      const [was, is] = [old.get(key), now.get(key)];
      const at = `${pointer}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`;
      if (is === undefined) changes.push([at, 'gone']);
      else if (was === undefined) changes.push([at, 'new', is]);
      else compare(was, is, at, changes);
    }
  } else if (!isEqual(before, after)) changes.push([pointer, 'set', after]);
}

function isObject(value: PyValue): value is PyDict | Model {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Value as plain JSON data: ints and floats are numbers. For comparisons with recordings. */
export function toJson(value: PyValue): unknown {
  return JSON.parse(write(value, CANONICAL));
}
