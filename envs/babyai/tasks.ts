/**
 * The task table: AgentGym's data indices. Index n is level n % 40 + 1 under seed ⌊n / 40⌋.
 *
 * The paper trains and tests on 18 of the levels, in six sub-tasks: 810 train ids and 90 test ids, listed in
 * paper-seeds.ts. The 360 `held-out` tasks (seeds 400 … 419 of the 18 levels) are in no list of the paper.
 */
import type { Split, TaskTable } from '../../src/core/task.ts';
import { CorrectedText } from './corrected.ts';
import { LEVELS, NUM_LEVELS } from './levels.ts';
import { PAPER_SEEDS } from './paper-seeds.ts';

/** The paper's sub-tasks and their levels. */
export const SUBTASKS: Readonly<Record<string, readonly number[]>> = {
  GoTo: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
  Pickup: [19, 20, 21],
  ActionObjDoor: [30],
  FindObjS7: [31],
  OneRoomS20: [33],
  SynthLoc: [36],
};

/** The 18 levels of the paper, ascending. */
export const PAPER_LEVELS: readonly number[] = Object.values(SUBTASKS).flat();

/** Seeds 0 … 999 of every level; the stream has more, but a table wants an end. */
const SEEDS = 1000;
/** Seeds of a level in the paper's lists that are for training; the rest of the 50 are for testing. */
const TRAIN_SEEDS = 45;
const HELD_OUT_SEEDS = [400, 419] as const;
/** Every how many seeds of a level's training seeds is put aside for selection. */
const SELECTION_EVERY = 5;

/** Level in [1, 40] of a task index. */
export function levelOf(index: number): number {
  return (index % NUM_LEVELS) + 1;
}

/** Seed of a task index. */
export function seedOf(index: number): number {
  return Math.floor(index / NUM_LEVELS);
}

/** Task index of a level under a seed. */
export function indexOf(level: number, seed: number): number {
  return level - 1 + NUM_LEVELS * seed;
}

/** Names a level's label: its sub-task in the paper, else `level 17 Pickup` after Minigrid's name for it. */
const LABELS: readonly string[] = LEVELS.map(({ id }, n) => {
  const subtask = Object.entries(SUBTASKS).find(([, levels]) => levels.includes(n + 1));
  return subtask ? subtask[0] : `level ${n + 1} ${id.slice('BabyAI-'.length, -'-v0'.length)}`;
});

/** Level seeds of the paper, ascending, by level. */
const paperSeeds = new Map(PAPER_LEVELS.map((level) => [level, readRuns(PAPER_SEEDS[level]!)]));

/** Task indices of the 18 levels under the seeds that `seedsOf` names, ascending. */
function paperTasks(seedsOf: (level: number) => readonly number[]): number[] {
  return PAPER_LEVELS.flatMap((level) => seedsOf(level).map((seed) => indexOf(level, seed))).sort((a, b) => a - b);
}

function seedRange(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, n) => from + n);
}

const trainSeeds = (level: number) => paperSeeds.get(level)!.slice(0, TRAIN_SEEDS);
const train: readonly number[] = paperTasks(trainSeeds);
const test: readonly number[] = paperTasks((level) => paperSeeds.get(level)!.slice(TRAIN_SEEDS));

/** The 360 held-out tasks: seeds 400 … 419 of the 18 levels. */
export const heldOutTasks: readonly number[] = paperTasks(() => seedRange(...HELD_OUT_SEEDS));

/**
 * Named sets beside the paper's lists: `held-out`; `test-and-held-out`, the 90 and the 360 in one evaluation; `fresh`, seeds 420 … 999 of the 18 levels, in no list and not held
 * out (10,440 further levels to train on); `selection` and `fit`, every fifth training level and the others.
 */
const sets: Readonly<Record<string, readonly number[]>> = {
  'held-out': heldOutTasks,
  'test-and-held-out': [...test, ...heldOutTasks].sort((a, b) => a - b),
  fresh: paperTasks(() => seedRange(HELD_OUT_SEEDS[1] + 1, SEEDS - 1)),
  selection: paperTasks((level) => trainSeeds(level).filter((_, at) => at % SELECTION_EVERY === 0)),
  fit: paperTasks((level) => trainSeeds(level).filter((_, at) => at % SELECTION_EVERY !== 0)),
};

/** First texts of the train tasks, each with its level. */
let trainedTexts: ReadonlySet<string> | undefined;

/** A task's level and first text: a task is seen in part where a train task of its level opens alike. */
function firstText(index: number): string {
  return `${levelOf(index)}\n${new CorrectedText(index).answer.observation}`;
}

export const tasks: TaskTable = {
  count: NUM_LEVELS * SEEDS,
  labels: [...Object.keys(SUBTASKS), ...LABELS.filter((label) => label.startsWith('level '))],
  label(index) {
    requireIndex(index);
    return LABELS[index % NUM_LEVELS]!;
  },
  split: (split: Split) => (split === 'train' ? train : test),
  sets,
  isSeen(index) {
    trainedTexts ??= new Set(train.map(firstText));
    return trainedTexts.has(firstText(index));
  },
  evalSeed: 0,
};

/** @throws {RangeError} unless index is a task index */
export function requireIndex(index: number): void {
  if (Number.isInteger(index) && index >= 0 && index < tasks.count) return;
  throw new RangeError(`babyai: task index must be in [0, ${tasks.count}), got ${index}`);
}

/** `3-5 9` → 3, 4, 5, 9 */
function readRuns(runs: string): number[] {
  return runs.split(' ').flatMap((run) => {
    const [first, last] = run.split('-').map(Number) as [number, number | undefined];
    return seedRange(first, last ?? first);
  });
}
