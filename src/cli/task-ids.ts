/** Tasks that `--tasks` names. */
import { existsSync, statSync } from 'node:fs';
import { MAX_SETTINGS_BYTES, readBounded } from '../core/bounded-file.ts';
import { messageOf, UserError } from '../core/errors.ts';
import { readTaskIds } from '../learning/evaluation/tasks.ts';

/**
 * Task ids of a file; else the name of a set, which the world checks.
 * @throws {UserError} BAD_ARGUMENT for a file that is not there, cannot be read or names no ids
 */
export function tasksIn(text: string): string | number[] {
  if (existsSync(text) && statSync(text).isFile()) return readTaskIds(idsIn(text), text);
  if (!/[./\\]/.test(text)) return text;
  throw new UserError('BAD_ARGUMENT', `--tasks: there is no file ${text}`);
}

function idsIn(path: string): string {
  try {
    return readBounded(path, MAX_SETTINGS_BYTES).toString('utf8');
  } catch (thrown) {
    throw new UserError('BAD_ARGUMENT', `--tasks: cannot read ${path}: ${messageOf(thrown)}`);
  }
}
