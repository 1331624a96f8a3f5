/** Tasks that training or an evaluation plays: a split of the world's table, or one of its named sets. */
import type { Env } from '../core/env.ts';
import { UserError } from '../core/errors.ts';
import type { Split } from '../core/task.ts';

type Table = Pick<Env, 'id' | 'tasks'>;

/**
 * Task indices of the named set, else of the split.
 * @throws {UserError} BAD_CONFIG for a set the world does not have
 */
export function evaluatedTasks(
  env: Table,
  asked: { readonly split: Split; readonly tasks?: string },
): readonly number[] {
  return asked.tasks === undefined ? env.tasks.split(asked.split) : setOf(env, asked.tasks, 'evaluation.tasks');
}

/**
 * Task indices to train on: of the named set, else of the split, with one of the labels where some are named.
 * @throws {UserError} BAD_CONFIG for a set or a label the world does not have
 */
export function trainedTasks(
  env: Table,
  asked: { readonly split: Split; readonly set?: string; readonly labels?: readonly string[] },
): readonly number[] {
  const { split, set, labels } = asked;
  const unknown = labels?.find((label) => !env.tasks.labels.includes(label));
  if (unknown !== undefined) {
    const known = env.tasks.labels.join(', ');
    throw new UserError('BAD_CONFIG', `tasks.labels: '${unknown}' is no label of ${env.id}; it has ${known}`);
  }
  const indices = set === undefined ? env.tasks.split(split) : setOf(env, set, 'tasks.set');
  return labels ? indices.filter((index) => labels.includes(env.tasks.label(index))) : indices;
}

function setOf({ id, tasks }: Table, name: string, key: string): readonly number[] {
  const sets = tasks.sets ?? {};
  if (Object.hasOwn(sets, name)) return sets[name]!;
  const known = Object.keys(sets);
  const instead = known.length > 0 ? `it has ${known.join(', ')}` : 'it has none: name a split';
  throw new UserError('BAD_CONFIG', `${key}: ${id} has no set '${name}'; ${instead}`);
}
