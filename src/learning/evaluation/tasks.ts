/** Tasks that training or an evaluation plays: a split of the world's table, or one of its named sets. */
import type { Env } from '../../core/env.ts';
import { messageOf, UserError } from '../../core/errors.ts';
import { parseJson } from '../../core/json-text.ts';
import type { Split } from '../../core/task.ts';

type Table = Pick<Env, 'id' | 'tasks'>;

/**
 * Task indices of the named set or of the list, else of the split.
 * @param key the messages' word for where the tasks were named
 * @throws {UserError} BAD_CONFIG for a set or an index the world does not have
 */
export function listEvaluatedTasks(
  env: Table,
  asked: { readonly split: Split; readonly tasks?: string | readonly number[] | undefined },
  key = 'evaluation.tasks',
): readonly number[] {
  const { split, tasks } = asked;
  if (tasks === undefined) return env.tasks.split(split);
  return typeof tasks === 'string' ? setOf(env, tasks, key) : checkListed(env, tasks, key);
}

function checkListed({ id, tasks }: Table, indices: readonly number[], key: string): readonly number[] {
  if (indices.length === 0) throw new UserError('BAD_CONFIG', `${key}: expected task indices of ${id}, got none`);
  const bad = indices.find((index) => !(Number.isInteger(index) && index >= 0 && index < tasks.count));
  if (bad === undefined) return [...new Set(indices)].sort((a, b) => a - b);
  throw new UserError('BAD_CONFIG', `${key}: ${id} has tasks 0 … ${tasks.count - 1}, got ${bad}`);
}

/** Tasks that a file may name. */
const MAX_IDS = 1_000_000;

/**
 * Task indices in the text of a file: numbers apart by blanks, commas or lines, ranges as `31-139`, or AgentGym's JSON
 * (`[{ "item_id": "world_31" }]`, or the numbers themselves).
 * @throws {UserError} BAD_ARGUMENT naming the file and what is no index
 */
export function readTaskIds(text: string, path: string): number[] {
  const words = /^\s*\[/.test(text) ? jsonWords(text, path) : text.split(/[\s,]+/).filter((word) => word !== '');
  if (words.length === 0) throw new UserError('BAD_ARGUMENT', `--tasks: ${path} names no task`);
  let count = 0;
  return words.flatMap((word) => {
    const range = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(word);
    const [first, last] = [Number(range?.[1]), Number(range?.[2] ?? range?.[1])];
    if (!range || last < first) {
      throw new UserError(
        'BAD_ARGUMENT',
        `--tasks: ${path}: expected ids like 31 or 31-139, got '${word.slice(0, 40)}'`,
      );
    }
    count += last - first + 1;
    if (count > MAX_IDS) throw new UserError('BAD_ARGUMENT', `--tasks: ${path} names more than ${MAX_IDS} tasks`);
    return Array.from({ length: last - first + 1 }, (_, n) => first + n);
  });
}

function jsonWords(text: string, path: string): string[] {
  let items: unknown;
  try {
    items = parseJson(text);
  } catch (thrown) {
    throw new UserError('BAD_ARGUMENT', `--tasks: ${path} is not JSON: ${messageOf(thrown)}`);
  }
  return (items as unknown[]).map((item) => {
    const id = (item as { item_id?: unknown } | null)?.item_id ?? item;
    return String(id).replace(/^[a-z]+_/, '');
  });
}

/**
 * Task indices to train on: of the named set, else of the split, with one of the labels where some are named.
 * @throws {UserError} BAD_CONFIG for a set or a label the world does not have
 */
export function listTrainTasks(
  env: Table,
  asked: { readonly set?: string; readonly labels?: readonly string[] },
): readonly number[] {
  const { set, labels } = asked;
  const unknown = labels?.find((label) => !env.tasks.labels.includes(label));
  if (unknown !== undefined) {
    const known = env.tasks.labels.join(', ');
    throw new UserError('BAD_CONFIG', `tasks.labels: '${unknown}' is no label of ${env.id}; it has ${known}`);
  }
  const indices = set === undefined ? env.tasks.split('train') : setOf(env, set, 'tasks.set');
  return labels ? indices.filter((index) => labels.includes(env.tasks.label(index))) : indices;
}

function setOf({ id, tasks }: Table, name: string, key: string): readonly number[] {
  const sets = tasks.sets ?? {};
  if (Object.hasOwn(sets, name)) return sets[name]!;
  const known = Object.keys(sets);
  const instead = known.length > 0 ? `it has ${known.join(', ')}` : 'it has none: name a split';
  throw new UserError('BAD_CONFIG', `${key}: ${id} has no set '${name}'; ${instead}`);
}
