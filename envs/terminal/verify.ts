/** Checks the end of a task: files, permissions, folders and the answer, as the goal says. Nothing is run for it. */
import { isDeepStrictEqual } from 'node:util';
import { parseJson } from '../../src/core/json-text.ts';
import type { TerminalTask } from './families/task.ts';
import type { Tree } from './shell.ts';

/**
 * Lists what is not as the goal says; nothing where the task is solved. Ends of files may lack or repeat line breaks, and JSON
 * may be written in any form.
 * @param answer what was submitted with the end; empty without one
 */
export function findFaults({ files: start, goal }: TerminalTask, { files, folders }: Tree, answer: string): string[] {
  const faults: string[] = [];
  for (const [path, wanted] of Object.entries(goal.files)) {
    const found = files.get(path);
    if (!found) faults.push(`${path} is missing`);
    else if (!isSameText(path, found.content, wanted)) faults.push(`${path} has other contents`);
  }
  for (const path of Object.keys(start)) {
    if (!Object.hasOwn(goal.files, path) && files.has(path)) faults.push(`${path} is still there`);
  }
  for (const [path, mode] of Object.entries(goal.modes ?? {})) {
    if (files.get(path)?.mode !== mode) faults.push(`${path} does not have the permissions ${mode.toString(8)}`);
  }
  for (const folder of goal.folders ?? []) if (!folders.has(folder)) faults.push(`the folder ${folder} is missing`);
  if (goal.answer !== undefined && trimAnswer(answer) !== goal.answer) faults.push('the answer is another');
  return faults;
}

function isSameText(path: string, found: string, wanted: string): boolean {
  if (found === wanted) return true;
  if (!path.endsWith('.json')) return found.replace(/\n+$/, '') === wanted.replace(/\n+$/, '');
  try {
    return isDeepStrictEqual(parseJson(found), parseJson(wanted));
  } catch {
    return false;
  }
}

/** An answer without blanks and quotes around it, and without `./` before a path. */
function trimAnswer(answer: string): string {
  return answer
    .trim()
    .replace(/^(["'`])(.*)\1$/s, '$2')
    .trim()
    .replace(/^\.\//, '');
}
