/** Text of a configuration: YAML, and overrides of the command line, as plain values. It knows no key. */

import { isMap, isScalar, isSeq, LineCounter, parseDocument } from 'yaml';
import { cutText } from '../core/describe-value.ts';
import { messageOf, UserError } from '../core/errors.ts';
import { firstLineOf } from '../core/first-line.ts';
import { printable } from '../core/printable.ts';
import { isRecord } from '../core/record.ts';

/** Characters of a configuration, far more than any needs: the parser takes seconds for a deeply nested megabyte. */
const MAX_CHARS = 2 ** 18;

/**
 * Reads YAML as plain values.
 * @param source where it came from, for messages
 * @throws {UserError} BAD_CONFIG for text that is too long, is no YAML, or has aliases that cannot be followed
 */
export function readYaml(text: string, source: string): unknown {
  if (text.length > MAX_CHARS) {
    const message = `${source}: expected at most ${MAX_CHARS} characters, got ${text.length}; is this a configuration?`;
    throw new UserError('BAD_CONFIG', message);
  }
  return toPlainValue(parseYaml(text, source), source);
}

/** Parses YAML. Repeated keys are found here: the parser compares each key with all others. @throws {UserError} BAD_CONFIG */
function parseYaml(text: string, source: string): ReturnType<typeof parseDocument> {
  const lines = new LineCounter();
  // Nor does it make its errors pretty: each would quote its line, and a line may hold thousands.
  const document = parseDocument(text, {
    uniqueKeys: false,
    lineCounter: lines,
    prettyErrors: false,
    logLevel: 'error',
  });
  const [error] = document.errors;
  let why = error && `${firstLineOf(error.message)} at ${describePlace(lines, error.pos[0])}`;
  const twice = why === undefined ? findRepeatedKey(document.contents) : undefined;
  if (twice !== undefined) why = `Map keys must be unique at ${describePlace(lines, twice)}`;
  if (why !== undefined) throw new UserError('BAD_CONFIG', `${source}: not valid YAML: ${why}`);
  return document;
}

/** Finds the first key that its map has twice, at any depth. @returns its offset; undefined where there is none */
function findRepeatedKey(node: unknown): number | undefined {
  if (isMap(node)) {
    const seen = new Set<string>();
    for (const { key, value } of node.items) {
      if (isScalar(key)) {
        const name = String(key.value);
        if (seen.has(name)) return key.range?.[0] ?? 0;
        seen.add(name);
      }
      const inner = (isScalar(key) ? undefined : findRepeatedKey(key)) ?? findRepeatedKey(value);
      if (inner !== undefined) return inner;
    }
  } else if (isSeq(node)) {
    for (const item of node.items) {
      const inner = findRepeatedKey(item);
      if (inner !== undefined) return inner;
    }
  }
  return undefined;
}

function describePlace(lines: LineCounter, offset: number): string {
  const { line, col } = lines.linePos(offset);
  return `line ${line}, column ${col}:`;
}

/** Aliases that a document may expand to; more of them are an attack or a mistake. */
const MAX_ALIASES = 100;

/** Converts a document to plain values. @throws {UserError} BAD_CONFIG for aliases without an anchor, circular or too many */
function toPlainValue(document: ReturnType<typeof parseDocument>, source: string): unknown {
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: MAX_ALIASES });
    JSON.stringify(value); // an alias inside its own anchor
  } catch (thrown) {
    throw new UserError('BAD_CONFIG', `${source}: aliases cannot be followed: ${firstLineOf(messageOf(thrown))}`);
  }
  return value;
}

/** Keys that would reach behind an object instead of into it. */
const INHERITED: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype']);

/** Applies an override, `key.path=value` with a value in YAML, to a configuration in place. @throws {UserError} BAD_CONFIG */
export function applyOverride(raw: Record<string, unknown>, override: string): void {
  const cut = override.indexOf('=');
  if (cut < 1)
    throw new UserError(
      'BAD_CONFIG',
      `--set ${printable(cutText(override))}: expected key=value, e.g. --set learner.maxLag=0`,
    );
  const path = override.slice(0, cut).split('.');
  const document = parseYaml(override.slice(cut + 1), `--set ${printable(cutText(override))}`);
  const inherited = path.find((key) => INHERITED.has(key));
  if (inherited !== undefined)
    throw new UserError('BAD_CONFIG', `--set ${printable(cutText(override))}: there is no key '${inherited}'`);
  let at = raw;
  for (const key of path.slice(0, -1)) {
    if (!isRecord(at[key]) && !Array.isArray(at[key])) at[key] = {};
    at = at[key] as Record<string, unknown>;
  }
  at[path.at(-1)!] = toPlainValue(document, `--set ${printable(cutText(override))}`);
}
