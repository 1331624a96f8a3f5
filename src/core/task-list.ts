/** Lists of tasks that a user writes: in a configuration, in a module, or as a JSONL file with one task a line. */
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MAX_DATA_BYTES, readText } from './bounded-file.ts';
import { describeValue } from './describe-value.ts';
import { messageOf, UserError } from './errors.ts';
import { parseJson } from './json-text.ts';
import { isRecord } from './record.ts';
import { type TaskTable, taskTable } from './task.ts';

/** Share of the tasks that is held out where they name no split: the last tenth. */
const HELD_SHARE = 0.1;

/** Tasks of a list: the table, and the entry of each. */
export interface TaskList {
  readonly table: TaskTable;
  /** Entry of the list, or `{ index }` where only the number of tasks is known. */
  task(index: number): unknown;
}

/**
 * Reads the tasks. An entry may name its `split` (`train` or `test`); without any the last tenth is held out.
 * @param given their number, the list, or the path of a JSONL file
 * @param from file that a relative path starts from
 * @param owner world that the tasks belong to, for labels and messages
 * @throws {UserError} BAD_CONFIG for no task, or a file that is no JSONL
 */
export function readTaskList(given: unknown, from: URL, owner: string): TaskList {
  const list = typeof given === 'string' ? readTaskFile(resolve(dirname(fileURLToPath(from)), given), owner) : given;
  if (typeof list === 'number' && Number.isSafeInteger(list) && list > 0) {
    return { table: tableOf(list, undefined, owner), task: (index) => ({ index }) };
  }
  if (!Array.isArray(list) || list.length === 0) {
    const expected = "a number, a list of one or more, or a JSONL file (a module exports it as 'tasks')";
    throw new UserError('BAD_CONFIG', `${owner}: tasks: expected ${expected}, got ${describeValue(list)}`);
  }
  const entries = list as readonly unknown[];
  return { table: tableOf(entries.length, entries, owner), task: (index) => entries[index] };
}

function readTaskFile(path: string, owner: string): readonly unknown[] {
  let text: string;
  try {
    text = readText(path, MAX_DATA_BYTES);
  } catch (thrown) {
    throw new UserError('BAD_CONFIG', `${owner}: tasks: ${path} cannot be read: ${messageOf(thrown)}`, {
      cause: thrown,
    });
  }
  const lines = text.split('\n').map((line, i) => [line, i + 1] as const);
  return lines
    .filter(([line]) => line.trim() !== '')
    .map(([line, number]) => {
      try {
        return parseJson(line);
      } catch (thrown) {
        throw new UserError(
          'BAD_CONFIG',
          `${owner}: tasks: ${path}:${number}: expected JSON, got ${messageOf(thrown)}`,
        );
      }
    });
}

/** Table of the tasks, with the held-out ones as they name them, or the last tenth. */
function tableOf(count: number, entries: readonly unknown[] | undefined, owner: string): TaskTable {
  const splits = entries?.map((entry) => (isRecord(entry) ? entry.split : undefined));
  if (splits?.includes('test')) {
    const held = splits.flatMap((split, index) => (split === 'test' ? [[index, index] as const] : []));
    return taskTable(count, held, owner);
  }
  const held = Math.floor(count * HELD_SHARE);
  return taskTable(count, held === 0 ? [] : [[count - held, count - 1]], owner);
}
