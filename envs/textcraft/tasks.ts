/** Task tables of the 544 goals, labelled by depth: the paper's 100 test ids and 374 train ids, and sets beside them. */
import type { Split, TaskTable } from '../../src/core/task.ts';
import type { Order } from './order.ts';
import type { Tree } from './recipes.ts';
import { waysTo } from './start.ts';

/** Test ids of the paper, as runs of first and last: 31 of depth 1, 41 of depth 2, 25 of depth 3, 3 of depth 4. */
const TEST_RUNS = '0-30 140-180 420-444 533-535';

/** Train ids of the paper (AgentGym-RL-Data-ID); 70 ids are in neither list. */
const TRAIN_RUNS =
  '31-139 181-183 185-194 196-215 217-222 224-228 230-238 240-242 244-253 255-264 266-286 288-301 303-322 324-361 ' +
  '363-375 377-380 383-384 386-403 405-419 445-446 448-452 455 459 462-464 466 469-472 475 477 480-482 484 489 ' +
  '491-492 495-496 501-502 504 506 510-511 513-514 517-518 520 523 528 531-532 537';

const TASKS = 544;
/** Period of the train ids that are put aside for selection. */
const SELECTION_EVERY = 5;

/** Train ids of the paper, ascending. */
export const TRAIN_IDS: readonly number[] = readRuns(TRAIN_RUNS);
/** Test ids of the paper, ascending. */
export const TEST_IDS: readonly number[] = readRuns(TEST_RUNS);

const isTrain = new Set(TRAIN_IDS);
const isTest = new Set(TEST_IDS);
const all = Array.from({ length: TASKS }, (_, index) => index);
const splits: Readonly<Record<Split, readonly number[]>> = { train: TRAIN_IDS, test: TEST_IDS };

/**
 * Named sets of ids beside the two splits:
 * - `outside-test`: all 444 ids but the test ids, those in neither of the paper's lists among them;
 * - `not-train`: the 170 ids that no train id names. Under `order: agenttraj` they hold the paper's test goals;
 * - `selection` and `fit`: every fifth train id, and the other four fifths, to choose settings without looking at test.
 */
const sets: Readonly<Record<string, readonly number[]>> = {
  'outside-test': all.filter((index) => !isTest.has(index)),
  'not-train': all.filter((index) => !isTrain.has(index)),
  selection: TRAIN_IDS.filter((_, at) => at % SELECTION_EVERY === 0),
  fit: TRAIN_IDS.filter((_, at) => at % SELECTION_EVERY !== 0),
};

/** Seed of evaluations, under which every episode has the names and recipes of the rule book (variants.ts). */
export const EVAL_SEED = 42;

/**
 * Task table over the goals of a rule book. Seen in part are goals that a recipe on any way to a train id's goal makes.
 */
export function tasksOf(tree: Tree, order: Order): TaskTable {
  let madeInTraining: ReadonlySet<string> | undefined;
  return {
    count: tree.goals.length,
    numbering: order,
    labels: ['depth 1', 'depth 2', 'depth 3', 'depth 4'],
    label(index) {
      const goal = tree.goals[index];
      if (!goal)
        throw new RangeError(`textcraft: task index must be an integer in [0, ${tree.goals.length}), got ${index}`);
      return `depth ${goal.depth}`;
    },
    split: (split) => splits[split],
    sets,
    isSeen(index) {
      const goals = TRAIN_IDS.map((id) => tree.goals[id]!.item);
      madeInTraining ??= new Set(goals.flatMap((goal) => waysTo(tree, goal).map(({ output }) => output)));
      return madeInTraining.has(tree.goals[index]!.item);
    },
    evalSeed: EVAL_SEED,
  };
}

/** Reads runs: `3-5 9` → 3, 4, 5, 9. */
function readRuns(runs: string): number[] {
  return runs.split(' ').flatMap((run) => {
    const [first, last] = run.split('-').map(Number) as [number, number | undefined];
    return Array.from({ length: (last ?? first) - first + 1 }, (_, n) => first + n);
  });
}
