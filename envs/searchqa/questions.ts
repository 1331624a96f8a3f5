/** Questions of a task table: texts, right answers, and the labels and splits of AgentGym's seven sets. */
import type { TaskTable } from '../../src/core/task.ts';

/** Question of a task. */
export interface Question {
  /** Text, with its question mark. */
  readonly question: string;
  /** Right answers, at least one. */
  readonly answers: readonly string[];
}

/** The questions behind a task table. */
export interface Questions {
  readonly tasks: TaskTable;
  /** Longest question, in UTF-16 units. */
  readonly longest: number;
  /** @throws {RangeError} for a task index outside the table */
  at(index: number): Question;
}

/** Sets of AgentGym, in the order of its ids. */
export const SETS = ['nq', 'triviaqa', 'popqa', 'hotpotqa', '2wikimultihopqa', 'musique', 'bamboogle'] as const;
/** Name of a set of questions. */
export type SetName = (typeof SETS)[number];

/** A run of task indices of one set. */
export interface SetRun {
  readonly set: string;
  readonly count: number;
  readonly split: 'train' | 'test';
}

/** AgentGym's 221,328 ids: seven test sets, then two for training. */
export const AGENTGYM_RUNS: readonly SetRun[] = [
  { set: 'nq', count: 3610, split: 'test' },
  { set: 'triviaqa', count: 11_313, split: 'test' },
  { set: 'popqa', count: 14_267, split: 'test' },
  { set: 'hotpotqa', count: 7405, split: 'test' },
  { set: '2wikimultihopqa', count: 12_576, split: 'test' },
  { set: 'musique', count: 2417, split: 'test' },
  { set: 'bamboogle', count: 125, split: 'test' },
  { set: 'nq', count: 79_168, split: 'train' },
  { set: 'hotpotqa', count: 90_447, split: 'train' },
];

/** Seed of held-out tasks; a question has no chance in it, so any does. */
const EVAL_SEED = 42;

/**
 * The table over runs of sets that follow each other from index 0.
 * @param train sets whose training questions are trained on; all by default
 */
export function tableOf(runs: readonly SetRun[], train?: readonly string[]): TaskTable {
  const starts: number[] = [];
  let count = 0;
  for (const run of runs) {
    starts.push(count);
    count += run.count;
  }
  const labels = [...new Set(runs.map(({ set }) => set))];
  const indicesOf = (split: 'train' | 'test') =>
    runs.flatMap((run, r) =>
      run.split === split && (split === 'test' || !train || train.includes(run.set))
        ? Array.from({ length: run.count }, (_, i) => starts[r]! + i)
        : [],
    );
  const splits: Partial<Record<'train' | 'test', readonly number[]>> = {};
  return {
    count,
    labels,
    label(index) {
      return runs[runOf(index, starts, count)]!.set;
    },
    split: (split) => (splits[split] ??= indicesOf(split)),
    evalSeed: EVAL_SEED,
  };
}

/** Run that an index lies in. @throws {RangeError} outside */
export function runOf(index: number, starts: readonly number[], count: number): number {
  if (!Number.isInteger(index) || index < 0 || index >= count) {
    throw new RangeError(`searchqa: task index must be an integer in [0, ${count}), got ${index}`);
  }
  let run = starts.length - 1;
  while (starts[run]! > index) run--;
  return run;
}
