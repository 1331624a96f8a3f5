/**
 * Task: names one episode start: which world, which of its tasks, and the seed of whatever the world draws at random.
 */
export interface Task {
  /** Environment id. */
  readonly env: string;
  /** Index into the env's task table, in [0, `tasks.count`). */
  readonly index: number;
  /** uint32. The same (env, index, seed) always opens the same episode. */
  readonly seed: number;
}

/** Split of the tasks into train and test; with a world that holds tasks out, the two share no index. */
export type Split = 'train' | 'test';

/** Table of an environment's tasks: their number, the held-out ones, and the sub-task of each. */
export interface TaskTable {
  /** Number of task indices; valid indices are 0 … count − 1. */
  readonly count: number;
  /**
   * Numbering of the tasks, where the world has several: the same index is another task under another one. Results keep it, and
   * runs under different ones are not compared.
   */
  readonly numbering?: string;
  /** Sub-task labels in the order tables print them, e.g. `depth 1` … `depth 4`. */
  readonly labels: readonly string[];
  /** Label of one task. @throws {RangeError} if index is not in [0, count) */
  label(index: number): string;
  /** Task indices of a split, ascending. */
  split(split: Split): readonly number[];
  /** Further named sets of task indices, e.g. a larger held-out set than the published one; each ascending. */
  readonly sets?: Readonly<Record<string, readonly number[]>>;
  /**
   * True for a task that training on the train split has met in part: its first text or its goal occurs there. Summaries
   * of evaluations give success without such tasks beside. Absent where none are known.
   */
  isSeen?(index: number): boolean;
  /** Seed under which a held-out task is evaluated, so that every evaluation sees the same episodes. */
  readonly evalSeed: number;
}

/**
 * Makes a table of `count` tasks of which some ranges are held out.
 * @param held first and last index of each held-out range, inclusive; empty where it is not known which are: then
 * every task is in both splits
 * @param label of each task; one text for all
 */
export function taskTable(
  count: number,
  held: readonly (readonly [first: number, last: number])[],
  label: string | { readonly labels: readonly string[]; of(index: number): string },
): TaskTable {
  const isHeld = (index: number) => held.some(([first, last]) => index >= first && index <= last);
  const indices = Array.from({ length: count }, (_, index) => index);
  const test = held.length === 0 ? indices : indices.filter(isHeld);
  const train = held.length === 0 ? indices : indices.filter((index) => !isHeld(index));
  return {
    count,
    labels: typeof label === 'string' ? [label] : label.labels,
    label(index) {
      if (!(Number.isInteger(index) && index >= 0 && index < count))
        throw new RangeError(`task ${index}: there are 0 … ${count - 1}`);
      return typeof label === 'string' ? label : label.of(index);
    },
    split: (split) => (split === 'test' ? test : train),
    evalSeed: 0,
  };
}

/** Name of a task in one readable word, `world/17#3`: env, index and seed. */
export function taskName(task: Task): string {
  return `${task.env}/${task.index}#${task.seed}`;
}

/**
 * Makes the labels of a run's tasks: the sub-task, with the name of its world before it where the run has several.
 * @param worlds at least one, by the ids that tasks name
 */
export function createLabels(
  worlds: readonly { readonly name: string; readonly labelOf: (index: number) => string }[],
): (task: Task) => string {
  const [first] = worlds;
  if (worlds.length === 1) return ({ index }) => first!.labelOf(index);
  const byName = new Map(worlds.map(({ name, labelOf }) => [name, labelOf]));
  return ({ env, index }) => `${env}: ${byName.get(env)!(index)}`;
}
