/** Which tasks an evaluation plays. */
import type { Env } from '../core/env.ts';
import { UserError } from '../core/errors.ts';
import type { Split } from '../core/task.ts';

/**
 * Task indices of the named set, else of the split.
 * @throws {UserError} BAD_CONFIG for a set the world does not have
 */
export function evaluatedTasks(
  { id, tasks }: Pick<Env, 'id' | 'tasks'>,
  asked: { readonly split: Split; readonly tasks?: string },
): readonly number[] {
  if (asked.tasks === undefined) return tasks.split(asked.split);
  const set = tasks.sets?.[asked.tasks];
  if (set) return set;
  const known = Object.keys(tasks.sets ?? {});
  throw new UserError(
    'BAD_CONFIG',
    `evaluation.tasks: ${id} has no set '${asked.tasks}'; ${known.length > 0 ? `it has ${known.join(', ')}` : 'it has none: use evaluation.split'}`,
  );
}
