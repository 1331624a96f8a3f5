/** A task names one episode start: which world, which of its tasks, and the seed of whatever the world draws at random. */
export interface Task {
  /** Environment id, e.g. `textcraft`. */
  readonly env: string;
  /** Index into the env's task table, in [0, `tasks.count`). */
  readonly index: number;
  /** uint32. The same (env, index, seed) always opens the same episode. */
  readonly seed: number;
}

/** Which side of the train/test border a task index lies on; the two never share an index. */
export type Split = 'train' | 'test';

/** The tasks of one environment: how many, which are held out, and what sub-task each belongs to. */
export interface TaskTable {
  /** Number of task indices; valid indices are 0 … count − 1. */
  readonly count: number;
  /** Sub-task labels in the order tables print them, e.g. `depth 1` … `depth 4`. */
  readonly labels: readonly string[];
  /** Label of one task. @throws {RangeError} if index is not in [0, count) */
  label(index: number): string;
  /** Task indices of a split, ascending. */
  split(split: Split): readonly number[];
  /** Further named sets of task indices, e.g. a larger held-out set than the published one; each ascending. */
  readonly sets?: Readonly<Record<string, readonly number[]>>;
  /** Seed under which a held-out task is evaluated, so that every evaluation sees the same episodes. */
  readonly evalSeed: number;
}

/** `textcraft/17#3`: env, index and seed as one readable word. */
export function taskName(task: Task): string {
  return `${task.env}/${task.index}#${task.seed}`;
}
