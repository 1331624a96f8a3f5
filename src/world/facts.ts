/**
 * Facts of a world as JSON: what an env server says of a world under `longplay` in OpenEnv's `/metadata`, and what the
 * client at the other end makes a task table, bounds and a prompt of. `TaskTable.seen` is left out: a world may have to
 * build thousands of tasks to know it.
 */
import { z } from 'zod';
import type { Env } from '../core/env.ts';
import type { WorldPrompt } from '../core/prompt.ts';
import type { TaskTable } from '../core/task.ts';

/** Tasks that a table may have; more are refused, since each costs memory. */
const MAX_TASKS = 4_000_000;
/** Label index of a task whose label is not among the table's labels. */
const UNLISTED = -1;
/** One class of characters, once or more: the only pattern that is compiled from another machine's text. */
const CHARACTER_CLASS = /^\[\^?(?:[A-Za-z0-9 ,.;:_-])+\][+*]?$/;

const index = z.int().min(0).max(MAX_TASKS);
/** Ascending indices as inclusive ranges. */
const ranges = z.array(z.tuple([index, index])).max(MAX_TASKS);
const text = z.string().max(100_000);

const prompt = z.object({
  role: text,
  forms: z.array(z.object({ name: text, template: text, meaning: text })).max(1000),
  hints: z.array(text).max(1000),
  format: z.enum(['action', 'react', 'think', 'function-calling', 'code', 'fenced']),
  foreign: z.string().regex(CHARACTER_CLASS).optional(),
});

const facts = z.object({
  rewardRange: z.tuple([z.number(), z.number()]),
  maxObservationChars: z.int().min(1),
  replay: z.enum(['exact', 'never']),
  tasks: z.object({
    count: index,
    labels: z.array(text).max(100_000),
    /** Label of each task: runs of a label's index and the number of tasks that have it. */
    labelRuns: z.array(z.tuple([z.int().min(UNLISTED), z.int().min(1)])).max(MAX_TASKS),
    train: ranges,
    test: ranges,
    sets: z.record(z.string(), ranges),
    evalSeed: z.int().min(0).max(0xffffffff),
  }),
  prompt,
});

/** Facts of a world, as JSON. */
export type WorldFacts = z.infer<typeof facts>;

/** Facts with a table and a prompt as the framework takes them. */
export interface ReadFacts extends Pick<Env, 'rewardRange' | 'maxObservationChars' | 'tasks'> {
  readonly replay: 'exact' | 'never';
  readonly prompt: WorldPrompt;
}

/** Makes the JSON of a world's facts. */
export function factsOf(env: Env, worldPrompt: WorldPrompt): WorldFacts {
  const { tasks, rewardRange, maxObservationChars, replay = 'exact' } = env;
  const numberOf = new Map(tasks.labels.map((label, i) => [label, i]));
  const labelRuns: [label: number, tasks: number][] = [];
  for (let task = 0; task < tasks.count; task++) {
    const label = numberOf.get(tasks.label(task)) ?? UNLISTED;
    const last = labelRuns.at(-1);
    if (last?.[0] === label) last[1]++;
    else labelRuns.push([label, 1]);
  }
  const { role, forms, hints, format, foreign } = worldPrompt;
  const pattern = foreign && CHARACTER_CLASS.test(foreign.source) ? { foreign: foreign.source } : {};
  return {
    rewardRange: [...rewardRange],
    maxObservationChars,
    replay,
    tasks: {
      count: tasks.count,
      labels: [...tasks.labels],
      labelRuns,
      train: rangesOf(tasks.split('train')),
      test: rangesOf(tasks.split('test')),
      sets: Object.fromEntries(Object.entries(tasks.sets ?? {}).map(([name, set]) => [name, rangesOf(set)])),
      evalSeed: tasks.evalSeed,
    },
    prompt: { role, forms: forms.map((form) => ({ ...form })), hints: [...hints], format, ...pattern },
  };
}

/**
 * Reads the JSON of a world's facts.
 * @throws {Error} for anything else, naming the field
 */
export function readFacts(json: unknown): ReadFacts {
  const read = facts.safeParse(json);
  if (!read.success) {
    const { path, message } = read.error.issues[0]!;
    throw new Error(`${path.join('.') || 'longplay'}: ${message}`);
  }
  const { prompt, tasks, ...bounds } = read.data;
  const { foreign, ...plain } = prompt;
  return {
    ...bounds,
    tasks: tableOf(tasks),
    prompt: foreign === undefined ? plain : { ...plain, foreign: new RegExp(foreign, 'g') },
  };
}

function tableOf(tasks: WorldFacts['tasks']): TaskTable {
  const { count, labels, evalSeed } = tasks;
  const labelOf = new Int32Array(count).fill(UNLISTED);
  let at = 0;
  for (const [label, length] of tasks.labelRuns) {
    labelOf.fill(label, at, at + length);
    at += length;
  }
  if (at !== count) throw new Error(`tasks.labelRuns: expected the labels of ${count} tasks, got those of ${at}`);
  const splits = {
    train: indicesOf('tasks.train', tasks.train, count),
    test: indicesOf('tasks.test', tasks.test, count),
  };
  const sets = Object.entries(tasks.sets).map(([name, set]) => [name, indicesOf(`tasks.sets.${name}`, set, count)]);
  return {
    count,
    labels,
    evalSeed,
    label(task) {
      if (!(Number.isInteger(task) && task >= 0 && task < count))
        throw new RangeError(`task ${task}: there are 0 … ${count - 1}`);
      return labels[labelOf[task]!] ?? 'unlabelled';
    },
    split: (split) => splits[split],
    ...(sets.length > 0 ? { sets: Object.fromEntries(sets) } : {}),
  };
}

/** Ranges of ascending indices. */
function rangesOf(indices: readonly number[]): [first: number, last: number][] {
  const found: [number, number][] = [];
  for (const task of indices) {
    const last = found.at(-1);
    if (last && last[1] === task - 1) last[1] = task;
    else found.push([task, task]);
  }
  return found;
}

/** @throws {Error} unless the ranges ascend below `count` */
function indicesOf(name: string, from: WorldFacts['tasks']['train'], count: number): readonly number[] {
  const indices: number[] = [];
  let next = 0;
  for (const [first, last] of from) {
    if (first < next || last < first || last >= count) {
      throw new Error(`${name}: expected ascending ranges within 0 … ${count - 1}, got ${first} … ${last}`);
    }
    for (let task = first; task <= last; task++) indices.push(task);
    next = last + 1;
  }
  return indices;
}
