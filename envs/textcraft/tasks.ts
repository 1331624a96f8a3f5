/** The 544 tasks, labelled by depth, and the paper's held-out hundred. */
import type { Split, TaskTable } from '../../src/core/task.ts';
import { TREE } from './recipes.ts';

/** First and last index of each run of test tasks: 31 of depth 1, 41 of depth 2, 25 of depth 3, 3 of depth 4. */
const TEST_RUNS = [
  [0, 30],
  [140, 180],
  [420, 444],
  [533, 535],
] as const;

const indices = TREE.goals.map((_, index) => index);
const isTest = (index: number) => TEST_RUNS.some(([first, last]) => index >= first && index <= last);
const splits: Readonly<Record<Split, readonly number[]>> = {
  test: indices.filter(isTest),
  train: indices.filter((index) => !isTest(index)),
};

export const tasks: TaskTable = {
  count: TREE.goals.length,
  labels: ['depth 1', 'depth 2', 'depth 3', 'depth 4'],
  label(index) {
    const goal = TREE.goals[index];
    if (!goal)
      throw new RangeError(`textcraft: task index must be an integer in [0, ${TREE.goals.length}), got ${index}`);
    return `depth ${goal.depth}`;
  },
  split: (split) => splits[split],
  evalSeed: 42,
};
