/**
 * The task table: AgentGym's data indices. Index n is level n % 40 + 1 under seed ⌊n / 40⌋.
 *
 * The paper trains and tests on 18 of the levels, in six sub-tasks; its test ids are the 90 of these levels in
 * 1804 … 2003, its training list holds 810 ids below 1804: exactly seeds 0 … 44 of the 18 levels. The four ids
 * 1800 … 1803 (seed 45) are in neither list; they are among the 360 held-out tasks below.
 */
import type { Split, TaskTable } from '../../src/core/task.ts';
import { LEVELS, NUM_LEVELS } from './levels.ts';

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
const TRAIN_SEEDS = 45;
const TEST_FROM = 1804;
const TEST_TO = 2003;
const HELD_OUT_SEEDS = [45, 64] as const;

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

/** Task indices of the 18 levels with seeds from … to, ascending. */
function paperTasks(from: number, to: number): number[] {
  const out: number[] = [];
  for (let seed = from; seed <= to; seed++) for (const level of PAPER_LEVELS) out.push(indexOf(level, seed));
  return out;
}

/** The 360 held-out tasks: seeds 45 … 64 of the 18 levels. The paper's 90 test tasks are among them. */
export const heldOutTasks: readonly number[] = paperTasks(...HELD_OUT_SEEDS);

const train: readonly number[] = paperTasks(0, TRAIN_SEEDS - 1);
const test: readonly number[] = heldOutTasks.filter((index) => index >= TEST_FROM && index <= TEST_TO);

export const tasks: TaskTable = {
  count: NUM_LEVELS * SEEDS,
  labels: [...Object.keys(SUBTASKS), ...LABELS.filter((label) => label.startsWith('level '))],
  label(index) {
    requireIndex(index);
    return LABELS[index % NUM_LEVELS]!;
  },
  split: (split: Split) => (split === 'train' ? train : test),
  sets: { 'held-out': heldOutTasks },
  evalSeed: 0,
};

/** @throws {RangeError} unless index is a task index */
export function requireIndex(index: number): void {
  if (Number.isInteger(index) && index >= 0 && index < tasks.count) return;
  throw new RangeError(`babyai: task index must be in [0, ${tasks.count}), got ${index}`);
}
