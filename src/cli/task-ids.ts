/** Tasks that `--tasks` names. */
import { existsSync, statSync } from 'node:fs';
import { readText } from '../core/bounded-file.ts';
import { messageOf, UserError } from '../core/errors.ts';
import { readTaskIds } from '../learning/evaluation/tasks.ts';

/**
 * Task ids of a file; else the name of a set, which the world checks.
 * @throws {UserError} BAD_ARGUMENT for a file that is not there, cannot be read or names no ids
 */
export function tasksIn(text: string): string | number[] {
  if (existsSync(text) && !statSync(text).isDirectory()) return readTaskIds(idsIn(text), text);
  if (!/[./\\]/.test(text)) return text;
  throw new UserError('BAD_ARGUMENT', `--tasks: there is no file ${text}`);
}

function idsIn(path: string): string {
  try {
    return readText(path);
  } catch (thrown) {
    throw new UserError('BAD_ARGUMENT', `--tasks: cannot read ${messageOf(thrown)}`);
  }
}
