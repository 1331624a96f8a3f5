/**
 * Corpus in Search-R1's form: a line of JSON a passage, `{"id": "0", "contents": "\"Title\"\ntext"}`; further fields are
 * kept. Plain or gzip.
 */
import { createGunzip } from 'node:zlib';
import { streamFile } from '../core/bounded-file.ts';
import { describeValue } from '../core/describe-value.ts';
import { messageOf, UserError } from '../core/errors.ts';
import { parseJson } from '../core/json-text.ts';
import { excerpt } from '../http/http-client.ts';

/** Passage as it is searched and answered with. */
export interface Passage {
  /** Id in its corpus; some retrievers do not report it. */
  readonly id?: string;
  /** Contents: title, newline, text. */
  readonly contents: string;
}

/** Bytes of the longest line: a corpus of longer ones is no corpus of passages. */
const MAX_LINE = 16 * 2 ** 20;

/**
 * Line of the corpus: its row from 0, its bytes, and the bytes read of the file so far (packed ones, if it is gzip).
 */
export interface CorpusLine {
  readonly row: number;
  readonly bytes: Uint8Array;
  readonly read: number;
}

/**
 * Reads the lines of a corpus; empty ones are passed over.
 * @throws {UserError} for a file that cannot be read or unpacked
 */
export async function* readLines(file: string): AsyncGenerator<CorpusLine> {
  const raw = streamFile(file, 1 << 20);
  const unpacked = file.endsWith('.gz') ? raw.pipe(createGunzip({ chunkSize: 1 << 20 })) : raw;
  if (unpacked !== raw) raw.on('error', (error) => unpacked.destroy(error));
  let row = 0;
  let rest: Buffer = Buffer.alloc(0);
  try {
    for await (const read of unpacked as AsyncIterable<Buffer>) {
      const chunk = rest.length === 0 ? read : Buffer.concat([rest, read]);
      let from = 0;
      for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
        const bytes = chunk.subarray(from, chunk[at - 1] === 13 ? Math.max(from, at - 1) : at);
        from = at + 1;
        if (bytes.length > 0) yield { row: row++, bytes, read: raw.bytesRead };
      }
      rest = chunk.subarray(from);
      if (rest.length > MAX_LINE) {
        throw new UserError(
          'BAD_ARGUMENT',
          `${file}: line ${row + 1} is longer than ${MAX_LINE} bytes; expected a passage a line`,
        );
      }
    }
  } catch (thrown) {
    if (thrown instanceof UserError) throw thrown;
    throw new UserError('BAD_ARGUMENT', `${file}: ${messageOf(thrown)}`, { cause: thrown });
  }
  if (rest.length > 0) yield { row, bytes: rest, read: raw.bytesRead };
}

const decoder = new TextDecoder();

/**
 * Reads a passage.
 * @throws {UserError} for a line that is no passage
 */
export function readPassage(line: Uint8Array, where: string): Required<Passage> {
  let row: unknown;
  try {
    row = parseJson(decoder.decode(line));
  } catch (thrown) {
    throw new UserError(
      'BAD_ARGUMENT',
      `${where}: expected a JSON object a line, got ${excerpt(messageOf(thrown), 120)}`,
    );
  }
  const { id, contents } = (row ?? {}) as Record<string, unknown>;
  if (typeof contents !== 'string') {
    throw new UserError(
      'BAD_ARGUMENT',
      `${where}: the field "contents" must be a text, got ${describeValue(contents, 60)}`,
    );
  }
  if (typeof id !== 'string' && typeof id !== 'number') {
    throw new UserError(
      'BAD_ARGUMENT',
      `${where}: the field "id" must be a text or a number, got ${describeValue(id, 60)}`,
    );
  }
  return { ...(row as object), id: String(id), contents };
}
