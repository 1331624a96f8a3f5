/** The embedded world as a host holds it: knowledge, passages with their index, and questions made on demand. */
import { IndexRetriever } from '../../../src/retrieval/index-retriever.ts';
import { indexPassages } from '../../../src/retrieval/memory-index.ts';
import { type Questions, runOf, SETS, type SetName, type SetRun, tableOf } from '../questions.ts';
import { makeKnowledge } from './knowledge.ts';
import { type Made, QuestionMaker, type Recipe, recipeOf } from './maker.ts';
import { writePassages } from './passages.ts';

/** Questions of each set: test, then train. */
const COUNTS: Readonly<Record<SetName, readonly [test: number, train: number]>> = {
  nq: [50, 2000],
  triviaqa: [50, 500],
  popqa: [50, 500],
  hotpotqa: [50, 2000],
  '2wikimultihopqa': [50, 500],
  musique: [100, 1000],
  bamboogle: [50, 500],
};

/** Test questions first, as AgentGym numbers them, then those for training. */
const WIKI_RUNS: readonly SetRun[] = (['test', 'train'] as const).flatMap((split) =>
  SETS.map((set) => ({ set, count: COUNTS[set][split === 'test' ? 0 : 1], split })),
);

/** Characters that no made question exceeds. */
const LONGEST = 600;
const REMEMBERED = 16_384;

/** Passages and questions of one world. */
export interface Wiki {
  readonly retriever: IndexRetriever;
  /** The question of a task, with how it is found out. @throws {RangeError} outside the table */
  makeQuestion(index: number): Made;
}

/** Worlds opened last, so that the rules, the oracle and the drawing of one thread stand over one. */
const opened = new Map<string, Wiki>();
const MAX_OPENED = 2;

/** The world of a seed and size; some 50 ms at its default size, where it is not open already. */
export function openWiki({ seed, entities }: { readonly seed: number; readonly entities: number }): Wiki {
  const key = `${seed} ${entities}`;
  const known = opened.get(key);
  if (known) return known;
  const made = makeWiki(seed, entities);
  if (opened.size >= MAX_OPENED) opened.delete(opened.keys().next().value!);
  opened.set(key, made);
  return made;
}

function makeWiki(seed: number, entities: number): Wiki {
  const knowledge = makeKnowledge(seed, entities);
  const index = indexPassages(writePassages(knowledge));
  const maker = new QuestionMaker(knowledge, index);
  const known = new Map<number, Made>();
  let tests: readonly Made[] | undefined;
  return {
    retriever: new IndexRetriever(index),
    makeQuestion(task) {
      const { run, n } = placeOf(task);
      if (run.split === 'test') return (tests ??= makeTests(maker))[task]!;
      const kept = known.get(task);
      if (kept) return kept;
      const made = maker.make(recipeOf(run.set as SetName, run.split, n), run.split, n);
      if (known.size >= REMEMBERED) known.clear();
      known.set(task, made);
      return made;
    },
  };
}

/** All test questions, no two alike. */
function makeTests(maker: QuestionMaker): Made[] {
  const made: Made[] = [];
  const taken = new Set<string>();
  for (const { set, count, split } of WIKI_RUNS) {
    for (let n = 0; split === 'test' && n < count; n++) {
      const one = maker.make(recipeOf(set as SetName, split, n), split, n, taken);
      taken.add(one.question);
      made.push(one);
    }
  }
  return made;
}

const starts = WIKI_RUNS.map((_, r) => WIKI_RUNS.slice(0, r).reduce((sum, { count }) => sum + count, 0));
const COUNT = WIKI_RUNS.reduce((sum, { count }) => sum + count, 0);

function placeOf(task: number): { run: SetRun; n: number } {
  const r = runOf(task, starts, COUNT);
  return { run: WIKI_RUNS[r]!, n: task - starts[r]! };
}

/** Hops of a task, from its place alone. @throws {RangeError} outside the table */
export function hopsOf(task: number): number {
  return recipeAt(task).hops;
}

function recipeAt(task: number): Recipe {
  const { run, n } = placeOf(task);
  return recipeOf(run.set as SetName, run.split, n);
}

/**
 * The table of the embedded questions, with sets of the test questions: by hops, and `composition`, those that join two
 * relations which no training question joins.
 * @param wiki needed by `at`
 */
export function wikiQuestions(wiki: Wiki | undefined, train: readonly string[] | undefined): Questions {
  const table = tableOf(WIKI_RUNS, train);
  const test = table.split('test');
  const byHops = [1, 2, 3, 4].map((hops) => [`hops-${hops}`, test.filter((task) => hopsOf(task) === hops)] as const);
  const sets = {
    ...Object.fromEntries(byHops),
    composition: test.filter((task) => recipeAt(task).joinsAnew),
  };
  return {
    tasks: { ...table, sets },
    longest: LONGEST,
    at(task) {
      placeOf(task);
      if (!wiki) throw new Error('searchqa: questions are made by start()');
      return wiki.makeQuestion(task);
    },
  };
}
