/**
 * Conversations as Parquet: a row each, its messages a list of structures, as verl's multi-turn datasets read them.
 * @see https://verl.readthedocs.io/en/latest/preparation/prepare_data.html
 */
import { fileWriter, ParquetWriter } from 'hyparquet-writer';

/** Row of the file. */
export interface ConversationRow {
  readonly messages: readonly { readonly role: string; readonly content: string }[];
  readonly env: string;
  readonly task: number;
  /** Return of the episode. */
  readonly reward: number;
  readonly success: boolean;
}

const TEXT = { type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'OPTIONAL' } as const;

const SCHEMA = [
  { name: 'root', num_children: 5 },
  { name: 'messages', repetition_type: 'OPTIONAL', num_children: 1, converted_type: 'LIST' },
  { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
  { name: 'element', repetition_type: 'OPTIONAL', num_children: 2 },
  { name: 'role', ...TEXT },
  { name: 'content', ...TEXT },
  { name: 'env', ...TEXT },
  { name: 'task', type: 'INT32', repetition_type: 'OPTIONAL' },
  { name: 'reward', type: 'DOUBLE', repetition_type: 'OPTIONAL' },
  { name: 'success', type: 'BOOLEAN', repetition_type: 'OPTIONAL' },
] as const;

const COLUMNS = ['messages', 'env', 'task', 'reward', 'success'] as const;

/** Rows of one part. */
const PART_ROWS = 2000;

/** Writes a file. @returns rows written */
export function writeConversations(path: string, rows: Iterable<ConversationRow>): number {
  const writer = new ParquetWriter({ writer: fileWriter(path), schema: [...SCHEMA] });
  let part: ConversationRow[] = [];
  let written = 0;
  const flush = () => {
    if (part.length === 0) return;
    const columnData = COLUMNS.map((name) => ({ name, data: part.map((row) => row[name]) }));
    writer.write({ columnData, rowGroupSize: PART_ROWS });
    written += part.length;
    part = [];
  };
  for (const row of rows) {
    part.push(row);
    if (part.length >= PART_ROWS) flush();
  }
  flush();
  writer.finish();
  return written;
}
