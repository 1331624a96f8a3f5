/**
 * Facts of a world that OpenEnv has no field for, and that two longplays give each other under `metadata.longplay`: the
 * task table, bounds, replay and prompt in the answer of `/metadata`, a stage in an observation, a cause in an error.
 * The server writes them (`src/serve/openenv-server.ts`), the client reads them (`openenv-client.ts`).
 */
import { z } from 'zod';
import type { Env } from '../../core/env.ts';
import type { WorldPrompt } from '../../core/prompt.ts';
import type { TaskTable } from '../../core/task.ts';

/** Tasks of the largest table that a client takes. */
const MAX_TASKS = 10_000_000;
/** Patterns of foreign characters that a client takes: one class of characters, which matches in linear time. */
const CHARACTER_CLASS = /^\[\^?[^\]\\]*\]\+?$/;

const indices = z.int().min(0).max(MAX_TASKS);
/** Ascending task indices as ranges, first and last inclusive. */
const ranges = z.array(z.tuple([indices, indices])).refine(areAscending, 'expected ascending ranges');

const tasksSchema = z
  .object({
    count: indices,
    numbering: z.string().exactOptional(),
    labels: z.array(z.string()),
    /** Labels of the tasks, run-length encoded: position in `names`, number of tasks in a row that have it. */
    labelRuns: z.array(z.tuple([z.int().min(0), z.int().min(1)])),
    /** Labels in the order of their first task. */
    names: z.array(z.string()),
    train: ranges,
    test: ranges,
    sets: z.record(z.string(), ranges),
    /** Tasks that the train split has met in part; null where that is not known. */
    seen: ranges.nullable(),
    evalSeed: z.int().min(0).max(0xffffffff),
  })
  .refine(isWhole, 'expected indices below `count` and a label for each task');

/** Schema of a world's facts: `metadata.longplay` of the answer to `GET /metadata`. */
export const worldFactsSchema = z.object({
  /** Version of this form; a reader refuses others. */
  version: z.literal(1),
  rewardRange: z.tuple([z.number(), z.number()]),
  maxObservationChars: z.int().min(1),
  replay: z.enum(['exact', 'never']),
  /** Present for a world of tools. */
  tools: z.literal(true).exactOptional(),
  tasks: tasksSchema,
  prompt: z.object({
    role: z.string(),
    forms: z.array(z.object({ name: z.string(), template: z.string(), meaning: z.string() })),
    short: z.string().exactOptional(),
    hints: z.array(z.string()),
    format: z.enum(['action', 'react', 'think', 'function-calling', 'code', 'fenced']),
    /** Source of `WorldPrompt.foreign`. */
    foreign: z.string().regex(CHARACTER_CLASS).exactOptional(),
  }),
});

/** Facts of a world. */
export type WorldFacts = z.infer<typeof worldFactsSchema>;
type Ranges = z.infer<typeof ranges>;
type TaskFacts = z.infer<typeof tasksSchema>;

/** Makes the facts of a world. @param isOfTools true for a world of tools */
export function worldFacts(env: Env, { foreign, ...prompt }: WorldPrompt, isOfTools = false): WorldFacts {
  const { rewardRange, maxObservationChars, replay = 'exact' } = env;
  return {
    version: 1,
    rewardRange: [...rewardRange],
    maxObservationChars,
    replay,
    ...(isOfTools ? { tools: true } : {}),
    tasks: taskFacts(env.tasks),
    prompt: {
      role: prompt.role,
      forms: prompt.forms.map((form) => ({ ...form })),
      ...(prompt.short === undefined ? {} : { short: prompt.short }),
      hints: [...prompt.hints],
      format: prompt.format,
      ...(foreign && CHARACTER_CLASS.test(foreign.source) ? { foreign: foreign.source } : {}),
    },
  };
}

/** Makes the prompt of a world from its facts. */
export function promptOf({ prompt: { foreign, ...prompt } }: WorldFacts): WorldPrompt {
  return { ...prompt, ...(foreign === undefined ? {} : { foreign: new RegExp(foreign, 'g') }) };
}

/** Makes the task table of a world from its facts. */
export function taskTableOf({ tasks: facts }: WorldFacts): TaskTable {
  const splits = { train: expandRanges(facts.train), test: expandRanges(facts.test) };
  const sets = Object.fromEntries(Object.entries(facts.sets).map(([name, set]) => [name, expandRanges(set)]));
  const seen = facts.seen && new Set(expandRanges(facts.seen));
  const labels = facts.labelRuns.flatMap(([name, length]) => new Array<number>(length).fill(name));
  return {
    count: facts.count,
    ...(facts.numbering === undefined ? {} : { numbering: facts.numbering }),
    labels: facts.labels,
    label(index) {
      const name = labels[index];
      if (name === undefined) throw new RangeError(`task ${index}: there are 0 … ${facts.count - 1}`);
      return facts.names[name]!;
    },
    split: (split) => splits[split],
    ...(Object.keys(sets).length > 0 ? { sets } : {}),
    ...(seen ? { isSeen: (index: number) => seen.has(index) } : {}),
    evalSeed: facts.evalSeed,
  };
}

function taskFacts(tasks: TaskTable): TaskFacts {
  const names = new Map<string, number>();
  const labelRuns: [name: number, length: number][] = [];
  const seen: number[] = [];
  for (let index = 0; index < tasks.count; index++) {
    const label = tasks.label(index);
    let name = names.get(label);
    if (name === undefined) names.set(label, (name = names.size));
    const last = labelRuns.at(-1);
    if (last?.[0] === name) last[1]++;
    else labelRuns.push([name, 1]);
    if (tasks.isSeen?.(index)) seen.push(index);
  }
  return {
    count: tasks.count,
    ...(tasks.numbering === undefined ? {} : { numbering: tasks.numbering }),
    labels: [...tasks.labels],
    labelRuns,
    names: [...names.keys()],
    train: rangesOf(tasks.split('train')),
    test: rangesOf(tasks.split('test')),
    sets: Object.fromEntries(Object.entries(tasks.sets ?? {}).map(([name, set]) => [name, rangesOf(set)])),
    seen: tasks.isSeen ? rangesOf(seen) : null,
    evalSeed: tasks.evalSeed,
  };
}

/** Ranges of ascending indices. */
function rangesOf(ascending: readonly number[]): Ranges {
  const found: Ranges = [];
  for (const index of ascending) {
    const last = found.at(-1);
    if (last && last[1] === index - 1) last[1] = index;
    else found.push([index, index]);
  }
  return found;
}

function expandRanges(from: Ranges): number[] {
  return from.flatMap(([first, last]) => Array.from({ length: last - first + 1 }, (_, offset) => first + offset));
}

function areAscending(from: readonly (readonly [number, number])[]): boolean {
  return from.every(([first, last], at) => first <= last && (at === 0 || from[at - 1]![1] < first));
}

function isWhole(facts: {
  readonly count: number;
  readonly labelRuns: readonly (readonly [number, number])[];
  readonly names: readonly string[];
  readonly train: Ranges;
  readonly test: Ranges;
  readonly sets: Readonly<Record<string, Ranges>>;
  readonly seen: Ranges | null;
}): boolean {
  const { count, labelRuns, names, train, test, sets, seen } = facts;
  const lists = [train, test, seen ?? [], ...Object.values(sets)];
  return (
    lists.every((list) => (list.at(-1)?.[1] ?? -1) < count) &&
    labelRuns.every(([name]) => name < names.length) &&
    labelRuns.reduce((sum, [, length]) => sum + length, 0) === count
  );
}
