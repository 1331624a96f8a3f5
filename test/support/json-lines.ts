/** Recorded fixtures: one JSON value a line. */
import { MAX_DATA_BYTES, readText } from '../../src/core/bounded-file.ts';

/** Reads a fixture. */
export function readLines(file: URL): readonly unknown[] {
  const lines = readText(file, MAX_DATA_BYTES).trimEnd().split('\n');
  return lines.map((line): unknown => JSON.parse(line));
}
